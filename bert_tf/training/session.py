"""One training run, from where its folder stands to its last step.

Pre-training and fine-tuning are the same run with other hooks.
"""

import contextlib
import dataclasses
import fractions
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from bert_tf import files, modeling, optimization, phases
from bert_tf.checkpoints import best
from bert_tf.errors import counted
from bert_tf.training import (
    accelerators,
    distribution,
    fused_attention,
    loop,
    memory_use,
    pjrt,
    progress,
    recipes,
    run_report,
    scoring,
    trackers,
    training_run,
    training_state,
)

import keras
import tensorflow as tf
from absl import logging


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """How to train; the flags of the same names.

    Attributes:
        batch_size: Sequences or examples per step, over all replicas.
        accumulate: Micro-batches per step; None to try what fits into memory.
        seed: The seed of the data order and dropout.
        iterations_per_loop: Longest block of steps on the device.
        peak_flops: The peak of one device, if its data sheet is not known.
        save_in_background: Whether steps continue while a checkpoint is
            written.
        remat: Whether the backward pass recomputes layers.
        use_xla: Whether XLA compiles the step; None: if it is faster.
        fused_attention: Whether attention is cuDNN's kernel; None: if
            supported.
        check_only: Whether to stop before the first step, writing nothing.
        chosen_on: Flags and data, name -> value, that determine the score of
            the best weights.
        report_to: Experiment trackers, of options.TRACKERS.
        flags: Flags of the run, name -> value, for the trackers.
    """

    batch_size: int
    learning_rate: float
    accumulate: int | None
    seed: int
    iterations_per_loop: int
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    log_steps: int
    save_in_background: bool = False
    recipe: recipes.Recipe = dataclasses.field(default_factory=recipes.Recipe)
    peak_flops: float | None = None
    profile_steps: tuple[int, int] | None = None
    remat: bool = False
    use_xla: bool | None = None
    fused_attention: bool | None = None
    check_only: bool = False
    chosen_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    report_to: Sequence[str] = ()
    flags: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Session:
    """A run to train.

    Attributes:
        model: The model, created in the strategy's scope.
        stop: The last step.
        untrained: Names of variables that are not trained, but whose moments a
            checkpoint may have.
        restore: Sets the state from which the run starts or resumes.
        begin: Called by the chief before the first step, to write the run's
            files; not if nothing remains to train.
        batches: (records consumed, step) -> the batches from there on.
        explained: A context whose errors name damaged records.
        examples: The number of training examples for the log, if any.
        predictions: The loss whose weights are predictions, for the meter.
        `beside`: Files saved next to the best weights: name -> content.
        data: Identifies the records that are read: name -> any text.
        padded_inside: A file that has padding before a token in a row, if any.
        tracing: A context in which training is traced.
        runtime: Trains on the devices of JAX; None: on the strategy's devices.
    """

    folder: str
    strategy: tf.distribute.Strategy
    model: keras.Model
    plan: Plan
    schedule: optimization.Schedule
    stop: int
    objective: loop.Objective
    trained: Sequence[keras.Variable]
    restore: Callable[[training_state.TrainState], None]
    begin: Callable[[], None]
    batches: Callable[[int, int], tf.distribute.DistributedDataset]
    explained: Callable[[], contextlib.AbstractContextManager[None]]
    untrained: frozenset[str] = frozenset()
    examples: int | None = None
    predictions: str | None = None
    evaluation: scoring.Evaluation | None = None
    eval_steps: int = 1
    epoch_steps: fractions.Fraction | None = None  # of all examples once
    beside: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    data: Mapping[str, object] = dataclasses.field(default_factory=dict)
    padded_inside: str = ""
    tracing: Callable[[], contextlib.AbstractContextManager[None]] = (
        contextlib.nullcontext
    )
    runtime: pjrt.Runtime | None = None

    def train(self) -> int:
        """Trains to the last step, and returns the step where it ended."""
        with (
            distribution.left_together(self.strategy),
            distribution.cluster_watched(),
            self._trackers,
        ):
            return self._train()

    def _train(self) -> int:
        plan, is_chief = self.plan, distribution.is_chief(self.strategy)
        optimizer, state = self._restored()
        agree = distribution.agreement(self.strategy)
        distribution.check_same_step(agree, state.step)
        if not distribution.is_alone(self.strategy):
            distribution.check_alike(agree, self._of_all_workers())
        if is_chief and state.step < self.stop:
            saves = (self.stop - state.step) // plan.save_checkpoints_steps + 1
            state.check_room(self.folder, saves)
        if plan.fused_attention and state.step < self.stop:
            dataset = self.batches(state.records, state.step)
            self._choose_attention(dataset, agree)
        on = f" on {counted(self.examples, 'example')}" if self.examples else ""
        if state.step > self.stop:
            logging.warning(
                "The newest checkpoint in %s is from step %d, later than the "
                "last step of this run, %d. Nothing is trained, and the "
                "weights stay as they are at step %d.",
                *(self.folder, state.step, self.stop, state.step),
            )
        elif plan.check_only:
            # A new run first clears best/.
            evaluations = self._evaluations(state.step) if state.step else None
            if not (evaluations and evaluations.is_over(state.step)):
                logging.info(
                    "Would train%s from step %d to %d.",
                    *(on, state.step, self.stop),
                )
        if plan.check_only:
            return state.step
        if is_chief and state.step == 0 < self.stop:
            best.clear(self.folder)
        agree(True)  # Waits until the chief has removed old best weights.
        evaluations = self._evaluations(state.step)
        # All workers read the file before the chief writes to it.
        is_due = agree(bool(evaluations and evaluations.lacks(state.step)))
        if evaluations and is_due:
            logging.info("Step %d has not been evaluated yet.", state.step)
            report = self._progress(state.step)
            evaluations.hook(self.model, report)(state.step)
            agree(True)  # Waits for the one that writes.
        if state.step == self.stop:
            logging.info(
                "The run in %s has completed all %d steps.",
                self.folder,
                self.stop,
            )
        if state.step >= self.stop:
            return state.step
        if evaluations and evaluations.is_over(state.step):
            return state.step
        if is_chief:
            self.begin()
            self._log_start(state.step)
        start, meter = state.step, phases.Meter()
        with self.explained(), self.tracing():
            step = self._run(optimizer, state, evaluations, agree)
        if optimizer.pruning:
            zeros, size = optimizer.pruning.zeros(self.trained)
            logging.info(
                "Pruned: %.2f%% of the %s weights in the encoder's kernels are "
                "0.",
                100 * zeros / size,
                f"{size:,}",
            )
        agree(True)  # Waits for the one that writes.
        if is_chief:
            run_report.log_end(step - start, meter.seconds, self.folder)
        return step

    def _log_start(self, start: int) -> None:
        plan = self.plan
        replicas = run_report.replicas_of(self.strategy)
        if self.runtime:
            replicas = self.runtime.replicas
        rows = plan.batch_size // replicas.number // (plan.accumulate or 1)
        run_report.log_model(replicas, self.model, rows)
        run_report.log_plan(
            self.examples, start, self.stop, plan.batch_size, self.folder
        )

    def _run(
        self,
        optimizer: optimization.Optimizer,
        state: training_state.TrainState,
        evaluations: scoring.Evaluations | None,
        agree: Callable[[bool], bool],
    ) -> int:
        plan, start = self.plan, state.step
        train, fetch = self._steps(optimizer, state, agree)
        report = self._progress(start)
        with (
            contextlib.closing(report),
            training_state.Writer() as writer,
            self._traced(start) as traced,
        ):

            def finish(step: int) -> None:
                # A save of the same step has waited for the one before.
                if step % plan.save_checkpoints_steps:
                    writer.wait()

            evaluate = None
            if evaluations:
                hook = evaluations.hook(self.model, report, finish, fetch)
                evaluate = (self.eval_steps, hook)
            save_state = self._saving(state, writer, fetch)

            def save(step: int, since: loop.Block | None) -> None:
                try:
                    report.flush()  # A resumed run begins with this step.
                finally:
                    save_state(step, since)

            end = training_run.run(
                train,
                start,
                self.stop,
                plan.iterations_per_loop,
                save=(plan.save_checkpoints_steps, save),
                report=(plan.log_steps, report),
                hooks=[
                    # No more is learned after a save that failed than until
                    # the next line.
                    (plan.log_steps, lambda _: writer.check()),
                    *traced,
                ],
                evaluate=evaluate,
                since=loop.Block.of_kept(self.objective, state.since_line),
                agree=agree,
                finish=writer.wait,
                breaks_off=distribution.is_alone(self.strategy),
                compiles=self._compiles,
            )
            report.flush()
            return end

    def _of_all_workers(self) -> dict[str, object]:
        """Returns what must be the same for all: name -> any text."""
        values = vars(self.plan) | vars(self.plan.recipe)
        del values["recipe"]
        # Only the chief saves, and devices may be of several kinds.
        for name in ("save_in_background", "peak_flops", "report_to", "flags"):
            del values[name]
        evaluated_on = values.pop("chosen_on")
        evaluation = self.evaluation
        return {
            **values,
            "data to evaluate on": evaluated_on,
            "early_stop": evaluation and evaluation.most_without_better,
            "eval_steps": evaluation and self.eval_steps,
            "bert_config_file": self.model.bert.config.to_json(),
            **self.data,
            "the weights to start from": distribution.digest(
                self.model.variables
            ),
            "the teacher": self.objective.teacher,
        }

    @property
    def _compiles(self) -> bool:
        use_xla = self.plan.use_xla
        return bool(self.runtime) or distribution.compiles(
            self.strategy, use_xla
        )

    # ---- The state and the steps --------------------------------------------

    def _restored(
        self,
    ) -> tuple[optimization.Optimizer, training_state.TrainState]:
        plan = self.plan
        with self.strategy.scope():
            optimizer = plan.recipe.make_optimizer(
                *(self.schedule, self.model.bert.config),
                *(self.stop, self.epoch_steps),
            )
            own = self.objective.own
            optimizer.build([*self.trained, *own])
            state = training_state.TrainState(
                self.model,
                optimizer,
                plan.seed,
                plan.keep_checkpoint_max,
                self._writes,
                plan.batch_size,
                self.untrained,
                own,
            )
            self.restore(state)
        return optimizer, state

    def _steps(
        self,
        optimizer: optimization.Optimizer,
        state: training_state.TrainState,
        agree: Callable[[bool], bool],
    ) -> tuple[Callable[[int, int], loop.Block], Callable[[], None]]:
        """Returns what trains, and what updates the variables before a use."""
        if self.plan.remat and self.model.bert.config.activations is not None:
            logging.warning("--remat changes nothing for this kind of encoder.")
        dataset = self.batches(state.records, state.step)
        for bert in self._encoders:
            bert.encoder.remat = self.plan.remat
        if not self.plan.fused_attention:  # If it is wanted, it is chosen.
            self._choose_attention(dataset, agree)
        accumulate = self.plan.accumulate
        if accumulate is None:
            accumulate = self._found_accumulate(
                optimizer, dataset, agree, not state.step
            )
        trained = (self.model, optimizer, self.objective)
        how = (dataset, self.plan.seed, accumulate)
        if self.runtime:
            steps = pjrt.TrainSteps(self.runtime, *trained, *how)
            return steps, steps.fetch
        train = loop.make_train_steps(
            self.strategy, *trained, *how, self._compiles
        )
        return train, lambda: None

    def _choose_attention(
        self,
        dataset: tf.distribute.DistributedDataset,
        agree: Callable[[bool], bool],
    ) -> None:
        against = ""
        if agree(bool(self.padded_inside)):
            file = self.padded_inside or "a file, says another worker"
            against = f"padding is not at the end of the rows of {file}"
        for bert in self._encoders:
            bert.fuses_attention = fused_attention.choose(
                *(bert, dataset, self._compiles, self.plan.fused_attention),
                against_data=against,
            )

    @property
    def _encoders(self) -> list[modeling.Bert]:
        own = self.model.bert, self.model.generator
        return [bert for bert in own if bert is not None]

    def _found_accumulate(
        self,
        optimizer: optimization.Optimizer,
        dataset: tf.distribute.DistributedDataset,
        agree: Callable[[bool], bool],
        is_new: bool,
    ) -> int:
        """Returns into how many micro-batches memory makes us cut a batch.

        A resumed run keeps its number: each micro-batch draws its own dropout.
        It tries again where a step takes other memory than before.
        """
        plan = self.plan
        rows = plan.batch_size // self.strategy.num_replicas_in_sync
        how = f"rows={rows} dtype={plan.recipe.dtype} remat={plan.remat}"
        path = os.path.join(self.folder, "micro_batches.txt")
        found = None if is_new else memory_use.noted(path, rows, how)
        if found:
            return found
        fits = memory_use.tried(
            self.strategy,
            self.model,
            optimizer,
            self.objective,
            dataset,
            self._compiles,
        )
        found = memory_use.choose(rows, fits)
        found = memory_use.most(rows, found, agree)
        if distribution.is_chief(self.strategy):
            files.write_text(path, f"{found} {how}\n")
        return found

    def _saving(
        self,
        state: training_state.TrainState,
        writer: training_state.Writer,
        fetch: Callable[[], None],
    ) -> training_run.Save:
        plan = self.plan
        first_step, first_record = state.step, state.records

        def save(step: int, since: loop.Block | None) -> None:
            fetch()
            state.since_line = since.kept() if since else {}
            done = (step - first_step) * plan.batch_size
            state.step, state.records = step, first_record + done
            try:
                writer.wait()  # One at a time, and one copy.
            except Exception:
                # There may be room by now for what was learned since.
                state.save(self.folder)
                logging.warning("Saved step %d.", step)
                raise
            # Not the last save in the background: the process waits for it.
            is_last = step == self.stop or step % plan.save_checkpoints_steps
            is_beside = plan.save_in_background and not is_last
            state.save(self.folder, writer if is_beside else None)

        return save

    # ---- Reports ------------------------------------------------------------

    @contextlib.contextmanager
    def _traced(
        self, start: int
    ) -> Iterator[list[tuple[training_run.Due, training_run.Hook]]]:
        """Traces the steps asked for; yields the hooks that do so."""
        steps = self.plan.profile_steps
        if steps and steps[0] <= start:
            logging.warning(
                "--profile_steps=%d:%d traces nothing: the run resumes from "
                "step %d.",
                *steps,
                start,
            )
            steps = None
        if not steps:
            yield []
            return
        profile = progress.Profile(self.folder, steps)
        with contextlib.closing(profile):
            yield [(steps, profile)]

    def _progress(self, start: int) -> progress.Progress:
        meter = accelerators.meter(
            self.strategy,
            self.model.bert.config,
            self.plan.recipe.dtype,
            self.plan.peak_flops,
            self.predictions,
            self.model.reads_all,
            self.model.generator and self.model.generator.config,
        )
        if self.runtime:
            meter = self.runtime.meter(meter, self.plan.recipe.dtype)
        if not self.model.has_estimates:
            meter = dataclasses.replace(meter, peak_flops=None)
        is_chief = distribution.is_chief(self.strategy)
        return progress.Progress(
            self.folder,
            start,
            self.stop,
            is_chief,
            meter,
            self.epoch_steps,
            self._trackers,
        )

    @property
    def _writes(self) -> bool:
        is_chief = distribution.is_chief(self.strategy)
        return is_chief and not self.plan.check_only

    @functools.cached_property
    def _trackers(self) -> trackers.Trackers:
        plan = self.plan
        return trackers.Trackers(plan.report_to, self.folder, plan.flags)

    def _evaluations(self, step: int) -> scoring.Evaluations | None:
        """Returns the evaluations from a step on; None without evaluation."""
        if not self.evaluation:
            return None
        kept = best.Best(
            self.folder,
            self.evaluation.metric,
            self.beside,
            self.evaluation.lowest,
            self._writes,
            self.plan.chosen_on,
        )
        # The best is one of those that have all the zeros asked for.
        pruning = self.plan.recipe.pruning(self.model.bert.config, self.stop)
        evaluations = scoring.Evaluations(
            evaluation=self.evaluation,
            folder=self.folder,
            kept=kept,
            every=self.eval_steps,
            stop=self.stop,
            counted_from=pruning.end if pruning else 0,
        )
        evaluations.take_up(step)
        return evaluations
