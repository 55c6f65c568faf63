"""Fine-tuning: training in epochs, with the best evaluation kept."""

import contextlib
import dataclasses
import fractions
import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping

from bert_tf import losses, optimization, phases
from bert_tf.checkpoints import trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError, NotFiniteError
from bert_tf.exporting import saved_model
from bert_tf.records import pipeline, record_types
from bert_tf.storage import run_lock
from bert_tf.text import long_documents
from bert_tf.training import (
    distribution,
    loop,
    next_pieces,
    progress,
    scoring,
    session,
    train_examples,
    training_state,
)
from bert_tf.training import evaluation as training_evaluation

import keras
import numpy as np
import tensorflow as tf
from absl import logging

# The folder of the SavedModel, in the run's folder.
EXPORT = "export"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan(session.Plan):
    """How to train in epochs; the fields are the flags of the same names."""

    num_train_epochs: float
    warmup_proportion: float
    group_by_length: bool

    def steps(self, examples: int) -> int:
        """Returns the training steps for a number of records, rounded down."""
        steps = int(examples / self.batch_size * self.num_train_epochs)
        if not steps:
            way_out = "Lower --train_batch_size"
            if self.num_train_epochs < 1:
                way_out += " or raise --num_train_epochs"
            raise InputError(
                f"There are too few examples for one training step. {way_out}. "
                f"Received: {examples} examples, "
                f"train_batch_size={self.batch_size}, "
                f"num_train_epochs={self.num_train_epochs}"
            )
        if steps >= 1 << 31:
            raise InputError(
                f"A run takes less than {1 << 31} steps. Lower "
                f"--num_train_epochs. Received: {examples} examples, "
                f"train_batch_size={self.batch_size}, "
                f"num_train_epochs={self.num_train_epochs}"
            )
        return steps

    def steps_per_epoch(self, examples: int) -> int:
        """Returns the steps between evaluations: the last is at the end."""
        return math.ceil(self.epoch_steps(examples))

    def epoch_steps(self, examples: int) -> fractions.Fraction:
        """Returns the steps of an epoch, which may end within a step."""
        return fractions.Fraction(examples, self.batch_size)

    def schedule(self, examples: int) -> optimization.Schedule:
        """Returns the learning rate schedule, with the original's warm-up."""
        steps = self.steps(examples)
        warmup = int(steps * self.warmup_proportion)
        return self.recipe.schedule(self.learning_rate, warmup, steps)

    def check(self, examples: int) -> None:
        """Raises InputError if the numbers contradict each other."""
        self.schedule(examples)
        progress.check_profile(self.profile_steps, self.steps(examples))


@dataclasses.dataclass(frozen=True)
class Run:
    """Everything a fine-tuning run needs; tasks add their own fields.

    Attributes:
        folder: The run's output_dir.
        model: BERT with its head.
        labels: The names of the classes, if the task has any.
        data: Split -> its records.
        teacher: The SHA-256 of the teacher's weights; "" without a teacher.
        datasets: Split and batch size -> its dataset, built once.
    """

    folder: str
    strategy: tf.distribute.Strategy
    model: keras.Model
    files: trained_models.ModelFiles
    labels: tuple[str, ...] | None
    data: Mapping[str, record_types.RecordFile]
    teacher: str = ""
    datasets: dict[tuple[str, int], tf.distribute.DistributedDataset] = (
        dataclasses.field(default_factory=dict, init=False, repr=False)
    )

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run's files."""
        return distribution.is_chief(self.strategy)

    def path(self, name: str) -> str:
        """Returns the path of a file in the run's folder."""
        return os.path.join(self.folder, name)

    @property
    def has_free_shapes(self) -> bool:
        """Whether batch lengths may vary; a TPU compiles each length."""
        return not distribution.is_tpu(self.strategy)

    def trim(self, compiles: bool, length: int) -> int:
        """Returns the multiple that batch lengths are rounded up to.

        0 disables trimming: every batch has the full length.
        A compiled step is compiled for each length, so there are at most four.
        """
        if not self.has_free_shapes:
            return 0
        return -(-length // 4) if compiles else pipeline.FINELY

    @contextlib.contextmanager
    def without_padding(self) -> Iterator[None]:
        """Skips padding in steps that are traced here, if the encoder can."""
        bert = self.model.bert
        before = bert.skips_padding
        bert.skips_padding = self.has_free_shapes
        try:
            yield
        finally:
            bert.skips_padding = before


def classification_objective(
    loss: str, counts: Callable[[loop.Batch], tf.Tensor]
) -> loop.Objective:
    """Returns the objective of a task with one class for each row, or token.

    Args:
        loss: Its name.
        counts: Returns the weights of a batch's labels, in their shape.
    """

    def weights(batch):
        return {loss: tf.reduce_sum(counts(batch))}

    def sums(model, batch, dropout_seed):
        logits = model(batch, dropout_seed)
        labels = batch["label_ids"]
        return {loss: losses.classification(logits, labels, counts(batch))}

    return loop.Objective(weights, sums)


def check(run: Run, plan: Plan) -> dict[str, int | str]:
    """Checks a run and returns the identity of its training examples.

    Raises InputError if the run in the folder trained on other examples, or if
    the numbers of the plan contradict each other.
    """
    data = run.data["train"]
    run.model.bert.config.check_replicas(run.strategy.num_replicas_in_sync)
    plan.check(data.count)
    trained_on = train_examples.fingerprint(data)
    train_examples.check_same(run.folder, trained_on, run.teacher)
    return trained_on


def train(
    run: Run,
    plan: Plan,
    objective: loop.Objective,
    restore: Callable[[training_state.TrainState], None],
    evaluation: scoring.Evaluation | None = None,
    begin: Callable[[], None] = lambda: None,
) -> None:
    """Trains on the split "train", from the run's last step to its end.

    `restore` restores that state, and `begin` is called before the first step
    if nothing prevents it. The model is evaluated once an epoch, and the
    best is kept in `best/`. Raises InputError if the run in the folder trained
    on other examples.
    """
    data = run.data["train"]
    trained_on = check(run, plan)
    trained = objective.trained or run.model.trained_variables
    everything = {variable.path for variable in run.model.variables}
    if plan.recipe.unfreeze == "gradual":
        config = run.model.bert.config
        layers = families.find(config).num_layers(config)
        logging.info(
            "Epoch 1 trains the head, each later epoch one more layer, and "
            "epoch %d the embeddings, too.",
            layers + 2,
        )
        epoch = plan.epoch_steps(data.count)
        first = int((layers + 1) * epoch)
        if first >= plan.steps(data.count):
            logging.warning(
                "The run ends after %g epochs, so the embeddings and perhaps "
                "some layers are not trained. To train all of them, pass "
                "--num_train_epochs=%d.",
                *(plan.num_train_epochs, math.ceil((first + 1) / epoch)),
            )

    def write() -> None:
        run.files.write(run.folder, run.labels)
        table = plan.flags.get("train_file")
        train_examples.write(run.folder, trained_on, run.teacher, table)
        begin()

    session.Session(
        folder=run.folder,
        strategy=run.strategy,
        model=run.model,
        plan=plan,
        schedule=plan.schedule(data.count),
        stop=plan.steps(data.count),
        objective=objective,
        trained=trained,
        untrained=frozenset(everything - {v.path for v in trained}),
        restore=restore,
        begin=write,
        batches=functools.partial(_batches, run, plan),
        explained=lambda: pipeline.explained([data.path]),
        examples=data.count,
        # The auxiliary objective of a task, if it has one.
        predictions=next_pieces.LOSS,
        evaluation=evaluation,
        eval_steps=plan.steps_per_epoch(data.count),
        epoch_steps=plan.epoch_steps(data.count),
        beside=run.files.contents(run.labels),
        data={
            "training data": trained_on,
            "evaluation data": {
                split: train_examples.fingerprint(data)
                for split, data in run.data.items()
                if split != "train"
            },
        },
        tracing=run.without_padding,
    ).train()


def _batches(
    run: Run, plan: Plan, start: int, _: int
) -> tf.distribute.DistributedDataset:
    data = run.data["train"]
    compiles = distribution.compiles(run.strategy, plan.use_xla)
    batches = functools.partial(
        pipeline.train,
        [data.path],
        [data.count],
        plan.batch_size,
        plan.seed,
        start,
        plan.group_by_length,
    )
    return pipeline.distribute(
        run.strategy,
        batches,
        data.record_type,
        data.lengths,
        trim=run.trim(compiles, data.max_seq_length),
    )


# ---- The trained model ------------------------------------------------------


def predict(
    run: Run,
    split: str,
    function: Callable[[loop.Batch], dict[str, tf.Tensor]],
    batch_size: int,
) -> Iterator[dict[str, np.ndarray]]:
    """Applies a function to all records of a split, in order.

    The function maps a replica's batch to {name: [rows, ...]} and is traced
    once for all its calls. Yields the outputs of each global batch, without the
    rows that fill batches. Raises NotFiniteError if they are not finite.
    """
    data = run.data[split]
    if (split, batch_size) not in run.datasets:
        run.datasets[split, batch_size] = _in_order(run, data, batch_size)
    dataset = run.datasets[split, batch_size]
    phase = phases.Phase(
        f"Predicting {split}", "rows", data.count, run.is_chief
    )
    with pipeline.explained([data.path]), run.without_padding():
        for part in training_evaluation.predict(
            run.strategy, function, dataset
        ):
            _check_finite(part, split)
            yield part
            phase.add(len(next(iter(part.values()))))
    phase.finish()


def _in_order(
    run: Run, data: record_types.RecordFile, batch_size: int
) -> tf.distribute.DistributedDataset:
    # With fewer records than rows in a batch, the batch is made smaller.
    replicas = run.strategy.num_replicas_in_sync
    batch_size = min(batch_size, -(-data.count // replicas) * replicas)
    return pipeline.distribute(
        run.strategy,
        functools.partial(
            pipeline.evaluate, [data.path], batch_size, counts=[data.count]
        ),
        data.record_type,
        data.lengths,
        trim=run.trim(False, data.max_seq_length),
    )


def _check_finite(part: dict[str, np.ndarray], split: str) -> None:
    bad = [name for name, x in part.items() if not np.isfinite(x).all()]
    if bad:
        raise NotFiniteError(
            f"Not a finite number in the model's {', '.join(bad)} for {split}, "
            "so nothing is predicted. Try a lower learning rate, or another "
            "--dtype."
        )


def logits_and_labels(
    run: Run, split: str, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Applies a classifier to all examples of a split, in order.

    Returns logits [examples, classes], averaged over the windows of an example,
    and the labels of the records, [examples, ...].
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
) -> Callable[[loop.Batch], dict[str, tf.Tensor]]:
    """Returns one function per model, so that it is traced only once."""

    def outputs(batch):
        alone = -tf.ones_like(batch["row_weights"], tf.int32)
        return {
            "logits": model(batch),
            "labels": batch["label_ids"],
            # -1 for rows that are not windows of a document.
            "documents": batch.get("document_ids", alone),
        }

    return outputs


def write_export(run: Run, made: saved_model.Export) -> None:
    """Writes the SavedModel to `export/`, replacing an earlier one."""
    run_lock.check_held()
    path = run.path(EXPORT)
    saved_model.save(path, made, overwrite=True)
    logging.info("Wrote the SavedModel %s.", path)
