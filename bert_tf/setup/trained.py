"""The training that a run follows: its weights, and what its flags said.

Called from the `main` of the fine-tuning scripts only.
"""

import os
from collections.abc import Collection, Mapping

from bert_tf.checkpoints import formats, opened, runs, trained_models
from bert_tf.errors import InputError
from bert_tf.flags import distillation as distillation_flags
from bert_tf.flags import fine_tuning as fine_tuning_flags
from bert_tf.flags import flagfiles, unused
from bert_tf.flags import run as run_flags
from bert_tf.setup import run as run_setup
from bert_tf.storage import kept_flags
from bert_tf.training import fine_tuning

from absl import flags, logging

# ---- Its weights -------------------------------------------------------------


def own_weights() -> str | None:
    """Returns the weights that the run in output_dir ended with, if any."""
    return trained_models.own_checkpoint(
        run_flags.OUTPUT_DIR.value,
        fine_tuning_flags.USE_CHECKPOINT.value == "best",
    )


def find(head: str) -> opened.Checkpoint:
    """Opens the fine-tuned weights to evaluate, predict and export with.

    Args:
        head: What they must have: a key of names.HEADS.
    """
    own = own_weights()
    if not own or not fine_tuning_flags.DO_TRAIN.value:
        own = run_setup.own_weights(own)
    return trained_models.with_trained_head(formats.open_checkpoint(own), head)


def restore(run: fine_tuning.Run, head: str) -> int:
    """Sets the model to fine-tuned weights, and returns their step."""
    source = find(head)
    with run.strategy.scope():
        return trained_models.restore(run.model, source, head)


def labels() -> tuple[str, ...] | None:
    """Returns the labels of output_dir, or of the weights to predict with."""
    own = trained_models.read_labels(run_flags.OUTPUT_DIR.value)
    if own or fine_tuning_flags.DO_TRAIN.value:
        return own
    source = run_setup.open_init_checkpoint()
    return source.labels if source else None


# ---- Its flags ---------------------------------------------------------------


def folder() -> str:
    """Returns the folder of the run that trained the weights that are used.

    It is "" while the run itself trains, and of weights that are of no run.
    """
    path = _weights()
    return runs.folder_of(path) if runs.flags_of(path) else ""


def said() -> dict[str, str]:
    """Returns the flags, as text, of `folder`; none if it is none."""
    return runs.flags_of(_weights())


def _weights() -> str:
    """Returns the weights that are used; "" while the run itself trains."""
    if fine_tuning_flags.DO_TRAIN.value:
        return ""
    return run_setup.own_weights(own_weights())


def take_flags(names: Collection[str]) -> None:
    """Gives flags that are left out the values that the training had.

    So its weights read texts as they learned to. It changes nothing while the
    run itself trains.

    Args:
        names: Of flags that say how texts are read, or what answers are.

    Raises:
        InputError: A flag is given that goes with others than there are now.
    """
    before = said()
    for name in sorted(before.keys() & set(names)):
        flag = flags.FLAGS[name]
        if flag.present:
            continue
        try:
            value = flag.parser.parse(before[name])
        except ValueError as error:
            path = os.path.join(folder(), kept_flags.FILE)
            raise InputError(
                f"{path}, which keeps the flags of the run, is wrong: --{name}:"
                f" {error}. Bring it back as it was, or give --{name}."
            ) from error
        if value != flag.value:
            logging.info("--%s=%s, as in training.", name, before[name])
            flag.value = value
    unused.check(flags.FLAGS)


# ---- Other flags than it had -------------------------------------------------

# What of a run's identity does not change how a text is read: which data it
# has and how its files look, how it trains, and labels, which are checked by
# themselves.
_NOT_OF_READING = frozenset(
    {
        "task_name",
        "data_dir",
        "xnli_language",
        "train_file",
        "dev_fraction",
        "seed",
        "file_format",
        "has_header",
        "text_a_column",
        "token_column",
        "separator",
        "label_column",
        "label_separator",
        "labels",
        "scheme",
        "regression",
        "class_weights",
        "double_unordered",
        "auxiliary_lm_weight",
        "train_batch_size",
        "group_by_length",
        *distillation_flags.IDENTITY,
    }
)


# That there is one changes the reading, and which one it is does not.
_WHETHER = frozenset({"text_b_column"})


def check(
    head: str, identity: tuple[str, ...], of_hold_out: tuple[str, ...] = ()
) -> opened.Checkpoint:
    """Looks at the weights and flags of a training that this run follows.

    Args:
        head: What the weights must have: a key of names.HEADS.
        identity: Flags that a run in progress can't change. Of those that say
            how texts are read a change is logged.
        of_hold_out: Flags that must not change, as they say which rows were
            not trained on.

    Returns:
        The weights.
    """
    source = find(head)
    before = said()
    changed = flagfiles.changes(before) if before else {}
    fatal = _other_rows(changed, of_hold_out, is_own=bool(own_weights()))
    if fatal:
        raise InputError(
            "The rows to evaluate on would not be those that were held out of "
            f"the training of {source.path}: give the flags of training, or a "
            f"--dev_file. Received: {fatal}"
        )
    now = flags.FLAGS
    for name in identity:
        if name not in changed or name in _NOT_OF_READING:
            continue
        if name in _WHETHER and before.get(name) and now[name].value:
            continue
        logging.warning(
            "Texts are read in another way than in the training of %s: %s",
            source.path,
            changed[name],
        )
    return source


def warn_of_hold_out(of_hold_out: tuple[str, ...]) -> None:
    """Warns if a run trained on rows that are held out of what starts from it.

    Args:
        of_hold_out: As of `check`.
    """
    start = run_flags.INIT_CHECKPOINT.value
    if not start or not fine_tuning_flags.DO_TRAIN.value or own_weights():
        return
    before = runs.flags_of(start)
    changed = flagfiles.changes(before) if before else {}
    others = _other_rows(changed, of_hold_out, is_own=False)
    if others:
        logging.warning(
            "Scores will flatter: %s, which this run starts from, was trained "
            "on rows that are held out here. Give its flags, or a --dev_file: "
            "%s",
            start,
            others,
        )


def _other_rows(
    changed: Mapping[str, str], of_hold_out: tuple[str, ...], is_own: bool
) -> str:
    """Says why rows that are held out are not those held out before, or "".

    Args:
        changed: What `flagfiles.changes` says of the flags before.
        of_hold_out: Flags that say which rows are held out.
        is_own: Whether the run before is that of output_dir, whose flags must
            be the same. Of another run that had other data nothing is known.
    """
    if not is_own and "train_file" in changed:
        return ""
    return "; ".join(changed[name] for name in of_hold_out if name in changed)
