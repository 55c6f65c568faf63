"""Symbols separated by white space, as a vocabulary: symbols.txt.

For sequences that are not language: codes of visits, visual words, op codes.
Nothing is normalized or split; an unknown symbol becomes `[UNK]`. Sequences
have BERT's template with its special tokens, which no text maps to.

White space is Python's: symbols are the result of `text.split()`.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from bert_tf import tokenization, vocab_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import bulk, kinds, tokenizer_json, vocabulary

import numpy as np
from etils import epath

FILE = "symbols.txt"
# In the order of their ids in learned vocabularies.
SPECIAL = vocab_files.SPECIAL_TOKENS

_SYMBOL = re.compile(r"\S+")
# White space in Rust, where `\s` has four characters fewer than in Python.
SPACES = r"[\s\x1c-\x1f]+"
# Pre-tokenizers that a tokenizer.json may have.
_WHITE_SPACE = (
    {"type": "WhitespaceSplit"},
    {
        "type": "Split",
        "pattern": {"Regex": SPACES},
        "behavior": "Removed",
        "invert": False,
    },
)


# ---- The file ----------------------------------------------------------------


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads a file of any name, or the symbols of a tokenizer.json.

    `say` is whether to log changes to the content.
    """
    found = tokenizer_json.read(path)
    if found is not None:
        return {FILE: _of_tokenizer(found, str(path)).encode()}
    text = vocab_files.read_vocab(path, say)
    if text and not text.endswith("\n"):
        text += "\n"
    return {FILE: text.encode()}


def _of_tokenizer(found: Mapping[str, Any], name: str) -> str:
    """Returns the symbols of the tokenizer.json `name`, a line each."""
    for field, steps, allowed in (
        ("normalizer", tokenizer_json.normalizers(found), ([],)),
        (
            "pre_tokenizer",
            tokenizer_json.pre_tokenizers(found),
            [[step] for step in _WHITE_SPACE],
        ),
        ("model.unk_token", found["model"].get("unk_token"), SPECIAL[1:2]),
    ):
        if steps not in allowed:
            raise tokenizer_json.otherwise(
                name, "a model of symbols", field, steps
            )
    ids = tokenizer_json.ids_of(found, name)
    return "".join(f"{piece}\n" for piece in sorted(ids, key=lambda x: ids[x]))


def difference(given: Mapping[str, bytes], brought: Mapping[str, bytes]) -> str:
    """Describes how symbols differ from a checkpoint's, or ""."""
    return kinds.of_pieces(
        *(vocab_files.lines(x[FILE]) for x in (given, brought))
    )


def append(
    contents: Mapping[str, bytes], tokens: Sequence[str]
) -> dict[str, bytes]:
    """Appends lines to the file."""
    lines = [*vocab_files.lines(contents[FILE]), *tokens]
    return {FILE: "".join(f"{line}\n" for line in lines).encode()}


def _check(lines: list[str], name: str) -> None:
    """Raises InputError if a line is not a symbol, or is a duplicate."""
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if line.split() != [line]:
            raise InputError(
                f"{name}, line {number}: a line of a vocabulary of symbols "
                "must be one symbol, without white space: that separates "
                f"symbols in texts. Received: line={line!r}"
            )
        if line in seen:
            raise InputError(
                f"{name}, line {number}: this symbol is already on line "
                f"{seen[line]}. Give one of them a name that no text has. "
                f"Received: line={line!r}"
            )
        seen[line] = number
    missing = [x for x in SPECIAL if x not in seen and x != vocab_files.MASK]
    if missing:
        raise InputError(
            f"{name}: a vocabulary of symbols must hold the special tokens of "
            f"BERT, {', '.join(SPECIAL)}. Learn one by learn_vocabulary.py "
            "--kind=symbols, or write them on the first lines. Received: "
            f"{len(lines)} lines, none of them {', '.join(missing)}"
        )


# ---- Tokenizers --------------------------------------------------------------


class Tokenizer:
    """Splits texts at white space: the reference of other tokenizers."""

    def __init__(self, symbols: "Symbols"):
        self.vocab = symbols.ids
        self._known = symbols.known
        self._unknown = symbols.special.unk

    def ids(self, text: str) -> list[int]:
        """Returns the ids of the symbols of a text."""
        known, unknown = self._known, self._unknown.id
        return [known.get(symbol, unknown) for symbol in text.split()]

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the symbols; unknown ones become `[UNK]`."""
        text = tokenization.convert_to_unicode(text)
        return [self._piece(symbol) for symbol in text.split()]

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the symbols with their character offsets."""
        text = tokenization.convert_to_unicode(text)
        return [
            tokenization.Token(self._piece(found.group()), *found.span())
            for found in _SYMBOL.finditer(text)
        ]

    def _piece(self, symbol: str) -> str:
        return symbol if symbol in self._known else self._unknown.text

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of symbols; unknown symbols become `[UNK]`."""
        return [self.vocab.get(x, self._unknown.id) for x in tokens]


class BulkTokenizer(bulk.Words):
    """Splits large amounts of text; Python splits each new run of bytes once.

    Runs end at ASCII white space. Python's other white space is handled when it
    splits runs with non-ASCII or control characters.
    """

    def __init__(self, symbols: "Symbols"):
        is_word = np.ones(256, bool)
        is_word[[ord(char) for char in " \t\n\r\v\f"]] = False
        super().__init__(is_word, np.zeros(256, bool), same_case=False)
        self._reference = symbols.own_tokenizer()


# ---- The vocabulary ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Symbols(vocabulary.Vocabulary):
    """The symbols of a symbols.txt by id, one per line."""

    kind: ClassVar[str] = "symbols"
    splits_punctuation: ClassVar[bool] = False
    has_sentences: ClassVar[bool] = False

    @classmethod
    def parse(cls, contents: Mapping[str, bytes], name: str) -> Self:
        """Parses the file; raises InputError, prefixed with `name`."""
        lines = vocab_files.lines(contents[FILE])
        _check(lines, name)
        return cls(tuple(lines))

    @classmethod
    def of_contents(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Like `parse`; symbols are kept as they are, whatever the casing."""
        del do_lower_case
        return cls.parse(contents, name)

    @property
    def own_files(self) -> dict[str, bytes]:
        """The symbols.txt."""
        return {FILE: "".join(f"{piece}\n" for piece in self.pieces).encode()}

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """BERT's special tokens, which represent no text."""
        pad, unk, cls, sep, mask = (
            vocabulary.SpecialToken(piece, self.ids.get(piece, -1))
            for piece in SPECIAL
        )
        return vocabulary.Special(pad, unk, cls, sep, mask)

    @functools.cached_property
    def known(self) -> Mapping[str, int]:
        """Symbol -> id, without special tokens, which no text maps to."""
        return {x: i for x, i in self.ids.items() if x not in SPECIAL}

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """The symbols, with a space before each."""
        return [vocabulary.Spelling(piece, True) for piece in self.pieces]

    def own_tokenizer(self) -> Tokenizer:
        """Creates the tokenizer that uses `str.split`."""
        return Tokenizer(self)

    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return BulkTokenizer(self)

    def library_tokenizer(self, library: Any) -> Any:
        """Creates the same tokenizer with the module `tokenizers`."""
        model = library.models.WordLevel(dict(self.ids), self.special.unk.text)
        tokenizer = library.Tokenizer(model)
        tokenizer.pre_tokenizer = library.pre_tokenizers.Split(
            library.Regex(SPACES), "removed"
        )
        return tokenizer
