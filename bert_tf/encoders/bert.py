"""BERT's row: its variables, and what others call them.

A kernel is [in, out] with us and [out, in] in files of Hugging Face. KerasHub's
attention kernels are [D, N, H] and [N, H, D], the same numbers in the same
order.
"""

from bert_tf import modeling
from bert_tf.encoders import family

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
_OURS = "bert/encoder/layer_{}"


# ---- Hugging Face -----------------------------------------------------------


def _dense(ours: str, theirs: str) -> tuple[family.Row, ...]:
    return (
        family.Row(f"{ours}/kernel", f"{theirs}.weight", transposed=True),
        family.Row(f"{ours}/bias", f"{theirs}.bias"),
    )


def _norm(ours: str, theirs: str) -> tuple[family.Row, ...]:
    return (
        family.Row(f"{ours}/gamma", f"{theirs}.weight"),
        family.Row(f"{ours}/beta", f"{theirs}.bias"),
    )


_HF = "bert.encoder.layer.{}"
_HUGGINGFACE = (
    *(
        family.Row(f"bert/embeddings/{n}", f"bert.embeddings.{n}.weight")
        for n in (
            "word_embeddings",
            "token_type_embeddings",
            "position_embeddings",
        )
    ),
    *_norm("bert/embeddings/LayerNorm", "bert.embeddings.LayerNorm"),
    *_dense(f"{_OURS}/attention/self/query", f"{_HF}.attention.self.query"),
    *_dense(f"{_OURS}/attention/self/key", f"{_HF}.attention.self.key"),
    *_dense(f"{_OURS}/attention/self/value", f"{_HF}.attention.self.value"),
    *_dense(f"{_OURS}/attention/output/dense", f"{_HF}.attention.output.dense"),
    *_norm(
        f"{_OURS}/attention/output/LayerNorm",
        f"{_HF}.attention.output.LayerNorm",
    ),
    *_dense(f"{_OURS}/intermediate/dense", f"{_HF}.intermediate.dense"),
    *_dense(f"{_OURS}/output/dense", f"{_HF}.output.dense"),
    *_norm(f"{_OURS}/output/LayerNorm", f"{_HF}.output.LayerNorm"),
    *_dense("bert/pooler/dense", "bert.pooler.dense"),
)


# ---- KerasHub ---------------------------------------------------------------


def _pair(ours: str, theirs: str, *parts: str) -> tuple[family.Row, ...]:
    return tuple(family.Row(f"{ours}/{n}", f"{theirs}/{n}") for n in parts)


def _keras_dense(ours: str, theirs: str) -> tuple[family.Row, ...]:
    return _pair(ours, theirs, "kernel", "bias")


def _keras_norm(ours: str, theirs: str) -> tuple[family.Row, ...]:
    return _pair(ours, theirs, "gamma", "beta")


_KH = "transformer_layer_{}"
_SELF = f"{_KH}/self_attention_layer"
_KERAS_HUB = (
    family.Row("bert/embeddings/word_embeddings", "token_embedding/embeddings"),
    family.Row(
        "bert/embeddings/token_type_embeddings", "segment_embedding/embeddings"
    ),
    family.Row(
        "bert/embeddings/position_embeddings", "position_embedding/embeddings"
    ),
    *_keras_norm("bert/embeddings/LayerNorm", "embeddings_layer_norm"),
    *_keras_dense(f"{_OURS}/attention/self/query", f"{_SELF}/query"),
    *_keras_dense(f"{_OURS}/attention/self/key", f"{_SELF}/key"),
    *_keras_dense(f"{_OURS}/attention/self/value", f"{_SELF}/value"),
    *_keras_dense(
        f"{_OURS}/attention/output/dense", f"{_SELF}/attention_output"
    ),
    *_keras_norm(f"{_OURS}/attention/output/LayerNorm", f"{_SELF}_norm"),
    *_keras_dense(
        f"{_OURS}/intermediate/dense", f"{_KH}/feedforward_intermediate_dense"
    ),
    *_keras_dense(f"{_OURS}/output/dense", f"{_KH}/feedforward_output_dense"),
    *_keras_norm(f"{_OURS}/output/LayerNorm", f"{_KH}/feedforward_layer_norm"),
    *_keras_dense("bert/pooler/dense", "pooled_dense"),
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
    huggingface=_HUGGINGFACE,
    keras_hub=_KERAS_HUB,
)
