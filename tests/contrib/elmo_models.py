"""Small models of ELMo: files as bilm-tf writes them, and what they compute.

The reference is in PyTorch, in float64. It reads one sentence at a time, so it
has no padding, and it has bilm-tf's own ids, which are larger by 1.
"""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import h5py
import numpy as np

OPTIONS: dict[str, Any] = {
    "lstm": {
        "cell_clip": 0.5,
        "dim": 9,
        "n_layers": 2,
        "proj_clip": 0.8,
        "projection_dim": 6,
        "use_skip_connections": True,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 4},
        "filters": [[1, 3], [2, 4], [5, 5]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 2,
    },
}
_MAX = OPTIONS["char_cnn"]["max_characters_per_token"]


def tensors(options: Mapping[str, Any] = OPTIONS) -> dict[str, np.ndarray]:
    """Returns random tensors under their names in weights.hdf5."""
    lstm, cnn = options["lstm"], options["char_cnn"]
    E, P, U = cnn["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    N = sum(count for _, count in cnn["filters"])
    shapes: dict[str, tuple[int, ...]] = {
        "char_embed": (261, E),
        "CNN_proj/W_proj": (N, P),
        "CNN_proj/b_proj": (P,),
    }
    for i, (width, count) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, E, count)
        shapes[f"CNN/b_cnn_{i}"] = (count,)
    for i in range(cnn["n_highway"]):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{i}/W_{gate}"] = (N, N)
            shapes[f"CNN_high_{i}/b_{gate}"] = (N,)
    for way in range(2):
        for i in range(lstm["n_layers"]):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * P, 4 * U)
            shapes[f"{cell}/B"] = (4 * U,)
            shapes[f"{cell}/W_P_0"] = (U, P)
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(0, 0.6, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write(
    folder: pathlib.Path,
    options: Mapping[str, Any] = OPTIONS,
    found: Mapping[str, np.ndarray] | None = None,
) -> pathlib.Path:
    """Writes a folder of a released model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, value in (tensors() if found is None else found).items():
            file[name] = value
    return folder


def characters(word: str) -> list[int]:
    """Returns the ids of a word in bilm-tf's batches."""
    codes = {"<S>": [256], "</S>": [257]}.get(word)
    codes = list(word.encode())[: _MAX - 2] if codes is None else codes
    row = [258, *codes, 259]
    return [x + 1 for x in row + [260] * (_MAX - len(row))]


def layers(
    weights: Mapping[str, Any],
    words: Sequence[str],
    options: Mapping[str, Any] = OPTIONS,
) -> list[Any]:
    """Returns the layers for a sentence with its marks: [words + 2, D] each."""
    # Not installed everywhere.
    import torch

    lstm, cnn = options["lstm"], options["char_cnn"]
    ids = torch.tensor([characters(x) for x in ("<S>", *words, "</S>")])
    zero = torch.zeros_like(weights["char_embed"][:1])
    x = torch.cat([zero, weights["char_embed"]])[ids].transpose(1, 2)
    act = getattr(torch, cnn["activation"])
    found = []
    for i in range(len(cnn["filters"])):
        kernel = weights[f"CNN/W_cnn_{i}"][0].permute(2, 1, 0)
        y = torch.nn.functional.conv1d(x, kernel, weights[f"CNN/b_cnn_{i}"])
        found.append(act(y.max(dim=-1).values))
    x = torch.cat(found, dim=1)
    for i in range(cnn["n_highway"]):
        carry, change = (
            x @ weights[f"CNN_high_{i}/W_{gate}"]
            + weights[f"CNN_high_{i}/b_{gate}"]
            for gate in ("carry", "transform")
        )
        gate = torch.sigmoid(carry)
        x = gate * torch.relu(change) + (1 - gate) * x
    x = x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
    outputs = [torch.cat([x, x], dim=1)]
    ways = [x, x]
    for i in range(lstm["n_layers"]):
        states = [_lstm(weights, way, i, ways[way], lstm) for way in range(2)]
        if i and lstm["use_skip_connections"]:
            states = [s + y for s, y in zip(states, ways, strict=True)]
        ways = states
        outputs.append(torch.cat(ways, dim=1))
    return outputs


def _lstm(weights, way, layer, x, options):
    import torch

    cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    h, c = x.new_zeros(options["projection_dim"]), x.new_zeros(options["dim"])
    found = []
    for row in x.flip(0) if way else x:
        gates = torch.cat([row, h]) @ weights[f"{cell}/W_0"]
        i, j, f, o = (gates + weights[f"{cell}/B"]).chunk(4)
        c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)
        most = options["cell_clip"]
        c = c if most is None else c.clamp(-most, most)
        h = (torch.sigmoid(o) * torch.tanh(c)) @ weights[f"{cell}/W_P_0"]
        most = options["proj_clip"]
        h = h if most is None else h.clamp(-most, most)
        found.append(h)
    states = torch.stack(found)
    return states.flip(0) if way else states
