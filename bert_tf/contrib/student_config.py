"""The common config of encoders that are not transformers."""

import dataclasses
import json
from typing import ClassVar

from bert_tf import configuration


@dataclasses.dataclass(frozen=True)
class StudentConfig(configuration.BertConfig):
    """Architecture of an encoder without attention, positions and segments.

    `hidden_size` is the size of the vector that classifiers read.
    `max_position_embeddings` is the max length of a row; it may be any number,
    since there is no table of positions.
    """

    least_types: ClassVar[int] = 0
    reads_packed: ClassVar[bool] = False
    sizes: ClassVar[tuple[str, ...]] = (
        "vocab_size",
        "embedding_size",
        "hidden_size",
        "max_position_embeddings",
    )

    # Fields of BERT's config that have no meaning here; the first if the
    # encoder has several layers.
    of_attention: ClassVar[tuple[str, ...]] = (
        "num_attention_heads",
        "intermediate_size",
        "attention_probs_dropout_prob",
        "type_vocab_size",
    )
    unread: ClassVar[tuple[str, ...]] = (
        "num_hidden_layers",
        *of_attention,
    )

    # More of them, for encoders whose heads have no such layers either.
    of_layers: ClassVar[tuple[str, ...]] = (
        "hidden_act",
        "layer_norm_eps",
        "pooler_act",
    )

    hidden_size: int = 300  # D
    num_hidden_layers: int = 1
    num_attention_heads: int = 1
    intermediate_size: int = 1
    attention_probs_dropout_prob: float = 0.0
    type_vocab_size: int = 0
    initializer_range: float = 0.1
    embedding_size: int = 300  # E

    def to_json(self) -> str:
        """Returns the config as JSON, without fields that only BERT uses."""
        values = json.loads(super().to_json())
        said = {n: x for n, x in values.items() if n not in self.unread}
        return json.dumps(said, indent=2) + "\n"
