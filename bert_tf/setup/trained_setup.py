"""The earlier training that a run builds on: its weights and flags.

Called from the `main` of the fine-tuning scripts only.
"""

import os
from collections.abc import Collection, Mapping

from bert_tf.checkpoints import (
    formats,
    model_files,
    opened,
    runs,
    trained_models,
)
from bert_tf.errors import InputError
from bert_tf.flags import fine_tuning_flags, flagfiles, run_flags
from bert_tf.setup import model_files_setup, run_setup
from bert_tf.training import fine_tuning, train_examples

from absl import flags, logging

# ---- Weights -----------------------------------------------------------------


def own_weights() -> str | None:
    """Returns the final weights of the run in output_dir, if any."""
    return trained_models.own_checkpoint(
        run_flags.OUTPUT_DIR.value,
        fine_tuning_flags.USE_CHECKPOINT.value == "best",
    )


def check_weights() -> None:
    """Raises InputError if there are no weights to use without training."""
    folder = run_flags.OUTPUT_DIR.value
    own, given = own_weights(), run_flags.INIT_CHECKPOINT.value
    places = runs.places(given) if given else []
    if not own and not any(run_setup.is_same_path(x, folder) for x in places):
        trained_models.check_not_best_only(folder)
    run_setup.own_weights(own)


def find(head: str) -> opened.Checkpoint:
    """Opens the fine-tuned weights to evaluate, predict and export with.

    Args:
        head: The head they must have: a key of names.HEADS.
    """
    own = own_weights()
    if not own or not fine_tuning_flags.DO_TRAIN.value:
        own = run_setup.own_weights(own)
    return trained_models.with_trained_head(formats.open_checkpoint(own), head)


def restore(run: fine_tuning.Run, head: str) -> int:
    """Restores fine-tuned weights into the model, and returns their step."""
    source = find(head)
    with run.strategy.scope():
        return trained_models.restore(run.model, source, head)


def find_source(trains: bool) -> model_files.Source | None:
    """Returns the source that config and vocabulary must match."""
    return run_setup.find_source(None if trains else own_weights())


def labels() -> tuple[str, ...] | None:
    """Returns the labels of output_dir, or of the weights to predict with."""
    trains = fine_tuning_flags.DO_TRAIN.value
    own = trained_models.read_labels(run_flags.OUTPUT_DIR.value)
    if own is None and not trains and (weights := own_weights()):
        # A search has them next to the weights of its best trial.
        own = trained_models.read_labels(os.path.dirname(weights))
    if own or trains:
        return own
    source = run_setup.open_init_checkpoint()
    return source.labels if source else None


# ---- Flags -------------------------------------------------------------------


def folder() -> str:
    """Returns the folder of the run that trained the weights in use.

    It is "" while the run itself trains, and for weights without a run.
    """
    path = _weights()
    return runs.folder_of(path) if runs.flags_of(path) else ""


def said() -> dict[str, str]:
    """Returns the flags of the run in `folder`, as text; {} without a run."""
    return runs.flags_of(_weights())


def _weights() -> str:
    """Returns the weights in use; "" while the run itself trains."""
    if fine_tuning_flags.DO_TRAIN.value:
        return ""
    return run_setup.own_weights(own_weights())


def take_flags(names: Collection[str]) -> None:
    """Sets omitted flags to the values from training.

    This ensures that texts are read as in training. It changes nothing while
    the run itself trains.

    Args:
        names: Flags that determine how texts are read, or what outputs mean.

    Raises:
        InputError: A specified flag does not apply with the new values.
    """
    model_files_setup.take_flags(names, _weights())


# ---- Changed flags -----------------------------------------------------------

# Only the presence of these flags affects reading, not their values.
_WHETHER = frozenset({"text_b_column", "label_separator"})


def check(
    head: str,
    identity: tuple[str, ...],
    reading: Collection[str],
    of_hold_out: tuple[str, ...] = (),
) -> opened.Checkpoint:
    """Checks the weights and flags of the earlier training.

    Args:
        head: The head that the weights must have: a key of names.HEADS.
        identity: Flags that a run in progress can't change.
        reading: Flags that determine how texts are read. Changes of these
            flags are logged if they are part of the identity.
        of_hold_out: Flags that must not change, because they determine which
            rows were held out from training.

    Returns:
        The weights.
    """
    source = find(head)
    before = said()
    changed = flagfiles.changes(before) if before else {}
    is_own = bool(own_weights())
    fatal = before and _other_rows(folder(), changed, of_hold_out, is_own)
    if fatal:
        raise InputError(
            "The rows to evaluate on would not be those that were held out of "
            f"the training of {source.path}: give the flags of training, or a "
            f"--dev_file. Received: {fatal}"
        )
    now = flags.FLAGS
    for name in identity:
        if name not in changed or name not in reading:
            continue
        if name in _WHETHER and before.get(name) and now[name].value:
            continue
        logging.warning(
            "Texts are read in a different way than in the training of %s: %s",
            source.path,
            changed[name],
        )
    return source


def warn_of_hold_out(of_hold_out: tuple[str, ...]) -> None:
    """Warns if the initial weights may have learned rows held out here.

    Args:
        of_hold_out: As for `check`.
    """
    start = run_flags.INIT_CHECKPOINT.value
    if not start or not fine_tuning_flags.DO_TRAIN.value or own_weights():
        return
    before = runs.flags_of(start)
    if not before:
        return
    changed = flagfiles.changes(before)
    others = _other_rows(runs.folder_of(start), changed, of_hold_out, False)
    if others:
        logging.warning(
            "Scores may be too high: %s, from which this run starts, may have "
            "been trained on rows that are held out here. Use its flags or a "
            "--dev_file: %s",
            start,
            others,
        )


def _other_rows(
    run: str,
    changed: Mapping[str, str],
    of_hold_out: tuple[str, ...],
    is_own: bool,
) -> str:
    """Explains why the held-out rows differ from earlier ones, or returns "".

    Args:
        run: The folder of the earlier run.
        changed: Result of `flagfiles.changes` for the earlier flags.
        of_hold_out: Flags that determine which rows are held out.
        is_own: Whether the earlier run is output_dir's, whose flags must be
            the same. Nothing is known about a different run with other data.
    """
    if not of_hold_out:
        return ""
    others = {name: changed[name] for name in of_hold_out if name in changed}
    table = flagfiles.told(["train_file"]).get("train_file")
    is_same = train_examples.is_table(run, table)
    if is_same:
        others.pop("train_file", None)
    elif "train_file" not in others and is_same is False:
        return (
            f"the content of train_file={table} has changed since the training"
        )
    elif "train_file" in others and not is_own:
        return ""
    return "; ".join(others.values())
