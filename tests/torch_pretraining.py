"""BERT's pre-training in PyTorch, float64: nothing is shared with bert_tf.

The model is transformers' BertForPreTraining. The optimizer is written here,
from the original (google-research/bert, optimization.py).

    python -m tests.torch_pretraining

prints the golden losses of tests/parity/test_training.py.
"""

import pathlib
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from tests import parity_run

import numpy as np
import tensorflow as tf
import torch
import transformers

# Name of a tensor in transformers -> in the original's checkpoint, in turn.
_NAMES = (
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


def _original_name(name: str) -> str:
    for pattern, replacement in _NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def _model(
    config: Mapping[str, Any], prefix: str
) -> transformers.BertForPreTraining:
    """Makes the model with the weights of a TF1 checkpoint."""
    options = dict(config) | {
        "hidden_act": "gelu_pytorch_tanh",
        "layer_norm_eps": 1e-12,
        "attn_implementation": "eager",
    }
    model = transformers.BertForPreTraining(
        transformers.BertConfig(**options)
    ).double()
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
    """Mean loss of the masked words, mean loss of the next sentences."""
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
            outputs.seq_relationship_logits,
            batch["next_sentence_labels"][:, 0],
        ),
    )


class _Adam:
    """AdamWeightDecayOptimizer of the original, with its clipping."""

    def __init__(self, model):
        self.parameters = dict(model.named_parameters())
        self.m = {k: torch.zeros_like(p) for k, p in self.parameters.items()}
        self.v = {k: torch.zeros_like(p) for k, p in self.parameters.items()}

    @torch.no_grad()
    def step(self, rate: float) -> float:
        """Updates the parameters; returns the norm of the gradients."""
        gradients = {k: p.grad for k, p in self.parameters.items()}
        norm = sum((g**2).sum() for g in gradients.values()) ** 0.5
        for name, parameter in self.parameters.items():
            g = gradients[name] * min(1, 1 / norm)
            m = self.m[name] = 0.9 * self.m[name] + 0.1 * g
            v = self.v[name] = 0.999 * self.v[name] + 0.001 * g**2
            update = m / (v.sqrt() + 1e-6)
            if not name.endswith("bias") and "LayerNorm" not in name:
                update += 0.01 * parameter
            parameter -= rate * update
            parameter.grad = None
        return norm.item()


def _rate(step: int) -> float:
    if step < parity_run.WARMUP:
        return parity_run.LEARNING_RATE * step / parity_run.WARMUP
    return parity_run.LEARNING_RATE * (1 - step / parity_run.STEPS)


def train(
    prefix: str, batches: Iterable[dict[str, np.ndarray]]
) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
    """Trains from a TF1 checkpoint.

    Returns:
        What each step reports, and the weights after the last.
    """
    model = _model(parity_run.CONFIG, prefix)
    optimizer = _Adam(model)
    reports = []
    for step, batch in enumerate(batches):
        words, following = _losses(model, batch)
        (words + following).backward()
        report = {
            "loss": words.item() + following.item(),
            "masked_lm_loss": words.item(),
            "next_sentence_loss": following.item(),
            "gradient_norm": optimizer.step(_rate(step)),
            "learning_rate": _rate(step),
        }
        reports.append(report)
    weights = {}
    for name, parameter in model.named_parameters():
        name = _original_name(name)
        value = parameter.detach().numpy()
        weights[name] = value.T if name.endswith("/kernel") else value
    return reports, weights


def main() -> None:
    """Prints the losses of every tenth step."""
    with tempfile.TemporaryDirectory() as folder:
        files = parity_run.write(pathlib.Path(folder))
        reports, _ = train(
            f"{folder}/bert_model.ckpt", parity_run.batches(files)
        )
    for step in range(9, parity_run.STEPS, 10):
        report = reports[step]
        print(
            f"    {step + 1}: ({report['masked_lm_loss']:.7f}, "
            f"{report['next_sentence_loss']:.7f}),"
        )


if __name__ == "__main__":
    main()
