"""Byte-level BPE, the vocabulary of RoBERTa: vocab.json and merges.txt.

Text is split into words by the rule of GPT-2, where a space belongs to the word
after it. The bytes of a word, each written as a visible character, are merged
to longer tokens in the order of merges.txt. Case is kept, and every text can be
encoded.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from bert_tf import extras, tokenization
from bert_tf.errors import InputError
from bert_tf.vocabularies import bulk, byte_pair_files, kinds, vocabulary

import numpy as np
from etils import epath

CLS, PAD, SEP, UNKNOWN, MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
# In the order of their ids in RoBERTa; `MASK` is its last token.
FIRST = (CLS, PAD, SEP, UNKNOWN)
# The files, and the character that tokens have for a space.
FILES = (byte_pair_files.VOCAB, byte_pair_files.MERGES)
SPACE = byte_pair_files.BYTES[ord(" ")]

_SPACES = [0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029]
_SPACES += [0x202F, 0x205F, 0x3000]
# Non-ASCII white space, and surrogate halves, which UTF-8 can't encode.
_UNUSUAL = frozenset(map(chr, [*_SPACES, *range(0xD800, 0xE000)]))
# Matches texts that get a prefix space.
_NO_SPACE = re.compile("[\ud800-\udfff]*[^ \ud800-\udfff]")


def library() -> Any:
    """Imports `tokenizers`; InputError if it is not installed."""
    extras.check("tokenizers", "data", "Vocabularies of byte pairs")
    # Only this kind needs the library.
    import tokenizers

    return tokenizers


def with_space(text: str) -> str:
    """Adds a space before a text, unless it begins with one or is empty."""
    return f" {text}" if _NO_SPACE.match(text) else text


class Tokenizer:
    """Splits texts with the `tokenizers` library.

    With `add_prefix_space`, a text begins like a word inside a text.
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Iterable[tuple],
        add_prefix_space: bool = False,
    ):
        made = library()
        self.vocab = vocab
        self._add_prefix_space = add_prefix_space
        self._tokenizer = made.Tokenizer(made.models.BPE(vocab, list(merges)))
        self._tokenizer.pre_tokenizer = made.pre_tokenizers.ByteLevel(
            add_prefix_space=False
        )
        # Excludes the space before a word from its offsets.
        self._tokenizer.post_processor = made.processors.ByteLevel(
            add_prefix_space=False, trim_offsets=True
        )

    def ids(self, text: str) -> list[int]:
        """Returns the token ids of a text."""
        return self._encode(self._begun(text)).ids

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of a text; invalid bytes are skipped."""
        text = self._begun(tokenization.convert_to_unicode(text))
        return self._encode(text).tokens

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the tokens with their character offsets.

        Spaces at the ends of a token are excluded; a token of spaces only has
        no characters. All tokens of one character have the same offsets.
        """
        given = tokenization.convert_to_unicode(text)
        text = self._begun(given)
        found = self._encode(text)
        # Offsets count surrogate halves, although they are not encoded.
        kept = [i for i, x in enumerate(text) if not "\ud800" <= x <= "\udfff"]
        spans = found.offsets
        if len(kept) < len(text):
            kept.append(len(text))
            spans = [
                (kept[a], kept[b - 1] + 1 if b > a else kept[a])
                for a, b in spans
            ]
        # The prefix space is not a character of the text.
        more = len(text) - len(given)
        return [
            tokenization.Token(piece, max(start - more, 0), max(end - more, 0))
            for piece, (start, end) in zip(found.tokens, spans, strict=True)
        ]

    def _begun(self, text: str) -> str:
        return with_space(text) if self._add_prefix_space else text

    def _encode(self, text: str) -> Any:
        if not text.isascii():
            text = text.encode("utf-8", "ignore").decode()
        return self._tokenizer.encode(text, add_special_tokens=True)

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens; unknown tokens become `<unk>`."""
        unknown = self.vocab[UNKNOWN]
        return [self.vocab.get(token, unknown) for token in tokens]


# Classes of bytes for word splitting.
_END, _OTHER, _LETTER, _NUMBER, _WIDE, _BLANK, _PLAIN = range(7)


class BulkTokenizer(bulk.Words):
    """Splits large amounts of text; `tokenizers` splits each new word once.

    Words are runs of bytes. Text is not split where non-ASCII characters touch
    each other or ASCII, so such a run is a single word here.
    """

    # Never a byte of UTF-8. A newline would be part of the splitting rule.
    _SEPARATOR = b"\xff"

    def __init__(self, byte_pairs: "BytePairs"):
        self._kind = _byte_kinds()
        is_word = self._kind != _END
        super().__init__(is_word, np.zeros(256, bool), same_case=False)
        self._add_prefix_space = byte_pairs.add_prefix_space
        self._reference = Tokenizer(byte_pairs.ids, byte_pairs.merges)

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns all token ids [N] int32, and the number for each text [T]."""
        if self._add_prefix_space:
            texts = list(map(with_space, texts))
        return super().tokenize(texts)

    def _is_whole(self, text: str) -> bool:
        return not text.isascii() and not _UNUSUAL.isdisjoint(text)

    def _find_words(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the starts and ends of words in bytes [B], [W] each."""
        # The last byte is a separator, so the byte before the first is one,
        # too.
        kind = self._kind[data]  # [B]
        before = np.roll(kind, 1)
        blank, was_blank = kind >= _BLANK, before >= _BLANK
        # The last character of white space is separate, or begins the next
        # word.
        starts = blank & ~was_blank
        is_last = ~np.roll(blank, -1) & (np.roll(kind, -1) != _END)
        starts |= blank & is_last
        starts |= ~blank & (before == _BLANK)
        starts |= before == _END
        starts |= _changes(data, kind, before)
        starts &= kind != _END
        ends = np.roll(starts, -1) | (np.roll(kind, -1) == _END)
        ends &= kind != _END
        return np.flatnonzero(starts), np.flatnonzero(ends) + 1


def _changes(
    data: np.ndarray, kind: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """Returns whether each byte starts a run of another ASCII class, [B]."""

    def is_run(kinds: np.ndarray) -> np.ndarray:
        return (kinds >= _OTHER) & (kinds <= _NUMBER)

    found = (kind != before) & is_run(kind) & is_run(before)
    # After an apostrophe outside of runs, letters may belong to it: 's, 're.
    earlier = np.roll(before, 1)
    free = np.roll(data, 1) == ord("'")
    free &= (earlier != _OTHER) & (earlier != _PLAIN)
    return found & ~(free & (kind == _LETTER))


def _byte_kinds() -> np.ndarray:
    kinds = np.full(256, _WIDE, np.int8)
    kinds[0xFF] = _END
    for code in range(128):
        char = chr(code)
        kinds[code] = _OTHER
        if char.isalpha():
            kinds[code] = _LETTER
        elif char.isdigit():
            kinds[code] = _NUMBER
        elif char in "\t\n\v\f\r":
            kinds[code] = _BLANK
    kinds[ord(" ")] = _PLAIN
    return kinds


# ---- The vocabulary ----------------------------------------------------------


def open_files(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads the two files, unchanged."""
    del say
    return byte_pair_files.read(path)


def difference(given: Mapping[str, bytes], brought: Mapping[str, bytes]) -> str:
    """Describes how tokens or merges differ from a checkpoint's, or "".

    Different spellings of the same tokens in JSON are not a difference.
    """
    ours, theirs = (
        byte_pair_files.parse(contents, "The vocabulary")
        for contents in (given, brought)
    )
    found = kinds.of_pieces(ours[0], theirs[0])
    is_other = ours[1] != theirs[1]
    return found or ("its merges are other ones" if is_other else "")


def append(
    contents: Mapping[str, bytes], tokens: Sequence[str]
) -> dict[str, bytes]:
    """Appends tokens to the vocab.json."""
    pieces, merges = byte_pair_files.parse(contents, "The vocabulary")
    both = byte_pair_files.contents([*pieces, *tokens], merges)
    return dict(zip(FILES, both, strict=True))


@dataclasses.dataclass(frozen=True)
class BytePairs(vocabulary.Vocabulary):
    """The tokens of a vocab.json and the pairs of a merges.txt, by rank.

    `contents` are the contents of the two files, by default created from the
    other fields. `add_prefix_space` adds a space before each text, and before
    the text after an added token.
    """

    merges: tuple[tuple[str, str], ...]
    contents: tuple[bytes, bytes] | None = None
    add_prefix_space: bool = dataclasses.field(default=False, kw_only=True)

    setting_names: ClassVar[tuple[str, ...]] = ("add_prefix_space",)
    kind: ClassVar[str] = "byte_pairs"
    before_words: ClassVar[str] = " "
    doubles_separator: ClassVar[bool] = True

    @classmethod
    def parse(cls, contents: Mapping[str, bytes], name: str) -> Self:
        """Parses the two files; raises InputError, prefixed with `name`."""
        pieces, merges = byte_pair_files.parse(contents, name)
        byte_pair_files.check_bytes(pieces, name)
        missing = [piece for piece in (*FIRST, MASK) if piece not in pieces]
        # Without <mask>, texts can be encoded but none of their words masked.
        if missing and missing != [MASK]:
            raise InputError(
                f"{name}: a vocabulary of byte pairs must hold the tokens of "
                f"RoBERTa {', '.join((*FIRST, MASK))}. Learn one by "
                "learn_vocabulary.py --kind=byte_pairs, or give that of a "
                f"RoBERTa. Received: none of {', '.join(missing)}"
            )
        files = (
            contents[byte_pair_files.VOCAB],
            contents[byte_pair_files.MERGES],
        )
        return cls(pieces, merges, files)

    @classmethod
    def of_contents(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Like `parse`; case is kept, whatever `do_lower_case` is."""
        del do_lower_case
        return cls.parse(contents, name)

    @classmethod
    def read(cls, path: epath.PathLike) -> Self:
        """Reads vocab.json and the merges.txt next to it, or a tokenizer.json.

        `path` may be any of these files.
        """
        return cls.parse(byte_pair_files.read(path), str(path))

    @property
    def own_files(self) -> dict[str, bytes]:
        """The vocab.json and the merges.txt."""
        contents = self.contents or byte_pair_files.contents(
            self.pieces, self.merges
        )
        names = (byte_pair_files.VOCAB, byte_pair_files.MERGES)
        return dict(zip(names, contents, strict=True))

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The special tokens, which represent no text."""

        def token(text: str) -> vocabulary.SpecialToken:
            return vocabulary.SpecialToken(text, self.ids[text])

        return vocabulary.Special(
            pad=token(PAD),
            unk=token(UNKNOWN),
            cls=token(CLS),
            sep=token(SEP),
            mask=vocabulary.SpecialToken(MASK, self.ids.get(MASK, -1)),
        )

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a token continues the word before it.

        As in fairseq, words begin with a space, and punctuation after a word
        belongs to it. So the first token of a text looks like one inside a
        word; whole word masking begins a word at the first token anyway.
        """
        begins = (*FIRST, MASK)
        return np.array(
            [not (x.startswith(SPACE) or x in begins) for x in self.pieces]
        )

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """The text of each token; incomplete characters become U+FFFD."""
        by_char = {char: i for i, char in enumerate(byte_pair_files.BYTES)}

        def spelled(piece: str) -> vocabulary.Spelling:
            if piece in (*FIRST, MASK) or not by_char.keys() >= set(piece):
                return vocabulary.Spelling(piece, None)
            rest = piece.removeprefix(SPACE)
            data = bytes(by_char[char] for char in rest)
            text = data.decode("utf-8", "replace")
            return vocabulary.Spelling(text, rest != piece)

        return [spelled(piece) for piece in self.pieces]

    def own_tokenizer(self) -> Tokenizer:
        """Creates the tokenizer that calls `tokenizers`."""
        return Tokenizer(self.ids, self.merges, self.add_prefix_space)

    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return BulkTokenizer(self)
