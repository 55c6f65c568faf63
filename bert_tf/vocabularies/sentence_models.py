"""Reads SentencePiece models: the files `*.model`.

A model contains its tokens with their scores and types, and the rules by which
it normalizes text. Models that split text in another way than `sentence_pieces`
are rejected with the field that differs.
"""

import functools
from typing import Any

from bert_tf.errors import InputError
from bert_tf.storage import input_files

# Represents a space, at the beginning of each word.
SPACE = "▁"

_GIVE = "Give the spiece.model or 30k-clean.model of an ALBERT"

# Required settings: field of the proto, value, and its meaning.
_NEEDED = (
    ("normalizer_spec.add_dummy_prefix", True, "a space before the text"),
    ("normalizer_spec.remove_extra_whitespaces", True, "single spaces"),
    ("normalizer_spec.escape_whitespaces", True, "spaces as tokens"),
    ("trainer_spec.treat_whitespace_as_suffix", False, "spaces before words"),
    ("trainer_spec.byte_fallback", False, "an unknown token, not bytes"),
)


def parse(model: bytes, name: str) -> Any:
    """Returns the checked `ModelProto` of a model.

    Raises:
        InputError: This is not a complete SentencePiece model, not a unigram
            model, or it splits text differently. `name` is the file name.
    """
    # Imported here, so that workers for WordPiece start without it.
    from google.protobuf import message

    try:
        proto = _proto(model)
    except message.DecodeError as error:
        raise _no_model(model, name) from error
    whole = proto.HasField("trainer_spec") and proto.HasField("normalizer_spec")
    if not proto.pieces or not whole:
        raise _no_model(model, name)
    kind = proto.trainer_spec.model_type
    if kind != proto.trainer_spec.UNIGRAM:
        kind = proto.trainer_spec.ModelType.Name(kind).lower()
        raise InputError(
            f"{name}: sentence pieces must be a model of type unigram. {_GIVE},"
            " or learn one: learn_vocabulary.py --kind=sentence_pieces. "
            f"Received: model_type={kind}"
        )
    for field, value, meaning in _NEEDED:
        spec, key = field.split(".")
        if getattr(getattr(proto, spec), key) != value:
            raise InputError(
                f"{name}: this model splits text in a way that is not ALBERT's,"
                f" which has {meaning} ({key}={value}). {_GIVE}. "
                f"Received: {key}={not value}"
            )
    problem = _problem_of_pieces(model)
    if problem:
        raise InputError(f"{name}: {problem}")
    return proto


def _proto(model: bytes) -> Any:
    from sentencepiece import sentencepiece_model_pb2

    # Type checkers don't see its attributes, which the import creates.
    messages: Any = sentencepiece_model_pb2
    proto = messages.ModelProto()
    proto.ParseFromString(model)
    return proto


def _no_model(model: bytes, name: str) -> InputError:
    problem = "it is empty" if not model else "it is another file, or cut off"
    explained = input_files.explain_text(model[:64]) if model else None
    return InputError(
        f"{name} is no model of sentencepiece: {explained or problem}. {_GIVE}."
        f" Received: {len(model)} bytes, the first {model[:12]!r}"
    )


# Of the last models, which are parsed for several purposes.
@functools.lru_cache(maxsize=2)
def _problem_of_pieces(model: bytes) -> str:
    """Describes why the tokens of a model can't be used here, or ""."""
    pieces = _proto(model).pieces
    # Words are split one by one, so no token may reach into the next word.
    for index, piece in enumerate(pieces):
        text = piece.piece
        if (SPACE in text[1:] or " " in text) and (
            piece.type in (piece.NORMAL, piece.USER_DEFINED)
        ):
            return (
                f"a token must not reach over a space. {_GIVE}, or "
                "learn one with split_by_whitespace. Received: token "
                f"{index} {text!r}"
            )
    if SPACE not in {piece.piece for piece in pieces}:
        return (
            f"sentence pieces must hold {SPACE!r}, a space by itself. "
            f"{_GIVE}. Received: {len(pieces)} tokens without it"
        )
    return ""


def processor(model: bytes, name: str) -> Any:
    """Returns the `SentencePieceProcessor` of a model, or raises InputError."""
    try:
        return _processor(model)
    except RuntimeError as error:
        raise InputError(
            f"{name}: sentencepiece can't use this model. {_GIVE}. "
            f"Received: {str(error).splitlines()[0]}"
        ) from error


# A vocabulary and its tokenizers share it; for 250,000 tokens it takes 0.3 s.
@functools.lru_cache(maxsize=1)
def _processor(model: bytes) -> Any:
    import sentencepiece

    made = sentencepiece.SentencePieceProcessor()
    made.LoadFromSerializedProto(model)
    return made


@functools.lru_cache(maxsize=1)
def rules(model: bytes) -> tuple[tuple[str, str], ...]:
    """Returns the replacements of a model's normalization, source -> output.

    At each position of a text the longest match is replaced. A model without
    rules has no replacements.
    """
    spec = parse(model, "the model").normalizer_spec
    return _rules(spec.precompiled_charsmap)


# A rule set is decompiled in 0.5 s, and most models have the same one.
@functools.lru_cache(maxsize=1)
def _rules(charsmap: bytes) -> tuple[tuple[str, str], ...]:
    import sentencepiece

    if not charsmap:
        return ()
    proto = _proto(b"")
    proto.normalizer_spec.precompiled_charsmap = charsmap
    normalizer = sentencepiece.SentencePieceNormalizer(
        model_proto=proto.SerializeToString()
    )
    return tuple(normalizer.Decompile())
