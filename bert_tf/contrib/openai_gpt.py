"""GPT-1 (Radford et al., 2018) and its family entry.

It has BERT's layers and a causal mask, but no layer norm after the embeddings,
no token types and no pooler. The language-model head is the table of words
alone, and the classifier a matrix: both have no bias, as in transformers. The
last token represents a row. Variables have BERT's names.

The vocabulary is BPE with `</w>`; see word_end_pairs.py.

Shapes as in modeling.py.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration, modeling
from bert_tf.contrib import left_to_right, word_end_pairs
from bert_tf.encoders import bert, families, foreign
from bert_tf.errors import InputError

import numpy as np

_NORM = "bert/embeddings/LayerNorm"
# Feed-forward units per unit of the hidden states.
_WIDTH = 4
# Activations in transformers -> its usual names of the same functions. Only in
# this model is "gelu" the tanh form.
_ACTIVATIONS = {
    "gelu": "gelu_new",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
}


# ---- Config ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Keys(foreign.ConfigKeys):
    """GPT's config.json, in which GELU is the tanh form."""

    def to_ours(
        self,
        values: Mapping[str, Any],
        config: type[configuration.BertConfig],
    ) -> dict[str, Any]:
        """Converts the values of a config.json to our fields."""
        act = values.get("afn", "gelu")
        if not isinstance(act, str) or act not in _ACTIVATIONS:
            raise InputError(
                f"`afn` must be one of {', '.join(_ACTIVATIONS)}. "
                f"Received: afn={act!r}"
            )
        return super().to_ours({**values, "afn": _ACTIVATIONS[act]}, config)

    def to_theirs(self, config: configuration.BertConfig) -> dict[str, Any]:
        """Returns the values of a config.json."""
        values = super().to_theirs(config)
        names = {theirs: name for name, theirs in _ACTIVATIONS.items()}
        act = "silu" if config.hidden_act == "silu" else names[values["afn"]]
        return {**values, "afn": act, "embd_pdrop": values["resid_pdrop"]}


_KEYS = _Keys(
    renamed={
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
        "hidden_act": "afn",
        "hidden_dropout_prob": "resid_pdrop",
        "attention_probs_dropout_prob": "attn_pdrop",
        "layer_norm_eps": "layer_norm_epsilon",
    },
    defaults={"vocab_size": 40478},
    unsaid=frozenset({"intermediate_size", "type_vocab_size"}),
)


@dataclasses.dataclass(frozen=True)
class OpenAIGPTConfig(left_to_right.LeftToRightConfig):
    """Architecture of a GPT-1."""

    model_type: ClassVar[str] = "openai-gpt"
    architectures: ClassVar[str] = "OpenAIGPT"
    tells: ClassVar[str | None] = "afn"
    least_types: ClassVar[int] = 0
    # The feed-forward size follows from the hidden size.
    sizes: ClassVar[tuple[str, ...]] = tuple(
        x
        for x in left_to_right.LeftToRightConfig.sizes
        if x != "intermediate_size"
    )
    pooler_acts: ClassVar[tuple[str, ...]] = (configuration.NO_POOLER,)
    has_plain_outputs: ClassVar[bool] = True
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    one_value: ClassVar[Mapping[str, Any]] = {
        **configuration.BertConfig.one_value,
        "n_special": 0,
    }
    other_rates: ClassVar[Mapping[str, str]] = {"embd_pdrop": "embeddings are"}
    # The embeddings' dropout, another name of `n_positions`, and the head for
    # multiple choice.
    unused_keys: ClassVar[frozenset[str]] = frozenset(
        {
            "embd_pdrop",
            "n_ctx",
            "predict_special_tokens",
            "summary_activation",
            "summary_first_dropout",
            "summary_proj_to_labels",
            "summary_type",
            "summary_use_proj",
        }
    )

    intermediate_size: int = 0  # F: 4 D, whether the file has it or not
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-5
    pooler_act: str = configuration.NO_POOLER

    def __post_init__(self):
        given = self.intermediate_size
        size = _WIDTH * self.hidden_size
        object.__setattr__(self, "intermediate_size", given or size)
        super().__post_init__()
        for name, allowed in (
            ("intermediate_size", (size,)),
            ("hidden_act", ("gelu", "silu", "relu")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"`{name}` of a GPT-1 must be "
                    f"{' or '.join(map(str, allowed))}, or be left out. "
                    f"Received: {name}={getattr(self, name)!r}"
                )

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a file, ours or transformers', by our keys."""
        return _KEYS.in_our_words(values, cls)


# ---- Layers ------------------------------------------------------------------


class Embeddings(modeling.Embeddings):
    """The sum of word and position embeddings."""

    def make_norm(self) -> modeling.Identity:
        return modeling.Identity(name="LayerNorm")


class OpenAIGPT(left_to_right.LeftToRight):
    """GPT-1 without a head; `pooled` is the vector of the last token."""

    embeddings_class = Embeddings


# ---- Hugging Face ------------------------------------------------------------

_LAYER = "transformer.h.{}"
_SELF = f"{bert.LAYER}/attention/self"
_PROJECTIONS = ("query", "key", "value")


def _conv(ours: str, theirs: str) -> tuple[foreign.Row, ...]:
    """Returns the rows of a Conv1D, whose kernel is [in, out] as ours."""
    return tuple(
        foreign.Row(f"{ours}/{x}", f"{theirs}.{y}")
        for x, y in (("kernel", "weight"), ("bias", "bias"))
    )


def _conversions(config: OpenAIGPTConfig) -> list[foreign.Conversion]:
    """Splits the tensors of queries, keys and values."""
    layers = range(config.num_hidden_layers)
    return [
        foreign.Conversion(
            [f"{_LAYER.format(i)}.attn.c_attn.{kind}"],
            [f"{_LAYER.format(i)}.attn.{x}.{kind}" for x in _PROJECTIONS],
            lambda x: np.split(x[0], len(_PROJECTIONS), -1),
            lambda x: [np.concatenate(x, -1)],
        )
        for i in layers
        for kind in ("weight", "bias")
    ]


_HUGGINGFACE = foreign.HuggingFace(
    prefix="transformer.",
    rows=(
        foreign.Row(
            "bert/embeddings/word_embeddings", "transformer.tokens_embed.weight"
        ),
        foreign.Row(
            "bert/embeddings/position_embeddings",
            "transformer.positions_embed.weight",
        ),
        *(
            row
            for name in _PROJECTIONS
            for row in _conv(f"{_SELF}/{name}", f"{_LAYER}.attn.{name}")
        ),
        *_conv(f"{bert.LAYER}/attention/output/dense", f"{_LAYER}.attn.c_proj"),
        *foreign.norm(
            f"{bert.LAYER}/attention/output/LayerNorm", f"{_LAYER}.ln_1"
        ),
        *_conv(f"{bert.LAYER}/intermediate/dense", f"{_LAYER}.mlp.c_fc"),
        *_conv(f"{bert.LAYER}/output/dense", f"{_LAYER}.mlp.c_proj"),
        *foreign.norm(f"{bert.LAYER}/output/LayerNorm", f"{_LAYER}.ln_2"),
    ),
    heads={
        "encoder": foreign.HuggingFaceHead("OpenAIGPTModel", False, ()),
        "next_piece": foreign.HuggingFaceHead(
            "OpenAIGPTLMHeadModel", False, ()
        ),
        "classification": foreign.HuggingFaceHead(
            "OpenAIGPTForSequenceClassification",
            False,
            (foreign.Row("output_weights", "score.weight"),),
        ),
    },
    tied={"lm_head.weight": "transformer.tokens_embed.weight"},
    keys=_KEYS,
    conversions=_conversions,
)


# ---- Family entry ------------------------------------------------------------

OPENAI_GPT = dataclasses.replace(
    left_to_right.LEFT_TO_RIGHT,
    name="openai-gpt",
    config=OpenAIGPTConfig,
    model=OpenAIGPT,
    variables={
        name: shape
        for name, shape in bert.BERT.variables.items()
        if name not in bert.BERT.pooler
        and name != bert.TYPES
        and not name.startswith(_NORM)
    },
    pooler=frozenset(),
    vocabularies=(word_end_pairs.WordEndPairs.kind,),
    huggingface=_HUGGINGFACE,
)
families.register(OPENAI_GPT)
