"""Splits documents into sequences of one or two segments: pure functions.

Shapes: n tokens, s sentences, d documents, r sequences, S sequence length of a
record, P predictions, K sequences of a record.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Self

from bert_tf import options, vocabularies
from bert_tf.errors import InputError
from bert_tf.pretraining_data import segments
from bert_tf.records import masking

import numpy as np

# More than anyone needs: memory or time would not suffice for much larger
# values.
_MAX_LENGTH, _MAX_TIMES, _MAX_WORDS = 1 << 16, 10_000, 100


@dataclasses.dataclass(frozen=True)
class Settings(options.Options):
    """The settings of records; most names are as in the original's flags.

    The default mean of span lengths is 3.8 words.
    """

    max_seq_length: int = options.option(
        128, "Tokens per sequence.", max=_MAX_LENGTH
    )
    max_predictions_per_seq: int = options.option(
        20, "Max number of masked tokens per sequence."
    )
    masked_lm_prob: float = options.option(
        0.15, "Share of the tokens to mask.", min=0, max=1
    )
    short_seq_prob: float = options.option(
        0.1,
        "Share of the documents that are cut into shorter sequences, by "
        "default 0.1. With full_sentences and two_segments it is the share of "
        "the sequences, by default 0 and 0.05.",
        min=0,
        max=1,
    )
    dupe_factor: int = options.option(
        10,
        "Times to use each document, masked differently.",
        min=1,
        max=_MAX_TIMES,
    )
    masking: str = options.option(
        "token",
        "Unit of masking: token (default), whole_word, span (several "
        "consecutive words, as in SpanBERT) or ngram (one to three consecutive "
        "words, as in ALBERT).",
        choices=masking.POLICIES,
    )
    dynamic_masking: bool = options.option(
        False,
        "Leaves masking to run_pretraining.py, which draws new masks each time "
        "it reads a record. Use it with --dupe_factor=1.",
    )
    objective: str = options.option(
        "nsp",
        "nsp (default): does the second segment follow (BERT)? sop: are the "
        "two in order (ALBERT)? two_segments: two segments without a segment "
        "objective (ELECTRA). none: one segment of a document. full_sentences: "
        "sequences that continue in the next document (RoBERTa).",
        choices=tuple(options.OBJECTIVES),
    )
    pack: bool = options.option(
        False,
        "Packs several short sequences into one row, which saves padding.",
    )
    max_sequences_per_row: int = options.option(
        8, "Max number of sequences in a packed row.", min=1, only_with="pack"
    )
    mask_share: float = options.option(
        0.8, "Share of the masked tokens that become [MASK].", min=0, max=1
    )
    random_share: float = options.option(
        0.1,
        "Share of the masked tokens that become a random token; the rest stay "
        "unchanged.",
        min=0,
        max=1,
    )
    span_success: float = options.option(
        0.2,
        "Parameter of the geometric distribution of span lengths.",
        above=0,
        max=1,
    )
    span_max_words: int = options.option(10, "Max span length.", min=1)
    ngram: int = options.option(
        3,
        "Max number of words in an n-gram, by default 3. Implies "
        "--masking=ngram.",
        min=1,
        max=_MAX_WORDS,
    )
    favor_shorter_ngram: bool = options.option(
        True,
        "Draws n-grams of n words with a probability proportional to 1/n. "
        "false reverses the probabilities: the longest n-grams are the most "
        "likely.",
        only_with=("masking=ngram", "ngram"),
        rare=True,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise InputError(
                "`mask_share` and `random_share` are shares of the same "
                "tokens: together 1 at most. Received: "
                f"mask_share={self.mask_share}, "
                f"random_share={self.random_share}"
            )

    def check_room(self, vocabulary: vocabularies.Vocabulary) -> None:
        """Raises InputError if the lengths leave no room for tokens."""
        template = vocabulary.template
        # At least one token for each segment.
        texts = options.OBJECTIVES[self.objective]
        shortest = template.special(texts) + texts
        if self.max_seq_length < shortest:
            raise InputError(
                f"`max_seq_length` must be at least {shortest}. "
                f"Received: max_seq_length={self.max_seq_length}"
            )
        most = self.max_tokens(template)
        if not 1 <= self.max_predictions_per_seq <= most:
            special = vocabulary.special
            raise InputError(
                f"`max_predictions_per_seq` must be from 1 to {most}: a "
                f"sequence of {self.max_seq_length} has no more places beside "
                f"{special.cls.text} and {special.sep.text}. Received: "
                f"max_predictions_per_seq={self.max_predictions_per_seq}"
            )

    def max_tokens(self, template: vocabularies.Template) -> int:
        """Returns the max tokens of a sequence, without special tokens."""
        texts = options.OBJECTIVES[self.objective]
        return self.max_seq_length - template.special(texts)

    @property
    def record_type(self) -> str:
        """The name of the record type in records/record_types.py."""
        return "_".join(
            ["pretraining"]
            + ["packed"] * self.pack
            + ["unmasked"] * self.dynamic_masking
        )


def check_vocabulary(vocabulary: vocabularies.Vocabulary, path: str) -> None:
    """Raises InputError if special tokens that records need are missing."""
    if vocabulary.missing:
        raise InputError(
            f"The vocabulary {path} lacks {vocabulary.missing[0]}, which "
            "pre-training needs: add it as a line, or learn a vocabulary with "
            "learn_vocabulary.py"
        )


def masking_of(
    settings: Settings, vocabulary: vocabularies.Vocabulary
) -> masking.Masking:
    """Returns the settings of masking, whose fields the manifest contains."""
    return masking.Masking(
        policy=settings.masking,
        masked_lm_prob=settings.masked_lm_prob,
        max_predictions_per_seq=settings.max_predictions_per_seq,
        mask_share=settings.mask_share,
        random_share=settings.random_share,
        span_success=settings.span_success,
        span_max_words=settings.span_max_words,
        vocab_size=len(vocabulary.pieces),
        cls_id=vocabulary.special.cls.id,
        sep_id=vocabulary.special.sep.id,
        mask_id=vocabulary.special.mask.id,
        ngram=settings.ngram,
        favor_shorter_ngram=settings.favor_shorter_ngram,
    )


# ---- Documents --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents of sentences, none of them empty.

    `tokens` [n] int32 are the tokens of all documents; `word_starts` [n] bool
    are whether each begins a word. For `sentences` [s + 1] and `documents`
    [d + 1] int64 see `segments.Text`. `keys` [d] uint64 are unique in the
    input.
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def append(self, other: Self) -> "Corpus":
        """Returns the documents of both corpora."""
        sentences = other.sentences[1:] + len(self.tokens)
        documents = other.documents[1:] + self.documents[-1]
        return Corpus(
            np.concatenate([self.tokens, other.tokens]),
            np.concatenate([self.word_starts, other.word_starts]),
            np.concatenate([self.sentences, sentences]),
            np.concatenate([self.documents, documents]),
            np.concatenate([self.keys, other.keys]),
        )

    def separated(self, separator: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns tokens and word starts with a separator between documents."""
        first = self.sentences[self.documents[1:-1]]  # except the first
        word_starts = self.word_starts.copy()
        word_starts[first] = True
        return (
            np.insert(self.tokens, first, separator),
            np.insert(word_starts, first, False),
        )

    @property
    def text(self) -> segments.Text:
        """The input of the functions in `segments`."""
        return segments.Text(self.sentences, self.documents, self.keys)


# ---- Sequences --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Sequences of one or two segments, without special tokens.

    Attributes:
        tokens: [n] int32, the tokens of all sequences; `word_starts` [n] bool.
        starts: [r + 1] int64, the start of each; then the number of tokens.
        middles: [r] int32, the length of the first segment, which may be all.
        labels: [r] int8, 1 if the second segment is from another document (nsp)
            or comes before the first (sop).
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    starts: np.ndarray
    middles: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def lengths(self, template: vocabularies.Template) -> np.ndarray:
        """Returns the lengths with special tokens, [r] int64."""
        tokens = np.diff(self.starts)
        is_pair = self.middles < tokens
        return tokens + template.special(1) + len(template.between) * is_pair

    def own_tokens(self, objective: str) -> int:
        """Counts the tokens without second segments from other documents."""
        if objective == "nsp":
            is_own = self.labels == 0
            second = np.diff(self.starts) - self.middles
            return int(self.middles.sum() + second[is_own].sum())
        return len(self.tokens)

    def take(self, indices: np.ndarray) -> "Sequences":
        """Returns the sequences at `indices`, in this order."""
        lengths = np.diff(self.starts)[indices]
        places, starts = ranges(self.starts[:-1][indices], lengths)
        return Sequences(
            self.tokens[places],
            self.word_starts[places],
            starts,
            self.middles[indices],
            self.labels[indices],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Joins the sequences of one or more parts, in order."""
        lengths = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.word_starts for part in parts]),
            borders(lengths),
            np.concatenate([part.middles for part in parts]),
            np.concatenate([part.labels for part in parts]),
        )


def borders(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Returns the starts of consecutive ranges, and the end of the last."""
    result = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=result[1:])
    return result


def ranges(
    starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers in all ranges, joined, and where each begins."""
    begins = borders(lengths)
    numbers = np.repeat(starts - begins[:-1], lengths)
    numbers += np.arange(len(numbers))
    return numbers, begins


def create_sequences(
    corpus: Corpus,
    partner: Corpus | None,
    settings: Settings,
    template: vocabularies.Template,
    seed: int,
    repetition: int,
) -> Sequences:
    """Splits each document into sequences.

    `partner` has more documents, for second segments. Random choices only
    depend on the seed, the document's key and the repetition. Raises InputError
    for next sentences with a single document.
    """
    most = settings.max_tokens(template)
    how = (most, settings.short_seq_prob, seed, repetition)
    tokens, word_starts = corpus.tokens, corpus.word_starts
    if settings.objective == "nsp":
        both = corpus if partner is None else corpus.append(partner)
        # Zero documents are allowed: part of the text may have no words.
        if len(both) == 1:
            raise InputError(
                "The next-sentence task takes half of its second segments "
                "from another document, so the text must hold at least two. "
                f"Received: documents={len(both)}"
            )
        cuts = segments.next_sentences(corpus.text, both.text, *how)
        tokens, word_starts = both.tokens, both.word_starts
    elif settings.objective == "sop":
        cuts = segments.sentence_order(corpus.text, *how)
    elif settings.objective == "two_segments":
        cuts = two_segments(corpus.text, *how)
    elif settings.objective == "full_sentences":
        cuts = segments.full_sentences(corpus.text, *how)
        tokens, word_starts = corpus.separated(template.separator)
    else:
        cuts = segments.single_segments(corpus.text, *how)
    lengths = cuts.ends - cuts.starts  # [r, 2]
    places, begins = ranges(cuts.starts.ravel(), lengths.ravel())
    return Sequences(
        tokens[places],
        word_starts[places],
        begins[::2].copy(),
        lengths[:, 0].astype(np.int32),
        cuts.labels.astype(np.int8),
    )


# ---- Two segments -----------------------------------------------------------

# Share of the sequences that have one segment, as the texts of some tasks.
_SINGLE = 0.1
# Min tokens of a short sequence.
_SHORTEST = 5


def two_segments(
    text: segments.Text,
    max_tokens: int,
    short_seq_prob: float,
    seed: int,
    repetition: int,
) -> segments.Ranges:
    """Fills sequences with sentences of a document, and cuts in the middle.

    As in build_pretraining_dataset.py of google-research/electra.
    A sequence has as many sentences as reach `max_tokens`, and is cut
    there. A share of `short_seq_prob` has a random shorter length. The first
    segment has the sentences of the first half, and with a probability of one
    half the sentence across the middle; in a tenth of the sequences it has all.
    """
    chances = segments.Chances(text, seed, repetition)
    shortest = min(_SHORTEST, max_tokens)
    sizes = chances.of_sentences(segments.TARGET) * (max_tokens - shortest + 1)
    is_short = chances.of_sentences(segments.IS_SHORT) < short_seq_prob
    targets = np.where(is_short, shortest + sizes.astype(int), max_tokens)
    targets = targets.tolist()  # [s]
    is_single = (chances.of_sentences(segments.CHOICE) < _SINGLE).tolist()
    is_head = (chances.of_sentences(segments.CUT) < 0.5).tolist()
    starts, documents = text.sentences.tolist(), text.documents.tolist()
    found: list[int] = []
    for first, last in itertools.pairwise(documents):
        while first < last:
            target = targets[first]
            end = bisect.bisect_left(
                starts, starts[first] + target, first + 1, last
            )
            middle = end
            if not is_single[first]:
                half = starts[first] + target // 2
                middle = bisect.bisect_left(starts, half, first + 1, end + 1)
                across = middle - 1
                if middle > end:
                    middle = end
                elif across > first and not is_head[across]:
                    middle = across
            found += (starts[first], starts[middle], starts[end])
            first = end
    start, cut, stop = np.array(found, np.int64).reshape(-1, 3).T
    stop = np.minimum(stop, start + max_tokens)
    cut = np.minimum(cut, stop)
    return segments.Ranges(
        np.stack([start, cut], axis=1),
        np.stack([cut, stop], axis=1),
        np.zeros(len(start), bool),
    )
