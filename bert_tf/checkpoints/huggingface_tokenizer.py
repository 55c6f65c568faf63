"""What folders of Hugging Face's transformers say of their tokenizer."""

import os
from collections.abc import Mapping
from typing import Any

from bert_tf import terminals, vocabularies
from bert_tf.checkpoints import opened, tf1_files, tokenizer_probe
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    tokenizer_config,
    tokenizer_json,
    tokenizer_rows,
)

from absl import logging

_WORD_PIECE, _PAIRS = "WordPiece", "BPE"
# A class that splits as the families' do.
_SAME_CLASS = "MobileBertTokenizer"


def read_vocab(folder: str) -> vocabularies.Files | None:
    """Returns the vocabulary of a folder; None if it has none of ours.

    Raises:
        tf1_files.UnreadableError: Its tokenizer gives different tokens than
            ours, or other special tokens or none, or its WordPiece vocabulary
            can't be read.
    """
    _check_class(folder)
    found = _find(folder)
    if found is not None:
        _check_rows(folder, found)
        _check_special(folder, found)
        tokenizer_probe.check(folder, found)
        _warn_of_mask(folder, found)
    return found


def _warn_of_mask(folder: str, files: vocabularies.Files) -> None:
    """Warns if the space before a masked word is a token, unlike here.

    transformers 5 writes this for byte pairs, earlier versions did not.
    """
    if vocabularies.KINDS[files.kind].tokenizer != _PAIRS:
        return
    entries = tokenizer_json.added(_read_tokenizer(folder))
    keeps = {x["content"] for x in entries if x.get("lstrip") is False}
    if not keeps:
        return
    try:
        vocabulary = vocabularies.read(files, False, folder)
    except InputError:
        return  # The error is explained where the vocabulary is used.
    mask = vocabulary.special.mask.text
    if vocabulary.before_words and mask in keeps:
        logging.warning(
            "%s: the space before %s is a separate token. bert_tf leaves it "
            'out, so predictions for masked words differ. Set "lstrip": true '
            "there if the model was pre-trained without it.",
            *(os.path.join(folder, tokenizer_json.FILE), mask),
        )


def _check_rows(folder: str, files: vocabularies.Files) -> None:
    """Raises UnreadableError if transformers adds no special tokens."""
    kind = _read_tokenizer_config(folder).get("tokenizer_class")
    if kind not in tokenizer_config.GENERIC:
        return  # Other classes add them without the file's help.
    whole = _read_tokenizer(folder)
    model = tokenizer_json.kind(whole) if whole.get("model") else None
    if model != vocabularies.KINDS[files.kind].tokenizer:
        return  # Another model's, which is ignored.
    if tokenizer_rows.has_rows(whole):
        return
    if not vocabularies.read(files, False, folder).may_lack_template:
        path = os.path.join(folder, tokenizer_json.FILE)
        raise tf1_files.UnreadableError(
            f"{path} has no post_processor, so transformers adds no special "
            "tokens to a text, and bert_tf always does. If the model was "
            "trained with them, add a post_processor, or set tokenizer_class "
            "in tokenizer_config.json to the class of "
            f"the model. Received: tokenizer_class={kind}"
        )


def _check_special(folder: str, files: vocabularies.Files) -> None:
    """Raises UnreadableError if transformers uses other special tokens."""
    said = _read_tokenizer_config(folder)
    is_generic = said.get("tokenizer_class") in tokenizer_config.GENERIC
    if is_generic and _read_tokenizer(folder).get("model"):
        return  # They follow tokenizer.json.
    if tokenizer_config.DECODER not in said:
        said |= opened.read_json(folder, tokenizer_config.SPECIAL)
    try:
        vocabulary = vocabularies.read(files, False, folder)
        special = vocabulary.special
    except InputError:
        return  # The error is explained where the vocabulary is used.
    for use in ("cls", "sep", "unk"):
        value, own = said.get(f"{use}_token"), getattr(special, use)
        text = value.get("content") if isinstance(value, dict) else value
        # A kind may lack the use, or a folder name what its vocabulary lacks.
        is_known = isinstance(text, str) and text in vocabulary.ids
        if is_known and own.id >= 0 and text != own.text:
            raise tf1_files.UnreadableError(
                f"{folder}: {use}_token in tokenizer_config.json or "
                f"special_tokens_map.json must be {own.text!r}, which bert_tf "
                "uses with this vocabulary. If the model was trained with it, "
                "correct the file; if not, it can't be used here. "
                f"Received: {use}_token={text!r}"
            )


def _check_class(folder: str) -> None:
    """Raises InputError for a class of tokenizers that no family supports."""
    kind = _read_tokenizer_config(folder).get("tokenizer_class")
    for row in families.FAMILIES.values():
        if kind and row.huggingface and row.huggingface.tokenizer == kind:
            row.check_takes_texts(folder)


def _find(folder: str) -> vocabularies.Files | None:
    found = vocabularies.find(folder)
    if found is not None or not _read_tokenizer(folder).get("model"):
        return found
    path = os.path.join(folder, tokenizer_json.FILE)
    kind = tokenizer_json.model_type(path)
    known = {x.tokenizer for x in vocabularies.KINDS.values()}
    if kind not in known:
        logging.info(
            "No vocabulary is read from %s: its tokenizer is none of %s. "
            "Received: type=%s",
            path,
            ", ".join(sorted(known - {""})),
            kind,
        )
        return None
    try:
        return vocabularies.open_files(path)
    except InputError as error:
        # Other models' byte pairs and SentencePiece models have other rules.
        if kind == _WORD_PIECE:
            raise tf1_files.UnreadableError(str(error)) from error
        logging.warning("No vocabulary is read from %s: %s", folder, error)
        return None


def _read_tokenizer(folder: str) -> Mapping[str, Any]:
    data = opened.read_bytes(os.path.join(folder, tokenizer_json.FILE))
    found = tokenizer_json.parse(data or b"")
    if found is None or not isinstance(found.get("normalizer") or {}, dict):
        return opened.read_json(
            folder, tokenizer_json.FILE, model=dict, normalizer=dict
        )
    return found


def _read_tokenizer_config(folder: str) -> dict[str, Any]:
    found = opened.read_json(
        folder, tokenizer_config.FILE, do_lower_case=bool, tokenizer_class=str
    )
    model = opened.read_json(folder, tokenizer_config.MODEL)
    return tokenizer_config.with_class(found, model)


def lower_cases(folder: str) -> bool | None:
    """Returns whether the tokenizer lower-cases; None if nothing says so."""
    return tokenizer_config.lower_cases(
        _read_tokenizer_config(folder), _read_tokenizer(folder)
    )


def read_length(folder: str, name: str, key: str) -> float | None:
    """Returns a max number of tokens in a JSON file; None if it has none.

    Tokenizers without a limit write 1e30. Raises InputError unless the number
    is positive.
    """
    length = opened.read_json(folder, name, **{key: float}).get(key)
    if length is not None and not length >= 1:
        raise InputError(
            f"{os.path.join(folder, name)}: `{key}` must be positive. "
            f"Correct it, or remove it. Received: {key}={length}"
        )
    return length


def warn_of_side(folder: str, head: str) -> None:
    """Warns of a tokenizer that keeps the end of texts that are too long."""
    if _read_tokenizer_config(folder).get("truncation_side") == "left":
        path = os.path.join(folder, tokenizer_config.FILE)
        way_out = (
            " To train on the end of single texts, and predict from it, pass "
            "--long_documents=tail to run_classifier.py."
        )
        terminals.warn_once(
            f"{path} has truncation_side=left: transformers keeps the end of a "
            "text that is too long, and bert_tf the start."
            f"{way_out * (head == 'classification')}"
        )


def warn_of_class(folder: str) -> None:
    """Warns of a class of tokenizers that may split text by other rules."""
    kind = _read_tokenizer_config(folder).get("tokenizer_class")
    if kind and not _is_supported(kind):
        logging.warning(
            "The tokenizer of %s has tokenizer_class=%s, which is not "
            "supported: the tokens of a text may differ from training.",
            folder,
            kind,
        )


def _is_supported(kind: str) -> bool:
    """Whether a class splits as a family's does, or as tokenizer.json says."""
    rows = [row for row in families.FAMILIES.values() if row.vocabularies]
    same = {f"{row.config.architectures}Tokenizer" for row in rows}
    return kind in tokenizer_config.GENERIC or (
        kind.removesuffix("Fast") in {*same, _SAME_CLASS}
    )
