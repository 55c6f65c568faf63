"""The table of encoders, and the lookup of a config's encoder.

Register a custom encoder by one call, before any config is read; then the
scripts can train it, export it and predict with it. A complete variant of BERT:

    class Scaled(modeling.Bert): ...

    @dataclasses.dataclass(frozen=True)
    class ScaledConfig(modeling.BertConfig):
        model_type = "scaled_bert"

    families.register(
        dataclasses.replace(
            families.BERT,
            name="scaled_bert",
            config=ScaledConfig,
            model=Scaled,
            starts_from="bert",
            huggingface=None,
            keras_hub=None,
        )
    )
"""

import dataclasses
import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import configuration
from bert_tf.encoders import albert, bert, distilbert, electra, roberta
from bert_tf.encoders import family as family_row
from bert_tf.errors import InputError

import keras

BERT = bert.BERT
# By name.
FAMILIES: dict[str, family_row.Family] = {
    row.name: row
    for row in (
        BERT,
        roberta.ROBERTA,
        roberta.XLM_ROBERTA,
        roberta.CAMEMBERT,
        roberta.DATA2VEC_TEXT,
        distilbert.DISTILBERT,
        albert.ALBERT,
        electra.ELECTRA,
        bert.ERNIE,
        bert.BERT_GENERATION,
    )
}

_LISTENERS: list[Callable[[family_row.Family], None]] = []


def register(row: family_row.Family) -> None:
    """Adds an encoder; InputError if its name or its config is taken."""
    if row.config.model_type != row.name:
        raise InputError(
            "A family is found by the `model_type` of its configs: give its "
            f"config class model_type = {row.name!r}. "
            f"Received: model_type={row.config.model_type!r}"
        )
    if row.name in FAMILIES and FAMILIES[row.name] != row:
        raise InputError(
            "There is an encoder of this name already: choose another. "
            f"Received: name={row.name!r}"
        )
    # Before the family is added, because a listener may reject it.
    for listener in _LISTENERS:
        listener(row)
    FAMILIES[row.name] = row


def on_register(listener: Callable[[family_row.Family], None]) -> None:
    """Calls `listener` for each family, registered already or later."""
    for row in FAMILIES.values():
        listener(row)
    _LISTENERS.append(listener)


def find(config: configuration.BertConfig | None) -> family_row.Family:
    """Returns the family of a config; BERT for checkpoints without one."""
    return BERT if config is None else FAMILIES[config.model_type]


def of_values(values: Mapping[str, Any]) -> family_row.Family:
    """Returns the family of a config file's values, by its `model_type`.

    Without one it is BERT, unless a key is there that only another has. It
    raises InputError for an unknown one.
    """
    others = (x for x in FAMILIES.values() if x.config.tells in values)
    kind = values.get("model_type") or next(others, BERT).name
    if str(kind) in FAMILIES:
        return FAMILIES[str(kind)]
    article = "an" if str(kind)[:1] in tuple("aeiouAEIOU") else "a"
    raise InputError(
        f"This is {article} {kind} model, not BERT, and only these can be "
        f"read: {', '.join(sorted(FAMILIES))}. Use this model with the library "
        "that wrote it. "
        f"Received: model_type={kind}, "
        f"architectures={values.get('architectures') or []}"
    )


def make(config: configuration.BertConfig) -> keras.Model:
    """Returns the encoder that a config describes, with random weights."""
    return find(config).model(config)


def to_values(config: configuration.BertConfig) -> dict[str, Any]:
    """Returns all values of a config, for `from_values`."""
    values = dataclasses.asdict(config)
    if find(config) is BERT:
        return values
    return {"model_type": config.model_type} | values


def from_values(values: Mapping[str, Any]) -> configuration.BertConfig:
    """Returns the config of `to_values`; InputError for an unknown encoder."""
    row = of_values(values)
    return row.config(**{k: v for k, v in values.items() if k != "model_type"})


def read_config(path: str | os.PathLike[str]) -> configuration.BertConfig:
    """Reads the config of any encoder; without a `model_type` it is BERT's.

    It raises InputError unless the file is the config of a known encoder.
    """
    path = os.fspath(path)
    values = configuration.read_json_file(path)
    try:
        row = of_values(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return row.config.from_file(values, path)


def _register_contrib() -> None:
    """Imports the modules of `contrib`, which register their encoders."""
    contrib = importlib.import_module("bert_tf.contrib")
    for module in pkgutil.iter_modules(contrib.__path__, "bert_tf.contrib."):
        importlib.import_module(module.name)


_register_contrib()
