"""The architecture of a BERT: the released bert_config.json."""

import dataclasses
import json
import math
from typing import Any

from bert_tf import functions

import tensorflow as tf

# Keys of the multilingual and Chinese releases. They describe the pooler that
# every BERT has, and the original never read them.
_POOLER_KEYS = frozenset(
    {
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    }
)
# `problem_type`, as transformers has it, of a classifier whose texts may have
# several labels.
MULTI_LABEL = "multi_label_classification"
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Architecture of one BERT, as in the released bert_config.json."""

    vocab_size: int  # V
    hidden_size: int = 768  # D
    num_hidden_layers: int = 12  # L
    num_attention_heads: int = 12  # N
    intermediate_size: int = 3072  # F
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # M
    type_vocab_size: int = 16  # T; the original's default, releases say 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    # Of the dense layer before the vocabulary product, where they are others
    # than the encoder's, as in KerasHub.
    transform_act: str | None = None
    transform_layer_norm_eps: float | None = None
    # Of a classifier: MULTI_LABEL, or None where each text has one label.
    problem_type: str | None = None

    def __post_init__(self):
        for name in _SIZES:
            value = getattr(self, name)
            if not _is_a(value, int) or value < 1:
                raise ValueError(
                    f"`{name}` must be a positive integer. "
                    f"Received: {name}={value!r}"
                )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = getattr(self, name)
            if not _is_a(value, int | float) or not 0 <= value < 1:
                raise ValueError(
                    f"`{name}` must be a number, at least 0 and below 1. "
                    f"Received: {name}={value!r}"
                )
        for name in (
            "initializer_range",
            "layer_norm_eps",
            "transform_layer_norm_eps",
        ):
            value = getattr(self, name)
            if name == "transform_layer_norm_eps" and value is None:
                continue
            if not _is_a(value, int | float) or not 0 < value < math.inf:
                raise ValueError(
                    f"`{name}` must be a positive number. "
                    f"Received: {name}={value!r}"
                )
        if self.problem_type not in (None, MULTI_LABEL):
            raise ValueError(
                f"`problem_type` must be {MULTI_LABEL!r}, or be left out. "
                f"Received: problem_type={self.problem_type!r}"
            )
        functions.activation(self.hidden_act)
        functions.activation(self.transform_act or self.hidden_act)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "BertConfig":
        """Returns the config of a parsed bert_config.json."""
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known - _POOLER_KEYS)
        if unknown:
            raise ValueError(
                f"The BERT config has unknown keys: {', '.join(unknown)}. "
                f"Known keys: {', '.join(sorted(known))}"
            )
        if "vocab_size" not in values:
            raise ValueError("The BERT config has no `vocab_size`.")
        return cls(**{k: v for k, v in values.items() if k in known})

    @classmethod
    def from_json_file(cls, path: str) -> "BertConfig":
        """Reads a bert_config.json, local or remote."""
        with tf.io.gfile.GFile(path, "rb") as file:
            text = file.read()
        try:
            values = json.loads(text)
        except ValueError as error:  # of the encoding or of the syntax
            raise ValueError(f"{path} is not JSON: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold one JSON object.")
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json(self) -> str:
        """Returns the text of a bert_config.json."""
        values = dataclasses.asdict(self).items()
        said = {name: value for name, value in values if value is not None}
        return json.dumps(said, indent=2) + "\n"

    def check_sequence_length(self, max_seq_length: int) -> None:
        """Raises ValueError if the position table has too few rows."""
        if max_seq_length > self.max_position_embeddings:
            raise ValueError(
                "`max_seq_length` is more than the model has positions for. "
                f"Received: max_seq_length={max_seq_length}, "
                f"max_position_embeddings={self.max_position_embeddings}"
            )

    def check_vocab_size(self, size: int, path: str) -> None:
        """Raises ValueError if a vocabulary of `size` pieces does not fit."""
        if size != self.vocab_size:
            raise ValueError(
                f"{path} does not belong to this BERT config: it has {size} "
                f"pieces, the config says vocab_size={self.vocab_size}."
            )


def _is_a(value: Any, kind: Any) -> bool:
    """Like isinstance, but `true` in a JSON file is no number."""
    return isinstance(value, kind) and not isinstance(value, bool)
