"""The names and the numerics of KerasHub's BERT.

Kernels are as in encoders/bert.py. KerasHub has one activation (the tanh form
of GELU) and one epsilon (1e-12) in the encoder, and others in the head of
masked words: the erf form and 1e-5.
"""

from collections.abc import Mapping
from typing import Any

from bert_tf import modeling
from bert_tf.checkpoints import names
from bert_tf.encoders import families, family
from bert_tf.errors import InputError

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


_OURS = "cls/predictions/transform"
# Of names.HEADS, those that KerasHub has.
_HEADS: Mapping[str, tuple[family.Row, ...]] = {
    "encoder": (),
    "classification": (
        family.Row("output_weights", "logits/kernel", transposed=True),
        family.Row("output_bias", "logits/bias"),
    ),
    "masked_lm": (
        family.Row(
            f"{_OURS}/dense/kernel", "mlm_head/intermediate_dense/kernel"
        ),
        family.Row(f"{_OURS}/dense/bias", "mlm_head/intermediate_dense/bias"),
        family.Row(
            f"{_OURS}/LayerNorm/gamma", "mlm_head/intermediate_layer_norm/gamma"
        ),
        family.Row(
            f"{_OURS}/LayerNorm/beta", "mlm_head/intermediate_layer_norm/beta"
        ),
        family.Row("cls/predictions/output_bias", "mlm_head/output_bias"),
    ),
}


def table(config: modeling.BertConfig, head: str) -> list[family.Row]:
    """Returns the rows of a model; InputError if KerasHub has no such one."""
    encoder = families.of(config)
    if encoder.keras_hub is None:
        raise InputError(
            "KerasHub has no such encoder: write it with --output_format=tf1. "
            f"Received: encoder={encoder.name}"
        )
    rows = (*encoder.keras_hub, *_HEADS[head])
    return family.expand(rows, config.num_hidden_layers)


def head_there(head: str) -> str:
    """Returns what KerasHub has of a head: the whole, a part or nothing."""
    own = (head, *names.HEADS[head].parts)
    return next((x for x in own if x in _HEADS), "encoder")


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
        "pooler_act": config.pooler_act,
    }
    fixed = {**_NUMERICS, "pooler_act": "tanh"}
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
