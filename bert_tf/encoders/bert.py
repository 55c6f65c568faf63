"""BERT's row: its variables, and what others call them.

A kernel is [in, out] with us and [out, in] in files of Hugging Face. KerasHub's
attention kernels are [D, N, H] and [N, H, D], the same numbers in the same
order.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert_tf import modeling
from bert_tf.encoders import family, foreign

_EMBEDDINGS = {
    "bert/embeddings/word_embeddings": "VD",
    "bert/embeddings/token_type_embeddings": "TD",
    "bert/embeddings/position_embeddings": "MD",
    "bert/embeddings/LayerNorm/beta": "D",
    "bert/embeddings/LayerNorm/gamma": "D",
}
_POOLER = {"bert/pooler/dense/kernel": "DD", "bert/pooler/dense/bias": "D"}
_LAYER = {
    "attention/self/query/kernel": "DD",
    "attention/self/query/bias": "D",
    "attention/self/key/kernel": "DD",
    "attention/self/key/bias": "D",
    "attention/self/value/kernel": "DD",
    "attention/self/value/bias": "D",
    "attention/output/dense/kernel": "DD",
    "attention/output/dense/bias": "D",
    "attention/output/LayerNorm/beta": "D",
    "attention/output/LayerNorm/gamma": "D",
    "intermediate/dense/kernel": "DF",
    "intermediate/dense/bias": "F",
    "output/dense/kernel": "FD",
    "output/dense/bias": "D",
    "output/LayerNorm/beta": "D",
    "output/LayerNorm/gamma": "D",
}
LAYER = _OURS = "bert/encoder/layer_{}"
TYPES = "bert/embeddings/token_type_embeddings"
TRANSFORM = "cls/predictions/transform"


# ---- Hugging Face -----------------------------------------------------------

_HF = "bert.encoder.layer.{}"
HF_ROWS = (
    *(
        foreign.Row(f"bert/embeddings/{n}", f"bert.embeddings.{n}.weight")
        for n in (
            "word_embeddings",
            "token_type_embeddings",
            "position_embeddings",
        )
    ),
    *foreign.norm("bert/embeddings/LayerNorm", "bert.embeddings.LayerNorm"),
    *foreign.dense(
        f"{_OURS}/attention/self/query", f"{_HF}.attention.self.query"
    ),
    *foreign.dense(f"{_OURS}/attention/self/key", f"{_HF}.attention.self.key"),
    *foreign.dense(
        f"{_OURS}/attention/self/value", f"{_HF}.attention.self.value"
    ),
    *foreign.dense(
        f"{_OURS}/attention/output/dense", f"{_HF}.attention.output.dense"
    ),
    *foreign.norm(
        f"{_OURS}/attention/output/LayerNorm",
        f"{_HF}.attention.output.LayerNorm",
    ),
    *foreign.dense(f"{_OURS}/intermediate/dense", f"{_HF}.intermediate.dense"),
    *foreign.dense(f"{_OURS}/output/dense", f"{_HF}.output.dense"),
    *foreign.norm(f"{_OURS}/output/LayerNorm", f"{_HF}.output.LayerNorm"),
    *foreign.dense("bert/pooler/dense", "bert.pooler.dense"),
)

_HF_TRANSFORM = "cls.predictions.transform"
HF_PREDICTIONS = (
    *foreign.dense(f"{TRANSFORM}/dense", f"{_HF_TRANSFORM}.dense"),
    *foreign.norm(f"{TRANSFORM}/LayerNorm", f"{_HF_TRANSFORM}.LayerNorm"),
    foreign.Row("cls/predictions/output_bias", "cls.predictions.bias"),
)
_HF_SENTENCES = foreign.output("cls/seq_relationship/", "cls.seq_relationship")
HUGGINGFACE = foreign.HuggingFace(
    prefix="bert.",
    rows=HF_ROWS,
    heads={
        name: foreign.HuggingFaceHead(f"Bert{kind}", has_pooler, rows)
        for name, kind, has_pooler, rows in (
            ("encoder", "Model", True, ()),
            (
                "pretraining",
                "ForPreTraining",
                True,
                HF_PREDICTIONS + _HF_SENTENCES,
            ),
            ("masked_lm", "ForMaskedLM", False, HF_PREDICTIONS),
            (
                "next_sentence",
                "ForNextSentencePrediction",
                True,
                _HF_SENTENCES,
            ),
            (
                "classification",
                "ForSequenceClassification",
                True,
                foreign.output("", "classifier"),
            ),
            (
                "tagging",
                "ForTokenClassification",
                False,
                foreign.output("cls/tagging/", "classifier"),
            ),
            (
                "span",
                "ForQuestionAnswering",
                False,
                foreign.output("cls/squad/", "qa_outputs"),
            ),
            (
                "multiple_choice",
                "ForMultipleChoice",
                True,
                foreign.output("cls/multiple_choice/", "classifier"),
            ),
        )
    },
    tied={
        "cls.predictions.decoder.weight": (
            "bert.embeddings.word_embeddings.weight"
        ),
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    keys=foreign.ConfigKeys(
        defaults={"vocab_size": 30522, "type_vocab_size": 2},
        fixed={"pooler_act": "tanh"},
        written={"classifier_dropout": None, "pad_token_id": 0},
    ),
)


# ---- KerasHub ---------------------------------------------------------------

_KH = "transformer_layer_{}"
_SELF = f"{_KH}/self_attention_layer"
_KERAS_LAYERS = (
    *foreign.keras_norm("bert/embeddings/LayerNorm", "embeddings_layer_norm"),
    *foreign.keras_dense(f"{_OURS}/attention/self/query", f"{_SELF}/query"),
    *foreign.keras_dense(f"{_OURS}/attention/self/key", f"{_SELF}/key"),
    *foreign.keras_dense(f"{_OURS}/attention/self/value", f"{_SELF}/value"),
    *foreign.keras_dense(
        f"{_OURS}/attention/output/dense", f"{_SELF}/attention_output"
    ),
    *foreign.keras_norm(f"{_OURS}/attention/output/LayerNorm", f"{_SELF}_norm"),
    *foreign.keras_dense(
        f"{_OURS}/intermediate/dense", f"{_KH}/feedforward_intermediate_dense"
    ),
    *foreign.keras_dense(
        f"{_OURS}/output/dense", f"{_KH}/feedforward_output_dense"
    ),
    *foreign.keras_norm(
        f"{_OURS}/output/LayerNorm", f"{_KH}/feedforward_layer_norm"
    ),
)


def keras_rows(embeddings: str) -> tuple[foreign.Row, ...]:
    """Returns the rows of a backbone without token types and pooler.

    Its words and positions are in one layer of that name.
    """
    return (
        foreign.Row(
            "bert/embeddings/word_embeddings",
            f"{embeddings}/token_embedding/embeddings",
        ),
        foreign.Row(
            "bert/embeddings/position_embeddings",
            f"{embeddings}/position_embedding/embeddings",
        ),
        *_KERAS_LAYERS,
    )


_KERAS_ROWS = (
    foreign.Row(
        "bert/embeddings/word_embeddings", "token_embedding/embeddings"
    ),
    foreign.Row(TYPES, "segment_embedding/embeddings"),
    foreign.Row(
        "bert/embeddings/position_embeddings", "position_embedding/embeddings"
    ),
    *_KERAS_LAYERS,
    *foreign.keras_dense("bert/pooler/dense", "pooled_dense"),
)
# The last layer of a classifier and the head of masked words, in all families.
KERAS_HEADS = {
    "encoder": (),
    "classification": (
        foreign.Row("output_weights", "logits/kernel", transposed=True),
        foreign.Row("output_bias", "logits/bias"),
    ),
    "masked_lm": (
        *foreign.keras_dense(
            f"{TRANSFORM}/dense", "mlm_head/intermediate_dense"
        ),
        *foreign.keras_norm(
            f"{TRANSFORM}/LayerNorm", "mlm_head/intermediate_layer_norm"
        ),
        foreign.Row("cls/predictions/output_bias", "mlm_head/output_bias"),
    ),
}
_KERAS_HUB = foreign.KerasHub(
    name="Bert",
    rows=_KERAS_ROWS,
    heads=KERAS_HEADS,
    arguments=foreign.KERAS_ARGUMENTS | {"type_vocab_size": "num_segments"},
    numerics={
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pooler_act": "tanh",
    },
    transform=foreign.KERAS_TRANSFORM,
    older={"BertClassifier": "classification"},
)


BERT = family.Family(
    name="bert",
    config=modeling.BertConfig,
    model=modeling.Bert,
    variables=_EMBEDDINGS
    | _POOLER
    | {f"{_OURS}/{name}": letters for name, letters in _LAYER.items()},
    words="bert/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    # The same variables, without the mask of later tokens.
    starts_from="left_to_right",
    huggingface=HUGGINGFACE,
    keras_hub=_KERAS_HUB,
)


# ---- Models with the same layers ---------------------------------------------


@dataclasses.dataclass(frozen=True)
class ErnieConfig(modeling.BertConfig):
    """Architecture of an ERNIE without task types."""

    model_type: ClassVar[str] = "ernie"
    architectures: ClassVar[str] = "Ernie"


ERNIE = dataclasses.replace(
    BERT,
    name="ernie",
    config=ErnieConfig,
    starts_from=None,
    huggingface=HUGGINGFACE.renamed(
        "Bert",
        "Ernie",
        "ernie.",
        dataclasses.replace(
            HUGGINGFACE.keys,
            needed={"use_task_id": False},
            written={**HUGGINGFACE.keys.written, "use_task_id": False},
        ),
    ),
    keras_hub=None,
)


@dataclasses.dataclass(frozen=True)
class BertGenerationConfig(modeling.BertConfig):
    """Architecture of the encoder of a BertGeneration."""

    model_type: ClassVar[str] = "bert-generation"
    architectures: ClassVar[str] = "BertGeneration"
    least_types: ClassVar[int] = 0
    other_rates: ClassVar[Mapping[str, str]] = {}
    unread: ClassVar[tuple[str, ...]] = ("type_vocab_size",)

    hidden_act: str = "gelu_erf"
    type_vocab_size: int = 0


_GENERATION = foreign.HuggingFace(
    prefix="bert.",
    rows=tuple(
        row
        for row in HF_ROWS
        if row.ours != TYPES and row.ours not in BERT.pooler
    ),
    heads={
        "encoder": foreign.HuggingFaceHead("BertGenerationEncoder", False, ())
    },
    tied={},
    keys=foreign.ConfigKeys(
        defaults={
            "vocab_size": 50358,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
        unsaid=frozenset({"type_vocab_size"}),
        written={"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0},
    ),
    tokenizer="BertGenerationTokenizer",
)
BERT_GENERATION = dataclasses.replace(
    BERT,
    name="bert-generation",
    config=BertGenerationConfig,
    variables={
        name: shape for name, shape in BERT.variables.items() if name != TYPES
    },
    # Its SentencePiece vocabulary has no [CLS] and [SEP] tokens, which every
    # row here needs.
    vocabularies=(),
    starts_from=None,
    huggingface=_GENERATION,
    keras_hub=None,
)
