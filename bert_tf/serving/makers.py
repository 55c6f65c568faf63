"""Builds a function of raw text from a checkpoint, for each head."""

import dataclasses
from collections.abc import Callable
from typing import Any

from bert_tf import (
    heads,
    joint_answers,
    modeling,
    replaced_tokens,
    vocabularies,
)
from bert_tf.checkpoints import names, opened, trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError, listed, quoted
from bert_tf.exporting import inference, quantized, saved_model
from bert_tf.seq2seq import decoder, seq2seq_model, seq2seq_options
from bert_tf.tasks import next_piece_model, next_sentence_model, token_detection
from bert_tf.tasks.features import feature_layers, features_model
from bert_tf.tasks.masked_words import masked_words_model
from bert_tf.tasks.multiple_choice import choice_model
from bert_tf.tasks.squad import squad_joint_export, squad_model, squad_options
from bert_tf.tasks.tagging import tagging_model
from bert_tf.text import long_documents

import keras

# The default values of the flags.
_LAYOUT = squad_options.Layout()
_SEARCH = squad_options.Search()
_GENERATION = seq2seq_options.Generation()
_CHOICE = feature_layers.Choice("last")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings from training or from the user; each head needs some of them.

    Attributes:
        max_seq_length: Max number of tokens that it reads at a time.
        labels: Labels of a tagger or classifier (None for a regression).
        takes_pairs: Whether a classifier may have a second text.
        documents: How a classifier reads single texts that are too long.
        scheme: The scheme of a tagger's labels.
        layout: How contexts are cut into windows to find an answer.
        threshold: How much better "no answer" must score to be predicted.
        top_k: Number of tokens to list for a masked word, or after a text.
        choice: The layers that make up a vector.
        unit: What a vector represents, from options.UNITS.
        labels_from: Source of the labels, for error messages.
        weights: Storage format of weights, from options.EXPORT_WEIGHTS.
        generation: How an encoder-decoder writes texts.
    """

    do_lower_case: bool
    max_seq_length: int
    labels: tuple[str, ...] | None = None
    takes_pairs: bool = True
    is_multi_label: bool = False
    documents: long_documents.LongDocuments | None = None
    scheme: str = ""
    layout: squad_options.Layout = _LAYOUT
    search: squad_options.Search = _SEARCH
    threshold: float | None = None
    top_k: int = 5
    choice: feature_layers.Choice = _CHOICE
    unit: str = "mean"
    normalize: bool = False
    labels_from: str = "--labels"
    weights: str = "float32"
    generation: seq2seq_options.Generation = _GENERATION


Maker = Callable[
    [opened.Checkpoint, trained_models.ModelFiles, Settings], saved_model.Export
]


def _restored(
    head: str,
    model: keras.Model,
    source: opened.Checkpoint,
    settings: Settings,
) -> Any:
    """Returns the model for inference, with a checkpoint's weights."""
    trained_models.restore(model, source, head)
    is_int8 = settings.weights == "int8"
    return inference.make_inference_model(
        model,
        weights=quantized.Int8() if is_int8 else None,
        **features_model.reads(settings.choice, settings.unit),
    )


def _common(
    files: trained_models.ModelFiles,
) -> tuple[modeling.BertConfig, vocabularies.Vocabulary]:
    return files.config, files.vocabulary


def _maker(
    head: str,
    make_model: Callable[[keras.Model], keras.Model],
    export: Callable[..., saved_model.Export],
    *options: str,
) -> Maker:
    """Returns the factory of a head whose export takes some of the settings."""

    def make(
        source: opened.Checkpoint,
        files: trained_models.ModelFiles,
        settings: Settings,
    ) -> saved_model.Export:
        model = make_model(families.make(files.config))
        return export(
            _restored(head, model, source, settings),
            *_common(files),
            *(getattr(settings, name) for name in options),
        )

    return make


masked_lm = _maker(
    "masked_lm",
    heads.BertMaskedLM,
    masked_words_model.masked_words_finder,
    *("max_seq_length", "top_k"),
)
next_piece = _maker(
    "next_piece",
    heads.BertNextPiece,
    next_piece_model.next_piece,
    *("max_seq_length", "top_k"),
)
token_detector = _maker(
    "replaced_tokens",
    replaced_tokens.BertReplacedTokens,
    token_detection.detector,
    "max_seq_length",
)
next_sentence = _maker(
    "next_sentence",
    heads.BertNextSentence,
    next_sentence_model.next_sentence,
    "max_seq_length",
)
span = _maker(
    "span",
    heads.BertSpanFinder,
    squad_model.span_finder,
    *("layout", "search", "threshold"),
)
multiple_choice = _maker(
    "multiple_choice",
    heads.BertMultipleChoice,
    choice_model.chooser,
    "max_seq_length",
)


def encoder(
    source: opened.Checkpoint,
    files: trained_models.ModelFiles,
    settings: Settings,
) -> saved_model.Export:
    """Returns a model from texts, or pairs, to vectors."""
    return features_model.extractor(
        _restored("encoder", families.make(files.config), source, settings),
        files.vocabulary,
        settings.max_seq_length,
        settings.choice,
        settings.unit,
        settings.normalize,
    )


def classification(
    source: opened.Checkpoint,
    files: trained_models.ModelFiles,
    settings: Settings,
) -> saved_model.Export:
    """Returns a model from texts, or pairs, to labels or a score."""
    labels = settings.labels
    _check_classes(source, "classification", settings)
    model = heads.BertClassifier(
        families.make(files.config), len(labels or ("",))
    )
    return saved_model.classifier(
        _restored("classification", model, source, settings),
        *_common(files),
        labels,
        settings.max_seq_length,
        settings.takes_pairs,
        settings.is_multi_label,
        settings.documents,
    )


def tagging(
    source: opened.Checkpoint,
    files: trained_models.ModelFiles,
    settings: Settings,
) -> saved_model.Export:
    """Returns a model from a text to its entities."""
    labels = settings.labels or ()
    _check_classes(source, "tagging", settings)
    model = heads.BertTagger(families.make(files.config), len(labels))
    return tagging_model.tagger(
        _restored("tagging", model, source, settings),
        *_common(files),
        labels,
        settings.scheme,
        settings.max_seq_length,
    )


def joint_span(
    source: opened.Checkpoint,
    files: trained_models.ModelFiles,
    settings: Settings,
) -> saved_model.Export:
    """A question and a context -> the answer, by the joint head."""
    search = settings.search
    if not isinstance(search, squad_options.JointSearch):
        search = squad_options.JointSearch(**dataclasses.asdict(search))
    model = joint_answers.BertJointSpanFinder(
        families.make(files.config), search.start_n_top, search.end_n_top
    )
    return squad_joint_export.joint_span_finder(
        _restored("joint_span", model, source, settings),
        *_common(files),
        settings.layout,
        search,
        settings.threshold,
    )


def seq2seq(
    source: opened.Checkpoint,
    files: trained_models.ModelFiles,
    settings: Settings,
) -> saved_model.Export:
    """Returns a model from a text to the text it writes."""
    if settings.weights == "int8":
        raise InputError(
            "An encoder-decoder is exported in float32 only. "
            f"Received: weights={settings.weights}"
        )
    model = decoder.Seq2Seq(families.make(files.config))
    trained_models.restore(model, source, "seq2seq")
    model.search = seq2seq_model.make_search(
        files.vocabulary, settings.generation
    )
    return seq2seq_model.writer(
        model, files.vocabulary, settings.max_seq_length
    )


def _check_classes(
    source: opened.Checkpoint, head: str, settings: Settings
) -> None:
    """Raises InputError unless the labels match the checkpoint's classes."""
    (count,) = source.shapes[names.HEADS[head].bias]
    labels = settings.labels
    if count != len(labels or ("",)):
        known = f"has {count} classes"
        way_out = f"Give {count} by --labels, in the order of training"
        if count == 1:
            known = "gives a score, and has no classes"
            way_out = "Give --regression, and no labels"
        named_by, received = "means a score", "none, but a score"
        if labels is not None:
            named_by = f"names {len(labels)}"
            received = listed(labels, ",")
        raise InputError(
            f"{source.path} {known}, and {settings.labels_from} {named_by}. "
            f"{way_out}. Received: labels={received}"
        )
    # Labels must be in the order of the classes, or they would be misnamed.
    named = source.labels
    if named is not None and labels is not None and named != tuple(labels):
        raise InputError(
            f"{source.path} names its classes {', '.join(map(quoted, named))}. "
            "Leave out --labels and --task_name, or give these in this order; "
            "convert_checkpoint.py --labels renames them. "
            f"Received: labels={listed(labels, ',')}"
        )
