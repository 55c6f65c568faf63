"""SentencePiece, the vocabulary of ALBERT: a unigram model and a casing.

Text is normalized like in the original's `preprocess_text`, split into words at
spaces, and each word into its most likely tokens under the model. Then the
original's comma rule applies: a token that ends in a digit and a comma is split
again, so that a number has the same tokens with a comma after it.

Here words are split one by one, in the original a line at a time. The results
differ only where several ways to split are equally likely: sentencepiece adds
up scores in single precision along the line, so that the text before a word
decides. Here a word has the same tokens everywhere.
"""

import dataclasses
import functools
import itertools
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from bert_tf import tokenization, vocab_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    bulk,
    kinds,
    sentence_models,
    tokenizer_json,
    unigram_json,
    vocabulary,
)

import numpy as np
from etils import epath

FILE = "spiece.model"
CLS, SEP, MASK = "[CLS]", "[SEP]", "[MASK]"
# The original pads with 0, which its models call <pad>.
PAD, UNKNOWN = "<pad>", "<unk>"

_WORD = re.compile(r"\S+")

# The original's whole words: these letters and marks continue a word, other
# characters ("foreign" ones, digits, four marks missing in its list) begin one.
_MARKS = frozenset(string.punctuation) - frozenset("'<=>")
_GOES_ON = frozenset(string.ascii_letters) | _MARKS


# ---- Text --------------------------------------------------------------------


def normalize_char(char: str) -> str:
    """Normalizes a single character, except for the casing."""
    if char.isspace():
        return " "
    decomposed = unicodedata.normalize("NFKD", char)
    return "".join(x for x in decomposed if not unicodedata.combining(x))


def normalize(text: str, do_lower_case: bool) -> str:
    """Normalizes text like the original's `preprocess_text`, but keeps spaces.

    Combining marks are removed, so their order does not matter, and all steps
    except the casing of the capital sigma work on single characters.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(x for x in text if not unicodedata.combining(x))
    return text.lower() if do_lower_case else text


def to_unicode(text: str | bytes) -> str:
    """Removes surrogate halves, which UTF-8 can't encode."""
    text = tokenization.convert_to_unicode(text)
    if text.isascii():
        return text
    return text.encode("utf-8", "ignore").decode("utf-8")


class CutPiece(NamedTuple):
    """A part of a token that is split again: its id and its characters."""

    id: int
    start: int
    end: int


def cut_pieces(proto: Any, processor: Any) -> dict[int, tuple[CutPiece, ...]]:
    """Returns the tokens that the comma rule splits, and their parts.

    As in the original, whose comparison of text with bytes is never true, the
    first part begins with a space even if the token does not. The rule works on
    ids, so it does not apply to unknown characters. This only matters if the
    vocabulary lacks the comma.
    """
    cut = {}
    for index, entry in enumerate(proto.pieces):
        piece = entry.piece
        if entry.type not in (entry.NORMAL, entry.USER_DEFINED):
            continue
        if unigram_json.is_number(piece):
            number = piece[:-1].replace(sentence_models.SPACE, "")
            parts = _encode_with_offsets(processor, number)
            comma = processor.piece_to_id(",")
            parts.append(CutPiece(comma, len(number), len(number) + 1))
            cut[index] = tuple(parts)
    return cut


def _encode_with_offsets(processor: Any, word: str) -> list[CutPiece]:
    found = processor.encode(word, return_type="offset_mapping")
    return [
        CutPiece(number, start, end)
        for number, (start, end) in zip(
            found["ids"], found["offsets"], strict=True
        )
    ]


class Tokenizer:
    """Splits texts with sentencepiece: the reference of other tokenizers."""

    def __init__(self, vocabulary: "SentencePieces"):
        self.vocab = vocabulary.ids
        self.pieces = vocabulary.pieces
        self.do_lower_case = vocabulary.do_lower_case
        self._processor = sentence_models.processor(vocabulary.model, FILE)
        self._unknown = self._processor.unk_id()
        self._cut = cut_pieces(vocabulary.proto, self._processor)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens; unknown characters become `<unk>`."""
        return [self.pieces[number] for number in self.ids(text)]

    def ids(self, text: str | bytes) -> list[int]:
        """Returns the token ids."""
        words = to_unicode(text).split()
        normalized = normalize(" ".join(words), self.do_lower_case)
        ids: list[int] = []
        # One by one: for a list, sentencepiece would start threads each time.
        for word in normalized.split(" "):
            ids += self._processor.encode(word)
        if not self._cut:
            return ids
        return [
            part
            for number in ids
            for part in (
                [x.id for x in self._cut[number]]
                if number in self._cut
                else [number]
            )
        ]

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the tokens with their character offsets.

        A mark that normalization removes belongs to the character before it. A
        token that is only a space covers no characters.
        """
        tokens = []
        for word in _WORD.finditer(to_unicode(text)):
            starts: list[int] = []  # by normalized character
            for place, char in enumerate(word.group(), word.start()):
                starts += [place] * len(normalize_char(char))
            later = sorted({*starts, word.end()})
            ends = dict(itertools.pairwise(later))
            normalized = normalize(word.group(), self.do_lower_case)
            for part in re.finditer("[^ ]+", normalized):
                for piece in self._pieces_of(part.group()):
                    first = min(part.start() + piece.start, len(starts) - 1)
                    last = part.start() + piece.end - 1
                    start = starts[first]
                    is_empty = piece.end == piece.start
                    end = start if is_empty else ends[starts[last]]
                    tokens.append(
                        tokenization.Token(self.pieces[piece.id], start, end)
                    )
        return tokens

    def _pieces_of(self, word: str) -> list[CutPiece]:
        pieces = []
        for piece in _encode_with_offsets(self._processor, word):
            parts = self._cut.get(piece.id)
            if parts is None:
                pieces.append(piece)
                continue
            # Where the model's own rules change lengths, each part gets all of
            # it.
            same = piece.end - piece.start == parts[-1].end
            for part in parts:
                start = piece.start + part.start if same else piece.start
                end = piece.start + part.end if same else piece.end
                pieces.append(CutPiece(part.id, start, end))
        return pieces

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens; unknown tokens become `<unk>`."""
        return [self.vocab.get(token, self._unknown) for token in tokens]


class BulkTokenizer(bulk.Words):
    """Splits large amounts of text; sentencepiece splits each new word once.

    Text is split at ASCII white space, because no rule reaches across it.
    """

    def __init__(self, vocabulary: "SentencePieces"):
        is_space = np.zeros(256, bool)
        is_space[[ord(char) for char in " \t\n\r"]] = True
        super().__init__(
            ~is_space, np.zeros(256, bool), vocabulary.do_lower_case
        )
        self._reference = Tokenizer(vocabulary)

    def _ids(self, text: str) -> list[int]:
        return self._reference.ids(text)


# ---- The vocabulary ----------------------------------------------------------


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads a model file unchanged, or builds a model from a tokenizer.json."""
    del say
    found = tokenizer_json.read(path)
    if found is not None:
        return {FILE: unigram_json.read(found, str(path))}
    return {FILE: sentence_models.read(path)}


def difference(given: Mapping[str, bytes], brought: Mapping[str, bytes]) -> str:
    """Describes how tokens or scores differ from a checkpoint's, or "".

    Rules are not compared, because a tokenizer.json has fewer than the model.
    """
    ours, theirs = (
        [(x.piece, x.score) for x in sentence_models.parse(data, FILE).pieces]
        for contents in (given, brought)
        for data in contents.values()
    )
    names = kinds.of_pieces([x for x, _ in ours], [x for x, _ in theirs])
    return names or ("its pieces have other scores" if ours != theirs else "")


def append(
    contents: Mapping[str, bytes], tokens: Sequence[str]
) -> dict[str, bytes]:
    """Adds tokens that the model itself finds in no text."""
    (model,) = contents.values()
    proto = sentence_models.parse(model, FILE)
    for token in tokens:
        entry = proto.pieces.add(piece=token)
        entry.type = entry.CONTROL
    return {FILE: proto.SerializeToString()}


def _lowered(char: str) -> str:
    return normalize_char(char).lower()


@dataclasses.dataclass(frozen=True)
class SentencePieces(vocabulary.Vocabulary):
    """The tokens of a unigram SentencePiece model, in ALBERT's layout.

    `model` is the content of its file. `do_lower_case` must be the same as in
    training; accents are stripped either way, as in the original.
    """

    model: bytes
    do_lower_case: bool

    kind: ClassVar[str] = "sentence_pieces"

    @classmethod
    def parse(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Parses the single file of `contents`; errors call it `name`."""
        (model,) = contents.values()
        proto = sentence_models.parse(model, name)
        pieces = tuple(entry.piece for entry in proto.pieces)
        for piece in (CLS, SEP):
            if piece not in pieces:
                raise InputError(
                    f"{name}: sentence pieces must hold {piece!r}: train with "
                    f"--control_symbols={CLS},{SEP},{MASK}, as ALBERT's are. "
                    f"Received: {len(pieces)} pieces, the first "
                    f"{list(pieces[:5])}"
                )
        sentence_models.processor(model, name)
        return cls(pieces, model, do_lower_case)

    @classmethod
    def read(
        cls, path: epath.PathLike, do_lower_case: bool, say: bool = True
    ) -> Self:
        """Reads a file; for `say` see `open`."""
        return cls.parse(open_file(path, say), do_lower_case, str(path))

    @property
    def proto(self) -> Any:
        """The `ModelProto`, parsed anew: it can't be sent to workers."""
        return sentence_models.parse(self.model, FILE)

    @property
    def own_files(self) -> dict[str, bytes]:
        """The model."""
        return {FILE: self.model}

    @property
    def settings(self) -> dict[str, bool]:
        """The casing."""
        return {"do_lower_case": self.do_lower_case}

    def check(self, name: str) -> None:
        """Checks that the casing fits the tokens."""
        words = [
            entry.piece.replace(sentence_models.SPACE, "")
            for entry in self.proto.pieces
            if entry.type == entry.NORMAL
        ]
        # Accents are stripped from cased texts, too.
        vocab_files.check_casing(
            words, self.do_lower_case, name, strip_accents=False
        )

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The special tokens, which represent no text."""
        unknown = next(
            index
            for index, entry in enumerate(self.proto.pieces)
            if entry.type == entry.UNKNOWN
        )
        return vocabulary.Special(
            # The original pads with 0, whatever token that is.
            pad=vocabulary.Piece(PAD, 0),
            unk=vocabulary.Piece(self.pieces[unknown], unknown),
            cls=vocabulary.Piece(CLS, self.ids[CLS]),
            sep=vocabulary.Piece(SEP, self.ids[SEP]),
            mask=vocabulary.Piece(MASK, self.ids.get(MASK, -1)),
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """`[MASK]`, if the vocabulary lacks it."""
        return () if MASK in self.ids else (MASK,)

    @functools.cached_property
    def template(self) -> vocabulary.Template:
        """`[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]`."""
        return vocabulary.Template.of_bert(self.special)

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a token continues the word before it.

        Whole words are counted like in the original's `_is_start_piece_sp`: a
        token continues a word if it has no space and consists of English
        letters and punctuation, but is not a single mark. A digit, an
        apostrophe or a letter of another script in a token begins a word.
        """
        return np.array([_goes_on(piece) for piece in self.pieces])

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """Without the space mark, which begins a word."""
        space = sentence_models.SPACE
        special = {PAD, CLS, SEP, MASK, self.special.unk.text}
        return [
            vocabulary.Spelling(piece, None)
            if piece in special
            else vocabulary.Spelling(
                piece.removeprefix(space), piece.startswith(space)
            )
            for piece in self.pieces
        ]

    def own_tokenizer(self) -> Tokenizer:
        """Creates the tokenizer that calls sentencepiece."""
        return Tokenizer(self)

    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return BulkTokenizer(self)

    def normalizer(self) -> Callable[[str], str]:
        """Returns the original's normalization of single characters."""
        return _lowered if self.do_lower_case else normalize_char


def _goes_on(piece: str) -> bool:
    if piece.startswith((sentence_models.SPACE, "<")) or piece in _MARKS:
        return False
    # For instance, the lower case of the Kelvin sign is an English letter.
    return all(char.lower() in _GOES_ON for char in piece)
