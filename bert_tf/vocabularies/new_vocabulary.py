"""Checks whether a new vocabulary can be written to a path.

The vocabulary must be read again as the same kind and with the same settings,
whatever other files its folder has.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    byte_pair_files,
    byte_pairs,
    tokenizer_config,
    word_pieces,
)

from etils import epath

_BYTES = byte_pairs.BytePairs.kind
_WORDS = word_pieces.WordPiece.kind


def check_name(path: epath.Path, kind: str, others: Collection[str]) -> None:
    """Raises InputError if a file of this name is read as another kind.

    `others` are the kinds that can be written, for the way out.
    """
    row, received = vocabularies.KINDS[kind], f"Received: vocab_file={path}"
    # A kind that checks the content does not accept the new file.
    read_as = next(
        name
        for name in vocabularies.named(path)
        if vocabularies.KINDS[name].fits is None
    )
    if read_as not in (kind, _WORDS):
        way = f", or --kind={read_as}" if read_as in others else ""
        raise InputError(
            f"A file of this name is read as one of {read_as}: give another "
            f"name{way}. {received}"
        )
    if read_as != kind:
        is_plain = not row.files[0].endswith(row.endings)
        usual = f"be {row.files[0]} or " if is_plain else ""
        raise InputError(
            f"The name of a file of {kind} must {usual}end in "
            f"{' or '.join(row.endings)}, by which it is known again. "
            f"{received}"
        )
    if kind == _BYTES and path.name != byte_pair_files.VOCAB:
        raise InputError(
            f"Byte pairs are written as {byte_pair_files.VOCAB}, with "
            f"{byte_pair_files.MERGES} beside it. {received}"
        )


def check_folder(path: epath.Path, kind: str, overwrite: bool) -> None:
    """Raises InputError if files there would be replaced, or replace it."""
    # vocab.json is read as well, and may be new. Its neighbour has the same.
    merges = path.with_name(byte_pair_files.MERGES)
    if kind == _BYTES and merges.exists() and not overwrite:
        raise InputError(
            f"{merges} exists. Pass --overwrite to replace it, or give "
            f"another folder. Received: vocab_file={path}"
        )
    there = read_config(merges if kind == _BYTES else path, kind)
    is_other = vocabularies.KINDS[kind].tokenizer and there.tokenizer
    # WordPiece settings may be meant: see check_settings.
    if is_other or (kind != _WORDS and (there.added or there.settings)):
        raise InputError(
            f"{path.parent} has the files of another tokenizer, such as "
            f"{there.name or path.parent / tokenizer_config.FILE}, which would "
            "be read with the new vocabulary. Give another folder. Received: "
            f"vocab_file={path}"
        )


def check_settings(
    path: epath.Path, settings: Mapping[str, Any], lower: bool, overwrite: bool
) -> None:
    """Raises InputError if settings would not be read with a vocab.txt.

    `lower` is whether text is lower-cased.
    """
    file = path.parent / tokenizer_config.FILE
    if settings and path.name != vocabularies.USUAL_FILE:
        raise InputError(
            f"The settings of a tokenizer are kept in {file.name} next to a "
            f"file named {vocabularies.USUAL_FILE}: write one of this name. "
            f"Received: vocab_file={path}, {json.dumps(settings)}"
        )
    there = read_config(path, _WORDS)
    is_other = bool(there.added)
    is_other |= tokenizer_config.meant(there.settings, lower) != settings
    is_other &= bool(there.added or there.settings) or file.exists()
    if is_other and not (settings and overwrite):
        way = "--overwrite" if settings else "the same --strip_accents"
        raise InputError(
            f"{path.parent} has files that set another tokenizer for its "
            f"{path.name}, such as {file.name}. Give another folder, or "
            f"{way}. Received: vocab_file={path}, {json.dumps(settings)}"
        )


def settings_of(
    base: str | None, do_lower_case: bool, strip_accents: bool | None
) -> dict[str, Any]:
    """Returns the settings of a vocab.txt that are not the default.

    Args:
        base: The vocabulary that it extends, if any, whose settings it has.
        do_lower_case: The casing.
        strip_accents: If not None, this counts instead of the base's setting.

    Raises:
        InputError: The base has added tokens.
    """
    found: dict[str, Any] = {}
    if base:
        there = read_config(epath.Path(base), _WORDS)
        if there.added:
            raise InputError(
                f"{base} has added tokens, whose IDs new tokens would take. "
                "Extend the vocabulary of a model without them. "
                f"Received: {there.added[0].content!r} next to --extend_vocab"
            )
        found |= there.settings
    if strip_accents is not None:
        found["strip_accents"] = strip_accents
    return tokenizer_config.meant(found, do_lower_case)


def read_config(path: epath.Path, kind: str) -> tokenizer_config.Config:
    """Reads the settings in the files next to a vocabulary of a kind."""
    row = vocabularies.KINDS[kind]
    is_named = path.name in row.files
    return tokenizer_config.read(path, is_named, row.settings, row.tokenizer)
