"""BERT in an equivalent form for serving, which takes less time.

Training computes on changing variables, needs gradients, and has full batches.
A served model does not, so here

- the query, key and value kernels are scaled and concatenated once, not in
  every call. They remain variables, so all signatures of a SavedModel share one
  copy; constants would be limited to 2 GB and loaded once per signature;
- ops are those that TensorFlow's own optimizer can fuse;
- tokens of all sequences are in one matrix, [tokens, D], and padding is skipped
  if a batch has enough of it;
- the last layer computes only the positions that a head reads.

Shapes as in modeling.py. X: the computed positions, B * S or, if padding is
skipped, the J tokens.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bert_tf import heads, modeling
from bert_tf.encoders import layers
from bert_tf.exporting import inference_layers, kept_weights

import keras
import tensorflow as tf

# Padding is skipped if it is this many positions, and a tenth of all.
_LEAST_PLACES = 64
_PARTS = 10
# oneDNN uses one layout of kernels for products of 7 to 80 rows, and another
# for fewer or more. If weights are declared constant, each op caches its kernel
# in the layout of its first batch, and converts it anew for each batch that
# needs the other layout. So batches with few positions have separate ops, and
# all products of an op have row counts in the same range.
_FEWEST, _FEW_PLACES = 7, 80
_INPUTS = ("input_ids", "input_mask", "segment_ids")
_MAY_SKIP = contextvars.ContextVar("may_skip", default=True)


@contextlib.contextmanager
def computing_padding() -> Iterator[None]:
    """Functions traced in this context compute padding, without branches."""
    token = _MAY_SKIP.set(False)
    try:
        yield
    finally:
        _MAY_SKIP.reset(token)


def without_padding(logits: tf.Tensor, tokens: int) -> tf.Tensor:
    """Returns logits of tokens, [..., V], without those for padded rows."""
    return logits if logits.shape[-1] == tokens else logits[..., :tokens]


# ---- The encoder ------------------------------------------------------------


class Encoder:
    """An encoder for inference: called as `modeling.Bert`, without dropout.

    Attributes:
        config: Config of the original encoder.
        variables: All variables that it reads.
    """

    def __init__(
        self,
        bert: modeling.Bert,
        reads_all: bool = True,
        every_layer: bool = False,
        weights: kept_weights.Weights | None = None,
    ):
        """Copies the weights of an encoder.

        Args:
            bert: The encoder, with trained weights.
            reads_all: Whether the caller reads all positions of the last layer,
                and passes no `positions`; otherwise it passes them.
            every_layer: Whether the caller also reads other layers.
            weights: Storage of the weights; by default float32.
        """
        weights = weights or kept_weights.Float32()
        self.config = bert.config
        self._every_layer = every_layer
        self.embeddings = inference_layers.Embeddings(
            weights, bert.embeddings, bert.mapping
        )
        *first, last = bert.encoder.layers
        # Layers that occur more than once are stored once.
        kept = {
            id(x): inference_layers.Layer(
                weights, bert.config, x, reads_all=True
            )
            for x in {id(x): x for x in first}.values()
        }
        self._layers = [kept[id(x)] for x in first]
        if id(last) not in kept:
            kept[id(last)] = inference_layers.Layer(
                weights, bert.config, last, reads_all
            )
        self._layers.append(kept[id(last)])
        self.pooler = inference_layers.pooler(weights, bert.config, bert.pooler)
        self.variables = weights.variables
        # Functions in the graph, so that signatures and branches share them.
        self._shared = _by_number(self._encode_batch)
        self._all = _by_number(self._encode_all)

    def __call__(
        self,
        inputs: Mapping[str, tf.Tensor],
        dropout_seed: None = None,
        positions: tf.Tensor | None = None,
    ) -> modeling.BertOutputs:
        """Encodes a batch; arguments and results as for `modeling.Bert`.

        Outputs for padding are undefined. Unless the caller reads every layer,
        only the last one is returned, without embeddings.
        """
        mask = inputs["input_mask"]  # [B, S]
        if not _MAY_SKIP.get():
            layout = inference_layers.Everything(mask)
            return self._outputs(
                self._encode(inputs, layout, positions), layout
            )
        tensors = [inputs[name] for name in _INPUTS]
        if positions is not None:
            tensors.append(positions)
        layout = inference_layers.Everything(mask, _FEWEST)
        found = self._shared[len(tensors)](*tensors)
        return self._outputs(found, layout)

    def _encode_batch(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """Calls `_encode` in the way that suits the size and the padding."""
        inputs, positions = _named(tensors)
        mask = inputs["input_mask"]
        tokens = tf.math.count_nonzero(mask, dtype=tf.int32)
        padding = tf.size(mask) - tokens
        least = tf.maximum(_LEAST_PLACES, tf.size(mask) // _PARTS)

        def some() -> list[tf.Tensor]:
            only = inference_layers.Tokens(mask, _FEWEST, _FEW_PLACES + 1)
            return self._encode(inputs, only, positions)

        return tf.cond(
            padding >= least,
            some,
            lambda: tf.cond(
                tf.size(mask) <= _FEW_PLACES,
                lambda: self._encode_few(inputs, positions),
                lambda: self._all[len(tensors)](*tensors),
            ),
        )

    def _encode_all(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
        """Calls `_encode` on all positions."""
        inputs, positions = _named(tensors)
        layout = inference_layers.Everything(inputs["input_mask"], _FEWEST)
        return self._encode(inputs, layout, positions)

    def _outputs(
        self, found: list[tf.Tensor], layout: inference_layers.Everything
    ) -> modeling.BertOutputs:
        last = found[-1]  # [B, S or R, D]
        pooled = self.pooler(last[:, 0], layout)
        return modeling.BertOutputs(last, pooled, found[0], list(found[1:]))

    def _encode_few(
        self, inputs: Mapping[str, tf.Tensor], positions: tf.Tensor | None
    ) -> list[tf.Tensor]:
        """Calls `_encode` on all positions, padded to at least _FEWEST."""
        rows, length = tf.unstack(tf.shape(inputs["input_mask"]))
        fewest = min(_FEWEST, self.config.max_position_embeddings)
        are_fewer = tf.cast(rows * length < fewest, tf.int32)
        missing = are_fewer * tf.maximum(fewest - length, 0)
        padding = [[0, 0], [0, missing]]
        filled = [tf.pad(inputs[name], padding) for name in _INPUTS]
        if positions is not None:
            filled.append(positions)
        *found, last = self._all[len(filled)](*filled)
        if positions is None:
            last = last[:, :length]
        if not self._every_layer:
            return [last, last]
        return [*(x[:, :length] for x in found), last]

    def _encode(
        self,
        inputs: Mapping[str, tf.Tensor],
        layout: inference_layers.Everything,
        positions: tf.Tensor | None,
    ) -> list[tf.Tensor]:
        """Returns the first layer's input, and outputs of layers."""
        mask = modeling.additive_mask(inputs["input_mask"])  # [B, 1, 1, S]
        x = self.embeddings(inputs, layout)  # [X, D]
        found = [layout.rows(x)]  # [B, S, D]
        for layer in self._layers[:-1]:
            x = layer(x, mask, layout, None)
            found.append(layout.rows(x))
        x = self._layers[-1](x, mask, layout, positions)  # [X or B * R, D]
        if positions is None:
            last = layout.rows(x)  # [B, S, D]
        else:
            shape = [*tf.unstack(tf.shape(positions)), x.shape[-1]]
            last = tf.reshape(x, shape)  # [B, R, D]
        return [*found, last] if self._every_layer else [last, last]


def _named(
    tensors: tuple[tf.Tensor, ...],
) -> tuple[dict[str, tf.Tensor], tf.Tensor | None]:
    """Returns the first three by their names, and the positions, if any."""
    ids, mask, segments, *positions = tensors
    inputs = dict(zip(_INPUTS, (ids, mask, segments), strict=True))
    return inputs, positions[0] if positions else None


def _by_number(function: Callable[..., Any]) -> dict[int, Any]:
    """Returns the functions for 3 tensors and, with positions, for 4."""
    return {
        number: tf.function(
            function,
            [tf.TensorSpec([None, None], tf.int32)] * number,
            autograph=False,
        )
        for number in (3, 4)
    }


# ---- Models with a head -----------------------------------------------------


class Model:
    """A head over an encoder for inference: called as the head itself.

    It has the attributes of the head, except `bert`, and computes the same.

    Attributes:
        bert: The encoder.
        variables: All variables that it reads, for a module to track.
    """

    def __init__(
        self, head: heads.Model, weights: kept_weights.Weights | None = None
    ):
        self._head = head
        self.bert = Encoder(
            head.bert, reads_all=head.reads_all, weights=weights
        )
        unused = {id(variable) for variable in head.bert.variables}
        self.variables = self.bert.variables + [
            v.value for v in head.variables if id(v) not in unused
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._head, name)

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> Any:
        """Applies the head to the inputs."""
        with _in_float32(self._head):
            return type(self._head).call(self, inputs)


class AsTrained:
    """A model for inference that computes as in training, in float32.

    For encoders without a known inference form.

    Attributes:
        variables: All variables that it reads.
    """

    def __init__(self, model: keras.Model):
        self._model = model
        self.variables = [variable.value for variable in model.variables]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, inputs: Mapping[str, tf.Tensor], **reads: Any) -> Any:
        """Applies the model to the inputs."""
        with _in_float32(self._model):
            return self._model(inputs, **reads)


@contextlib.contextmanager
def _in_float32(model: keras.Model) -> Iterator[None]:
    """Makes a model compute in float32, the dtype of its variables.

    In training it may have computed in a lower precision.
    """
    # Keras has no public API for nested layers.
    policies = {x: x.dtype_policy for x in model._flatten_layers()}
    mixed = {x: y for x, y in policies.items() if y.name.startswith("mixed_")}
    for layer in mixed:
        layer.dtype_policy = "float32"
    try:
        yield
    finally:
        for layer, policy in mixed.items():
            layer.dtype_policy = policy


def _computes_as_bert(encoder: keras.Model) -> bool:
    """Whether an encoder is BERT, or of a class that computes the same."""
    if not isinstance(encoder, modeling.Bert):
        return False
    if type(encoder).call is not modeling.Bert.call:
        return False  # A subclass may compute something else.
    known = [encoder.embeddings, encoder.encoder, *encoder.encoder.layers]
    return (
        type(encoder).mask is modeling.Bert.mask
        # Set on the class itself: subclasses may compute something else.
        and all(vars(type(x)).get("computes_as_bert") for x in known)
        and type(encoder.pooler) in (modeling.Pooler, modeling.Identity)
        and type(encoder.mapping) in (type(None), layers.Dense)
    )


def make_inference_model(
    model: Any,
    every_layer: bool = False,
    weights: kept_weights.Weights | None = None,
    reads_all: bool = True,
) -> Any:
    """Returns a model for inference.

    Args:
        model: A head, or an encoder. Other models are returned unchanged, as
            they are for inference already.
        every_layer: Whether other layers of an encoder than the last are read.
        weights: Storage of the weights; by default float32.
        reads_all: Whether all positions of an encoder's last layer are read;
            otherwise it is called with `positions`. Heads know what they read.
    """
    is_head = isinstance(model, heads.Model)
    if not is_head and not isinstance(model, modeling.Bert):
        return model
    if not _computes_as_bert(model.bert if is_head else model):
        return AsTrained(model)
    if is_head:
        return Model(model, weights)
    return Encoder(model, reads_all, every_layer, weights)
