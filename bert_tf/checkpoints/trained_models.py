"""What fine-tuning leaves: the model's weights, files and labels."""

import dataclasses
import functools
import os
from collections.abc import Sequence

from bert_tf import files, modeling, vocabularies
from bert_tf.checkpoints import (
    best,
    formats,
    model_files,
    names,
    opened,
    original,
    restoring,
    tf1_files,
)
from bert_tf.errors import InputError

import keras
import tensorflow as tf
from absl import logging

# ---- Weights ----------------------------------------------------------------


def own_checkpoint(output_dir: str, use_best: bool) -> str | None:
    """Returns the weights a run ended with, its best or newest, or None."""
    kept = best.checkpoint(output_dir) if use_best else None
    return kept or tf1_files.latest(output_dir)


def trained_checkpoint(
    output_dir: str,
    init_checkpoint: str | None,
    use_best: bool,
    head: str = "classification",
) -> opened.Checkpoint:
    """Opens the fine-tuned weights to evaluate, predict or export with.

    The best or newest of a run come first, then `init_checkpoint`, of any
    format. It raises InputError if there are none, or they have no trained
    head.
    """
    prefix = own_checkpoint(output_dir, use_best) or init_checkpoint
    if not prefix:
        raise InputError(
            f"There is no fine-tuned model in {output_dir}. Train one with "
            "--do_train=true, or give one by --init_checkpoint."
        )
    return with_trained_head(formats.open_checkpoint(prefix), head)


def with_trained_head(
    source: opened.Checkpoint, head: str
) -> opened.Checkpoint:
    """Returns a checkpoint as it is; InputError if it lacks a head."""
    missing = sorted(names.HEADS[head].variables.keys() - source.shapes.keys())
    if missing:
        raise InputError(
            f"{source.path} is not fine-tuned: it has no {head} head "
            f"({', '.join(missing)}). Train it with --do_train=true."
        )
    return source


def without_other_head(
    source: opened.Checkpoint, labels: tuple[str, ...] | None
) -> opened.Checkpoint:
    """Leaves out a classification head of other classes, and says so.

    What a model learned on MNLI helps it with RTE, MRPC and STS-B (Phang et al.
    2018, Liu et al. 2019), whose classes are others. `labels` is None for a
    score.
    """
    shape = source.shapes.get("output_weights")
    if shape is None or not _other_labels(source, labels):
        return source
    head = names.HEADS["classification"].variables
    logging.warning(
        "%s was fine-tuned with %s: its head is not used, a new one starts "
        "from random values.",
        source.path,
        _classes(source),
    )
    return dataclasses.replace(
        source,
        shapes={n: s for n, s in source.shapes.items() if n not in head},
        left_over=(*source.left_over, *head),
    )


def is_multi_label(source: opened.Checkpoint) -> bool:
    """Whether the checkpoint says that texts may have several labels."""
    config = source.config
    return config is not None and config.problem_type == modeling.MULTI_LABEL


def check_classes(
    source: opened.Checkpoint,
    labels: tuple[str, ...] | None,
    several: bool = False,
) -> None:
    """Raises InputError if a classifier to predict with has other labels.

    They are None for a score; `several` says whether a text may have several.
    """
    if is_multi_label(source) and not several:
        raise InputError(
            f"{source.path} was fine-tuned on texts that may have several "
            "labels. Say how they are separated in your files by "
            "--label_separator."
        )
    # Labels beside weights in our format are those of a run of ours, whose
    # config says if texts have several; other libraries' may not say it.
    is_own = source.format == "tf1" and source.labels is not None
    if several and is_own and not is_multi_label(source):
        raise InputError(
            f"{source.path} was fine-tuned on texts with one label each: its "
            f"{original.CONFIG} has no problem_type={modeling.MULTI_LABEL}. "
            "Leave out --label_separator, or train with it in another "
            "output_dir."
        )
    if _other_labels(source, labels):
        raise InputError(
            f"{source.path} was fine-tuned with {_classes(source)}. Give the "
            "same, in this order, by --labels or --task_name, or train with "
            f"--do_train=true. Received: labels={_named(labels)}"
        )


def _other_labels(
    source: opened.Checkpoint, labels: tuple[str, ...] | None
) -> bool:
    number = source.shapes["output_weights"][0]
    if number != len(labels or ("",)):
        return True
    return source.labels is not None and source.labels != labels


def _named(labels: Sequence[str] | None) -> str:
    return ", ".join(labels) if labels else "none, but a score"


def _classes(source: opened.Checkpoint) -> str:
    if source.labels:
        return f"the labels {', '.join(source.labels)}"
    return f"{source.shapes['output_weights'][0]} classes"


def restore(model: keras.Model, source: opened.Checkpoint, head: str) -> int:
    """Sets all weights of a fine-tuned checkpoint; returns its step, or 0.

    Where the head reads no pooled output, the checkpoint may lack the pooler,
    as many of other libraries do.
    """
    required = names.required(source.config, head)
    restoring.restore_weights(model.variables, source, required)
    logging.info("Using the weights of %s.", source.path)
    if tf1_files.GLOBAL_STEP not in source.state:
        return 0
    values = source.read([tf1_files.GLOBAL_STEP])
    return int(values[tf1_files.GLOBAL_STEP])


# ---- Files of a fine-tuned model --------------------------------------------


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """What belongs to a model's weights."""

    config: modeling.BertConfig
    vocab: vocabularies.Files
    do_lower_case: bool

    @classmethod
    def load(
        cls,
        bert_config_file: str | None,
        vocab_file: str | None,
        do_lower_case: bool,
        source: model_files.Source | None = None,
        trains: bool = False,
    ) -> "ModelFiles":
        """Reads the files, or what a checkpoint brings where one is None."""
        config = model_files.find_config(bert_config_file, source, trains)
        files = cls(
            config, model_files.find_vocab(vocab_file, source), do_lower_case
        )
        name = vocab_file or f"The vocabulary of {source and source.path}"
        config.check_vocab_size(len(files.vocabulary.pieces), name)
        files.vocabulary.check(name)
        return files

    def of_problem(self, is_multi_label: bool) -> "ModelFiles":
        """Returns the files of a classifier, whose config says which one."""
        problem_type = modeling.MULTI_LABEL if is_multi_label else None
        config = dataclasses.replace(self.config, problem_type=problem_type)
        return dataclasses.replace(self, config=config)

    @functools.cached_property
    def vocabulary(self) -> vocabularies.Vocabulary:
        """What splits texts."""
        return vocabularies.read(
            self.vocab, self.do_lower_case, "The vocabulary"
        )

    def contents(self, labels: Sequence[str] | None) -> dict[str, bytes]:
        """Returns the files by name, with labels.txt if there are labels."""
        return original.contents(self.config, self.vocab, labels)

    def write(self, folder: str, labels: Sequence[str] | None) -> None:
        """Writes the files, and labels.txt if there are labels."""
        for name, data in self.contents(labels).items():
            files.write_bytes(os.path.join(folder, name), data)
        of_before = os.path.join(folder, original.LABELS)
        if not labels and tf.io.gfile.exists(of_before):
            tf.io.gfile.remove(of_before)


def read_labels(folder: str) -> tuple[str, ...] | None:
    """Returns the labels that a run wrote; None if there are none."""
    return original.read_labels(os.path.join(folder, original.LABELS))


def check_labels(folder: str, labels: Sequence[str] | None) -> None:
    """Raises InputError if the folder's model has other labels."""
    trained = read_labels(folder)
    if trained is not None and trained != tuple(labels or ()):
        raise InputError(
            f"The model in {folder} was trained with other labels: "
            f"{', '.join(trained)}. Give the same, in this order, or choose "
            f"another output_dir. Received: labels={_named(labels)}"
        )
