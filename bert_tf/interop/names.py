"""The variables of every BERT by name and shape, and the heads they make.

Shapes as in modeling.py, and C: classes; digits are themselves.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from bert_tf import modeling

_EMBEDDINGS = {
    "bert/embeddings/word_embeddings": "VD",
    "bert/embeddings/token_type_embeddings": "TD",
    "bert/embeddings/position_embeddings": "MD",
    "bert/embeddings/LayerNorm/beta": "D",
    "bert/embeddings/LayerNorm/gamma": "D",
}
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
POOLER = {"bert/pooler/dense/kernel": "DD", "bert/pooler/dense/bias": "D"}
_PREDICTIONS = {
    "cls/predictions/transform/dense/kernel": "DD",
    "cls/predictions/transform/dense/bias": "D",
    "cls/predictions/transform/LayerNorm/beta": "D",
    "cls/predictions/transform/LayerNorm/gamma": "D",
    "cls/predictions/output_bias": "V",
}
_SENTENCES = {
    "cls/seq_relationship/output_weights": "2D",
    "cls/seq_relationship/output_bias": "2",
}
HEADS: dict[str, dict[str, str]] = {
    "encoder": {},
    "pretraining": _PREDICTIONS | _SENTENCES,
    "masked_lm": _PREDICTIONS,
    "next_sentence": _SENTENCES,
    "classification": {"output_weights": "CD", "output_bias": "C"},
    "tagging": {
        "cls/tagging/output_weights": "CD",
        "cls/tagging/output_bias": "C",
    },
    "span": {"cls/squad/output_weights": "2D", "cls/squad/output_bias": "2"},
    "multiple_choice": {
        "cls/multiple_choice/output_weights": "1D",
        "cls/multiple_choice/output_bias": "1",
    },
}
# Heads over the pooled output; the others leave the pooler as it is.
POOLED = frozenset(
    {"pretraining", "next_sentence", "classification", "multiple_choice"}
)
# Heads whose classes have names.
LABELLED = frozenset({"classification", "tagging"})


class Row(NamedTuple):
    """A line of a foreign format's table.

    Attributes:
        ours: the original's name; `{}` stands for the number of a layer.
        theirs: the foreign name, likewise.
        transposed: whether the two axes of a matrix change places.
    """

    ours: str
    theirs: str
    transposed: bool = False


def expand(table: Iterable[Row], num_layers: int) -> list[Row]:
    """Returns a table with the rows of each layer."""
    rows = []
    for row in table:
        layers = range(num_layers) if "{}" in row.ours else [0]
        rows += [
            Row(row.ours.format(i), row.theirs.format(i), row.transposed)
            for i in layers
        ]
    return rows


def shapes(
    config: modeling.BertConfig, head: str, num_labels: int = 0
) -> dict[str, tuple[int, ...]]:
    """Returns name -> shape of all variables of a BERT with a head.

    Args:
        config: its architecture.
        head: a key of HEADS.
        num_labels: C.
    """
    letters = _EMBEDDINGS | POOLER | HEADS[head]
    for i in range(config.num_hidden_layers):
        prefix = f"bert/encoder/layer_{i}"
        letters |= {f"{prefix}/{n}": shape for n, shape in _LAYER.items()}
    sizes = {
        "V": config.vocab_size,
        "T": config.type_vocab_size,
        "M": config.max_position_embeddings,
        "D": config.hidden_size,
        "F": config.intermediate_size,
        "C": num_labels,
        "1": 1,
        "2": 2,
    }
    return {n: tuple(sizes[x] for x in shape) for n, shape in letters.items()}


def find_head(found: Collection[str], path: str) -> str:
    """Returns the head, a key of HEADS, that a checkpoint's names make.

    Raises:
        ValueError: There are several.
    """
    heads = [
        head for head, own in HEADS.items() if own and own.keys() <= set(found)
    ]
    if "pretraining" in heads:
        heads = [h for h in heads if h not in ("masked_lm", "next_sentence")]
    if len(heads) > 1:
        raise ValueError(
            f"{path} holds several heads: {', '.join(heads)}. Say which one "
            "is meant with --head."
        )
    return heads[0] if heads else "encoder"


def _up_to_a_missing_layer(
    config: modeling.BertConfig, found: Collection[str]
) -> modeling.BertConfig:
    """Returns the config without layers beyond the first that is missing.

    Any number may stand in a file, and memory ends.
    """
    count = config.num_hidden_layers
    layers = {
        name.split("/")[2]
        for name in found
        if name.startswith("bert/encoder/layer_")
    }
    return dataclasses.replace(
        config, num_hidden_layers=min(count, len(layers) + 1)
    )


def check(
    config: modeling.BertConfig,
    found: Mapping[str, tuple[int, ...]],
    path: str,
    config_path: str | None = None,
) -> None:
    """Raises ValueError if a config does not describe the tensors.

    Args:
        config: that came with them.
        found: name -> shape. Heads and the pooler may be missing.
        path: of the checkpoint, for the message.
        config_path: of the config, if it does not lie beside them.
    """
    short = _up_to_a_missing_layer(config, found)
    expected = shapes(short, "encoder")
    for head in HEADS:
        outputs = [n for n in HEADS[head] if n.endswith("output_bias")]
        labels = found[outputs[0]] if outputs and outputs[0] in found else (0,)
        own = shapes(short, head, *labels)
        expected |= {n: shape for n, shape in own.items() if n in found}
    problems = [
        f"{name} is not there"
        for name in sorted(expected.keys() - found.keys() - POOLER.keys())
    ]
    problems += [
        f"{name} is {list(found[name])} there and {list(shape)} by the config"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    # The first layer too many.
    layer = f"bert/encoder/layer_{config.num_hidden_layers}/"
    problems += [
        f"{name} is not in the config, which says "
        f"num_hidden_layers={config.num_hidden_layers}"
        for name in sorted(found)
        if name.startswith(layer)
    ]
    if problems:
        more = len(problems) - 3
        shown = problems[:3] + ([f"and {more} more"] if more > 0 else [])
        raise ValueError(
            f"{path}: the tensors are not those of "
            f"{config_path or 'the config beside them'}: "
            f"{'; '.join(shown)}. Use the config that belongs to them."
        )
