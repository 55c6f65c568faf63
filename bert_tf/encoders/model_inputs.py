"""Checks and completes a model's inputs; shapes as in modeling.py."""

import random
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError

import keras
import tensorflow as tf

# Hugging Face's names for ours.
_OTHER_NAMES = {
    "attention_mask": "input_mask",
    "token_type_ids": "segment_ids",
}
_MASKS = ("input_mask", "attention_mask")
# By name, whether it has a value for each token.
_OURS = {
    "input_ids": True,
    "input_mask": True,
    "segment_ids": True,
    "sequence_ids": True,
    "position_ids": True,
    "masked_lm_positions": False,
    "cls_positions": False,
}
PER_TOKEN = frozenset({"inputs_embeds", *(x for x in _OURS if _OURS[x])})
_EXPECTED = (
    "a dictionary of integers `input_ids` {shape}, and of the same shape "
    "`input_mask` (or `attention_mask`; else all are tokens) and `segment_ids` "
    "(or `token_type_ids`; else 0)"
)


def standard(
    inputs: Mapping[str, Any], rank: int = 2, needs: tuple[str, ...] = ()
) -> dict[str, tf.Tensor]:
    """Returns inputs by our names, int32, with mask and segments.

    Without a mask all positions are tokens, as in the original and in
    transformers: no id means padding. Without segments all are 0. Names may be
    ours or Hugging Face's. `rank` is the rank of `input_ids`: 2 for [B, S], 3
    for [B, K, S]. Instead of `input_ids` there may be `inputs_embeds`, floats
    with one more dimension; the ids are then 0. Other keys are ignored. It
    raises InputError for any other input, and if an input in `needs` is
    missing.
    """
    shape = {2: "[batch, length]", 3: "[batch, choices, length]"}[rank]
    expected = _EXPECTED.format(shape=shape)
    if not isinstance(inputs, Mapping):
        raise InputError(
            f"A model takes {expected}. Received: {type(inputs).__name__}"
        )
    found: dict[str, tf.Tensor] = {}
    for given, value in inputs.items():
        name = _OTHER_NAMES.get(given, given)
        if name not in _OURS or value is None:
            continue
        if name in found:
            other = next(o for o, ours in _OTHER_NAMES.items() if ours == name)
            raise InputError(
                f"`{name}` and `{other}` are two names of the same: give one. "
                f"Received: {', '.join(map(str, inputs))}"
            )
        found[name] = _integers(given, value)
    vectors = inputs.get("inputs_embeds")
    if vectors is not None:
        vectors = _vectors(vectors, rank + 1)
        ids = tf.zeros(tf.shape(vectors)[:-1], tf.int32)
        ids = tf.ensure_shape(ids, vectors.shape[:-1])
        found.setdefault("input_ids", ids)
    missing = [n for n in ("input_ids", *needs) if n not in found]
    if missing:
        raise InputError(
            f"Inputs lack {', '.join(missing)}. Expected: {expected}"
            f"{''.join(f', and `{name}`' for name in needs)}. "
            f"Received: {', '.join(map(str, inputs)) or 'nothing'}"
        )
    ids = found["input_ids"]
    for name, value in found.items():
        is_wrong = value.shape.rank not in (None, rank) and name == "input_ids"
        if _OURS[name]:
            is_wrong |= not ids.shape.is_compatible_with(value.shape)
        if is_wrong:
            raise InputError(
                f"`{name}` has another shape than expected: {expected}. "
                f"Received: {_shapes(found)}"
            )
    if vectors is not None:
        if not ids.shape.is_compatible_with(vectors.shape[:-1]):
            raise InputError(
                "`inputs_embeds` must have a vector for each of `input_ids`. "
                f"Received: inputs_embeds {vectors.shape}, {_shapes(found)}"
            )
        found["inputs_embeds"] = vectors
    if "input_mask" not in found:
        found["input_mask"] = tf.ones_like(ids)
    if "segment_ids" not in found:
        found["segment_ids"] = tf.zeros_like(ids)
    return found


def last_tokens(input_mask: tf.Tensor) -> tf.Tensor:  # [B, S]
    """Returns the index of each row's last token, [B, 1]; 0 for empty rows."""
    places = tf.range(tf.shape(input_mask)[1])  # [S]
    places = tf.where(input_mask > 0, places, 0)  # [B, S]
    return tf.reduce_max(places, axis=1, keepdims=True)


def check_segments(inputs: Mapping[str, tf.Tensor], count: int) -> None:
    """Raises InputError for segment_ids that are no rows of a table [T, D].

    Their values are known in eager use only.
    """
    segments = inputs["segment_ids"]
    if not tf.is_tensor(segments) or not hasattr(segments, "numpy"):
        return
    values = segments.numpy()
    if values.size and not 0 <= values.min() <= values.max() < count:
        raise InputError(
            f"`segment_ids` must be from 0 to {count - 1}, as the model has "
            f"{count} token {'type' if count == 1 else 'types'}. Received: "
            f"segment_ids from {values.min()} to {values.max()}"
        )


def _vectors(value: Any, rank: int) -> tf.Tensor:
    value = tf.convert_to_tensor(value)
    if not value.dtype.is_floating or value.shape.rank != rank:
        raise InputError(
            f"`inputs_embeds` must be floats of {rank} dimensions, the last "
            "of the size of the word embeddings. Received: inputs_embeds of "
            f"{value.dtype.name} {value.shape}"
        )
    return value


def check_one_sequence(inputs: Mapping[str, tf.Tensor]) -> None:
    """Raises InputError where rows hold several sequences."""
    if "sequence_ids" in inputs:
        raise InputError(
            "This model reads one sequence in a row, not several: make the "
            "records without packing. "
            f"Received: {', '.join(sorted(inputs))}"
        )


def check_no_positions(inputs: Mapping[str, tf.Tensor]) -> None:
    """Raises InputError for positions, which the model would not read."""
    if "position_ids" in inputs:
        raise InputError(
            "This model reads tokens in their order and has no position "
            "embeddings: leave out `position_ids`. "
            f"Received: {', '.join(sorted(inputs))}"
        )


def check_positions(inputs: Mapping[str, tf.Tensor]) -> None:
    """Raises InputError for several sequences in a row without positions."""
    if "sequence_ids" in inputs and "position_ids" not in inputs:
        raise InputError(
            "Rows of several sequences, `sequence_ids`, need `position_ids`, "
            "which start at 0 in each sequence: add them. "
            f"Received: {', '.join(sorted(inputs))}"
        )


def _integers(name: str, value: Any) -> tf.Tensor:
    """Returns a value as int32; InputError if it is of another kind."""
    if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
        raise InputError(
            f"`{name}` must be dense: pad its rows, as with `to_tensor()`, and "
            f"say by `input_mask` what is padding. Received: {name}="
            f"{type(value).__name__}"
        )
    value = tf.convert_to_tensor(value)
    is_whole = value.dtype.is_integer or value.dtype.is_bool
    # A mask of 0 and 1 is often of floats. Under a strategy, Keras builds a
    # model from the mean of the replicas' first batches; only their shapes
    # matter there.
    is_mean = tf.distribute.in_cross_replica_context() and not hasattr(
        value, "numpy"
    )
    if not (is_whole or name in _MASKS or is_mean):
        raise InputError(
            f"`{name}` must be integers; say dtype='int32' in keras.Input. "
            f"Received: {name} of {value.dtype.name}"
        )
    return tf.cast(value, tf.int32)


def _shapes(found: Mapping[str, tf.Tensor]) -> str:
    return ", ".join(f"{name} {value.shape}" for name, value in found.items())


class DrawnSeeds:
    """Dropout seeds for Keras' own training loop.

    They come from a Keras seed generator that is not in `model.variables`, as
    it would be saved in our checkpoints. Our training loop does not need it:
    its seeds are functions of the step.
    """

    def __init__(self):
        # It follows keras.utils.set_random_seed, as Keras' own generators do,
        # but draws from a copy of Python's generator: later draws, such as the
        # first weights of a head, must not depend on it.
        state = random.Random()
        state.setstate(random.getstate())
        self.generator = keras.random.SeedGenerator(state.randrange(2**31))

    def unless(
        self, given: tf.Tensor | None, training: bool | None
    ) -> tf.Tensor | None:
        """Returns `given`, or in training the next seed, int32 [2]."""
        if given is not None or not training:
            return given
        seed = tf.cast(self.generator.next(), tf.int32)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return seed
        # The generator has the same state on all replicas.
        replica = context.replica_id_in_sync_group
        return tf.random.experimental.stateless_fold_in(seed, replica)
