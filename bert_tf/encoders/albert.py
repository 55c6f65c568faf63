"""ALBERT (Lan et al., 2019, https://arxiv.org/abs/1909.11942), and its row.

A BERT whose layers share their weights, and whose embeddings may have a
different size from the hidden states. Shapes as in modeling.py, and E: size of
the embeddings.

Every variable's path is its name in the released checkpoints. These name the
layer norms of a block differently from BERT's: bert/encoder/transformer/
group_0/inner_group_0/LayerNorm and LayerNorm_1.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration, modeling
from bert_tf.encoders import bert, family, foreign, layers
from bert_tf.errors import InputError

import keras

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
    # Heads have their own rate, `classifier_dropout_prob`.
    other_rates: ClassVar[Mapping[str, str]] = {}
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
                "The original and transformers round differently, and would "
                "assign these layers to different groups. Choose another "
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


class Block(layers.TransformerLayer):
    """BERT's layer, with its variables under ALBERT's names."""

    computes_as_bert = True

    def build(self, input_shape=None):
        attention, output = self.attention, self.residual
        output.norm.name = "LayerNorm_1"
        with keras.name_scope("attention_1"):
            attention.self_attention.build()
            with keras.name_scope("output"):
                attention.residual.dense.build()
        attention.residual.norm.build()
        with keras.name_scope("ffn_1"), keras.name_scope("intermediate"):
            self.intermediate.dense.build()
            with keras.name_scope("output"):
                output.dense.build()
        output.norm.build()
        # Their parts are.
        for part in (attention, attention.residual, self.intermediate, output):
            part.built = True


class Encoder(modeling.Encoder):
    """A stack in which the blocks of a group stand as often as they run."""

    computes_as_bert = True

    def __init__(self, config: AlbertConfig, **kwargs: Any):
        groups = [
            [
                Block(config, name=f"inner_group_{i}")
                for i in range(config.inner_group_num)
            ]
            for _ in range(config.num_hidden_groups)
        ]
        stack = [
            block
            for layer in range(config.num_hidden_layers)
            for block in groups[config.group(layer)]
        ]
        super().__init__(stack, **kwargs)
        self._groups = groups

    def build(self, input_shape=None):
        with keras.name_scope("transformer"):
            for i, group in enumerate(self._groups):
                with keras.name_scope(f"group_{i}"):
                    for block in group:
                        block.build()


class Albert(modeling.Bert):
    """ALBERT without a head.

    Of its outputs, `embeddings` are the first block's input, [B, S, D], and
    `layers` the outputs of all blocks.
    """

    config: AlbertConfig
    lends_parts = True

    def __init__(
        self, config: AlbertConfig, name: str = "albert", **kwargs: Any
    ):
        super().__init__(config, name=name, **kwargs)

    def make_parts(self):
        config = self.config
        E, D = config.embedding_size, config.hidden_size
        self.embeddings = modeling.Embeddings(config, E, name="embeddings")
        if config.maps_embeddings:
            name = "embedding_hidden_mapping_in"
            self.mapping = layers.Dense(config, E, D, name=name)
        self.encoder = Encoder(config, name="encoder")
        self.pooler = modeling.Pooler(config, name="pooler")

    def build_parts(self):
        self.embeddings.build()
        if self.mapping is not None:
            with keras.name_scope("encoder"):
                self.mapping.build()
        self.encoder.build()
        self.pooler.build()


# ---- The row ----------------------------------------------------------------

_EMBEDDINGS = {
    "bert/embeddings/word_embeddings": "VE",
    "bert/embeddings/token_type_embeddings": "TE",
    "bert/embeddings/position_embeddings": "ME",
    "bert/embeddings/LayerNorm/beta": "E",
    "bert/embeddings/LayerNorm/gamma": "E",
}
_OUR_MAPPING = "bert/encoder/embedding_hidden_mapping_in"
_MAPPING = {f"{_OUR_MAPPING}/kernel": "ED", f"{_OUR_MAPPING}/bias": "D"}
_POOLER = {"bert/pooler/dense/kernel": "DD", "bert/pooler/dense/bias": "D"}
_OURS = "bert/encoder/transformer/group_{}/inner_group_{}"
_BLOCK = {
    "attention_1/self/query/kernel": "DD",
    "attention_1/self/query/bias": "D",
    "attention_1/self/key/kernel": "DD",
    "attention_1/self/key/bias": "D",
    "attention_1/self/value/kernel": "DD",
    "attention_1/self/value/bias": "D",
    "attention_1/output/dense/kernel": "DD",
    "attention_1/output/dense/bias": "D",
    "LayerNorm/beta": "D",
    "LayerNorm/gamma": "D",
    "ffn_1/intermediate/dense/kernel": "DF",
    "ffn_1/intermediate/dense/bias": "F",
    "ffn_1/intermediate/output/dense/kernel": "FD",
    "ffn_1/intermediate/output/dense/bias": "D",
    "LayerNorm_1/beta": "D",
    "LayerNorm_1/gamma": "D",
}


def _absent(config: AlbertConfig) -> frozenset[str]:
    return frozenset() if config.maps_embeddings else frozenset(_MAPPING)


# ---- Hugging Face -----------------------------------------------------------

_HF = "albert.encoder.albert_layer_groups.{}.albert_layers.{}"
_HF_MAPPING = "albert.encoder.embedding_hidden_mapping_in"
_HF_ROWS = (
    *(
        foreign.Row(f"bert/embeddings/{n}", f"albert.embeddings.{n}.weight")
        for n in (
            "word_embeddings",
            "token_type_embeddings",
            "position_embeddings",
        )
    ),
    *foreign.norm("bert/embeddings/LayerNorm", "albert.embeddings.LayerNorm"),
    *foreign.dense(_OUR_MAPPING, _HF_MAPPING),
    *(
        row
        for name in ("query", "key", "value")
        for row in foreign.dense(
            f"{_OURS}/attention_1/self/{name}", f"{_HF}.attention.{name}"
        )
    ),
    *foreign.dense(
        f"{_OURS}/attention_1/output/dense", f"{_HF}.attention.dense"
    ),
    *foreign.norm(f"{_OURS}/LayerNorm", f"{_HF}.attention.LayerNorm"),
    *foreign.dense(f"{_OURS}/ffn_1/intermediate/dense", f"{_HF}.ffn"),
    *foreign.dense(
        f"{_OURS}/ffn_1/intermediate/output/dense", f"{_HF}.ffn_output"
    ),
    *foreign.norm(f"{_OURS}/LayerNorm_1", f"{_HF}.full_layer_layer_norm"),
    *foreign.dense("bert/pooler/dense", "albert.pooler"),
)
_HF_PREDICTIONS = (
    *foreign.dense(f"{bert.TRANSFORM}/dense", "predictions.dense"),
    *foreign.norm(f"{bert.TRANSFORM}/LayerNorm", "predictions.LayerNorm"),
    foreign.Row("cls/predictions/output_bias", "predictions.bias"),
)
_HF_ORDER = foreign.output("cls/seq_relationship/", "sop_classifier.classifier")


def _hf_head(
    kind: str, has_pooler: bool, *rows: foreign.Row
) -> foreign.HuggingFaceHead:
    return foreign.HuggingFaceHead(f"Albert{kind}", has_pooler, rows)


def _hf_classifier(
    kind: str, ours: str, has_pooler: bool = True
) -> foreign.HuggingFaceHead:
    rows = foreign.output(ours, "classifier")
    return _hf_head(f"For{kind}", has_pooler, *rows)


_HUGGINGFACE = foreign.HuggingFace(
    prefix="albert.",
    rows=_HF_ROWS,
    heads={
        "encoder": _hf_head("Model", True),
        "pretraining": _hf_head(
            "ForPreTraining", True, *_HF_PREDICTIONS, *_HF_ORDER
        ),
        "masked_lm": _hf_head("ForMaskedLM", False, *_HF_PREDICTIONS),
        "classification": _hf_classifier("SequenceClassification", ""),
        "tagging": _hf_classifier("TokenClassification", "cls/tagging/", False),
        "span": _hf_head(
            "ForQuestionAnswering",
            False,
            *foreign.output("cls/squad/", "qa_outputs"),
        ),
        "multiple_choice": _hf_classifier(
            "MultipleChoice", "cls/multiple_choice/"
        ),
    },
    tied={
        "predictions.decoder.weight": (
            "albert.embeddings.word_embeddings.weight"
        ),
        "predictions.decoder.bias": "predictions.bias",
    },
    keys=foreign.ConfigKeys(
        defaults={"vocab_size": 30000, "maps_embeddings": True},
        fixed={"pooler_act": "tanh"},
        act="gelu_new",
        unsaid=frozenset({"maps_embeddings"}),
        written={"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3},
    ),
)


# ---- KerasHub ---------------------------------------------------------------

_KH = "group_{}_inner_layer_{}"
_SELF = f"{_KH}/self_attention_layer"
_KERAS_ROWS = (
    foreign.Row(
        "bert/embeddings/word_embeddings", "token_embedding/embeddings"
    ),
    foreign.Row(
        "bert/embeddings/token_type_embeddings", "segment_embedding/embeddings"
    ),
    foreign.Row(
        "bert/embeddings/position_embeddings", "position_embedding/embeddings"
    ),
    *foreign.keras_norm("bert/embeddings/LayerNorm", "embeddings_layer_norm"),
    *foreign.keras_dense(_OUR_MAPPING, "embedding_projection"),
    *(
        row
        for name in ("query", "key", "value")
        for row in foreign.keras_dense(
            f"{_OURS}/attention_1/self/{name}", f"{_SELF}/{name}"
        )
    ),
    *foreign.keras_dense(
        f"{_OURS}/attention_1/output/dense", f"{_SELF}/attention_output"
    ),
    *foreign.keras_norm(f"{_OURS}/LayerNorm", f"{_SELF}_norm"),
    *foreign.keras_dense(
        f"{_OURS}/ffn_1/intermediate/dense",
        f"{_KH}/feedforward_intermediate_dense",
    ),
    *foreign.keras_dense(
        f"{_OURS}/ffn_1/intermediate/output/dense",
        f"{_KH}/feedforward_output_dense",
    ),
    *foreign.keras_norm(
        f"{_OURS}/LayerNorm_1", f"{_KH}/feedforward_layer_norm"
    ),
    *foreign.keras_dense("bert/pooler/dense", "pooled_dense"),
)
_KERAS_HUB = foreign.KerasHub(
    name="Albert",
    rows=_KERAS_ROWS,
    heads=bert.KERAS_HEADS,
    arguments=foreign.KERAS_ARGUMENTS
    | {
        "type_vocab_size": "num_segments",
        "embedding_size": "embedding_dim",
        "num_hidden_groups": "num_groups",
        "inner_group_num": "num_inner_repetitions",
    },
    numerics={
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pooler_act": "tanh",
        "maps_embeddings": True,
    },
    transform=foreign.KERAS_TRANSFORM | {"transform_act": "gelu"},
    multiples={"num_hidden_layers": "num_hidden_groups"},
    older={"AlbertClassifier": "classification"},
)


ALBERT = family.Family(
    name="albert",
    config=AlbertConfig,
    model=Albert,
    variables=_EMBEDDINGS
    | _MAPPING
    | _POOLER
    | {f"{_OURS}/{name}": letters for name, letters in _BLOCK.items()},
    words="bert/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    counts=("num_hidden_groups", "inner_group_num"),
    absent=_absent,
    vocabularies=("sentence_pieces",),
    rare_vocabularies=("word_pieces",),  # the Chinese models
    config_file="albert_config.json",
    huggingface=_HUGGINGFACE,
    keras_hub=_KERAS_HUB,
)
