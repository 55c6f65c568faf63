"""The outline of all fine-tuning scripts, and the base class of their tasks.

The `main` of a script passes an instance of a subclass of `Task` to `run_task`.
The script defines --max_seq_length, and adopts the flags of `run_flags`,
`fine_tuning_flags` and `optimization_flags`.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from bert_tf import configuration, options
from bert_tf.checkpoints import best, opened, trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.exporting import saved_model
from bert_tf.flags import (
    distillation_flags,
    fine_tuning_flags,
    help_text,
    run_flags,
)
from bert_tf.records import record_types
from bert_tf.setup import (
    distillation_setup,
    fine_tuning_setup,
    run_setup,
    teachers,
    trained_setup,
)
from bert_tf.training import (
    distillation,
    distribution,
    fine_tuning,
    loop,
    progress,
    run_report,
    scoring,
)

import keras
from absl import flags

# ---- The task ---------------------------------------------------------------

Writer: TypeAlias = Callable[[str, str, int | None], record_types.RecordFile]
_Run: TypeAlias = fine_tuning.Run
_Teacher: TypeAlias = teachers.Teacher | None


class Task:
    """The part of a fine-tuning script that depends on its task.

    `run_task` calls the methods in this order.
    """

    head: str  # The head to train: a key of names.HEADS.
    # The task's own flags that a run in progress can't change.
    identity: tuple[str, ...] = ()
    # Flags that determine how texts are read. If they are omitted, the values
    # from the training of the weights apply.
    reading: tuple[str, ...] = ("max_seq_length",)
    # More of these flags, whose values from the training do not apply. Changes
    # are logged.
    more_reading: tuple[str, ...] = ("do_lower_case",)
    # Flags, besides `fixed_flags`, that determine the score by which the best
    # weights are selected.
    chosen_on: tuple[str, ...] = ("dev_file",)
    # Data files that determine it and have no flag.
    published: tuple[str, ...] = ()
    # Flags that determine which rows are held out from training.
    hold_out: tuple[str, ...] = ()
    takes_pairs = True  # of texts
    labels: tuple[str, ...] | None = None  # names of the classes, if any
    is_multi_label = False
    rows = 1  # sequences per example
    predicted_tokens = 0  # per sequence, besides the task
    metric = "eval_accuracy"  # the result that selects the best weights
    prefers_lower = False  # whether its lowest value is the best
    objective: loop.Objective
    # With a teacher's logits; tasks without it can't learn from a teacher.
    comparison: distillation.Comparison
    # Set by `run_task`: the requested actions, and config and vocabulary.
    work: fine_tuning_setup.Work
    files: trained_models.ModelFiles
    # Set by `prepare` or `read`: a list of the splits, or a mapping by split.
    splits: Any

    @property
    def length(self) -> int:
        """The sequence length."""
        return flags.FLAGS.max_seq_length

    @property
    def fixed_flags(self) -> tuple[str, ...]:
        """All flags that a run in progress can't change."""
        return (
            "train_file",
            *self.identity,
            *("do_lower_case", "max_seq_length", "train_batch_size"),
            *("group_by_length", "seed", *distillation_flags.IDENTITY),
        )

    def prepare(self) -> None:
        """Checks what does not depend on the model's files."""

    def load_files(self) -> trained_models.ModelFiles:
        """Reads the config and the vocabulary."""
        return fine_tuning_setup.load_files()

    def check_trained(self) -> opened.Checkpoint:
        """Returns the trained weights; InputError if they do not fit."""
        reading = (*self.reading, *self.more_reading)
        return trained_setup.check(
            self.head, self.fixed_flags, reading, self.hold_out
        )

    def read(self) -> None:
        """Reads and checks the data, before the devices are set up."""

    def files_of_splits(
        self, *paths: flags.FlagHolder
    ) -> Iterator[tuple[str, str]]:
        """Yields the needed splits and their files.

        `paths` are the flags of the files to train on, evaluate and predict.
        """
        for split, path in zip(("train", "dev", "test"), paths, strict=True):
            if split not in self.work.splits:
                continue
            if not path.value:
                raise InputError(f"Give --{path.name}, the {split} set.")
            yield split, path.value

    def make_model(self, encoder: keras.Model) -> keras.Model:
        """Adds the head to the encoder."""
        raise NotImplementedError

    def record_file(self, split: str) -> str:
        """Returns the name of the file with the records of a split."""
        return f"{split}.tf_record"

    def writer(self) -> Writer:
        """Returns a function that writes the records of a split to a path.

        The function shuffles them, unless the seed is None.
        """
        raise NotImplementedError

    def make_objective(
        self, run: _Run, plan: fine_tuning.Plan, teacher: _Teacher
    ) -> tuple[loop.Objective, _Run]:
        """Returns the objective, including the teacher's, and the run."""
        if teacher is None:
            return self.objective, run
        learned = distillation_setup.objective(
            *(self.objective, self.comparison, teacher),
            *(run.strategy, run.model, run.has_free_shapes),
        )
        return learned, run

    def select(self, source: opened.Checkpoint) -> opened.Checkpoint:
        """Selects the weights of the initial checkpoint to start from."""
        return source

    def evaluate(self, run: _Run, batch_size: int) -> Mapping[str, Any]:
        """Returns the results on the dev set."""
        raise NotImplementedError

    def write_evaluation(self, run: _Run, batch_size: int, step: int) -> None:
        """Writes eval_results.txt."""
        results = self.evaluate(run, batch_size)
        if run.is_chief:
            write_results(run.path("eval_results.txt"), results, step)

    def write_predictions(self, run: _Run, batch_size: int, step: int) -> None:
        """Writes the predictions of the test set."""
        raise NotImplementedError

    def export(self, run: _Run) -> saved_model.Export:
        """Returns the SavedModel to write."""
        raise NotImplementedError

    def finish(self, run: _Run) -> None:
        """Writes what remains at the end, such as comparisons."""


def write_results(path: str, results: Mapping[str, Any], step: int) -> None:
    """Writes results, and the loss and the step by the original's names."""
    more = {"loss": results["eval_loss"], "global_step": step}
    progress.write_results(path, {**results, **more})


# ---- The outline ------------------------------------------------------------


@distribution.cluster_watched()
def run_task(task: Task) -> None:
    """Trains, evaluates, predicts and exports, as the flags request."""
    task.work = work = fine_tuning_setup.work()
    check_actions(task)
    trained_setup.take_flags(task.reading)
    task.prepare()
    task.files = task.load_files()
    config = task.files.config
    config.check_sequence_length(task.length)
    _check_reads(task, config)
    if not work.train:
        task.check_trained()
    task.read()
    teacher = _find_teacher(task) if work.train else None

    strategy = fine_tuning_setup.set_up_distribution()
    plan = fine_tuning_setup.plan(strategy, task.chosen_on, task.published)
    with strategy.scope():
        model = task.make_model(families.make(config))
    evaluated_on = plan.chosen_on.get(best.EVALUATED_ON)
    folder = fine_tuning_setup.make_folder(
        strategy, task.fixed_flags, task.chosen_on, evaluated_on
    )
    data = _write_records(task, folder)
    output_dir = run_flags.OUTPUT_DIR.value
    taught_by = teacher.digest if teacher else ""
    run = _Run(
        *(output_dir, strategy, model, task.files, task.labels, data),
        teacher=taught_by,
    )
    if work.train:
        _train(task, run, plan, teacher)
    if plan.check_only:
        _report_check(task, run)
        return
    if work.evaluate or work.predict or work.export:
        _apply(task, run)
    if work.train and run.is_chief and task.head in options.SERVED_HEADS:
        predict = help_text.command("run_prediction")
        run_setup.report_next(f"To predict: {predict} --model_dir=%s")


def check_actions(task: Task) -> None:
    """Raises InputError if the task has no method for a requested action."""
    work = task.work
    for is_requested, method, flag in (
        (work.evaluate, "evaluate", "do_eval"),
        (work.predict, "write_predictions", "do_predict"),
        (work.export, "export", "do_export"),
    ):
        is_missing = getattr(type(task), method) is getattr(Task, method)
        if is_requested and is_missing:
            raise InputError(f"This script does not support --{flag}.")


def _find_teacher(task: Task) -> _Teacher:
    path = distillation_flags.TEACHER.value
    if not path:
        return None
    if not hasattr(task, "comparison"):
        raise InputError(
            "This script does not train from a teacher: leave out --teacher. "
            f"Received: teacher={path}"
        )
    teacher = teachers.find(
        task.head, task.files, task.length, task.labels, task.is_multi_label
    )
    try:
        _check_reads(task, teacher.config)
    except InputError as error:
        path = teacher.source.path
        raise InputError(f"The teacher {path}: {error}") from error
    return teacher


def _check_reads(task: Task, config: configuration.BertConfig) -> None:
    """Raises InputError unless the encoder reads the task's pairs or texts."""
    if task.takes_pairs:
        config.check_reads_pairs(task.files.vocabulary.template.segments)
    else:
        config.check_reads_single_texts()


def _write_records(
    task: Task, folder: str
) -> dict[str, record_types.RecordFile]:
    """Writes the records of all splits: all data is checked before training."""
    data, write = {}, task.writer()
    for split in task.splits:
        path = os.path.join(folder, task.record_file(split))
        # Shuffled, as the data may be sorted by label.
        seed = run_flags.SEED.value if split == "train" else None
        data[split] = write(split, path, seed)
    return data


def _train(
    task: Task, run: _Run, plan: fine_tuning.Plan, teacher: _Teacher
) -> None:
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if task.work.evaluate:
        batch_size = fine_tuning_flags.EVAL_BATCH_SIZE.value
        evaluation = scoring.Evaluation(
            task.metric,
            functools.partial(task.evaluate, run, batch_size),
            task.prefers_lower,
        )
    objective, run = task.make_objective(run, plan, teacher)
    restore = functools.partial(
        run_setup.restore,
        select=task.select,
        begin=functools.partial(fine_tuning_setup.set_words, run.files),
    )
    fine_tuning.train(
        *(run, plan, objective, restore, evaluation),
        begin=run_setup.keep_flags,
    )


def _report_check(task: Task, run: _Run) -> None:
    """Logs the result of --check_only, at its end."""
    if task.work.train:
        run_setup.report_model(
            run_report.replicas_of(run.strategy),
            run.model,
            fine_tuning_flags.TRAIN_BATCH_SIZE.value * task.rows,
            fine_tuning_flags.ACCUMULATE.value,
            {"S": task.length, "P": task.predicted_tokens},
        )
    else:
        trained_setup.restore(run, task.head)
    run_setup.report_no_problem()


def _apply(task: Task, run: _Run) -> None:
    """Evaluates, predicts and exports with the trained weights."""
    step = trained_setup.restore(run, task.head)
    if task.work.evaluate:
        batch_size = fine_tuning_flags.EVAL_BATCH_SIZE.value
        task.write_evaluation(run, batch_size, step)
    if task.work.predict:
        batch_size = fine_tuning_flags.PREDICT_BATCH_SIZE.value
        task.write_predictions(run, batch_size, step)
    if task.work.export and run.is_chief:
        fine_tuning.write_export(run, task.export(run))
    task.finish(run)
