"""A submission to the GLUE server: eleven checked files in a zip."""

import io
import math
import os
import zipfile
from collections.abc import Mapping

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.tasks import tables
from bert_tf.tasks.classification import glue

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
# The range of STS-B. The server accepts any number, but others are invalid.
_LOWEST, _HIGHEST = 0.0, 5.0
# A fixed date: zips of the same files have the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)

_LABELS = {
    file: task.labels
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
        _check_prediction(f"{path}, line {number}", label, _LABELS[file])
    if number - 1 != rows:
        raise InputError(
            f"{path}: expected a header and {rows} predictions, one for each "
            f"row of the test set. Received: {max(number - 1, 0)} predictions"
        )


def _check_prediction(
    where: str, text: str, labels: tuple[str, ...] | None
) -> None:
    if labels is not None:
        if text not in labels:
            raise InputError(
                f"{where}: unknown label. Expected one of "
                f"{', '.join(labels)}. Received: {text!r}"
            )
        return
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not _LOWEST <= score <= _HIGHEST:
        raise InputError(
            f"{where}: expected a score from {_LOWEST} to {_HIGHEST}. "
            f"Received: {text!r}"
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
