"""BERT as models of Keras, from any checkpoint.

`compile`, `fit`, `evaluate`, `predict`, functional models, `.keras` files,
`clone_model` and `export` work as with Keras' models. Training uses dropout; to
fix its seeds, call `keras.utils.set_random_seed` before you make the model:

    from bert_tf.api import models

    model = models.BertClassifier.from_checkpoint(
        "uncased_L-12_H-768_A-12/bert_model.ckpt", labels=["bad", "good"]
    )
    model.compile(
        keras.optimizers.AdamW(2e-5),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit({"input_ids": ids, "attention_mask": mask}, labels)

Heads return logits in float32, so losses need `from_logits=True`. Importing
this module registers these classes, which `keras.saving.load_model` needs; for
a model that takes texts, import `bert_tf.Tokenizer` as well. The letters of
shapes are explained in bert_tf/modeling.py.

The variables' paths are the names in the released checkpoints, in functional
models as well, and whatever a model's name is: they are set when `Bert` is
constructed. If a layer constructs it in `build` or `call`, the layer's path is
their prefix.
"""

import dataclasses
import numbers
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

from bert_tf import heads, modeling
from bert_tf.api import (
    arguments,
    keras_methods,
    lora_methods,
    model_paths,
    sources,
    text_reading,
)
from bert_tf.checkpoints import adapters
from bert_tf.encoders import families, lora_layers, watching
from bert_tf.errors import InputError

import keras
import tensorflow as tf
from absl import logging

_Path: TypeAlias = str | os.PathLike[str]
_registered = keras.saving.register_keras_serializable("bert_tf")


@_registered
class Bert(keras_methods.Methods, lora_methods.WithLora, modeling.Bert):
    """BERT without a head: a layer for custom models.

    Returns `BertOutputs`: `sequence` [B, S, D], `pooled` [B, D], `embeddings`,
    and `layers`. As a layer of a functional model:

        inputs = {
            name: keras.Input([None], dtype="int32", name=name)
            for name in ("input_ids", "input_mask")
        }
        bert = Bert.from_checkpoint("bert_model.ckpt")
        scores = keras.layers.Dense(1)(bert(inputs).pooled)
        model = keras.Model(inputs, scores)

    To freeze weights, set `bert.trainable = False`,
    `bert.embeddings.trainable = False`, or the same for some of
    `bert.encoder.layers`.

    Attributes:
        reading: How the texts of its checkpoint became ids; None without a
            checkpoint.
    """

    reading: text_reading.Reading | None = None

    def make_parts(self) -> None:
        """Makes its parts; InputError for encoders that compute otherwise."""
        model: Any = families.find(self.config).model
        lends = getattr(model, "lends_parts", False)
        parts = () if lends else ("make_parts", "build_parts")
        if any(
            getattr(model, x, None) is not getattr(modeling.Bert, x)
            for x in ("call", "mask", *parts)
        ):
            raise InputError(
                "The Python API has no class for this encoder: use "
                "bert_tf.encoders.families.make, or the scripts. "
                f"Received: model_type={self.config.model_type!r}"
            )
        self.scope = model.scope
        self.embeddings_class = getattr(
            model, "any_padding_embeddings_class", model.embeddings_class
        )
        if lends:
            model.make_parts(self)
        else:
            super().make_parts()

    def build_parts(self) -> None:
        """Makes their variables."""
        model: Any = families.find(self.config).model
        if model.lends_parts:
            model.build_parts(self)
        else:
            super().build_parts()

    @classmethod
    @arguments.in_words_of_python()
    def from_checkpoint(
        cls, path: _Path, bert_config_file: _Path | None = None, **kwargs: Any
    ) -> Self:
        """Returns the encoder of a checkpoint.

        Args:
            path: A TF1 checkpoint, the folder of a run, the folder or name of
                a Hugging Face model or of a KerasHub preset.
            bert_config_file: Config, if none is next to the weights.
            **kwargs: Arguments of any Keras model: `name`, `dtype`.
        """
        path = model_paths.as_text(path)
        source = sources.open_best(path)
        model = cls(sources.config_of(source, bert_config_file), **kwargs)
        sources.restore(model.variables, source)
        model.reading = text_reading.Reading.from_checkpoint(path, source)
        return model

    @classmethod
    @arguments.in_words_of_python()
    def from_config_file(cls, path: _Path, **kwargs: Any) -> Self:
        """Returns an encoder of random weights by a bert_config.json."""
        return cls(families.read_config(path), **kwargs)

    def attention_maps(self, inputs: Any) -> list[tf.Tensor]:
        """Returns the attention probabilities of each layer, L times.

        Each is float32 [B, N, S, S], from queries to keys, without dropout: the
        `attentions` of transformers.

        Args:
            inputs: The model's inputs, or texts.
        """
        with watching.watched(self) as layers:
            self(inputs, training=False)
        scores = (
            tf.matmul(x.queries, x.keys, transpose_b=True) for x in layers
        )
        return [
            tf.nn.softmax(tf.cast(score, tf.float32) + x.mask)
            for score, x in zip(scores, layers, strict=True)
        ]

    def _parts(self) -> dict[str, keras.layers.Layer]:
        """The layers that files of older versions call frozen."""
        parts: dict[str, keras.layers.Layer] = {
            "embeddings": self.embeddings,
            "pooler": self.pooler,
        }
        if self.mapping is not None:
            parts["mapping"] = self.mapping
        # Layers that share weights are one.
        distinct = dict.fromkeys(self.encoder.layers)
        return parts | {f"layer_{i}": x for i, x in enumerate(distinct)}

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes the same model of, but weights."""
        return super().get_config() | {
            "bert_config": families.to_values(self.config),
            "frozen": _frozen(self),
            "reading": self.reading and self.reading.to_config(),
            "lora": self.lora and dataclasses.asdict(self.lora),
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Any = None
    ) -> Self:
        """Returns a model of random weights, with the same layers frozen."""
        values = dict(config)
        trainable, frozen = values.pop("trainable", True), values.pop("frozen")
        architecture = families.from_values(values.pop("bert_config"))
        known, lora = values.pop("reading", None), values.pop("lora", None)
        model = cls(architecture, **values)
        if lora:
            targets = tuple(lora["targets"])
            model.lora = lora_layers.Lora(**lora | {"targets": targets})
            lora_layers.enable(model, model.lora)
        if known:
            model.reading = text_reading.Reading.from_config(known)
        # Afterwards, so that it reaches every layer.
        model.trainable = trainable
        for name in model._parts().keys() & frozen:
            model._parts()[name].trainable = False
        _freeze(model, frozen)
        return model


def _frozen(model: keras.Model) -> list[str]:
    """Returns the paths of the variables whose layer is frozen."""
    return [
        variable.path
        for layer in model._flatten_layers(include_self=False)
        if not layer.trainable
        for variable in layer._trainable_variables
        + layer._non_trainable_variables
    ]


def _freeze(model: keras.Model, frozen: Sequence[str]) -> None:
    """Freezes the layers all of whose variables have these paths."""
    for layer in model._flatten_layers(include_self=False):
        paths = {v.path for v in layer.variables}
        if paths and paths <= {*frozen}:
            layer.trainable = False


class _Head(keras_methods.Methods, heads.Model):
    """What the public models with a head share.

    Attributes:
        head: A key of checkpoints.names.HEADS.
    """

    @classmethod
    def _from_source(cls, path, source, bert_config_file, kwargs, *args):
        config = sources.config_of(source, bert_config_file)
        bert = Bert(config, **_dtype_of(kwargs))
        bert.reading = text_reading.Reading.from_checkpoint(
            path, source, cls.head
        )
        model = cls(bert, *args, **kwargs)
        unread = () if cls.reads_pooled else families.find(config).pooler
        sources.restore(model.variables, source, unread)
        return model

    @classmethod
    @arguments.in_words_of_python()
    def from_config_file(cls, path: _Path, *args: Any, **kwargs: Any) -> Self:
        """Returns a model of random weights by a bert_config.json.

        Args:
            path: Of the file.
            *args: What the class takes after `bert`.
            **kwargs: Likewise, and `name`, `dtype`.
        """
        bert = Bert.from_config_file(path, **_dtype_of(kwargs))
        return cls(bert, *args, **kwargs)

    def save_lora(self, folder: _Path) -> None:
        """Writes the encoder's matrices and the head as an adapter of PEFT.

        Args:
            folder: The new folder.

        Raises:
            InputError: The encoder has no LoRA, or PEFT has no such head.
        """
        adapters.save(self.bert, folder, with_head=self)

    def load_lora(self, folder: _Path) -> None:
        """Adds an adapter of PEFT to the encoder, and loads its trained head.

        PEFT stores a head next to the matrices, by `modules_to_save`. Without
        it, the head keeps its weights, with a warning.

        Args:
            folder: The folder that PEFT or `save_lora` wrote.

        Raises:
            InputError: It has no LoRA, or one of another model or head.
        """
        adapters.load(self.bert, folder, self)

    # Keras would warn of variables without a gradient.
    @property
    def trainable_weights(self) -> list[keras.Variable]:
        """As Keras has them, but those that no output depends on."""
        weights = super().trainable_weights
        if self.reads_pooled:
            return weights
        unread = {id(variable) for variable in self.bert.pooler.variables}
        return [v for v in weights if id(v) not in unread]

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """The same as `trainable_weights`."""
        return self.trainable_weights

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes the same model of, but weights."""
        # When Keras saves a file, it adds an ID to the config of an object that
        # it serializes again. By this ID, heads share an encoder when loaded.
        for _ in range(2):
            bert = keras.saving.serialize_keras_object(self.bert)
        own = {"bert": bert}
        # Only where needed: a subclass may have its own `from_config`.
        if frozen := _frozen(self):
            own["frozen"] = frozen
        return super().get_config() | own

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Any = None
    ) -> Self:
        """Returns a model of random weights, with the same layers frozen."""
        values = dict(config)
        trainable = values.pop("trainable", True)
        frozen = values.pop("frozen", ())
        bert = keras.saving.deserialize_keras_object(
            values.pop("bert"), custom_objects
        )
        model = cls(bert, **values)
        if not trainable:
            # Afterwards, so that it reaches every layer.
            model.trainable = False
        _freeze(model, frozen)
        return model


def _dtype_of(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a head that its encoder takes as well."""
    return {"dtype": kwargs["dtype"]} if "dtype" in kwargs else {}


class _Unlabelled(_Head):
    """A head whose outputs are the same for all."""

    @classmethod
    @arguments.in_words_of_python()
    def from_checkpoint(
        cls, path: _Path, bert_config_file: _Path | None = None, **kwargs: Any
    ) -> Self:
        """Returns the model of a checkpoint.

        A head that the checkpoint lacks starts from random values, and a
        warning says so.

        Args:
            path: A TF1 checkpoint, the folder of a run, the folder or name of
                a Hugging Face model or of a KerasHub preset.
            bert_config_file: Config, if none is next to the weights.
            **kwargs: Arguments of any Keras model: `name`, `dtype`.
        """
        path = model_paths.as_text(path)
        source = sources.open_best(path)
        return cls._from_source(path, source, bert_config_file, kwargs)


def _checked_labels(labels: Any) -> tuple[str, ...] | int:
    """Returns names of classes or their number; InputError for other values."""
    if hasattr(labels, "tolist"):  # Of NumPy and pandas.
        labels = labels.tolist()
    is_number = isinstance(labels, numbers.Integral)
    if is_number and not isinstance(labels, bool) and labels > 0:
        return int(labels)
    if (
        not isinstance(labels, list | tuple)
        or not labels
        or not all(isinstance(x, str) for x in labels)
        or len({*labels}) < len(labels)
    ):
        raise InputError(
            "labels must be a list or array of the names of the classes, each "
            f"once, or the number of classes. Received: labels={labels!r}"[:400]
        )
    return tuple(labels)


class _Labelled(_Head):
    """A head whose classes have names.

    Attributes:
        labels: The names, or None where only their number is known.
    """

    def __init__(
        self, bert: modeling.Bert, labels: Sequence[str] | int, **kwargs: Any
    ):
        labels = _checked_labels(labels)
        number = labels if isinstance(labels, int) else len(labels)
        # By name, as it is the next class of a subclass that takes it.
        super().__init__(bert, num_labels=number, **kwargs)
        self.number = number
        self.labels = None if isinstance(labels, int) else labels

    @classmethod
    @arguments.in_words_of_python()
    def from_checkpoint(
        cls,
        path: _Path,
        labels: Sequence[str] | int | None = None,
        bert_config_file: _Path | None = None,
        **kwargs: Any,
    ) -> Self:
        """Returns the model of a checkpoint.

        Args:
            path: A TF1 checkpoint, the folder of a run, the folder or name of
                a Hugging Face model or of a KerasHub preset.
            labels: Names of the classes, or their number; 1 makes a classifier
                predict a score. By default the labels of the checkpoint's head.
                If they differ, or it has no head, a new head starts from random
                values, with a warning.
            bert_config_file: Config, if none is next to the weights.
            **kwargs: Arguments of any Keras model: `name`, `dtype`.
        """
        path = model_paths.as_text(path)
        labels = None if labels is None else _checked_labels(labels)
        source = sources.open_best(path)
        source, labels = sources.fit_labels(source, cls.head, labels)
        return cls._from_source(path, source, bert_config_file, kwargs, labels)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes the same model of, but weights."""
        labels = list(self.labels) if self.labels else self.number
        return super().get_config() | {"labels": labels}


@_registered
class BertClassifier(_Labelled, heads.BertClassifier):
    """A class, or a score, for each text or pair of texts: logits [B, C].

        model = BertClassifier.from_checkpoint(path, labels=["bad", "good"])
        model.compile(
            keras.optimizers.AdamW(2e-5),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.fit(inputs, numbers_of_labels)

    Of texts with several labels the loss is `BinaryCrossentropy(from_logits=
    True)`, with targets [B, C]; of a score (labels=1) "mse".
    """

    head = "classification"

    def make_train_function(self, force=False):
        """Makes the step of `fit`, and warns of the loss of some scores."""
        act = self.bert.config.score_act
        fits = getattr(self.loss, "from_logits", False)
        if act != "linear" and not fits and self.train_function is None:
            logging.warning(
                "The score was trained with a %s, and the model returns its "
                "logits. Train it with BinaryCrossentropy(from_logits=True) "
                "and targets from 0 to 1. If you train it with other losses, "
                "such as mse, export it with regression=True.",
                act,
            )
        return super().make_train_function(force)

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints Keras' summary, with a row for the head.

        The head's weights are in no layer, because their names in checkpoints
        have no prefix.
        """
        head = heads.LinearHead(self.bert.config, self.number, name="head")
        head.output_weights = self.output_weights
        head.output_bias = self.output_bias
        head.built = True
        shown = _WithLayers(self, [*self.layers, head])
        keras.Model.summary(shown, *args, **kwargs)


class _WithLayers:
    """A model with other `layers`, for Keras' summary."""

    def __init__(self, model: keras.Model, layers: list[keras.layers.Layer]):
        self.layers = layers
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@_registered
class BertTagger(_Labelled, heads.BertTagger):
    """A label for each token: logits [B, S, C].

    model = BertTagger.from_checkpoint(path, labels=["O", "B-PER", "I-PER"])
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1
    )
    model.compile("adam", loss)
    model.fit(inputs, labels_by_token)  # -1: ignored
    """

    head = "tagging"


@_registered
class BertSpanFinder(_Unlabelled, heads.BertSpanFinder):
    """Where an answer starts and ends: two logits, each [B, S].

    model = BertSpanFinder.from_checkpoint(path)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", [loss, loss])
    model.fit(inputs, (starts, ends))
    """

    head = "span"


@_registered
class BertMultipleChoice(_Unlabelled, heads.BertMultipleChoice):
    """Which of K continuations is right: logits [B, K] for inputs [B, K, S].

    model = BertMultipleChoice.from_checkpoint(path)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(inputs, right_choices)
    """

    head = "multiple_choice"
    exported = (keras_methods.INPUTS, 3)


_WITH_MASKS = (*keras_methods.INPUTS, "masked_lm_positions")


@_registered
class BertMaskedLM(_Unlabelled, heads.BertMaskedLM):
    """The words at `masked_lm_positions` [B, P]: logits [B, P, V].

    model = BertMaskedLM.from_checkpoint(path)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(inputs, masked_lm_ids, sample_weight=masked_lm_weights)
    """

    head = "masked_lm"
    takes_texts = False
    exported = (_WITH_MASKS, 2)


@_registered
class BertNextSentence(_Unlabelled, heads.BertNextSentence):
    """Whether the second text follows the first: logits [B, 2], 0 if it does.

    model = BertNextSentence.from_checkpoint(path)
    probabilities = keras.ops.softmax(model.predict(inputs))
    """

    head = "next_sentence"


@_registered
class BertPretrainer(_Unlabelled, heads.BertPretrainer):
    """Masked words and next sentences: logits [B, P, V] and [B, 2].

    model = BertPretrainer.from_config_file("bert_config.json")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", [loss, loss])
    model.fit(inputs, (masked_lm_ids, next_sentence_labels))
    """

    head = "pretraining"
    takes_texts = False
    exported = (_WITH_MASKS, 2)
