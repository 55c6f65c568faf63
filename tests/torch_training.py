"""Pre-training in PyTorch, float64, without any code of bert_tf.

Clipping and optimizers are implemented here from their papers: Adam with
decoupled weight decay and without bias correction, which is the original's
AdamWeightDecayOptimizer, and LAMB (You et al., 2019,
https://arxiv.org/abs/1904.00962, algorithm 2), also in the form of
google-research/albert.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

Parameters = Mapping[str, torch.nn.Parameter]
Batch = Mapping[str, np.ndarray]


def config(kind: type[Any], values: Mapping[str, Any], act: str) -> Any:
    """Returns a configuration of transformers, with our dtypes."""
    options = {"layer_norm_eps": 1e-12, "attn_implementation": "eager"}
    return kind(**dict(values) | options | {"hidden_act": act})


def renamed(
    model: torch.nn.Module, names: Sequence[tuple[str, str]]
) -> dict[str, torch.nn.Parameter]:
    """Returns parameters by the original's names.

    Args:
        model: The model; weights that layers share occur once.
        names: Patterns and their replacements, applied in turn.
    """
    found = {}
    for name, parameter in model.named_parameters():
        for pattern, replacement in names:
            name = re.sub(pattern, replacement, name)
        found[name] = parameter
    return found


def load(parameters: Parameters, weights: Mapping[str, np.ndarray]) -> None:
    """Sets parameters to a checkpoint's weights, whose names must be equal."""
    assert parameters.keys() == weights.keys()
    with torch.no_grad():
        for name, parameter in parameters.items():
            value = np.float64(weights[name])
            value = value.T if name.endswith("/kernel") else value
            parameter.copy_(torch.from_numpy(value))


def values_of(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns parameters or their gradients in the original's layout."""
    values = {name: x.detach().numpy().copy() for name, x in tensors.items()}
    return {n: x.T if n.endswith("/kernel") else x for n, x in values.items()}


def masked_words(
    logits: torch.Tensor, batch: Mapping[str, Any]
) -> torch.Tensor:
    """Returns the mean loss of the masked words, from logits [B, S, V]."""
    rows = torch.arange(len(logits))[:, None]
    entropy = torch.nn.functional.cross_entropy(
        logits[rows, batch["masked_lm_positions"]].flatten(0, 1),
        batch["masked_lm_ids"].flatten(),
        reduction="none",
    )
    weights = batch["masked_lm_weights"].flatten().double()
    return (weights * entropy).sum() / weights.sum()


def words_and_sentences(
    model: Any, sentences: str
) -> Callable[[Batch], dict[str, torch.Tensor]]:
    """Returns a function that computes the losses of pre-training.

    Args:
        model: A model of transformers.
        sentences: Name of the loss of its second head.
    """

    def losses(batch: Batch) -> dict[str, torch.Tensor]:
        there = {name: torch.from_numpy(x) for name, x in batch.items()}
        words, order = model(
            input_ids=there["input_ids"],
            attention_mask=there["input_mask"],
            token_type_ids=there["segment_ids"],
        ).to_tuple()
        labels = there["next_sentence_labels"][:, 0]
        return {
            "masked_lm_loss": masked_words(words, there),
            sentences: torch.nn.functional.cross_entropy(order, labels),
        }

    return losses


# ---- Optimizers -------------------------------------------------------------


def _lamb(m, v, t, w, decay, rate):
    r = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6)
    u = r + decay * w
    ratio = w.norm() / u.norm() if w.norm() > 0 and u.norm() > 0 else 1.0
    return rate * ratio * u


def _lamb_uncorrected(m, v, t, w, decay, rate):
    del t
    u = m / (v.sqrt() + 1e-6) + decay * w
    # Weights without decay are not adapted, either.
    is_adapted = decay > 0 and w.norm() > 0 and u.norm() > 0
    return rate * (w.norm() / u.norm() if is_adapted else 1.0) * u


def _adamw(m, v, t, w, decay, rate):
    del t
    return rate * (m / (v.sqrt() + 1e-6) + decay * w)


# Maps m and v at step t = 1, 2, ..., weights, their decay and the learning rate
# to the update that is subtracted.
_UPDATES: dict[str, Callable[..., torch.Tensor]] = {
    "lamb": _lamb,
    "lamb_uncorrected": _lamb_uncorrected,
    "adamw": _adamw,
}


class _Optimizer:
    """Clips gradients to a global norm of 1, tracks m and v, updates."""

    def __init__(self, parameters: Parameters, name: str):
        self.parameters = parameters
        self.m = {n: torch.zeros_like(p) for n, p in parameters.items()}
        self.v = {n: torch.zeros_like(p) for n, p in parameters.items()}
        self.update, self.steps = _UPDATES[name], 0

    @torch.no_grad()
    def step(self, rate: float) -> float:
        """Updates the parameters; returns the norm of the gradients."""
        self.steps += 1
        gradients: dict[str, Any] = {
            name: w.grad for name, w in self.parameters.items()
        }
        norm = sum((g**2).sum() for g in gradients.values()) ** 0.5
        for name, w in self.parameters.items():
            g = gradients[name] * min(1, 1 / norm)
            m = self.m[name] = 0.9 * self.m[name] + 0.1 * g
            v = self.v[name] = 0.999 * self.v[name] + 0.001 * g**2
            decay = 0.0 if re.search("LayerNorm|bias", name) else 0.01
            w.sub_(self.update(m, v, self.steps, w, decay, rate))
            w.grad = None
        return norm.item()


def rates(steps: int, warmup: int, peak: float) -> list[float]:
    """Returns a warmup, then BERT's linear decay, which starts at step 0."""
    return [
        peak * (step / warmup if step < warmup else 1 - step / steps)
        for step in range(steps)
    ]


def train(
    parameters: Parameters,
    losses: Callable[..., dict[str, torch.Tensor]],
    batches: Iterable[tuple[Any, ...]],
    rates: Iterable[float],
    optimizer: str = "adamw",
    factors: Mapping[str, float] | None = None,
) -> list[dict[str, float]]:
    """Trains one step per batch and rate; returns the metrics of each step.

    Args:
        parameters: The parameters to train.
        losses: Maps an item of `batches` to losses by name.
        batches: Arguments of `losses`.
        rates: Learning rates.
        optimizer: A name in `_UPDATES`.
        factors: Weights of losses in the objective, if not 1.
    """
    # Tensors are tiny: threads would only wait for each other.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    updates, reports = _Optimizer(parameters, optimizer), []
    try:
        for batch, rate in zip(batches, rates, strict=True):
            found = losses(*batch)
            weighted = [(factors or {}).get(n, 1) * x for n, x in found.items()]
            loss = torch.stack(weighted).sum()
            loss.backward()
            reports.append(
                {"loss": loss.item(), "learning_rate": rate}
                | {name: x.item() for name, x in found.items()}
                | {"gradient_norm": updates.step(rate)}
            )
    finally:
        torch.set_num_threads(threads)
    return reports
