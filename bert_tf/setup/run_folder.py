"""The folder of a run: made, locked, and not another run's.

Called from the `main` of the training scripts only.
"""

import fnmatch
import os
from collections.abc import Collection

from bert_tf import files
from bert_tf.checkpoints import best, original, tf1_files
from bert_tf.errors import InputError
from bert_tf.flags import command_line, flagfiles
from bert_tf.flags import run as run_flags
from bert_tf.storage import kept_flags, run_lock, written_files
from bert_tf.training import distribution, progress

import tensorflow as tf

# The folder's locks: a training may be looked at by one evaluation.
_TRAINING_LOCK, _EVALUATION_LOCK = "lock", "evaluation.lock"


def claim_output_dir(
    strategy: tf.distribute.Strategy,
    identity: tuple[str, ...] | None,
) -> None:
    """Makes output_dir this run's own, unless it is another's.

    The chief locks it until the script ends, and removes what a killed run
    left there half-written.

    Args:
        strategy: Its chief writes.
        identity: Flags that a run in progress can't change; None where
            nothing is trained.
    """
    is_chief = distribution.is_chief(strategy)
    if identity is not None:
        # The chief asks again below, and tells what is new.
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
        check_same_run(identity)  # which another may just have begun
    names = written_files.RUN_FILES if trains else written_files.RESULT_FILES
    files.remove_leftovers(folder, names)
    leftovers = os.path.join(folder, records_folder(trains))
    if tf.io.gfile.exists(leftovers):
        tf.io.gfile.rmtree(leftovers)
    if not tf.io.gfile.exists(flags_file()):
        # By which the next command knows the folder for a run's.
        flagfiles.write_flagfile(flags_file())


def hold_output_dir(
    name: str = _TRAINING_LOCK, what: str = "trains"
) -> run_lock.Lock:
    """Makes output_dir and locks it until the script ends.

    Args:
        name: Of the lock.
        what: This process does there.
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
    command_line.at_end(lambda: _remove_if_useless(folder, before))
    lock = run_lock.hold(folder, name, what)
    command_line.at_end(lock.release)
    # Training has handlers of its own while it makes steps.
    command_line.unwind_at_signals()
    return lock


# What a run has written when it has not made a step yet.
_BEFORE_STEPS = (
    kept_flags.FILE,
    "*.tf_record",
    original.CONFIG,
    *original.vocab_names(),
    original.LABELS,
)


def _remove_if_useless(folder: str, before: set[str] | None) -> None:
    """Removes what a run left that failed before it had made anything.

    Args:
        folder: Of the run.
        before: What was there before; None if there was no folder.
    """
    new = set(tf.io.gfile.listdir(folder)) - (before or set())
    for name in new:
        if not any(fnmatch.fnmatchcase(name, x) for x in _BEFORE_STEPS):
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
    """Raises what `claim_output_dir` would, and changes nothing."""
    trains = identity is not None
    if identity is not None:
        check_same_run(identity)
    run_lock.check_free(
        run_flags.OUTPUT_DIR.value,
        _TRAINING_LOCK if trains else _EVALUATION_LOCK,
    )


def records_folder(trains: bool) -> str:
    """The name, in output_dir, of a folder for records that are not kept."""
    return "records.tmp" if trains else "evaluation.tmp"


def check_same_run(identity: tuple[str, ...], tells: bool = True) -> None:
    """Raises InputError if output_dir holds another run, or a damaged one.

    It `tells` of other flags that may change.
    """
    folder = run_flags.OUTPUT_DIR.value
    if tf1_files.latest(folder):
        flagfiles.check_same_run(flags_file(), identity, tells)
        best.checkpoint(folder)
        progress.check_lines(folder)
    else:
        _check_start_is_kept(folder)


def check_same_evaluation(names: Collection[str], way_out: str = "") -> None:
    """Raises InputError if a run goes on to choose its best on other data.

    Args:
        names: Of flags that say on what.
        way_out: What else the user may do, " or ..." for the error.
    """
    folder = run_flags.OUTPUT_DIR.value
    # The best of a run without checkpoints is of no run that goes on.
    if not (tf1_files.latest(folder) and best.checkpoint(folder)):
        return
    before = best.chosen_on(folder)
    changed = {} if before is None else flagfiles.changes(before)
    others = [changed[name] for name in names if name in changed]
    if others:
        kept = os.path.join(folder, best.FOLDER)
        raise InputError(
            f"{kept} was chosen on other data: {'; '.join(others)}. Give what "
            f"it had{way_out}; or move {kept} away, and the best is found anew."
        )


def _check_start_is_kept(folder: str) -> None:
    """Raises InputError if a run that begins would remove what it starts from.

    That is the best of a run whose own checkpoints are gone.
    """
    given = run_flags.INIT_CHECKPOINT.value
    kept = os.path.join(os.path.realpath(folder), best.FOLDER, "")
    if given and os.path.join(os.path.realpath(given), "").startswith(kept):
        raise InputError(
            f"--init_checkpoint={given} lies in --output_dir, whose best/ a "
            "run that begins there replaces. Choose another --output_dir, or "
            "move the weights."
        )


def flags_file() -> str:
    """The file that keeps the flags of output_dir's run."""
    return os.path.join(run_flags.OUTPUT_DIR.value, kept_flags.FILE)
