"""Opens and restores the checkpoints that public models start from."""

import dataclasses
import os
from collections.abc import Collection, Sequence

from bert_tf import configuration
from bert_tf.checkpoints import (
    formats,
    names,
    opened,
    restoring,
    trained_models,
)
from bert_tf.encoders import families
from bert_tf.errors import InputError, listed

import keras
from absl import logging


def open_best(path: str) -> opened.Checkpoint:
    """Opens a checkpoint of any format; a run's best or newest one."""
    own = trained_models.own_checkpoint(path, use_best=True)
    return formats.open_checkpoint(own or path)


def config_of(
    source: opened.Checkpoint,
    bert_config_file: str | os.PathLike[str] | None,
) -> configuration.BertConfig:
    """Returns the config in the file, or else the checkpoint's."""
    if bert_config_file is not None:
        return families.read_config(bert_config_file)
    if source.config is None:
        raise InputError(
            f"There is no bert_config.json beside {source.path}, so its "
            "architecture is not known: give bert_config_file."
        )
    return source.config


def restore(
    variables: Sequence[keras.Variable],
    source: opened.Checkpoint,
    unread: Collection[str] = (),
) -> None:
    """Sets all variables from a checkpoint; warns if any but `unread` lack."""
    report = restoring.restore_weights(variables, source)
    fresh = [name for name in report.fresh if name not in unread]
    if fresh:
        logging.warning(
            "%s has no %s: they start from random values.",
            report.path,
            ", ".join(fresh),
        )


def fit_labels(
    source: opened.Checkpoint, head: str, labels: Sequence[str] | int | None
) -> tuple[opened.Checkpoint, Sequence[str] | int]:
    """Returns the labels, and the checkpoint without a head for other labels.

    Args:
        source: The checkpoint.
        head: A key of checkpoints.names.HEADS, whose classes have names.
        labels: Names of the classes, or their number; None for the head's.
    """
    own = names.HEADS[head].variables
    output = next(name for name in own if name.endswith("output_weights"))
    trained = source.shapes.get(output)
    if labels is None:
        if trained is None:
            raise InputError(
                f"{source.path} has no {head} head, so its classes are "
                'not known: give their names, such as labels=["bad", '
                '"good"]. Received: labels=None'
            )
        labels = source.labels or trained[0]
    elif trained is not None and _are_others(labels, source, trained[0]):
        logging.warning(
            "The head of %s is for other classes (%s): it is not used.",
            source.path,
            listed(source.labels or [str(trained[0])]),
        )
        kept = {n: s for n, s in source.shapes.items() if n not in own}
        config = source.config
        if config is not None:
            config = config.with_head_of(configuration.BertConfig)
        source = dataclasses.replace(source, shapes=kept, config=config)
    return source, labels


def _are_others(
    labels: Sequence[str] | int, source: opened.Checkpoint, number: int
) -> bool:
    """Whether the checkpoint's head was trained on other classes."""
    if isinstance(labels, int):
        return labels != number
    known = source.labels is not None and source.labels != tuple(labels)
    return known or len(labels) != number
