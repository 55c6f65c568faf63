"""The names and the numerics of KerasHub's BERT.

Shapes as in names.py, and N: heads, H: head size, D = N * H. Attention kernels
are [D, N, H] and [N, H, D] there, [D, D] with us: the same numbers in the same
order.

KerasHub has one activation (the tanh form of GELU) and one epsilon (1e-12) in
the encoder, and others in the head of masked words: the erf form and 1e-5.
"""

from collections.abc import Mapping
from typing import Any

from bert_tf import modeling
from bert_tf.interop import names

# Class of a task -> head.
TASKS = {
    "BertTextClassifier": "classification",
    "BertClassifier": "classification",
    "BertMaskedLM": "masked_lm",
    "BertTextEmbedder": "encoder",
}
_NUMERICS: dict[str, Any] = {"hidden_act": "gelu", "layer_norm_eps": 1e-12}
_TRANSFORM: dict[str, Any] = {
    "transform_act": "gelu_erf",
    "transform_layer_norm_eps": 1e-5,
}


# Of KerasHub 0.32, whose tokenizer lower-cases by Unicode's NFKC_Casefold.
UNCASED_TEXTS = (
    "KerasHub's own tokenizer makes other pieces of some texts than BERT's: "
    "where it lower-cases it turns ß into ss, ς into σ, and characters such as "
    "², ½ and ﬁ into 2, 1⁄2 and fi, and leaves Korean syllables whole. It does "
    "not split at no-break and other spaces beyond ASCII, and does at "
    "characters of no width; words of more than 100 bytes are [UNK]. Other "
    "ASCII text is split alike."
)


def _pair(ours: str, theirs: str, *parts: str) -> tuple[names.Row, ...]:
    return tuple(names.Row(f"{ours}/{n}", f"{theirs}/{n}") for n in parts)


def _dense(ours: str, theirs: str) -> tuple[names.Row, ...]:
    return _pair(ours, theirs, "kernel", "bias")


def _norm(ours: str, theirs: str) -> tuple[names.Row, ...]:
    return _pair(ours, theirs, "gamma", "beta")


_OURS, _THEIRS = "bert/encoder/layer_{}", "transformer_layer_{}"
_SELF = f"{_THEIRS}/self_attention_layer"
_ENCODER = (
    names.Row("bert/embeddings/word_embeddings", "token_embedding/embeddings"),
    names.Row(
        "bert/embeddings/token_type_embeddings", "segment_embedding/embeddings"
    ),
    names.Row(
        "bert/embeddings/position_embeddings", "position_embedding/embeddings"
    ),
    *_norm("bert/embeddings/LayerNorm", "embeddings_layer_norm"),
    *_dense(f"{_OURS}/attention/self/query", f"{_SELF}/query"),
    *_dense(f"{_OURS}/attention/self/key", f"{_SELF}/key"),
    *_dense(f"{_OURS}/attention/self/value", f"{_SELF}/value"),
    *_dense(f"{_OURS}/attention/output/dense", f"{_SELF}/attention_output"),
    *_norm(f"{_OURS}/attention/output/LayerNorm", f"{_SELF}_norm"),
    *_dense(
        f"{_OURS}/intermediate/dense",
        f"{_THEIRS}/feedforward_intermediate_dense",
    ),
    *_dense(f"{_OURS}/output/dense", f"{_THEIRS}/feedforward_output_dense"),
    *_norm(f"{_OURS}/output/LayerNorm", f"{_THEIRS}/feedforward_layer_norm"),
    *_dense("bert/pooler/dense", "pooled_dense"),
)
_HEADS: Mapping[str, tuple[names.Row, ...]] = {
    "encoder": (),
    "classification": (
        names.Row("output_weights", "logits/kernel", transposed=True),
        names.Row("output_bias", "logits/bias"),
    ),
    "masked_lm": (
        *_dense(
            "cls/predictions/transform/dense", "mlm_head/intermediate_dense"
        ),
        *_norm(
            "cls/predictions/transform/LayerNorm",
            "mlm_head/intermediate_layer_norm",
        ),
        names.Row("cls/predictions/output_bias", "mlm_head/output_bias"),
    ),
}


def table(head: str, num_layers: int) -> list[names.Row]:
    """Returns the rows of a model with a head that KerasHub has."""
    return names.expand((*_ENCODER, *_HEADS[head]), num_layers)


def head_there(head: str) -> str:
    """Returns what KerasHub has of a head: the whole, a part or nothing."""
    head = "masked_lm" if head == "pretraining" else head
    return head if head in _HEADS else "encoder"


def to_config(values: Mapping[str, Any], head: str) -> modeling.BertConfig:
    """Returns our config for the arguments of a BertBackbone."""
    return modeling.BertConfig(
        vocab_size=values["vocabulary_size"],
        hidden_size=values["hidden_dim"],
        num_hidden_layers=values["num_layers"],
        num_attention_heads=values["num_heads"],
        intermediate_size=values["intermediate_dim"],
        hidden_dropout_prob=values["dropout"],
        attention_probs_dropout_prob=values["dropout"],
        max_position_embeddings=values["max_sequence_length"],
        type_vocab_size=values["num_segments"],
        **_NUMERICS,
        **(_TRANSFORM if head == "masked_lm" else {}),
    )


def from_config(config: modeling.BertConfig) -> dict[str, Any]:
    """Returns the arguments of a BertBackbone."""
    return {
        "vocabulary_size": config.vocab_size,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "hidden_dim": config.hidden_size,
        "intermediate_dim": config.intermediate_size,
        "dropout": config.hidden_dropout_prob,
        "max_sequence_length": config.max_position_embeddings,
        "num_segments": config.type_vocab_size,
    }


def differences(config: modeling.BertConfig, head: str) -> list[str]:
    """Says in sentences what KerasHub will compute otherwise."""
    wanted: dict[str, Any] = {
        "hidden_act": config.hidden_act,
        "layer_norm_eps": config.layer_norm_eps,
    }
    fixed = dict(_NUMERICS)
    if head_there(head) == "masked_lm":
        fixed |= _TRANSFORM
        wanted["transform_act"] = config.transform_act or config.hidden_act
        wanted["transform_layer_norm_eps"] = (
            config.transform_layer_norm_eps or config.layer_norm_eps
        )
    changed = [
        f"{name}={fixed[name]} instead of {value}"
        for name, value in wanted.items()
        if value != fixed[name]
    ]
    if not changed:
        return []
    return [
        f"KerasHub computes with {', '.join(changed)}: the weights are the "
        "same, the outputs will differ a little."
    ]
