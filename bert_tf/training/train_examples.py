"""Identifies the examples a run trains on, wherever their files are."""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bert_tf import files
from bert_tf.checkpoints import best, opened, tf1_files
from bert_tf.errors import InputError
from bert_tf.records import record_types

from etils import epath

if TYPE_CHECKING:
    from bert_tf.training import pretraining

FILE = "train_examples.json"
_TEACHER = "teacher"  # key of the SHA-256 of the teacher's weights, if any
_TABLE = "train_file_sha256"  # of the user's own file, if any


def fingerprint(data: record_types.RecordFile) -> dict[str, int | str]:
    """Returns the number of training records and their SHA-256.

    Features that were added to the records are ignored: they follow from the
    run's flags.
    """
    digest = files.sha256((data.source or data).path)
    return {"records": data.count, "sha256": digest}


def of_records(data: "pretraining.Data") -> dict[str, int | str]:
    """Returns the same for pre-training, by the files' names and manifest.

    The files, which may hold a terabyte, are not read. Their content is
    identified by the manifest: other data hardly have the same statistics.
    """
    names = [os.path.basename(path) for path in data.files]
    told = dataclasses.asdict(data.manifest) if data.manifest else {}
    # Facts that may differ for the same data.
    for name in ("made_of", "created_by", "version"):
        told.pop(name, None)
    text = json.dumps([names, data.counts, told], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"records": sum(data.counts), "sha256": digest}


def records_digest(data: "pretraining.Data") -> str | None:
    """Returns a digest that only the same records have; None if unknown.

    Without a manifest, other records can have the same names and counts.
    """
    return str(of_records(data)["sha256"]) if data.manifest else None


def write(
    folder: str,
    examples: Mapping[str, int | str],
    teacher: str = "",
    table: str | None = None,
) -> None:
    """Writes the identity of the training examples to the run's folder.

    `teacher` is the SHA-256 of the teacher's weights, if there is a teacher.
    `table` is the user's own file with the examples, if any.
    """
    more = {_TEACHER: teacher} if teacher else {}
    if table:
        more[_TABLE] = files.sha256(table)
    files.write_json(os.path.join(folder, FILE), {**examples, **more})


def is_table(folder: str, table: str | None) -> bool | None:
    """Whether a run trained on a file with this content, wherever it is.

    None if unknown, as for runs of earlier versions. A search stands for its
    best trial.
    """
    before = _kept(folder, _TABLE)
    if not (before and table and epath.Path(table).exists()):
        return None
    return bool(before == files.sha256(table))


def are_records(folder: str, data: "pretraining.Data") -> bool:
    """Whether a run certainly trained on these records, wherever they are."""
    digest = records_digest(data)
    return digest is not None and digest == _kept(folder, "sha256")


def _kept(folder: str, key: str) -> str | None:
    """Returns a value of a run's file; None if unknown."""
    kept = os.path.join(folder, best.FOLDER)
    with contextlib.suppress(InputError):
        found = opened.read_json(folder, FILE) or opened.read_json(kept, FILE)
        value: str | None = found.get(key)
        return value
    return None


def check_same(
    folder: str, now: Mapping[str, int | str], teacher: str = ""
) -> None:
    """Raises InputError if a run would resume with other examples or teacher.

    The arguments are as for `write`.
    """
    if not tf1_files.latest(folder):
        return
    try:
        before = opened.read_json(folder, FILE)
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. It says which examples the run trains "
            "on: bring it back, or choose another output_dir."
        ) from error
    before.pop(_TABLE, None)  # Its examples are compared.
    # Earlier versions did not write the teacher's.
    taught_by = before.pop(_TEACHER, teacher)
    if before and now != before:
        number = before.get("records", "another number of")
        raise InputError(
            f"The run in {folder} was trained on other examples: they "
            f"were {number} records, and are {now['records']} now, not all "
            "the same. Bring the training data back as it was, or choose "
            "another output_dir."
        )
    if taught_by != teacher:
        raise InputError(
            f"The teacher of the run in {folder} had other weights. Bring them "
            "back as they were, or choose another output_dir. Expected weights "
            f"with the SHA-256 {taught_by}. Received: {teacher or 'no teacher'}"
        )
