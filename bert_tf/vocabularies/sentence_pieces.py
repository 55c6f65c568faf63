"""SentencePiece, the vocabulary of ALBERT: a unigram model and a casing.

Text is normalized like in the original's `preprocess_text`, split into words at
spaces, and each word into its most likely tokens under the model. Then the
original's comma rule applies: a token that ends in a digit and a comma is split
again, so that a number has the same tokens with a comma after it.
"""

import dataclasses
import functools
import math
import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from bert_tf import vocab_files
from bert_tf.errors import InputError
from bert_tf.storage import input_files
from bert_tf.vocabularies import (
    kinds,
    sentence_models,
    sentence_tokenizers,
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

# The original's whole words: these letters and marks continue a word; other
# characters (non-ASCII ones, digits, four marks missing in its list) begin one.
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


# ---- The vocabulary ----------------------------------------------------------


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads a model file unchanged, or builds a model from a tokenizer.json."""
    del say
    found = tokenizer_json.read(path)
    if found is not None:
        return {FILE: unigram_json.read(found, str(path))}
    return {FILE: input_files.read(path, "vocab_file")}


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
    return names or ("its tokens have other scores" if ours != theirs else "")


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


@dataclasses.dataclass(frozen=True)
class CharacterRules:
    """Normalizes one character. Two of the same rules are equal.

    Attributes:
        table: The characters that the model replaces, and their replacements.
        strips_accents: Whether the original's rules are applied first.
        do_lower_case: Whether these rules include lower-casing.
        composes: Whether the model composes what they have decomposed.
    """

    table: tuple[tuple[str, str], ...]
    strips_accents: bool = False
    do_lower_case: bool = False
    composes: bool = False

    @functools.cached_property
    def _outputs(self) -> dict[str, str]:
        return dict(self.table)

    def __call__(self, char: str) -> str:
        """Returns the normalized form of a character."""
        text = normalize_char(char) if self.strips_accents else char
        text = text.lower() if self.do_lower_case else text
        text = unicodedata.normalize("NFC", text) if self.composes else text
        outputs = self._outputs
        return "".join([outputs.get(x, x) for x in text])


@dataclasses.dataclass(frozen=True)
class SentencePieces(vocabulary.Vocabulary):
    """The tokens of a unigram SentencePiece model, in ALBERT's layout.

    `model` is the content of its file. `do_lower_case` must be the same as in
    training; accents are stripped either way, as in the original.
    """

    model: bytes
    do_lower_case: bool

    kind: ClassVar[str] = "sentence_pieces"
    # Whether the comma rule applies.
    cuts_numbers: ClassVar[bool] = True
    # A pattern and its replacement of the same length, which comes before all
    # other rules.
    quotes: ClassVar[tuple[str, str] | None] = None

    @classmethod
    def parse(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Parses the single file of `contents`; errors call it `name`."""
        (model,) = contents.values()
        proto = sentence_models.parse(model, name)
        pieces = tuple(entry.piece for entry in proto.pieces)
        cls.check_special(pieces, name)
        sentence_models.processor(model, name)
        return cls(pieces, model, do_lower_case)

    @classmethod
    def check_special(cls, pieces: Sequence[str], name: str) -> None:
        """Raises InputError unless the tokens include the special ones."""
        for piece in (CLS, SEP):
            if piece not in pieces:
                raise InputError(
                    f"{name}: sentence pieces must hold {piece!r}: train with "
                    f"--control_symbols={CLS},{SEP},{MASK}, as ALBERT's are. "
                    f"Received: {len(pieces)} tokens, the first "
                    f"{list(pieces[:5])}"
                )

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

    @functools.cached_property
    def rules(self) -> sentence_tokenizers.Rules:
        """What the original does to a text before the model's own rules."""
        text = functools.partial(normalize, do_lower_case=self.do_lower_case)
        first = functools.partial(re.sub, *self.quotes) if self.quotes else str
        return sentence_tokenizers.Rules(_WORD, normalize_char, text, first)

    def parts_of_number(
        self, piece: str, parts: list[sentence_tokenizers.CutPiece]
    ) -> list[sentence_tokenizers.CutPiece]:
        """Returns the parts of a number that the comma rule cuts off."""
        del piece
        return parts

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
            pad=vocabulary.SpecialToken(PAD, 0),
            unk=vocabulary.SpecialToken(self.pieces[unknown], unknown),
            cls=vocabulary.SpecialToken(CLS, self.ids[CLS]),
            sep=vocabulary.SpecialToken(SEP, self.ids[SEP]),
            mask=vocabulary.SpecialToken(MASK, self.ids.get(MASK, -1)),
        )

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

    def is_tie(self, first: Sequence[int], second: Sequence[int]) -> bool:
        """Whether two ways to split a text have the same score, if rounded."""
        both, unknown = (first, second), self.special.unk.id
        # Unknown characters may be at other positions.
        known = ([x for x in ids if x != unknown] for ids in both)
        texts = {"".join(self.pieces[x] for x in ids) for ids in known}
        scores = (sum(self._scores[x] for x in ids) for ids in both)
        is_same = len(texts) == 1
        is_same &= len({list(ids).count(unknown) for ids in both}) == 1
        return is_same and math.isclose(*scores, rel_tol=1e-5)

    @functools.cached_property
    def _scores(self) -> tuple[float, ...]:
        return tuple(entry.score for entry in self.proto.pieces)

    def own_tokenizer(self) -> sentence_tokenizers.Tokenizer:
        """Creates the tokenizer that calls sentencepiece."""
        return sentence_tokenizers.Tokenizer(self)

    def own_bulk_tokenizer(self) -> sentence_tokenizers.BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return sentence_tokenizers.BulkTokenizer(self)

    @functools.cached_property
    def composes(self) -> bool:
        """Whether the model composes characters, as by NFC."""
        rules = dict(sentence_models.rules(self.model))
        return rules.get("\u1100\u1161") == "\uac00"

    @functools.cached_property
    def character_rules(self) -> dict[str, str]:
        """Single characters that the model replaces -> their replacements."""
        rules = sentence_models.rules(self.model)
        return {x: output for x, output in rules if len(x) == 1}

    def normalizer(self) -> Callable[[str], str]:
        """Changes a character as the original and then the model do."""
        return CharacterRules(
            tuple(self.character_rules.items()),
            strips_accents=True,
            composes=self.composes,
            do_lower_case=self.do_lower_case,
        )


def _goes_on(piece: str) -> bool:
    if piece.startswith((sentence_models.SPACE, "<")) or piece in _MARKS:
        return False
    # For instance, the lower case of the Kelvin sign is an English letter.
    return all(char.lower() in _GOES_ON for char in piece)
