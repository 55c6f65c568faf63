"""Opens a checkpoint of any format, and writes one of any other."""

import contextlib
import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

from bert_tf import checkpoints
from bert_tf.interop import (
    huggingface,
    huggingface_names,
    keras_hub,
    keras_hub_names,
    names,
    opened,
    tf1,
)

import tensorflow as tf

FORMATS = ("tf1", "hf", "keras_hub")


def open_checkpoint(path: str) -> opened.Checkpoint:
    """Opens a checkpoint, finding out what it is.

    Args:
        path: a TF1 checkpoint, as `checkpoints.find` takes it; the folder of
            a Hugging Face model, or its file of weights; the folder of a
            KerasHub preset, or its name.
    """
    if os.path.basename(path) in huggingface.FILES:
        return huggingface.open_checkpoint(os.path.dirname(path) or ".")
    if tf.io.gfile.isdir(path):
        return _open_folder(path)
    # A name has no slash; looking for one would import KerasHub.
    if re.fullmatch(r"\w[\w.]*|kaggle://.*", path) and not _is_tf1(path):
        folder = keras_hub.find_preset(path)
        if folder is None:
            raise ValueError(
                f"There is no checkpoint {path}: neither the file "
                f"{path}.index, nor a folder, nor a KerasHub preset of BERT "
                "of that name, such as bert_tiny_en_uncased."
            )
        preset = keras_hub.open_checkpoint(folder)
        return dataclasses.replace(preset, path=path)
    return tf1.open_checkpoint(checkpoints.find(path))


def _open_folder(folder: str) -> opened.Checkpoint:
    here = set(tf.io.gfile.listdir(folder))
    if keras_hub.CONFIG in here:
        values = opened.read_json(folder, keras_hub.CONFIG)
        if "class_name" in values:
            return keras_hub.open_checkpoint(folder)
        if here & set(huggingface.FILES) or "model_type" in values:
            return huggingface.open_checkpoint(folder)
    if any(name.endswith(".index") for name in here):
        return tf1.open_checkpoint(checkpoints.find(folder))
    raise ValueError(
        f"The folder {folder} holds no checkpoint. Looked for: "
        "bert_model.ckpt.index or model.ckpt-STEP.index (the original's and "
        "ours); config.json with "
        f"{', '.join(huggingface.FILES)} (Hugging Face); config.json with "
        f"{keras_hub.WEIGHTS} (KerasHub)."
    )


def _is_tf1(prefix: str) -> bool:
    # TensorFlow has no file system for the addresses of presets.
    if "://" in prefix:
        return False
    return tf.io.gfile.exists(f"{prefix}.index") or prefix.endswith(".index")


# ---- Writing ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Written:
    """What writing a checkpoint did.

    Attributes:
        weights: names of ours that are in it.
        left_out: names of the source, ours or foreign, that are not.
        notes: what is missing or will differ, in sentences.
    """

    weights: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def with_head(source: opened.Checkpoint, head: str) -> opened.Checkpoint:
    """Returns the source with one head's weights only, and the encoder's.

    What belongs to the others goes, too: the moments of training, the names of
    classes.
    """
    wanted = names.HEADS[head]
    missing = sorted(wanted.keys() - source.shapes.keys())
    if missing:
        raise ValueError(
            f"{source.path} has no {head} head: {', '.join(missing)} are not "
            "there."
        )
    kept = {
        name: shape
        for name, shape in source.shapes.items()
        if name.startswith("bert/") or name in wanted
    }
    dropped = sorted(source.shapes.keys() - kept.keys())
    return dataclasses.replace(
        source,
        shapes=kept,
        state=tuple(
            name
            for name in source.state
            if name.rpartition("/")[0] not in dropped
        ),
        labels=source.labels if head in names.LABELLED else None,
        left_over=(*source.left_over, *dropped),
    )


def write(path: str, output_format: str, source: opened.Checkpoint) -> Written:
    """Writes a checkpoint as a new folder, whole or not at all.

    Args:
        path: the folder.
        output_format: one of FORMATS.
        source: what to write, with its config.
    """
    head = names.find_head(source.shapes, source.path)
    config, notes = source.config, []
    if config is None:
        raise ValueError(
            f"There is no bert_config.json beside {source.path}, so its "
            "architecture is not known: give --bert_config_file."
        )
    with _new_folder(path) as folder:
        if output_format == "tf1":
            weights = tf1.write(folder, source, config)
        elif output_format == "hf":
            weights = huggingface.write(folder, source, config)
            notes += huggingface_names.differences(config, head)
        else:
            weights = keras_hub.write(folder, source, config)
            notes += keras_hub_names.differences(config, head)
            if source.labels:
                notes.append(
                    "A preset of KerasHub does not keep the names of the "
                    f"classes: {', '.join(source.labels)}."
                )
    if source.vocab is None:
        notes.append(
            "The vocabulary is not known, so there is no tokenizer in the "
            "folder: give --vocab_file."
        )
    if not names.POOLER.keys() <= source.shapes.keys():
        notes.append(
            "There is no pooler. Where one is needed, it starts from random "
            "values."
        )
    left_out = [*source.left_over, *sorted(source.shapes.keys() - weights)]
    return Written(tuple(sorted(weights)), tuple(left_out), tuple(notes))


@contextlib.contextmanager
def _new_folder(path: str) -> Iterator[str]:
    """Yields a local folder that becomes `path` at the end."""
    check_target(path)
    path = path.rstrip("/")
    temporary = f"{path}.tmp{os.getpid()}"
    remote = "://" in path
    folder = tempfile.mkdtemp() if remote else temporary
    try:
        tf.io.gfile.makedirs(folder)
        yield folder
        if remote:
            _upload(folder, temporary)
        tf.io.gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        raise
    finally:
        if remote:
            shutil.rmtree(folder)


def _upload(folder: str, target: str) -> None:
    for parent, _, files in os.walk(folder):
        there = target + parent.removeprefix(folder)
        tf.io.gfile.makedirs(there)
        for name in files:
            tf.io.gfile.copy(
                os.path.join(parent, name), os.path.join(there, name)
            )


def check_target(path: str) -> None:
    """Raises ValueError if there is something at `path` to overwrite."""
    if not tf.io.gfile.exists(path):
        return
    if not tf.io.gfile.isdir(path) or tf.io.gfile.listdir(path):
        raise ValueError(
            "A checkpoint is written to a new folder, or an empty one. Remove "
            f"what is there or choose another. Received: path={path}"
        )
