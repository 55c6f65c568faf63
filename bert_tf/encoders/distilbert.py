"""DistilBERT (Sanh et al., 2019, https://arxiv.org/abs/1910.01108).

BERT's encoder with fewer layers and without token types. Its variables have
BERT's names, because no original for TensorFlow exists. The encoder has no
pooler; its classifiers have a dense layer with ReLU instead.

The original's training leaves the teacher's position table unchanged.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import modeling
from bert_tf.encoders import bert, foreign

_POOLER = "bert/pooler/dense"
_OURS = bert.LAYER


# ---- Hugging Face -----------------------------------------------------------

_HF = "distilbert.embeddings"
_LAYER = "distilbert.transformer.layer.{}"
_PREDICTIONS = (
    *foreign.dense(f"{bert.TRANSFORM}/dense", "vocab_transform"),
    *foreign.norm(f"{bert.TRANSFORM}/LayerNorm", "vocab_layer_norm"),
    foreign.Row("cls/predictions/output_bias", "vocab_projector.bias"),
)
_PRE_CLASSIFIER = foreign.dense(_POOLER, "pre_classifier")
_KEYS = foreign.ConfigKeys(
    renamed={
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
    defaults={"vocab_size": 30522, "num_hidden_layers": 6},
    fixed={"pooler_act": "relu", "layer_norm_eps": 1e-12},
    unsaid=frozenset({"layer_norm_eps", "type_vocab_size"}),
    written={"pad_token_id": 0, "sinusoidal_pos_embds": False},
    head_rates={"qa_dropout": 0.0},
)
_HUGGINGFACE = foreign.HuggingFace(
    prefix="distilbert.",
    rows=(
        *(
            foreign.Row(f"bert/embeddings/{n}", f"{_HF}.{n}.weight")
            for n in ("word_embeddings", "position_embeddings")
        ),
        *foreign.norm("bert/embeddings/LayerNorm", f"{_HF}.LayerNorm"),
        *foreign.dense(
            f"{_OURS}/attention/self/query", f"{_LAYER}.attention.q_lin"
        ),
        *foreign.dense(
            f"{_OURS}/attention/self/key", f"{_LAYER}.attention.k_lin"
        ),
        *foreign.dense(
            f"{_OURS}/attention/self/value", f"{_LAYER}.attention.v_lin"
        ),
        *foreign.dense(
            f"{_OURS}/attention/output/dense", f"{_LAYER}.attention.out_lin"
        ),
        *foreign.norm(
            f"{_OURS}/attention/output/LayerNorm", f"{_LAYER}.sa_layer_norm"
        ),
        *foreign.dense(f"{_OURS}/intermediate/dense", f"{_LAYER}.ffn.lin1"),
        *foreign.dense(f"{_OURS}/output/dense", f"{_LAYER}.ffn.lin2"),
        *foreign.norm(
            f"{_OURS}/output/LayerNorm", f"{_LAYER}.output_layer_norm"
        ),
    ),
    heads={
        "encoder": foreign.HuggingFaceHead("DistilBertModel", False, ()),
        "masked_lm": foreign.HuggingFaceHead(
            "DistilBertForMaskedLM", False, _PREDICTIONS
        ),
        "classification": foreign.HuggingFaceHead(
            "DistilBertForSequenceClassification",
            True,
            _PRE_CLASSIFIER + foreign.output("", "classifier"),
        ),
        "tagging": foreign.HuggingFaceHead(
            "DistilBertForTokenClassification",
            False,
            foreign.output("cls/tagging/", "classifier"),
        ),
        "span": foreign.HuggingFaceHead(
            "DistilBertForQuestionAnswering",
            False,
            foreign.output("cls/squad/", "qa_outputs"),
        ),
        "multiple_choice": foreign.HuggingFaceHead(
            "DistilBertForMultipleChoice",
            True,
            _PRE_CLASSIFIER
            + foreign.output("cls/multiple_choice/", "classifier"),
        ),
    },
    tied={"vocab_projector.weight": f"{_HF}.word_embeddings.weight"},
    keys=_KEYS,
    tokenizer="DistilBertTokenizer",
)


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(modeling.BertConfig):
    """Architecture of a DistilBERT."""

    model_type: ClassVar[str] = "distilbert"
    architectures: ClassVar[str] = "DistilBert"
    tells: ClassVar[str] = "dim"
    least_types: ClassVar[int] = 0
    unread: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    other_rates: ClassVar[Mapping[str, str]] = {
        "seq_classif_dropout": "heads are"
    }
    # Dropout of heads, how positions began, and that words are tied.
    unused_keys: ClassVar[frozenset[str]] = frozenset(
        {
            "qa_dropout",
            "seq_classif_dropout",
            "sinusoidal_pos_embds",
            "tie_weights_",
        }
    )

    num_hidden_layers: int = 6
    hidden_act: str = "gelu_erf"
    type_vocab_size: int = 0
    pooler_act: str = "relu"

    @property
    def projection_dropout_prob(self) -> float:
        """The dropout rate after the output projection of attention: none."""
        return 0.0

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a file, ours or transformers', by our keys."""
        return _KEYS.in_our_words(values, cls)


# ---- KerasHub ---------------------------------------------------------------

_KERAS_HUB = foreign.KerasHub(
    name="DistilBert",
    rows=bert.keras_rows("token_and_position_embedding"),
    heads=bert.KERAS_HEADS
    | {
        "classification": (
            *foreign.keras_dense(_POOLER, "pooled_dense"),
            *bert.KERAS_HEADS["classification"],
        )
    },
    arguments=foreign.KERAS_ARGUMENTS,
    numerics={
        "hidden_act": "gelu_erf",
        "layer_norm_eps": 1e-12,
        "pooler_act": "relu",
    },
    transform=foreign.KERAS_TRANSFORM,
    older={"DistilBertClassifier": "classification"},
)

DISTILBERT = dataclasses.replace(
    bert.BERT,
    name="distilbert",
    config=DistilBertConfig,
    variables={
        name: shape
        for name, shape in bert.BERT.variables.items()
        if name != bert.TYPES
    },
    starts_from=None,
    huggingface=_HUGGINGFACE,
    keras_hub=_KERAS_HUB,
)
