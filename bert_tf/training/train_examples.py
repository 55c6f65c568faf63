"""Which examples a run trains on: their file may change where it lies."""

import hashlib
import os
from collections.abc import Mapping

from bert_tf import files
from bert_tf.checkpoints import opened, tf1_files
from bert_tf.errors import InputError
from bert_tf.records import record_file

import tensorflow as tf

_EXAMPLES = "train_examples.json"


def of(data: record_file.RecordFile) -> dict[str, int | str]:
    """Returns how many records there are to train on, and their SHA-256.

    What was added to them is not looked at: it follows from the run's flags.
    """
    digest = hashlib.sha256()
    with tf.io.gfile.GFile((data.source or data).path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return {"records": data.count, "sha256": digest.hexdigest()}


def write(folder: str, examples: Mapping[str, int | str]) -> None:
    """Notes in a run's folder which examples it trains on."""
    files.write_json(os.path.join(folder, _EXAMPLES), examples)


def check_same(folder: str, now: Mapping[str, int | str]) -> None:
    """Raises InputError if the run would go on with other examples."""
    if not tf1_files.latest(folder):
        return
    try:
        before = opened.read_json(folder, _EXAMPLES)
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. It says which examples the run trains "
            "on: bring it back, or choose another output_dir."
        ) from error
    if before and now != before:
        number = before.get("records", "another number of")
        raise InputError(
            f"The run in {folder} was trained on other examples: they "
            f"were {number} records, and are {now['records']} now, not all "
            "the same. Bring the training data back as it was, or choose "
            "another output_dir."
        )
