"""A GLUE experiment: many runs, each a process of run_classifier.py."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import tempfile
import types
from collections.abc import Collection, Mapping, Sequence

import bert_tf
from bert_tf import files, phases
from bert_tf.checkpoints import (
    formats,
    opened,
    tf1_files,
    trained_models,
    word_vectors,
)
from bert_tf.checkpoints import runs as run_folders
from bert_tf.errors import InputError
from bert_tf.storage import run_lock
from bert_tf.tasks import trials
from bert_tf.tasks.classification import glue
from bert_tf.tasks.glue import glue_data, glue_runs, glue_scores

import tensorflow as tf
from absl import logging

# Records which model and data the predictions next to it belong to.
_PREDICTED = "predicted.txt"


@dataclasses.dataclass(frozen=True)
class Start:
    """Initial weights or teacher weights of runs; path None: random ones."""

    path: str | None
    digest: str


class Experiment:
    """All runs of a command, in order."""

    def __init__(
        self,
        folder: str,
        lock: run_lock.Lock | None,
        script: str | os.PathLike[str],
        flags: Mapping[str, str],
        model_files: trained_models.ModelFiles,
        data: Mapping[str, glue_data.Data],
        settings: Sequence[glue_runs.Setting],
        seeds: Sequence[int],
        teachers: Mapping[str, Start] = types.MappingProxyType({}),
    ):
        """Restores the progress of the folder.

        `lock` is the folder's lock, None if nothing is written; `script` is
        run_classifier.py, with `flags` that are the same for all runs. Each of
        the settings runs with each of the seeds, and learns from its task's
        teacher, if any.
        """
        self.folder, self.script, self.files = folder, script, model_files
        self.data, self.settings, self.seeds = data, settings, seeds
        self.lock, self.teachers = lock, teachers
        path = os.path.join(folder, glue_runs.FILE)
        self.results = glue_runs.Results(path)
        self.flags = dict(flags)
        self.others = {
            k: v for k, v in flags.items() if k not in trials.INDIFFERENT
        }
        # Earlier versions have it in the keys of their runs.
        self.others["overwrite"] = "false"
        words = flags.get("word_vectors", "")
        if words:
            self.others["word_vectors"] = (
                files.sha256(words)
                if word_vectors.is_text(words)
                else opened.digest(formats.open_checkpoint(words))
            )
        self.use_best = flags["use_checkpoint"] == "best"
        self.meter = phases.Meter()
        self.made: list[glue_runs.Done] = []
        self.missing: dict[str, list[glue_runs.Run]] = {}

    # ---- Preparing ----------------------------------------------------------

    def check(self, starts: Mapping[str, Start]) -> None:
        """Raises InputError if the script would fail, before hours of work.

        Checks each task, and each batch size with the first task, unless a
        finished run has shown that it works.
        """
        runs: list[glue_runs.Run] = []
        works: set[str | int] = set()
        for task, start in starts.items():
            every = self.runs(task, start)
            for run in every:
                if self.results.find(run.key):
                    works |= {task, run.setting.train_batch_size}
            for run in every:
                if not works >= {task, run.setting.train_batch_size}:
                    runs.append(run)
                    works |= {task, run.setting.train_batch_size}
        folder = tempfile.mkdtemp(prefix="run_glue_")
        log = os.path.join(folder, "log.txt")
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, folder)
            own = self._write_model(folder)
            for number, run in enumerate(runs, 1):
                logging.info("Checking %s, %d of %d.", run, number, len(runs))
                try:
                    self._train(
                        run, starts[run.task], log, check_only="true", **own
                    )
                except trials.FailedError as error:
                    said = re.match("error: (.*)", error.last)
                    if said:
                        raise InputError(f"{run}: {said[1]}") from error
                    stack.pop_all()  # Keeps the folder: the log has details.
                    raise

    def starts(
        self, start: Start, first: str | None, after: Collection[str]
    ) -> dict[str, Start]:
        """Returns the weights that the runs of each task start from.

        The tasks `after` start from the encoder that task `first` trained, as
        soon as it is written, and all others from `start`.
        """
        found = dict.fromkeys(self.data, start)
        runs = self.runs(first, start) if first else []
        done = [x for run in runs if (x := self.results.find(run.key))]
        if done and len(done) == len(runs):
            best = glue_runs.best(glue_runs.choose(done))
            path = self._encoder(best)
            if os.path.exists(path):
                others = self.data.keys() & {*after} - {first}
                found |= dict.fromkeys(others, Start(path, best.key))
        return found

    def plan(self, starts: Mapping[str, Start]) -> None:
        """Logs the number of runs, and how many of them are done."""
        own = os.path.join(self.folder, "model")
        self.flags |= self._write_model(own)
        self.missing = {
            task: self._missing(task, start) for task, start in starts.items()
        }
        left = sum(map(len, self.missing.values()))
        logging.info("%d runs, %d are done.", self.total, self.total - left)

    @property
    def total(self) -> int:
        """The number of runs."""
        return len(self.data) * len(self.settings) * len(self.seeds)

    def runs(self, task: str, start: Start) -> list[glue_runs.Run]:
        """Lists the runs of a task."""
        others = self.others | {
            "data": self.data[task].digest,
            "start": start.digest,
            "version": bert_tf.__version__,
        }
        if task in self.teachers:
            others["teacher"] = self.teachers[task].digest
        return [
            glue_runs.Run(task, setting, seed, others)
            for setting in self.settings
            for seed in self.seeds
        ]

    def _missing(self, task: str, start: Start) -> list[glue_runs.Run]:
        runs = self.runs(task, start)
        return [run for run in runs if self.results.find(run.key) is None]

    def _write_model(self, folder: str) -> dict[str, str]:
        """Writes the model's files; returns the flags that point to them."""
        tf.io.gfile.makedirs(folder)
        self.files.write(folder, None)
        # Any file of a vocabulary leads to the files next to it.
        vocab_file = next(iter(self.files.vocab.contents))
        return {
            "bert_config_file": f"{folder}/bert_config.json",
            "vocab_file": f"{folder}/{vocab_file}",
        }

    # ---- Training -----------------------------------------------------------

    def _call(
        self,
        folder: str,
        task: str,
        data_dir: str,
        log: str | None = None,
        **given: str | None,
    ) -> None:
        values = {
            "task_name": task,
            "data_dir": data_dir,
            **self.flags,
            "output_dir": folder,
            **{name: value for name, value in given.items() if value},
        }
        if "init_checkpoint" in values:
            # After an intermediate task, embeddings start from its weights.
            values.pop("word_vectors", None)
        if glue.find(task).labels is None:
            values.pop("temperature", None)  # It divides logits of classes.
        log = log or os.path.join(folder, "log.txt")
        trials.call(self.script, values, log, self.lock)

    def train(self, task: str, start: Start) -> list[glue_runs.Done]:
        """Trains the missing runs of a task; returns all its runs."""
        self.missing[task] = self._missing(task, start)
        done = []
        for run in self.runs(task, start):
            found = self.results.find(run.key)
            if found is None:
                left = sum(map(len, self.missing.values()))
                logging.info("Run %d of %d", self.total - left + 1, self.total)
                found = self._make(run, start)
                self.results.add(found)
                self.made.append(found)
                self.missing[task].remove(run)
                self._say(found)
            done.append(found)
            self._tidy(done)
        return done

    def _make(self, run: glue_runs.Run, start: Start) -> glue_runs.Done:
        folder = os.path.join(self.folder, run.folder)
        logging.info("%s; log: %s/log.txt", run, folder)
        data, meter = self.data[run.task], phases.Meter()
        try:
            self._train(run, start, None)
        except InputError as error:
            raise InputError(
                f"{error} Where it fails each time, leave its seed or its "
                f"setting out. Received: {run}"
            ) from error
        results = glue_runs.read_evaluation(folder)
        return glue_runs.Done(
            key=run.key,
            results=results,
            score=glue_scores.task_score(run.task, results),
            examples=data.examples,
            seconds=round(meter.seconds, 1),
            folder=run.folder,
            **{f.name: getattr(run, f.name) for f in dataclasses.fields(run)},
        )

    def _train(
        self,
        run: glue_runs.Run,
        start: Start,
        log: str | None,
        **more: str,
    ) -> None:
        setting = dataclasses.asdict(run.setting)
        teacher = self.teachers.get(run.task)
        self._call(
            os.path.join(self.folder, run.folder),
            run.task,
            self.data[run.task].folder,
            log,
            do_train="true",
            do_eval="true",
            init_checkpoint=start.path,
            teacher=teacher.path if teacher else None,
            seed=str(run.seed),
            **{k: repr(v) for k, v in setting.items()},
            **more,
        )

    def _say(self, found: glue_runs.Done) -> None:
        values = ", ".join(
            f"{name} {found.results[name]:.4f}"
            for name in glue_scores.METRICS[found.task]
            if name in found.results
        )
        to_do = [
            (task, self.data[task].examples * run.setting.num_train_epochs)
            for task, runs in self.missing.items()
            for run in runs
        ]
        logging.info(
            "%s seed %d: %s in %s; used %s, about %s left.",
            found.task,
            found.seed,
            values,
            phases.duration(found.seconds),
            phases.duration(self.meter.seconds),
            phases.duration(glue_runs.seconds_left(self.made, to_do)),
        )

    def _tidy(self, done: Sequence[glue_runs.Done]) -> None:
        """Removes records, and weights that are no longer needed."""
        kept = glue_runs.to_keep(done, len(self.seeds))
        for run in done:
            folder = os.path.join(self.folder, run.folder)
            is_kept = run in kept
            run_folders.tidy(folder, is_kept, is_kept and not self.use_best)

    def trained(
        self, task: str, done: Sequence[glue_runs.Done], start: Start
    ) -> tuple[str, opened.Checkpoint]:
        """Returns the folder and the checkpoint of a task's best run."""
        best = glue_runs.best(glue_runs.choose(done))
        folder = os.path.join(self.folder, best.folder)
        kept = (folder, os.path.join(folder, "best"))
        if not any(map(tf1_files.numbered, kept)):
            logging.info("The weights of %s are needed again.", folder)
            runs = {run.key: run for run in self.runs(task, start)}
            self._make(runs[best.key], start)
            self._tidy([best])
        path = trained_models.own_checkpoint(folder, self.use_best)
        if path is None:
            raise FileNotFoundError(f"The run in {folder} left no weights.")
        source = formats.open_checkpoint(path)
        head = "classification"
        return folder, trained_models.with_trained_head(source, head)

    def _encoder(self, run: glue_runs.Done) -> str:
        return os.path.join(self.folder, "encoders", run.key[:8])

    def write_encoder(
        self, task: str, done: Sequence[glue_runs.Done], start: Start
    ) -> None:
        """Writes the best run's weights without the head, to start from."""
        path = self._encoder(glue_runs.best(glue_runs.choose(done)))
        if not os.path.exists(path):
            _, source = self.trained(task, done, start)
            source = dataclasses.replace(
                formats.with_head(source, "encoder"),
                config=self.files.config,
                vocab=self.files.vocab,
                state=(),
            )
            formats.write(path, "tf1", source)

    # ---- Predicting ---------------------------------------------------------

    def predict(
        self, task: str, done: Sequence[glue_runs.Done], start: Start
    ) -> dict[str, str]:
        """Predicts a task's test sets; returns files by the server's names."""
        tests = self.data[task].tests()
        if not tests:
            logging.info("%s has no test set.", task)
            return {}
        best = glue_runs.best(glue_runs.choose(done))
        folder = os.path.join(self.folder, best.folder)
        if not _is_predicted(folder, tests):
            self.trained(task, done, start)
            self._predict(folder, task, self.data[task].folder, tests)
        return {name: os.path.join(folder, name) for name in tests}

    def predict_diagnostics(
        self, data_dir: str, done: Sequence[glue_runs.Done], start: Start
    ) -> dict[str, str]:
        """Predicts AX with MNLI's best model."""
        tests = glue_data.test_files("AX", data_dir)
        best = glue_runs.best(glue_runs.choose(done))
        folder = os.path.join(self.folder, "AX", best.key[:8])
        if tests and not _is_predicted(folder, tests):
            _, source = self.trained("MNLI", done, start)
            self._predict(folder, "AX", data_dir, tests, source.path)
        return {name: os.path.join(folder, name) for name in tests}

    def _predict(
        self,
        folder: str,
        task: str,
        data_dir: str,
        tests: Mapping[str, str],
        init_checkpoint: str | None = None,
    ) -> None:
        logging.info("Predicting %s; log: %s/log.txt", task, folder)
        self._call(
            folder,
            task,
            data_dir,
            do_predict="true",
            glue_server_files="true",
            init_checkpoint=init_checkpoint,
        )
        run_folders.tidy(folder, True, True)
        files.write_lines(
            os.path.join(folder, _PREDICTED), [glue_runs.digest(tests.values())]
        )


def _is_predicted(folder: str, tests: Mapping[str, str]) -> bool:
    path = pathlib.Path(folder, _PREDICTED)
    return path.exists() and path.read_text(encoding="utf-8") == (
        f"{glue_runs.digest(tests.values())}\n"
    )


# ---- Teachers ---------------------------------------------------------------


def find_teachers(folder: str, tasks: Sequence[str]) -> dict[str, Start]:
    """Returns the teacher of each task, from a folder of models.

    The folder has one folder per task, named after the task, or is the
    output_dir of another run_glue.py. In the latter case, the teacher is the
    best run that still has its weights. Raises InputError for a task without a
    teacher.
    """
    results = glue_runs.Results(os.path.join(folder, glue_runs.FILE))
    found = {}
    for task in tasks:
        runs = sorted(results.finished(task), key=lambda run: -run.score)
        paths = [os.path.join(folder, run.folder) for run in runs]
        paths = [path for path in paths if _weights(path)]
        own = os.path.join(folder, task)
        if not runs and os.path.isdir(own):
            paths = [own]
        if not paths:
            raise InputError(
                f"--teacher holds no trained model of {task}: give the "
                "output_dir of a run_glue.py that trained it, or a folder with "
                f"one called {task}, or leave it out of --tasks. "
                f"Received: teacher={folder}"
            )
        source = formats.open_checkpoint(_weights(paths[0]) or paths[0])
        found[task] = Start(paths[0], opened.digest(source))
    return found


def _weights(folder: str) -> str | None:
    return trained_models.own_checkpoint(folder, True)
