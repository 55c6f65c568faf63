"""RoBERTa (Liu et al., 2019, https://arxiv.org/abs/1907.11692).

BERT's encoder with other sizes. Its variables have BERT's names, because no
original for TensorFlow exists. Its position table has two unused rows, because
the original counts positions from the id of padding, 1. A separate variable
keeps them, so that files written for other libraries equal the files that were
read, bit for bit.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import modeling
from bert_tf.encoders import bert, family, foreign, ops

import numpy as np
import tensorflow as tf

_UNUSED = "bert/embeddings/unused_position_embeddings"
_POSITIONS = "bert/embeddings/position_embeddings"
_POOLER = "bert/pooler/dense"
_UNUSED_ROWS = 2
_PADDING = 1  # the id


class Embeddings(modeling.Embeddings):
    """BERT's embeddings, which keep the position rows that no token reads."""

    computes_as_bert = True

    def build(self, input_shape=None):
        super().build(input_shape)
        self.unused_position_embeddings = self.add_weight(
            name="unused_position_embeddings",
            shape=(_UNUSED_ROWS, self.size),
            initializer="zeros",
            trainable=False,
        )


class AnyPaddingEmbeddings(Embeddings):
    """The same where padding may be anywhere, as in transformers.

    Positions count the ids that are not padding; padding has row 1 of the
    original table. For rows padded at the end, `Embeddings` is the same and
    faster.
    """

    def _positions(self, input_ids, position_ids):
        if position_ids is not None:
            return super()._positions(input_ids, position_ids)
        is_token = tf.cast(input_ids != _PADDING, tf.int32)
        rows = tf.cumsum(is_token, axis=1) * is_token  # 0 for padding
        table = tf.concat(
            [
                self.unused_position_embeddings[_PADDING:],
                self.position_embeddings,
            ],
            axis=0,
        )
        return ops.embed(table, rows)


class Roberta(modeling.Bert):
    """RoBERTa without a head.

    Attributes:
        any_padding_embeddings_class: Of the Keras models, whose inputs are the
            user's.
    """

    embeddings_class = Embeddings
    any_padding_embeddings_class = AnyPaddingEmbeddings


# ---- Hugging Face -----------------------------------------------------------

_HF = "roberta.embeddings"
_HF_POSITIONS = f"{_HF}.position_embeddings.weight"
# The first rows of theirs.
_HF_UNUSED = f"{_HF}.unused_position_embeddings.weight"
_LM = "lm_head"
_TRANSFORM = bert.TRANSFORM
_PREDICTIONS = (
    *foreign.dense(f"{_TRANSFORM}/dense", f"{_LM}.dense"),
    *foreign.norm(f"{_TRANSFORM}/LayerNorm", f"{_LM}.layer_norm"),
    foreign.Row("cls/predictions/output_bias", f"{_LM}.bias"),
)
_KEYS = foreign.ConfigKeys(
    defaults={
        "vocab_size": 50265,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512 - _UNUSED_ROWS,
    },
    fixed={"pooler_act": "tanh"},
    transform_act="gelu_erf",
    needed={"pad_token_id": 1},
    written={
        "bos_token_id": 0,
        "classifier_dropout": None,
        "eos_token_id": 2,
        "pad_token_id": 1,
    },
    unused_positions=_UNUSED_ROWS,
    told_by={"pad_token_id": 1, "type_vocab_size": 1},
)
HUGGINGFACE = foreign.HuggingFace(
    prefix="roberta.",
    rows=(
        *(
            row._replace(theirs=row.theirs.replace("bert.", "roberta.", 1))
            for row in bert.HF_ROWS
        ),
        foreign.Row(_UNUSED, _HF_UNUSED),
    ),
    heads={
        "encoder": foreign.HuggingFaceHead("RobertaModel", True, ()),
        "masked_lm": foreign.HuggingFaceHead(
            "RobertaForMaskedLM", False, _PREDICTIONS
        ),
        "classification": foreign.HuggingFaceHead(
            "RobertaForSequenceClassification",
            True,
            (
                *foreign.dense(_POOLER, "classifier.dense"),
                *foreign.output("", "classifier.out_proj"),
            ),
        ),
        "tagging": foreign.HuggingFaceHead(
            "RobertaForTokenClassification",
            False,
            foreign.output("cls/tagging/", "classifier"),
        ),
        "span": foreign.HuggingFaceHead(
            "RobertaForQuestionAnswering",
            False,
            foreign.output("cls/squad/", "qa_outputs"),
        ),
        "multiple_choice": foreign.HuggingFaceHead(
            "RobertaForMultipleChoice",
            True,
            foreign.output("cls/multiple_choice/", "classifier"),
        ),
    },
    tied={
        f"{_LM}.decoder.weight": f"{_HF}.word_embeddings.weight",
        f"{_LM}.decoder.bias": f"{_LM}.bias",
    },
    keys=_KEYS,
    conversions=lambda config: [
        foreign.Conversion(
            [_HF_POSITIONS],
            [_HF_UNUSED, _HF_POSITIONS],
            lambda x: np.split(x[0], [_UNUSED_ROWS]),
            lambda x: [np.concatenate(x)],
        )
    ],
)


@dataclasses.dataclass(frozen=True)
class RobertaConfig(modeling.BertConfig):
    """Architecture of a RoBERTa; positions are those that tokens can have."""

    model_type: ClassVar[str] = "roberta"
    architectures: ClassVar[str] = "Roberta"

    hidden_act: str = "gelu_erf"
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a file, ours or transformers', by our keys."""
        return _KEYS.in_our_words(values, cls)


# ---- KerasHub ---------------------------------------------------------------

_EMBEDDINGS = "embeddings"
# Its backbone has one table for positions and the only token type.
_KERAS_HUB = foreign.KerasHub(
    name="Roberta",
    rows=bert.keras_rows(_EMBEDDINGS),
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
        "layer_norm_eps": 1e-5,
        "pooler_act": "tanh",
    },
    transform=foreign.KERAS_TRANSFORM,
    older={"RobertaClassifier": "classification"},
    zeros=frozenset({_UNUSED, bert.TYPES}),
    added={_POSITIONS: bert.TYPES},
)

ROBERTA = dataclasses.replace(
    bert.BERT,
    name="roberta",
    config=RobertaConfig,
    model=Roberta,
    variables={**bert.BERT.variables, _UNUSED: "2D"},
    vocabularies=("byte_pairs",),
    starts_from=None,
    huggingface=HUGGINGFACE,
    keras_hub=_KERAS_HUB,
)


# ---- Models with the same layers ---------------------------------------------


@dataclasses.dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """Architecture of an XLM-R."""

    model_type: ClassVar[str] = "xlm-roberta"
    architectures: ClassVar[str] = "XLMRoberta"


@dataclasses.dataclass(frozen=True)
class CamembertConfig(RobertaConfig):
    """Architecture of a CamemBERT."""

    model_type: ClassVar[str] = "camembert"
    architectures: ClassVar[str] = "Camembert"


@dataclasses.dataclass(frozen=True)
class Data2VecTextConfig(RobertaConfig):
    """Architecture of a data2vec for text."""

    model_type: ClassVar[str] = "data2vec-text"
    architectures: ClassVar[str] = "Data2VecText"


def _row(
    config: type[RobertaConfig],
    vocabulary: str,
    prefix: str = "roberta.",
    ends: tuple[int, int] = (0, 2),
) -> family.Family:
    """Returns RoBERTa's row under other names.

    `ends` are the ids of the tokens at both ends of a text.
    """
    theirs = HUGGINGFACE
    bos, eos = ends
    written = {"bos_token_id": bos, "eos_token_id": eos}
    keys = dataclasses.replace(
        theirs.keys,
        defaults={**theirs.keys.defaults, "vocab_size": 30522},
        written={**theirs.keys.written, **written},
        told_by={},
    )
    return dataclasses.replace(
        ROBERTA,
        name=config.model_type,
        config=config,
        vocabularies=(vocabulary,),
        huggingface=theirs.renamed(
            "Roberta", config.architectures, prefix, keys
        ),
        keras_hub=None,
    )


_SENTENCES = "fairseq_sentence_pieces"
XLM_ROBERTA = _row(XlmRobertaConfig, _SENTENCES)
CAMEMBERT = _row(CamembertConfig, _SENTENCES, ends=(5, 6))
DATA2VEC_TEXT = _row(Data2VecTextConfig, "byte_pairs", "data2vec_text.")
