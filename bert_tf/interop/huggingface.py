"""Folders of Hugging Face's transformers: config.json and the weights."""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import checkpoints, files, modeling, tokenization
from bert_tf.interop import huggingface_names as table
from bert_tf.interop import names, opened

import numpy as np
import safetensors
import tensorflow as tf
from absl import logging
from safetensors import numpy as safetensors_numpy

CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_TORCH = "pytorch_model.bin"
FILES = (_WEIGHTS, _INDEX, _TORCH)
_OTHER_WEIGHTS = ("tf_model.h5", "flax_model.msgpack")
_VOCAB = "vocab.txt"
_TOKENIZER = "tokenizer.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"
_WORD_PIECE = "WordPiece"
# Classes that split as ours does, or as tokenizer.json says.
_SAME_CLASS = re.compile(
    r"(Bert|DistilBert|Electra|MobileBert)Tokenizer(Fast)?"
    r"|PreTrainedTokenizerFast|TokenizersBackend"
)
_PAD = tokenization.SPECIAL_TOKENS[0]

_Shapes = dict[str, tuple[int, ...]]
_Reader = Callable[[str], np.ndarray]


# ---- Reading ----------------------------------------------------------------


def open_checkpoint(folder: str) -> opened.Checkpoint:
    """Opens a folder with a config.json and weights."""
    if not tf.io.gfile.exists(os.path.join(folder, CONFIG)):
        raise ValueError(
            f"The folder {folder} has weights of Hugging Face but no {CONFIG}, "
            "which says what they are. Copy or download it, too."
        )
    values = opened.read_json(folder, CONFIG, hidden_act=str)
    try:
        config = table.to_config(values)
        stored, read_stored = _open_weights(folder)
        today = table.canonical(stored)
        if "cls.predictions.bias" not in today:
            bias = today.pop("cls.predictions.decoder.bias", None)
            today |= {"cls.predictions.bias": bias} if bias else {}
        head = table.find_head(values, today)
        labels = _labels(values, head)
    except checkpoints.UnreadableError:
        raise
    except ValueError as error:
        path = os.path.join(folder, CONFIG)
        raise ValueError(f"{path}: {error}") from error
    _check_tied(folder, today, read_stored)
    rows = {
        row.ours: row
        for row in table.table(head, config.num_hidden_layers)
        if row.theirs in today
    }
    shapes = {
        name: stored[today[row.theirs]][:: -1 if row.transposed else 1]
        for name, row in rows.items()
    }
    used = {row.theirs for row in rows.values()} | table.TIED.keys()
    left_over = sorted(today[name] for name in today.keys() - used)
    _check_layers(left_over, config, folder)
    names.check(config, shapes, folder)

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        arrays = {}
        for name in wanted:
            value = read_stored(today[rows[name].theirs])
            _check_not_quantized(value, today[rows[name].theirs], folder)
            value = np.asarray(value, np.float32)
            arrays[name] = value.T if rows[name].transposed else value
        return arrays

    do_lower_case = _lower_cases(folder)
    _warn_of_tokenizer(folder, values, do_lower_case)
    return opened.Checkpoint(
        path=folder,
        format="hf",
        shapes=shapes,
        read=read,
        config=config,
        vocab=_read_vocab(folder),
        do_lower_case=do_lower_case,
        labels=labels,
        left_over=tuple(left_over),
    )


def _check_not_quantized(value: np.ndarray, name: str, folder: str) -> None:
    """Raises UnreadableError where scales are needed to know the weights."""
    if value.dtype.kind in "iub":
        raise checkpoints.UnreadableError(
            f"{folder}: {name} holds whole numbers ({value.dtype}): the model "
            "is quantized, and its weights can't be read. Give the model that "
            "it was made from."
        )


def _check_layers(
    left_over: Sequence[str], config: modeling.BertConfig, folder: str
) -> None:
    """Raises ValueError where layers have tensors that would be left out."""
    for name in left_over:
        found = re.search(r"encoder\.layer\.(\d+)\.", name)
        if found and int(found[1]) >= config.num_hidden_layers:
            raise ValueError(
                f"{folder}: the tensors are not those of config.json: it says "
                f"num_hidden_layers={config.num_hidden_layers}, and there is "
                f"{name}."
            )
        if found:
            raise ValueError(
                f"{folder}: {name} is no tensor of BERT's layers. Merge "
                "adapters (LoRA) into the weights first; layers with other "
                "parts can't be read."
            )


def _check_tied(
    folder: str, today: Mapping[str, str], read_stored: _Reader
) -> None:
    """Raises ValueError where a second copy is another tensor."""
    for copy, original in table.TIED.items():
        if copy not in today or original not in today:
            continue
        second, first = read_stored(today[copy]), read_stored(today[original])
        if not np.array_equal(second, first):
            raise ValueError(
                f"{folder}: {copy} is another tensor than {original}. "
                "The output layer of BERT is the table of word embeddings: "
                "a model without tied weights can't be read."
            )


def _labels(values: Mapping[str, Any], head: str) -> tuple[str, ...] | None:
    """Returns the names of the classes, unless they are but numbers.

    Args:
        values: of a config.json.
        head: what the model has. A classifier of one class gives a score,
            whatever its name, unless a text may have several classes or none.

    Raises:
        ValueError: The classes have no numbers.
    """
    by_id = values.get("id2label") or {}
    try:
        labels = [by_id[key] for key in sorted(by_id, key=int)]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`id2label` must map the numbers of the classes to their names, "
            f'such as {{"0": "no", "1": "yes"}}. Received: id2label={by_id}'
        ) from error
    is_several = values.get("problem_type") == modeling.MULTI_LABEL
    if head == "classification" and len(labels) == 1 and not is_several:
        return None
    numbered = [f"LABEL_{i}" for i in range(len(labels))]
    return None if labels == numbered else tuple(labels)


def _open_weights(folder: str) -> tuple[_Shapes, _Reader]:
    """Returns the shapes of the stored tensors, and what reads one."""
    if tf.io.gfile.exists(os.path.join(folder, _WEIGHTS)):
        return _open_safetensors(folder, [_WEIGHTS])
    if tf.io.gfile.exists(os.path.join(folder, _INDEX)):
        index = opened.read_json(folder, _INDEX, weight_map=dict)
        names_of_files = set(map(str, (index.get("weight_map") or {}).values()))
        if not names_of_files:
            raise checkpoints.UnreadableError(
                f"{os.path.join(folder, _INDEX)} names no files of weights: "
                "`weight_map` is not there. Download it again."
            )
        return _open_safetensors(folder, sorted(names_of_files))
    if tf.io.gfile.exists(os.path.join(folder, _TORCH)):
        return _open_torch(os.path.join(folder, _TORCH))
    here = sorted(set(tf.io.gfile.listdir(folder)) & set(_OTHER_WEIGHTS))
    raise ValueError(
        f"There are no weights beside it, none of {', '.join(FILES)}. "
        + (f"{here[0]} can't be read. " if here else "")
        + "Download one of them, or write it with save_pretrained."
    )


def _open_safetensors(
    folder: str, files: Sequence[str]
) -> tuple[_Shapes, _Reader]:
    shapes, handles = {}, {}
    for name in files:
        path = os.path.join(folder, name)
        if not tf.io.gfile.exists(path):
            raise checkpoints.UnreadableError(
                f"{folder} is not all there: {_INDEX} names {name}, and there "
                "is no such file. Download it again."
            )
        try:
            # It is mapped into memory: a copy may go once it is open.
            with _local(path) as local:
                handle = safetensors.safe_open(local, "np")
        except safetensors.SafetensorError as error:
            size = tf.io.gfile.stat(path).length
            raise checkpoints.UnreadableError(
                checkpoints.not_weights(path)
                or f"{path} can't be read, it is truncated or corrupt, such as "
                f"a download that was cut off: {error}. Download it again. "
                f"Received: {size} bytes"
            ) from error
        for key in handle.keys():  # noqa: SIM118 (it is no dict)
            shapes[key] = tuple(handle.get_slice(key).get_shape())
            handles[key] = handle

    def read(name: str) -> np.ndarray:
        return handles[name].get_tensor(name)

    return shapes, read


def _open_torch(path: str) -> tuple[_Shapes, _Reader]:
    try:
        import torch
    except ImportError as error:
        raise ValueError(
            f"{path} can only be read where PyTorch is installed: pip install "
            "torch. Files that end in .safetensors need nothing."
        ) from error
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            # Nothing but tensors is unpickled: the file can run no code.
            tensors = torch.load(file, map_location="cpu", weights_only=True)
    # PyTorch says of a bad file whatever its unpickler stumbles over.
    except Exception as error:
        # It says more than a screenful, and to run what is in the file.
        found = re.search(r"Unsupported [^\n]*", str(error))
        raise checkpoints.UnreadableError(
            checkpoints.not_weights(path)
            or f"{path} can't be read, it is truncated, corrupt or holds more "
            "than tensors. Download it again, or write it with "
            "save_pretrained. Received: "
            f"{found[0] if found else str(error).partition(chr(10))[0]}"
        ) from error
    _check_are_tensors(tensors, path)

    def read(name: str) -> np.ndarray:
        tensor = tensors[name]
        return (
            tensor.float() if tensor.is_floating_point() else tensor
        ).numpy()

    return {n: tuple(x.shape) for n, x in tensors.items()}, read


def _check_are_tensors(tensors: Any, path: str) -> None:
    """Raises UnreadableError unless a file maps names to tensors."""
    import torch

    if not isinstance(tensors, Mapping):
        found = type(tensors).__name__
    else:
        others = {
            name: type(value).__name__
            for name, value in tensors.items()
            if not isinstance(value, torch.Tensor)
        }
        found = ", ".join(f"{n}: {kind}" for n, kind in others.items())
    if found:
        raise checkpoints.UnreadableError(
            f"{path} must map names to tensors, and nothing else. Save the "
            f"model's state_dict alone. Received: {found}"
        )


@contextlib.contextmanager
def _local(path: str) -> Iterator[str]:
    """Yields the path of a file on this machine, a copy if it is remote."""
    if "://" not in path:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, os.path.basename(path))
        tf.io.gfile.copy(path, copy)
        yield copy


# ---- The vocabulary ---------------------------------------------------------


def _read_vocab(folder: str) -> str | None:
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
        raise checkpoints.UnreadableError(
            f"{os.path.join(folder, _TOKENIZER)}: `vocab` must map the pieces "
            "to 0, 1, 2 and so on. Copy or download it again, or bring the "
            f"model's {_VOCAB}. Received: vocab={repr(ids)[:40]}"
        )
    lines = sorted(ids, key=lambda piece: ids[piece])
    return tokenization.vocab_text(lines) or None


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


def _lower_cases(folder: str) -> bool | None:
    said = _read_tokenizer_config(folder).get("do_lower_case")
    if said is None:
        tokenizer = _read_tokenizer(folder)
        said = (tokenizer.get("normalizer") or {}).get("lowercase")
    return said


def _warn_of_tokenizer(
    folder: str, values: Mapping[str, Any], do_lower_case: bool | None
) -> None:
    """Warns of what the tokenizer of a folder does otherwise than ours.

    Args:
        folder: of the model.
        values: of its config.json.
        do_lower_case: whether it lower-cases, None if that is not known.
    """
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


def _write_tokenizer(
    folder: str, vocab: str, do_lower_case: bool, max_length: int
) -> None:
    """Writes vocab.txt and what AutoTokenizer looks for.

    Raises:
        ValueError: The vocabulary lacks what stands at the ends of a row.
    """
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
    missing = [t for t in ("[CLS]", "[SEP]") if t not in ids]
    if missing:
        raise ValueError(
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
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
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
            "tokenizer_class": "BertTokenizer",
        },
    )


# ---- Writing ----------------------------------------------------------------


def write(
    folder: str, source: opened.Checkpoint, config: modeling.BertConfig
) -> set[str]:
    """Writes a folder that transformers loads.

    Args:
        folder: an empty one.
        source: what to write. Its names make one head.
        config: its architecture.

    Returns:
        Which of the source's weights were written.
    """
    head = names.find_head(source.shapes, source.path)
    rows = [
        row
        for row in table.table(head, config.num_hidden_layers)
        if row.ours in source.shapes
        and (row.ours not in names.POOLER or table.has_pooler(head))
    ]
    values = source.read([row.ours for row in rows])
    tensors = {
        table.stored_name(row.theirs, head): np.ascontiguousarray(
            values[row.ours].T if row.transposed else values[row.ours]
        )
        for row in rows
    }
    data = safetensors_numpy.save(tensors, metadata={"format": "pt"})
    with tf.io.gfile.GFile(os.path.join(folder, _WEIGHTS), "wb") as file:
        file.write(data)
    described = table.from_config(config, head, _classes(source, head))
    pieces = opened.pieces(source.vocab or "")
    if _PAD in pieces:
        described["pad_token_id"] = pieces.index(_PAD)
    files.write_json(os.path.join(folder, CONFIG), described)
    if source.vocab is not None:
        _write_tokenizer(
            folder,
            source.vocab,
            bool(source.do_lower_case),
            config.max_position_embeddings,
        )
    return {row.ours for row in rows}


def _classes(source: opened.Checkpoint, head: str) -> Sequence[str] | None:
    """Returns the names of the classes; None for a score or no classes."""
    if source.labels or head not in names.LABELLED:
        return source.labels
    (bias,) = (n for n in names.HEADS[head] if n.endswith("output_bias"))
    (count,) = source.shapes[bias]
    if head == "classification" and count == 1:
        return None
    return [f"LABEL_{i}" for i in range(count)]
