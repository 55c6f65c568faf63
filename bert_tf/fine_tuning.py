"""What fine-tuning adds to the training loop: epochs and a best checkpoint."""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence

from bert_tf import (
    checkpoints,
    devices,
    distribution,
    input_pipeline,
    modeling,
    optimization,
    progress,
    recipes,
    text_records,
    tokenization,
    training,
)
from bert_tf.interop import formats, model_files, names, opened, tf1

import keras
import numpy as np
import tensorflow as tf
from absl import logging

_RESULTS = "results.json"


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
        recipe: Optimizer and schedule.
        peak_flops: Of one device, where its data sheet is not known.
        profile_steps: Between which a trace is written.
        remat: Whether the backward pass computes layers again.
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
        warmup = int(steps * self.warmup_proportion)
        return self.recipe.schedule(self.learning_rate, warmup, steps)

    def make_optimizer(
        self, examples: int, config: modeling.BertConfig
    ) -> optimization.Optimizer:
        """The optimizer of the recipe, to be built."""
        return self.recipe.make_optimizer(
            self.schedule(examples), config.num_hidden_layers
        )


def train(
    plan: Plan,
    folder: str,
    strategy: tf.distribute.Strategy,
    state: checkpoints.TrainState,
    optimizer: optimization.Optimizer,
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
    state.model.bert.encoder.remat = plan.remat
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

    meter = devices.meter(
        strategy, state.model.bert.config, plan.recipe.dtype, plan.peak_flops
    )
    report = progress.Progress(
        folder, state.step, stop, distribution.is_chief(strategy), meter
    )
    due: list[tuple[training.Due, training.Hook]]
    due = [(plan.log_steps, report), *hooks]
    if plan.profile_steps:
        profile = progress.Profile(folder, plan.profile_steps)
        due.append((plan.profile_steps, profile))
    with input_pipeline.explained([data.path]):
        training.run(
            steps,
            state.step,
            stop,
            plan.iterations_per_loop,
            save=(plan.save_checkpoints_steps, save),
            hooks=due,
            agree=distribution.agreement(strategy),
        )
    _wait_for_all(strategy)


def after_epoch(
    plan: Plan,
    examples: int,
    evaluate: Callable[[], Mapping[str, float]],
    best: "Best | None",
    model: keras.Model,
) -> tuple[int, training.Hook]:
    """Returns a hook that evaluates each epoch and keeps the best weights.

    Args:
        plan: How the run trains.
        examples: To train on.
        evaluate: Returns the results of the model as it stands.
        best: Where to keep it; None for the workers that write nothing.
        model: Whose weights are kept.
    """

    def hook(step: int, _: training.Scalars) -> None:
        results = evaluate()
        epoch = min(step * plan.batch_size / examples, plan.num_train_epochs)
        values = "  ".join(f"{k} {value:.4f}" for k, value in results.items())
        logging.info("epoch %.2f  step %d  %s", epoch, step, values)
        if best is not None:
            best.offer(step, results, model)

    return plan.steps_per_epoch(examples), hook


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
        opened.write_text(
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


def trained_checkpoint(
    output_dir: str,
    init_checkpoint: str | None,
    use_best: bool,
    head: str = "classification",
) -> opened.Checkpoint:
    """Opens the fine-tuned weights to evaluate, predict or export with.

    Args:
        output_dir: Of a run: its best or newest checkpoint comes first.
        init_checkpoint: Of any format. Taken where output_dir holds none.
        use_best: Whether the best is preferred to the newest.
        head: What they must have: a key of interop.names.HEADS.

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
        prefix = init_checkpoint
    else:
        raise ValueError(
            f"There is no fine-tuned model in {output_dir}. Train one with "
            "--do_train=true, or give one by --init_checkpoint."
        )
    source = formats.open_checkpoint(prefix)
    missing = sorted(names.HEADS[head].keys() - source.shapes.keys())
    if missing:
        raise ValueError(
            f"{source.path} is not fine-tuned: it has no {head} head "
            f"({', '.join(missing)}). Train it with --do_train=true."
        )
    return source


def restore(model: keras.Model, source: opened.Checkpoint) -> int:
    """Sets all weights of the model from a fine-tuned checkpoint.

    Returns:
        Its step; 0 if it does not say.
    """
    checkpoints.restore_weights(model.variables, source, required="")
    logging.info("Using the weights of %s.", source.path)
    if checkpoints.GLOBAL_STEP not in source.state:
        return 0
    values = source.read([checkpoints.GLOBAL_STEP])
    return int(values[checkpoints.GLOBAL_STEP])


# ---- Files of a fine-tuned model --------------------------------------------


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """What belongs to a model's weights.

    Attributes:
        config: The model's architecture.
        vocab: The text of its vocab.txt.
        do_lower_case: Whether it reads lower-cased text.
    """

    config: modeling.BertConfig
    vocab: str
    do_lower_case: bool

    @classmethod
    def load(
        cls,
        bert_config_file: str | None,
        vocab_file: str | None,
        do_lower_case: bool,
        source: opened.Checkpoint | None = None,
    ) -> "ModelFiles":
        """Reads the files, or what a checkpoint brings where one is None."""
        config = model_files.find_config(bert_config_file, source)
        files = cls(
            config, model_files.find_vocab(vocab_file, source), do_lower_case
        )
        name = vocab_file or f"The vocabulary of {source and source.path}"
        pieces = files.pieces()
        config.check_vocab_size(len(pieces), name)
        tokenization.check_casing(pieces, do_lower_case, name)
        return files

    def pieces(self) -> list[str]:
        """The pieces of the vocabulary by id."""
        return list(tokenization.parse_vocab(self.vocab, "The vocabulary"))

    def write(self, folder: str, labels: Sequence[str] | None) -> None:
        """Writes the files, and labels.txt if there are labels."""
        texts = {tf1.CONFIG: self.config.to_json(), tf1.VOCAB: self.vocab}
        if labels:
            texts[tf1.LABELS] = "".join(f"{label}\n" for label in labels)
        for name, text in texts.items():
            opened.write_text(os.path.join(folder, name), text)


def read_labels(folder: str) -> tuple[str, ...] | None:
    """Returns the labels that a run wrote; None if there are none."""
    path = os.path.join(folder, tf1.LABELS)
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
