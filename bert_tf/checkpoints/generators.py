"""Extracts the generator of replaced-token pre-training as a model."""

import dataclasses
from collections.abc import Iterable, Sequence

from bert_tf import configuration
from bert_tf.checkpoints import names, opened
from bert_tf.encoders import families
from bert_tf.errors import InputError

import numpy as np


def variables(of: Iterable[str], config: configuration.BertConfig) -> list[str]:
    """Returns the names of variables that only the generator has."""
    family = families.find(config)
    if family.generator is None:
        return []
    alone = family.generator.alone
    return [
        name
        for name in of
        if alone(name) is not None and not family.has(name, config)
    ]


def take_out(
    source: opened.Checkpoint, config_path: str | None = None
) -> opened.Checkpoint:
    """Returns the generator in a checkpoint: an encoder with a masked-LM head.

    The checkpoint's config must be known; `config_path` is its path unless it
    is next to the checkpoint. Training state is left out. Raises InputError if
    there is no generator, or if its sizes do not match the config.
    """
    config = source.config
    generator = families.find(config).generator
    if config is None or generator is None:
        raise InputError(
            f"{source.path} is of no family that is pre-trained with a "
            "generator: leave out --generator. "
            f"Received: encoder={families.find(config).name}"
        )
    own = generator.config(config)
    theirs = {
        ours: name
        for name in source.shapes
        if (ours := generator.alone(name)) is not None
    }
    head = names.HEADS["masked_lm"].variables.keys()
    numbers = map(families.find(own).layer, theirs)
    has_layers = any(number is not None for number in numbers)
    if not has_layers or not head <= theirs.keys():
        raise InputError(
            f"{source.path} holds no generator, as checkpoints of pre-training "
            "and released archives do: leave out --generator. "
            f"Received: {', '.join(sorted(source.shapes)[:3])} ..."
        )
    shapes = {ours: source.shapes[name] for ours, name in theirs.items()}
    names.check(own, shapes, source.path, config_path)

    def read(asked: Sequence[str]) -> dict[str, np.ndarray]:
        values = source.read([theirs[name] for name in asked])
        return {name: values[theirs[name]] for name in asked}

    left = sorted(source.shapes.keys() - theirs.values())
    return dataclasses.replace(
        source,
        shapes=shapes,
        read=read,
        config=own,
        labels=None,
        state=(),
        left_over=(*source.left_over, *left),
    )
