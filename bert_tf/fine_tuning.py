"""What fine-tuning adds to the training loop: epochs and a best checkpoint."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence

from bert_tf import (
    checkpoints,
    distribution,
    input_pipeline,
    modeling,
    optimization,
    progress,
    text_records,
    tokenization,
    training,
)

import keras
import numpy as np
import tensorflow as tf
from absl import logging

_RESULTS = "results.json"
_LABELS = "labels.txt"


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
        group_by_length: Whether batches hold examples of about one length, and
            no more padding than that leaves.
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

    def steps(self, examples: int) -> int:
        """Training steps, rounded down as in the original."""
        steps = int(examples / self.batch_size * self.num_train_epochs)
        if not steps:
            raise ValueError(
                "There are too few examples for one training step. Lower "
                f"--train_batch_size. Received: {examples} examples, "
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
        return optimization.linear_warmup_decay(
            self.learning_rate, int(steps * self.warmup_proportion), steps
        )


def train(
    plan: Plan,
    folder: str,
    strategy: tf.distribute.Strategy,
    state: checkpoints.TrainState,
    optimizer: optimization.AdamWeightDecay,
    objective: training.Objective,
    data: text_records.TextRecords,
    hooks: Sequence[tuple[int, training.Hook]] = (),
) -> None:
    """Trains from `state.step` to the end, saving in `folder`."""
    stop = plan.steps(data.count)
    if state.step >= stop:
        logging.info("The run in %s has made all %d steps.", folder, stop)
        return
    logging.info("Training on %d examples for %d steps.", data.count, stop)
    batches = input_pipeline.train(
        [data.path],
        [data.count],
        plan.batch_size,
        plan.seed,
        state.records,
        plan.group_by_length,
    )
    steps = training.make_train_steps(
        strategy,
        state.model,
        optimizer,
        objective,
        input_pipeline.distribute(
            strategy,
            batches,
            data.record_type,
            data.lengths,
            trim=plan.group_by_length,
        ),
        plan.seed,
        plan.accumulate,
    )

    def save(step, _):
        state.step, state.records = step, step * plan.batch_size
        state.save(folder)

    meter = progress.Progress(
        folder, state.step, stop, distribution.is_chief(strategy)
    )
    hooks = [(plan.log_steps, meter), *hooks]
    with input_pipeline.explained([data.path]):
        training.run(
            steps,
            state.step,
            stop,
            plan.iterations_per_loop,
            save=(plan.save_checkpoints_steps, save),
            hooks=hooks,
        )
    _wait_for_all(strategy)


def _wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when all workers are here: the chief has written its files."""

    @tf.function
    def meet():
        def replica():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([]))

        return strategy.run(replica)

    meet()


def logits_and_labels(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    data: text_records.TextRecords,
    batch_size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Applies the model to all examples, in order.

    Returns:
        Logits [examples, classes], and the labels of the records [examples].
    """
    dataset = input_pipeline.distribute(
        strategy,
        input_pipeline.evaluate([data.path], batch_size),
        data.record_type,
        data.lengths,
        trim=not distribution.is_tpu(strategy),
    )

    def outputs(batch):
        return {"logits": model(batch), "labels": batch["label_ids"]}

    with input_pipeline.explained([data.path]):
        parts = list(training.predict(strategy, outputs, dataset))
    logits, labels = (
        np.concatenate([part[name] for part in parts])
        for name in ("logits", "labels")
    )
    return logits, labels


# ---- The best checkpoint ----------------------------------------------------


class Best:
    """Keeps the weights with the best score in `best/`, ties to the earlier.

    The folder holds one checkpoint, and results.json, which says its step.
    """

    def __init__(self, output_dir: str, metric: str):
        """Takes up what a run before this one kept.

        Args:
            output_dir: The run's folder.
            metric: The key of the results to be highest.
        """
        self.folder = os.path.join(output_dir, "best")
        self.metric = metric
        self.results = _read_results(self.folder)

    def clear(self) -> None:
        """Forgets the best of another run."""
        if tf.io.gfile.exists(self.folder):
            tf.io.gfile.rmtree(self.folder)
        self.results = None

    def offer(
        self, step: int, results: Mapping[str, float], model: keras.Model
    ) -> bool:
        """Keeps the model's weights if they are better than those kept."""
        score = results[self.metric]
        if self.results is not None and score <= self.results[self.metric]:
            return False
        tf.io.gfile.makedirs(self.folder)
        tensors = {
            v.path: tf.convert_to_tensor(v.value) for v in model.variables
        }
        tensors[checkpoints.GLOBAL_STEP] = np.int64(step)
        prefix = os.path.join(self.folder, f"model.ckpt-{step}")
        checkpoints.write(prefix, tensors)
        self.results = {**results, checkpoints.GLOBAL_STEP: step}
        _write_text(
            os.path.join(self.folder, _RESULTS),
            json.dumps(self.results, indent=2) + "\n",
        )
        for old_step, old in checkpoints.numbered(self.folder).items():
            if old_step != step:
                checkpoints.remove(old)
        return True


def _read_results(folder: str) -> dict[str, float] | None:
    path = os.path.join(folder, _RESULTS)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        return json.loads(file.read())


def _write_text(path: str, text: str) -> None:
    temporary = f"{path}.tmp{os.getpid()}"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write(text)
    tf.io.gfile.rename(temporary, path, overwrite=True)


def trained_checkpoint(
    output_dir: str, init_checkpoint: str | None, use_best: bool
) -> str:
    """Finds the fine-tuned weights to evaluate, predict or export with.

    Args:
        output_dir: Of a run: its best or newest checkpoint comes first.
        init_checkpoint: Taken where output_dir holds none.
        use_best: Whether the best is preferred to the newest.

    Raises:
        ValueError: There are none, or they have no trained head.
    """
    best = _read_results(os.path.join(output_dir, "best"))
    newest = checkpoints.latest(output_dir)
    if use_best and best is not None:
        step = best[checkpoints.GLOBAL_STEP]
        prefix = os.path.join(output_dir, "best", f"model.ckpt-{step}")
    elif newest:
        prefix = newest
    elif init_checkpoint:
        prefix = checkpoints.find(init_checkpoint)
    else:
        raise ValueError(
            f"There is no fine-tuned model in {output_dir}. Train one with "
            "--do_train=true, or give one by --init_checkpoint."
        )
    if "output_weights" not in checkpoints.shapes(prefix):
        raise ValueError(
            f"{prefix} is not fine-tuned: it has no classifier "
            "(output_weights). Train it with --do_train=true."
        )
    return prefix


def restore(model: keras.Model, prefix: str) -> int:
    """Sets all weights of the model from a fine-tuned checkpoint.

    Returns:
        Its step; 0 if it does not say.
    """
    checkpoints.restore_weights(model.variables, prefix, required="")
    logging.info("Using the weights of %s.", prefix)
    if checkpoints.GLOBAL_STEP not in checkpoints.shapes(prefix):
        return 0
    values = checkpoints.read(prefix, [checkpoints.GLOBAL_STEP])
    return int(values[checkpoints.GLOBAL_STEP])


# ---- Files of a fine-tuned model --------------------------------------------


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """The files that belong to a model's weights."""

    bert_config_file: str
    vocab_file: str
    do_lower_case: bool

    def load(self) -> tuple[modeling.BertConfig, list[str]]:
        """Returns the config and the vocabulary, checked against another."""
        config = modeling.BertConfig.from_json_file(self.bert_config_file)
        vocab = tokenization.load_vocab(self.vocab_file)
        config.check_vocab_size(len(vocab), self.vocab_file)
        tokenization.check_casing(vocab, self.do_lower_case, self.vocab_file)
        return config, list(vocab)

    def copy_to(self, folder: str, labels: Sequence[str] | None) -> None:
        """Copies the files, and writes labels.txt if there are labels."""
        for name, source in (
            ("bert_config.json", self.bert_config_file),
            ("vocab.txt", self.vocab_file),
        ):
            with tf.io.gfile.GFile(source) as file:
                text = file.read()
            _write_text(os.path.join(folder, name), text)
        if labels:
            path = os.path.join(folder, _LABELS)
            _write_text(path, "".join(f"{label}\n" for label in labels))


def read_labels(folder: str) -> tuple[str, ...] | None:
    """Returns the labels that a run wrote; None if there are none."""
    path = os.path.join(folder, _LABELS)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        return tuple(file.read().removesuffix("\n").split("\n"))


def check_labels(folder: str, labels: Sequence[str] | None) -> None:
    """Raises ValueError if the folder's model has other labels."""
    trained = read_labels(folder)
    if trained is not None and trained != tuple(labels or ()):
        raise ValueError(
            f"The model in {folder} was trained with other labels: "
            f"{', '.join(trained)}. Received: labels={', '.join(labels or ())}"
        )
