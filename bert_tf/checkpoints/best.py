"""The best weights of a run, saved in a folder that is a complete model."""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import opened, tf1_files
from bert_tf.errors import InputError

import keras
import numpy as np
import tensorflow as tf
from absl import logging

# Folder of the best weights inside a run's folder.
FOLDER = "best"
_RESULTS = "results.json"
_CHOSEN_ON = "chosen_on.json"
# Its key for a digest of the evaluation data, if there is one.
EVALUATED_ON = "eval_data_sha256"
# The result that decides between two evaluations without a score.
LOSS = "eval_loss"
_WAY_OUT = (
    "It keeps the best evaluation of a run: bring it back, or remove {}, and "
    "the newest weights are used."
)


class Best:
    """Keeps the weights with the best score in `best/`; ties keep the earlier.

    A score to maximize is 0.0 where it is undefined, such as F1 without
    positives. Of two evaluations with 0.0, the one with the lower loss is kept.

    The folder holds one checkpoint, the model's files (name -> content),
    results.json, which includes the step, and chosen_on.json, the flags and
    data that determine the score. TensorFlow reads the step from the file
    `checkpoint`. A resumed run continues with the best kept so far. `metric` is
    the key of the results to maximize, or to minimize if `lowest` is set.
    Processes without `write` track the best as well; `results` is None before
    the first evaluation. `no_better` counts the evaluations since the best.
    """

    def __init__(
        self,
        output_dir: str,
        metric: str,
        beside: Mapping[str, bytes],
        lowest: bool = False,
        write: bool = True,
        chosen_on: Mapping[str, str] | None = None,
    ):
        self.folder = os.path.join(output_dir, FOLDER)
        self.metric = metric
        told = json.dumps(dict(chosen_on or {}), indent=2) + "\n"
        self.beside = {**beside, _CHOSEN_ON: told.encode()}
        self.lowest = lowest
        self.write = write
        self.results = _read_results(self.folder)
        self.no_better = 0
        if write:
            tf1_files.remove_leftovers(self.folder, [*self.beside, _RESULTS])
            if self.results is not None:
                # A kill before the results were written leaves it outdated.
                step = int(self.results[tf1_files.GLOBAL_STEP])
                _tell_tensorflow(self.folder, step)

    def rewind(
        self, step: int, score: float, loss: float | None = None
    ) -> None:
        """Compares with an earlier best from now on, in a resumed run.

        The steps after the checkpoint, which run again, may have produced a
        better one. It stays in the folder until a result beats the earlier
        best. `step` is 0 if there was no best; `loss` is None if unknown.
        """
        self.results = None
        if step:
            self.results = {self.metric: score, tf1_files.GLOBAL_STEP: step}
            if loss is not None:
                self.results.setdefault(LOSS, loss)

    def clear(self) -> None:
        """Discards the best of another run."""
        if self.write:
            _remove(self.folder)
        self.results = None

    def offer(
        self, step: int, results: Mapping[str, float], model: keras.Model
    ) -> bool:
        """Keeps the model's weights if they are better than those kept.

        A result at the step already kept always counts as better: the run may
        have been killed before it logged that step.
        """
        if self.results and self.results[tf1_files.GLOBAL_STEP] != step:
            score, kept = results[self.metric], self.results[self.metric]
            is_better = score < kept if self.lowest else score > kept
            if score == kept == 0 and not self.lowest:
                is_better = _loss(results) < _loss(self.results)
            if not is_better and (math.isnan(score) or not math.isnan(kept)):
                self.no_better += 1
                return False
        self.no_better = 0
        self.results = {**results, tf1_files.GLOBAL_STEP: step}
        if self.write:
            self._keep(step, model)
        return True

    def _keep(self, step: int, model: keras.Model) -> None:
        tensors = {
            v.path: tf.convert_to_tensor(v.value) for v in model.variables
        }
        tensors[tf1_files.GLOBAL_STEP] = np.int64(step)
        with files.locked_folder(self.folder) as folder:
            self._replace(folder, step, tensors)

    def _replace(
        self, folder: str, step: int, tensors: Mapping[str, Any]
    ) -> None:
        """Writes the model and its results, and removes the old weights."""
        tf.io.gfile.makedirs(folder)
        for name, data in self.beside.items():
            files.write_bytes(os.path.join(folder, name), data)
        tf1_files.write(_prefix(folder, step), tensors)
        # Both files name existing weights: the old ones are removed last. The
        # results are written last: a run killed earlier evaluates again.
        _tell_tensorflow(folder, step)
        files.write_text(
            os.path.join(folder, _RESULTS),
            json.dumps(self.results, indent=2) + "\n",
        )
        found = tf1_files.numbered(folder)
        tf1_files.remove_old([old for x, old in found.items() if x != step])


def _loss(results: Mapping[str, float]) -> float:
    return results.get(LOSS, math.inf)


def _tell_tensorflow(folder: str, step: int) -> None:
    """Writes `checkpoint`, which tf.train.latest_checkpoint reads."""
    tf1_files.write_state(folder, [_prefix(folder, step)])


def run_of(folder: str) -> str | None:
    """Returns the folder of the run whose `best/` this is; None for others."""
    above, name = os.path.split(folder)
    if name in ("", ".", ".."):  # Relative to the working directory.
        above, name = os.path.split(os.path.abspath(folder))
    return (above or ".") if name == FOLDER else None


def clear(output_dir: str) -> None:
    """Removes the best of another run from this folder and logs a warning."""
    folder = os.path.join(output_dir, FOLDER)
    if tf.io.gfile.exists(folder):
        logging.warning(
            "Removing %s, the best weights of a run without a checkpoint to "
            "resume from.",
            folder,
        )
        _remove(folder)


def checkpoint(output_dir: str) -> str | None:
    """Returns a run's best checkpoint; None if missing.

    Raises InputError if the checkpoint or its results.json is damaged.
    """
    folder = os.path.join(output_dir, FOLDER)
    results = _read_results(folder)
    if results is None:
        return None
    prefix = _prefix(folder, int(results[tf1_files.GLOBAL_STEP]))
    if not tf.io.gfile.exists(f"{prefix}.index"):
        raise InputError(
            f"{os.path.join(folder, _RESULTS)} says that the best weights are "
            f"{prefix}, which are not there. Bring them back, or remove "
            f"{folder}: the newest are used then."
        )
    return prefix


def results(output_dir: str) -> dict[str, float] | None:
    """Returns the results of a run's best evaluation; None if missing."""
    return _read_results(os.path.join(output_dir, FOLDER))


def chosen_on(output_dir: str) -> dict[str, str] | None:
    """Returns the flags (name -> value) and data that determine the score.

    Returns None if the folder does not record them.
    """
    folder = os.path.join(output_dir, FOLDER)
    if not tf.io.gfile.exists(os.path.join(folder, _CHOSEN_ON)):
        return None
    return opened.read_json(folder, _CHOSEN_ON)


def _remove(folder: str) -> None:
    # Files that name the weights are removed before the weights.
    for name in (_RESULTS, "checkpoint"):
        path = os.path.join(folder, name)
        if tf.io.gfile.exists(path):
            tf.io.gfile.remove(path)
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)


def _prefix(folder: str, step: int) -> str:
    return os.path.join(folder, f"model.ckpt-{step}")


def _read_results(folder: str) -> dict[str, float] | None:
    path = os.path.join(folder, _RESULTS)
    if not tf.io.gfile.exists(path):
        return None
    try:
        results = opened.read_json(folder, _RESULTS)
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. {_WAY_OUT.format(folder)}"
        ) from error
    if not isinstance(results.get(tf1_files.GLOBAL_STEP), int):
        raise InputError(
            f"{path} has no `{tf1_files.GLOBAL_STEP}`. "
            f"{_WAY_OUT.format(folder)}"
        )
    return results
