"""How layers are combined into feature vectors (the paper's table 7).

Shapes: B lines, S sequence length, D hidden size, K vectors per token.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Self

from bert_tf import modeling, vocabularies
from bert_tf.errors import InputError

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Choice:
    """The layers whose outputs make up the vectors: a key of CHOICES.

    For "layers", `layers` counts from 0, or from the last layer if negative.
    The `weights` of "weighted_sum_last_four" start with the last layer and are
    equal by default.
    """

    name: str = "layers"
    layers: tuple[int, ...] = (-1, -2, -3, -4)
    weights: tuple[float, ...] = ()

    def check(self, number: int) -> None:
        """Raises InputError if a model with `number` layers lacks a layer."""
        if self.name not in CHOICES:
            raise InputError(
                f"`features` must be one of {', '.join(CHOICES)}. "
                f"Received: features={self.name}"
            )
        if self.weights and (
            self.name != "weighted_sum_last_four" or len(self.weights) != 4
        ):
            raise InputError(
                "`layer_weights` are four, and go with "
                "features=weighted_sum_last_four. Received: layer_weights="
                f"{','.join(map(str, self.weights))}, features={self.name}"
            )
        if self.name == "layers":
            wrong = [i for i in self.layers if not -number <= i < number]
            if wrong or not self.layers:
                lacks = f"no layer {', '.join(map(str, wrong))}"
                raise InputError(
                    f"The model has {lacks if wrong else 'layers to name'}: "
                    f"they are numbered 0 to {number - 1}, or -{number} to -1 "
                    "from the end. "
                    f"Received: layers={','.join(map(str, self.layers))}"
                )
        least = {"second_to_last": 2}.get(self.name, 1)
        least = 4 if self.name.endswith("last_four") else least
        if number < least:
            raise InputError(
                f"features={self.name} needs a model of at least {least} "
                f"layers. Received: one of {number}"
            )

    def limited_to(self, number: int) -> Self:
        """Returns the choice without the layers beyond a model's `number`."""
        there = tuple(i for i in self.layers if -number <= i < number)
        return dataclasses.replace(self, layers=there)

    @property
    def names(self) -> tuple[int | str, ...]:
        """The name of each of the K vectors."""
        return self.layers if self.name == "layers" else (self.name,)

    @property
    def reads_last_only(self) -> bool:
        """Whether only the last layer's output is selected."""
        return self.name == "last" or (
            self.name == "layers" and set(self.layers) == {-1}
        )

    def select(self, outputs: modeling.BertOutputs) -> tf.Tensor:
        """Returns the vectors of all tokens, [B, S, K, D or more]."""
        if self.name == "layers":
            return tf.stack([outputs.layers[i] for i in self.layers], axis=2)
        return CHOICES[self.name](self, outputs)[:, :, tf.newaxis]


def _weighted_sum(choice: Choice, outputs: modeling.BertOutputs) -> tf.Tensor:
    weights = choice.weights or (0.25,) * 4
    last = outputs.layers[:-5:-1]
    return tf.add_n([w * x for w, x in zip(weights, last, strict=True)])


CHOICES: Mapping[str, Callable[[Choice, modeling.BertOutputs], tf.Tensor]] = {
    "layers": Choice.select,
    "embeddings": lambda _, outputs: outputs.embeddings,
    "second_to_last": lambda _, outputs: outputs.layers[-2],
    "last": lambda _, outputs: outputs.layers[-1],
    "weighted_sum_last_four": _weighted_sum,
    "concat_last_four": lambda _, x: tf.concat(x.layers[:-5:-1], axis=-1),
    # Of a BiLSTM for translation, these are CoVe (McCann et al., 2017).
    "concat_embeddings_last": lambda _, x: tf.concat(
        [x.embeddings, x.layers[-1]], axis=-1
    ),
    "sum_all": lambda _, outputs: tf.add_n(outputs.layers),
    "mean_all": lambda _, x: tf.add_n(x.layers) / len(x.layers),
}
# Number of concatenated layers in a vector, if more than one.
JOINED = {"concat_last_four": 4, "concat_embeddings_last": 2}


def check_unit(unit: str, vocabulary: vocabularies.Vocabulary) -> None:
    """Raises InputError for "cls" if sequences do not begin with [CLS]."""
    cls, template = vocabulary.special.cls, vocabulary.template
    if unit == "cls" and cls.id not in template.before:
        raise InputError(
            "unit=cls reads the first token, and sequences of this model do "
            f"not begin with {cls.text}. Use unit=mean. Received: unit=cls"
        )


def pool(vectors: tf.Tensor, input_mask: tf.Tensor, unit: str) -> tf.Tensor:
    """Pools vectors into [B, 1, K, D], unless the unit is tokens or words.

    "mean" averages over all tokens, including [CLS] and [SEP], as
    sentence-transformers does.
    """
    if unit == "cls":
        return vectors[:, :1]
    if unit == "mean":
        mask = of_vectors(input_mask, vectors)
        total = tf.reduce_sum(vectors * mask, axis=1, keepdims=True)
        tokens = tf.reduce_sum(mask, axis=1, keepdims=True)
        # A line without tokens would divide by 0: its vector is 0.
        return total / tf.maximum(tokens, 1)
    return vectors


def of_vectors(input_mask: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Returns the mask [B, S] as a factor for vectors, [B, S, 1, 1].

    LiteRT does not support slices that add two axes.
    """
    mask = tf.cast(input_mask, vectors.dtype)
    return tf.expand_dims(tf.expand_dims(mask, -1), -1)


# Lower bound of the divisor, as in PyTorch's normalize.
_LEAST_LENGTH = 1e-12


def unit_length(vectors: tf.Tensor) -> tf.Tensor:
    """Scales vectors [..., D] to length 1, so dot products are cosines."""
    length = tf.norm(vectors, axis=-1, keepdims=True)
    return vectors / tf.maximum(length, _LEAST_LENGTH)
