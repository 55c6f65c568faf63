"""WordPiece, the vocabulary of BERT: vocab.txt and a casing."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Self

from bert_tf import characters, tokenization, vocab_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import bulk, tokenizer_json, vocabulary

import numpy as np
from etils import epath

FILE = "vocab.txt"


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads a file of any name, or the tokens of a tokenizer.json.

    `say` is whether to log changes to the content.
    """
    found = tokenizer_json.read(path)
    if found is not None:
        tokenizer_json.check_word_pieces(found, str(path))
        ids = tokenizer_json.ids_of(found, str(path))
        pieces = sorted(ids, key=lambda piece: ids[piece])
        return {FILE: vocab_files.vocab_text(pieces).encode()}
    return {FILE: vocab_files.read_vocab(path, say).encode()}


def difference(given: Mapping[str, bytes], brought: Mapping[str, bytes]) -> str:
    """Describes how tokens differ from a checkpoint's, or "".

    The user's own words may replace its unused tokens. Lines need not pass
    `WordPiece.parse`.
    """
    ours, theirs = (
        vocab_files.lines(contents[FILE]) for contents in (given, brought)
    )
    if len(ours) != len(theirs):
        return (
            f"it has {len(ours)} tokens, and the checkpoint's has {len(theirs)}"
        )
    for i, (own, their) in enumerate(zip(ours, theirs, strict=True)):
        # No text reaches an empty line, or the first of two equal lines, which
        # users rename as the error of `parse_vocab` suggests.
        is_unused = vocab_files.UNUSED.fullmatch(their) or not their
        if own != their and not is_unused and their not in theirs[i + 1 :]:
            return f"line {i + 1} is {own!r}, and the checkpoint's is {their!r}"
    return ""


def append(
    contents: Mapping[str, bytes], tokens: Sequence[str]
) -> dict[str, bytes]:
    """Appends lines to the file."""
    text = vocab_files.vocab_text([*vocab_files.lines(contents[FILE]), *tokens])
    return {FILE: text.encode()}


@functools.cache
def _normalizer(
    lower: bool, strip: bool, chinese: bool
) -> Callable[[str], str]:
    clean = characters.clean if chinese else characters.clean_only
    return lambda char: characters.normalize(clean(char), lower, strip)


@dataclasses.dataclass(frozen=True)
class WordPiece(vocabulary.Vocabulary):
    """The tokens of a vocab.txt.

    `do_lower_case`, `strip_accents` (None: like `do_lower_case`) and
    `tokenize_chinese_chars` must be the same as in training. `text` is the
    content of the file, by default written from the tokens.
    """

    do_lower_case: bool
    text: str = ""
    strip_accents: bool | None = dataclasses.field(default=None, kw_only=True)
    tokenize_chinese_chars: bool = dataclasses.field(default=True, kw_only=True)

    setting_names: ClassVar[tuple[str, ...]] = (
        "strip_accents",
        "tokenize_chinese_chars",
    )
    kind: ClassVar[str] = "word_pieces"
    has_fixed_words: ClassVar[bool] = True

    @classmethod
    def parse(cls, text: str, do_lower_case: bool, name: str) -> Self:
        """Parses the text of the file `name`; InputError if it is bad."""
        pieces = tuple(vocab_files.parse_vocab(text, name))
        return cls(pieces, do_lower_case, text)

    @classmethod
    def of_contents(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Parses the result of `open_file`."""
        return cls.parse(contents[FILE].decode(), do_lower_case, name)

    @classmethod
    def read(
        cls, path: epath.PathLike, do_lower_case: bool, say: bool = True
    ) -> Self:
        """Reads a file; `say` is whether to log changes to the content."""
        text = vocab_files.read_vocab(path, say)
        return cls.parse(text, do_lower_case, str(path))

    @property
    def own_files(self) -> dict[str, bytes]:
        """The vocab.txt."""
        text = self.text or vocab_files.vocab_text(self.pieces)
        return {FILE: text.encode()}

    @property
    def settings(self) -> dict[str, bool]:
        """The casing."""
        return {"do_lower_case": self.do_lower_case}

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The special tokens; InputError if one is missing."""
        return vocabulary.Special(
            # The original pads with 0, whatever token that is.
            pad=vocabulary.SpecialToken(vocab_files.PAD, 0),
            unk=self._needed(vocab_files.UNKNOWN),
            cls=self._needed(vocab_files.CLS),
            sep=self._needed(vocab_files.SEP),
            mask=vocabulary.SpecialToken(
                vocab_files.MASK, self.ids.get(vocab_files.MASK, -1)
            ),
        )

    def _needed(self, piece: str) -> vocabulary.SpecialToken:
        if piece not in self.ids:
            raise InputError(
                f"The vocabulary must hold the token {piece!r}. Received: "
                f"{len(self.pieces)} tokens, the first {list(self.pieces[:3])}"
            )
        return vocabulary.SpecialToken(piece, self.ids[piece])

    @property
    def missing(self) -> tuple[str, ...]:
        """`[CLS]`, `[SEP]` or `[MASK]`, if the vocabulary lacks them."""
        pieces = (vocab_files.CLS, vocab_files.SEP, vocab_files.MASK)
        return tuple(piece for piece in pieces if piece not in self.ids)

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a token begins with `##`."""
        mark = vocab_files.SUFFIX_INDICATOR
        return np.array([piece.startswith(mark) for piece in self.pieces])

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """Without the `##` of tokens that continue the word before them."""
        mark = vocab_files.SUFFIX_INDICATOR
        return [
            vocabulary.Spelling(piece.removeprefix(mark), False)
            if piece.startswith(mark) and piece != mark
            else vocabulary.Spelling(piece, None)
            for piece in self.pieces
        ]

    def check(self, name: str) -> None:
        """Checks that `[CLS]` and `[SEP]` exist, and that the casing fits."""
        missing = sorted({vocab_files.CLS, vocab_files.SEP} - set(self.ids))
        if missing:
            raise InputError(
                f"{name} lacks the token {missing[0]!r}, which the model adds "
                "to every text. Give the vocabulary that the model was "
                "trained with, or one that extends it."
            )
        vocab_files.check_casing(
            self.own_pieces, self.do_lower_case, name, self.strip_accents
        )

    def own_tokenizer(self) -> tokenization.FullTokenizer:
        """Creates the original's tokenizer."""
        return tokenization.FullTokenizer.from_vocab(
            self._own_ids, self.do_lower_case, **self.own_settings
        )

    def own_bulk_tokenizer(self) -> bulk.BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return bulk.BulkTokenizer(
            self._own_ids, self.do_lower_case, **self.own_settings
        )

    @property
    def _own_ids(self) -> dict[str, int]:
        return {piece: i for i, piece in enumerate(self.own_pieces)}

    def normalizer(self) -> Callable[[str], str]:
        """Returns the normalization of single characters, same as for texts."""
        strips = characters.strips_accents(
            self.do_lower_case, self.strip_accents
        )
        return _normalizer(
            self.do_lower_case, strips, self.tokenize_chinese_chars
        )
