"""Documents -> sequences of one or two segments: pure functions.

Shapes: n tokens, s sentences, d documents, r sequences, S sequence length of a
record, P predictions, K sequences of a record.
"""

import dataclasses
from collections.abc import Sequence
from typing import Self

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.pretraining_data import segments
from bert_tf.records import masking

import numpy as np

# Objective -> how many segments a sequence has.
_SEGMENTS = {"nsp": 2, "sop": 2, "none": 1, "full_sentences": 1}
OBJECTIVES = tuple(_SEGMENTS)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How records are made; most names are those of the original's flags.

    Attributes:
        masked_lm_prob: Share of the tokens to predict.
        short_seq_prob: Share of the documents that make shorter sequences; of
            full_sentences the share of the sequences.
        dupe_factor: Times to use each document.
        masking: A policy of masking.py: token, whole_word, span or ngram.
        dynamic_masking: Whether the reader masks, each time anew.
        objective: What is learnt of two segments: nsp (the second follows or is
            of another document), sop (they are swapped or not); or nothing, of
            one segment: none (it ends with the document), full_sentences (it
            goes on in the next document, after a separator).
        pack: Whether to put several sequences into one record.
        max_sequences_per_row: K, of packed records.
        mask_share: Share of the chosen tokens that become [MASK].
        random_share: Share that become a random piece. The rest stay.
        span_success: Of the geometric distribution of span lengths.
        span_max_words: Where the distribution is cut off; 10 and 0.2 give a
            mean of 3.8 words.
        ngram: The most words of an n-gram.
        favor_shorter_ngram: Whether short n-grams are the likelier ones.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    masking: str = "token"
    dynamic_masking: bool = False
    objective: str = "nsp"
    pack: bool = False
    max_sequences_per_row: int = 8
    mask_share: float = 0.8
    random_share: float = 0.1
    span_success: float = 0.2
    span_max_words: int = 10
    ngram: int = 3
    favor_shorter_ngram: bool = True

    def __post_init__(self):
        self._check_choices()
        self._check_numbers()
        for name in (
            "masked_lm_prob",
            "short_seq_prob",
            "mask_share",
            "random_share",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"`{name}` must be from 0 to 1. "
                    f"Received: {name}={getattr(self, name)}"
                )
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise InputError(
                "`mask_share` and `random_share` are shares of the same "
                "tokens: together 1 at most. Received: "
                f"mask_share={self.mask_share}, "
                f"random_share={self.random_share}"
            )
        if not 0 < self.span_success <= 1:
            raise InputError(
                "`span_success` must be above 0 and at most 1. "
                f"Received: span_success={self.span_success}"
            )

    def _check_choices(self) -> None:
        for name, known in (
            ("masking", masking.POLICIES),
            ("objective", OBJECTIVES),
        ):
            if getattr(self, name) not in known:
                raise InputError(
                    f"`{name}` must be one of {', '.join(known)}. "
                    f"Received: {name}={getattr(self, name)!r}"
                )

    def _check_numbers(self) -> None:
        for name in (
            "dupe_factor",
            "max_sequences_per_row",
            "span_max_words",
            "ngram",
        ):
            if getattr(self, name) < 1:
                raise InputError(
                    f"`{name}` must be at least 1. "
                    f"Received: {name}={getattr(self, name)}"
                )

    def check_room(self, vocabulary: vocabularies.Vocabulary) -> None:
        """Raises InputError unless a row has room for what is to be in it."""
        template = vocabulary.template
        # At least one token of each segment.
        texts = _SEGMENTS[self.objective]
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
        """Tokens of a sequence without those of the template."""
        texts = _SEGMENTS[self.objective]
        return self.max_seq_length - template.special(texts)

    @property
    def record_type(self) -> str:
        """The name of the records' type in records/types.py."""
        return "_".join(
            ["pretraining"]
            + ["packed"] * self.pack
            + ["unmasked"] * self.dynamic_masking
        )


def check_vocabulary(vocabulary: vocabularies.Vocabulary, path: str) -> None:
    """Raises InputError unless the pieces are there that records need."""
    if vocabulary.missing:
        raise InputError(
            f"The vocabulary {path} lacks {vocabulary.missing[0]}, which "
            "pre-training needs: add it as a line, or learn a vocabulary with "
            "learn_vocabulary.py"
        )


def masking_of(
    settings: Settings, vocabulary: vocabularies.Vocabulary
) -> masking.Masking:
    """Returns what masking needs; the manifest holds its fields."""
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
    """Documents of sentences, none empty.

    `tokens` [n] int32 are of all documents; `word_starts` [n] bool says which
    begin a word. `sentences` [s + 1] and `documents` [d + 1] int64 are as in
    `segments.Text`, and `keys` [d] uint64 differ in all documents of the input.
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def append(self, other: Self) -> "Corpus":
        """Returns the documents of both."""
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
        """Returns tokens and word starts with a token between documents."""
        first = self.sentences[self.documents[1:-1]]  # of all but the first
        word_starts = self.word_starts.copy()
        word_starts[first] = True
        return (
            np.insert(self.tokens, first, separator),
            np.insert(word_starts, first, False),
        )

    @property
    def text(self) -> segments.Text:
        """What cutting needs to know."""
        return segments.Text(self.sentences, self.documents, self.keys)


# ---- Sequences --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Sequences of one or two segments, without what stands around them.

    Attributes:
        tokens: [n] int32, of all sequences; `word_starts` [n] bool.
        starts: [r + 1] int64, where each starts; then the tokens' number.
        middles: [r] int32, tokens of the first segment, perhaps of all.
        labels: [r] int8, 1 where the second segment is of another document
            (nsp) or comes before the first (sop).
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    starts: np.ndarray
    middles: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def lengths(self, template: vocabularies.Template) -> np.ndarray:
        """Tokens of each with those of the template, [r] int64."""
        tokens = np.diff(self.starts)
        is_pair = self.middles < tokens
        return tokens + template.special(1) + len(template.between) * is_pair

    def own_tokens(self, objective: str) -> int:
        """Counts the tokens without second segments of other documents."""
        if objective == "nsp":
            is_own = self.labels == 0
            second = np.diff(self.starts) - self.middles
            return int(self.middles.sum() + second[is_own].sum())
        return len(self.tokens)

    def take(self, indices: np.ndarray) -> "Sequences":
        """Returns some, in the order of `indices`."""
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
        """Returns the sequences of all parts, one at least, in order."""
        lengths = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.word_starts for part in parts]),
            borders(lengths),
            np.concatenate([part.middles for part in parts]),
            np.concatenate([part.labels for part in parts]),
        )


def borders(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of some ranges starts, and at last where all end."""
    result = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=result[1:])
    return result


def ranges(
    starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers of all ranges in a row, and where each begins."""
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
    """Cuts each document into sequences.

    `partner` has more documents, for second segments. Chance depends on the
    seed, the document's key and the repetition alone. A single document for
    next sentences is an InputError.
    """
    most = settings.max_tokens(template)
    how = (most, settings.short_seq_prob, seed, repetition)
    tokens, word_starts = corpus.tokens, corpus.word_starts
    if settings.objective == "nsp":
        both = corpus if partner is None else corpus.append(partner)
        # Of none nothing is made: a part of the text may be without words.
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
