"""Byte pairs, the vocabulary of RoBERTa: vocab.json and merges.txt.

A text is cut into words by the rule of GPT-2, where a space belongs to the word
after it. The bytes of a word, each written as a visible character, are joined
to longer pieces in the order of merges.txt. Case stays, and there is no text
that can't be written.
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
# In the order of their ids in RoBERTa; `MASK` is its last piece.
FIRST = (CLS, PAD, SEP, UNKNOWN)
# How a piece writes the space before a word.
FILES = (byte_pair_files.VOCAB, byte_pair_files.MERGES)
SPACE = byte_pair_files.BYTES[ord(" ")]

_SPACES = [0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029]
_SPACES += [0x202F, 0x205F, 0x3000]
# White space beyond ASCII, and halves of surrogate pairs, which have no UTF-8.
_UNUSUAL = frozenset(map(chr, [*_SPACES, *range(0xD800, 0xE000)]))
# What gets a space before it, if any text does.
_NO_SPACE = re.compile("[\ud800-\udfff]*[^ \ud800-\udfff]")


def library() -> Any:
    """Imports `tokenizers`; InputError if it is not installed."""
    extras.check("tokenizers", "data", "Vocabularies of byte pairs")
    # Only byte pairs need it here.
    import tokenizers

    return tokenizers


def with_space(text: str) -> str:
    """Puts a space before a text, unless it begins with one or is empty."""
    return f" {text}" if _NO_SPACE.match(text) else text


class Tokenizer:
    """Splits texts by the library `tokenizers`.

    With `add_prefix_space` a text begins as one inside a text does.
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
        # Leaves the space before a word out of its offsets.
        self._tokenizer.post_processor = made.processors.ByteLevel(
            add_prefix_space=False, trim_offsets=True
        )

    def ids(self, text: str) -> list[int]:
        """Returns the ids of the pieces of a text."""
        return self._encode(self._begun(text)).ids

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the pieces of a text; invalid bytes are left out."""
        text = self._begun(tokenization.convert_to_unicode(text))
        return self._encode(text).tokens

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the pieces and the characters they come from.

        Spaces at the ends of a piece are left out: one of spaces alone has no
        characters. The pieces of a character share its offsets.
        """
        given = tokenization.convert_to_unicode(text)
        text = self._begun(given)
        found = self._encode(text)
        # Where halves of surrogate pairs are left out, they still count.
        kept = [i for i, x in enumerate(text) if not "\ud800" <= x <= "\udfff"]
        spans = found.offsets
        if len(kept) < len(text):
            kept.append(len(text))
            spans = [
                (kept[a], kept[b - 1] + 1 if b > a else kept[a])
                for a, b in spans
            ]
        # A space that was put before the text is none of its characters.
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
        """Returns the ids of pieces; what is no piece is `<unk>`."""
        unknown = self.vocab[UNKNOWN]
        return [self.vocab.get(token, unknown) for token in tokens]


# What a byte is to the rule of words.
_END, _OTHER, _LETTER, _NUMBER, _WIDE, _BLANK, _PLAIN = range(7)


class BulkTokenizer(bulk.Words):
    """Splits much text: each word that is new by `tokenizers`, once.

    Words are found as runs of bytes. Where characters beyond ASCII touch each
    other or ASCII, nothing is cut: such a run is one word here.
    """

    # No text in UTF-8 has this byte. A line end would be part of the rule.
    _SEPARATOR = b"\xff"

    def __init__(self, byte_pairs: "BytePairs"):
        self._kind = _byte_kinds()
        is_word = self._kind != _END
        super().__init__(is_word, np.zeros(256, bool), same_case=False)
        self._add_prefix_space = byte_pairs.add_prefix_space
        self._reference = Tokenizer(byte_pairs.ids, byte_pairs.merges)

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all tokens [N] int32, and how many by text [T]."""
        if self._add_prefix_space:
            texts = list(map(with_space, texts))
        return super().tokenize(texts)

    def _ids(self, text: str) -> list[int]:
        return self._reference.ids(text)

    def _is_whole(self, text: str) -> bool:
        return not text.isascii() and not _UNUSUAL.isdisjoint(text)

    def _find_words(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns where words start and end, [W] each, in bytes [B]."""
        # The last byte is a separator, and so what is before the first.
        kind = self._kind[data]  # [B]
        before = np.roll(kind, 1)
        blank, was_blank = kind >= _BLANK, before >= _BLANK
        # Of white space, the last stands apart, or begins the next word.
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
    """Says where a run of ASCII of one kind follows one of another, [B]."""

    def is_run(kinds: np.ndarray) -> np.ndarray:
        return (kinds >= _OTHER) & (kinds <= _NUMBER)

    found = (kind != before) & is_run(kind) & is_run(before)
    # After an apostrophe that no run holds, letters may belong to it: 's, 're.
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
    """Reads the two files; nothing is changed in them."""
    del say
    return byte_pair_files.read(path)


def difference(given: Mapping[str, bytes], brought: Mapping[str, bytes]) -> str:
    """Says how pieces or merges are not a checkpoint's; "" if they are.

    Files may write the same pieces in other words.
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
    """Adds to the vocab.json."""
    pieces, merges = byte_pair_files.parse(contents, "The vocabulary")
    both = byte_pair_files.contents([*pieces, *tokens], merges)
    return dict(zip(FILES, both, strict=True))


@dataclasses.dataclass(frozen=True)
class BytePairs(vocabulary.Vocabulary):
    """The pieces of a vocab.json and the pairs of a merges.txt, by rank.

    `contents` are those of the two files, by default made of the others.
    `add_prefix_space` puts a space before each text, and before what follows an
    added token.
    """

    merges: tuple[tuple[str, str], ...]
    contents: tuple[bytes, bytes] | None = None
    add_prefix_space: bool = dataclasses.field(default=False, kw_only=True)

    setting_names: ClassVar[tuple[str, ...]] = ("add_prefix_space",)
    kind: ClassVar[str] = "byte_pairs"
    before_words: ClassVar[str] = " "

    @classmethod
    def parse(cls, contents: Mapping[str, bytes], name: str) -> Self:
        """Reads the two files; InputError that begins with `name` if bad."""
        pieces, merges = byte_pair_files.parse(contents, name)
        missing = [piece for piece in (*FIRST, MASK) if piece not in pieces]
        # Without it texts have ids, but none of their words can be hidden.
        if missing and missing != [MASK]:
            raise InputError(
                f"{name}: a vocabulary of byte pairs must hold the pieces of "
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
        """As `parse`; case stays as it is, whatever `do_lower_case` says."""
        del do_lower_case
        return cls.parse(contents, name)

    @classmethod
    def read(cls, path: epath.PathLike) -> Self:
        """Reads a vocab.json and the merges.txt beside it; or tokenizer.json.

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

    @property
    def settings(self) -> dict[str, bool]:
        """None: the files say all."""
        return {}

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The pieces that stand for no text."""

        def piece(text: str) -> vocabulary.Piece:
            return vocabulary.Piece(text, self.ids[text])

        return vocabulary.Special(
            pad=piece(PAD),
            unk=piece(UNKNOWN),
            cls=piece(CLS),
            sep=piece(SEP),
            mask=vocabulary.Piece(MASK, self.ids.get(MASK, -1)),
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """`<mask>`, if it lacks that."""
        return () if MASK in self.ids else (MASK,)

    @functools.cached_property
    def template(self) -> vocabulary.Template:
        """`<s> first </s>`, or `<s> first </s></s> second </s>`."""
        sep = self.special.sep.id
        return vocabulary.Template(
            before=(self.special.cls.id,),
            between=(sep, sep),
            after=(sep,),
            segments=(0, 0),
            pooled=0,
        )

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a piece goes on with the word before it.

        As in fairseq, words begin with a space: marks after a word belong to
        it. So the first piece of a text is not told from one inside a word;
        what hides whole words lets a word begin at the first piece anyway.
        """
        begins = (*FIRST, MASK)
        return np.array(
            [not (x.startswith(SPACE) or x in begins) for x in self.pieces]
        )

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """As text; bytes that are no whole character are U+FFFD."""
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
        """Makes the one by `tokenizers`."""
        return Tokenizer(self.ids, self.merges, self.add_prefix_space)

    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Makes the one by NumPy."""
        return BulkTokenizer(self)
