"""Documents -> masked sentence pairs: pure functions of (documents, rng).

The original's algorithm, on arrays: documents are cut into pairs of segments
(half of the second ones from another document), then words are masked.

Shapes:
- B: batch       S: sequence length     P: predictions per sequence
- W: words per sequence at most, W = S
"""

import array
import bisect
import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from bert_tf import tokenization

import numpy as np
from etils import epath


@dataclasses.dataclass(frozen=True)
class Settings:
    """How instances are made; the names are those of the original's flags."""

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    do_whole_word_mask: bool = False
    short_seq_prob: float = 0.1
    dupe_factor: int = 10

    def __post_init__(self):
        # [CLS], two [SEP] and at least one token of each segment.
        if self.max_seq_length < 5:
            raise ValueError(
                "`max_seq_length` must be at least 5. "
                f"Received: max_seq_length={self.max_seq_length}"
            )
        if not 1 <= self.max_predictions_per_seq <= self.max_tokens:
            raise ValueError(
                "`max_predictions_per_seq` must be from 1 to "
                f"{self.max_tokens}: a sequence of {self.max_seq_length} has "
                "no more places beside [CLS] and two [SEP]. Received: "
                f"max_predictions_per_seq={self.max_predictions_per_seq}"
            )
        for name in ("masked_lm_prob", "short_seq_prob"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"`{name}` must be from 0 to 1. "
                    f"Received: {name}={getattr(self, name)}"
                )
        if self.dupe_factor < 1:
            raise ValueError(
                "`dupe_factor` must be at least 1. "
                f"Received: dupe_factor={self.dupe_factor}"
            )

    @property
    def max_tokens(self) -> int:
        """Tokens of a pair without [CLS], [SEP] and [SEP]."""
        return self.max_seq_length - 3


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """What masking needs to know of a vocabulary.

    Args:
        size: Number of pieces.
        continues: [size] bool, whether the piece continues a word.
    """

    size: int
    cls_id: int
    sep_id: int
    mask_id: int
    unk_id: int
    continues: np.ndarray

    @classmethod
    def from_vocab(cls, vocab: Mapping[str, int], path: str) -> Self:
        """Takes a checked vocabulary; the path is for the error message.

        Raises:
            ValueError: [CLS], [SEP] or [MASK] is missing.
        """
        for token in ("[CLS]", "[SEP]", "[MASK]"):
            if token not in vocab:
                raise ValueError(
                    f"The vocabulary {path} lacks {token}, which pre-training "
                    "needs: add it as a line, or learn a vocabulary with "
                    "learn_vocabulary.py"
                )
        return cls(
            size=len(vocab),
            cls_id=vocab["[CLS]"],
            sep_id=vocab["[SEP]"],
            mask_id=vocab["[MASK]"],
            unk_id=vocab[tokenization.UNKNOWN],
            continues=np.array(
                [
                    piece.startswith(tokenization.SUFFIX_INDICATOR)
                    for piece in vocab
                ]
            ),
        )


# ---- Documents --------------------------------------------------------------


class Lines(NamedTuple):
    """Lines of text: one sentence each, or "" at the end of a document.

    Args:
        texts: The lines, stripped.
        size: What they take up in their files, in bytes.
    """

    texts: list[str]
    size: int


def read_lines(files: Sequence[str], batch_size: int = 4096) -> Iterator[Lines]:
    """Reads text with one sentence per line and blank lines between documents.

    The end of a file also ends a document.

    Raises:
        ValueError: A line is not UTF-8. Names file and line.
    """
    lines = itertools.chain.from_iterable(map(_lines_of, files))
    while batch := list(itertools.islice(lines, batch_size)):
        texts, sizes = zip(*batch, strict=True)
        yield Lines(list(texts), sum(sizes))


def _lines_of(file: str) -> Iterator[tuple[str, int]]:
    with epath.Path(file).open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8").strip(), len(line)
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{file}, line {number}: the text must be UTF-8 "
                    f"({error.reason} at byte {error.start} of the line). "
                    "Convert the file, for example with iconv. "
                    f"Received: byte={line[error.start]:#x}"
                ) from error
    yield "", 0


class TokenizedLines(NamedTuple):
    """Lines as word pieces.

    Args:
        ids: The pieces of all lines, in order.
        lengths: [lines] int, how many pieces each line has.
        ends: [lines] bool, whether a document ends here.
    """

    ids: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents of sentences, four bytes a token, none empty.

    Args:
        tokens: [tokens] int32, of all documents.
        sentences: Where each sentence starts in `tokens`; then its length.
        documents: Where each document starts in `sentences`; then the number
            of sentences.
    """

    tokens: np.ndarray
    # Arrays of Python's own: single elements are read faster than NumPy's.
    sentences: "array.array[int]"
    documents: "array.array[int]"

    @property
    def num_documents(self) -> int:
        """Number of documents."""
        return len(self.documents) - 1

    def statistics(self, vocabulary: Vocabulary) -> dict[str, int]:
        """Counts what the documents hold."""
        unknown = self.tokens == vocabulary.unk_id
        return {
            "documents": self.num_documents,
            "sentences": len(self.sentences) - 1,
            "tokens": len(self.tokens),
            "unknown_tokens": int(unknown.sum()),
        }


def build_corpus(lines: Iterable[TokenizedLines]) -> Corpus:
    """Collects documents; lines without a token are left out."""
    tokens = array.array("i")
    sentences, documents = array.array("q", [0]), array.array("q", [0])
    for ids, lengths, ends in lines:
        filled = lengths > 0
        sentence_ends = len(tokens) + np.cumsum(lengths, dtype=np.int64)
        document_ends = len(sentences) - 1 + np.cumsum(filled, dtype=np.int64)
        tokens.frombytes(ids.astype(np.int32).tobytes())
        sentences.frombytes(sentence_ends[filled].tobytes())
        documents.frombytes(document_ends[ends].tobytes())
    # Several blank lines in a row end a document several times.
    unique = np.unique(np.frombuffer(documents, np.int64))
    return Corpus(
        np.frombuffer(tokens, np.int32),
        sentences,
        array.array("q", unique.tobytes()),
    )


# ---- Pairs ------------------------------------------------------------------


class Pair(NamedTuple):
    """Two segments, as ranges of `Corpus.tokens`."""

    first_start: int
    first_end: int
    second_start: int
    second_end: int
    is_random_next: bool


def create_pairs(
    corpus: Corpus, settings: Settings, rng: np.random.Generator
) -> np.ndarray:
    """Cuts every document into pairs, `dupe_factor` times.

    Returns:
        [pairs, 5] int64 with the columns of `Pair`, shuffled.

    Raises:
        ValueError: There are fewer than two documents.
    """
    if corpus.num_documents < 2:
        raise ValueError(
            "The next-sentence task takes half of its second segments from "
            "another document, so the text must hold at least two, separated "
            f"by blank lines. Received: documents={corpus.num_documents}"
        )
    pairs = array.array("q")
    for _ in range(settings.dupe_factor):
        for document in range(corpus.num_documents):
            for pair in pairs_of_document(corpus, document, settings, rng):
                pairs.extend(pair)
    table = np.frombuffer(pairs, np.int64).reshape(-1, len(Pair._fields))
    return rng.permutation(table)


def pairs_of_document(
    corpus: Corpus, document: int, settings: Settings, rng: np.random.Generator
) -> Iterator[Pair]:
    """Cuts one document into pairs."""
    starts = corpus.sentences
    # Padding is wasted computation, so sequences are usually filled up; some
    # are short, since those of fine-tuning are.
    target = settings.max_tokens
    if rng.random() < settings.short_seq_prob:
        target = int(rng.integers(2, settings.max_tokens, endpoint=True))
    first, last = corpus.documents[document : document + 2]
    while first < last:
        # As many sentences as reach the target, the last perhaps beyond it.
        end = bisect.bisect_left(
            starts, starts[first] + target, first + 1, last
        )
        # How many of them make the first segment is left to chance: a cut in
        # the middle would make the next-sentence task too easy.
        cut = first + 1
        if end - first > 1:
            cut = int(rng.integers(first + 1, end))
        is_random_next = end - first == 1 or rng.random() < 0.5
        if is_random_next:
            wanted = target - (starts[cut] - starts[first])
            second = random_segment(corpus, document, wanted, rng)
            # The sentences after the cut are not used: the next pair has them.
            end = cut
        else:
            second = starts[cut], starts[end]
        yield truncate(
            Pair(starts[first], starts[cut], *second, is_random_next),
            settings.max_tokens,
            rng,
        )
        first = end


def random_segment(
    corpus: Corpus, document: int, wanted: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Picks sentences of another document, `wanted` tokens if it has them."""
    other = int(rng.integers(corpus.num_documents - 1))
    other += other >= document
    first, last = corpus.documents[other : other + 2]
    starts = corpus.sentences
    first = int(rng.integers(first, last))
    end = bisect.bisect_left(starts, starts[first] + wanted, first + 1, last)
    return starts[first], starts[end]


def truncate(pair: Pair, max_tokens: int, rng: np.random.Generator) -> Pair:
    """Shortens the longer segment, and then both, until the pair fits."""
    first_start, first_end, second_start, second_end, is_random_next = pair
    first_length = first_end - first_start
    second_length = second_end - second_start
    if first_length + second_length <= max_tokens:
        return pair
    # What taking tokens one by one from the longer segment, or else from the
    # second, ends with.
    second_length = min(
        second_length, max(max_tokens - first_length, max_tokens // 2)
    )
    first_length = min(first_length, max_tokens - second_length)
    return Pair(
        *_shorten(first_start, first_end, first_length, rng),
        *_shorten(second_start, second_end, second_length, rng),
        is_random_next,
    )


def _shorten(
    start: int, end: int, length: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Takes each surplus token from the front or the back, by a coin toss."""
    surplus = end - start - length
    if surplus:
        start += int(rng.binomial(surplus, 0.5))
    return start, start + length


# ---- Masked instances -------------------------------------------------------


def create_instances(
    corpus: Corpus,
    pairs: np.ndarray,
    vocabulary: Vocabulary,
    settings: Settings,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Packs pairs into sequences and masks words.

    Args:
        corpus: What the pairs are ranges of.
        pairs: [B, 5], rows of `create_pairs`.
        vocabulary: Of the corpus.
        settings: Sizes and masking.
        rng: Draws the masks.

    Returns:
        The features of a pre-training record, each [B, S], [B, P] or [B, 1].
    """
    first, first_end, second, second_end, is_random_next = (
        column[:, np.newaxis] for column in pairs.T
    )  # [B, 1]
    place = np.arange(settings.max_seq_length)  # [S]
    # [CLS] first [SEP] second [SEP]
    middle = 1 + first_end - first  # [B, 1]
    end = middle + 1 + second_end - second  # [B, 1]
    in_second = (middle < place) & (place < end)  # [B, S]
    is_text = in_second | ((place > 0) & (place < middle))  # [B, S]
    source = np.where(in_second, second - middle, first) + place - 1
    ids = np.where(
        is_text, corpus.tokens.take(source, mode="clip"), 0
    )  # [B, S]
    ids[:, 0] = vocabulary.cls_id
    ids[(place == middle) | (place == end)] = vocabulary.sep_id

    # The original counts [CLS] and [SEP], too.
    counts = np.rint((end[:, 0] + 1) * settings.masked_lm_prob)
    counts = np.clip(counts, 1, settings.max_predictions_per_seq)  # [B]
    starts = is_text
    if settings.do_whole_word_mask:
        # A segment may begin inside of a word; that is no part of the word
        # before the [SEP] (to the original it is).
        follows_text = np.roll(is_text, 1, axis=1)
        starts = is_text & ~(vocabulary.continues[ids] & follows_text)
    chosen = choose(is_text, starts, counts.astype(np.int64), rng)  # [B, S]
    masked = replace(ids, chosen, vocabulary, rng)  # [B, S]

    # The chosen places first, in order.
    positions = np.argsort(~chosen, axis=1, kind="stable")
    positions = positions[:, : settings.max_predictions_per_seq]  # [B, P]
    is_prediction = np.take_along_axis(chosen, positions, axis=1)
    labels = np.take_along_axis(ids, positions, axis=1)
    return {
        "input_ids": masked,
        "input_mask": (place <= end).astype(np.int32),
        "segment_ids": ((middle < place) & (place <= end)).astype(np.int32),
        "masked_lm_positions": np.where(is_prediction, positions, 0),
        "masked_lm_ids": np.where(is_prediction, labels, 0),
        "masked_lm_weights": is_prediction.astype(np.float32),
        "next_sentence_labels": is_random_next,
    }


def choose(
    is_text: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Chooses words at random until so many tokens are chosen.

    A word that would make them too many is passed over, as in the original.

    Args:
        is_text: [B, S] bool, the tokens that may be chosen.
        starts: [B, S] bool, those that begin a word. All of them: every token
            is chosen by itself.
        counts: [B] int, tokens to choose.
        rng: Orders the words.

    Returns:
        [B, S] bool.
    """
    B, S = is_text.shape
    words = np.maximum(np.cumsum(starts, axis=1) - 1, 0)  # [B, S]
    lengths = np.zeros((B, S), np.int64)  # [B, W]
    rows = np.broadcast_to(np.arange(B)[:, np.newaxis], (B, S))
    np.add.at(lengths, (rows[is_text], words[is_text]), 1)
    order = np.argsort(rng.random((B, S), np.float32), axis=1)  # [B, W]
    shuffled = np.take_along_axis(lengths, order, axis=1)  # [B, W]
    fits = np.zeros((B, S), bool)  # [B, W], in shuffled order
    left = counts.copy()  # [B]
    for rank in range(S):
        fits[:, rank] = shuffled[:, rank] <= left
        left -= np.where(fits[:, rank], shuffled[:, rank], 0)
        if not left.any():
            break
    chosen = np.zeros((B, S), bool)  # [B, W]
    np.put_along_axis(chosen, order, fits, axis=1)
    return is_text & np.take_along_axis(chosen, words, axis=1)


def replace(
    ids: np.ndarray,
    chosen: np.ndarray,
    vocabulary: Vocabulary,
    rng: np.random.Generator,
) -> np.ndarray:
    """Makes 80 % of the chosen tokens [MASK], 10 % random; 10 % stay."""
    draw = rng.random(ids.shape, np.float32)
    anything = rng.integers(vocabulary.size, size=ids.shape, dtype=np.int32)
    masked = np.where(chosen & (draw < 0.8), vocabulary.mask_id, ids)
    return np.where(chosen & (draw >= 0.9), anything, masked)


def statistics(
    instances: Mapping[str, np.ndarray], vocabulary: Vocabulary
) -> collections.Counter[str]:
    """Counts what a batch of instances holds."""
    is_prediction = instances["masked_lm_weights"] > 0
    shown = np.take_along_axis(
        instances["input_ids"], instances["masked_lm_positions"], axis=1
    )[is_prediction]
    labels = instances["masked_lm_ids"][is_prediction]
    real = int(instances["input_mask"].sum())
    return collections.Counter(
        instances=len(instances["input_ids"]),
        random_next=int(instances["next_sentence_labels"].sum()),
        real_tokens=real,
        padding_tokens=instances["input_mask"].size - real,
        predictions=len(labels),
        predictions_masked=int((shown == vocabulary.mask_id).sum()),
        predictions_unchanged=int((shown == labels).sum()),
    )
