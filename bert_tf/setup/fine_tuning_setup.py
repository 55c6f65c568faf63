"""Fine-tuning setup from `fine_tuning_flags`: files, folder, weights, plan.

Called from the `main` of the fine-tuning scripts only.
"""

import dataclasses
import functools
import hashlib
import itertools
import os
import tempfile
from collections.abc import Sequence

from bert_tf import files, kept_kernels
from bert_tf.checkpoints import best, tf1_files, trained_models, word_vectors
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.exporting import saved_model
from bert_tf.flags import command_line, fine_tuning_flags, flagfiles, run_flags
from bert_tf.setup import (
    model_files_setup,
    run_folder,
    run_setup,
    trained_setup,
)
from bert_tf.storage import file_systems, input_files
from bert_tf.training import distribution, fine_tuning, memory_use

import keras
import numpy as np
import tensorflow as tf
from absl import logging

# ---- Actions ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Work:
    """The requested actions, with the same names as the flags."""

    train: bool
    evaluate: bool
    predict: bool
    export: bool

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the data that they need."""
        needed = (self.train, self.evaluate, self.predict)
        return tuple(itertools.compress(("train", "dev", "test"), needed))


def work() -> Work:
    """Returns the requested actions.

    Raises:
        InputError: No action is requested, or an action needs a trained model
            that is missing.
    """
    asked = Work(
        fine_tuning_flags.DO_TRAIN.value,
        fine_tuning_flags.DO_EVAL.value,
        fine_tuning_flags.DO_PREDICT.value,
        fine_tuning_flags.DO_EXPORT.value,
    )
    if not any(dataclasses.astuple(asked)):
        raise InputError(
            "At least one of --do_train, --do_eval, --do_predict and "
            "--do_export must be true."
        )
    if not asked.train:
        trained_setup.check_weights()
    return asked


def load_files(always_trains: bool = False) -> trained_models.ModelFiles:
    """Reads config and vocabulary, and checks them against each other.

    Args:
        always_trains: Whether the script trains without having --do_train.

    Raises:
        InputError: They can't be read, or contradict each other.
    """
    trains = always_trains or fine_tuning_flags.DO_TRAIN.value
    files = model_files_setup.load(trained_setup.find_source(trains), trains)
    memory_use.check_room_for_weights(files.config)
    return files


def set_up_distribution() -> tf.distribute.Strategy:
    """Returns the strategy, after checking batch sizes against it."""
    strategy = run_setup.set_up_distribution()
    if fine_tuning_flags.DO_TRAIN.value:
        kept_kernels.check_that_they_change()
        distribution.check_batch_size(
            strategy,
            fine_tuning_flags.TRAIN_BATCH_SIZE.name,
            fine_tuning_flags.TRAIN_BATCH_SIZE.value,
            fine_tuning_flags.ACCUMULATE.value,
        )
    for work, flag in (
        (fine_tuning_flags.DO_EVAL, fine_tuning_flags.EVAL_BATCH_SIZE),
        (fine_tuning_flags.DO_PREDICT, fine_tuning_flags.PREDICT_BATCH_SIZE),
    ):
        if work.value:
            distribution.check_batch_size(strategy, flag.name, flag.value)
    return strategy


def plan(
    strategy: tf.distribute.Strategy,
    chosen_on: tuple[str, ...] = (),
    published: Sequence[str] = (),
) -> fine_tuning.Plan:
    """Returns the training plan.

    Args:
        strategy: The run's strategy.
        chosen_on: Flags that determine the score of the best checkpoint.
        published: Data files that determine it and have no flag.
    """
    own = fine_tuning_flags
    if own.GROUP_BY_LENGTH.value and distribution.is_tpu(strategy):
        raise InputError(
            "--group_by_length gives batches of many shapes, and a TPU would "
            "compile each: leave it out."
        )
    if own.DO_TRAIN.value and run_flags.FUSED_ATTENTION.value:
        raise InputError(
            "--fused_attention is for pre-training, as batches of fine-tuning "
            "differ in length: leave it out. Received: fused_attention=true"
        )
    chosen = flagfiles.told(chosen_on)
    if own.DO_TRAIN.value and own.DO_EVAL.value:
        named = [x for name, x in chosen.items() if name.endswith("_file")]
        chosen |= _digest_of_files([*named, *published])
    return run_setup.make_plan(
        fine_tuning.Plan,
        batch_size=own.TRAIN_BATCH_SIZE.value,
        accumulate=own.ACCUMULATE.value,
        chosen_on=chosen,
    )


def _digest_of_files(paths: Sequence[str]) -> dict[str, str]:
    """Returns the digest of the evaluation data; {} if unknown."""
    for path in paths:
        input_files.check_can_be_read_again(path)
        if not file_systems.find_backend(path).exists(path):
            return {}
    if not paths:
        return {}
    return {best.EVALUATED_ON: ",".join(map(_digest, paths))}


def _digest(path: str) -> str:
    """Returns the SHA-256 of a file, or of the text files of a folder."""
    if not file_systems.find_backend(path).isdir(path):
        return files.sha256(path)
    inside = map(files.sha256, file_systems.text_files(path))
    return hashlib.sha256(",".join(inside).encode()).hexdigest()


# ---- The folder -------------------------------------------------------------


def make_folder(
    strategy: tf.distribute.Strategy,
    identity: tuple[str, ...],
    chosen_on: tuple[str, ...],
    evaluated_on: str | None = None,
) -> str:
    """Creates output_dir, unless it holds another run to train.

    Args:
        strategy: The run's strategy.
        identity: Flags that a run in progress can't change.
        chosen_on: As for `plan`.
        evaluated_on: The digest of the evaluation data, if it is known.

    Returns:
        The folder for this process's records: output_dir for a new run, else a
        temporary folder. Records in output_dir may belong to a training in
        progress, and each worker reads its own records.
    """
    trains = fine_tuning_flags.DO_TRAIN.value
    folder = run_flags.OUTPUT_DIR.value
    if fine_tuning_flags.DO_EXPORT.value:
        # Checked now, not after hours of training.
        export = os.path.join(folder, fine_tuning.EXPORT)
        saved_model.check_target(export, overwrite=True)
    if trains and fine_tuning_flags.DO_EVAL.value:
        run_folder.check_same_evaluation(
            chosen_on,
            ", or leave out --do_train to evaluate only",
            evaluated_on,
        )
    if run_flags.CHECK_ONLY.value:
        run_folder.check_output_dir(identity if trains else None)
        return _removed_at_end(tempfile.mkdtemp())
    run_folder.claim_output_dir(strategy, identity if trains else None)
    if not distribution.is_chief(strategy):
        return _removed_at_end(tempfile.mkdtemp())
    if trains and not tf1_files.latest(folder):
        return folder
    folder = os.path.join(folder, run_folder.records_folder(trains))
    tf.io.gfile.makedirs(folder)
    return _removed_at_end(folder)


def _removed_at_end(folder: str) -> str:
    """Returns the folder, to be removed when the script ends."""
    command_line.at_end(functools.partial(run_folder.remove_or_warn, folder))
    command_line.unwind_at_signals()
    return folder


# ---- The weights ------------------------------------------------------------


def set_words(files: trained_models.ModelFiles, model: keras.Model) -> None:
    """Sets the embeddings of words that --word_vectors covers."""
    path = fine_tuning_flags.WORD_VECTORS.value
    if not path:
        return
    name = families.find(files.config).words
    (words,) = (x for x in model.variables if x.path == name)
    table = np.asarray(words).copy()  # [V, E], maybe padded with rows
    vectors = word_vectors.read(
        path, files.vocab, files.vocabulary, table.shape[1]
    )
    found = vectors.found.nonzero()
    table[found] = vectors.table[found]
    words.assign(table)
    logging.info(
        "Word vectors of %s for %d of %d tokens; the others start from random "
        "values.",
        path,
        vectors.found.sum(),
        len(vectors.table),
    )
