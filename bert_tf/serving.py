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
from bert_tf.interop import names, opened
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
    _check_classes(source, "output_bias", labels or ("",), labels)
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
    _check_classes(source, "cls/tagging/output_bias", labels, labels)
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
    source: opened.Checkpoint,
    bias: str,
    classes: Sequence[str],
    labels: Sequence[str] | None,
) -> None:
    """Raises ValueError unless the classes of the checkpoint are the labels."""
    (count,) = source.shapes[bias]
    if count != len(classes):
        raise ValueError(
            f"{source.path} has {count} classes. Give as many --labels, or "
            "--regression for a score. Received: "
            f"labels={','.join(labels) if labels is not None else None}"
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

    return _model(made.files, serve, frozenset(parameters))


def load(path: str) -> Model:
    """Returns the function of a SavedModel.

    Raises:
        ValueError: The folder holds none, or none that was exported here.
    """
    if not tf.io.gfile.exists(os.path.join(path, "saved_model.pb")):
        raise ValueError(
            f"The folder {path} holds no SavedModel: saved_model.pb is not "
            "there. Write one with export_saved_model.py, or give a checkpoint "
            "by --model_dir or --init_checkpoint."
        )
    files = {}
    for name in ("export.json", "labels.txt"):
        text = opened.read_text(os.path.join(path, "assets", name))
        if text is not None:
            files[name] = text
    if "head" not in json.loads(files.get("export.json", "{}")):
        raise ValueError(
            f"The SavedModel {path} was not written by export_saved_model.py "
            "of this version: assets/export.json does not name a head. Export "
            "it again."
        )
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]

    def serve(**columns):
        # Holds the loaded model, which holds the weights.
        return loaded.signatures["serving_default"](**columns)

    inputs = frozenset(signature.structured_input_signature[1])
    return _model(files, serve, inputs)


def _model(
    files: Mapping[str, str], serve: Callable, inputs: frozenset[str]
) -> Model:
    description = json.loads(files["export.json"])
    labels = files.get("labels.txt", "")
    return Model(
        description["head"],
        serve,
        inputs,
        tuple(labels.removesuffix("\n").split("\n")) if labels else (),
        description.get("unit", ""),
        description.get("top_k", 0),
    )
