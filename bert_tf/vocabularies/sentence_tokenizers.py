"""Splits text with SentencePiece, in Python and in bulk.

Here words are split one by one, in the originals a line at a time. The results
differ only where several ways to split are equally likely: sentencepiece adds
up scores in single precision along the line, so that the text before a word
decides. Here a word has the same tokens everywhere.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from bert_tf import tokenization
from bert_tf.vocabularies import bulk, sentence_models, unigram_json

import numpy as np

if TYPE_CHECKING:
    from bert_tf.vocabularies.sentence_pieces import SentencePieces


def to_unicode(text: str | bytes) -> str:
    """Removes surrogate halves, which UTF-8 can't encode."""
    text = tokenization.convert_to_unicode(text)
    if text.isascii():
        return text
    return text.encode("utf-8", "ignore").decode("utf-8")


class Rules(NamedTuple):
    """How a text is changed before the model's own rules.

    Attributes:
        word: Finds a run of characters without a space.
        char: Returns the replacement of a character, without lower-casing.
        text: Changes words that are joined by single spaces.
        first: Changes a text before all others, but not its length.
    """

    word: re.Pattern[str]
    char: Callable[[str], str]
    text: Callable[[str], str]
    first: Callable[[str], str] = str


class CutPiece(NamedTuple):
    """A part of a token that is split again: its id and its characters."""

    id: int
    start: int
    end: int


def cut_pieces(
    vocabulary: "SentencePieces", processor: Any
) -> dict[int, tuple[CutPiece, ...]]:
    """Returns the tokens that the comma rule splits, and their parts.

    As in the original, whose comparison of text with bytes is never true, the
    first part begins with a space even if the token does not. The rule works on
    ids, so it does not apply to unknown characters. This only matters if the
    vocabulary lacks the comma.
    """
    cut: dict[int, tuple[CutPiece, ...]] = {}
    if not vocabulary.cuts_numbers:
        return cut
    for index, entry in enumerate(vocabulary.proto.pieces):
        piece = entry.piece
        if entry.type not in (entry.NORMAL, entry.USER_DEFINED):
            continue
        if unigram_json.is_number(piece):
            number = piece[:-1].replace(sentence_models.SPACE, "")
            parts = _encode_with_offsets(processor, number)
            parts = vocabulary.parts_of_number(piece, parts)
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
        self._rules = vocabulary.rules
        self._processor = sentence_models.processor(
            vocabulary.model, vocabulary.kind
        )
        self._unknown = self._processor.unk_id()
        self._cut = cut_pieces(vocabulary, self._processor)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens; unknown characters become `<unk>`."""
        return [self.pieces[number] for number in self.ids(text)]

    def ids(self, text: str | bytes) -> list[int]:
        """Returns the token ids."""
        text = self._rules.first(to_unicode(text))
        words = self._rules.word.findall(text)
        normalized = self._rules.text(" ".join(words))
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
        text = self._rules.first(to_unicode(text))
        for word in self._rules.word.finditer(text):
            starts: list[int] = []  # by normalized character
            for place, char in enumerate(word.group(), word.start()):
                starts += [place] * len(self._rules.char(char))
            later = sorted({*starts, word.end()})
            ends = dict(itertools.pairwise(later))
            normalized = self._rules.text(word.group())
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
