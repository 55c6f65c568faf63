"""A submission to the GLUE server: eleven checked files in a zip."""

import io
import os
import zipfile
from collections.abc import Mapping

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.tasks import label_column, tables
from bert_tf.tasks.classification import classification_task, glue

from absl import logging
from etils import epath

# Number of rows of each file, as in the released test sets.
TEST_ROWS: Mapping[str, int] = {
    "AX.tsv": 1104,
    "CoLA.tsv": 1063,
    "MNLI-m.tsv": 9796,
    "MNLI-mm.tsv": 9847,
    "MRPC.tsv": 1725,
    "QNLI.tsv": 5463,
    "QQP.tsv": 390965,
    "RTE.tsv": 3000,
    "SST-2.tsv": 1821,
    "STS-B.tsv": 1379,
    "WNLI.tsv": 146,
}
FILES = tuple(TEST_ROWS)

_HEADER = "index\tprediction"
# A fixed date: zips of the same files have the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)

_TASKS = {
    file: task
    for task in map(glue.find, glue.NAMES[:-1])
    for file in task.server_files.values()
}


def check(path: str, file: str, rows: int) -> None:
    """Checks a file of predictions; `file` is the server's name for it.

    Raises:
        FileNotFoundError: There is no such file.
        InputError: The server would not accept it, or it does not have `rows`
            rows.
    """
    number = 0
    for number, line in tables.lines(path):
        text = line.removesuffix("\n")
        if number == 1:
            if text != _HEADER:
                raise InputError(
                    f"{path}, line 1: expected the header {_HEADER!r}. "
                    f"Received: {text!r}"
                )
            continue
        index, tab, label = text.partition("\t")
        if not tab or index != str(number - 2):
            raise InputError(
                f"{path}, line {number}: expected the index {number - 2}, a "
                f"tab and a prediction. Received: {text!r}"
            )
        _check_prediction(f"{path}, line {number}", label, _TASKS[file])
    if number - 1 != rows:
        raise InputError(
            f"{path}: expected a header and {rows} predictions, one for each "
            f"row of the test set. Received: {max(number - 1, 0)} predictions"
        )


def _check_prediction(
    where: str, text: str, task: classification_task.Task
) -> None:
    if task.labels is None:
        # The server accepts any number, but others than these are invalid.
        label_column.score(text, where, task.score_range)
    elif text not in task.labels:
        raise InputError(
            f"{where}: unknown label. Expected one of "
            f"{', '.join(task.labels)}. Received: {text!r}"
        )


def write_zip(
    path: str, paths: Mapping[str, str], rows: Mapping[str, int] = TEST_ROWS
) -> None:
    """Checks all eleven files and writes them to the root of a zip.

    `paths` are by the server's names. Raises the errors of `check`, and
    InputError for a missing file.
    """
    missing = [name for name in FILES if name not in paths]
    if missing:
        raise InputError(
            f"The GLUE server wants {len(FILES)} files. "
            f"Missing: {', '.join(missing)}"
        )
    for name in FILES:
        check(paths[name], name, rows[name])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in FILES:
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, epath.Path(paths[name]).read_bytes())
    files.write_bytes(path, data.getvalue())


def submit(folder: str, found: Mapping[str, str]) -> None:
    """Checks the predictions; writes the zip if all files are present."""
    missing = [name for name in FILES if name not in found]
    if missing:
        for name, path in found.items():
            check(path, name, TEST_ROWS[name])
        logging.warning(
            "No submission.zip: the server requires all eleven files. Missing, "
            "because the test set or the task was left out: %s.",
            ", ".join(missing),
        )
        return
    path = os.path.join(folder, "submission.zip")
    write_zip(path, found)
    logging.info("Wrote %s.", path)
