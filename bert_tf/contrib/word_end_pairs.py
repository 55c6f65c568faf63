"""BPE with `</w>`, the vocabulary of GPT-1: vocab.json and merges.txt.

Text is lower-cased and split into words as in an uncased BERT. The characters
of a word, the last one with `</w>`, are merged to longer tokens in the order of
merges.txt. A character without a token becomes `<unk>`.

Words are as in transformers without ftfy and spaCy. They differ from an uncased
BERT's in two rules: a capital sigma always becomes σ, and private-use
characters are left out. They differ from transformers' for characters that are
newer than the tables of the library `tokenizers`.

The paper adds three tokens for fine-tuning: `_start_ first _classify_`, or
`_start_ first _delimiter_ second _classify_`. Without all three, as in the
released files, a sequence is its text alone.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from bert_tf import tokenization, vocabularies
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    bulk,
    byte_pair_files,
    byte_pairs,
    tokenizer_json,
    vocabulary,
)

from etils import epath

START, DELIMITER, CLASSIFY = "_start_", "_delimiter_", "_classify_"
PAD, UNKNOWN = "<pad>", "<unk>"
# The end of the last token of a word.
END = "</w>"
FILES = byte_pairs.FILES

# Private-use characters, and surrogate halves, which UTF-8 can't encode.
_LEFT_OUT = re.compile(
    "[\ud800-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)
# A byte-level vocabulary has a token for the space.
_OF_BYTES = (f'"{byte_pairs.SPACE}"'.encode(), rb'"\u0120"')


# ---- Files -------------------------------------------------------------------


def fits(contents: Mapping[str, bytes]) -> bool:
    """Whether a vocab.json has tokens with `</w>`, and is not of bytes."""
    data = contents[byte_pair_files.VOCAB]
    is_of_bytes = any(token in data for token in _OF_BYTES)
    return f'{END}"'.encode() in data and not is_of_bytes


def owns(found: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json splits words, and marks their ends by `</w>`."""
    steps = tokenizer_json.pre_tokenizers(found)
    is_marked = found["model"].get("end_of_word_suffix") == END
    return is_marked and [x.get("type") for x in steps] == ["BertPreTokenizer"]


def check(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError unless the tokenizer.json `name` splits as GPT-1's."""
    steps = tokenizer_json.normalizers(found)
    normalizer = steps[0] if len(steps) == 1 else {}
    for part, values, rules in (
        ("normalizer", normalizer, _NORMALIZER),
        ("model", found["model"], _MODEL),
    ):
        for key, allowed in rules.items():
            if values.get(key) not in allowed:
                field = f"{part}.{key}"
                raise tokenizer_json.otherwise(
                    name, "a GPT-1", field, values.get(key)
                )


_NORMALIZER: dict[str, tuple[Any, ...]] = {
    "type": ("BertNormalizer",),
    "clean_text": (True,),
    "handle_chinese_chars": (True,),
    "strip_accents": (None, True),
    "lowercase": (True,),
}
_OFF = (None, False, 0, "")
_MODEL: dict[str, tuple[Any, ...]] = {
    "unk_token": (UNKNOWN,),
    "end_of_word_suffix": (END,),
    "continuing_subword_prefix": _OFF,
    "dropout": _OFF,
    "fuse_unk": _OFF,
    "byte_fallback": _OFF,
    "ignore_merges": _OFF,
}


def open_files(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads the two files, or a tokenizer.json, which contains both."""
    del say
    found = tokenizer_json.read(path)
    if found is None:
        return byte_pair_files.read(path)
    check(found, str(path))
    return byte_pair_files.of_tokenizer(found, str(path))


# ---- Tokenizers --------------------------------------------------------------


class _Words(tokenization.BasicTokenizer):
    """Splits texts into words, with the two rules of the library."""

    def tokenize(self, text: str | bytes) -> list[str]:
        text = tokenization.convert_to_unicode(text)
        return super().tokenize(_LEFT_OUT.sub("", text).replace("Σ", "σ"))


class _Pairs(tokenization.WordpieceTokenizer):
    """Merges the characters of words, by the `tokenizers` library."""

    def __init__(self, pairs: "WordEndPairs"):
        super().__init__(pairs.ids, UNKNOWN)
        self._model = pairs.model()

    def _split(self, word: str) -> list[str]:
        return [token.value for token in self._model.tokenize(word)]


class Tokenizer(tokenization.FullTokenizer):
    """Splits texts into tokens, optionally with character offsets."""

    def __init__(self, pairs: "WordEndPairs"):
        self._set_vocab(dict(pairs.ids), _Words(do_lower_case=True), False)
        self.wordpiece_tokenizer = _Pairs(pairs)

    def _pieces_and_widths(self, word: str) -> Iterator[tuple[str, int]]:
        for piece in self.wordpiece_tokenizer.split(word):
            yield piece, spelled_length(piece)


def spelled_length(piece: str) -> int:
    """Returns the number of characters that a token stands for in a word."""
    return 1 if piece == UNKNOWN else len(piece.removesuffix(END))


class BulkTokenizer(bulk.Words):
    """Splits large amounts of text; Python splits each new run of bytes once.

    Runs end at ASCII white space and punctuation, as in bulk.BulkTokenizer.
    """

    def __init__(self, pairs: "WordEndPairs"):
        super().__init__(*bulk.byte_classes(), same_case=True)
        self._reference = Tokenizer(pairs)

    def _ids(self, text: str) -> list[int]:
        reference = self._reference
        if text.isascii() and text.isalnum():
            pieces = reference.wordpiece_tokenizer.split(text.lower())
        else:
            pieces = reference.tokenize(text)
        return reference.convert_tokens_to_ids(pieces)


# ---- The vocabulary ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class WordEndPairs(vocabulary.Vocabulary):
    """The tokens of a vocab.json and the pairs of a merges.txt, by rank."""

    merges: tuple[tuple[str, str], ...]

    kind: ClassVar[str] = "word_end_pairs"
    may_lack_template: ClassVar[bool] = True
    graph_module: ClassVar[str] = "bert_tf.contrib.graph.graph_word_end_pairs"

    @classmethod
    def of_contents(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Parses the two files; text is always lower-cased."""
        del do_lower_case
        pieces, merges = byte_pair_files.parse(contents, name)
        if UNKNOWN not in pieces:
            raise InputError(
                f"{name}: the vocabulary of a GPT-1 must have the token "
                f"{UNKNOWN}. Give the vocab.json and the merges.txt of one "
                f"model. Received: {len(pieces)} tokens without it"
            )
        return cls(pieces, merges)

    @property
    def own_files(self) -> dict[str, bytes]:
        """The vocab.json and the merges.txt."""
        both = byte_pair_files.contents(self.pieces, self.merges)
        return dict(zip(FILES, both, strict=True))

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The special tokens; padding is `<unk>` if there is no `<pad>`."""
        pad, unk, cls, sep = (
            vocabulary.SpecialToken(piece, self.ids.get(piece, -1))
            for piece in (PAD, UNKNOWN, CLASSIFY, DELIMITER)
        )
        mask = vocabulary.SpecialToken("<mask>", -1)
        return vocabulary.Special(
            pad if pad.id >= 0 else unk, unk, cls, sep, mask
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """`<mask>`, which no GPT has, and the tokens for fine-tuning."""
        needed = ("<mask>", START, DELIMITER, CLASSIFY)
        return tuple(x for x in needed if x not in self.ids)

    @functools.cached_property
    def template(self) -> vocabulary.Template:
        """`_start_ first _delimiter_ second _classify_`, or texts alone."""
        names = (START, DELIMITER, CLASSIFY)
        ids = [(self.ids[x],) for x in names if x in self.ids]
        before, between, after = ids if len(ids) == len(names) else [()] * 3
        return vocabulary.Template(before, between, after, (0, 0), pooled=0)

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """Without the `</w>` of tokens that end a word."""
        return [
            vocabulary.Spelling(piece.removesuffix(END) or piece, None)
            for piece in self.pieces
        ]

    def model(self) -> Any:
        """Creates the library's BPE, which splits words."""
        return byte_pairs.library().models.BPE(
            dict(self.ids),
            list(self.merges),
            unk_token=UNKNOWN,
            end_of_word_suffix=END,
        )

    def library_tokenizer(self, library: Any) -> Any:
        """Creates the same tokenizer with the module `tokenizers`."""
        tokenizer = library.Tokenizer(self.model())
        tokenizer.normalizer = library.normalizers.BertNormalizer(
            lowercase=True
        )
        tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = library.decoders.BPEDecoder(suffix=END)
        return tokenizer

    def own_tokenizer(self) -> Tokenizer:
        """Creates the tokenizer in Python."""
        return Tokenizer(self)

    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return BulkTokenizer(self)


vocabularies.register(
    WordEndPairs.kind,
    vocabularies.Kind(
        files=FILES,
        endings=(),
        open=open_files,
        read=WordEndPairs.of_contents,
        tokenizer="BPE",
        owns=owns,
        fits=fits,
        difference=byte_pairs.difference,
        append=byte_pairs.append,
        check=check,
    ),
)
