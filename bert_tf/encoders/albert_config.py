"""The architecture of an ALBERT: the released albert_config.json."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration
from bert_tf.errors import InputError

# Keys of released files that the original's model never reads, with their
# values. A file with another value describes another model.
_UNREAD = {
    "down_scale_factor": 1,
    "gap_size": 0,
    "layers_to_keep": [],
    "net_structure_type": 0,
    "num_memory_blocks": 0,
}


@dataclasses.dataclass(frozen=True)
class AlbertConfig(configuration.BertConfig):
    """Architecture of an ALBERT; the defaults are the original's."""

    model_type: ClassVar[str] = "albert"
    architectures: ClassVar[str] = "Albert"
    tells: ClassVar[str] = "num_hidden_groups"
    sizes: ClassVar[tuple[str, ...]] = (
        *configuration.BertConfig.sizes,
        "embedding_size",
        "num_hidden_groups",
        "inner_group_num",
    )
    # Its p_mask hides the context's [SEP].
    unscored_tokens: ClassVar[int] = 1
    one_value: ClassVar[Mapping[str, Any]] = {
        **configuration.BertConfig.one_value,
        **_UNREAD,
    }

    hidden_size: int = 4096  # D
    num_attention_heads: int = 64  # N
    intermediate_size: int = 16384  # F
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    type_vocab_size: int = 2  # T
    embedding_size: int = 128  # E
    # Layers of a group share their weights; each layer runs `inner_group_num`
    # blocks in turn.
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    # For classifiers: the original uses 0.1, whatever the encoder's dropout.
    classifier_dropout_prob: float = 0.1
    # Whether a dense layer maps embeddings from E to D. By default only if
    # these differ; in transformers and KerasHub always.
    maps_embeddings: bool | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.maps_embeddings is None:
            object.__setattr__(self, "maps_embeddings", self._is_factorized())
        groups, layers = self.num_hidden_groups, self.num_hidden_layers
        if groups > layers:
            raise InputError(
                "`num_hidden_groups` must be at most `num_hidden_layers`: "
                "each group is of one layer or more. Received: "
                f"num_hidden_groups={groups}, num_hidden_layers={layers}"
            )
        # The rules of the original and of transformers: rounding may make them
        # differ.
        if groups > 1 and any(
            self.group(i) != int(i / (layers / groups)) for i in range(layers)
        ):
            raise InputError(
                "It is not clear which layer is of which group, as the "
                "original and transformers round differently: choose another "
                "`num_hidden_groups`. Received: "
                f"num_hidden_groups={groups}, num_hidden_layers={layers}"
            )
        rate = self.classifier_dropout_prob
        is_number = isinstance(rate, int | float) and rate is not True
        if not is_number or not 0 <= rate < 1:
            raise InputError(
                "`classifier_dropout_prob` must be a number, at least 0 and "
                f"below 1. Received: classifier_dropout_prob={rate!r}"
            )
        maps = self.maps_embeddings
        if not isinstance(maps, bool) or maps < self._is_factorized():
            raise InputError(
                "`maps_embeddings` must be true, or false where "
                "`embedding_size` is `hidden_size`; leave it out. "
                f"Received: maps_embeddings={maps!r}, "
                f"embedding_size={self.embedding_size}, "
                f"hidden_size={self.hidden_size}"
            )

    def _is_factorized(self) -> bool:
        return self.embedding_size != self.hidden_size

    def to_json(self) -> str:
        """Returns the text of an albert_config.json, including `model_type`."""
        values = json.loads(super().to_json())
        if self.maps_embeddings == self._is_factorized():
            del values["maps_embeddings"]
        return json.dumps(values, indent=2) + "\n"

    @property
    def num_blocks(self) -> int:
        """The number of blocks that run in turn."""
        return self.num_hidden_layers * self.inner_group_num

    @property
    def head_dropout_prob(self) -> float:
        """The dropout rate of a classifier's input."""
        return self.classifier_dropout_prob

    def group(self, layer: int) -> int:
        """Returns the index of a layer's group."""
        return int(layer / self.num_hidden_layers * self.num_hidden_groups)
