"""The folder of a run: creation, locks, and protection of other runs.

Called from the `main` of the training scripts only.
"""

import fnmatch
import os
from collections.abc import Collection, Sequence

from bert_tf import files
from bert_tf.checkpoints import best, original, tf1_files
from bert_tf.errors import InputError
from bert_tf.flags import command_line, flagfiles, run_flags
from bert_tf.storage import kept_flags, run_lock, written_files
from bert_tf.training import distribution, progress, train_examples

import tensorflow as tf
from absl import logging

# The folder's locks: an evaluation may run during a training.
_TRAINING_LOCK, _EVALUATION_LOCK = "lock", "evaluation.lock"


def claim_output_dir(
    strategy: tf.distribute.Strategy,
    identity: tuple[str, ...] | None,
) -> None:
    """Claims output_dir for this run, unless it holds another run.

    The chief locks it until the script ends, and removes half-written files of
    a killed run.

    Args:
        strategy: Its chief writes.
        identity: Flags that a run in progress can't change; None if nothing is
            trained.
    """
    is_chief = distribution.is_chief(strategy)
    if identity is not None:
        # The chief checks again below, and logs the changes then.
        check_same_run(identity, tells=not is_chief)
    if not is_chief:
        return
    folder = run_flags.OUTPUT_DIR.value
    trains = identity is not None
    if trains:
        hold_output_dir()
    else:
        hold_output_dir(_EVALUATION_LOCK, "evaluates or predicts")
    if identity is not None:
        check_same_run(identity)  # Another process may just have started one.
    names = written_files.RUN_FILES if trains else written_files.RESULT_FILES
    files.remove_leftovers(folder, names)
    leftovers = os.path.join(folder, records_folder(trains))
    if tf.io.gfile.exists(leftovers):
        remove_or_warn(leftovers)
    if not tf.io.gfile.exists(flags_file()):
        # Marks the folder as a run's for later commands.
        flagfiles.write_flagfile(flags_file())


def hold_output_dir(
    name: str = _TRAINING_LOCK, what: str = "trains"
) -> run_lock.Lock:
    """Creates output_dir and locks it until the script ends.

    Args:
        name: Name of the lock.
        what: What this process does there.
    """
    folder = run_flags.OUTPUT_DIR.value
    before = None
    if tf.io.gfile.exists(folder):
        before = set(tf.io.gfile.listdir(folder))
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise OSError(
            f"Cannot make the folder --output_dir={folder}: {error.message}"
        ) from error
    # A training may write its own, while an evaluation runs.
    own = _BEFORE_STEPS if name == _TRAINING_LOCK else (kept_flags.FILE,)
    command_line.at_end(lambda: _remove_if_useless(folder, before, own))
    lock = run_lock.hold(folder, name, what)
    command_line.at_end(lock.release)
    # Training has its own signal handlers during steps.
    command_line.unwind_at_signals()
    return lock


# Files that a run writes before its first step.
_BEFORE_STEPS = (
    kept_flags.FILE,
    "*.tf_record",
    original.CONFIG,
    *original.vocab_names(),
    original.LABELS,
    train_examples.FILE,
)


def _remove_if_useless(
    folder: str, before: set[str] | None, own: Collection[str]
) -> None:
    """Removes the files of a run that failed before its first step.

    Args:
        folder: Folder of the run.
        before: Earlier contents of the folder; None if it did not exist.
        own: Globs of what it writes before; if there is more, all stays.
    """
    new = set(tf.io.gfile.listdir(folder)) - (before or set())
    for name in new:
        if not any(fnmatch.fnmatchcase(name, x) for x in own):
            return
    for name in new:
        tf.io.gfile.remove(os.path.join(folder, name))
    if before is None:
        tf.io.gfile.rmtree(folder)


def check_holds_runs() -> None:
    """Raises InputError unless output_dir can hold runs of another script."""
    folder = run_flags.OUTPUT_DIR.value
    if "://" in folder:
        raise InputError(
            "Several runs are kept in a local folder only. "
            f"Received: output_dir={folder}"
        )
    own = tf1_files.latest(folder)
    if own:
        raise InputError(
            f"{folder} holds a single run ({own}.index): choose another "
            f"--output_dir. Received: output_dir={folder}"
        )


def check_output_dir(identity: tuple[str, ...] | None) -> None:
    """Raises the errors of `claim_output_dir`, and changes nothing."""
    trains = identity is not None
    if identity is not None:
        check_same_run(identity)
    run_lock.check_free(
        run_flags.OUTPUT_DIR.value,
        _TRAINING_LOCK if trains else _EVALUATION_LOCK,
    )


def remove_or_warn(folder: str) -> None:
    """Removes a folder; logs why if it remains, as in some buckets."""
    try:
        tf.io.gfile.rmtree(folder)
    except tf.errors.OpError as error:
        logging.warning("%s could not be removed: %s", folder, error.message)


def records_folder(trains: bool) -> str:
    """Returns the name of the folder for temporary records in output_dir."""
    return "records.tmp" if trains else "evaluation.tmp"


def check_same_run(identity: tuple[str, ...], tells: bool = True) -> None:
    """Raises InputError if output_dir holds another run, or a damaged one.

    If `tells`, logs changes of flags that are allowed to change.
    """
    folder = run_flags.OUTPUT_DIR.value
    given = run_flags.INIT_CHECKPOINT.value
    if tf1_files.latest(folder):
        table = flagfiles.told(["train_file"]).get("train_file")
        before = kept_flags.of_folder(folder).get("train_file")
        is_same = table != before and train_examples.is_table(folder, table)
        same = ["train_file"] if is_same else []
        flagfiles.check_same_run(flags_file(), identity, tells, same)
        best.checkpoint(folder)
        progress.check_lines(folder)
    elif given:
        # It may be the best of a run whose checkpoints are gone.
        kept = os.path.join(os.path.realpath(folder), best.FOLDER, "")
        if os.path.join(os.path.realpath(given), "").startswith(kept):
            raise InputError(
                f"--init_checkpoint={given} lies in --output_dir, whose best/ "
                "a run that begins there replaces. Choose another "
                "--output_dir, or move the weights."
            )


def check_same_evaluation(
    names: Sequence[str], way_out: str = "", evaluated_on: str | None = None
) -> None:
    """Raises InputError if a resumed run would select its best by other scores.

    Args:
        names: Flags that determine the scores, first the evaluation data.
        way_out: An alternative for the error message, " or ...".
        evaluated_on: A digest that only the same evaluation data have, if it is
            known. Then the names of the files do not count.
    """
    folder = run_flags.OUTPUT_DIR.value
    # Without checkpoints there is no run to resume, so best/ is not checked.
    if not (tf1_files.latest(folder) and best.checkpoint(folder)):
        return
    before = best.chosen_on(folder)
    if before is None:
        return
    changed = flagfiles.changes(before)
    if evaluated_on and best.EVALUATED_ON in before:
        paths = [x for x in names if x.endswith("_file") and x in before]
        if before[best.EVALUATED_ON] != evaluated_on:
            noun = " or ".join(paths) or "the evaluation data"
            text = f"{noun} had other content"
            changed.setdefault(names[0], text)
        else:
            for name in paths:
                changed.pop(name, None)
    # Other missing flags had no effect, or earlier versions did not keep them.
    others = [
        changed[name]
        for name in names
        if name in changed and (name in before or name == names[0])
    ]
    if others:
        kept = os.path.join(folder, best.FOLDER)
        raise InputError(
            f"{kept} was chosen by other scores: {'; '.join(others)}. Give "
            f"what it had{way_out}; or move {kept} away, and the best is found "
            "anew."
        )


def flags_file() -> str:
    """Returns the path of the file with the flags of output_dir's run."""
    return os.path.join(run_flags.OUTPUT_DIR.value, kept_flags.FILE)
