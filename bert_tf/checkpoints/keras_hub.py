"""Presets of KerasHub: folders, or names that are downloaded."""

import os
from collections.abc import Sequence
from typing import Any

from bert_tf import extras, modeling
from bert_tf.checkpoints import keras_hub_names as table
from bert_tf.checkpoints import names, opened, tf1_files
from bert_tf.encoders import family
from bert_tf.errors import InputError

import keras
import numpy as np
import tensorflow as tf

CONFIG = "config.json"
WEIGHTS = "model.weights.h5"
_TASK = "task.json"
_TASK_WEIGHTS = "task.weights.h5"
_TOKENIZER = "tokenizer.json"
_VOCAB = os.path.join("assets", "tokenizer", "vocabulary.txt")
_SCHEME = "kaggle://"


def find_preset(name: str) -> str | None:
    """Returns the folder of a preset of BERT, downloaded if need be, or None.

    The name is such as bert_tiny_en_uncased, or a kaggle:// address.
    """
    extras.check(
        "keras_hub",
        "keras_hub",
        f"There is neither a file {name}.index nor a folder {name}; presets "
        "of KerasHub",
    )
    # Here and below: slow to import, and of use to those who ask for it.
    import kagglehub
    import keras_hub

    presets = keras_hub.models.BertBackbone.presets
    if name in presets:
        name = presets[name]["kaggle_handle"]
    if not name.startswith(_SCHEME):
        return None
    try:
        return kagglehub.model_download(name.removeprefix(_SCHEME))
    # Its errors, and those of the network, have no common class.
    except Exception as error:
        raise OSError(
            f"The preset {name} can't be downloaded: {error}"
        ) from error


def open_checkpoint(folder: str) -> opened.Checkpoint:
    """Opens a preset's folder."""
    _check_is_bert(opened.read_json(folder, CONFIG), folder)
    task = opened.read_json(folder, _TASK)
    head = table.TASKS.get(task.get("class_name", ""), "encoder")
    _check_head_is_there(head, folder)
    model = _load(folder, head)
    backbone = getattr(model, "backbone", model)
    config = table.to_config(backbone.get_config(), head)
    variables = {v.path: v for v in model.variables}
    rows = {r.ours: r for r in table.table(config, head)}
    labels = model.num_classes if head == "classification" else 0
    shapes = {
        name: shape
        for name, shape in names.shapes(config, head, labels).items()
        if name in rows
    }

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        arrays = {}
        for name in wanted:
            variable = variables[rows[name].theirs]
            value = keras.ops.convert_to_numpy(variable)
            value = np.asarray(value, np.float32)
            value = value.T if rows[name].transposed else value
            arrays[name] = value.reshape(shapes[name])
        return arrays

    tokenizer = opened.read_json(folder, _TOKENIZER).get("config", {})
    return opened.Checkpoint(
        path=folder,
        format="keras_hub",
        shapes=shapes,
        read=read,
        config=config,
        vocab=opened.read_vocab(os.path.join(folder, _VOCAB)),
        do_lower_case=tokenizer.get("lowercase"),
    )


def _load(folder: str, head: str) -> keras.Model:
    extras.check("keras_hub", "keras_hub", "Presets of KerasHub")
    import keras_hub

    paths = [os.path.join(folder, n) for n in (WEIGHTS, _TASK_WEIGHTS)]
    for plain in filter(None, map(tf1_files.not_weights, paths)):
        raise tf1_files.UnreadableError(plain)
    # The second names the parts of what is large.
    here = {WEIGHTS, "model.weights.json"} & set(tf.io.gfile.listdir(folder))
    if not here:
        raise tf1_files.UnreadableError(
            f"The preset {folder} is not all there: {WEIGHTS} does not exist. "
            "Download it again."
        )
    models = keras_hub.models
    classes = {
        "classification": models.BertTextClassifier,
        "masked_lm": models.BertMaskedLM,
    }
    try:
        return classes.get(head, models.BertBackbone).from_preset(folder)
    # Of a file that is not there or cut off, and of one that has other layers
    # or shapes than config.json says.
    except (OSError, ValueError, KeyError) as error:
        raise tf1_files.UnreadableError(
            f"The preset {folder} can't be read, it is truncated, not all "
            "there or not what its config.json says. Download it again. "
            f"KerasHub says: {error}"
        ) from error


def _check_head_is_there(head: str, folder: str) -> None:
    """Raises UnreadableError where KerasHub would make up the head."""
    path = os.path.join(folder, _TASK_WEIGHTS)
    if head != "encoder" and not tf.io.gfile.exists(path):
        raise tf1_files.UnreadableError(
            f"The preset {folder} is not all there: {_TASK} says that it has "
            f"a {head} head, whose weights are in {_TASK_WEIGHTS}, and there "
            "is no such file. Download it again, or remove "
            f"{_TASK} to use the encoder alone."
        )


def _check_is_bert(values: dict[str, Any], folder: str) -> None:
    kind = values.get("class_name")
    if kind != "BertBackbone":
        raise InputError(
            f"{os.path.join(folder, CONFIG)}: only BERT can be read, and this "
            f"is another encoder. Received: class_name={kind}"
        )


def write(
    folder: str, source: opened.Checkpoint, config: modeling.BertConfig
) -> set[str]:
    """Fills an empty folder with a preset; returns the names of weights."""
    extras.check("keras_hub", "keras_hub", "Presets of KerasHub")
    import keras_hub

    models = keras_hub.models
    head = table.head_there(names.find_head(source.shapes, source.path))
    rows = table.table(config, head)
    backbone = models.BertBackbone(**table.from_config(config))
    tokenizer = None
    if source.vocab is not None:
        lower = bool(source.do_lower_case)
        tokenizer = models.BertTokenizer(
            opened.pieces(source.vocab), lowercase=lower, strip_accents=lower
        )
    length = config.max_position_embeddings
    if head == "classification":
        model = models.BertTextClassifier(
            backbone,
            *source.shapes["output_bias"],
            preprocessor=tokenizer
            and models.BertTextClassifierPreprocessor(tokenizer, length),
        )
    elif head == "masked_lm":
        model = models.BertMaskedLM(
            backbone,
            preprocessor=tokenizer
            and models.BertMaskedLMPreprocessor(tokenizer, length),
        )
    else:
        model = backbone
    written = _assign(model, rows, source)
    model.save_to_preset(folder)
    if model is backbone and tokenizer is not None:
        tokenizer.save_to_preset(folder)
    return written


def _assign(
    model: Any, rows: Sequence[family.Row], source: opened.Checkpoint
) -> set[str]:
    """Sets the variables that the source has; returns their names."""
    variables = {v.path: v for v in model.variables}
    present = {row.ours: row for row in rows if row.ours in source.shapes}
    for name, value in source.read(list(present)).items():
        variable = variables[present[name].theirs]
        value = value.T if present[name].transposed else value
        variable.assign(value.reshape(variable.shape))
    return set(present)
