"""The tokenizer's files in folders of Hugging Face's transformers."""

import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf import extras, files, tokenization, vocab_files
from bert_tf.checkpoints import opened, tf1_files
from bert_tf.errors import InputError

from absl import logging

_VOCAB = "vocab.txt"
_TOKENIZER = "tokenizer.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"
_WORD_PIECE = "WordPiece"
# Classes that split as ours does, or as tokenizer.json says.
_SAME_CLASS = re.compile(
    r"(Bert|DistilBert|Electra|MobileBert)Tokenizer(Fast)?"
    r"|PreTrainedTokenizerFast|TokenizersBackend"
)


def read_vocab(folder: str) -> str | None:
    """Returns the text of vocab.txt; None if there are no word pieces."""
    text = opened.read_vocab(os.path.join(folder, _VOCAB))
    if text is not None:
        return text
    model = _read_tokenizer(folder).get("model")
    if not model:
        return None
    kind = _tokenizer_kind(model)
    if kind != _WORD_PIECE:
        logging.info(
            "No vocabulary is read from %s: its tokenizer is no WordPiece. "
            "Received: type=%s",
            os.path.join(folder, _TOKENIZER),
            kind,
        )
        return None
    ids = model.get("vocab", {})
    if not isinstance(ids, Mapping) or set(ids.values()) != {*range(len(ids))}:
        raise tf1_files.UnreadableError(
            f"{os.path.join(folder, _TOKENIZER)}: `vocab` must map the pieces "
            "to 0, 1, 2 and so on. Copy or download it again, or bring the "
            f"model's {_VOCAB}. Received: vocab={repr(ids)[:40]}"
        )
    lines = sorted(ids, key=lambda piece: ids[piece])
    return vocab_files.vocab_text(lines) or None


def _read_tokenizer(folder: str) -> dict[str, Any]:
    return opened.read_json(folder, _TOKENIZER, model=dict, normalizer=dict)


def _read_tokenizer_config(folder: str) -> dict[str, Any]:
    return opened.read_json(
        folder, _TOKENIZER_CONFIG, do_lower_case=bool, tokenizer_class=str
    )


def _tokenizer_kind(model: Mapping[str, Any]) -> str | None:
    """Returns the type of a tokenizer.json's model; None if none is known."""
    # The first files do not name it. Nothing else has a limit for words.
    has_limit = "max_input_chars_per_word" in model
    return model.get("type", _WORD_PIECE if has_limit else None)


def lower_cases(folder: str) -> bool | None:
    """Returns whether the tokenizer lower-cases; None if nothing says so."""
    said = _read_tokenizer_config(folder).get("do_lower_case")
    if said is None:
        tokenizer = _read_tokenizer(folder)
        said = (tokenizer.get("normalizer") or {}).get("lowercase")
    return said


def warn_of_others(
    folder: str, values: Mapping[str, Any], do_lower_case: bool | None
) -> None:
    """Warns of what the tokenizer of a folder does otherwise than ours."""
    said = _read_tokenizer_config(folder)
    rules = _read_tokenizer(folder).get("normalizer") or {}
    strips = said.get("strip_accents", rules.get("strip_accents"))
    splits = said.get(
        "tokenize_chinese_chars", rules.get("handle_chinese_chars")
    )
    kind = said.get("tokenizer_class") or values.get("tokenizer_class")
    others = []
    # None: accents go where letters become lower case, as ours do.
    if None not in (strips, do_lower_case) and strips != do_lower_case:
        others.append(f"strip_accents={strips}")
    if splits is False:
        others.append("tokenize_chinese_chars=False")
    if kind and not _SAME_CLASS.fullmatch(kind):
        others.append(f"tokenizer_class={kind}")
    if others:
        logging.warning(
            "The tokenizer of %s has %s, which ours has not: texts get other "
            "pieces than in its training.",
            folder,
            ", ".join(others),
        )


def write(
    folder: str,
    vocab: str,
    do_lower_case: bool,
    max_length: int,
    tokenizer_class: str = "BertTokenizer",
) -> None:
    """Writes vocab.txt and what AutoTokenizer looks for.

    It raises InputError if no pieces stand for the ends of a row.
    """
    extras.check("tokenizers", "huggingface", "Folders for transformers")
    # Of use here only, and slow to import.
    import tokenizers
    from tokenizers import (
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    ids = {piece: i for i, piece in enumerate(opened.pieces(vocab))}
    cls, sep = vocab_files.CLS, vocab_files.SEP
    missing = [t for t in (cls, sep) if t not in ids]
    if missing:
        raise InputError(
            "A vocabulary must have the pieces [CLS] and [SEP], which every "
            "row begins and ends with; give another by --vocab_file. "
            f"Received: a vocabulary without {', '.join(missing)}"
        )
    files.write_text(os.path.join(folder, _VOCAB), vocab)
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(
            ids,
            unk_token=tokenization.UNKNOWN,
            max_input_chars_per_word=tokenization.MAX_CHARS_PER_WORD,
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=do_lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = [t for t in tokenization.SPECIAL_TOKENS if t in ids]
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.BertProcessing(
        (sep, ids[sep]), (cls, ids[cls])
    )
    files.write_text(
        os.path.join(folder, _TOKENIZER), tokenizer.to_str(pretty=True)
    )
    tokens = {f"{t[1:-1].lower()}_token": t for t in special}
    files.write_json(os.path.join(folder, "special_tokens_map.json"), tokens)
    files.write_json(
        os.path.join(folder, _TOKENIZER_CONFIG),
        {
            **tokens,
            "do_lower_case": do_lower_case,
            "model_max_length": max_length,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "tokenizer_class": tokenizer_class,
        },
    )
