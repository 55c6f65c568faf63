"""Wraps models of other runtimes as functions of raw text.

The other runtime maps ids to outputs. The rest is as in a SavedModel: the
tokenizer, windows, and the meaning of outputs.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.checkpoints import trained_models
from bert_tf.exporting import saved_model
from bert_tf.tasks import next_sentence_model
from bert_tf.tasks.features import features_model
from bert_tf.tasks.masked_words import masked_words_model
from bert_tf.tasks.multiple_choice import choice_model
from bert_tf.tasks.squad import squad_model, squad_options
from bert_tf.tasks.tagging import tagging_model
from bert_tf.text import long_documents

import tensorflow as tf

Tensors = Mapping[str, tf.Tensor]


class _StandIn:
    """A callable in place of a Keras model, without weights."""

    variables = ()

    def __init__(self, call: Callable[[Tensors], Any], num_labels: int = 0):
        self._call = call
        self.num_labels = num_labels

    def __call__(self, inputs: Tensors) -> Any:
        return self._call(inputs)


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """A model that runs in another runtime.

    Attributes:
        compute: Maps ids to outputs, by the names of the signature `serve_ids`.
        files: Config and vocabulary.
        labels: Labels of a classifier or tagger, else None.
        description: Contents of export.json.
    """

    compute: Callable[[Tensors], dict[str, tf.Tensor]]
    files: trained_models.ModelFiles
    labels: tuple[str, ...] | None
    description: Mapping[str, Any]

    @property
    def _common(self) -> tuple[Any, Any]:
        return self.files.config, self.files.vocabulary

    @property
    def _length(self) -> int:
        return self.description["max_seq_length"]

    def classification(self) -> saved_model.Export:
        """Returns a model from texts, or pairs, to labels or a score."""
        said = self.description
        return saved_model.classifier(
            self._logits(),
            *self._common,
            self.labels,
            self._length,
            said["takes_pairs"],
            said["multi_label"],
            long_documents.LongDocuments(
                said["long_documents"], said["window_stride"]
            ),
        )

    def next_sentence(self) -> saved_model.Export:
        """Returns a model that predicts whether the second text follows."""
        return next_sentence_model.next_sentence(
            self._logits(), *self._common, self._length
        )

    def tagging(self) -> saved_model.Export:
        """Returns a model from a text to its entities."""
        return tagging_model.tagger(
            self._logits(),
            *self._common,
            self.labels or (),
            self.description["scheme"],
            self._length,
        )

    def multiple_choice(self) -> saved_model.Export:
        """Returns a model from a prompt and choices to the best choice."""
        return choice_model.chooser(self._logits(), *self._common, self._length)

    def span(self) -> saved_model.Export:
        """Returns a model from a question and a context to the answer."""

        def logits(inputs: Tensors) -> tuple[tf.Tensor, tf.Tensor]:
            found = self.compute(inputs)
            return found["start_logits"], found["end_logits"]

        model: Any = _StandIn(logits)
        return squad_model.span_finder(
            model,
            *self._common,
            self._fill(squad_options.Layout),
            self._fill(squad_options.Search),
            self.description["null_score_diff_threshold"],
        )

    def encoder(self) -> saved_model.Export:
        """Returns a model from texts, or pairs, to vectors."""
        return features_model.make_export(
            self.compute, (), *self._common, self.description
        )

    def masked_lm(self) -> saved_model.Export:
        """Returns a model that predicts the masked words of a text."""

        def best(inputs: Tensors) -> tuple[tf.Tensor, tf.Tensor]:
            found = self.compute(inputs)
            return found["score"], found["piece_id"]

        return masked_words_model.make_export(
            best, (), *self._common, self._length, self.description["top_k"]
        )

    def _logits(self) -> Any:
        size = self.description["outputs"]["logits"]["shape"][-1]
        return _StandIn(lambda inputs: self.compute(inputs)["logits"], size)

    def _fill(self, kind: Any) -> Any:
        """Returns a dataclass with the settings that the description has.

        Exports of earlier versions lack the options that came later.
        """
        names = [field.name for field in dataclasses.fields(kind)]
        known = [name for name in names if name in self.description]
        return kind(**{name: self.description[name] for name in known})
