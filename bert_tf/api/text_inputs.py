"""Texts as inputs of the Keras models.

Texts are tokenized before the compiled step, so XLA and strategies see integers
only: texts in memory all at once, texts of a data set when they are read. The
letters of shapes are explained in bert_tf/modeling.py.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.api import text_reading
from bert_tf.api import tokenizer as api_tokenizer
from bert_tf.errors import InputError
from bert_tf.serving import served_heads
from bert_tf.tasks.multiple_choice import choice_graph

import keras
import numpy as np
import tensorflow as tf
from absl import logging

# The keys of a dictionary of texts.
_FIRST = ("text_a", "text", "question", "prompt")
_SECOND = ("text_b", "context", "choices")
_TOKENIZED = ("input_ids", "inputs_embeds")
# Texts that are tokenized together.
_CHUNK = 1024
_MOST_LABELS = 10  # in an error
_NOT_DENSE = (tf.RaggedTensor, tf.SparseTensor)


def is_texts(value: Any) -> bool:
    """Whether inputs are texts: arrays, tensors or lists of them, or pairs."""
    if isinstance(value, Mapping):
        is_tokenized = any(name in value for name in _TOKENIZED)
        return not is_tokenized and any(name in value for name in _FIRST)
    if isinstance(value, list | tuple):
        return not value or any(map(is_texts, value))
    if isinstance(value, str | bytes):
        return True
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return False
    if isinstance(dtype, tf.DType):
        return dtype == tf.string
    # Of NumPy, Keras and pandas.
    return str(dtype) in ("object", "string", "str") or (
        getattr(dtype, "kind", "") in ("U", "S")
    )


class WithTexts(keras.Model):
    """The methods of a Keras model that also take texts."""

    head: str = "encoder"
    takes_texts = True

    @property
    def tokenizer(self) -> api_tokenizer.Tokenizer | None:
        """The tokenizer of the model's texts; None without a vocabulary.

        By default it has the checkpoint's vocabulary and the sequence length of
        its run, or else of the checkpoint whose head is used, else 128 tokens,
        or 384 for question answering. Set it to use another length or
        vocabulary, for all heads of the encoder: `.keras` files and exports
        keep both.

        A classifier of a run with `--long_documents=tail` or `head_tail` passes
        `long_documents` to it.
        """
        bert = self._encoder()
        found = getattr(bert, "_tokenizer", None)
        reading = getattr(bert, "reading", None)
        if found is not None or reading is None or reading.vocab is None:
            return found
        # By length: heads on one encoder may differ in it. Keras would take
        # tokenizers in an attribute for layers.
        made = bert.__dict__.setdefault("_default_tokenizers", {})
        length = self._sequence_length(reading)
        if length not in made:
            made[length] = api_tokenizer.Tokenizer(
                reading.vocab.to_config(),
                reading.lower_cases(),
                length,
                reading.pad_to_max,
                reading.masks,
            )
        return made[length]

    @tokenizer.setter
    def tokenizer(self, tokenizer: api_tokenizer.Tokenizer) -> None:
        bert: Any = self._encoder()
        if not isinstance(tokenizer, api_tokenizer.Tokenizer):
            raise InputError(
                "tokenizer must be a bert_tf.Tokenizer. "
                f"Received: tokenizer={tokenizer!r}"[:400]
            )
        vocabulary = tokenizer._tokenizer.vocabulary
        bert.config.check_vocabulary(vocabulary, "The vocabulary")
        known = bert.reading or text_reading.NOTHING_KNOWN
        flags = {
            "do_lower_case": str(tokenizer.do_lower_case).lower(),
            "max_seq_length": str(tokenizer.max_seq_length),
        }
        bert.reading = dataclasses.replace(
            known,
            vocab=tokenizer.files,
            do_lower_case=tokenizer.do_lower_case,
            pad_to_max=tokenizer.pad_to_max,
            masks=tokenizer.masks,
            flags={**known.flags, **flags},
        )
        object.__setattr__(bert, "_tokenizer", tokenizer)

    def __setattr__(self, name: str, value: Any) -> None:
        """Hides the tokenizer from Keras, which would take it for a layer."""
        if name == "tokenizer":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def _encoder(self) -> Any:
        return getattr(self, "bert", self)

    def _sequence_length(self, reading: text_reading.Reading) -> int:
        length = reading.flags.get("max_seq_length")
        if length is not None:
            return int(length)
        head = served_heads.HEADS.get(self.head, served_heads.HEADS["encoder"])
        usual = reading.length_for(self.head) or head.usual_length
        return min(usual, self._encoder().config.max_position_embeddings)

    # ---- Keras' methods ------------------------------------------------------

    def __call__(self, inputs, *args, **kwargs):
        """Computes the outputs of a batch, which may be of texts."""
        return super().__call__(self._tokenize(inputs), *args, **kwargs)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        *args,
        **kwargs,
    ):
        """Trains as Keras' `fit`; `x` and validation data may be of texts."""
        x, y = self._tokenize_data(x, y)
        if isinstance(validation_data, list | tuple):
            x_and_y, rest = validation_data[:2], validation_data[2:]
            validation_data = (
                *self._tokenize_data(*x_and_y),
                *map(_of_outputs, rest),
            )
        else:
            validation_data, _ = self._tokenize_data(validation_data)
        return super().fit(
            x,
            y,
            batch_size,
            epochs,
            verbose,
            callbacks,
            validation_split,
            validation_data,
            *args,
            **_with_arrays(kwargs),
        )

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """Evaluates as Keras' `evaluate`; `x` may be of texts."""
        x, y = self._tokenize_data(x, y)
        return super().evaluate(x, y, *args, **_with_arrays(kwargs))

    def predict(self, x, *args, **kwargs):
        """Predicts as Keras' `predict`; `x` may be of texts."""
        x, _ = self._tokenize_data(x, reads_targets=False)
        return super().predict(x, *args, **kwargs)

    def train_on_batch(self, x, y=None, sample_weight=None, *args, **kwargs):
        """Trains as Keras' `train_on_batch`; `x` may be of texts."""
        x, y = self._tokenize_data(x, y)
        weights = _of_outputs(sample_weight)
        return super().train_on_batch(x, y, weights, *args, **kwargs)

    def test_on_batch(self, x, y=None, sample_weight=None, *args, **kwargs):
        """Evaluates as Keras' `test_on_batch`; `x` may be of texts."""
        x, y = self._tokenize_data(x, y)
        weights = _of_outputs(sample_weight)
        return super().test_on_batch(x, y, weights, *args, **kwargs)

    def predict_on_batch(self, x):
        """Predicts as Keras' `predict_on_batch`; `x` may be of texts."""
        return super().predict_on_batch(self._tokenize_data(x)[0])

    # ---- Tokenizing ----------------------------------------------------------

    def _tokenize_data(
        self, x: Any, y: Any = None, reads_targets: bool = True
    ) -> tuple[Any, Any]:
        """Returns Keras' `x` and `y` with the texts of `x` tokenized."""
        self._check_targets(y)
        if isinstance(x, tf.data.Dataset):
            return self._tokenize_dataset(x, reads_targets), y
        if not is_texts(x):
            return _as_inputs(x), _of_outputs(y)
        first, second = _pair(x)
        if any(isinstance(texts, _NOT_DENSE) for texts in (first, second)):
            return self._tokenize(x), y  # raises InputError
        # Here, so that errors count from the first text.
        api_tokenizer.check_texts(first, "text_a")
        api_tokenizer.check_texts(second, "text_b")
        if second is not None and len(first) != len(second):
            raise InputError(
                "A pair must have as many second texts as first ones. "
                f"Received: {len(first)} and {len(second)} texts"
            )
        chunks = [
            self._tokenize(
                first[i : i + _CHUNK]
                if second is None
                else (first[i : i + _CHUNK], second[i : i + _CHUNK])
            )
            for i in range(0, len(first), _CHUNK)
        ]
        # A list as long as the texts has their rows, except for two outputs.
        is_of_rows = isinstance(y, list) and len(y) == len(first)
        make = _as_arrays if is_of_rows and self.head != "span" else _of_outputs
        return _joined(chunks), make(y)

    def _tokenize_dataset(
        self, dataset: tf.data.Dataset, reads_targets: bool
    ) -> tf.data.Dataset:
        spec = dataset.element_spec
        is_row = isinstance(spec, tuple)
        has_targets = is_row and len(spec) > 1
        if reads_targets and has_targets:
            self._check_targets(spec[1])
        if not is_texts(spec[0] if is_row else spec):
            return dataset
        if not reads_targets and has_targets and is_texts(spec[1]):
            logging.warning(
                "predict takes the second element of (texts, texts) for "
                "targets, and does not read it. If these are pairs, make the "
                "data set of ((first, second),) or of dictionaries."
            )

        # Errors keep their type and message.
        @tf.autograph.experimental.do_not_convert
        def tokenize(x, *rest):
            inputs = self._tokenize(x)
            return (inputs, *rest) if is_row else inputs

        return dataset.map(tokenize, tf.data.AUTOTUNE).prefetch(
            tf.data.AUTOTUNE
        )

    def _check_targets(self, targets: Any) -> None:
        """Raises InputError for names of classes, which no loss takes."""
        while isinstance(targets, list | tuple) and targets:
            targets = targets[0]
        if str(getattr(targets, "dtype", "")) == "object":
            targets = next(iter(np.asarray(targets).flat), None)
        if isinstance(targets, list | tuple) or not is_texts(targets):
            return
        labels = getattr(self, "labels", None)
        way = "Number the classes from 0"
        if labels:
            names = dict(enumerate(labels[:_MOST_LABELS]))
            way = f"Pass [model.labels.index(x) for x in y], here of {names}"
        raise InputError(
            "The targets y must be numbers of classes, not their names. "
            f"{way}. Received: y={targets!r}"[:400]
        )

    def _tokenize(self, inputs: Any) -> Any:
        """Returns a batch of texts as integers, [B, S]; others as they are."""
        if not is_texts(inputs):
            return _as_inputs(inputs)
        tokenizer = self._known_tokenizer()
        first, second = _pair(inputs)
        if self.head == "multiple_choice":
            return _tokenize_choices(tokenizer, first, second)
        if second is not None:
            return tokenizer(first, second)
        flags = self._encoder().reading.flags_for(self.head)
        method = flags.get("long_documents", "head")
        # Subclasses of Tokenizer need not know the argument.
        how = {} if method == "head" else {"long_documents": method}
        return tokenizer(first, **how)

    def _known_tokenizer(self) -> api_tokenizer.Tokenizer:
        name = type(self).__name__
        if not self.takes_texts:
            raise InputError(
                f"{name} needs masked_lm_positions besides the tokens: use "
                "bert_tf.Tokenizer, and pass a dictionary. Received: texts"
            )
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise InputError(
                f"This {name} knows no vocabulary to tokenize texts with, as "
                "it is of no checkpoint: set model.tokenizer = "
                "bert_tf.Tokenizer(path), or pass what such a tokenizer "
                "returns. Received: texts"
            )
        return tokenizer


def _pair(inputs: Any) -> tuple[Any, Any]:
    """Returns the first texts and the second ones, None of single texts.

    One text is a list of one.
    """
    if isinstance(inputs, Mapping):
        keys = [
            next((x for x in names if x in inputs), None)
            for names in (_FIRST, _SECOND)
        ]
        first, second = (x and inputs[x] for x in keys)
        for key in inputs:
            if key not in (*keys, "id") and is_texts(inputs[key]):
                raise InputError(
                    f"Expected texts named {' or '.join(_FIRST)}, and second "
                    f"texts named {' or '.join(_SECOND)}. Rename or remove "
                    f"{key!r}. Received: {', '.join(map(str, inputs))}"
                )
    elif isinstance(inputs, tuple):
        if len(inputs) != 2:
            raise InputError(
                "A tuple of texts must be a pair: first texts and second "
                f"texts. Received: {len(inputs)} elements"
            )
        first, second = inputs
    elif isinstance(inputs, list) and inputs and isinstance(inputs[0], tuple):
        for i, value in enumerate(inputs):
            if not isinstance(value, tuple) or len(value) != 2:
                raise InputError(
                    f"texts[{i}]: expected a pair of texts, as in texts[0]. "
                    f"Received: {value!r}"[:400]
                )
        first, second = (list(x) for x in zip(*inputs, strict=True))
    else:
        first, second = inputs, None
    first = _as_batch(first)
    if isinstance(first, list | tuple | np.ndarray) and not len(first):
        raise InputError(
            f"Expected a text, or a list of at least one. Received: {inputs!r}"[
                :400
            ]
        )
    return first, second if second is None else _as_batch(second)


def _as_batch(texts: Any) -> Any:
    if isinstance(texts, str | bytes):
        return [texts]
    if isinstance(texts, tf.Tensor | np.ndarray) and texts.shape == ():
        return texts[tf.newaxis]
    # A pandas Series is indexed by its labels.
    is_frame = hasattr(texts, "dtype") and hasattr(texts, "to_numpy")
    return texts.to_numpy(object) if is_frame else texts


def _tokenize_choices(
    tokenizer: api_tokenizer.Tokenizer, prompts: Any, choices: Any
) -> dict[str, tf.Tensor]:
    """Tokenizes prompts [B] with their choices [B, K]: [B, K, S]."""
    try:
        prompts = tf.convert_to_tensor(prompts, tf.string)
        choices = tf.convert_to_tensor(choices, tf.string)
        shape = prompts.shape.concatenate([None])
        choices = tf.ensure_shape(choices, shape.with_rank(2))
    except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
        raise InputError(
            "Multiple choice takes a pair: prompts [batch], and lists of "
            "choices [batch, choices], as many for each prompt: pad them with "
            f'"". Received: {type(choices).__name__}'
        ) from error
    rows, _ = choice_graph.pack(
        *(tokenizer._tokenizer, prompts, choices),
        *(tokenizer.max_seq_length, tokenizer.pad_to_max),
    )
    return rows


def _joined(chunks: list[dict[str, tf.Tensor]]) -> dict[str, np.ndarray]:
    """Joins batches [B, ..., S], padding them to the longest S."""
    longest = max(x["input_ids"].shape[-1] for x in chunks)

    def padded(ids: tf.Tensor) -> np.ndarray:
        widths = [(0, 0)] * (len(ids.shape) - 1)
        return np.pad(ids.numpy(), [*widths, (0, longest - ids.shape[-1])])

    return {
        name: np.concatenate([padded(x[name]) for x in chunks])
        for name in chunks[0]
    }


def _as_arrays(targets: Any) -> Any:
    """Returns lists as arrays, as Keras takes no lists of numbers.

    A tuple has an element for each output unless it is of numbers.
    """
    if isinstance(targets, tuple) and not all(map(np.isscalar, targets)):
        return tuple(map(_as_arrays, targets))
    return np.asarray(targets) if isinstance(targets, list | tuple) else targets


def _of_outputs(values: Any) -> Any:
    """Returns numbers as arrays; a list of arrays has one for each output."""
    is_of_outputs = isinstance(values, list) and any(
        len(getattr(x, "shape", ())) for x in values
    )
    return values if is_of_outputs else _as_arrays(values)


def _with_arrays(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments of Keras' methods, with weights as arrays."""
    name = "sample_weight"
    return kwargs | {x: _of_outputs(kwargs[x]) for x in (name,) if x in kwargs}


def _as_inputs(inputs: Any) -> Any:
    """Returns any mapping as Keras takes it; others as they are."""
    if not isinstance(inputs, Mapping):
        return inputs
    return {
        name: _as_array(name, x) if isinstance(x, list | tuple) else x
        for name, x in inputs.items()
        if x is not None
    }


def _as_array(name: str, rows: Sequence[Any]) -> np.ndarray:
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise InputError(
            f"`{name}` must have rows of one length: pad them. "
            f"Received: {name}={rows!r}"[:400]
        ) from error
