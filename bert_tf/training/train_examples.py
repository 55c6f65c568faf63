"""Identifies the examples a run trains on, wherever their files are."""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence

from bert_tf import files
from bert_tf.checkpoints import opened, tf1_files
from bert_tf.errors import InputError
from bert_tf.records import manifests, record_types

import tensorflow as tf

FILE = "train_examples.json"
_TABLE = "train_file_sha256"  # of the user's own file


def fingerprint(data: record_types.RecordFile) -> dict[str, int | str]:
    """Returns the number of training records and their SHA-256.

    Features that were added to the records are ignored: they follow from the
    run's flags.
    """
    sha256 = _sha256((data.source or data).path)
    return {"records": data.count, "sha256": sha256}


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def of_records(
    paths: Sequence[str], counts: Sequence[int]
) -> dict[str, int | str]:
    """Returns the same for record files, by their names and manifest.

    The files, which may hold a terabyte, are not read. Their content is
    identified by the manifest: other data hardly have the same statistics.
    """
    names = [os.path.basename(path) for path in paths]
    manifest = manifests.find(paths)
    told = dataclasses.asdict(manifest) if manifest else {}
    # Facts that may differ for the same data.
    for name in ("made_of", "created_by", "version"):
        told.pop(name, None)
    text = json.dumps([names, list(counts), told], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"records": sum(counts), "sha256": digest}


def write(
    folder: str, examples: Mapping[str, int | str], table: str | None = None
) -> None:
    """Writes the identity of the training examples to the run's folder.

    `table` is the user's own file with the examples, if any.
    """
    more = {_TABLE: _sha256(table)} if table else {}
    files.write_json(os.path.join(folder, FILE), {**examples, **more})


def is_table(folder: str, table: str | None) -> bool | None:
    """Whether a run trained on a file with this content, wherever it is.

    None if unknown, as for runs of earlier versions.
    """
    before = None
    with contextlib.suppress(InputError):
        before = opened.read_json(folder, FILE).get(_TABLE)
    if not (before and table and tf.io.gfile.exists(table)):
        return None
    return bool(before == _sha256(table))


def check_same(folder: str, now: Mapping[str, int | str]) -> None:
    """Raises InputError if a run would resume with other examples."""
    if not tf1_files.latest(folder):
        return
    try:
        before = opened.read_json(folder, FILE)
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. It says which examples the run trains "
            "on: bring it back, or choose another output_dir."
        ) from error
    if before and any(before.get(name) != now[name] for name in now):
        number = before.get("records", "another number of")
        raise InputError(
            f"The run in {folder} was trained on other examples: they "
            f"were {number} records, and are {now['records']} now, not all "
            "the same. Bring the training data back as it was, or choose "
            "another output_dir."
        )
