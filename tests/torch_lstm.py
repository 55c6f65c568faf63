"""A BiLSTM of PyTorch with our weights, in float64."""

from collections.abc import Mapping
from typing import Any

import keras
import torch


def weights_of(model: keras.Model) -> dict[str, torch.Tensor]:
    """Returns the values of a model's variables, which take gradients."""
    return {
        v.path: torch.tensor(v.numpy().astype(float), requires_grad=True)
        for v in model.variables
    }


def part(weights: Mapping[str, torch.Tensor], before: str) -> dict[str, Any]:
    """Returns the weights of a layer, by the rest of their names."""
    return {
        name.removeprefix(before): value
        for name, value in weights.items()
        if name.startswith(before)
    }


def states(
    x: torch.Tensor, weights: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    """Returns the concatenated states of both directions, [S, 2 H].

    Args:
        x: The inputs, [S, E].
        weights: Our weights by name, such as `forward/kernel`.
    """
    H = weights["forward/recurrent_kernel"].shape[0]
    lstm = torch.nn.LSTM(x.shape[1], H, bidirectional=True, dtype=torch.float64)
    # PyTorch's order is input, forget, candidate, output.
    order = [*range(2 * H), *range(3 * H, 4 * H), *range(2 * H, 3 * H)]
    own: dict[str, Any] = {}
    for name, end in (("forward", ""), ("backward", "_reverse")):
        own |= {
            f"{theirs}_l0{end}": torch.movedim(
                weights[f"{name}/{ours}"][..., order], -1, 0
            )
            for theirs, ours in (
                ("weight_ih", "kernel"),
                ("weight_hh", "recurrent_kernel"),
                ("bias_ih", "bias"),
            )
        }
        own[f"bias_hh_l0{end}"] = torch.zeros(4 * H, dtype=torch.float64)
    found, _ = torch.func.functional_call(lstm, own, (x[:, None],))
    return found[:, 0]


def ends(found: torch.Tensor) -> torch.Tensor:
    """Returns the last state of each direction, [2 H], from all states."""
    H = found.shape[1] // 2
    return torch.cat([found[-1, :H], found[0, H:]])
