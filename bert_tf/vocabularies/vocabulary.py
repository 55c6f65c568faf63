"""What makes ids of text: the parts that every kind of vocabulary has.

Shapes: V pieces of the vocabulary, S pieces of a row.
"""

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from bert_tf import tokenization
from bert_tf.vocabularies import added_tokens, tokenizer_config

import numpy as np


class Piece(NamedTuple):
    """A piece and its id."""

    text: str
    id: int


class Spelling(NamedTuple):
    """How a piece is written in a text.

    Attributes:
        text: What it writes, without the space before it.
        space: Whether a space is before it; None where that is left to the
            text.
    """

    text: str
    space: bool | None


@dataclasses.dataclass(frozen=True)
class Special:
    """The pieces that stand for no text.

    The vector of `cls` stands for the row; `sep` ends a text; `mask` hides a
    word, and its id is -1 where the vocabulary lacks it.
    """

    pad: Piece
    unk: Piece
    cls: Piece
    sep: Piece
    mask: Piece


@dataclasses.dataclass(frozen=True)
class Template:
    """What stands around the texts of a row, as ids.

    A row is `before first after`, or `before first between second after`, and
    then padding. `between` belongs to the first text, `after` to the last.

    Attributes:
        segments: Numbers of the first text, also for padding, and the second.
        pooled: The place of the piece whose vector stands for the row.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    segments: tuple[int, int]
    pooled: int

    @classmethod
    def of_bert(cls, special: Special) -> Self:
        """BERT's: `cls first sep`, or `cls first sep second sep`."""
        sep = (special.sep.id,)
        return cls((special.cls.id,), sep, sep, segments=(0, 1), pooled=0)

    def special(self, texts: int) -> int:
        """How many pieces stand around so many texts, one or two."""
        return len(self.before + self.after) + (texts - 1) * len(self.between)

    @property
    def separator(self) -> int:
        """The piece that ends a text, and stands between documents."""
        return self.after[0]

    def second(self, first: int) -> int:
        """Where the second text begins, after a first of so many pieces."""
        return len(self.before) + first + len(self.between)

    def row(
        self, first: Sequence[int], second: Sequence[int] = ()
    ) -> tuple[list[int], list[int]]:
        """Lays out one text, or two: the ids, and each one's segment number."""
        ids = [*self.before, *first]
        if second:
            ids += self.between
        segments = [self.segments[0]] * len(ids)
        last = [*second, *self.after]
        number = self.segments[1 if second else 0]
        return ids + last, segments + [number] * len(last)


class Tokenizer(Protocol):
    """Splits one text, in Python: what all other tokenizers must agree with."""

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the pieces."""

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the pieces and the characters they come from."""

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of pieces."""


class BulkTokenizer(Protocol):
    """Splits many texts at a time, without TensorFlow."""

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all pieces [N] int32, and how many by text [T]."""


@dataclasses.dataclass(frozen=True)
class Vocabulary(abc.ABC):
    """Pieces by id, and how texts are split into them.

    `text.graph.of` makes the tokenizer in the graph, by the `kind`.
    """

    pieces: tuple[str, ...]
    # Found in a text before it is split; they have their places in `pieces`.
    added: added_tokens.Tokens = dataclasses.field(default=(), kw_only=True)

    kind: ClassVar[str]
    # What stands before a word or a sentence where spaces belong to pieces.
    before_words: ClassVar[str] = ""
    # Whether a word has the same pieces wherever it stands in a text, and words
    # may be joined.
    has_fixed_words: ClassVar[bool] = False
    # Whether punctuation at the ends of what white space separates is a word of
    # its own, where words of a text have labels.
    splits_punctuation: ClassVar[bool] = True
    # Whether paragraphs are of sentences, which punctuation ends.
    has_sentences: ClassVar[bool] = True
    # Its fields that a tokenizer_config.json sets.
    setting_names: ClassVar[tuple[str, ...]] = ()

    @property
    def files(self) -> dict[str, bytes]:
        """Name -> content of what is kept beside weights and in SavedModels."""
        found = self.own_files
        config = tokenizer_config.to_json(self.added, self.own_settings)
        if config:
            found[tokenizer_config.FILE] = config
        return found

    @property
    def own_settings(self) -> dict[str, Any]:
        """The fields of a tokenizer_config.json that it has, by name."""
        return {name: getattr(self, name) for name in self.setting_names}

    @property
    @abc.abstractmethod
    def own_files(self) -> dict[str, bytes]:
        """The files of its kind: `files` without tokenizer_config.json."""

    @property
    @abc.abstractmethod
    def settings(self) -> dict[str, bool]:
        """What beside the files decides how texts are split, by flag."""

    @property
    @abc.abstractmethod
    def special(self) -> Special:
        """The pieces that stand for no text."""

    @property
    @abc.abstractmethod
    def missing(self) -> tuple[str, ...]:
        """Those of the special pieces that it lacks."""

    @property
    @abc.abstractmethod
    def template(self) -> Template:
        """What stands around the texts of a row."""

    @property
    @abc.abstractmethod
    def continues(self) -> np.ndarray:
        """[V] bool, whether a piece goes on with the word before it."""

    @functools.cached_property
    def goes_on(self) -> np.ndarray:
        """[V] bool, as `continues`; added tokens are words by themselves."""
        found = np.array(self.continues)
        for token in self.added:
            found[token.id] = False
        return found

    @property
    @abc.abstractmethod
    def spellings(self) -> list[Spelling]:
        """How each piece is written in a text, [V]."""

    def check(self, name: str) -> None:
        """Raises InputError if no model can read with these pieces.

        Or if the settings contradict them. Errors begin with `name`. There is
        nothing to add for a kind whose files say all and are checked when read.
        """
        del name

    def tokenizer(self) -> Tokenizer:
        """Makes the tokenizer in Python, the reference of the others."""
        plain = self.own_tokenizer()
        if not self.added:
            return plain
        return added_tokens.AddedTokenizer(
            plain, self.added, self.added_patterns
        )

    def bulk_tokenizer(self) -> BulkTokenizer:
        """Makes the tokenizer of much text."""
        plain = self.own_bulk_tokenizer()
        if not self.added:
            return plain
        return added_tokens.AddedBulkTokenizer(plain, self.added_patterns)

    @abc.abstractmethod
    def own_tokenizer(self) -> Tokenizer:
        """Makes the tokenizer of text without added tokens."""

    @abc.abstractmethod
    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Makes the tokenizer of much text without added tokens."""

    def normalizer(self) -> Callable[[str], str] | None:
        """Returns what changes single characters; None if nothing does."""
        return None

    @functools.cached_property
    def added_patterns(self) -> added_tokens.Found:
        """How the added tokens are found in a text."""
        return added_tokens.patterns(self.added, self.normalizer())

    @functools.cached_property
    def ids(self) -> Mapping[str, int]:
        """Piece -> id."""
        return {piece: index for index, piece in enumerate(self.pieces)}

    @property
    def sha256(self) -> str:
        """SHA-256 of the files, by which manifests tell vocabularies apart."""
        return hashlib.sha256(b"".join(self.files.values())).hexdigest()
