"""ELECTRA's pre-training in PyTorch, float64: nothing is shared with bert_tf.

The models are transformers' ElectraForMaskedLM and ElectraForPreTraining, over
one module of embeddings. The losses are written here by the paper (Clark et
al., 2020, section 2) and the optimizer by google-research/electra, with its
clipping. What the generator is to put into a text is given, as it hangs on the
numbers that are drawn.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
import transformers

# Name of a tensor in transformers -> in the original's checkpoint, in turn.
_NAMES = (
    (r"generator_lm_head\.bias$", "generator_predictions/output_bias"),
    (r"dense_prediction\.", "dense_1."),
    (r"LayerNorm\.weight$", "LayerNorm/gamma"),
    (r"LayerNorm\.bias$", "LayerNorm/beta"),
    (r"_embeddings\.weight$", "_embeddings"),
    (r"\.weight$", "/kernel"),
    (r"layer\.(\d+)", r"layer_\1"),
    (r"\.", "/"),
)


def original_name(name: str) -> str:
    """Returns what the original calls a tensor of the discriminator's."""
    for pattern, replacement in _NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def _config(values: Mapping[str, Any]) -> transformers.ElectraConfig:
    options = dict(values) | {
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "attn_implementation": "eager",
    }
    return transformers.ElectraConfig(**options)


class Pretraining:
    """Both models, with the weights of an original's checkpoint.

    Attributes:
        parameters: By the original's names, each once.
    """

    def __init__(
        self,
        discriminator: Mapping[str, Any],
        generator: Mapping[str, Any],
        weights: Mapping[str, np.ndarray],
    ):
        """Takes the architectures, and the weights by the original's names."""
        self.discriminator = transformers.ElectraForPreTraining(
            _config(discriminator)
        ).double()
        self.generator = transformers.ElectraForMaskedLM(
            _config(generator)
        ).double()
        embeddings = self.discriminator.electra.embeddings
        self.generator.electra.embeddings = embeddings
        table = embeddings.word_embeddings
        self.generator.generator_lm_head.weight = table.weight
        # Their table keeps the row of padding as it is; but [PAD] may stand, as
        # any piece, in the place of a masked word.
        table.padding_idx = None
        self.parameters = {
            original_name(name): p
            for name, p in self.discriminator.named_parameters()
        }
        for name, parameter in self.generator.named_parameters():
            name = original_name(name)
            if not name.startswith("electra/embeddings/"):
                name = re.sub("^electra/", "generator/", name)
                self.parameters.setdefault(name, parameter)
        assert self.parameters.keys() == weights.keys()
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                value = np.float64(weights[name])
                value = value.T if name.endswith("/kernel") else value
                parameter.copy_(torch.from_numpy(value))

    def losses(
        self, batch: Mapping[str, np.ndarray], sampled: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the means over masked words and over all tokens.

        The batch has int64 `input_ids`, with masks, `input_mask` and
        `segment_ids` [B, S], `masked_lm_positions` and `masked_lm_ids` [B, P],
        and float `masked_lm_weights` [B, P]; sampled are ids [B, P].
        """
        there = {name: torch.from_numpy(x) for name, x in batch.items()}
        inputs = {
            "attention_mask": there["input_mask"],
            "token_type_ids": there["segment_ids"],
        }
        rows = torch.arange(len(batch["input_ids"]))[:, None]
        logits = self.generator(input_ids=there["input_ids"], **inputs).logits
        entropy = torch.nn.functional.cross_entropy(
            logits[rows, there["masked_lm_positions"]].flatten(0, 1),
            there["masked_lm_ids"].flatten(),
            reduction="none",
        )
        weights = there["masked_lm_weights"].flatten().double()
        words = (weights * entropy).sum() / weights.sum()
        text, seen = batch["input_ids"].copy(), batch["input_ids"].copy()
        for row, column in np.argwhere(batch["masked_lm_weights"] > 0):
            place = batch["masked_lm_positions"][row, column]
            text[row, place] = batch["masked_lm_ids"][row, column]
            seen[row, place] = sampled[row, column]
        scores = self.discriminator(
            input_ids=torch.from_numpy(seen), **inputs
        ).logits
        entropy = torch.nn.functional.binary_cross_entropy_with_logits(
            scores,
            torch.from_numpy(seen != text).double(),
            reduction="none",
        )
        is_token = there["input_mask"].double()
        return words, (is_token * entropy).sum() / is_token.sum()

    def gradients(self) -> dict[str, np.ndarray]:
        """Returns those of a backward pass, by and as the original's."""
        found = {}
        for name, parameter in self.parameters.items():
            gradient = parameter.grad
            assert gradient is not None, name
            value = gradient.numpy().copy()
            found[name] = value.T if name.endswith("/kernel") else value
        return found

    def weights(self) -> dict[str, np.ndarray]:
        """Returns the weights, by and as the original's."""
        values = {n: p.detach().numpy() for n, p in self.parameters.items()}
        return {
            name: value.T if name.endswith("/kernel") else value
            for name, value in values.items()
        }


class _Adam:
    """AdamWeightDecayOptimizer of the original, with its clipping."""

    def __init__(self, parameters: Mapping[str, Any]):
        self.parameters = parameters
        self.m = {k: torch.zeros_like(p) for k, p in parameters.items()}
        self.v = {k: torch.zeros_like(p) for k, p in parameters.items()}

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
            if not re.search("LayerNorm|bias", name):
                update += 0.01 * parameter
            parameter -= rate * update
            parameter.grad = None
        return norm.item()


def train(
    model: Pretraining,
    batches: Iterable[Mapping[str, np.ndarray]],
    samples: Iterable[np.ndarray],
    rates: Iterable[float],
) -> list[dict[str, float]]:
    """Trains, a step for each batch; returns what each step reports."""
    # Tensors are tiny: threads would but wait for one another.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    optimizer, reports = _Adam(model.parameters), []
    model.discriminator.eval()
    model.generator.eval()
    try:
        for batch, own, rate in zip(batches, samples, rates, strict=True):
            words, tokens = model.losses(batch, own)
            loss = words + 50 * tokens
            loss.backward()
            report = {
                "loss": loss.item(),
                "masked_lm_loss": words.item(),
                "disc_loss": tokens.item(),
                "gradient_norm": optimizer.step(rate),
            }
            reports.append(report)
    finally:
        torch.set_num_threads(threads)
    return reports
