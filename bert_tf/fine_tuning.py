"""What fine-tuning adds to the training loop: epochs, and the best of them."""

import contextlib
import dataclasses
import functools
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping

from bert_tf import (
    best,
    checkpoints,
    devices,
    disk_space,
    distribution,
    export,
    files,
    fine_tuned,
    inference,
    input_pipeline,
    long_documents,
    modeling,
    optimization,
    phases,
    progress,
    recipes,
    text_records,
    training,
)
from bert_tf.interop import opened

import keras
import numpy as np
import tensorflow as tf
from absl import logging


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to train; the flags of the same names.

    Attributes:
        batch_size: Examples per step, over all replicas.
        learning_rate: Its peak.
        num_train_epochs: Passes over the training set.
        warmup_proportion: Share of the steps that warm up.
        accumulate: Micro-batches per step.
        seed: Of the data order and dropout.
        iterations_per_loop: Longest block of steps on the device.
        save_checkpoints_steps: Steps between checkpoints.
        keep_checkpoint_max: Newest checkpoints to keep.
        log_steps: Steps between lines of progress.
        group_by_length: Whether batches hold examples of about one length.
        recipe: Optimizer and schedule.
        peak_flops: Of one device, where its data sheet is not known.
        profile_steps: Between which a trace is written.
        remat: Whether the backward pass computes layers again.
        check_only: Whether to stop before the first step, writing nothing.
    """

    batch_size: int
    learning_rate: float
    num_train_epochs: float
    warmup_proportion: float
    accumulate: int
    seed: int
    iterations_per_loop: int
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    log_steps: int
    group_by_length: bool
    recipe: recipes.Recipe = dataclasses.field(default_factory=recipes.Recipe)
    peak_flops: float | None = None
    profile_steps: tuple[int, int] | None = None
    remat: bool = False
    check_only: bool = False

    def steps(self, examples: int) -> int:
        """Training steps for so many records, rounded down."""
        steps = int(examples / self.batch_size * self.num_train_epochs)
        if not steps:
            way_out = "Lower --train_batch_size"
            if self.num_train_epochs < 1:
                way_out += " or raise --num_train_epochs"
            raise ValueError(
                f"There are too few examples for one training step. {way_out}. "
                f"Received: {examples} examples, "
                f"train_batch_size={self.batch_size}, "
                f"num_train_epochs={self.num_train_epochs}"
            )
        if steps >= 1 << 31:
            raise ValueError(
                f"A run takes less than {1 << 31} steps. Lower "
                f"--num_train_epochs. Received: {examples} examples, "
                f"train_batch_size={self.batch_size}, "
                f"num_train_epochs={self.num_train_epochs}"
            )
        return steps

    def steps_per_epoch(self, examples: int) -> int:
        """Steps between evaluations, so that the last falls on the end."""
        return math.ceil(examples / self.batch_size)

    def schedule(self, examples: int) -> optimization.Schedule:
        """The learning rate, warmed up as in the original."""
        steps = self.steps(examples)
        warmup = int(steps * self.warmup_proportion)
        return self.recipe.schedule(self.learning_rate, warmup, steps)

    def check(self, examples: int) -> None:
        """Raises ValueError where numbers contradict each other."""
        self.schedule(examples)
        progress.check_profile(self.profile_steps, self.steps(examples))

    def make_optimizer(
        self, examples: int, config: modeling.BertConfig
    ) -> optimization.Optimizer:
        """The optimizer of the recipe, to be built."""
        return self.recipe.make_optimizer(
            self.schedule(examples), config.num_hidden_layers
        )


@dataclasses.dataclass(frozen=True)
class Run:
    """What every part of a run needs; the scripts add what is their own.

    Attributes:
        folder: The run's output_dir.
        strategy: What it computes on.
        model: BERT with its head.
        files: What belongs to the model.
        labels: Of its classes, if it has any.
        data: Split -> its records.
    """

    folder: str
    strategy: tf.distribute.Strategy
    model: keras.Model
    files: fine_tuned.ModelFiles
    labels: tuple[str, ...] | None
    data: Mapping[str, text_records.TextRecords]

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run's files."""
        return distribution.is_chief(self.strategy)

    @property
    def has_free_shapes(self) -> bool:
        """Whether batches may have other lengths; a TPU compiles each."""
        return not distribution.is_tpu(self.strategy)

    @contextlib.contextmanager
    def without_padding(self) -> Iterator[None]:
        """What is traced here spends no time on padding, if it can."""
        bert = self.model.bert
        before = bert.skips_padding
        bert.skips_padding = self.has_free_shapes
        try:
            yield
        finally:
            bert.skips_padding = before


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How each epoch is scored.

    Attributes:
        metric: The key of the results that is highest in the best epoch.
        evaluate: Returns the results of the model as it stands.
    """

    metric: str
    evaluate: Callable[[], Mapping[str, float]]


def train(
    run: Run,
    plan: Plan,
    objective: training.Objective,
    restore: Callable[[checkpoints.TrainState], None],
    evaluation: Evaluation | None = None,
) -> None:
    """Trains on the split "train", from where the run stands to its end.

    Args:
        run: What to train on what.
        plan: How.
        objective: What to minimize.
        restore: Sets the state to where the run starts or goes on.
        evaluation: After each epoch, the best of which is kept in `best/`.

    Raises:
        ValueError: The run in the folder trained on other examples.
    """
    examples = run.data["train"].count
    plan.check(examples)
    trained_on = _examples(run)
    _check_same_examples(run, trained_on)
    writes = run.is_chief and not plan.check_only
    with run.strategy.scope():
        optimizer = plan.make_optimizer(examples, run.model.bert.config)
        trained = run.model.trained_variables
        optimizer.build(trained)
        everything = {variable.path for variable in run.model.variables}
        state = checkpoints.TrainState(
            run.model,
            optimizer,
            plan.seed,
            plan.keep_checkpoint_max,
            writes,
            plan.batch_size,
            untrained=everything - {variable.path for variable in trained},
        )
        restore(state)
    left = plan.steps(examples) - state.step
    if run.is_chief:
        disk_space.check_checkpoints(
            run.folder, state, left // plan.save_checkpoints_steps + 1
        )
    if writes:
        if not state.step:
            best.clear(run.folder)
        run.files.write(run.folder, run.labels)
        files.write_json(os.path.join(run.folder, _EXAMPLES), trained_on)
    _train(run, plan, state, optimizer, objective, evaluation)


# Says which examples a run trains on: their file may change where it lies.
_EXAMPLES = "train_examples.json"


def _examples(run: Run) -> dict[str, int | str]:
    """Returns how many records there are to train on, and their SHA-256."""
    data = run.data["train"]
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(data.path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return {"records": data.count, "sha256": digest.hexdigest()}


def _check_same_examples(run: Run, now: Mapping[str, int | str]) -> None:
    """Raises ValueError if the run would go on with other examples."""
    if not checkpoints.latest(run.folder):
        return
    try:
        before = opened.read_json(run.folder, _EXAMPLES)
    except ValueError as error:
        raise ValueError(
            f"{str(error).rstrip('.')}. It says which examples the run trains "
            "on: bring it back, or choose another output_dir."
        ) from error
    if before and now != before:
        number = before.get("records", "another number of")
        raise ValueError(
            f"The run in {run.folder} was trained on other examples: they "
            f"were {number} records, and are {now['records']} now, not all "
            "the same. Bring the training data back as it was, or choose "
            "another output_dir."
        )


def _train(
    run: Run,
    plan: Plan,
    state: checkpoints.TrainState,
    optimizer: optimization.Optimizer,
    objective: training.Objective,
    evaluation: Evaluation | None,
) -> None:
    """Makes the steps that are left, saving in the run's folder."""
    agree = distribution.agreement(run.strategy)
    distribution.check_same_step(agree, state.step)
    data, stop = run.data["train"], plan.steps(run.data["train"].count)
    if plan.check_only:
        logging.info(
            "Would train on %d examples from step %d to %d.",
            *(data.count, state.step, stop),
        )
        return
    if evaluation and _lacks_evaluation(run, plan, state.step, stop):
        logging.info("Step %d has not been evaluated yet.", state.step)
        report = progress.Progress(run.folder, state.step, stop, run.is_chief)
        _evaluating(run, state.step, evaluation, report)(state.step, {})
        _wait_for_all(run.strategy)
    if state.step >= stop:
        logging.info("The run in %s has made all %d steps.", run.folder, stop)
        return
    logging.info("Training on %d examples for %d steps.", data.count, stop)
    run.model.bert.encoder.remat = plan.remat
    steps = training.make_train_steps(
        run.strategy,
        run.model,
        optimizer,
        objective,
        _batches(run, plan, state.records),
        plan.seed,
        plan.accumulate,
    )

    def save(step, _):
        state.step, state.records = step, step * plan.batch_size
        state.save(run.folder)

    with input_pipeline.explained([data.path]), run.without_padding():
        training.run(
            steps,
            state.step,
            stop,
            plan.iterations_per_loop,
            save=(plan.save_checkpoints_steps, save),
            hooks=_hooks(run, plan, state.step, stop, evaluation),
            agree=agree,
        )
    _wait_for_all(run.strategy)


def _batches(
    run: Run, plan: Plan, start: int
) -> tf.distribute.DistributedDataset:
    """Returns the batches to train on after `start` records."""
    data = run.data["train"]
    batches = input_pipeline.train(
        [data.path],
        [data.count],
        plan.batch_size,
        plan.seed,
        start,
        plan.group_by_length,
    )
    return input_pipeline.distribute(
        run.strategy,
        batches,
        data.record_type,
        data.lengths,
        trim=run.has_free_shapes,
    )


def _lacks_evaluation(run: Run, plan: Plan, step: int, stop: int) -> bool:
    """Whether an epoch ends here that metrics.jsonl has no evaluation of.

    Its evaluation failed, when the step was saved, or was not asked for.
    """
    epoch = plan.steps_per_epoch(run.data["train"].count)
    is_due = step > 0 and (step % epoch == 0 or step == stop)
    return is_due and progress.last_evaluation(run.folder) < step


def _hooks(
    run: Run, plan: Plan, start: int, stop: int, evaluation: Evaluation | None
) -> list[tuple[training.Due, training.Hook]]:
    """Returns hooks that say how the training goes, and keep its best."""
    meter = devices.meter(
        run.strategy,
        run.model.bert.config,
        plan.recipe.dtype,
        plan.peak_flops,
        reads_all=run.model.reads_all,
    )
    report = progress.Progress(run.folder, start, stop, run.is_chief, meter)
    hooks: list[tuple[training.Due, training.Hook]]
    hooks = [(plan.log_steps, report)]
    if plan.profile_steps:
        profile = progress.Profile(run.folder, plan.profile_steps, stop)
        hooks.append((plan.profile_steps, profile))
    if evaluation:
        epoch = plan.steps_per_epoch(run.data["train"].count)
        hooks.append((epoch, _evaluating(run, start, evaluation, report)))
    return hooks


def _evaluating(
    run: Run, start: int, evaluation: Evaluation, report: progress.Progress
) -> training.Hook:
    """Returns a hook that evaluates and keeps the best weights."""
    kept = best.Best(
        run.folder,
        evaluation.metric,
        run.files.texts(run.labels),
        write=run.is_chief,
    )
    if not start:
        kept.clear()

    def hook(step: int, _: training.Scalars) -> None:
        results = evaluation.evaluate()
        kept.offer(step, results, run.model)
        best_step = int((kept.results or {})[checkpoints.GLOBAL_STEP])
        report.evaluation(step, results, best_step)

    return hook


def _wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when all workers are here: the chief has written its files."""

    @tf.function(autograph=False)
    def meet():
        def replica():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([]))

        return strategy.run(replica)

    with distribution.cluster_watched():
        meet()


# ---- The trained model ------------------------------------------------------


def predict(
    run: Run,
    split: str,
    function: Callable[[training.Batch], dict[str, tf.Tensor]],
    batch_size: int,
) -> Iterator[dict[str, np.ndarray]]:
    """Applies a function to all records of a split, in order.

    Args:
        run: Where to compute on what.
        split: A key of its data.
        function: A replica's batch -> {name: [rows, ...]}; traced once for all
            calls with the same one.
        batch_size: Over all replicas.

    Yields:
        {name: [rows, ...]} of each batch, without its filling.
    """
    data = run.data[split]
    # What there are, evenly over the replicas: the rest would be filling.
    replicas = run.strategy.num_replicas_in_sync
    batch_size = min(batch_size, -(-data.count // replicas) * replicas)
    dataset = input_pipeline.distribute(
        run.strategy,
        input_pipeline.evaluate([data.path], batch_size),
        data.record_type,
        data.lengths,
        trim=run.has_free_shapes,
    )
    phase = phases.Phase(
        f"Predicting {split}", "rows", data.count, run.is_chief
    )
    with input_pipeline.explained([data.path]), run.without_padding():
        for part in inference.predict(run.strategy, function, dataset):
            yield part
            phase.add(len(next(iter(part.values()))))
    phase.finish()


def logits_and_labels(
    run: Run, split: str, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Applies a classifier to all examples of a split, in order.

    Returns:
        Logits [examples, classes], of examples in windows their mean; and the
        labels of the records [examples, ...].
    """
    outputs = _logits_and_labels(run.model)
    parts = list(predict(run, split, outputs, batch_size))
    logits, labels, documents = (
        np.concatenate([part[name] for part in parts])
        for name in ("logits", "labels", "documents")
    )
    if documents[0] < 0:
        return logits, labels
    logits, first = long_documents.average(logits, documents)
    return logits, labels[first]


@functools.lru_cache(maxsize=1)
def _logits_and_labels(
    model: keras.Model,
) -> Callable[[training.Batch], dict[str, tf.Tensor]]:
    """Returns one function for one model, which is traced but once."""

    def outputs(batch):
        alone = -tf.ones_like(batch["row_weights"], tf.int32)
        return {
            "logits": model(batch),
            "labels": batch["label_ids"],
            # Of a row that is no window of a document: -1.
            "documents": batch.get("document_ids", alone),
        }

    return outputs


def write_export(run: Run, made: export.Export) -> None:
    """Writes the SavedModel, in the place of an earlier one of this run.

    Args:
        run: Its folder gets `export/`.
        made: Of its model.
    """
    path = os.path.join(run.folder, "export")
    export.save(path, made, overwrite=True)
    logging.info("Wrote the SavedModel %s.", path)
