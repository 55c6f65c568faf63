"""Checkpoints of the original BERT (TF1), also this package's own format.

The original computes GELU in its tanh form and normalizes with epsilon 1e-12;
a bert_config.json next to the checkpoint may specify other values.
"""

import dataclasses
import functools
import os
from collections.abc import Collection, Mapping, Sequence

from bert_tf import files, modeling, terminals, vocabularies
from bert_tf.checkpoints import names, opened, runs, tf1_files
from bert_tf.encoders import families
from bert_tf.errors import InputError, repeated
from bert_tf.storage import input_files, written_files
from bert_tf.vocabularies import tokenizer_config

import tensorflow as tf

CONFIG = "bert_config.json"
# Vocabulary files of released ALBERT models, saved here as their kinds' files.
_RELEASED_VOCABS = ("30k-clean.model", "vocab_chinese.txt")
LABELS = "labels.txt"

# Key of the object graph in files written by TensorFlow 2's
# tf.train.Checkpoint.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# What tf.train.ExponentialMovingAverage appends to the name of a weight.
_AVERAGE = "/ExponentialMovingAverage"


def scope(found: Collection[str], path: str) -> str:
    """Returns the prefix before `bert/` in a checkpoint's names.

    Raises InputError for several encoders and for TensorFlow 2 checkpoints.
    """
    if _OBJECT_GRAPH in found:
        raise InputError(
            f"{path} can't be read: it is of TensorFlow 2's "
            "tf.train.Checkpoint, as those of TensorFlow's Model Garden and of "
            "SavedModels, where the names are other ones. Give the original's "
            "checkpoint of that model, or its Hugging Face folder."
        )
    tables = {row.words for row in families.FAMILIES.values()}
    scopes = {
        name.removesuffix(words)
        for name in found
        for words in tables
        if name.endswith(words)
    }
    if len(scopes) > 1:
        raise InputError(
            f"{path} holds more than one BERT, under the prefixes "
            f"{', '.join(map(repr, sorted(scopes)))}."
        )
    return scopes.pop() if scopes else ""


@dataclasses.dataclass(frozen=True)
class Files:
    """The files next to a folder's checkpoints; None for missing ones."""

    path: str
    config: modeling.BertConfig | None
    vocab: vocabularies.Files | None
    do_lower_case: bool | None
    labels: tuple[str, ...] | None


def read_files(folder: str) -> Files:
    """Reads the files next to a folder's checkpoints, but no checkpoint."""
    config = None
    configs = [CONFIG]
    configs += [row.config_file for row in families.FAMILIES.values()]
    paths = [os.path.join(folder, name) for name in configs]
    path = next(filter(tf.io.gfile.exists, paths), None)
    if path:
        config = families.read_config(path)
    return Files(
        path=folder,
        config=config,
        vocab=find_vocab(folder),
        do_lower_case=runs.lower_cases(folder),
        labels=read_labels(os.path.join(folder, LABELS)),
    )


def find_vocab(folder: str) -> vocabularies.Files | None:
    """Reads the vocabulary of a folder; None if there is no vocabulary."""
    found = vocabularies.find(folder)
    for name in _RELEASED_VOCABS:
        path = os.path.join(folder, name)
        if found is None and tf.io.gfile.exists(path):
            found = vocabularies.open_files(path)
    return found


_RESTORE = (
    "Bring it back as it was, or remove it and give --labels in the order of "
    "training."
)


def read_labels(path: str, way_out: str = _RESTORE) -> tuple[str, ...] | None:
    """Returns the class names in a labels.txt; None if there is no file.

    An invalid file raises UnreadableError, which ends with `way_out`.
    """
    text = opened.read_text(path)
    if text is None:
        return None
    labels = tuple(input_files.parse_labels(text))
    problem = input_files.explain(text[:64].encode())
    if not problem and not all(label.strip() for label in labels):
        problem = "a line is empty"
    if not problem and (twice := repeated(labels)):
        problem = f"{twice[0]!r} is there more than once"
    if problem:
        raise tf1_files.UnreadableError(
            f"{path} must name the classes, one a line: {problem}. {way_out}"
        )
    return labels


def vocab_names() -> list[str]:
    """Returns the file names of all kinds of vocabularies."""
    own = [x for kind in vocabularies.KINDS.values() for x in kind.files]
    return [*own, tokenizer_config.FILE]


def contents(
    config: modeling.BertConfig,
    vocab: vocabularies.Files | None,
    labels: Sequence[str] | None,
) -> dict[str, bytes]:
    """Returns the files to save next to weights: name -> content."""
    found = {CONFIG: config.to_json().encode()}
    found |= vocab.contents if vocab else {}
    if labels:
        found[LABELS] = "".join(f"{label}\n" for label in labels).encode()
    return found


def write_contents(folder: str, new: Mapping[str, bytes]) -> None:
    """Writes files to save next to weights, and removes another model's.

    A vocabulary's files are read together, so one of another model would
    change the vocabulary. Only names that runs write are removed.
    """
    for name, data in new.items():
        files.write_bytes(os.path.join(folder, name), data)
    own = {*written_files.VOCABULARIES, tokenizer_config.FILE, LABELS}
    for name in own - new.keys():
        path = os.path.join(folder, name)
        if tf.io.gfile.exists(path):
            tf.io.gfile.remove(path)


def open_checkpoint(prefix: str) -> opened.Checkpoint:
    """Opens a TF1 checkpoint and the files next to it."""
    stored = tf1_files.shapes(prefix)
    before = scope(stored, prefix)
    ours = {name.removeprefix(before): name for name in stored}
    weights = {n: stored[s] for n, s in ours.items() if tf1_files.is_weight(n)}
    averages = {f"{name}{_AVERAGE}" for name in weights} & weights.keys()
    if averages:
        terminals.warn_once(
            f"{prefix} also holds moving averages of {len(averages)} weights "
            f"(NAME{_AVERAGE}). Only the weights are used. To use the "
            "averages, save them in a checkpoint under the names of the "
            "weights."
        )
        weights = {n: s for n, s in weights.items() if n not in averages}

    def read(wanted):
        values = tf1_files.read(prefix, [ours[name] for name in wanted])
        return {name: values[ours[name]] for name in wanted}

    beside = read_files(os.path.dirname(prefix) or ".")
    if beside.config:
        names.check(beside.config, weights, prefix)
    return opened.Checkpoint(
        path=prefix,
        format="tf1",
        shapes=weights,
        read=read,
        config=beside.config,
        vocab=beside.vocab,
        do_lower_case=beside.do_lower_case,
        labels=beside.labels,
        state=tuple(sorted(ours.keys() - weights.keys())),
    )


def write(
    folder: str, source: opened.Checkpoint, config: modeling.BertConfig
) -> set[str]:
    """Writes bert_model.ckpt, bert_config.json, vocabulary and labels.txt.

    The folder must be empty. Writes all of the source's weights and returns
    their names.
    """
    return write_prefix(os.path.join(folder, tf1_files.PREFIX), source, config)


def is_prefix(path: str) -> bool:
    """Whether an output path is a prefix, such as .../bert_model.ckpt."""
    return path.endswith(".ckpt") and not tf.io.gfile.isdir(path)


def _check_replaced(prefix: str, there: list[str], overwrite: bool) -> None:
    """Raises InputError unless all existing files may be replaced.

    All checkpoints of a folder share one config, vocabulary and labels.txt.
    """
    if not there:
        return
    if not overwrite:
        raise InputError(
            f"{there[0]} is there, and would be written over. Remove it, "
            "choose another place, or replace the checkpoint of this name by "
            f"--overwrite. Received: path={prefix}"
        )
    folder, name = os.path.split(prefix)
    # The second is left by a killed process.
    own = f"{name}.index", f"{name}.tmp.index"
    others = [
        file
        for file in tf.io.gfile.listdir(folder or ".")
        if file.endswith(".index") and file not in own
    ]
    if others:
        problem = f"{min(others)} is there, and has the same files beside it"
    elif os.path.basename(there[0]) != own[0]:
        problem = f"{there[0]} is there, and no checkpoint of this name"
    else:
        return
    raise InputError(
        f"{problem}: --overwrite replaces a checkpoint and its own files only. "
        f"Choose another folder. Received: path={prefix}"
    )


def write_prefix(
    prefix: str,
    source: opened.Checkpoint,
    config: modeling.BertConfig,
    overwrite: bool = False,
) -> set[str]:
    """Writes a checkpoint with this prefix and its files next to it.

    The original's archives have this layout. Other files in the folder stay;
    files of this checkpoint are replaced only if `overwrite` is set, files of
    other checkpoints never. Writes all of the source's weights and returns
    their names.
    """
    folder = os.path.dirname(prefix) or "."
    own = [f"{os.path.basename(prefix)}.index", CONFIG, *vocab_names(), LABELS]
    paths = [os.path.join(folder, name) for name in own]
    there = [path for path in paths if tf.io.gfile.exists(path)]
    _check_replaced(prefix, there, overwrite)
    inputs = (source.path, os.path.dirname(source.path))
    if there and os.path.realpath(folder) in map(os.path.realpath, inputs):
        raise InputError(
            f"{source.path} lies where it would be written over: choose "
            f"another place. Received: path={prefix}"
        )
    tf.io.gfile.makedirs(folder)
    new = contents(config, source.vocab, source.labels)
    before = {path: opened.read_bytes(path) for path in paths[1:]}
    try:
        tensors = source.read([*source.shapes, *source.state])
        write_beside = functools.partial(write_contents, folder, new)
        tf1_files.write(prefix, tensors, write_beside)
    except BaseException:
        # Labels of the new weights next to the old ones would be wrong.
        for path, data in before.items():
            if data == opened.read_bytes(path):
                continue
            if data is None:
                tf.io.gfile.remove(path)
            else:
                files.write_bytes(path, data)
        raise
    return set(source.shapes)
