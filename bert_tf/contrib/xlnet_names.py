"""The names of XLNet's variables, in its checkpoints and in transformers.

The biases and segment embeddings of all layers are one variable each. Their
shapes have the letters N: attention heads, H: head size.
"""

from bert_tf.contrib import xlnet_config
from bert_tf.encoders import foreign

import numpy as np

_SHARED = "model/transformer"
WORDS = f"{_SHARED}/word_embedding/lookup_table"
_LAYER = f"{_SHARED}/layer_{{}}"
_OUR_POOLER = "model/sequnece_summary/summary"
POOLER = {f"{_OUR_POOLER}/kernel": "DD", f"{_OUR_POOLER}/bias": "D"}
_HEADS = ("q", "k", "v", "o", "r")
_OF_ALL_LAYERS = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")
VARIABLES = {
    WORDS: "VD",
    f"{_SHARED}/mask_emb/mask_emb": "11D",
    f"{_SHARED}/r_w_bias": "LNH",
    f"{_SHARED}/r_r_bias": "LNH",
    f"{_SHARED}/r_s_bias": "LNH",
    f"{_SHARED}/seg_embed": "L2NH",
    **{f"{_LAYER}/rel_attn/{x}/kernel": "DNH" for x in _HEADS},
    f"{_LAYER}/rel_attn/LayerNorm/beta": "D",
    f"{_LAYER}/rel_attn/LayerNorm/gamma": "D",
    f"{_LAYER}/ff/layer_1/kernel": "DF",
    f"{_LAYER}/ff/layer_1/bias": "F",
    f"{_LAYER}/ff/layer_2/kernel": "FD",
    f"{_LAYER}/ff/layer_2/bias": "D",
    f"{_LAYER}/ff/LayerNorm/beta": "D",
    f"{_LAYER}/ff/LayerNorm/gamma": "D",
}
_HF = "transformer.layer.{}"
_HF_WORDS = "transformer.word_embedding.weight"
_HF_POOLER = foreign.dense(_OUR_POOLER, "sequence_summary.summary")


def sizes(config: xlnet_config.XlnetConfig) -> dict[str, int]:
    """Returns the sizes of the letters above."""
    heads = config.num_attention_heads
    return {"N": heads, "H": config.hidden_size // heads}


def _head(
    kind: str, *rows: foreign.Row, has_pooler: bool = False
) -> foreign.HuggingFaceHead:
    own = _HF_POOLER if has_pooler else ()
    return foreign.HuggingFaceHead(f"XLNet{kind}", has_pooler, (*own, *rows))


def _conversions(config: xlnet_config.XlnetConfig) -> list[foreign.Conversion]:
    """Stacks the tensors that all layers have in one variable."""
    layers = range(config.num_hidden_layers)
    return [
        foreign.Conversion(
            [f"{_HF.format(i)}.rel_attn.{x}" for i in layers],
            [f"transformer.{x}"],
            lambda x: [np.stack(x)],
            lambda x: list(x[0]),
        )
        for x in _OF_ALL_LAYERS
    ]


HUGGINGFACE = foreign.HuggingFace(
    prefix="transformer.",
    rows=(
        foreign.Row(WORDS, _HF_WORDS),
        foreign.Row(f"{_SHARED}/mask_emb/mask_emb", "transformer.mask_emb"),
        *(
            foreign.Row(f"{_SHARED}/{x}", f"transformer.{x}")
            for x in _OF_ALL_LAYERS
        ),
        *(
            foreign.Row(f"{_LAYER}/rel_attn/{x}/kernel", f"{_HF}.rel_attn.{x}")
            for x in _HEADS
        ),
        *foreign.norm(
            f"{_LAYER}/rel_attn/LayerNorm", f"{_HF}.rel_attn.layer_norm"
        ),
        *foreign.dense(f"{_LAYER}/ff/layer_1", f"{_HF}.ff.layer_1"),
        *foreign.dense(f"{_LAYER}/ff/layer_2", f"{_HF}.ff.layer_2"),
        *foreign.norm(f"{_LAYER}/ff/LayerNorm", f"{_HF}.ff.layer_norm"),
    ),
    heads={
        "encoder": _head("Model"),
        "permuted_words": _head(
            "LMHeadModel", foreign.Row("model/lm_loss/bias", "lm_loss.bias")
        ),
        "classification": _head(
            "ForSequenceClassification",
            *foreign.output("", "logits_proj"),
            has_pooler=True,
        ),
        "tagging": _head(
            "ForTokenClassification",
            *foreign.output("cls/tagging/", "classifier"),
        ),
        "span": _head(
            "ForQuestionAnsweringSimple",
            *foreign.output("cls/squad/", "qa_outputs"),
        ),
        "multiple_choice": _head(
            "ForMultipleChoice",
            *foreign.output("cls/multiple_choice/", "logits_proj"),
            has_pooler=True,
        ),
    },
    tied={"lm_loss.weight": _HF_WORDS},
    conversions=_conversions,
    keys=xlnet_config.KEYS,
)
