"""Experiment trackers that a run reports to: Weights & Biases and MLflow."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from bert_tf import extras, files, options
from bert_tf.errors import InputError

import tensorflow as tf
from absl import logging

# A file in the folder of a run: tracker -> ID of the run there.
IDS = "trackers.json"
# The project or experiment, unless an environment variable names another.
_PROJECT = "bert_tf"
# MLflow's limits: parameters per call and characters of a value.
_MOST_PARAMETERS, _LONGEST = 100, 6000


def check(names: Sequence[str]) -> None:
    """Raises InputError for an unknown tracker or a missing package."""
    unknown = sorted(set(names) - set(options.TRACKERS))
    if unknown:
        raise InputError(
            f"--report_to must list some of {', '.join(options.TRACKERS)}. "
            f"Received: report_to={','.join(names)}"
        )
    if "wandb" in names:
        extras.check("wandb", "wandb", "Reports to Weights & Biases")
    if "mlflow" in names:
        extras.check("mlflow", "mlflow", "Reports to MLflow")


class Trackers:
    """The trackers of a run, started by its first report; a context manager.

    A tracker that fails is dropped with a warning. A resumed run continues the
    same runs in the trackers: their IDs are in a file in the run's folder.
    """

    def __init__(
        self, names: Sequence[str], folder: str, flags: Mapping[str, str]
    ):
        """Takes names from options.TRACKERS, and the run's folder and flags."""
        self._waiting, self._folder, self._flags = list(names), folder, flags
        self._started: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for name, run in self._started.items():
            try:
                run.end(kind is not None)
            except Exception as error:
                _warn(name, error)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Reports the scalars of a step; the first call starts the runs."""
        values = {name: float(value) for name, value in scalars.items()}
        for name in [*self._started, *self._waiting]:
            try:
                if name not in self._started:
                    self._started[name] = self._start(name)
                self._started[name].write(step, values)
            except Exception as error:
                self._started.pop(name, None)
                _warn(name, error)
        self._waiting = []

    def _start(self, name: str) -> Any:
        path = os.path.join(self._folder, IDS)
        numbers = {}
        if tf.io.gfile.exists(path):
            with tf.io.gfile.GFile(path) as file:
                numbers = json.loads(file.read())
        run = _KINDS[name](numbers.get(name), self._folder, self._flags)
        if numbers.get(name) != run.number:
            text = json.dumps({**numbers, name: run.number}, indent=2)
            files.write_text(path, f"{text}\n")
        return run


def _warn(name: str, error: Exception) -> None:
    text = " ".join(str(error).split()) or repr(error)
    logging.warning("%s failed, and gets no more reports: %s", name, text)


class _Wandb:
    """A run in Weights & Biases; without an ID a new one."""

    def __init__(
        self, number: str | None, folder: str, flags: Mapping[str, str]
    ):
        import wandb

        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            id=number,
            name=folder,
            dir=None if "://" in folder else folder,
            resume="allow",
            # Leave the log alone.
            settings=wandb.Settings(console="off"),
        )
        self._run.config.update(dict(flags), allow_val_change=True)
        self.number = self._run.id

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        self._run.log(dict(scalars), step=step)

    def end(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


class _Mlflow:
    """A run in MLflow; without an ID a new one."""

    def __init__(
        self, number: str | None, folder: str, flags: Mapping[str, str]
    ):
        import mlflow

        self._entities = mlflow.entities
        self._client = mlflow.MlflowClient()
        if number is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _PROJECT)
            found = self._client.get_experiment_by_name(name)
            experiment = (
                found.experiment_id
                if found
                else self._client.create_experiment(name)
            )
            run = self._client.create_run(experiment, run_name=folder)
            number = run.info.run_id
            parameters = [
                mlflow.entities.Param(key, value[:_LONGEST])
                for key, value in flags.items()
            ]
            for i in range(0, len(parameters), _MOST_PARAMETERS):
                part = parameters[i : i + _MOST_PARAMETERS]
                self._client.log_batch(number, params=part)
        else:
            self._client.update_run(number, status="RUNNING")
        self.number = number

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [
            self._entities.Metric(name, value, now, step)
            for name, value in scalars.items()
        ]
        self._client.log_batch(self.number, metrics=metrics)

    def end(self, failed: bool) -> None:
        status = "FAILED" if failed else "FINISHED"
        self._client.set_terminated(self.number, status)


_KINDS: Mapping[str, Any] = {"wandb": _Wandb, "mlflow": _Mlflow}
