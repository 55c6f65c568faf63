"""The base classes of vocabularies and their tokenizers.

Shapes: V tokens of the vocabulary, S sequence length.
"""

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from bert_tf import tokenization
from bert_tf.vocabularies import (
    added_token_search,
    added_tokenizers,
    added_tokens,
    tokenizer_config,
)

import numpy as np


class SpecialToken(NamedTuple):
    """A special token, such as [CLS], and its id."""

    text: str
    id: int


class Spelling(NamedTuple):
    """How a token is written in a text.

    Attributes:
        text: Its text, without the space before it.
        space: Whether a space is before it; None if either is possible.
    """

    text: str
    space: bool | None


@dataclasses.dataclass(frozen=True)
class Special:
    """The special tokens, which represent no text.

    The vector of `cls` represents the sequence; `sep` ends a text; `mask`
    replaces masked words, and its id is -1 if the vocabulary lacks it.
    """

    pad: SpecialToken
    unk: SpecialToken
    cls: SpecialToken
    sep: SpecialToken
    mask: SpecialToken


@dataclasses.dataclass(frozen=True)
class Template:
    """The special tokens around the texts of a sequence, as ids.

    A sequence is `before first after`, or `before first between second after`,
    followed by padding. `between` belongs to the first text, `after` to the
    last.

    Attributes:
        segments: Segment ids of the first text (and of padding) and the second.
        pooled: The position of the token whose vector represents the sequence.
        last_segment: The segment id that other libraries give the last token,
            if it differs from the text's. Our encoders set it themselves.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    segments: tuple[int, int]
    pooled: int
    last_segment: int | None = None

    @classmethod
    def of_bert(cls, special: Special) -> Self:
        """Returns BERT's: `cls first sep`, or `cls first sep second sep`."""
        sep = (special.sep.id,)
        return cls((special.cls.id,), sep, sep, segments=(0, 1), pooled=0)

    @classmethod
    def with_double_separator(cls, special: Special) -> Self:
        """`cls first sep`, or `cls first sep sep second sep`, as RoBERTa's."""
        sep = special.sep.id
        return cls((special.cls.id,), (sep, sep), (sep,), (0, 0), pooled=0)

    def special(self, texts: int) -> int:
        """Returns the number of special tokens around one or two texts."""
        return len(self.before + self.after) + (texts - 1) * len(self.between)

    def ending(self, segment: int) -> list[tuple[int, int]]:
        """Returns `after` with the segment ids of other libraries."""
        numbers = [segment] * len(self.after)
        if self.last_segment is not None:
            numbers[-1] = self.last_segment
        return list(zip(self.after, numbers, strict=True))

    @property
    def separator(self) -> int:
        """The token that ends a text, and separates documents."""
        return self.after[0]

    def second(self, first: int) -> int:
        """Returns the start of the second text after `first` tokens of text."""
        return len(self.before) + first + len(self.between)

    def row(
        self, first: Sequence[int], second: Sequence[int] = ()
    ) -> tuple[list[int], list[int]]:
        """Packs one or two texts: the ids, and the segment id of each."""
        ids = [*self.before, *first]
        if second:
            ids += self.between
        segments = [self.segments[0]] * len(ids)
        last = [*second, *self.after]
        number = self.segments[1 if second else 0]
        return ids + last, segments + [number] * len(last)


class Tokenizer(Protocol):
    """Splits one text, in Python: the reference of all other tokenizers."""

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of a text."""

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the tokens with their character offsets."""

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens."""


class BulkTokenizer(Protocol):
    """Splits many texts at a time, without TensorFlow."""

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns all token ids [N] int32, and the number for each text [T]."""


@dataclasses.dataclass(frozen=True)
class Vocabulary(abc.ABC):
    """Tokens by id, and how texts are split into them.

    `text_graph.make_tokenizer` creates the tokenizer in the graph. Vocabularies
    whose class is a dataclass share it if they are equal: whatever changes how
    texts are split must be a field.
    """

    pieces: tuple[str, ...]
    # Found in a text before it is split. Their positions in `pieces` are their
    # ids.
    added: added_tokens.Tokens = dataclasses.field(default=(), kw_only=True)

    kind: ClassVar[str]
    # Precedes words and sentences if spaces belong to tokens.
    before_words: ClassVar[str] = ""
    # Whether a word has the same tokens everywhere in a text, so that words can
    # be joined.
    has_fixed_words: ClassVar[bool] = False
    # For labelled words: whether punctuation at the ends of white space
    # separated words is a separate word.
    splits_punctuation: ClassVar[bool] = True
    # Whether paragraphs consist of sentences, which end in punctuation.
    has_sentences: ClassVar[bool] = True
    # Whether tokenizers of other libraries may leave out the special tokens.
    may_lack_template: ClassVar[bool] = False
    # Whether two separators are between two texts, as in RoBERTa.
    doubles_separator: ClassVar[bool] = False
    # The module that registers its tokenizers in the graph, for kinds of other
    # packages. It is imported when the first tokenizer is created.
    graph_module: ClassVar[str] = ""
    # Names of the fields that a tokenizer_config.json may set.
    setting_names: ClassVar[tuple[str, ...]] = ()

    @property
    def composes(self) -> bool:
        """Whether texts are normalized to composed characters, as by NFC."""
        return False

    @property
    def tokenizer_kind(self) -> str:
        """The kind whose tokenizers in the graph and in transformers to use."""
        return self.kind

    @property
    def files(self) -> dict[str, bytes]:
        """Files saved next to weights and in SavedModels, name -> content."""
        found = self.own_files
        config = tokenizer_config.to_json(self.added, self.own_settings)
        if config:
            found[tokenizer_config.FILE] = config
        return found

    @functools.cached_property
    def own_pieces(self) -> tuple[str, ...]:
        """The tokens by id that text is split into.

        Tokens that were added after them are found before text is split.
        """
        added = {token.id for token in self.added}
        size = len(self.pieces)
        while size - 1 in added:
            size -= 1
        return self.pieces[:size]

    @property
    def own_settings(self) -> dict[str, Any]:
        """The values of its tokenizer_config.json fields, by name."""
        return {name: getattr(self, name) for name in self.setting_names}

    @property
    @abc.abstractmethod
    def own_files(self) -> dict[str, bytes]:
        """The files of the kind: `files` without tokenizer_config.json."""

    @property
    def settings(self) -> dict[str, bool]:
        """Flags that affect how texts are split, besides the files."""
        return {}

    @property
    @abc.abstractmethod
    def special(self) -> Special:
        """The special tokens, which represent no text."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The special tokens that the vocabulary lacks.

        The default is for kinds that can only lack `mask`.
        """
        mask = self.special.mask
        return (mask.text,) if mask.id < 0 else ()

    @property
    def template(self) -> Template:
        """The special tokens around the texts of a sequence.

        By default BERT's, or RoBERTa's with `doubles_separator`.
        """
        if self.doubles_separator:
            return Template.with_double_separator(self.special)
        return Template.of_bert(self.special)

    @property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a token continues the word before it.

        By default False, for kinds whose tokens do not say it.
        """
        return np.zeros(len(self.pieces), bool)

    @functools.cached_property
    def goes_on(self) -> np.ndarray:
        """[V] bool, like `continues`; added tokens are separate words."""
        found = np.array(self.continues)
        for token in self.added:
            found[token.id] = False
        return found

    @property
    @abc.abstractmethod
    def spellings(self) -> list[Spelling]:
        """How each token is written in a text, [V]."""

    def is_tie(self, first: Sequence[int], second: Sequence[int]) -> bool:
        """Whether two ways to split a text are equally likely.

        Libraries round differently, so they may choose either. The default is
        for kinds with only one way.
        """
        del first, second
        return False

    def check(self, name: str) -> None:
        """Raises InputError if models can't use these tokens or settings.

        Errors begin with `name`. The default does nothing, for kinds whose
        files contain everything and are checked when read.
        """
        del name

    def tokenizer(self) -> Tokenizer:
        """Creates the tokenizer in Python, the reference of the others."""
        plain = self.own_tokenizer()
        if not self.added:
            return plain
        return added_tokenizers.AddedTokenizer(
            plain, self.added, self.added_searches
        )

    def bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        plain = self.own_bulk_tokenizer()
        if not self.added:
            return plain
        return added_tokenizers.AddedBulkTokenizer(plain, self.added_searches)

    @abc.abstractmethod
    def own_tokenizer(self) -> Tokenizer:
        """Creates the tokenizer for text without added tokens."""

    @abc.abstractmethod
    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the bulk tokenizer for text without added tokens."""

    def library_tokenizer(self, library: Any) -> Any:
        """Creates the same tokenizer with the module `tokenizers`.

        Kinds with this method can be written for transformers.
        """
        raise NotImplementedError

    def normalizer(self) -> Callable[[str], str] | None:
        """Returns the normalization of single characters, None without one."""
        return None

    @functools.cached_property
    def added_searches(self) -> tuple[added_token_search.Search, ...]:
        """The searches that find the added tokens in a text, in order."""
        # Both take up to a second, so they are left out if no token needs them.
        is_normalized = any(token.normalized for token in self.added)
        return added_token_search.searches(
            self.added,
            self.normalizer() if is_normalized else None,
            is_normalized and self.composes,
        )

    @functools.cached_property
    def ids(self) -> Mapping[str, int]:
        """Token -> id."""
        return {piece: index for index, piece in enumerate(self.pieces)}

    @property
    def sha256(self) -> str:
        """SHA-256 of the files, which manifests compare."""
        return hashlib.sha256(b"".join(self.files.values())).hexdigest()
