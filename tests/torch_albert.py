"""ALBERT's pre-training in PyTorch: transformers' AlbertForPreTraining."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests import torch_training

import numpy as np
import transformers

_BLOCK = r"encoder/transformer/group_\1/inner_group_\2/"
_NAMES = (
    (r"^albert\.", "bert."),
    (r"encoder\.albert_layer_groups\.(\d+)\.albert_layers\.(\d+)\.", _BLOCK),
    (r"/attention\.(query|key|value)\.", r"/attention_1.self.\1."),
    (r"/attention\.dense\.", "/attention_1.output.dense."),
    (r"/attention\.LayerNorm\.", "/LayerNorm."),
    (r"/ffn\.", "/ffn_1.intermediate.dense."),
    (r"/ffn_output\.", "/ffn_1.intermediate.output.dense."),
    (r"/full_layer_layer_norm\.", "/LayerNorm_1."),
    (r"\.pooler\.", ".pooler.dense."),
    (r"^predictions\.(dense|LayerNorm)", r"cls.predictions.transform.\1"),
    (r"^predictions\.bias$", "cls.predictions.output_bias"),
    (r"^sop_classifier\.classifier\.", "cls.seq_relationship.output_"),
    (r"output_weight$", "output_weights"),
    (r"(LayerNorm\w*)\.weight$", r"\1.gamma"),
    (r"(LayerNorm\w*)\.bias$", r"\1.beta"),
    (r"_embeddings\.weight$", "_embeddings"),
    (r"\.weight$", ".kernel"),
    (r"\.", "/"),
)


def train(
    values: Mapping[str, Any],
    weights: Mapping[str, np.ndarray],
    batches: Iterable[dict[str, np.ndarray]],
    optimizer: str,
    rates: Iterable[float],
) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
    """Trains from weights by the original's names.

    Returns:
        What each step reports, and the weights after the last.
    """
    kind = transformers.AlbertConfig
    # Of theirs the tanh form.
    config = torch_training.config(kind, values, "gelu_new")
    model = transformers.AlbertForPreTraining(config).double()
    # Their head for sentences drops out, the original's does not.
    model.eval()
    # Their table keeps the row of padding as it is; but [PAD] may stand, as any
    # piece, in the place of a masked word.
    model.albert.embeddings.word_embeddings.padding_idx = None
    parameters = torch_training.renamed(model, _NAMES)
    torch_training.load(parameters, weights)
    reports = torch_training.train(
        parameters,
        torch_training.words_and_sentences(model, "sentence_order_loss"),
        ((batch,) for batch in batches),
        rates,
        optimizer,
    )
    return reports, torch_training.values_of(parameters)
