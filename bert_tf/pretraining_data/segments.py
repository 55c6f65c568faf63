"""Documents -> sequences, as ranges of their tokens.

Each objective has a way to cut: pairs whose second segment may be of another
document (next sentences, Devlin et al., 2018), pairs of segments that may be
swapped (sentence order, Lan et al., 2020), and single segments that end with
the document or go on in the next (Liu et al., 2019, "doc-sentences" and
"full-sentences").

A hash of the seed, the repetition, the document's key and the sentence decides
what is left to chance. So a document is always cut the same way, whatever
stands before it, unless sequences go on in it.

Shapes: d documents, s sentences, r sequences.
"""

import bisect
import dataclasses

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# What a hash is for.
_IS_SHORT, _TARGET, _CUT, _CHOICE, _DOCUMENT, _SENTENCE, _FRONT = range(7)


@dataclasses.dataclass(frozen=True)
class Text:
    """Documents of sentences of tokens.

    `sentences` [s + 1] and `documents` [d + 1] int64 say where each starts
    among the tokens or the sentences, and at last the number of these. `keys`
    [d] uint64 decide the documents' random choices.
    """

    sentences: np.ndarray
    documents: np.ndarray
    keys: np.ndarray


@dataclasses.dataclass(frozen=True)
class Ranges:
    """Sequences as ranges of tokens.

    `starts` and `ends` [r, 2] int64 are those of both segments; one that ends
    where it starts is none. `labels` [r] bool say whether the second segment is
    of another document, or the two are swapped.
    """

    starts: np.ndarray
    ends: np.ndarray
    labels: np.ndarray


class Chances:
    """The random choices of one repetition, by a seed from 0."""

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
        """Returns numbers from 0 to below 1, [d]."""
        return _unit(_hash(self._documents, purpose))

    def of_sentences(self, purpose: int) -> np.ndarray:
        """Returns numbers from 0 to below 1, [s]."""
        return _unit(_hash(self._sentences, purpose))

    def tosses(
        self, sentences: np.ndarray, which: int, counts: np.ndarray
    ) -> np.ndarray:
        """Returns how many of so many coins, 1 or more, show heads: [n].

        `sentences` [n] are those that the tosses belong to; `which` tells apart
        tosses for the same one.
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


def _unit(x: np.ndarray) -> np.ndarray:
    return (x >> np.uint64(11)) * 2.0**-53


def _targets(
    chances: Chances, max_tokens: int, short_seq_prob: float
) -> np.ndarray:
    """How long the sequences of each document are to be, [d].

    Padding is wasted computation, so sequences are usually filled up; some are
    short, since those of fine-tuning are.
    """
    short = 2 + (chances.of_documents(_TARGET) * (max_tokens - 1)).astype(int)
    is_short = chances.of_documents(_IS_SHORT) < short_seq_prob
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
    """Cuts documents into pairs of segments, as the original.

    Half of the second segments, and all where nothing is left to follow, are of
    other documents. `others` has those of `text` and then more, two at least.
    `max_tokens` is the most of both segments; a share of `short_seq_prob` of
    the documents makes shorter sequences.
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
    """Cuts documents at the ends of sentences: [r, 4] int64.

    These are a pair's first sentence, the one to cut before, the one to end
    before (the same if there is no second segment), and the document.
    """
    # Single elements of lists are read faster than those of arrays.
    starts = text.sentences.tolist()
    documents = text.documents.tolist()
    cuts = chances.of_sentences(_CUT).tolist()
    choices = chances.of_sentences(_CHOICE).tolist()
    pairs: list[int] = []
    for document, target in enumerate(targets.tolist()):
        first, last = documents[document], documents[document + 1]
        while first < last:
            # As many sentences as reach the target, the last perhaps beyond.
            end = bisect.bisect_left(
                starts, starts[first] + target, first + 1, last
            )
            # How many of them make the first segment is left to chance: a cut
            # in the middle would make the task too easy.
            cut = first + 1
            if end - first > 1:
                cut += int(cuts[first] * (end - first - 1))
                if may_be_random and choices[first] < 0.5:
                    # What comes after the cut is not used: the next pair has
                    # it.
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
    """Picks `wanted` [n] tokens of other documents than `documents` [n].

    The segments are shorter where those have fewer. Two random numbers from 0
    to below 1 choose each one's document and sentence.
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
    """Shortens pairs, in place, that are too long.

    As if tokens were taken one by one from the longer segment, or else the
    second, each from its front or its back by the toss of a coin.
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
    """Cuts documents into pairs of consecutive segments, half of them swapped.

    As ALBERT's, whose label is 1 too where they are swapped. A sentence without
    another is cut itself, or left out if it has one token; to such a one the
    original adds a segment of another document, also with a label of 1, which
    is not the task of the paper (section 3.1).
    """
    chances = Chances(text, seed, repetition)
    targets = _targets(chances, max_tokens, short_seq_prob)
    pairs = _pairs(text, targets, chances, may_be_random=False)
    first, cut, end, _ = pairs.T
    start, border, stop = (text.sentences[x] for x in (first, cut, end))
    inside = chances.of_sentences(_CUT)[first] * (stop - start - 1)
    border = np.where(cut == end, start + 1 + inside.astype(np.int64), border)
    kept = stop - start > 1
    first, start, border, stop = (x[kept] for x in (first, start, border, stop))
    starts = np.stack([start, border], axis=1)
    ends = np.stack([border, stop], axis=1)
    swapped = chances.of_sentences(_CHOICE)[first] < 0.5
    starts[swapped] = starts[swapped, ::-1]
    ends[swapped] = ends[swapped, ::-1]
    # After they are swapped: of an odd number of tokens the first segment gets
    # one more, which otherwise would tell the label.
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
    """Cuts documents into as many whole sentences as fit, but one at least.

    A sentence that is longer than `max_tokens` goes on in the next sequence.
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
            # The last end of a sentence within reach, or else the next one.
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
    """Returns sequences that have no second segment."""
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

    The ranges are of the tokens with a separator between documents, which
    counts where a sequence goes on in the next document; none begins or ends
    with it. Every token of the text is in one sequence. A sentence that is
    longer than `max_tokens` begins a sequence, and goes on in the next ones.
    Each sequence is shorter with a probability of `short_seq_prob`; RoBERTa's
    are not (Liu et al., 2019, section 3.1).
    """
    chances = Chances(text, seed, repetition)
    short = 2 + (chances.of_sentences(_TARGET) * (max_tokens - 1)).astype(int)
    is_short = chances.of_sentences(_IS_SHORT) < short_seq_prob
    targets = np.where(is_short, short, max_tokens)
    targets = np.minimum(targets, max_tokens).tolist()  # [s]
    # How many separators stand before each sentence.
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
            # A sentence that is longer: whole if it can be.
            end = min(lasts[sentence], start + max_tokens)
            following += end == lasts[sentence]
        starts.append(start)
        ends.append(end)
        is_whole = sentence < following < len(firsts)
        start = firsts[following] if is_whole else end
        sentence = following
    return _single(starts, ends)
