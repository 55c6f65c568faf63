"""Hyperparameter search with Optuna; each trial is a run of a script."""

import dataclasses
import math
import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from bert_tf import files
from bert_tf.checkpoints import best
from bert_tf.checkpoints import runs as run_folders
from bert_tf.errors import InputError, counted
from bert_tf.storage import kept_flags
from bert_tf.tasks import trials
from bert_tf.training import progress, train_examples

from absl import logging

# File name in the search's folder.
STUDY = "study.db"
_NAME = "search"
# Optuna's user attribute of a trial with the error that ended it, or "".
_ERROR = "error"
# The trials that the pruner compares with, at least; Optuna's default.
_FIRST = 5

Values: TypeAlias = dict[str, str]
# Trains in a folder with these values until a function returns True; returns
# whether it stopped early.
Train: TypeAlias = Callable[[str, Values, Callable[[], bool] | None], bool]


@dataclasses.dataclass(frozen=True)
class Search:
    """Searches for the flag values with the best dev score.

    The study is a file in the folder, so a killed search resumes with the
    interrupted trial, also one that ended with an error. At the same error
    again, it leaves the trial out and does not count it. No values are tried
    twice. The values of a trial depend only on the seed and the trials before
    it.

    Attributes:
        folder: Folder of the study and of the trials' folders.
        space: Flag -> the values to choose from, as text.
        metric: Name of the dev result to maximize.
        seed: Random seed of the choices.
        pruner: One of options.SEARCH_PRUNERS, or None to run all trials to the
            end.
        keeps_last: Whether the best trial keeps its last checkpoints, too.
        train: Runs the script.
    """

    folder: str
    space: Mapping[str, Sequence[str]]
    metric: str
    seed: int
    pruner: str | None
    keeps_last: bool
    train: Train

    def run(self, count: int) -> list[str]:
        """Runs trials until there are `count`; returns the lines of a table.

        Copies the weights and the flags of the best trial to `best/`.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        path = os.path.abspath(os.path.join(self.folder, STUDY))
        pruners = {
            None: optuna.pruners.NopPruner,
            "median": lambda: optuna.pruners.MedianPruner(_FIRST),
        }
        study = optuna.create_study(
            storage=f"sqlite:///{path}",
            pruner=pruners[self.pruner](),
            study_name=_NAME,
            direction="maximize",
            load_if_exists=True,
        )
        if count > self._combinations:
            logging.warning(
                "The search ends after %s: the search space has no more "
                "combinations.",
                counted(self._combinations, "trial"),
            )
        if self.pruner and min(count, self._combinations) <= _FIRST:
            logging.warning(
                "No trial is pruned: the pruner starts after %d trials that "
                "have run to the end.",
                _FIRST,
            )
        while trial := self._next(study, count):
            self._try(study, trial, self._last(study, count))
            self._tidy(study)
        self._tidy(study)
        return self._end(study)

    # ---- Trials -------------------------------------------------------------

    @property
    def _combinations(self) -> int:
        return math.prod(map(len, self.space.values()))

    def _last(self, study: Any, count: int) -> int:
        """Returns the number of trials with those that failed."""
        failed = sum(map(_has_failed, study.get_trials()))
        return min(count + failed, self._combinations)

    def _next(self, study: Any, count: int) -> Any:
        """Returns the next trial, an interrupted one first; None at the end.

        It is a live Optuna trial; those in the study's lists are frozen copies.
        """
        from optuna import trial as optuna_trial

        found = study.get_trials()
        for frozen in found:
            if frozen.state == optuna_trial.TrialState.RUNNING:
                return optuna_trial.Trial(study, frozen._trial_id)
        waits = any(
            frozen.state == optuna_trial.TrialState.WAITING for frozen in found
        )
        if not waits:
            if len(found) >= self._last(study, count):
                return None
            study.enqueue_trial(self._new_values(found))
        return study.ask()

    def _new_values(self, found: Sequence[Any]) -> Values:
        """Returns Optuna's choice, or a random one if it was already tried."""
        import optuna

        seed = self.seed + len(found)
        draft = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=seed), direction="maximize"
        )
        draft.add_trials(found)
        values = self._values(draft.ask())
        tried = [frozen.params for frozen in found]
        rng = random.Random(seed)
        while values in tried:
            values = {name: rng.choice(x) for name, x in self.space.items()}
        return values

    def _values(self, trial: Any) -> Values:
        return {
            name: trial.suggest_categorical(name, list(values))
            for name, values in self.space.items()
        }

    def _try(self, study: Any, trial: Any, count: int) -> None:
        """Runs a trial to its end and adds its outcome to the study."""
        from optuna import trial as optuna_trial

        values, folder = self._values(trial), self._folder(trial)
        name = os.path.basename(folder)
        shown = ", ".join(f"{flag} {value}" for flag, value in values.items())
        logging.info(
            "Trial %d of %d: %s; log: %s/log.txt",
            *(trial.number + 1, count, shown, folder),
        )

        def is_hopeless() -> bool:
            self._report(study, trial, folder)
            return trial.should_prune()

        before = trial.user_attrs.get(_ERROR)
        try:
            is_pruned = self.train(
                folder, values, is_hopeless if self.pruner else None
            )
        except trials.FailedError as error:
            is_finite = "Not a finite number" not in error.last
            trial.set_user_attr(_ERROR, error.last if is_finite else "")
            if is_finite and error.last != before:
                raise InputError(
                    f"{name}: {error} At the same error again, "
                    f"it leaves the values of this trial out. Received: {shown}"
                ) from error
            logging.warning("%s: %s", name, error.last)
            study.tell(trial, state=optuna_trial.TrialState.FAIL)
            return
        if before:
            trial.set_user_attr(_ERROR, "")
        self._report(study, trial, folder)
        if is_pruned:
            logging.info("%s: pruned.", name)
            study.tell(trial, state=optuna_trial.TrialState.PRUNED)
            return
        score = (best.results(folder) or {}).get(self.metric, math.nan)
        logging.info("%s: %s %.4f", name, self.metric, score)
        if math.isnan(score):
            study.tell(trial, state=optuna_trial.TrialState.FAIL)
        else:
            study.tell(trial, score)

    def _report(self, study: Any, trial: Any, folder: str) -> None:
        """Adds the evaluations of a trial's run to the study, by epoch."""
        known = study.get_trials()[trial.number].intermediate_values
        scores = progress.scores(folder, self.metric)
        for epoch, score in enumerate(scores, 1):
            if epoch not in known:
                trial.report(score, epoch)

    def _folder(self, trial: Any) -> str:
        return os.path.join(self.folder, f"trial-{trial.number:03d}")

    # ---- The best trial -----------------------------------------------------

    def _tidy(self, study: Any) -> None:
        """Removes records, and the weights of all but the best trial."""
        chosen = _best(study)
        for trial in study.get_trials():
            if trial.state.is_finished():
                is_best = chosen is not None and trial.number == chosen.number
                folder = self._folder(trial)
                keeps_last = is_best and self.keeps_last
                run_folders.tidy(folder, is_best, keeps_last)

    def _end(self, study: Any) -> list[str]:
        """Copies the best trial's model; returns the lines of the table."""
        chosen = _best(study)
        if chosen is None and all(map(_has_failed, study.get_trials())):
            raise InputError(
                "All trials ended with an error, the last with: "
                f"{study.get_trials()[-1].user_attrs[_ERROR]} Correct its "
                "cause, and search in another folder. "
                f"Received: {self.folder}"
            )
        if chosen is None:
            raise InputError(
                f"No trial has a finite {self.metric}. Search lower learning "
                f"rates, in another folder. Received: {self.folder}"
            )
        folder = self._folder(chosen)
        target = os.path.join(self.folder, best.FOLDER)
        shutil.rmtree(f"{target}.tmp", ignore_errors=True)
        shutil.copytree(os.path.join(folder, best.FOLDER), f"{target}.tmp")
        # The weights are read as in their trial, not as the search began.
        for name in (kept_flags.FILE, train_examples.FILE):
            if os.path.exists(path := os.path.join(folder, name)):
                shutil.copy(path, f"{target}.tmp")
        shutil.rmtree(target, ignore_errors=True)
        os.rename(f"{target}.tmp", target)
        logging.info(
            "The best is %s: %s %.4f; copied its weights to %s.",
            *(os.path.basename(folder), self.metric, chosen.value, target),
        )
        rows = [("trial", *self.space, self.metric)]
        for trial in study.get_trials():
            name = os.path.basename(self._folder(trial))
            values = (trial.params[flag] for flag in self.space)
            score = _OUTCOMES.get(trial.state.name) or f"{trial.value:.4f}"
            score = "failed" if _has_failed(trial) else score
            mark = " (best)" * (trial.number == chosen.number)
            rows.append((name, *values, score + mark))
        lines = trials.table(rows)
        files.write_lines(os.path.join(self.folder, "table.md"), lines)
        return lines


# Optuna state of a trial without a score -> its text in the table.
_OUTCOMES = {"PRUNED": "pruned", "FAIL": "not finite"}


def _has_failed(trial: Any) -> bool:
    """Whether an error ended a trial for good."""
    return trial.state.name == "FAIL" and bool(trial.user_attrs.get(_ERROR))


def _best(study: Any) -> Any:
    """Returns the trial with the highest score; ties go to the earlier one."""
    scored = [x for x in study.get_trials() if x.state.name == "COMPLETE"]
    return max(scored, key=lambda trial: trial.value, default=None)
