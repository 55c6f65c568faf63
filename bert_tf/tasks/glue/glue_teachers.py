"""The teachers of a GLUE experiment: one model per task."""

import os
from collections.abc import Sequence

from bert_tf.checkpoints import formats, opened, trained_models
from bert_tf.errors import InputError
from bert_tf.tasks.glue import glue_experiment, glue_runs


def find(folder: str, tasks: Sequence[str]) -> dict[str, glue_experiment.Start]:
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
        found[task] = glue_experiment.Start(paths[0], opened.digest(source))
    return found


def _weights(folder: str) -> str | None:
    return trained_models.own_checkpoint(folder, True)
