"""Builds the model that the flags of `flags.model_flags` describe.

Called from the `main` of the scripts that export and predict only.
"""

from typing import Any

from bert_tf.checkpoints import formats, runs, trained_models
from bert_tf.errors import InputError
from bert_tf.exporting import saved_model
from bert_tf.flags import flag_sections, model_flags
from bert_tf.serving import opening
from bert_tf.storage import kept_flags

import tensorflow as tf
from absl import flags


def load() -> saved_model.Export:
    """Returns the model that the flags describe, as a model of raw text."""
    ways = (model_flags.MODEL_DIR, model_flags.INIT_CHECKPOINT)
    given = [f"{flag.name}={flag.value}" for flag in ways if flag.value]
    if len(given) != 1:
        raise InputError(
            "Give one model: --model_dir, the folder of a run, or "
            f"--init_checkpoint{_or_saved_model()}. "
            f"Received: {', '.join(given) or 'none'}"
        )
    model_dir = model_flags.MODEL_DIR.value
    path = model_flags.INIT_CHECKPOINT.value
    source = formats.open_checkpoint(
        _find_trained(model_dir) if model_dir else path
    )
    # Text settings come from the run's folder, however it is specified.
    folder = model_dir or runs.folder_of(path)
    said = opening.Said(
        {
            flag.name: _given(flag)
            for flag in flags.FLAGS.get_key_flags_for_module(model_flags)
        },
        lambda name, text: flags.FLAGS[name].parser.parse(text),
        folder,
        kept_flags.of_folder(folder) if folder else {},
        None if folder else path,
    )
    return opening.make(source, said, _check_head)


def _check_head(head: str) -> None:
    """Raises InputError if a flag of another head is passed."""
    flag_sections.check_used(found={"head": head})


def _given(flag: flags.Flag) -> Any:
    """Returns the user's value, or None if they leave the default."""
    is_said = flag.present or flag.value != flag.default
    return flag.value if is_said else None


def _find_trained(model_dir: str) -> str:
    """Returns the checkpoint of a run; InputError if it is missing."""
    use_best = model_flags.USE_CHECKPOINT.value == "best"
    found = trained_models.own_checkpoint(model_dir, use_best)
    if found:
        return found
    trained_models.check_not_best_only(model_dir)
    if not tf.io.gfile.isdir(model_dir):
        problem = "There is no such folder."
        if tf.io.gfile.exists(model_dir):
            problem = "This is a file."
        raise InputError(
            f"{problem} --model_dir is the --output_dir of a training; a "
            "model of another kind is given by --init_checkpoint"
            f"{_or_saved_model()}. Received: model_dir={model_dir}"
        )
    raise InputError(
        "This folder holds no trained weights (model.ckpt-STEP.index): it is "
        "not the --output_dir of a training, or that has not saved yet. A "
        "model of another kind is given by --init_checkpoint"
        f"{_or_saved_model()}. Received: model_dir={model_dir}"
    )


def _or_saved_model() -> str:
    """Returns the name of the flag that only run_prediction.py has."""
    return " or --saved_model" * ("saved_model" in flags.FLAGS)
