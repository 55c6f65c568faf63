"""Finds the kind of model at a path, for `bert_tf.load`."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from bert_tf import vocabularies
from bert_tf.checkpoints import (
    formats,
    hub,
    opened,
    original,
    runs,
    trained_models,
)
from bert_tf.errors import InputError
from bert_tf.exporting import export_description, runtimes
from bert_tf.storage import kept_flags, written_files

import tensorflow as tf

DESCRIPTION = runtimes.DESCRIPTION


@dataclasses.dataclass(frozen=True)
class Found:
    """A checkpoint, and the run that it is of.

    Attributes:
        source: The checkpoint.
        folder: Of the run; "" where it is of none.
        texts: The run's flags as text.
    """

    source: opened.Checkpoint
    folder: str
    texts: Mapping[str, str]


def as_text(path: Any) -> str:
    """Returns a path as text; a name on the Hub becomes its local folder.

    Raises InputError for other values, and as `hub.locate`.
    """
    if isinstance(path, str | os.PathLike) and os.fspath(path):
        return hub.locate(os.fsdecode(path))
    raise InputError(
        "Expected the path of a run, a checkpoint or a SavedModel. "
        f"Received: path={path!r}"
    )


def is_export(path: str) -> bool:
    """Whether the folder is a SavedModel, of whomever, or for a runtime."""
    is_saved_model = tf.io.gfile.exists(os.path.join(path, written_files.GRAPH))
    return is_saved_model or bool(runtimes.find(path))


def export_files(path: str) -> dict[str, bytes]:
    """Returns the files of an export next to its weights: name -> content.

    Raises:
        InputError: The vocabulary or the description is missing.
    """
    found = {}
    # A SavedModel has a folder for extra files.
    folder = "" if runtimes.find(path) else "assets"
    for name in (*original.vocab_names(), original.LABELS, DESCRIPTION):
        data = opened.read_bytes(os.path.join(path, folder, name))
        if data is not None:
            found[name] = data
    is_whole = vocabularies.among(found) is not None
    missing = [] if is_whole else [vocabularies.USUAL_FILE]
    missing += [] if DESCRIPTION in found else [DESCRIPTION]
    if missing:
        raise InputError(
            f"The {'SavedModel' if folder else 'model'} {path} is not all "
            "there, or not of bert_tf.export: "
            f"{os.path.join(folder, min(missing))} is missing. Export it "
            "again, or copy the whole folder again."
        )
    return found


def vocabulary(
    contents: Mapping[str, bytes], path: str
) -> vocabularies.Vocabulary:
    """Returns the vocabulary among the files of an export.

    Raises:
        InputError: It is not the one that the model was exported with.
    """
    export_description.check_vocab(contents, path)
    files = vocabularies.among(contents)
    if files is None:
        raise InputError(f"There is no vocabulary in {path}. Export it again.")
    lower = bool(description(contents).get("do_lower_case", False))
    return vocabularies.read(files, lower, f"The vocabulary of {path}")


def find(path: str, use_checkpoint: str | None = None) -> Found:
    """Opens the checkpoint at a path.

    Args:
        path: The folder of a run or its `best/`; or a checkpoint of any
            format.
        use_checkpoint: "best" (the default) or "last" checkpoint of a run.

    Raises:
        InputError: There is no checkpoint.
    """
    folder = runs.folder_of(path)
    checkpoint = path
    if folder and folder == path.rstrip("/"):
        checkpoint = _trained(folder, use_checkpoint != "last")
    elif use_checkpoint:
        raise InputError(
            "use_checkpoint goes with the folder of a run, which may have two. "
            f"Received: use_checkpoint={use_checkpoint}, path={path}"
        )
    texts = kept_flags.of_folder(folder) if folder else {}
    return Found(formats.open_checkpoint(checkpoint), folder, texts)


def _trained(folder: str, use_best: bool) -> str:
    found = trained_models.own_checkpoint(folder, use_best)
    if not found:
        trained_models.check_not_best_only(folder)
        raise InputError(
            "This folder of a run holds no trained weights "
            "(model.ckpt-STEP.index): it has not saved yet, or trained "
            f"nothing. Received: path={folder}"
        )
    return found


def description(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Returns what an export says of its model."""
    return export_description.parse(files[DESCRIPTION], DESCRIPTION)
