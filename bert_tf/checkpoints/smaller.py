"""Prunes checkpoints to fewer layers or fewer feed-forward units per layer.

The result is the same encoder with a smaller config: an ordinary checkpoint
that all scripts and other formats can read.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import configuration
from bert_tf.checkpoints import generators, names, opened
from bert_tf.encoders import families
from bert_tf.errors import InputError

import numpy as np


def keep_layers(
    source: opened.Checkpoint, layers: Sequence[int]
) -> opened.Checkpoint:
    """Returns the checkpoint with these layers only, renumbered from 0.

    Everything but training state and a generator is kept. Raises InputError for
    layers that do not exist, share their weights or do not fit each other.
    """
    config = _config_of(source)
    check_layers(layers, config, source.path)
    family = families.find(config)
    numbers = {layer: number for number, layer in enumerate(layers)}
    old = {}
    for name in source.shapes:
        layer = family.layer(name)
        if layer is None:
            old[name] = name
        elif layer in numbers:
            old[family.renumbered(name, numbers[layer])] = name

    few = dataclasses.replace(config, num_hidden_layers=len(layers))
    whole, wanted = (names.shapes(x, "encoder") for x in (config, few))
    # One variable for all layers; in an ELMo, for the embeddings, too.
    stacks = {
        name: [*range(first), *(first + layer for layer in layers)]
        for name in source.shapes.keys() & whole.keys() & wanted.keys()
        if family.layer(name) is None and whole[name] != wanted[name]
        for first in [wanted[name][0] - len(layers)]
    }

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        values = source.read([old[name] for name in wanted])
        values |= {
            x: values[x][rows] for x, rows in stacks.items() if x in values
        }
        return {name: values[old[name]] for name in wanted}

    shapes = {name: source.shapes[theirs] for name, theirs in old.items()}
    for name, rows in stacks.items():
        shapes[name] = (len(rows), *shapes[name][1:])
    small = _changed(source, shapes, read, num_hidden_layers=len(layers))
    try:
        names.check(_config_of(small), small.shapes, source.path)
    except InputError as error:
        raise InputError(
            f"The layers of {source.path} differ in size, and these alone do "
            "not fit each other: keep the first and the last, too. "
            f"Received: layers={','.join(map(str, layers))}"
        ) from error
    return small


def check_layers(
    layers: Sequence[int], config: configuration.BertConfig, path: str
) -> None:
    """Raises InputError unless exactly these layers can be kept."""
    shown = ",".join(map(str, layers))
    check_own_layers(config, path, f"layers={shown}")
    count = config.num_hidden_layers
    is_ascending = all(a < b for a, b in itertools.pairwise(layers))
    if not layers or not is_ascending or layers[0] < 0 or layers[-1] >= count:
        raise InputError(
            f"The layers to keep of {path} are numbers from 0 to {count - 1}, "
            f"in ascending order, each once. Received: layers={shown}"
        )


def check_own_layers(
    config: configuration.BertConfig, path: str, received: str
) -> None:
    """Raises InputError if layers share weights: none can be removed."""
    if families.find(config).shares_layers:
        raise InputError(
            f"The layers of {path} share their weights, so none can be taken "
            "out. Lower `num_hidden_layers` in its config instead: the "
            f"weights stay as they are. Received: {received}"
        )


def keep_units(
    source: opened.Checkpoint, units: Sequence[Sequence[int]]
) -> opened.Checkpoint:
    """Returns the checkpoint with these feed-forward units only.

    `units` has one list for each block with separate weights, in the order of
    the family's `numbers`, all of the same length. A unit is a column of the
    kernel before the activation, its bias, and a row of the kernel after it.
    """
    config = _config_of(source)
    (count,) = {len(own) for own in units}
    blocks = families.find(config).with_units(config)
    slices = {
        name: (axis, list(own))
        for block, own in zip(blocks, units, strict=True)
        for name, axis in block.items()
    }

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        values = source.read(wanted)
        for name in wanted:
            if name in slices:
                axis, own = slices[name]
                values[name] = np.take(values[name], own, axis=axis)
        return values

    shapes = dict(source.shapes)
    for name, (axis, _) in slices.items():
        shape = list(shapes[name])
        shape[axis] = count
        shapes[name] = tuple(shape)
    return _changed(source, shapes, read, intermediate_size=count)


def _config_of(source: opened.Checkpoint) -> configuration.BertConfig:
    if source.config is None:
        raise InputError(
            f"There is no config beside {source.path}, so its architecture is "
            "not known: give --bert_config_file."
        )
    return source.config


def _changed(
    source: opened.Checkpoint,
    shapes: Mapping[str, tuple[int, ...]],
    read: Callable[[Sequence[str]], dict[str, np.ndarray]],
    **sizes: Any,
) -> opened.Checkpoint:
    """Returns the source with other weights, and without training state.

    The generator of replaced-token pre-training is also left out, since its
    sizes are fractions of the model's.
    """
    config = dataclasses.replace(_config_of(source), **sizes)
    left = generators.variables(shapes, config)
    return dataclasses.replace(
        source,
        shapes={name: x for name, x in shapes.items() if name not in left},
        read=read,
        config=config,
        state=(),
        left_over=(*source.left_over, *left),
    )
