"""Validates inputs of signatures, with errors that name the input.

Shapes: B rows, K choices per prompt, S sequence length.
"""

from collections.abc import Mapping

from bert_tf import modeling

import tensorflow as tf

TEXTS = tf.TensorSpec([None], tf.string)  # [B]
IDS = tf.TensorSpec([None, None], tf.int32)  # [B, S]


# ---- Texts ------------------------------------------------------------------


def no_text() -> tf.Tensor:
    """Returns the default `text_b` of single texts: one "" for all of them.

    Signatures store this default with one row, and gRPC clients may rely on it.
    """
    return tf.constant([""])


def as_pairs(
    text_a: tf.Tensor, text_b: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both texts, [B] each; `text_b` may also be `no_text`.

    Any other number of second texts is an error, as a client may have lost
    some.
    """
    text_a, text_b = shaped(text_a, text_b)
    is_none = (tf.size(text_b) == 1) & tf.reduce_all(text_b == "")
    text_a, text_b = checked(
        is_none | (tf.size(text_a) == tf.size(text_b)),
        "text_b must have as many texts as text_a ([B]), or be left out.",
        {"text_a": text_a, "text_b": text_b},
    ).values()
    return text_a, tf.broadcast_to(text_b, tf.shape(text_a))


def as_many(text: tf.Tensor, text_b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both texts, [B] each, after checking that sizes are equal."""
    text, text_b = shaped(text, text_b)
    text, text_b = checked(
        tf.size(text) == tf.size(text_b),
        "text_b must have as many texts as text ([B]), empty ones for none.",
        {"text": text, "text_b": text_b},
    ).values()
    return text, text_b


# ---- Ids --------------------------------------------------------------------


def as_batch(
    input_ids: tf.Tensor,
    input_mask: tf.Tensor,
    segment_ids: tf.Tensor,
    config: modeling.BertConfig,
) -> dict[str, tf.Tensor]:
    """Returns inputs for models, after validation.

    All must have the same shape, [B, S] or [B, K, S], a length within the
    model's positions, and ids within its embeddings. Without this check, errors
    on CPUs do not name the input, and GPUs use zeros for missing embeddings.
    """
    input_ids, input_mask, segment_ids = shaped(
        input_ids, input_mask, segment_ids
    )
    inputs = {
        "input_ids": input_ids,
        "input_mask": input_mask,
        "segment_ids": segment_ids,
    }
    shape = tf.shape(input_ids)
    is_same = (shape == tf.shape(input_mask)) & (shape == tf.shape(segment_ids))
    inputs = checked(
        tf.reduce_all(is_same),
        "input_ids, input_mask and segment_ids must have the same shape.",
        inputs,
    )
    longest = config.max_position_embeddings
    rows, *_, length = tf.unstack(shape)
    inputs = checked(
        ((length > 0) | (rows == 0)) & (length <= longest),
        f"input_ids must have 1 to {longest} pieces in a row, the last axis.",
        inputs,
    )
    words, types = config.vocab_size, config.type_vocab_size
    if not types:
        return check_ranges(
            f"input_ids must be from 0 to {words - 1}, input_mask 0 or 1.",
            inputs,
            {"input_ids": words, "input_mask": 2},
        )
    return check_ranges(
        f"input_ids must be from 0 to {words - 1}, input_mask 0 or 1, and "
        f"segment_ids from 0 to {types - 1}.",
        inputs,
        {"input_ids": words, "input_mask": 2, "segment_ids": types},
    )


def check_ranges(
    expected: str,
    inputs: Mapping[str, tf.Tensor],
    ends: Mapping[str, int | tf.Tensor],
) -> dict[str, tf.Tensor]:
    """Returns the inputs, checked to be from 0 to below their ends.

    Fails when run if a value is out of range; the error has `expected` and the
    min and max of each input.
    """
    found = {
        x: (tf.reduce_min(inputs[x]), tf.reduce_max(inputs[x])) for x in ends
    }
    is_right = tf.reduce_all(
        [
            (least >= 0) & (most < ends[name])
            for name, (least, most) in found.items()
        ]
    )
    received = ", ".join(f"{name} from {{}} to {{}}" for name in found)
    message = tf.strings.format(
        f"{expected} Received: {received}",
        [x for both in found.values() for x in both],
    )
    return only_if(is_right, message, inputs)


# ---- Checks -----------------------------------------------------------------


def shaped(*inputs: tf.Tensor) -> list[tf.Tensor]:
    """Returns the inputs, checked against the rank of their signature.

    TensorFlow Serving does not check it: `{"text": ["a"]}` as a row makes [B,
    1] of an input [B], which an op might reject later, or not.
    """
    return [tf.ensure_shape(x, x.shape) for x in inputs]


def checked(
    is_right: tf.Tensor, expected: str, inputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Returns the inputs; fails when run if `is_right` is false.

    Args:
        is_right: A bool scalar.
        expected: A sentence for the error, which also has the inputs' sizes.
        inputs: Inputs by their names in the signature.
    """
    sizes = [
        tf.size(x) if x.shape.rank == 1 else tf.shape(x)
        for x in inputs.values()
    ]
    received = ", ".join(f"{name} {{}}" for name in inputs)
    message = tf.strings.format(f"{expected} Received: {received}", sizes)
    return only_if(is_right, message, inputs)


def only_if(
    is_right: tf.Tensor, message: tf.Tensor, inputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Returns the inputs; fails with `message` if `is_right` is false."""
    # Outputs computed from the inputs wait for this, so this error is first.
    with tf.control_dependencies([tf.debugging.Assert(is_right, [message])]):
        return {name: tf.identity(x) for name, x in inputs.items()}
