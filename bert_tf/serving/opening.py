"""Builds a model of raw text from a checkpoint and the user's settings.

Settings that the user omits are taken from the run's folder or the checkpoint.
The scripts and `bert_tf.load` share this code: scripts pass flags, `load`
passes keyword arguments of the same names.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import options, vocabularies
from bert_tf.checkpoints import (
    hub,
    names,
    opened,
    original,
    sentence_transformers,
    trained_models,
)
from bert_tf.errors import InputError, listed
from bert_tf.exporting import saved_model
from bert_tf.seq2seq import seq2seq_options
from bert_tf.serving import makers, served_heads, serving_model
from bert_tf.storage import kept_flags
from bert_tf.tasks import label_column
from bert_tf.tasks.classification import classification_task, glue
from bert_tf.tasks.features import feature_layers
from bert_tf.tasks.squad import squad_options, squad_threshold
from bert_tf.tasks.tagging import schemes
from bert_tf.text import long_documents

import tensorflow as tf
from absl import logging


@dataclasses.dataclass(frozen=True)
class Said:
    """Settings of a model: the user's, and the flags of its run.

    Attributes:
        given: Name -> value of all user settings; None if omitted.
        read: Parses a flag from its name and text; raises ValueError if it is
            invalid.
        folder: Folder of the run; "" without a run.
        texts: Flags of the run, as text.
        path: Path of the checkpoint as passed by the user; None for a run.
    """

    given: Mapping[str, Any]
    read: Callable[[str, str], Any]
    folder: str = ""
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    path: str | None = None

    def user(self, name: str, default: Any = None) -> Any:
        """Returns the user's value, or else the default."""
        value = self.given[name]
        return default if value is None else value

    def any(self, name: str, default: Any) -> Any:
        """Returns the user's value, or else the run's, or else the default."""
        if self.given[name] is not None:
            return self.given[name]
        return self.run(name, lambda text: self.read(name, text), default)

    def run(self, name: str, read: Callable[[str], Any], default: Any) -> Any:
        """Returns the run's flag parsed by `read`, or else the default."""
        if name not in self.texts:
            return default
        try:
            return read(self.texts[name])
        except ValueError as error:
            way_out = f", or give --{name}" * (name in self.given)
            path = os.path.join(self.folder, kept_flags.FILE)
            raise InputError(
                f"{path}, which keeps the flags of the run, is wrong: "
                f"{error}. Bring it back as it was{way_out}."
            ) from error

    def fill(self, made: type[options.Options], **given: Any) -> Any:
        """Returns options from the user, the run or else their defaults.

        Args:
            made: The dataclass of the options.
            given: Values of some of them.
        """
        for field in dataclasses.fields(made):
            name, default = field.name, field.default
            if name in given:
                continue
            if name in self.given:
                given[name] = self.any(name, default)
            else:
                given[name] = self.run(name, options.kind(field), default)
        return made(**given)

    def file(self, name: str) -> str | None:
        """Returns the path of a file in the run's folder, or None."""
        path = os.path.join(self.folder, name)
        return path if self.folder and tf.io.gfile.exists(path) else None

    def vocab(self) -> str | None:
        """Returns the path of the run's vocabulary, or None."""
        return vocabularies.path_in(self.folder) if self.folder else None


def make(
    source: opened.Checkpoint,
    said: Said,
    check: Callable[[str], None] = lambda _: None,
) -> saved_model.Export:
    """Returns a checkpoint's model as a model of raw text.

    Calls `check` with the head before the model is built; it raises InputError
    for settings of another head. Also raises InputError for settings that do
    not fit the checkpoint, or that are required and unknown.
    """
    head = serving_model.find_head(source, said.user("head"))
    check(head)
    files = trained_models.ModelFiles.load(
        said.user("bert_config_file") or said.file(original.CONFIG),
        said.user("vocab_file") or said.vocab(),
        said.any("do_lower_case", None),
        source,
    )
    casing = said.user("do_lower_case")
    if casing is not None and "do_lower_case" not in files.vocabulary.settings:
        raise InputError(
            "--do_lower_case has no effect on a vocabulary of "
            f"{files.vocab.kind}, whose own files decide how text is read. "
            f"Remove the flag. Received: do_lower_case={casing}"
        )
    longest = files.config.max_position_embeddings
    usual = source.max_seq_length or served_heads.HEADS[head].usual_length
    default = min(usual, longest)
    length = said.any("max_seq_length", default)
    own: dict[str, Any] = {}
    if head in _OWN:
        own = _OWN[head](said, source, length)
    elif names.HEADS[head].has_labels:
        own["labels"] = source.labels
        if source.labels is None and said.folder:
            own["labels"] = trained_models.read_labels(said.folder)
    common = {"do_lower_case": files.do_lower_case, "max_seq_length": length}
    return serving_model.make(
        head, source, files, makers.Settings(**common | own)
    )


# ---- Settings of each head --------------------------------------------------

# Functions from settings, checkpoint and length to the head's other fields of
# makers.Settings.


def _encoder(
    said: Said, source: opened.Checkpoint, length: int
) -> dict[str, Any]:
    own = {"unit": "mean", "normalize": False, "features": "last"}
    given = {name: said.user(name) for name in own}
    longest = said.any("max_seq_length", None)
    vectors = sentence_transformers.choose(
        hub.locate(source.path),
        given | {"max_seq_length": longest},
        sentence_transformers.Vectors(
            max_seq_length=length,
            **{name: said.user(name, value) for name, value in own.items()},
        ),
        source.vectors,
    )
    return {
        "choice": feature_layers.Choice(vectors.features),
        "unit": vectors.unit,
        "normalize": vectors.normalize,
        "max_seq_length": vectors.max_seq_length,
    }


def _listing(said: Said, *_: Any) -> dict[str, Any]:
    return {"top_k": said.user("top_k", 5)}


def _classification(
    said: Said, source: opened.Checkpoint, _: int
) -> dict[str, Any]:
    if said.user("task_name") is not None:
        task = _find_task(said.user("task_name"))
    else:
        task = said.run(
            "task_name", lambda x: _find_task(x) if x else None, None
        )
    labels, labels_from = _classes(said, source, task)
    pairs = said.user("pairs")
    if pairs is None:
        pairs = bool(said.texts.get("text_b_column")) or not said.texts
        pairs = task.takes_pairs if task else pairs
    stride = said.run("window_stride", _read_stride, None)
    documents = said.run(
        "long_documents",
        lambda method: long_documents.LongDocuments(method, stride),
        long_documents.LongDocuments(),
    )
    return {
        "labels": labels,
        "labels_from": labels_from,
        "takes_pairs": pairs,
        "is_multi_label": trained_models.is_multi_label(source),
        "documents": documents,
    }


def _classes(
    said: Said, source: opened.Checkpoint, task: classification_task.Task | None
) -> tuple[tuple[str, ...] | None, str]:
    """Returns the labels, None for a score, and the source of the labels."""
    given, is_score = said.user("labels"), said.user("regression", False)
    if given and is_score:
        raise InputError(
            "--labels and --regression contradict each other: leave one out. "
            f"Received: labels={','.join(given)}, regression=True"
        )
    if given:
        label_column.check(given)
    _check_task(said, task)
    if given:
        return tuple(given), "--labels"
    if is_score:
        return None, "--regression"
    if task:
        return task.labels, f"the task {task.name}"
    (count,) = source.shapes["output_bias"]
    # A search has its labels next to the weights of its best trial.
    if said.folder and (said.file(original.LABELS) or not source.labels):
        labels_from = os.path.join(said.folder, original.LABELS)
        labels = trained_models.read_labels(said.folder)
        if labels is None and count > 1:
            raise InputError(
                f"There is no {labels_from}, which names the {count} classes. "
                "Bring it back, or give --labels in the order of training."
            )
        return labels, labels_from
    if count == 1 and not trained_models.is_multi_label(source):
        return None, "the checkpoint"
    if source.labels:
        return source.labels, "the checkpoint"
    defaults = source.default_labels(count)
    if defaults:
        return defaults, "transformers' default"
    raise InputError(
        "The labels are not known. Give --labels, --task_name or --regression. "
        f"Received: a head of {count} classes"
    )


def _check_task(said: Said, task: classification_task.Task | None) -> None:
    """Raises InputError if the named task has other labels than given."""
    name, given = said.user("task_name"), said.user("labels")
    is_score = not given
    if name is None or (is_score and not said.user("regression", False)):
        return
    labels = None if is_score else tuple(given or ())
    if task and task.labels != labels:
        flag = "--regression" if is_score else "--labels"
        has = listed(task.labels) if task.labels else "a score"
        wanted = listed(labels, ",") if labels else "a score"
        raise InputError(
            f"--task_name and {flag} contradict each other, as {task.name} has "
            f"{has}: leave one out. Received: task_name={name}, "
            f"labels={wanted}"
        )


def _read_stride(text: str) -> int:
    if not text.isdecimal():
        raise InputError(
            "--window_stride must be a whole number. "
            f"Received: window_stride={text}"
        )
    return int(text)


def _find_task(name: str) -> classification_task.Task:
    try:
        return glue.find(name)
    except ValueError:
        raise InputError(
            f"--task_name must be one of {', '.join(glue.NAMES)}. For a task "
            "of your own leave it out, and give --labels. "
            f"Received: task_name={name}"
        ) from None


def _tagging(said: Said, source: opened.Checkpoint, _: int) -> dict[str, Any]:
    given: Sequence[str] = said.user("labels", ())
    if given:
        label_column.check(given)
    labels = tuple(given) or source.labels
    if not labels and said.folder:
        labels = trained_models.read_labels(said.folder)
    (count,) = source.shapes["cls/tagging/output_bias"]
    labels = labels or source.default_labels(count)
    if not labels:
        raise InputError(
            "The labels are not known. Give --labels in the order of training. "
            f"Received: a head of {count} labels"
        )
    scheme = said.any("scheme", None)
    if not scheme:
        scheme = schemes.detect_scheme(labels)
        # BIO and IOB1 have the same labels. Runs were checked, and have this
        # flag; without one, I- may start an entity, as in transformers.
        if scheme == "BIO" and "context" not in said.texts:
            scheme = "IOB1"
        logging.info(
            "The labels are read as %s; --scheme names another, such as BIO.",
            scheme,
        )
    return {"labels": labels, "scheme": scheme}


def _span(
    said: Said,
    _: opened.Checkpoint,
    length: int,
    search: type[squad_options.Search] = squad_options.Search,
) -> dict[str, Any]:
    negative = said.any("version_2_with_negative", False)
    threshold = None
    given = said.user("null_score_diff_threshold")
    if given is not None and not negative:
        raise InputError(
            "--null_score_diff_threshold goes with --version_2_with_negative, "
            "of questions without an answer. Received: "
            f"null_score_diff_threshold={given}, version_2_with_negative=False"
        )
    if negative:
        text = said.any("null_score_diff_threshold", "0.0")
        threshold = squad_threshold.find(text, True, said.folder).known()
    return {
        "layout": said.fill(squad_options.Layout, max_seq_length=length),
        "search": said.fill(search, version_2_with_negative=negative),
        "threshold": threshold,
    }


def _seq2seq(said: Said, _: opened.Checkpoint, length: int) -> dict[str, Any]:
    longest = said.run("max_target_length", int, length)
    made = seq2seq_options.Generation
    return {"generation": said.fill(made, max_target_length=longest)}


_OWN: Mapping[str, Callable[..., dict[str, Any]]] = {
    "encoder": _encoder,
    "masked_lm": _listing,
    "next_piece": _listing,
    "classification": _classification,
    "tagging": _tagging,
    "span": _span,
    "joint_span": functools.partial(_span, search=squad_options.JointSearch),
    "seq2seq": _seq2seq,
}
