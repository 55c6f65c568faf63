"""Adds an auxiliary language-modelling loss to a task, as in GPT.

Called from the `main` of training scripts only.
"""

import dataclasses
from collections.abc import Sequence

from bert_tf import heads, modeling, options
from bert_tf.checkpoints import names, opened, restoring, tf1_files
from bert_tf.errors import InputError
from bert_tf.flags import distillation_flags
from bert_tf.setup import run_setup
from bert_tf.training import fine_tuning, loop, next_pieces

import keras
import numpy as np
from absl import logging

_HEAD = names.HEADS["next_piece"]


def check(weight: float, config: modeling.BertConfig) -> None:
    """Raises InputError if the encoder can see the tokens to predict.

    Also if combined with a distillation of layers, which trains no head.
    """
    if config.pretraining_head != _HEAD.name:
        raise InputError(
            "--auxiliary_lm_weight is for encoders that read from left to "
            "right: others see the piece that they are to predict. Leave it "
            "out, or give such a model. "
            f"Received: auxiliary_lm_weight={weight}, "
            f"model_type={config.model_type}"
        )
    kind = distillation_flags.DISTILLATION.value
    if kind in options.DISTILLATIONS_OF_LAYERS:
        raise InputError(
            f"--distillation={kind} trains layers and no head, so there is "
            "none to predict pieces by: leave out --auxiliary_lm_weight, and "
            "give it in the run that follows. "
            f"Received: auxiliary_lm_weight={weight}"
        )


def of_run(
    own: loop.Objective, weight: float, run: fine_tuning.Run
) -> loop.Objective:
    """Returns a task's objective plus the language-modelling loss.

    Its head starts with the pre-trained weights, or random ones if the
    checkpoint has no such head. It is saved in the run's checkpoints, but not
    exported.
    """
    encoder = run.model.bert
    with run.strategy.scope():
        head = heads.next_piece_head(
            encoder, tf1_files.OF_OBJECTIVES.rstrip("/")
        )
        _restore(head)
    return next_pieces.auxiliary(own, weight, head, encoder)


def without_head(source: opened.Checkpoint) -> opened.Checkpoint:
    """Drops the language-modelling head from a checkpoint.

    `of_run` restores that head; without this, the task would report its weights
    as unused.
    """
    shapes = {
        name: shape
        for name, shape in source.shapes.items()
        if name not in _HEAD.all_variables
    }
    return dataclasses.replace(source, shapes=shapes)


def as_pre_trained(source: opened.Checkpoint) -> opened.Checkpoint:
    """Converts a checkpoint of such a run to one of pre-training.

    In pre-training the language-modelling head belongs to the model, here to
    the objective. Other checkpoints are returned unchanged.
    """
    kept = {
        name: name.replace("cls/", tf1_files.OF_OBJECTIVES, 1)
        for name in _HEAD.all_variables
    }
    is_there = source.shapes.keys() & kept
    kept = {x: y for x, y in kept.items() if y in source.state}
    if is_there or not kept:
        return source

    def read(names: Sequence[str]) -> dict[str, np.ndarray]:
        values = source.read([kept.get(name, name) for name in names])
        return {name: values[kept.get(name, name)] for name in names}

    shapes = {name: value.shape for name, value in read([*kept]).items()}
    return dataclasses.replace(
        source, shapes={**source.shapes, **shapes}, read=read
    )


def _restore(head: keras.layers.Layer) -> None:
    """Restores the head from --init_checkpoint, if it has one."""
    source = run_setup.open_init_checkpoint()
    if source is None:  # A resumed run restores it from its own checkpoint.
        return
    source = as_pre_trained(source)
    variables = {
        variable.path.replace(tf1_files.OF_OBJECTIVES, "cls/", 1): variable
        for variable in head.variables
    }
    if not variables.keys() <= source.shapes.keys():
        logging.warning(
            "%s has no language-model head: the one of --auxiliary_lm_weight "
            "starts from random values.",
            source.path,
        )
        return
    values = source.read(list(variables))
    restoring.check_shapes(
        source.path,
        {name: value.shape for name, value in values.items()},
        {name: v.shape for name, v in variables.items()},
    )
    restoring.check_finite(source.path, values)
    for name, value in values.items():
        variables[name].assign(value)
    logging.info(
        "The head of --auxiliary_lm_weight starts from the head of %s.",
        source.path,
    )
