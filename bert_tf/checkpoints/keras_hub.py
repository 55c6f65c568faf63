"""Presets of KerasHub: folders, or names that are downloaded."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import (
    characters,
    extras,
    files,
    modeling,
    terminals,
    vocabularies,
)
from bert_tf.checkpoints import keras_hub_names, names, opened, tf1_files
from bert_tf.encoders import families, family, foreign
from bert_tf.errors import InputError
from bert_tf.storage import input_files, weight_files
from bert_tf.vocabularies import byte_pairs, sentence_pieces

import keras
import numpy as np
import tensorflow as tf
from absl import logging

CONFIG = "config.json"
WEIGHTS = weight_files.KERAS_HUB
_TASK = "task.json"
_TASK_WEIGHTS = weight_files.KERAS_HUB_TASK
_TOKENIZER = "tokenizer.json"
_PREPROCESSOR = "preprocessor.json"
_ASSETS = os.path.join("assets", "tokenizer")
_VOCABULARIES = ("vocabulary.txt", "vocabulary.json", "vocabulary.spm")
# Patterns of the files of a preset besides the config, the tokenizer and the
# weights.
FILES = (_TASK, "metadata.json", _PREPROCESSOR, f"{_ASSETS}/*")
_SCHEME = "kaggle://"
# Our name of a setting -> KerasHub's.
_SETTINGS = {
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "split_on_cjk",
    "add_prefix_space": "add_prefix_space",
}


def find_preset(name: str) -> str | None:
    """Returns the folder of a preset, downloaded if need be, or None.

    The name is such as bert_tiny_en_uncased, or a kaggle:// address.
    """
    extras.check(
        "keras_hub",
        "keras-hub",
        f"There is neither a file {name}.index nor a folder {name}; presets "
        "of KerasHub",
    )
    # Here and below: slow to import, and of use to those who ask for it.
    import kagglehub
    import keras_hub

    for row in families.FAMILIES.values():
        if row.keras_hub is None:
            continue
        presets = getattr(keras_hub.models, row.keras_hub.backbone).presets
        if name in presets:
            name = presets[name]["kaggle_handle"]
            break
    if not name.startswith(_SCHEME):
        return None
    try:
        return kagglehub.model_download(name.removeprefix(_SCHEME))
    # Its errors and network errors have no common class.
    except Exception as error:
        raise OSError(
            f"The preset {name} can't be downloaded: {error}"
        ) from error


def open_checkpoint(folder: str) -> opened.Checkpoint:
    """Opens a preset's folder."""
    encoder = _family(opened.read_json(folder, CONFIG), folder)
    theirs = keras_hub_names.find_tables(encoder)
    task = opened.read_json(folder, _TASK)
    head = theirs.tasks.get(task.get("class_name", ""), "encoder")
    _check_head_is_there(head, folder)
    model = _load(folder, theirs, head)
    backbone = getattr(model, "backbone", model)
    config = keras_hub_names.to_config(encoder, backbone.get_config(), head)
    variables = {v.path: v for v in model.variables}
    rows = {r.ours: r for r in keras_hub_names.table(config, head)}
    labels = 0
    if head == "classification":
        labels = model.num_classes
        config = _with_activation(config, model, folder)
        config = _with_dropout(config, model.dropout, folder)
    shapes = {
        name: shape
        for name, shape in names.shapes(config, head, labels).items()
        if name in rows or name in theirs.zeros
    }
    for name in shapes.keys() & rows.keys():
        variable = variables[rows[name].theirs]
        if np.prod(variable.shape) != np.prod(shapes[name]):
            raise InputError(
                f"{folder}: {variable.path} has another shape than "
                f"{encoder.name} has here, such as by `hidden_dim` of a "
                "classifier. Use KerasHub for this model. Received: "
                f"{list(variable.shape)}, where {list(shapes[name])} is read"
            )

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        arrays = {}
        for name in wanted:
            if name not in rows:
                arrays[name] = np.zeros(shapes[name], np.float32)
                continue
            variable = variables[rows[name].theirs]
            value = keras.ops.convert_to_numpy(variable)
            opened.check_not_quantized(value, variable.path, folder)
            value = np.asarray(value, np.float32)
            value = value.T if rows[name].transposed else value
            arrays[name] = value.reshape(shapes[name])
        return arrays

    tokenizer = opened.read_json(folder, _TOKENIZER, config=dict)
    settings = tokenizer.get("config") or {}
    return opened.Checkpoint(
        path=folder,
        format="keras_hub",
        shapes=shapes,
        read=read,
        config=config,
        vocab=_read_vocab(folder, settings),
        do_lower_case=settings.get("lowercase"),
        max_seq_length=_read_length(folder),
    )


def _read_length(folder: str) -> int | None:
    """Returns the max tokens of a preset's texts; None if it does not say."""
    texts = opened.read_json(folder, _PREPROCESSOR, config=dict).get("config")
    length = (texts or {}).get("sequence_length")
    if length is not None and (not isinstance(length, int) or length < 4):
        raise InputError(
            f"{os.path.join(folder, _PREPROCESSOR)}: `sequence_length` must be "
            "a whole number, at least 4. Copy or download it again. Received: "
            f"sequence_length={length!r}"
        )
    return length


def _with_activation(
    config: modeling.BertConfig, model: Any, folder: str
) -> modeling.BertConfig:
    """Returns a config with the activation of a classifier's logits."""
    act = keras.activations.serialize(model.activation)
    is_several = model.num_classes > 1
    if act == "sigmoid" and is_several:
        return dataclasses.replace(config, problem_type=modeling.MULTI_LABEL)
    if act == "sigmoid":
        return dataclasses.replace(config, score_act=act)
    if act == "linear" or (act == "softmax" and is_several):
        return config
    raise InputError(
        f"{os.path.join(folder, _TASK)}: the activation of a classifier must "
        "be linear, softmax or sigmoid; with one class, linear or sigmoid. "
        "Use KerasHub for this model. "
        f"Received: activation={act}, num_classes={model.num_classes}"
    )


def _with_dropout(
    config: modeling.BertConfig, rate: float, folder: str
) -> modeling.BertConfig:
    """Returns a config with a classifier's dropout rate, or logs the rate."""
    if hasattr(config, "classifier_dropout_prob"):
        changes: dict[str, Any] = {"classifier_dropout_prob": rate}
        return dataclasses.replace(config, **changes)
    if rate != config.head_dropout_prob:
        terminals.log_once(
            f"{os.path.join(folder, _TASK)}: heads are trained with "
            f"hidden_dropout_prob={config.head_dropout_prob}, not with "
            f"dropout={rate}."
        )
    return config


def _read_vocab(
    folder: str, settings: Mapping[str, Any]
) -> vocabularies.Files | None:
    """Returns the vocabulary of a preset; None if it has none of ours."""
    paths = (os.path.join(folder, _ASSETS, name) for name in _VOCABULARIES)
    path = next(filter(tf.io.gfile.exists, paths), None)
    if path is None:
        return None
    own = {
        name: settings[theirs]
        for name, theirs in _SETTINGS.items()
        if settings.get(theirs) is not None
    }
    file = os.path.join(folder, _TOKENIZER)
    return vocabularies.with_settings(
        vocabularies.open_files(path), own, settings.get("lowercase"), file
    )


def _load(folder: str, theirs: foreign.KerasHub, head: str) -> keras.Model:
    extras.check("keras_hub", "keras-hub", "Presets of KerasHub")
    import keras_hub

    input_files.check_no_pipes(folder)
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
    kind = {
        "classification": f"{theirs.name}TextClassifier",
        "masked_lm": f"{theirs.name}MaskedLM",
    }.get(head, theirs.backbone)
    try:
        return getattr(keras_hub.models, kind).from_preset(folder)
    # Of a file that is not there or cut off, and of one that has other layers
    # or shapes than config.json says.
    except (OSError, ValueError, KeyError, RuntimeError) as error:
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


def _family(values: dict[str, Any], folder: str) -> family.Family:
    """Returns the family of a preset; InputError if it is none of ours."""
    kind = values.get("class_name")
    found = keras_hub_names.find(kind)
    if found is None:
        raise InputError(
            f"{os.path.join(folder, CONFIG)}: this is another encoder, and "
            f"only these can be read: {', '.join(keras_hub_names.readable())}. "
            f"Received: class_name={kind}"
        )
    return found


def write(
    folder: str, source: opened.Checkpoint, config: modeling.BertConfig
) -> set[str]:
    """Fills an empty folder with a preset; returns the names of weights."""
    encoder = families.find(config)
    theirs = keras_hub_names.find_tables(encoder)
    extras.check("keras_hub", "keras-hub", "Presets of KerasHub")
    import keras_hub

    def class_of(kind: str) -> Any:
        return getattr(keras_hub.models, theirs.name + kind)

    found = names.find_head(source.shapes, source.path)
    head = keras_hub_names.head_there(config, found)
    rows = keras_hub_names.table(config, head)
    encoder.check_has_all(config, [row.ours for row in rows])
    backbone = class_of("Backbone")(**keras_hub_names.from_config(config))
    tokenizer = None
    if source.vocab is not None and source.vocab.kind in encoder.vocabularies:
        vocabulary = vocabularies.read(
            source.vocab,
            bool(source.do_lower_case),
            f"The vocabulary of {source.path}",
        )
        tokenizer = _tokenizer(class_of("Tokenizer"), vocabulary)
    length = source.max_length(config)
    if head == "classification":
        is_sigmoid = config.score_act == "sigmoid"
        is_sigmoid |= config.problem_type == modeling.MULTI_LABEL
        model = class_of("TextClassifier")(
            backbone,
            *source.shapes["output_bias"],
            activation="sigmoid" if is_sigmoid else None,
            dropout=config.head_dropout_prob,
            preprocessor=tokenizer
            and class_of("TextClassifierPreprocessor")(tokenizer, length),
        )
    elif head == "masked_lm":
        model = class_of("MaskedLM")(
            backbone,
            preprocessor=tokenizer
            and class_of("MaskedLMPreprocessor")(tokenizer, length),
        )
    else:
        model = backbone
    written = _assign(model, theirs, rows, source)
    model.save_to_preset(folder)
    if model is backbone and tokenizer is not None:
        tokenizer.save_to_preset(folder)
    if not getattr(tokenizer, "split_on_cjk", True):
        # KerasHub reads this setting and does not write it.
        values = opened.read_json(folder, _TOKENIZER, config=dict)
        values["config"]["split_on_cjk"] = False
        files.write_json(os.path.join(folder, _TOKENIZER), values)
    return written


def _tokenizer(kind: Any, vocabulary: vocabularies.Vocabulary) -> Any:
    """Makes the tokenizer of a class of KerasHub."""
    if vocabulary.added:
        logging.warning(
            "KerasHub's tokenizers have no added tokens: they split %s and "
            "%d others in texts.",
            vocabulary.added[0].content,
            len(vocabulary.added) - 1,
        )
    if isinstance(vocabulary, byte_pairs.BytePairs):
        merges = [" ".join(pair) for pair in vocabulary.merges]
        settings = vocabulary.own_settings
        return kind(dict(vocabulary.ids), merges, **settings)
    if isinstance(vocabulary, sentence_pieces.SentencePieces):
        return kind(vocabulary.model)
    lower = vocabulary.settings["do_lower_case"]
    settings = vocabulary.own_settings
    return kind(
        list(vocabulary.pieces),
        lowercase=lower,
        strip_accents=characters.strips_accents(
            lower, settings["strip_accents"]
        ),
        split_on_cjk=settings["tokenize_chinese_chars"],
    )


def _assign(
    model: Any,
    theirs: foreign.KerasHub,
    rows: Sequence[foreign.Row],
    source: opened.Checkpoint,
) -> set[str]:
    """Sets the variables that the source has; returns their names."""
    variables = {v.path: v for v in model.variables}
    present = {row.ours: row for row in rows if row.ours in source.shapes}
    added = [x for x in theirs.added.values() if x in source.shapes]
    values = source.read([*present, *added])
    for name in present:
        value = values[name]
        if theirs.added.get(name) in added:
            value = value + values[theirs.added[name]][0]
        variable = variables[present[name].theirs]
        value = value.T if present[name].transposed else value
        variable.assign(value.reshape(variable.shape))
    return {*present, *added}
