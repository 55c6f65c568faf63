"""BERT's and ALBERT's pre-training in PyTorch, with transformers' models."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests import torch_training

import numpy as np
import transformers

_OF_BERT = (
    (r"LayerNorm\.weight$", "LayerNorm/gamma"),
    (r"LayerNorm\.bias$", "LayerNorm/beta"),
    (r"_embeddings\.weight$", "_embeddings"),
    (r"^cls\.predictions\.bias$", "cls/predictions/output_bias"),
    (r"seq_relationship\.weight$", "seq_relationship/output_weights"),
    (r"seq_relationship\.bias$", "seq_relationship/output_bias"),
    (r"\.weight$", "/kernel"),
    (r"layer\.(\d+)", r"layer_\1"),
    (r"\.", "/"),
)
_BLOCK = r"encoder/transformer/group_\1/inner_group_\2/"
_OF_ALBERT = (
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


class Form(NamedTuple):
    """A model of transformers, and its names of weights and losses.

    Attributes:
        config: Class of its configuration.
        model: Class of the model.
        act: Its name of the tanh form of GELU.
        names: Patterns of the original's names.
        sentences: Name of the loss of its second head.
    """

    config: Any
    model: Any
    act: str
    names: tuple[tuple[str, str], ...]
    sentences: str


BERT = Form(
    transformers.BertConfig,
    transformers.BertForPreTraining,
    "gelu_pytorch_tanh",
    _OF_BERT,
    "next_sentence_loss",
)
ALBERT = Form(
    transformers.AlbertConfig,
    transformers.AlbertForPreTraining,
    "gelu_new",
    _OF_ALBERT,
    "sentence_order_loss",
)


def train(
    form: Form,
    values: Mapping[str, Any],
    weights: Mapping[str, np.ndarray],
    batches: Iterable[dict[str, np.ndarray]],
    rates: Iterable[float],
    optimizer: str = "adamw",
) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
    """Trains from weights by the original's names.

    Returns:
        The metrics of each step, and the weights after the last one.
    """
    config = torch_training.config(form.config, values, form.act)
    model = form.model(config).double()
    # transformers' ALBERT has dropout in the sentence head, the original does
    # not.
    model.eval()
    # transformers does not train the embedding of padding; but like any token,
    # [PAD] may replace a masked word.
    model.get_input_embeddings().padding_idx = None
    parameters = torch_training.renamed(model, form.names)
    torch_training.load(parameters, weights)
    reports = torch_training.train(
        parameters,
        torch_training.words_and_sentences(model, form.sentences),
        ((batch,) for batch in batches),
        rates,
        optimizer,
    )
    return reports, torch_training.values_of(parameters)
