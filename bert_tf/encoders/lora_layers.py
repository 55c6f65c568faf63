"""LoRA: small matrices that are trained for the kernels of an encoder.

Hu et al., 2021, https://arxiv.org/abs/2106.09685.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from bert_tf.encoders import layers
from bert_tf.errors import InputError

import numpy as np

TARGETS = ("query", "key", "value", "dense")


@dataclasses.dataclass(frozen=True)
class Lora:
    """Which layers have matrices, and of what size.

    Attributes:
        rank: The columns of the first, the rows of the second.
        alpha: Their product counts alpha / rank.
        targets: Names of the dense layers of each transformer layer.
        is_stabilized: Whether it counts alpha / sqrt(rank) instead
            (Kalajdzievski, 2023, rsLoRA).
    """

    rank: int
    alpha: float
    targets: tuple[str, ...]
    is_stabilized: bool = False

    def __post_init__(self):
        is_whole = isinstance(self.rank, int) and not isinstance(
            self.rank, bool
        )
        if not is_whole or self.rank < 1:
            raise InputError(
                "rank must be a whole number from 1 up. "
                f"Received: rank={self.rank!r}"
            )
        is_number = isinstance(self.alpha, int | float)
        is_number &= not isinstance(self.alpha, bool)
        if not is_number or not self.alpha > 0:
            raise InputError(
                "alpha must be a positive number. "
                f"Received: alpha={self.alpha!r}"
            )
        unknown = sorted(set(self.targets) - set(TARGETS))
        if unknown or not self.targets:
            raise InputError(
                f"targets must be some of {', '.join(TARGETS)}. "
                f"Received: targets={', '.join(unknown) or 'none'}"
            )

    @property
    def scale(self) -> float:
        """What the product of the matrices is multiplied by."""
        divisor = math.sqrt(self.rank) if self.is_stabilized else self.rank
        return self.alpha / divisor


def enabled_lora(encoder: Any) -> Lora:
    """Returns the LoRA of an encoder; InputError without one."""
    if encoder.lora is None:
        raise InputError("The encoder has no LoRA: use enable_lora().")
    return encoder.lora


def dense_layers(model: Any) -> dict[str, layers.Dense]:
    """Returns the dense layers of an encoder by their names in checkpoints."""
    return {
        layer._kernel.path.removesuffix("/kernel"): layer
        for layer in model._flatten_layers()
        if isinstance(layer, layers.Dense)
    }


def targets_of(model: Any, lora: Lora) -> dict[str, layers.Dense]:
    """Returns the layers that have matrices, by their names in checkpoints."""
    return {
        name: layer
        for name, layer in dense_layers(model).items()
        if name.rpartition("/")[2] in lora.targets
    }


def enable(model: Any, lora: Lora) -> None:
    """Adds matrices to an encoder, and freezes everything else.

    Raises:
        InputError: The encoder is frozen, so that they would be as well.
    """
    if not model.trainable:
        raise InputError(
            "The encoder is frozen, and LoRA would be, too: set trainable=True "
            "first. Received: trainable=False"
        )
    for layer in targets_of(model, lora).values():
        layer.enable_lora(lora.rank, lora.scale)
    freeze_others(model)


def freeze_others(model: Any) -> None:
    """Freezes all variables but the matrices."""
    for variable in model.variables:
        if variable.name not in ("lora_a", "lora_b"):
            variable.trainable = False


def merge(model: Any, lora: Lora) -> None:
    """Makes the matrices a part of the kernels, and trains all again.

    Layers that are frozen as layers stay so.
    """
    for layer in targets_of(model, lora).values():
        layer.merge_lora()
    for layer in model._flatten_layers():
        # Without variables that are never trained.
        for variable in layer._trainable_variables:
            variable.trainable = layer.trainable


def merged_variables(model: Any) -> dict[str, Any]:
    """Returns the weights by their names in checkpoints, with LoRA merged."""
    found = {variable.path: variable for variable in model.variables}
    for layer in dense_layers(model).values():
        if layer.lora_scale is not None:
            del found[layer.lora_a.path], found[layer.lora_b.path]
            found[layer._kernel.path] = layer.kernel
    return found


def assign(model: Any, lora: Lora, values: Mapping[str, np.ndarray]) -> None:
    """Sets the matrices; where a layer has no values, the product becomes 0.

    Args:
        model: An encoder that has them.
        lora: Its layers.
        values: The matrices by the names of `dense_layers` and A or B.
    """
    for name, layer in targets_of(model, lora).items():
        if f"{name}.A" in values:
            layer.lora_a.assign(values[f"{name}.A"])
            layer.lora_b.assign(values[f"{name}.B"])
        else:
            layer.lora_b.assign(np.zeros(layer.lora_b.shape, np.float32))
