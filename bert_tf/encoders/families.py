"""The table of encoders: which there are, and which a config means.

An encoder from elsewhere joins by one call, before any config is read; then
scripts train it, export it and answer with it. The whole of a variant of BERT:

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
            huggingface=None,
            keras_hub=None,
        )
    )
"""

from bert_tf import configuration
from bert_tf.encoders import bert
from bert_tf.encoders import family as family_row
from bert_tf.errors import InputError

import keras

BERT = bert.BERT
# By name.
FAMILIES: dict[str, family_row.Family] = {BERT.name: BERT}


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
    FAMILIES[row.name] = row


def of(config: configuration.BertConfig | None) -> family_row.Family:
    """Returns the family of a config; BERT for checkpoints without one."""
    return BERT if config is None else FAMILIES[config.model_type]


def make(config: configuration.BertConfig) -> keras.Model:
    """Returns the encoder that a config describes, with random weights."""
    return of(config).model(config)


def read_config(path: str) -> configuration.BertConfig:
    """Reads the config of any encoder; without a `model_type` it is BERT's.

    It raises InputError for no config, and for that of an unknown encoder.
    """
    values = configuration.read_json_file(path)
    # What is unknown is refused, by name, as no BERT.
    row = FAMILIES.get(str(values.get("model_type")), BERT)
    return row.config.from_file(values, path)
