"""SentencePiece in XLM-R and CamemBERT: a unigram model with fairseq's ids.

The ids in the file of sentencepiece differ from the encoder's ids: fairseq puts
its own tokens first and `<mask>` last. The file is rearranged when it is read,
so that it has the encoder's ids:

    XLM-R: <s> <pad> </s> <unk> ... <mask>
    CamemBERT: <s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED <s> </s> ...
        <mask>

Text is normalized by the model's own rules alone, and its case is kept.
"""

import contextlib
import dataclasses
import functools
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from bert_tf.errors import InputError
from bert_tf.storage import input_files
from bert_tf.vocabularies import (
    sentence_models,
    sentence_pieces,
    sentence_tokenizers,
    tokenizer_json,
    unigram_json,
    vocabulary,
)

import numpy as np
from absl import logging
from etils import epath

FILE = "sentencepiece.bpe.model"
CLS, SEP, MASK = "<s>", "</s>", "<mask>"
PAD, UNKNOWN = sentence_pieces.PAD, sentence_pieces.UNKNOWN
# The first tokens of sentencepiece's own file.
_OWN = (UNKNOWN, CLS, SEP)
# The first tokens of XLM-R, and of CamemBERT.
_FOUR = (CLS, PAD, SEP, UNKNOWN)
_SEVEN = (
    *(f"{CLS}NOTUSED", PAD, f"{SEP}NOTUSED", UNKNOWN, f"{UNKNOWN}NOTUSED"),
    *(CLS, SEP),
)
_LAYOUTS = (_FOUR, _SEVEN)
# White space as the library `tokenizers` sees it.
_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


# ---- Files -------------------------------------------------------------------


def owns(found: Mapping[str, Any]) -> bool:
    """Whether the model of a tokenizer.json begins with fairseq's tokens."""
    vocab = found["model"].get("vocab")
    return isinstance(vocab, list) and _layout_of(_names(vocab)) is not None


def _names(vocab: Sequence[Any]) -> list[Any]:
    first = vocab[: len(_SEVEN)]
    return [x[0] if isinstance(x, list) and x else None for x in first]


def _layout_of(pieces: Sequence[Any]) -> tuple[str, ...] | None:
    """Returns the tokens of fairseq that a model begins with, if any."""
    return next(
        (x for x in _LAYOUTS if tuple(pieces[: len(x)]) == x),
        None,
    )


def check(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError where a tokenizer.json splits text otherwise."""
    unigram_json.check(found, name, unigram_json.FAIRSEQ)


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads and rearranges a model, or builds one from a tokenizer.json."""
    del say
    found = tokenizer_json.read(path)
    if found is not None:
        return {FILE: unigram_json.read(found, str(path), unigram_json.FAIRSEQ)}
    model = input_files.read(path, "vocab_file")
    proto = sentence_models.parse(model, str(path))
    first = [entry.piece for entry in proto.pieces[: len(_SEVEN)]]
    if _layout_of(first) is None:
        if tuple(first[: len(_OWN)]) != _OWN:
            raise InputError(
                f"{path}: the model must begin with {', '.join(_OWN)}, as that "
                "of XLM-R or CamemBERT. Give the file of such a model. "
                f"Received: tokens {first}"
            )
        model = _arranged(proto, _layout_at(path, len(proto.pieces)))
    return {FILE: model}


def _layout_at(path: epath.PathLike, count: int) -> tuple[str, ...]:
    """Returns the layout of the model for a file with `count` tokens.

    A tokenizer.json next to them contains it. Otherwise config.json determines
    it, by the id of `<s>`, the kind of model or the number of tokens.
    """
    folder = epath.Path(path).parent
    found = tokenizer_json.find(folder / tokenizer_json.FILE)
    vocab = found["model"].get("vocab") if found else None
    layout = _layout_of(_names(vocab)) if isinstance(vocab, list) else None
    if layout is not None:
        return layout
    config = folder / "config.json"
    values: Any = None
    if config.exists() and not config.is_dir():
        input_files.check_can_be_read_again(config)
        with contextlib.suppress(ValueError, RecursionError):
            values = json.loads(config.read_bytes())
    if not isinstance(values, dict):
        logging.warning(
            "The tokens of %s get the ids of XLM-R, because no config.json is "
            "next to it. If it is a CamemBERT's, put the config.json there.",
            path,
        )
        return _FOUR
    kind, first = values.get("model_type"), values.get("bos_token_id")
    if kind == "camembert" or first == _SEVEN.index(CLS):
        return _SEVEN
    # An XLM-R with three added tokens has as many as a CamemBERT.
    size = count - len(_OWN) + len(_SEVEN) + 1
    is_known = kind == "xlm-roberta" or first == _FOUR.index(CLS)
    is_longer = not is_known and values.get("vocab_size") == size
    return _SEVEN if is_longer else _FOUR


def _arranged(proto: Any, layout: Sequence[str]) -> bytes:
    """Returns a model with the same tokens and fairseq's ids.

    It equals the model made from a tokenizer.json with the same tokens.
    """
    made = type(proto)()
    special = [(piece, 0.0, made.SentencePiece.CONTROL) for piece in layout]
    special[layout.index(UNKNOWN)] = (UNKNOWN, 0.0, made.SentencePiece.UNKNOWN)
    for piece, score, kind in (
        *special,
        *((x.piece, x.score, x.type) for x in proto.pieces[len(_OWN) :]),
        (MASK, 0.0, made.SentencePiece.CONTROL),
    ):
        made.pieces.add(piece=piece, score=score, type=kind)
    charsmap = proto.normalizer_spec.precompiled_charsmap
    unigram_json.write_specs(made, layout.index(UNKNOWN), charsmap)
    return made.SerializeToString()


def append(
    contents: Mapping[str, bytes], tokens: Sequence[str]
) -> dict[str, bytes]:
    """Adds tokens that the model itself never finds in a text."""
    (model,) = sentence_pieces.append(contents, tokens).values()
    return {FILE: model}


# ---- The vocabulary ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class FairseqSentencePieces(sentence_pieces.SentencePieces):
    """The tokens of a unigram model by fairseq's ids, in RoBERTa's layout."""

    kind: ClassVar[str] = "fairseq_sentence_pieces"
    doubles_separator: ClassVar[bool] = True
    cuts_numbers: ClassVar[bool] = False

    @classmethod
    def parse(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Reads the one file of `contents`; InputError, by `name`, if bad."""
        del do_lower_case
        (model,) = contents.values()
        proto = sentence_models.parse(model, name)
        pieces = tuple(entry.piece for entry in proto.pieces)
        if _layout_of(pieces) is None:
            raise InputError(
                f"{name}: the sentence pieces must begin with "
                f"{' '.join(_FOUR)} or {' '.join(_SEVEN)}. Give the "
                "tokenizer of an XLM-R or a CamemBERT. "
                f"Received: {len(pieces)} tokens, the first {list(pieces[:5])}"
            )
        sentence_models.processor(model, name)
        return cls(pieces, model, do_lower_case=False)

    @functools.cached_property
    def rules(self) -> sentence_tokenizers.Rules:
        """White space becomes a space, unless the model leaves it out."""
        found = self.character_rules
        spaces = [x for x in _SPACES if found.get(x) != ""]
        removed = [x for x in _SPACES if found.get(x) == ""]
        table = (*((x, " ") for x in spaces), *((x, "") for x in removed))
        changes = str.maketrans(dict(table))
        return sentence_tokenizers.Rules(
            word=re.compile(f"[^{''.join(spaces)}]+"),
            char=sentence_pieces.CharacterRules(table),
            text=operator.methodcaller("translate", changes),
        )

    @property
    def own_files(self) -> dict[str, bytes]:
        """The model, with the ids of the encoder."""
        return {FILE: self.model}

    @property
    def settings(self) -> dict[str, bool]:
        """Empty: the model contains all settings."""
        return {}

    def check(self, name: str) -> None:
        """Checks nothing: the model was checked when it was read."""
        del name

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The special tokens."""
        pad, unknown, cls, sep, mask = (
            vocabulary.SpecialToken(text, self.ids.get(text, -1))
            for text in (PAD, UNKNOWN, CLS, SEP, MASK)
        )
        return vocabulary.Special(pad, unknown, cls, sep, mask)

    @functools.cached_property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a token continues the word before it."""
        texts = self._texts
        return np.array(
            [
                piece in texts and not piece.startswith(sentence_models.SPACE)
                for piece in self.pieces
            ]
        )

    @functools.cached_property
    def _texts(self) -> frozenset[str]:
        """The tokens that can occur in a text."""
        return frozenset(
            entry.piece
            for entry in self.proto.pieces
            if entry.type in (entry.NORMAL, entry.USER_DEFINED)
        )

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """Without the mark of a space, which begins a word."""
        space, texts = sentence_models.SPACE, self._texts
        return [
            vocabulary.Spelling(
                piece.removeprefix(space), piece.startswith(space)
            )
            if piece in texts
            else vocabulary.Spelling(piece, None)
            for piece in self.pieces
        ]

    def normalizer(self) -> Callable[[str], str]:
        """Changes a character as the model does."""
        return sentence_pieces.CharacterRules(
            tuple(self.character_rules.items())
        )
