"""Every head as a function of raw text: of a checkpoint, or of a SavedModel."""

import contextlib
import dataclasses
import inspect
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bert_tf import (
    best,
    checkpoints,
    export,
    export_features,
    export_masked_words,
    export_multiple_choice,
    export_next_sentence,
    export_span,
    export_tagging,
    features,
    fine_tuned,
    heads,
    long_documents,
    modeling,
    options,
)
from bert_tf.interop import names, opened, tf1
from bert_tf.tasks import labels as label_column
from bert_tf.tasks import squad_answers, squad_windows

import keras
import tensorflow as tf
from absl import logging

# What trains a head.
_TRAINERS = {
    "masked_lm": "run_pretraining.py",
    "next_sentence": "run_pretraining.py",
    "classification": "run_classifier.py",
    "tagging": "run_ner.py",
    "span": "run_squad.py",
    "multiple_choice": "run_multiple_choice.py",
}
HEADS = options.SERVED_HEADS
# Of a SavedModel.
_PARTS = (
    "saved_model.pb",
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What was said in training, or is to be said now; each head needs some.

    Attributes:
        do_lower_case: Whether the model reads lower-cased text.
        max_seq_length: Pieces that it reads at a time.
        labels: Of a classifier (None for a regression) or a tagger.
        takes_pairs: Whether a classifier may have a second text.
        is_multi_label: Whether its texts may have several labels.
        documents: How it reads single texts that are too long.
        scheme: How a tagger's labels spell entities.
        layout: How contexts are cut to look for an answer.
        search: How answers are looked for.
        threshold: By how much no answer must be better to be the answer.
        top_k: Pieces to list for a masked word.
        choice: Which layers make a vector.
        unit: What has a vector, of features.UNITS.
        normalize: Whether vectors have the length 1.
        labels_from: What said what the labels are, for errors.
    """

    do_lower_case: bool
    max_seq_length: int
    labels: tuple[str, ...] | None = None
    takes_pairs: bool = True
    is_multi_label: bool = False
    documents: long_documents.LongDocuments | None = None
    scheme: str = ""
    layout: squad_windows.Layout | None = None
    search: squad_answers.Search | None = None
    threshold: float | None = None
    top_k: int = 5
    choice: features.Choice | None = None
    unit: str = "mean"
    normalize: bool = False
    labels_from: str = "--labels"


# ---- Which head -------------------------------------------------------------


def find_head(source: opened.Checkpoint, wanted: str | None) -> str:
    """Returns the head to serve: the one that is wanted, or that there is.

    Raises:
        ValueError: The head is not there or was not trained, or there are
            several.
    """
    if wanted is None:
        found = names.find_head(source.shapes, source.path)
        if found != "pretraining":
            return found
        logging.info(
            "%s was pre-trained: filling masked words. It can tell next "
            "sentences too: --head=next_sentence.",
            source.path,
        )
        return "masked_lm"
    own = names.HEADS[wanted]
    missing = sorted(own.keys() - source.shapes.keys())
    if missing:
        here = source.shapes.keys()
        others = [h for h in HEADS if names.HEADS[h].keys() <= here]
        raise ValueError(
            f"{source.path} has no {wanted} head: {', '.join(missing)} are not "
            f"there. Train it with {_TRAINERS[wanted]}, or give --head="
            f"{' or '.join(others)}. Received: head={wanted}"
        )
    _check_trained(source, wanted)
    return wanted


def _check_trained(source: opened.Checkpoint, head: str) -> None:
    """Raises ValueError if a run left the head as it was.

    Pre-training without next sentences keeps that head, at random values.
    """
    trained = {
        name.rpartition("/")[0]
        for name in (*source.state, *_names_in_run(source))
        if name.endswith(("/adam_m", "/lamb_m"))
    }
    if trained and not names.HEADS[head].keys() <= trained:
        raise ValueError(
            f"{source.path} has a {head} head that its run did not train (as "
            "by data made with --objective=none). Train it with "
            f"{_TRAINERS[head]}, or choose another --head. "
            f"Received: head={head}"
        )


def _names_in_run(source: opened.Checkpoint) -> Collection[str]:
    """Returns what the run of a best checkpoint stores, which has weights only.

    Names of the newest checkpoint of the run that can be read; none if the
    source is not the best of a run.
    """
    own, _ = os.path.split(source.path)
    folder, name = os.path.split(own)
    if source.format != "tf1" or name != best.FOLDER:
        return ()
    for _, prefix in reversed(checkpoints.numbered(folder).items()):
        with contextlib.suppress(checkpoints.UnreadableError):
            return checkpoints.shapes(prefix)
    return ()


# ---- A checkpoint -----------------------------------------------------------


def make(
    head: str,
    source: opened.Checkpoint,
    files: fine_tuned.ModelFiles,
    settings: Settings,
) -> export.Export:
    """Returns a checkpoint's model as one that takes raw text.

    Args:
        head: Of HEADS.
        source: The checkpoint, which has this head.
        files: What belongs to it.
        settings: For the head.

    Raises:
        ValueError: The settings do not fit the model.
    """
    return _MAKERS[head](source, files, settings)


def _restored(head: str, model: keras.Model, source: opened.Checkpoint) -> Any:
    fine_tuned.restore(model, source, head)
    return model


def _common(
    files: fine_tuned.ModelFiles,
) -> tuple[modeling.BertConfig, list[str], bool]:
    """Architecture, pieces and casing: what every export asks for."""
    return files.config, files.pieces(), files.do_lower_case


def _encoder(source, files, settings):
    _, vocab, lower = _common(files)
    return export_features.extractor(
        _restored("encoder", modeling.Bert(files.config), source),
        vocab,
        lower,
        settings.max_seq_length,
        settings.choice,
        settings.unit,
        settings.normalize,
    )


def _masked_lm(source, files, settings):
    model = _restored("masked_lm", heads.BertMaskedLM(files.config), source)
    return export_masked_words.masked_words_finder(
        model, *_common(files), settings.max_seq_length, settings.top_k
    )


def _next_sentence(source, files, settings):
    model = heads.BertNextSentence(files.config)
    return export_next_sentence.next_sentence(
        _restored("next_sentence", model, source),
        *_common(files),
        settings.max_seq_length,
    )


def _classification(source, files, settings):
    labels = settings.labels
    _check_classes(source, "output_bias", settings)
    model = heads.BertClassifier(files.config, len(labels or ("",)))
    return export.classifier(
        _restored("classification", model, source),
        *_common(files),
        labels,
        settings.max_seq_length,
        settings.takes_pairs,
        settings.is_multi_label,
        settings.documents,
    )


def _tagging(source, files, settings):
    labels = settings.labels or ()
    _check_classes(source, "cls/tagging/output_bias", settings)
    model = heads.BertTagger(files.config, len(labels))
    return export_tagging.tagger(
        _restored("tagging", model, source),
        *_common(files),
        labels,
        settings.scheme,
        settings.max_seq_length,
    )


def _span(source, files, settings):
    return export_span.span_finder(
        _restored("span", heads.BertSpanFinder(files.config), source),
        *_common(files),
        settings.layout,
        settings.search,
        settings.threshold,
    )


def _multiple_choice(source, files, settings):
    model = heads.BertMultipleChoice(files.config)
    return export_multiple_choice.chooser(
        _restored("multiple_choice", model, source),
        *_common(files),
        settings.max_seq_length,
    )


_MAKERS: Mapping[
    str,
    Callable[
        [opened.Checkpoint, fine_tuned.ModelFiles, Settings], export.Export
    ],
] = {
    "encoder": _encoder,
    "masked_lm": _masked_lm,
    "next_sentence": _next_sentence,
    "classification": _classification,
    "tagging": _tagging,
    "span": _span,
    "multiple_choice": _multiple_choice,
}


def _check_classes(
    source: opened.Checkpoint, bias: str, settings: Settings
) -> None:
    """Raises ValueError unless the classes of the checkpoint are the labels."""
    (count,) = source.shapes[bias]
    labels = settings.labels
    if count != len(labels or ("",)):
        known = f"has {count} classes"
        way_out = f"Give {count} by --labels, in the order of training"
        if count == 1:
            known = "gives a score, and has no classes"
            way_out = "Give --regression, and no labels"
        names, listed = "means a score", "none, but a score"
        if labels is not None:
            names = f"names {len(labels)}"
            listed = label_column.listed(labels, ",")
        raise ValueError(
            f"{source.path} {known}, and {settings.labels_from} {names}. "
            f"{way_out}. Received: labels={listed}"
        )
    # The order is that of the classes: another one would name them all wrongly.
    named = source.labels
    if named is not None and labels is not None and named != tuple(labels):
        raise ValueError(
            f"{source.path} names its classes {label_column.listed(named)}. "
            "Leave out --labels and --task_name, or give these in this order; "
            "convert_checkpoint.py --labels renames them. "
            f"Received: labels={label_column.listed(labels, ',')}"
        )


# ---- What answers -----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Model:
    """A function of raw text.

    Attributes:
        head: Of HEADS.
        serve: Takes the columns of some rows by name, returns its outputs.
        inputs: The columns that it takes.
        labels: Of a classifier; none of others.
        unit: Of an encoder, what has a vector.
        top_k: Of a masked language model, pieces for each mask.
    """

    head: str
    serve: Callable[..., dict[str, tf.Tensor]]
    inputs: frozenset[str]
    labels: tuple[str, ...]
    unit: str
    top_k: int


def of_export(made: export.Export) -> Model:
    """Returns the function of a model that is not saved."""
    function = made.signatures["serving_default"]
    parameters = inspect.signature(function.python_function).parameters

    def serve(**columns):
        # Holds the module, which holds the weights.
        return made.signatures["serving_default"](**columns)

    description = json.loads(made.files["export.json"])
    labels = made.files.get(tf1.LABELS, "").splitlines()
    return _model(description, labels, serve, frozenset(parameters))


def load(path: str) -> Model:
    """Returns the function of a SavedModel.

    Raises:
        ValueError: The folder holds none, or none that was exported here.
    """
    if not tf.io.gfile.exists(os.path.join(path, "saved_model.pb")):
        problem = "The folder holds no SavedModel: saved_model.pb is not there."
        if not tf.io.gfile.exists(path):
            problem = "There is no such folder."
        elif not tf.io.gfile.isdir(path):
            problem = "This is a file, and a SavedModel is a folder."
        raise ValueError(
            f"{problem} Write one with export_saved_model.py, or give a "
            "checkpoint by --model_dir or --init_checkpoint. "
            f"Received: saved_model={path}"
        )
    assets = os.path.join(path, "assets")
    description = opened.read_json(assets, "export.json")
    if description.get("head") not in HEADS:
        raise ValueError(
            f"The SavedModel {path} was not written by export_saved_model.py "
            "of this version: assets/export.json does not name a head of "
            f"{', '.join(HEADS)}. Export it again. "
            f"Received: head={description.get('head')}"
        )
    labels = tf1.read_labels(
        os.path.join(assets, tf1.LABELS), "Export the model again."
    )
    loaded = _load(path)
    signature = loaded.signatures["serving_default"]
    classes = signature.structured_outputs.get("probabilities")
    if description["head"] == "classification" and classes is not None:
        count = classes.shape[-1]
        if count != len(labels or ()):
            raise ValueError(
                f"The SavedModel {path} has {count} classes, and its "
                f"assets/{tf1.LABELS} names {len(labels or ())}. Export it "
                "again."
            )

    def serve(**columns):
        # Holds the loaded model, which holds the weights.
        return loaded.signatures["serving_default"](**columns)

    inputs = frozenset(signature.structured_input_signature[1])
    return _model(description, labels, serve, inputs)


def _load(path: str) -> Any:
    """Loads a SavedModel; ValueError if it is damaged."""
    try:
        return tf.saved_model.load(path)
    except tf.errors.ResourceExhaustedError:
        raise
    except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
        paths = [os.path.join(path, part) for part in _PARTS]
        plain = next(filter(None, map(checkpoints.not_weights, paths)), None)
        absent = next((x for x in paths if not tf.io.gfile.exists(x)), None)
        reason = plain or f"{str(error)[:200].rstrip('.')}."
        if absent:
            reason = f"{absent} is not there."
        raise ValueError(
            f"The SavedModel {path} is damaged, or not all there: "
            f"{reason} Export it again, or copy the whole folder again."
        ) from error


def _model(
    description: Mapping[str, Any],
    labels: Sequence[str] | None,
    serve: Callable,
    inputs: frozenset[str],
) -> Model:
    return Model(
        description["head"],
        serve,
        inputs,
        tuple(labels or ()),
        description.get("unit", ""),
        description.get("top_k", 0),
    )
