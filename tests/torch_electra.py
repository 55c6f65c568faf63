"""ELECTRA's pre-training in PyTorch, from section 2 of the paper.

The models are transformers' ElectraForMaskedLM and ElectraForPreTraining, with
shared embeddings. The tokens sampled from the generator are an input, as they
depend on random numbers.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests import torch_training

import numpy as np
import torch
import transformers

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


def _config(values: Mapping[str, Any]) -> Any:
    return torch_training.config(transformers.ElectraConfig, values, "gelu")


class Pretraining:
    """Both models, with the weights of an original's checkpoint.

    Attributes:
        parameters: Distinct parameters, by the original's names.
    """

    def __init__(
        self,
        discriminator: Mapping[str, Any],
        generator: Mapping[str, Any],
        weights: Mapping[str, np.ndarray],
    ):
        """Takes the architectures, and the weights by the original's names."""
        self.discriminator = (
            transformers.ElectraForPreTraining(_config(discriminator))
            .double()
            .eval()
        )
        self.generator = (
            transformers.ElectraForMaskedLM(_config(generator)).double().eval()
        )
        embeddings = self.discriminator.electra.embeddings
        self.generator.electra.embeddings = embeddings
        table = embeddings.word_embeddings
        self.generator.generator_lm_head.weight = table.weight
        # transformers does not train the embedding of padding; but like any
        # token, [PAD] may replace a masked word.
        table.padding_idx = None
        self.parameters = torch_training.renamed(self.discriminator, _NAMES)
        own = torch_training.renamed(self.generator, _NAMES)
        for name, parameter in own.items():
            if not name.startswith("electra/embeddings/"):
                name = re.sub("^electra/", "generator/", name)
                self.parameters.setdefault(name, parameter)
        torch_training.load(self.parameters, weights)

    def losses(
        self, batch: Mapping[str, np.ndarray], sampled: np.ndarray
    ) -> dict[str, torch.Tensor]:
        """Returns the mean losses over masked words and over all tokens.

        The batch has int64 `input_ids`, with masks, `input_mask` and
        `segment_ids` [B, S], `masked_lm_positions` and `masked_lm_ids` [B, P],
        and float `masked_lm_weights` [B, P]; `sampled` are ids [B, P].
        """
        there = {name: torch.from_numpy(x) for name, x in batch.items()}
        inputs = {
            "attention_mask": there["input_mask"],
            "token_type_ids": there["segment_ids"],
        }
        logits = self.generator(input_ids=there["input_ids"], **inputs).logits
        text, seen = batch["input_ids"].copy(), batch["input_ids"].copy()
        for row, column in np.argwhere(batch["masked_lm_weights"] > 0):
            place = batch["masked_lm_positions"][row, column]
            text[row, place] = batch["masked_lm_ids"][row, column]
            seen[row, place] = sampled[row, column]
        scores = self.discriminator(input_ids=torch.from_numpy(seen), **inputs)
        entropy = torch.nn.functional.binary_cross_entropy_with_logits(
            scores.logits,
            torch.from_numpy(seen != text).double(),
            reduction="none",
        )
        is_token = there["input_mask"].double()
        return {
            "masked_lm_loss": torch_training.masked_words(logits, there),
            "disc_loss": (is_token * entropy).sum() / is_token.sum(),
        }
