"""Reads SentencePiece from tokenizer.json, where it is called "Unigram".

Such a file is converted to a SentencePiece model. The normalization steps
before the model are defined here for both reading and writing.

ALBERT files of transformers differ from the original in three ways, which are
accepted but not applied here: they replace `` and '' by ", they remove all
marks (the original removes only marks with a combining class, so that vowels of
Hindi or Thai and the parts of emoji stay), and they never find a token that
ends in a digit and a comma, which the original finds and splits again (version
5 finds it and does not split it).
"""

import base64
import binascii
import functools
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.errors import InputError
from bert_tf.vocabularies import added_tokens, sentence_models, tokenizer_json

_PAD = "<pad>"
# Tokens that no text contains, whatever their scores are.
_NO_TEXT = frozenset({_PAD, "<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"})

# Subtracted from the score of tokens that must not be found in text. Files of
# transformers do this, too, for tokens that end in a digit and a comma.
PENALTY = 100.0


def is_number(piece: str) -> bool:
    """Returns whether the comma rule applies to a token."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


# ---- Normalization steps -----------------------------------------------------


def _replace(pattern: str, content: str) -> dict[str, Any]:
    found = {"Regex": pattern}
    return {"type": "Replace", "pattern": found, "content": content}


_CASED = r"[\p{Lu}\p{Ll}\p{Lt}]"
_SKIPPED = r"\p{Case_Ignorable}*"
_SPACE = sentence_models.SPACE

_NFKD, _NFC, _LOWERCASE = "NFKD", "NFC", "Lowercase"
_ACCENTS, _PRECOMPILED = "StripAccents", "Precompiled"

# The last four are white space in Python but not in the library; a model may
# remove others.
_SPACES = _replace(r"[\s\x1c-\x1f]", " ")
# The library's Lowercase works on single characters and does not recognize a
# sigma at the end of a word.
_SIGMA = _replace(f"(?<={_CASED}{_SKIPPED})Σ(?!{_SKIPPED}{_CASED})", "ς")
# A text may contain the space mark itself. As in sentencepiece, it is removed
# at the end of a word, and at the beginning it gets a space before it.
_LAST = _replace(rf"{_SPACE}+(?!\S)", "")
_FIRST = _replace(rf"(?<!\S){_SPACE}", 2 * _SPACE)
_OURS = (_SPACES, _SIGMA, _LAST, _FIRST)

# As in files of transformers. Splitting into words makes the second redundant.
_QUOTES = [{"String": "``"}, {"String": "''"}]
QUOTE_STEPS: list[dict[str, Any]] = [
    {"type": "Replace", "pattern": x, "content": '"'} for x in _QUOTES
]
_MANY_SPACES = {"Regex": " {2,}"}

# Each word, but no part of a word, gets a space before it. The oldest files
# express this by the last key.
_METASPACE = {
    "replacement": _SPACE,
    "prepend_scheme": "always",
    "split": True,
    "add_prefix_space": True,
}


class Owner(NamedTuple):
    """A model whose tokenizer.json is read.

    Attributes:
        name: What errors call it.
        steps: The pattern of the steps that change its texts.
        cuts_numbers: Whether the comma rule applies to it.
    """

    name: str
    steps: str
    cuts_numbers: bool


NO_ACCENTS = Owner(
    "an ALBERT",
    f"{_NFKD} {_ACCENTS}( {_LOWERCASE})?(( {_NFC})? {_PRECOMPILED})?",
    cuts_numbers=True,
)
FAIRSEQ = Owner("an XLM-R", f"(({_NFC} )?{_PRECOMPILED})?", cuts_numbers=False)


@functools.cache
def _no_accents() -> dict[str, Any]:
    """Returns the step that removes combining marks, as the original does."""
    ranges: list[list[str]] = []
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.combining(char):
            if ranges and ord(ranges[-1][1]) == ord(char) - 1:
                ranges[-1][1] = char
            else:
                ranges.append([char, char])
    # The characters themselves, because regex engines differ in escapes.
    return _replace(f"[{''.join(map('-'.join, ranges))}]", "")


def steps(
    do_lower_case: bool, charsmap: bytes, composes: bool
) -> list[dict[str, Any]]:
    """Returns the normalization steps of `sentence_pieces` and a model.

    Args:
        do_lower_case: Whether to lower-case.
        charsmap: As in `model_steps`.
        composes: Likewise.
    """
    found = [_SPACES, {"type": _NFKD}, _no_accents()]
    if do_lower_case:
        found += [_SIGMA, {"type": _LOWERCASE}]
    return [*found, *model_steps(charsmap, composes)]


def model_steps(charsmap: bytes, composes: bool) -> list[dict[str, Any]]:
    """Returns what changes a text as a model does.

    Args:
        charsmap: The rules of the model, in its own format; may be empty.
        composes: Whether the rules compose characters, like NFC. The library
            would apply them to one character at a time.
    """
    found: list[dict[str, Any]] = []
    if composes:
        found.append({"type": _NFC})
    if charsmap:
        text = base64.b64encode(charsmap).decode()
        found.append({"type": _PRECOMPILED, "precompiled_charsmap": text})
    return [*found, _LAST, _FIRST]


def _name(step: Mapping[str, Any]) -> str:
    """Returns the type of a step, "" if it changes nothing here."""
    if step in _OURS:
        return ""
    kind = str(step.get("type"))
    if kind == "Replace":
        pattern, content = step.get("pattern"), step.get("content")
        if pattern in _QUOTES and content == '"':
            return ""
        if pattern == _MANY_SPACES and content in (" ", _SPACE):
            return ""
        if content == "" and _are_accents(pattern):
            return _ACCENTS
    return "" if kind == "Strip" else kind


def _are_accents(pattern: Any) -> bool:
    """Returns whether a pattern is `_no_accents`, of any Unicode version."""
    text = pattern.get("Regex") if isinstance(pattern, dict) else None
    if not isinstance(text, str) or not re.fullmatch(r"\[(.-.)+\]", text):
        return False
    chars = set(text[1:-1]) - {"-"}
    return "\u0300" in chars and all(
        unicodedata.combining(x) or unicodedata.category(x) == "Cn"
        for x in chars
    )


# ---- Reading -----------------------------------------------------------------


def read(
    found: Mapping[str, Any], name: str, owner: Owner = NO_ACCENTS
) -> bytes:
    """Builds the SentencePiece model of a tokenizer.json.

    Special tokens become control symbols, which no text maps to. Other tokens
    with a score of 0 become user-defined symbols, because no learned token has
    probability 1. A learned token stays one if it is added, too: it may be part
    of a word where it is not found before.

    Raises:
        InputError: The model is not a Unigram, or it splits text unlike its
            owner's. `name` is the file name.
    """
    if tokenizer_json.kind(found) != tokenizer_json.UNIGRAM:
        raise InputError(
            f"{name}: the tokenizer must be a Unigram. Give the model of "
            f"sentencepiece or the tokenizer.json of {owner.name}. "
            f"Received: model.type={tokenizer_json.kind(found)}"
        )
    check(found, name, owner)
    # Imported here, so that workers for WordPiece start without it.
    from sentencepiece import sentencepiece_model_pb2

    # Type checkers don't see its attributes, which the import creates.
    messages: Any = sentencepiece_model_pb2
    proto = messages.ModelProto()
    unknown, own = found["model"].get("unk_id"), len(found["model"]["vocab"])
    special = {
        token["content"]: bool(token.get("special"))
        for token in tokenizer_json.added(found)
    }
    for index, (piece, score) in enumerate(_pieces(found, name)):
        entry = proto.pieces.add(piece=piece, score=score)
        # Of learned tokens, some may be added as well.
        is_learned = -PENALTY < score < 0
        is_special = special.get(piece) and not is_learned
        if index == unknown:
            entry.type = entry.UNKNOWN
        elif piece in _NO_TEXT or is_special or index >= own:
            # Added tokens are found before the model splits a text.
            entry.type = entry.CONTROL
        elif score == 0 or (piece in special and not is_learned):
            entry.type = entry.USER_DEFINED
        elif score <= -PENALTY:
            entry.score = score + PENALTY
            is_cut = owner.cuts_numbers and is_number(piece)
            entry.type = entry.NORMAL if is_cut else entry.UNUSED
        else:
            entry.type = entry.NORMAL
        if entry.type in (entry.UNKNOWN, entry.CONTROL):
            entry.score = 0.0
    write_specs(proto, unknown, _charsmap(found, name))
    return proto.SerializeToString()


def write_specs(proto: Any, unknown: int, charsmap: bytes) -> None:
    """Adds the trainer and normalizer specs to a model with tokens.

    `unknown` is the id of the unknown token; `charsmap` is as in `steps`.
    """
    pieces = [entry.piece for entry in proto.pieces]
    trainer = proto.trainer_spec
    trainer.model_type = trainer.UNIGRAM
    trainer.vocab_size = len(pieces)
    trainer.treat_whitespace_as_suffix = trainer.byte_fallback = False
    trainer.unk_id, trainer.unk_piece = unknown, pieces[unknown]
    trainer.bos_id = trainer.eos_id = -1
    trainer.pad_id = pieces.index(_PAD) if _PAD in pieces else -1
    normalizer = proto.normalizer_spec
    normalizer.name = "precompiled" if charsmap else "identity"
    normalizer.precompiled_charsmap = charsmap
    normalizer.add_dummy_prefix = True
    normalizer.remove_extra_whitespaces = True
    normalizer.escape_whitespaces = True


def check(
    found: Mapping[str, Any], name: str, owner: Owner = NO_ACCENTS
) -> None:
    """Raises InputError if a tokenizer.json splits text unlike its owner."""
    names = [_name(step) for step in tokenizer_json.normalizers(found)]
    names = [x for x in names if x]
    if not re.fullmatch(owner.steps, " ".join(names)):
        raise tokenizer_json.otherwise(name, owner.name, "normalizer", names)
    cutting = _cutting(found)
    if cutting is not None:
        raise tokenizer_json.otherwise(
            name, owner.name, "pre_tokenizer", cutting
        )
    if _keeps_spaces(found, added_tokens.of_tokenizer(found, name)):
        raise InputError(
            f"{name}: the space before an added token is a token of its own, "
            "which is not supported. Let `pre_tokenizer` begin with "
            "WhitespaceSplit, and train with it. "
            "Received: pre_tokenizer.type=Metaspace"
        )
    if found["model"].get("byte_fallback"):
        raise tokenizer_json.otherwise(
            name, owner.name, "model.byte_fallback", True
        )


def _keeps_spaces(found: Mapping[str, Any], added: added_tokens.Tokens) -> bool:
    """Returns whether a space before an added token becomes a token."""
    strips = any(
        step.get("type") == "Strip" and step.get("strip_right")
        for step in tokenizer_json.normalizers(found)
    )
    # Tokens that are normalized are found after spaces are stripped.
    is_kept = any(token.normalized or not strips for token in added)
    return is_kept and len(tokenizer_json.pre_tokenizers(found)) == 1


def _cutting(found: Mapping[str, Any]) -> Any:
    """Returns the settings that do not split words at spaces, or None."""
    cut = tokenizer_json.pre_tokenizers(found)
    types = [step.get("type") for step in cut]
    if types not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        return types
    said = _METASPACE | cut[-1]
    wrong = {key: said[key] for key, x in _METASPACE.items() if said[key] != x}
    return wrong or None


def _pieces(found: Mapping[str, Any], name: str) -> list[tuple[str, float]]:
    """Returns tokens and scores by id, with the added tokens at the end."""
    vocab, unknown = (found["model"].get(key) for key in ("vocab", "unk_id"))
    vocab = vocab if isinstance(vocab, list) else []
    pairs = [x for x in vocab if isinstance(x, list) and len(x) == 2]
    if (
        not vocab
        or not all(
            isinstance(x, str) and type(y) in (int, float) for x, y in pairs
        )
        or len(pairs) < len(vocab)
    ):
        raise InputError(
            f"{name}: `vocab` must be a list of tokens with their scores. Copy "
            f"or download it again. Received: vocab={repr(vocab)[:40]}"
        )
    if type(unknown) is not int or not 0 <= unknown < len(pairs):
        raise InputError(
            f"{name}: `unk_id` must be the place of a token. Copy or download "
            f"it again. Received: unk_id={unknown}"
        )
    pieces = [(str(piece), float(score)) for piece, score in pairs]
    known = {piece for piece, _ in pieces}
    for token in tokenizer_json.added(found):
        if token["content"] in known:
            continue
        if token.get("id") != len(pieces):
            raise InputError(
                f"{name}: the ids of `added_tokens` must go on with those of "
                "the tokens. Copy or download it again. Received: "
                f"content={token['content']!r}, id={token.get('id')}"
            )
        pieces.append((token["content"], 0.0))
    return pieces


def _charsmap(found: Mapping[str, Any], name: str) -> bytes:
    """Returns the model's normalization rules; empty if it has none."""
    for step in tokenizer_json.normalizers(found):
        if step.get("type") == _PRECOMPILED:
            text = step.get("precompiled_charsmap") or ""
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, TypeError, ValueError) as error:
                raise InputError(
                    f"{name}: `precompiled_charsmap` must be base64. Copy or "
                    "download it again. "
                    f"Received: precompiled_charsmap={repr(text)[:40]}"
                ) from error
    return b""
