"""ERNIE and BertGeneration: BERT under other names in transformers.

ERNIE (Sun et al., 2019, https://arxiv.org/abs/1904.09223) without task types
computes as BERT does. The encoder of BertGeneration (Rothe et al., 2019,
https://arxiv.org/abs/1907.12461) has no token types and no pooler.
"""

import dataclasses
from typing import ClassVar

from bert_tf import modeling
from bert_tf.encoders import bert, foreign
from bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class ErnieConfig(modeling.BertConfig):
    """Architecture of an ERNIE without task types."""

    model_type: ClassVar[str] = "ernie"
    architectures: ClassVar[str] = "Ernie"


ERNIE = dataclasses.replace(
    bert.BERT,
    name="ernie",
    config=ErnieConfig,
    starts_from=None,
    huggingface=bert.HUGGINGFACE.renamed(
        "Bert",
        "Ernie",
        "ernie.",
        dataclasses.replace(
            bert.HUGGINGFACE.keys,
            needed={"use_task_id": False},
            written={**bert.HUGGINGFACE.keys.written, "use_task_id": False},
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

    hidden_act: str = "gelu_erf"
    type_vocab_size: int = 0

    def __post_init__(self):
        super().__post_init__()
        if self.type_vocab_size:
            raise InputError(
                "A BertGeneration has no token types: `type_vocab_size` must "
                "be 0, or be left out. "
                f"Received: type_vocab_size={self.type_vocab_size!r}"
            )


_GENERATION = foreign.HuggingFace(
    prefix="bert.",
    rows=tuple(
        row
        for row in bert.HF_ROWS
        if row.ours != bert.TYPES and row.ours not in bert.BERT.pooler
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
)
BERT_GENERATION = dataclasses.replace(
    bert.BERT,
    name="bert-generation",
    config=BertGenerationConfig,
    variables={
        name: shape
        for name, shape in bert.BERT.variables.items()
        if name != bert.TYPES
    },
    # Its SentencePiece vocabulary has no [CLS] and [SEP] tokens, which every
    # row here needs.
    vocabularies=(),
    starts_from=None,
    huggingface=_GENERATION,
    keras_hub=None,
)
