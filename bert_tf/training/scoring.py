"""How a run is scored while it trains, by which its best weights are found."""

import dataclasses
from collections.abc import Callable, Mapping

from bert_tf.checkpoints import best, tf1_files
from bert_tf.errors import InputError
from bert_tf.training import progress, training_run

import keras
from absl import logging


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How a run is scored while it trains.

    Attributes:
        metric: The key of the results by which the best is found.
        lowest: Whether the lowest is the best, not the highest.
        most_without_better: Evaluations in turn that bring nothing better,
            after which the run ends; None: it never does.
    """

    metric: str
    evaluate: Callable[[], Mapping[str, float]]
    lowest: bool = False
    most_without_better: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluations:
    """The evaluations of a run, with its best weights and early stopping.

    Attributes:
        folder: The run's folder, whose metrics.jsonl has earlier evaluations.
        kept: The best evaluation.
        every: Steps between two evaluations.
        stop: The last step of the run, which is evaluated, too.
        counted_from: The first step whose weights may be the best.
    """

    evaluation: Evaluation
    folder: str
    kept: best.Best
    every: int
    stop: int
    counted_from: int = 0

    def take_up(self, step: int) -> None:
        """Resumes with the best evaluation, and the count since, at a step."""
        metric = self.evaluation.metric
        if step and metric not in (self.kept.results or {metric}):
            raise InputError(
                f"{self.kept.folder} was chosen by another score than "
                f"{metric}, as an earlier version did for labels of a scheme "
                "that it did not know: give --scheme=none, or move the folder "
                "away."
            )
        if self._best_step() > step:
            # It is of steps that will be repeated.
            earlier = progress.best_until(self.folder, step, metric)
            if earlier is not None:
                loss = progress.best_until(self.folder, step, best.LOSS)
                self.kept.rewind(*earlier, loss[1] if loss else None)
        kept = self._best_step()
        later = [x for x in progress.evaluations(self.folder) if x > kept]
        self.kept.no_better = sum(x <= step for x in later)

    def lacks(self, step: int) -> bool:
        """Whether an evaluation is due that metrics.jsonl does not have yet."""
        is_due = step > 0 and (step % self.every == 0 or step == self.stop)
        return is_due and step > max(
            progress.evaluations(self.folder), default=0
        )

    def hook(
        self,
        model: keras.Model,
        report: progress.Progress,
        finish: Callable[[int], None] = lambda step: None,
        fetch: Callable[[], None] = lambda: None,
    ) -> training_run.Hook:
        """Returns a hook that evaluates; it is True if the run is over.

        The hook keeps the best weights. `finish` waits until the checkpoints of
        earlier steps are complete. `fetch` updates the variables of the model.
        """

        def evaluate(step: int) -> bool:
            fetch()
            report.flush()  # An evaluation may take long.
            results = self.evaluation.evaluate()
            # Earlier checkpoints must be complete if the run is killed here.
            finish(step)
            if step >= self.counted_from:
                self.kept.offer(step, results, model)
            report.evaluation(step, results, self._best_step())
            return self.is_over(step)

        return evaluate

    def is_over(self, step: int) -> bool:
        """Whether too many evaluations since the best were no better."""
        most = self.evaluation.most_without_better
        if not most or not self.kept.results:
            return False
        over = self.kept.no_better >= most
        if over:
            logging.info(
                "No %s %s since step %d: ending at step %d.",
                "lower" if self.evaluation.lowest else "higher",
                self.evaluation.metric,
                self._best_step(),
                step,
            )
        return over

    def _best_step(self) -> int:
        """Returns the step of the best evaluation; 0 if none counts yet."""
        return int((self.kept.results or {}).get(tf1_files.GLOBAL_STEP, 0))
