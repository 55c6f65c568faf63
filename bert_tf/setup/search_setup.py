"""Runs the hyperparameter search of the flags in `flags.search_flags`.

Called from the `main` of run_classifier.py only.
"""

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf import extras, modeling, terminals
from bert_tf.errors import InputError
from bert_tf.flags import (
    classification_flags,
    fine_tuning_flags,
    flag_sections,
    flagfiles,
    run_flags,
    search_flags,
)
from bert_tf.setup import fine_tuning_setup, run_folder
from bert_tf.storage import kept_flags
from bert_tf.tasks import search, trials
from bert_tf.training import distribution

import tensorflow as tf
from absl import flags, logging

# Flags that are not passed to the trials.
_OWN = ("search", "search_space", "search_pruner")
# Flags that may change when a search is resumed.
_MAY_CHANGE = {
    *trials.INDIFFERENT,
    *("search", "search_pruner", "output_dir", "check_only"),
}
# Groups of flags that can be searched, in addition to single flags.
_SECTIONS = ("Training", "Optimizer", "Distillation")
_MORE = ("max_seq_length",)


def check() -> None:
    """Raises InputError for unsupported flags or an invalid search space."""
    if not run_flags.CHECK_ONLY.value:
        # Leaves the devices to the processes of the trials. This is an error
        # once TensorFlow has read a tensor, as of a preset's config.
        tf.config.set_visible_devices([], "GPU")
    extras.check("optuna", "search", "Hyperparameter searches")
    for flag in (fine_tuning_flags.DO_PREDICT, fine_tuning_flags.DO_EXPORT):
        if flag.value:
            raise InputError(
                f"A search does not support --{flag.name}. Pass it after the "
                "search with the same --output_dir, without --search and "
                "--do_train. "
                f"Received: {flag.name}=true"
            )
    strategy = run_flags.DISTRIBUTION_STRATEGY
    if strategy.value == "multi_worker_mirrored":
        raise InputError(
            "A search runs its trials on one machine. Leave out "
            f"--{strategy.name}, or search without the other workers. "
            f"Received: {strategy.name}={strategy.value}"
        )
    run_folder.check_holds_runs()
    space = find_space(search_flags.SEARCH_SPACE.value)
    files = fine_tuning_setup.load_files()  # Sets --do_lower_case, too.
    for values in _some(space):
        _check_values(values, files.config)
    fraction = classification_flags.DEV_FRACTION
    if run_flags.SEED.name in space and fraction.value:
        raise InputError(
            f"Trials with different seeds and --{fraction.name} would be "
            "scored on different rows. Remove seed from --search_space, or "
            f"use --dev_file. Received: {fraction.name}={fraction.value}"
        )


def check_single_run() -> None:
    """Raises InputError if a single run would train in a search's folder."""
    path = os.path.join(run_flags.OUTPUT_DIR.value, search.STUDY)
    if fine_tuning_flags.DO_TRAIN.value and tf.io.gfile.exists(path):
        raise InputError(
            f"--output_dir holds a search ({path}), and training would replace "
            "its best weights. To use them, leave out --do_train. To continue "
            "the search, pass --search. To train a single run, choose another "
            f"--output_dir. Received: output_dir={run_flags.OUTPUT_DIR.value}"
        )


# ---- The space --------------------------------------------------------------


def find_space(text: str) -> dict[str, list[str]]:
    """Parses the search space: flag -> values, validated as text.

    Args:
        text: As in --search_space.
    """
    space: dict[str, list[str]] = {}
    for part in re.sub(r"\s*,\s*", ",", text).split():
        name, _, listed = part.partition("=")
        values = listed.split(",")
        parsed = [_parse(name, value) for value in values]
        if len(set(parsed)) < len(parsed) or name in space:
            raise InputError(
                "--search_space must list each flag and each value once. "
                f"Received: search_space={text}"
            )
        space[name] = values
    if not space:
        raise InputError(
            "--search_space must list flags, such as learning_rate=3e-5,2e-5. "
            f"Received: search_space={text!r}"
        )
    return space


def _parse(name: str, value: str) -> Any:
    """Parses a value of a searchable flag."""
    if name not in flags.FLAGS or not _is_searchable(flags.FLAGS[name]):
        raise InputError(
            "--search_space must be values of flags of training or of the "
            "optimizer, such as learning_rate=3e-5,2e-5 train_batch_size=16. "
            f"Received: {name}"
        )
    try:
        return flags.FLAGS[name].parser.parse(value)
    except ValueError as error:
        raise InputError(f"--search_space: {error}") from error


def _some(space: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Yields combinations: all values, and the first thousand combinations."""
    first = {name: values[0] for name, values in space.items()}
    for name, values in space.items():
        yield from ({**first, name: value} for value in values)
    for values in itertools.islice(itertools.product(*space.values()), 1000):
        yield dict(zip(space, values, strict=True))


def _check_values(
    values: Mapping[str, str], config: modeling.BertConfig
) -> None:
    """Raises InputError if values contradict the other flags or the model.

    A trial would end with this error, perhaps hours after the first.
    """
    used = [flags.FLAGS[name] for name in values]
    before = [(flag.value, flag.present) for flag in used]
    strategy = tf.distribute.get_strategy()
    try:
        for flag in used:
            flag.value, flag.present = flag.parser.parse(values[flag.name]), 1
        flag_sections.check_used()
        config.check_sequence_length(flags.FLAGS.max_seq_length)
        plan = fine_tuning_setup.plan(strategy)
        distribution.check_batch_size(
            strategy,
            fine_tuning_flags.TRAIN_BATCH_SIZE.name,
            plan.batch_size,
            plan.accumulate,
        )
        steps = (plan.learning_rate, 0, 1 << 30)  # Their number is not known.
        plan.recipe.make_optimizer(plan.recipe.schedule(*steps), config)
    except InputError as error:
        shown = " ".join(f"{name}={value}" for name, value in values.items())
        raise InputError(
            f"--search_space has values that fail together ({shown}): {error}"
        ) from error
    finally:
        for flag, (value, present) in zip(used, before, strict=True):
            flag.value, flag.present = value, present


def _is_searchable(flag: flags.Flag) -> bool:
    about = flag_sections.find_about(flag)
    return (
        about is not None
        and (about.section in _SECTIONS or flag.name in _MORE)
        and flag.name not in trials.INDIFFERENT
        and not about.alias
        and not about.role
        and not isinstance(flag.parser, flags.ListParser)
    )


# ---- The search -------------------------------------------------------------


def run(script: str, metric: str) -> None:
    """Runs the search after `check`, and prints its table.

    Args:
        script: Path of the script that runs a trial.
        metric: The dev result that selects the best trial.
    """
    space = find_space(search_flags.SEARCH_SPACE.value)
    _log_replaced(space)
    folder = run_flags.OUTPUT_DIR.value
    lock = run_folder.hold_output_dir()
    path = run_folder.flags_file()
    flagfiles.check_same_run(path, _compared(path))
    flagfiles.write_flagfile(path)
    shared = flagfiles.told(
        name
        for name in flags.FLAGS
        # Also a default that is specified: it outranks the checkpoint's.
        if name not in _OWN and flags.FLAGS[name].present
    )

    def train(trial_folder, values, is_over):
        given = {**shared, **values, "output_dir": trial_folder}
        log = os.path.join(trial_folder, "log.txt")
        return trials.call(script, given, log, lock, is_over)

    lines = search.Search(
        folder=folder,
        space=space,
        metric=metric,
        seed=run_flags.SEED.value,
        pruner=search_flags.SEARCH_PRUNER.value,
        keeps_last=fine_tuning_flags.USE_CHECKPOINT.value == "last",
        train=train,
    ).run(search_flags.SEARCH.value)
    terminals.write("".join(f"{line}\n" for line in ("", *lines)))


def _compared(path: str) -> set[str]:
    """Returns the flags that may not change when a search is resumed.

    Args:
        path: Path of its flags.txt.
    """
    names = set(flags.FLAGS) - _MAY_CHANGE
    casing = fine_tuning_flags.DO_LOWER_CASE
    # Earlier versions kept this default, and not the casing of the model.
    before = kept_flags.read(path) if tf.io.gfile.exists(path) else {}
    is_default = before.get(casing.name) == "true"
    if is_default and not casing.present:
        names.remove(casing.name)
    return names


def _log_replaced(space: Mapping[str, Sequence[str]]) -> None:
    """Logs the flags whose values the search space replaces."""
    given = [f"--{x}" for x in space if flag_sections.is_given(flags.FLAGS[x])]
    if given:
        logging.info(
            "Not used, as --search_space lists values: %s.", ", ".join(given)
        )
