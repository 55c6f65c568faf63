r"""Fine-tunes on all GLUE tasks, and writes a table and the submission.

    python run_glue.py --data_dir=$GLUE_DIR --seeds=1,2,3 \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --do_predict=true --output_dir=/tmp/glue

Each run is a process of run_classifier.py, and this script accepts its flags
for the model, batches, optimizer and devices. All runs train and evaluate, so
there are no --do_train and --do_eval. --seeds replaces --seed, and
export_saved_model.py replaces --do_export. A finished run is a line in
output_dir/results.jsonl and is not repeated: after a kill, the same command
resumes the run that was killed. More seeds, tasks or settings add runs.

The paper's grid, from which the setting with the best mean dev score is chosen:
    python run_glue.py --flagfile=configs/glue_grid.flags ...

For each task, the weights of the run with the best dev score are kept and
predict the test set. The weights of other runs are removed.
"""

import dataclasses
import math
import os
import pathlib

from bert_tf.errors import InputError
from bert_tf.flags import (
    command_line,
    distillation_flags,
    fine_tuning_flags,
    flag_sections,
    optimization_flags,
    run_flags,
    shared_flags,
)
from bert_tf.storage import kept_flags
from bert_tf.tasks.glue import glue_scores

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(distillation_flags)

# ---- Flags ------------------------------------------------------------------

_DATA = flag_sections.Section("Data")
_CHOICES = flag_sections.Section("Runs")

_DATA_DIR = _DATA.input_path(
    "data_dir", "Folder with a folder for each task.", required=True
)
_TASK_DIRS = _DATA.words(
    "task_dirs",
    [],
    "Folders in data_dir that are not named after their task, such as "
    "QNLI:QNLIv2. AX can also be in diagnostic.",
    kind="TASK:FOLDER,...",
)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Tokens per example.", min=4
)
_DOUBLE_UNORDERED = shared_flags.double_unordered(_DATA)
_TASKS = _CHOICES.words(
    "tasks",
    list(glue_scores.TASKS),
    "GLUE tasks to run. MNLI's best model predicts AX.",
)
_SEEDS = _CHOICES.words("seeds", ["1", "2", "3"], "Random seeds, one per run.")
_LEARNING_RATES = _CHOICES.words(
    "learning_rates",
    None,
    "Learning rates to choose from, instead of --learning_rate.",
)
_EPOCHS = _CHOICES.words(
    "epochs",
    None,
    "Numbers of epochs to choose from, instead of --num_train_epochs.",
)
_BATCH_SIZES = _CHOICES.words(
    "batch_sizes",
    None,
    "Batch sizes to choose from, instead of --train_batch_size.",
)
_INTERMEDIATE_TASK = _CHOICES.string(
    "intermediate_task",
    None,
    "Task, such as MNLI, whose best weights RTE, MRPC and STS-B start from.",
    kind="TASK",
)

_UNSUPPORTED = {
    "seed": "--seeds has the seeds",
    "do_train": "all runs are trained",
    "do_eval": "all runs are evaluated",
    "do_export": "export with export_saved_model.py",
}

# Every run is trained and evaluated.
command_line.start(
    __name__, always=("do_train", "do_eval"), unsupported=_UNSUPPORTED
)

from bert_tf import files, options, terminals
from bert_tf.checkpoints import opened
from bert_tf.flags import flagfiles
from bert_tf.setup import fine_tuning_setup, run_folder, run_setup, teachers
from bert_tf.tasks.glue import (
    glue_data,
    glue_experiment,
    glue_runs,
    glue_submission,
)
from bert_tf.training import distribution

import tensorflow as tf
from absl import logging

_AFTER_INTERMEDIATE = ("RTE", "MRPC", "STS-B")
_SCRIPT = pathlib.Path(__file__).with_name("run_classifier.py")

# Flags of run_classifier.py that each run gets from here.
_EACH = (
    "do_train",
    "do_eval",
    "do_predict",
    "do_export",
    "check_only",
    "seed",
    "learning_rate",
    "num_train_epochs",
    "train_batch_size",
    "output_dir",
    "init_checkpoint",
    "bert_config_file",
    "vocab_file",
    "teacher",
)
# Flag of the values to try, flag of a single value, and an example.
_SEVERAL = (
    (_LEARNING_RATES, optimization_flags.LEARNING_RATE, "2e-5,3e-5"),
    (_EPOCHS, fine_tuning_flags.NUM_TRAIN_EPOCHS, "2,3"),
    (_BATCH_SIZES, fine_tuning_flags.TRAIN_BATCH_SIZE, "16,32"),
)


# ---- What the flags say -----------------------------------------------------


def numbers(flag, kind, sample):
    """Returns the numbers of a list; InputError if it holds anything else."""
    try:
        values = [kind(text) for text in flag.value]
    except ValueError:
        values = []
    # Not "<=", which is false for what is not a number.
    is_right = all(0 < x < math.inf for x in values)
    if not values or not is_right or len(set(values)) < len(values):
        raise InputError(
            f"--{flag.name} must be {'whole ' * (kind is int)}numbers above 0, "
            f"each once, such as {sample}. "
            f"Received: {flag.name}={','.join(flag.value)}"
        )
    return values


def seeds():
    """Returns the seeds; InputError if they are none."""
    given = _SEEDS.value
    try:
        values = [int(text) for text in given]
    except ValueError:
        values = []
    is_right = all(0 <= x < 1 << 31 for x in values)
    if not values or not is_right or len(set(values)) < len(values):
        raise InputError(
            f"--seeds must be whole numbers from 0 to {(1 << 31) - 1}, each "
            f"once, such as 1,2,3. Received: seeds={','.join(given)}"
        )
    return values


def settings():
    """Returns the settings to choose from."""
    values = [
        [one.value]
        if several.value is None
        else numbers(several, type(one.default), sample)
        for several, one, sample in _SEVERAL
    ]
    return glue_runs.grid(*values)


def check_settings(choices, data):
    """Raises InputError where a setting does not fit the data of a task."""
    strategy = tf.distribute.get_strategy()
    plan = fine_tuning_setup.plan(strategy)
    for task, found in data.items():
        for setting in choices:
            own = dataclasses.replace(
                plan,
                learning_rate=setting.learning_rate,
                num_train_epochs=setting.num_train_epochs,
                batch_size=setting.train_batch_size,
            )
            try:
                distribution.check_batch_size(
                    strategy,
                    fine_tuning_flags.TRAIN_BATCH_SIZE.name,
                    own.batch_size,
                    own.accumulate,
                )
                own.check(found.examples)
            except InputError as error:
                raise InputError(f"{task}, {setting}: {error}") from error


def tasks():
    """Returns the tasks in their order: an intermediate one comes first."""
    first = _INTERMEDIATE_TASK.value
    names = ([first] if first else []) + _TASKS.value
    unknown = [name for name in names if name not in glue_scores.TASKS]
    if unknown:
        raise InputError(
            f"Unknown tasks. Expected some of {', '.join(glue_scores.TASKS)}; "
            "AX is predicted with MNLI by --do_predict. "
            f"Received: {', '.join(unknown)}"
        )
    if not _TASKS.value:
        raise InputError(
            "--tasks is empty: name some, or leave it out for all of GLUE."
        )
    if first and not {*_AFTER_INTERMEDIATE} & {*_TASKS.value} - {first}:
        raise InputError(
            "--intermediate_task is what RTE, MRPC and STS-B start from, and "
            "none of these is to be trained. Add one to --tasks, or leave "
            f"--intermediate_task out. Received: intermediate_task={first}, "
            f"tasks={','.join(_TASKS.value)}"
        )
    return list(dict.fromkeys(names))


def task_dirs(names):
    """Returns task -> folder, of these tasks and AX."""
    pairs = [text.partition(":") for text in _TASK_DIRS.value]
    folders = {task: folder for task, _, folder in pairs}
    if (
        not folders.keys() <= {*glue_scores.TASKS, "AX"}
        or not all(folders.values())
        or len(folders) < len(pairs)
    ):
        raise InputError(
            "--task_dirs must be such as MNLI:FOLDER,AX:FOLDER, each task "
            f"once. Received: task_dirs={','.join(_TASK_DIRS.value)}"
        )
    unused = sorted(folders.keys() - {*names, "AX"})
    if unused:
        logging.info(
            "Not used of --task_dirs, as --tasks lacks them: %s.",
            ", ".join(unused),
        )
    return folders


def refuse():
    """Raises InputError for flags of run_classifier.py that do not apply."""
    reasons = _UNSUPPORTED | {
        one.name: f"--{several.name} has what to choose from"
        for several, one, _ in _SEVERAL
        if several.value is not None
    }
    for name, reason in reasons.items():
        if flags.FLAGS[name].present:
            raise InputError(f"Leave out --{name}: {reason}.")
    run_setup.check_master()
    run_folder.check_holds_runs()


def digest(files, source):
    """Returns the SHA-256 of what all runs start from."""
    parts = files.config.to_json().encode(), *files.vocab.contents.values()
    return opened.digest(source, parts)


def find_teachers(names):
    """Returns the teacher of each task; empty if none are requested."""
    folder = distillation_flags.TEACHER.value
    kind = distillation_flags.DISTILLATION.value
    if kind in options.DISTILLATIONS_OF_LAYERS:
        raise InputError(
            f"--distillation={kind} trains no head, and here every run is "
            "evaluated. Train the layers by run_classifier.py, and start from "
            "its folder by --init_checkpoint. "
            f"Received: distillation={kind}"
        )
    if not folder:
        return {}
    teachers.check_elsewhere(folder)
    return glue_experiment.find_teachers(folder, names)


# ---- The outcome ------------------------------------------------------------


def report(folder, done):
    """Writes and prints the table of the chosen settings."""
    summaries = []
    for task in filter(done.__contains__, glue_scores.TASKS):
        runs = glue_runs.choose(done[task])
        summary = glue_scores.Summary.from_results(
            task,
            [run.results for run in runs],
            str(runs[0].setting),
            runs[0].examples,
        )
        summaries.append(summary)
    lines = glue_scores.table(summaries)
    files.write_lines(os.path.join(folder, "table.md"), lines)
    files.write_json(
        os.path.join(folder, "table.json"), glue_scores.to_json(summaries)
    )
    terminals.write("".join(f"{line}\n" for line in ("", *lines)))


# ---- Main -------------------------------------------------------------------


def find_starts(experiment, start):
    """Returns task -> where its runs begin: at `start` without another task."""
    first = _INTERMEDIATE_TASK.value
    return experiment.starts(start, first, _AFTER_INTERMEDIATE)


def run_all(experiment, start, ax):
    """Trains all tasks, writes the table and, if requested, predicts.

    Args:
        experiment: The runs.
        start: Where the runs begin, except those after an intermediate task.
        ax: Folder of the diagnostics, or None.
    """
    names = tasks()
    folder = run_flags.OUTPUT_DIR.value
    starts = find_starts(experiment, start)
    done = {}
    for task in names:
        done[task] = experiment.train(task, starts[task])
        if task == _INTERMEDIATE_TASK.value:
            experiment.write_encoder(task, done[task], start)
            starts = find_starts(experiment, start)
    report(folder, done)
    if not fine_tuning_flags.DO_PREDICT.value:
        return
    predicted: dict[str, str] = {}
    for task in names:
        predicted |= experiment.predict(task, done[task], starts[task])
    if "MNLI" in names and ax:
        predicted |= experiment.predict_diagnostics(ax, done["MNLI"], start)
    glue_submission.submit(folder, predicted)


def main(_):
    """All runs, the table, the submission."""
    # The processes need the devices.
    tf.config.set_visible_devices([], "GPU")
    refuse()
    names = tasks()
    folders = task_dirs(names)
    choices, all_seeds = settings(), seeds()
    model_files = fine_tuning_setup.load_files(always_trains=True)
    model_files.config.check_sequence_length(_MAX_SEQ_LENGTH.value)
    source = run_setup.open_init_checkpoint()
    data = glue_data.read_all(names, _DATA_DIR.value, folders)
    ax = glue_data.find_folder("AX", _DATA_DIR.value, folders)
    if fine_tuning_flags.DO_PREDICT.value:
        glue_data.check_all_tests(data, ax)
    start = glue_experiment.Start(
        run_flags.INIT_CHECKPOINT.value or None, digest(model_files, source)
    )
    check_settings(choices, data)
    all_teachers = find_teachers(names)
    # The process of a run is ended too.
    command_line.unwind_at_signals()
    values = flagfiles.values_of(
        run_flags, optimization_flags, fine_tuning_flags, distillation_flags
    ) | flagfiles.told((_MAX_SEQ_LENGTH.name, _DOUBLE_UNORDERED.name))
    folder = run_flags.OUTPUT_DIR.value
    is_check = run_flags.CHECK_ONLY.value
    experiment = glue_experiment.Experiment(
        folder,
        None if is_check else run_folder.hold_output_dir(),
        _SCRIPT,
        {k: v for k, v in values.items() if k not in _EACH},
        model_files,
        data,
        choices,
        all_seeds,
        all_teachers,
    )
    starts = find_starts(experiment, start)
    experiment.check(starts)
    if is_check:
        logging.info(
            "Found nothing that would stop these runs. Nothing was written to "
            "%s.",
            folder,
        )
        return
    flagfiles.write_flagfile(os.path.join(folder, kept_flags.FILE))
    experiment.plan(starts)
    run_all(experiment, start, ax)


if __name__ == "__main__":
    command_line.run(main)
