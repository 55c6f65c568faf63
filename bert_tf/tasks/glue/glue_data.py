"""The files of GLUE's tasks: one folder per task."""

import dataclasses
import os
from collections.abc import Mapping

from bert_tf.errors import InputError
from bert_tf.tasks.classification import classification_task, glue
from bert_tf.tasks.glue import glue_runs, glue_scores, glue_submission

from absl import logging

# The diagnostic set's folder, as GLUE's download script calls it.
_DIAGNOSTIC = "diagnostic"


@dataclasses.dataclass(frozen=True)
class Data:
    """The files of a task, the number of training rows, and a digest.

    The digest covers the files that affect the dev score.
    """

    name: str
    folder: str
    examples: int
    digest: str

    @classmethod
    def read(cls, name: str, folder: str) -> "Data":
        """Reads all training and evaluation rows, to validate them.

        Raises:
            FileNotFoundError: The training or dev file is missing.
            InputError: A file has an invalid column or label.
        """
        task = glue.find(name)
        splits = [
            "train",
            *classification_task.with_mismatched(task, folder, "dev"),
        ]
        counts = {
            split: sum(1 for _ in classification_task.read(task, folder, split))
            for split in splits
        }
        whole = glue_scores.TRAIN_ROWS[name]
        logging.info(
            "%s: %s%s.",
            name,
            ", ".join(f"{count:,} {split}" for split, count in counts.items()),
            f" (a part: GLUE's has {whole:,} train)"
            * (counts["train"] < whole),
        )
        files = [os.path.join(folder, task.splits[s].file) for s in splits]
        return cls(name, folder, counts["train"], glue_runs.digest(files))

    def tests(self) -> dict[str, str]:
        """Returns the files of the test sets, by the server's names."""
        return test_files(self.name, self.folder)


def test_files(name: str, folder: str) -> dict[str, str]:
    """Returns the files of a task's test sets, by the server's names."""
    task = glue.find(name)
    files = {
        file: os.path.join(folder, task.splits[split].file)
        for split, file in task.server_files.items()
    }
    return {name: path for name, path in files.items() if os.path.exists(path)}


def check_tests(name: str, folder: str) -> None:
    """Raises InputError if a test set differs from the server's."""
    task = glue.find(name)
    present = test_files(name, folder)
    for split, file in task.server_files.items():
        if file not in present:
            continue
        rows = sum(1 for _ in classification_task.read(task, folder, split))
        if rows != glue_submission.TEST_ROWS[file]:
            raise InputError(
                f"{present[file]} is not GLUE's test set, so the server would "
                "not take its predictions. Expected "
                f"{glue_submission.TEST_ROWS[file]} rows. Received: {rows}. "
                "Leave out --do_predict, or get the released file."
            )


def check_all_tests(data: Mapping[str, Data], ax: str | None) -> None:
    """Raises InputError if a test set differs from the server's.

    If MNLI is among the tasks, the diagnostic set in the folder `ax` is checked
    too, unless `ax` is None.
    """
    folders = {task: found.folder for task, found in data.items()}
    if "MNLI" in data and ax:
        folders["AX"] = ax
    for task, folder in folders.items():
        check_tests(task, folder)


def find_folder(
    name: str, data_dir: str, task_dirs: Mapping[str, str]
) -> str | None:
    """Returns the folder of a task's files, or None.

    It is in `data_dir` under the task's name, unless `task_dirs` overrides it.
    """
    names = [task_dirs.get(name, name)]
    if names == ["AX"]:
        names.append(_DIAGNOSTIC)
    paths = [os.path.join(data_dir, name) for name in names]
    return next(filter(os.path.isdir, paths), None)


def read_all(
    names: list[str], data_dir: str, task_dirs: Mapping[str, str]
) -> dict[str, Data]:
    """Reads all tasks; InputError for a missing folder or bad data."""
    if not os.path.isdir(data_dir):
        raise InputError(
            "There is no such folder. --data_dir holds a folder for each task. "
            f"Received: data_dir={data_dir}"
        )
    folders = {n: find_folder(n, data_dir, task_dirs) for n in names}
    missing = [name for name, folder in folders.items() if folder is None]
    if missing:
        there = sorted(x.name for x in os.scandir(data_dir) if x.is_dir())
        raise InputError(
            f"There are no folders for {', '.join(missing)} in {data_dir}. "
            f"Name them by --task_dirs={missing[0]}:FOLDER, or choose others "
            f"by --tasks. Folders there: {', '.join(there) or 'none'}"
        )
    return {n: Data.read(n, f) for n, f in folders.items() if f is not None}
