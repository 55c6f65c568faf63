"""The original's checkpoints: our own format.

The original computes GELU in its tanh form and normalizes with epsilon 1e-12;
a bert_config.json beside the checkpoint may say otherwise.
"""

import dataclasses
import os
import re
from collections.abc import Collection

from bert_tf import checkpoints, files, input_files, modeling
from bert_tf.interop import names, opened

import tensorflow as tf

PREFIX = "bert_model.ckpt"
CONFIG = "bert_config.json"
VOCAB = "vocab.txt"
LABELS = "labels.txt"

_WORDS = "bert/embeddings/word_embeddings"
# What TensorFlow 2 keeps in a file that tf.train.Checkpoint wrote.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# Names of the encoders that are taken for BERT.
_OTHERS = {
    "ALBERT": re.compile(r"(^|/)bert/encoder/transformer/group_\d+/"),
    "ELECTRA": re.compile(r"(^|/)(electra|discriminator_predictions)/"),
}


def scope(found: Collection[str], path: str) -> str:
    """Returns what stands before `bert/` in a checkpoint's names.

    Raises:
        ValueError: The names are those of another encoder, or of TensorFlow 2.
    """
    if _OBJECT_GRAPH in found:
        raise ValueError(
            f"{path} can't be read: it is of TensorFlow 2's "
            "tf.train.Checkpoint, as those of TensorFlow's Model Garden and of "
            "SavedModels, where the names are other ones. Give the original's "
            "checkpoint of that model, or its Hugging Face folder."
        )
    for architecture, pattern in _OTHERS.items():
        if any(pattern.search(name) for name in found):
            raise ValueError(
                f"{path} is no BERT: by its names it is {architecture}. Give "
                "a checkpoint of BERT."
            )
    scopes = {
        name.removesuffix(_WORDS) for name in found if name.endswith(_WORDS)
    }
    if len(scopes) > 1:
        raise ValueError(
            f"{path} holds more than one BERT, under the prefixes "
            f"{', '.join(map(repr, sorted(scopes)))}."
        )
    return scopes.pop() if scopes else ""


@dataclasses.dataclass(frozen=True)
class Files:
    """What lies beside checkpoints in a folder; None what does not.

    Attributes:
        path: of the folder.
        config: of the model.
        vocab: text of its vocab.txt.
        labels: names of its classes.
    """

    path: str
    config: modeling.BertConfig | None
    vocab: str | None
    labels: tuple[str, ...] | None


def read_files(folder: str) -> Files:
    """Reads the files beside a folder's checkpoints, these unopened."""
    config = None
    path = os.path.join(folder, CONFIG)
    if tf.io.gfile.exists(path):
        config = modeling.BertConfig.from_json_file(path)
    return Files(
        path=folder,
        config=config,
        vocab=opened.read_vocab(os.path.join(folder, VOCAB)),
        labels=read_labels(os.path.join(folder, LABELS)),
    )


_RESTORE = (
    "Bring it back as it was, or remove it and give --labels in the order of "
    "training."
)


def read_labels(path: str, way_out: str = _RESTORE) -> tuple[str, ...] | None:
    """Returns the names of classes in a labels.txt; None if there is none.

    Args:
        path: Of the file.
        way_out: What to do if it is damaged.

    Raises:
        UnreadableError: It can't be what a training wrote.
    """
    text = opened.read_text(path)
    if text is None:
        return None
    labels = tuple(opened.pieces(text))
    problem = input_files.explain(text[:64].encode())
    if not problem and not all(label.strip() for label in labels):
        problem = "a line is empty"
    if not problem and len(set(labels)) < len(labels):
        twice = next(x for x in labels if labels.count(x) > 1)
        problem = f"{twice!r} is there more than once"
    if problem:
        raise checkpoints.UnreadableError(
            f"{path} must name the classes, one a line: {problem}. {way_out}"
        )
    return labels


def open_checkpoint(prefix: str) -> opened.Checkpoint:
    """Opens a TF1 checkpoint and the files beside it."""
    stored = checkpoints.shapes(prefix)
    before = scope(stored, prefix)
    ours = {name.removeprefix(before): name for name in stored}
    weights = {
        n: stored[s] for n, s in ours.items() if checkpoints.is_weight(n)
    }

    def read(wanted):
        values = checkpoints.read(prefix, [ours[name] for name in wanted])
        return {name: values[ours[name]] for name in wanted}

    beside = read_files(os.path.dirname(prefix))
    if beside.config:
        names.check(beside.config, weights, prefix)
    return opened.Checkpoint(
        path=prefix,
        format="tf1",
        shapes=weights,
        read=read,
        config=beside.config,
        vocab=beside.vocab,
        labels=beside.labels,
        state=tuple(sorted(ours.keys() - weights.keys())),
    )


def write(
    folder: str, source: opened.Checkpoint, config: modeling.BertConfig
) -> set[str]:
    """Writes bert_model.ckpt, bert_config.json, vocab.txt and labels.txt.

    Args:
        folder: an empty one.
        source: what to write, with the state of its training.
        config: its architecture.

    Returns:
        Which of the source's weights were written: all.
    """
    tensors = source.read([*source.shapes, *source.state])
    checkpoints.write(os.path.join(folder, PREFIX), tensors)
    texts = {CONFIG: config.to_json()}
    if source.vocab is not None:
        texts[VOCAB] = source.vocab
    if source.labels:
        texts[LABELS] = "".join(f"{label}\n" for label in source.labels)
    for name, text in texts.items():
        files.write_text(os.path.join(folder, name), text)
    return set(source.shapes)
