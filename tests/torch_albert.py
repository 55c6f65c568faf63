"""ALBERT's pre-training in PyTorch, float64: nothing is shared with bert_tf.

The model is transformers' AlbertForPreTraining. The optimizers are written here
by their papers: LAMB (You et al., 2019, https://arxiv.org/abs/1904.00962,
algorithm 2) and Adam with decoupled weight decay and without bias correction,
which is the AdamWeightDecayOptimizer of google-research/albert.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import torch
import transformers

_BLOCK = r"encoder/transformer/group_\1/inner_group_\2/"
# Name of a tensor in transformers -> in the original's checkpoint, in turn.
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


def _original_name(name: str) -> str:
    for pattern, replacement in _NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def _model(
    config: Mapping[str, Any], prefix: str
) -> transformers.AlbertForPreTraining:
    """Makes the model with the weights of a TF1 checkpoint."""
    options = dict(config) | {
        # Of theirs the tanh form.
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-12,
        "attn_implementation": "eager",
    }
    model = transformers.AlbertForPreTraining(
        transformers.AlbertConfig(**options)
    ).double()
    # Their head for sentences drops out, the original's does not.
    model.eval()
    # Their table keeps the row of padding as it is; but [PAD] may stand, as any
    # piece, in the place of a masked word.
    model.albert.embeddings.word_embeddings.padding_idx = None
    tensors = tf.train.load_checkpoint(prefix)
    left = set(tensors.get_variable_to_shape_map())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            name = _original_name(name)
            value = np.float64(tensors.get_tensor(name))
            value = value.T if name.endswith("/kernel") else value
            parameter.copy_(torch.from_numpy(value))
            left.remove(name)
    assert not left, f"not in transformers' model: {left}"
    return model


def _losses(model, batch):
    """Mean loss of the masked words, mean loss of the sentences' order."""
    batch = {name: torch.from_numpy(value) for name, value in batch.items()}
    outputs = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"],
    )
    rows = torch.arange(len(batch["input_ids"]))[:, None]
    words = outputs.prediction_logits[rows, batch["masked_lm_positions"]]
    entropy = torch.nn.functional.cross_entropy(
        words.flatten(0, 1), batch["masked_lm_ids"].flatten(), reduction="none"
    )
    weights = batch["masked_lm_weights"].flatten()
    return (
        (weights * entropy).sum() / weights.sum(),
        torch.nn.functional.cross_entropy(
            outputs.sop_logits, batch["next_sentence_labels"][:, 0]
        ),
    )


# ---- Optimizers -------------------------------------------------------------

# Of a variable's m and v at step t = 1, 2, ..., its weights, its rate of decay
# and the learning rate -> what is subtracted.
_Update = Callable[
    [torch.Tensor, torch.Tensor, int, torch.Tensor, float, float], torch.Tensor
]


def _lamb(m, v, t, w, decay, rate):
    r = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6)
    u = r + decay * w
    ratio = w.norm() / u.norm() if w.norm() > 0 and u.norm() > 0 else 1.0
    return rate * ratio * u


def _adamw(m, v, t, w, decay, rate):
    del t
    return rate * (m / (v.sqrt() + 1e-6) + decay * w)


UPDATES: dict[str, _Update] = {"lamb": _lamb, "adamw": _adamw}


class _Optimizer:
    """Clips all gradients to a joint norm of 1, keeps m and v, updates."""

    def __init__(self, model, update):
        # A weight that layers share is there once, with the sum of gradients.
        self._parameters = {
            _original_name(name): p for name, p in model.named_parameters()
        }
        self._m = {n: torch.zeros_like(p) for n, p in self._parameters.items()}
        self._v = {n: torch.zeros_like(p) for n, p in self._parameters.items()}
        self._update = update
        self._steps = 0

    @torch.no_grad()
    def step(self, rate):
        """Updates the parameters; returns the norm of the gradients."""
        self._steps += 1
        gradients = {n: p.grad for n, p in self._parameters.items()}
        norm = sum((g**2).sum() for g in gradients.values()) ** 0.5
        for name, w in self._parameters.items():
            g = gradients[name] * min(1, 1 / norm)
            m = self._m[name] = 0.9 * self._m[name] + 0.1 * g
            v = self._v[name] = 0.999 * self._v[name] + 0.001 * g**2
            decay = 0.0 if re.search("LayerNorm|bias", name) else 0.01
            w -= self._update(m, v, self._steps, w, decay, rate)
            w.grad = None
        return norm.item()


def train(
    config: Mapping[str, Any],
    prefix: str,
    batches: Iterable[dict[str, np.ndarray]],
    optimizer: str,
    rates: Iterable[float],
) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
    """Trains from a TF1 checkpoint, a step for each batch and its rate.

    Returns:
        What each step reports, and the weights after the last.
    """
    # Tensors are tiny: threads would but wait for one another.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _train(_model(config, prefix), batches, optimizer, rates)
    finally:
        torch.set_num_threads(threads)


def _train(model, batches, optimizer, rates):
    updates = _Optimizer(model, UPDATES[optimizer])
    reports = []
    for batch, rate in zip(batches, rates, strict=True):
        words, order = _losses(model, batch)
        (words + order).backward()
        report = {
            "loss": words.item() + order.item(),
            "masked_lm_loss": words.item(),
            "sentence_order_loss": order.item(),
            "gradient_norm": updates.step(rate),
            "learning_rate": rate,
        }
        reports.append(report)
    weights = {}
    for name, parameter in model.named_parameters():
        name = _original_name(name)
        value = parameter.detach().numpy()
        weights[name] = value.T if name.endswith("/kernel") else value
    return reports, weights
