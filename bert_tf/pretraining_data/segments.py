"""Splits documents into sequences, as ranges of their tokens.

Each objective splits in its own way: pairs whose second segment may be from
another document (next sentences, Devlin et al., 2018), pairs of segments that
may be swapped (sentence order, Lan et al., 2020), and single segments that end
with the document or continue in the next (Liu et al., 2019, "doc-sentences" and
"full-sentences").

A hash of the seed, the repetition, the document's key and the sentence makes
all random choices. So a document is always split in the same way, whatever is
before it, unless sequences continue in it.

Shapes: d documents, s sentences, r sequences.
"""

import bisect
import dataclasses

from bert_tf.records import masking

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Purposes of hashes.
IS_SHORT, TARGET, CUT, CHOICE, _DOCUMENT, _SENTENCE, _FRONT = range(7)


@dataclasses.dataclass(frozen=True)
class Text:
    """Documents of sentences of tokens.

    `sentences` [s + 1] and `documents` [d + 1] int64 are the starts among the
    tokens or the sentences, followed by the number of these. `keys` [d] uint64
    determine the documents' random choices.
    """

    sentences: np.ndarray
    documents: np.ndarray
    keys: np.ndarray


@dataclasses.dataclass(frozen=True)
class Ranges:
    """Sequences as ranges of tokens.

    `starts` and `ends` [r, 2] int64 are the bounds of both segments. The second
    is missing if both are equal. `labels` [r] bool are whether the second
    segment is from another document, or the two are swapped.
    """

    starts: np.ndarray
    ends: np.ndarray
    labels: np.ndarray


class Chances:
    """The random choices of one repetition; the seed is at least 0."""

    def __init__(self, text: Text, seed: int, repetition: int):
        self._documents = _hash(
            _hash(_hash(np.zeros(1, np.uint64), seed), repetition), text.keys
        )  # [d]
        counts = np.diff(text.documents)
        first = np.repeat(text.documents[:-1], counts)
        self._sentences = _hash(
            np.repeat(self._documents, counts), np.arange(len(first)) - first
        )  # [s]

    def of_documents(self, purpose: int) -> np.ndarray:
        """Returns random numbers in [0, 1) for documents, [d]."""
        return masking.unit(_hash(self._documents, purpose))

    def of_sentences(self, purpose: int) -> np.ndarray:
        """Returns random numbers in [0, 1) for sentences, [s]."""
        return masking.unit(_hash(self._sentences, purpose))

    def tosses(
        self, sentences: np.ndarray, which: int, counts: np.ndarray
    ) -> np.ndarray:
        """Returns the number of heads among `counts` (at least 1) coins: [n].

        `sentences` [n] are the sentences that the tosses belong to; `which`
        separates different tosses of the same sentence.
        """
        words = -(-counts // 64)
        owner = np.repeat(np.arange(len(counts)), words)
        number = np.arange(len(owner)) - (np.cumsum(words) - words)[owner]
        state = _hash(_hash(self._sentences[sentences], _FRONT), which)
        bits = _hash(state[owner], number)
        unused = np.maximum(64 * (number + 1) - counts[owner], 0)
        bits >>= unused.astype(np.uint64)
        heads = np.unpackbits(bits.view(np.uint8)).reshape(-1, 64).sum(axis=1)
        return np.bincount(owner, heads, len(counts)).astype(np.int64)


def _hash(state: np.ndarray, number: int | np.ndarray) -> np.ndarray:
    """Mixes a number into 64-bit states (splitmix64, Steele et al., 2014)."""
    if isinstance(number, int):
        number = np.array(number % 2**64, np.uint64)
    x = (state ^ number.astype(np.uint64)) + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _targets(
    chances: Chances, max_tokens: int, short_seq_prob: float
) -> np.ndarray:
    """Returns the target length of the sequences of each document, [d].

    Padding wastes computation, so sequences are usually full. Some are short,
    because sequences in fine-tuning are.
    """
    short = 2 + (chances.of_documents(TARGET) * (max_tokens - 1)).astype(int)
    is_short = chances.of_documents(IS_SHORT) < short_seq_prob
    return np.where(is_short, short, max_tokens)


# ---- Next sentences ---------------------------------------------------------


def next_sentences(
    text: Text,
    others: Text,
    max_tokens: int,
    short_seq_prob: float,
    seed: int,
    repetition: int,
) -> Ranges:
    """Splits documents into pairs of segments, like the original.

    Half of the second segments are from other documents, and all of them if the
    first has no successor. `others` has the documents of `text`, followed by
    more, at least two in total. `max_tokens` is the max length of both segments
    together; a share of `short_seq_prob` of the documents makes shorter
    sequences.
    """
    chances = Chances(text, seed, repetition)
    targets = _targets(chances, max_tokens, short_seq_prob)
    pairs = _pairs(text, targets, chances, may_be_random=True)
    first, cut, end, document = pairs.T
    is_random = cut == end
    starts = np.stack([text.sentences[first], text.sentences[cut]], axis=1)
    ends = np.stack([text.sentences[cut], text.sentences[end]], axis=1)
    wanted = targets[document] - (ends[:, 0] - starts[:, 0])
    starts[is_random, 1], ends[is_random, 1] = _random_segments(
        others,
        document[is_random],
        wanted[is_random],
        chances.of_sentences(_DOCUMENT)[first[is_random]],
        chances.of_sentences(_SENTENCE)[first[is_random]],
    )
    truncate(starts, ends, max_tokens, chances, first)
    return Ranges(starts, ends, is_random)


def _pairs(
    text: Text, targets: np.ndarray, chances: Chances, may_be_random: bool
) -> np.ndarray:
    """Splits documents at the ends of sentences: [r, 4] int64.

    The columns are a pair's first sentence, the first sentence of its second
    segment, the sentence after it (the same if there is no second segment), and
    the document.
    """
    # Single elements of lists are faster to read than elements of arrays.
    starts = text.sentences.tolist()
    documents = text.documents.tolist()
    cuts = chances.of_sentences(CUT).tolist()
    choices = chances.of_sentences(CHOICE).tolist()
    pairs: list[int] = []
    for document, target in enumerate(targets.tolist()):
        first, last = documents[document], documents[document + 1]
        while first < last:
            # As many sentences as reach the target; the last may exceed it.
            end = bisect.bisect_left(
                starts, starts[first] + target, first + 1, last
            )
            # The number of sentences in the first segment is random: a split in
            # the middle would make the task too easy.
            cut = first + 1
            if end - first > 1:
                cut += int(cuts[first] * (end - first - 1))
                if may_be_random and choices[first] < 0.5:
                    # The next pair has the rest after the split.
                    end = cut
            pairs += (first, cut, end, document)
            first = end
    return np.array(pairs, np.int64).reshape(-1, 4)


def _random_segments(
    others: Text,
    documents: np.ndarray,
    wanted: np.ndarray,
    which_document: np.ndarray,
    which_sentence: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Picks `wanted` [n] tokens from other documents than `documents` [n].

    Segments are shorter if the picked documents are. Two random numbers in
    [0, 1) choose the document and the sentence of each.
    """
    number = len(others.documents) - 1
    picked = (which_document * (number - 1)).astype(np.int64)
    picked += picked >= documents
    first, last = others.documents[picked], others.documents[picked + 1]
    first = first + (which_sentence * (last - first)).astype(np.int64)
    end = np.searchsorted(others.sentences, others.sentences[first] + wanted)
    end = np.clip(end, first + 1, last)
    return others.sentences[first], others.sentences[end]


def truncate(
    starts: np.ndarray,
    ends: np.ndarray,
    max_tokens: int,
    chances: Chances,
    sentences: np.ndarray,
) -> None:
    """Shortens pairs that are too long, in place.

    The effect is as if tokens were removed one by one from the longer segment
    (the second if both are equally long), from its front or back by the toss of
    a coin.
    """
    lengths = ends - starts  # [r, 2]
    second = np.maximum(max_tokens - lengths[:, 0], max_tokens // 2)
    second = np.minimum(lengths[:, 1], second)
    first = np.minimum(lengths[:, 0], max_tokens - second)
    for side, length in enumerate((first, second)):
        surplus = lengths[:, side] - length
        rows = np.flatnonzero(surplus)
        front = chances.tosses(sentences[rows], side, surplus[rows])
        starts[rows, side] += front
        ends[rows, side] = starts[rows, side] + length[rows]


# ---- Sentence order ---------------------------------------------------------


def sentence_order(
    text: Text,
    max_tokens: int,
    short_seq_prob: float,
    seed: int,
    repetition: int,
) -> Ranges:
    """Splits documents into pairs of adjacent segments, half of them swapped.

    Like ALBERT's, with label 1 for swapped pairs. A single sentence is split
    itself, or skipped if it has one token. To such a sentence the original adds
    a segment of another document, also with label 1, which is not the task in
    the paper (section 3.1).
    """
    chances = Chances(text, seed, repetition)
    targets = _targets(chances, max_tokens, short_seq_prob)
    pairs = _pairs(text, targets, chances, may_be_random=False)
    first, cut, end, _ = pairs.T
    start, border, stop = (text.sentences[x] for x in (first, cut, end))
    inside = chances.of_sentences(CUT)[first] * (stop - start - 1)
    border = np.where(cut == end, start + 1 + inside.astype(np.int64), border)
    kept = stop - start > 1
    first, start, border, stop = (x[kept] for x in (first, start, border, stop))
    starts = np.stack([start, border], axis=1)
    ends = np.stack([border, stop], axis=1)
    swapped = chances.of_sentences(CHOICE)[first] < 0.5
    starts[swapped] = starts[swapped, ::-1]
    ends[swapped] = ends[swapped, ::-1]
    # After swapping: if the number of tokens is odd, the first segment gets one
    # more, which would otherwise reveal the label.
    truncate(starts, ends, max_tokens, chances, first)
    return Ranges(starts, ends, swapped)


# ---- Single segments --------------------------------------------------------


def single_segments(
    text: Text,
    max_tokens: int,
    short_seq_prob: float,
    seed: int,
    repetition: int,
) -> Ranges:
    """Splits documents into as many whole sentences as fit, at least one.

    A sentence longer than `max_tokens` continues in the next sequence.
    """
    chances = Chances(text, seed, repetition)
    targets = _targets(chances, max_tokens, short_seq_prob)
    sentences = text.sentences.tolist()
    documents = text.documents.tolist()
    starts: list[int] = []
    ends: list[int] = []
    for document, target in enumerate(targets.tolist()):
        first, last = documents[document], documents[document + 1]
        start, stop = sentences[first], sentences[last]
        while start < stop:
            # The last end of a sentence within reach, or the first one beyond.
            reach = start + target
            place = bisect.bisect_right(sentences, reach, first + 1, last + 1)
            end = sentences[max(place - 1, first + 1)]
            end = min(end, start + max_tokens)
            starts.append(start)
            ends.append(end)
            start = end
            first = bisect.bisect_right(sentences, start, first, last + 1) - 1
    return _single(starts, ends)


def _single(starts: list[int], ends: list[int]) -> Ranges:
    """Returns sequences without a second segment."""
    begin, end = np.array(starts, np.int64), np.array(ends, np.int64)
    return Ranges(
        np.stack([begin, end], axis=1),
        np.stack([end, end], axis=1),
        np.zeros(len(begin), bool),
    )


# ---- Full sentences ---------------------------------------------------------


def full_sentences(
    text: Text,
    max_tokens: int,
    short_seq_prob: float,
    seed: int,
    repetition: int,
) -> Ranges:
    """Fills sequences with whole sentences, one document after the other.

    The ranges refer to the tokens with a separator between documents. The
    separator counts if a sequence continues in the next document; no sequence
    begins or ends with it. Every token of the text is in one sequence. A
    sentence longer than `max_tokens` begins a sequence, and continues in the
    next ones. Each sequence is shorter with a probability of `short_seq_prob`;
    RoBERTa's are not (Liu et al., 2019, section 3.1).
    """
    chances = Chances(text, seed, repetition)
    short = 2 + (chances.of_sentences(TARGET) * (max_tokens - 1)).astype(int)
    is_short = chances.of_sentences(IS_SHORT) < short_seq_prob
    targets = np.where(is_short, short, max_tokens)
    targets = np.minimum(targets, max_tokens).tolist()  # [s]
    # The number of separators before each sentence.
    counts = np.diff(text.documents)
    before = np.repeat(np.arange(len(counts)), counts)
    firsts = (text.sentences[:-1] + before).tolist()
    lasts = (text.sentences[1:] + before).tolist()
    starts: list[int] = []
    ends: list[int] = []
    sentence, start = 0, 0
    while sentence < len(firsts):
        reach = start + targets[sentence]
        following = bisect.bisect_right(lasts, reach, sentence)
        if following > sentence:
            end = lasts[following - 1]
        else:
            # A sentence that exceeds the target, whole if possible.
            end = min(lasts[sentence], start + max_tokens)
            following += end == lasts[sentence]
        starts.append(start)
        ends.append(end)
        is_whole = sentence < following < len(firsts)
        start = firsts[following] if is_whole else end
        sentence = following
    return _single(starts, ends)
