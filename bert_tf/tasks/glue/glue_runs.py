"""Runs of an experiment: their keys, their results, the best setting."""

import dataclasses
import hashlib
import itertools
import json
import math
import os
import pathlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf import files
from bert_tf.errors import InputError

from absl import logging


@dataclasses.dataclass(frozen=True)
class Setting:
    """A point of the paper's grid (appendix A.3)."""

    learning_rate: float
    num_train_epochs: float
    train_batch_size: int

    def __str__(self):
        return (
            f"{self.learning_rate:g}, {self.num_train_epochs:g} epochs, "
            f"batch {self.train_batch_size}"
        )


def grid(
    learning_rates: Iterable[float],
    epochs: Iterable[float],
    batch_sizes: Iterable[int],
) -> list[Setting]:
    """Returns all combinations."""
    return list(
        itertools.starmap(
            Setting, itertools.product(learning_rates, epochs, batch_sizes)
        )
    )


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run of one task.

    `others` has everything else that affects the result, by name: flags, and
    digests of the data and of the initial weights.
    """

    task: str
    setting: Setting
    seed: int
    others: Mapping[str, str]

    @property
    def key(self) -> str:
        """A hash of everything that affects the result."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def folder(self) -> str:
        """The folder of its files, relative to the folder of all runs."""
        name = (
            f"seed{self.seed}_{self.setting.learning_rate:g}_"
            f"{self.setting.num_train_epochs:g}epochs_"
            f"batch{self.setting.train_batch_size}_{self.key[:8]}"
        )
        return os.path.join(self.task, name)

    def __str__(self):
        return f"{self.task}, seed {self.seed}, {self.setting}"


def digest(paths: Iterable[str]) -> str:
    """Returns the SHA-256 of the concatenated files."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


# ---- Finished runs ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Done:
    """A line of results.jsonl: a `Run` and its outcome.

    `results` are dev results by metric, and `score` is the value that runs are
    compared by. `examples` counts the rows of the training set; `folder` is
    relative to results.jsonl.
    """

    key: str
    task: str
    seed: int
    setting: Setting
    results: Mapping[str, float]
    score: float
    examples: int
    seconds: float
    folder: str
    others: Mapping[str, str]


FILE = "results.jsonl"


class Results:
    """The file of finished runs, one line each, appended when a run ends."""

    def __init__(self, path: str):
        """Reads the file, if any; InputError if a line is invalid.

        A half-written last line is dropped, and its run is repeated.
        """
        self._path = pathlib.Path(path)
        self._done: dict[str, Done] = {}
        # The lines without a half-written last one.
        self._to_mend: list[str] | None = None
        if not self._path.exists():
            return
        try:
            *lines, rest = self._path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path} can't be read as the results of runs "
                f"({getattr(error, 'strerror', None) or error}). Remove it, "
                "and its runs are made again, or choose another folder."
            ) from error
        for number, line in enumerate(lines, start=1):
            done = _parse(f"{path}, line {number}", line)
            self._done[done.key] = done
        if rest:
            logging.warning(
                "%s ends in a truncated line; its run is repeated.", path
            )
            self._to_mend = lines

    def find(self, key: str) -> Done | None:
        """Returns the outcome of a run, or None if it is not done."""
        return self._done.get(key)

    def finished(self, task: str) -> list[Done]:
        """Returns the finished runs of a task."""
        return [done for done in self._done.values() if done.task == task]

    def add(self, done: Done) -> None:
        """Appends a finished run."""
        if self._to_mend is not None:
            files.write_lines(self._path, self._to_mend)
            self._to_mend = None
        line = json.dumps(dataclasses.asdict(done)) + "\n"
        folder, name = os.path.split(self._path)
        with (
            files.locked_folder(folder) as locked,
            open(os.path.join(locked, name), "a", encoding="utf-8") as file,
        ):
            file.write(line)
        self._done[done.key] = done


def _parse(where: str, line: str) -> Done:
    try:
        values: dict[str, Any] = json.loads(line)
        setting = Setting(**values.pop("setting"))
        return Done(setting=setting, **values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{where} is not the result of a run ({error!r}). Remove the line, "
            "and its run is made again."
        ) from error


def read_evaluation(folder: str) -> dict[str, float]:
    """Returns the dev results that run_classifier.py wrote, by metric.

    Results on MNLI's mismatched set have the prefix mismatched_.
    """
    results = {}
    for prefix in ("", "mismatched_"):
        suffix = f"_{prefix}".removesuffix("_")
        path = pathlib.Path(folder, f"eval_results{suffix}.txt")
        if prefix and not path.exists():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(" = ")
            if name.startswith("eval_"):
                results[prefix + name.removeprefix("eval_")] = float(value)
    return results


# ---- The best run -----------------------------------------------------------


def choose(done: Sequence[Done]) -> list[Done]:
    """Returns a task's runs with the setting of the highest mean score.

    Ties go to the earlier setting.
    """
    by_setting: dict[Setting, list[Done]] = {}
    for run in done:
        by_setting.setdefault(run.setting, []).append(run)
    return max(
        by_setting.values(),
        key=lambda runs: statistics.fmean(run.score for run in runs),
    )


def best(done: Sequence[Done]) -> Done:
    """Returns the run with the highest score; ties go to the earlier run."""
    return max(done, key=lambda run: run.score)


def to_keep(done: Sequence[Done], seeds: int) -> list[Done]:
    """Returns the runs of a task whose weights may still be needed.

    They are the best run of the best finished setting (all its `seeds` are
    done), and the best run of the unfinished setting.
    """
    by_setting: dict[Setting, list[Done]] = {}
    for run in done:
        by_setting.setdefault(run.setting, []).append(run)
    finished = [runs for runs in by_setting.values() if len(runs) == seeds]
    kept = [best(runs) for runs in by_setting.values() if len(runs) < seeds]
    if finished:
        kept.append(best(choose([run for runs in finished for run in runs])))
    return kept


def seconds_left(
    done: Sequence[Done], to_do: Sequence[tuple[str, float]]
) -> float:
    """Estimates how many seconds runs will take; NaN without any data.

    `to_do` has the task and the examples (rows times epochs) of each run. The
    time per example is measured on the task's finished runs, or on all finished
    runs if the task has none.
    """
    if not to_do:
        return 0.0
    times: dict[str, list[float]] = {}
    for run in done:
        examples = run.examples * run.setting.num_train_epochs
        times.setdefault(run.task, []).append(run.seconds / examples)
    if not times:
        return math.nan
    average = statistics.fmean(map(statistics.fmean, times.values()))
    return sum(
        examples * statistics.fmean(times.get(task, [average]))
        for task, examples in to_do
    )
