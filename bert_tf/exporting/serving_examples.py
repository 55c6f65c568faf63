"""Answers tf.Examples, for TensorFlow Serving's classify and regress.

An Example, which is serialized, has texts or ids as these features:

- `text`, or `text_a` as in other signatures, and for pairs `text_b`: one bytes
  value each;
- `input_ids`, `input_mask` and `segment_ids`: int64, all of equal length, as in
  training records.

Shapes: B Examples, S sequence length, C classes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import vocabularies
from bert_tf.exporting import serving_inputs

import tensorflow as tf

_TEXTS = ("text", "text_a", "text_b")
_IDS = ("input_ids", "input_mask", "segment_ids")
_INT32 = (tf.int32.min, tf.int32.max)

# Takes the inputs of its signature by name, returns outputs.
Serve = Callable[..., dict[str, tf.Tensor]]


def method(labels: Sequence[str] | None) -> str:
    """Returns TensorFlow Serving's method; `labels` None for a regression."""
    if labels is None:
        return tf.saved_model.REGRESS_METHOD_NAME
    return tf.saved_model.CLASSIFY_METHOD_NAME


def make(
    serve_texts: Serve,
    serve_ids: Serve,
    takes_pairs: bool,
    vocabulary: vocabularies.Vocabulary,
    labels: Sequence[str] | None,
) -> Any:
    """Returns a function for the signature with `inputs`, string [B].

    It returns `classes` (string) and `scores` (float32), each [B, C] in the
    order of the labels; for a regression (labels None), `outputs` (float32
    [B]).

    Args:
        serve_texts: Function of one text or, if `takes_pairs`, of two, by
            position.
        serve_ids: Function of ids.
        takes_pairs: Whether an Example may have a second text.
        vocabulary: Vocabulary, for padding ids.
        labels: Names of the classes.
    """
    name = "score" if labels is None else "probabilities"
    features = {x: tf.io.RaggedFeature(tf.string) for x in _TEXTS} | {
        x: tf.io.RaggedFeature(tf.int64) for x in _IDS
    }

    def serve_examples(inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        (inputs,) = serving_inputs.shaped(inputs)
        found, has_ids = _checked(
            tf.io.parse_example(inputs, features), takes_pairs
        )

        def of_ids():
            return serve_ids(**_batch(found, vocabulary))[name]

        def of_texts():
            text, text_a, text_b = (
                tf.squeeze(found[x].to_tensor("", shape=[None, 1]), 1)
                for x in _TEXTS
            )
            # An Example has either text or text_a; the other one is "" here.
            texts = [tf.strings.join([text, text_a])]
            texts += [text_b] if takes_pairs else []
            return serve_texts(*texts)[name]

        scores = tf.cond(has_ids, of_ids, of_texts)  # [B, C] or [B]
        if labels is None:
            return {tf.saved_model.REGRESS_OUTPUTS: scores}
        classes = tf.constant([list(labels)])  # [1, C]
        return {
            tf.saved_model.CLASSIFY_OUTPUT_CLASSES: tf.broadcast_to(
                classes, tf.shape(scores)
            ),
            tf.saved_model.CLASSIFY_OUTPUT_SCORES: scores,
        }

    return tf.function(serve_examples, [serving_inputs.TEXTS], autograph=False)


def _checked(
    found: dict[str, tf.RaggedTensor], takes_pairs: bool
) -> tuple[dict[str, tf.RaggedTensor], tf.Tensor]:
    """Returns the features, [B, (values)], and whether all have ids.

    Fails when run if an Example has neither texts nor ids, or if only some of
    the Examples have ids.
    """
    splits = tf.stack([x.row_splits for x in found.values()])
    sizes = splits[:, 1:] - splits[:, :-1]  # [features, B]
    counts = dict(zip(found, tf.unstack(sizes), strict=True))  # [B] each
    first = counts["text"] + counts["text_a"]
    texts = first + counts["text_b"]
    ids = [counts[name] for name in _IDS]
    has_text = (first == 1) & (counts["text_b"] <= int(takes_pairs))
    has_text &= tf.reduce_sum(ids, axis=0) == 0
    has_ids = (ids[0] > 0) & (ids[0] == ids[1]) & (ids[0] == ids[2])
    has_ids &= texts == 0
    all_ids = tf.reduce_all(has_ids) & (tf.size(texts) > 0)
    # The first invalid Example, or one past the end if all are valid.
    is_wrong = ~tf.where(tf.reduce_any(has_text), has_text, has_ids)
    number = tf.argmax(tf.concat([is_wrong, [True]], 0))
    received = ", ".join(f"{name} {{}}" for name in counts)
    second = "at most one text_b" if takes_pairs else "no text_b"
    message = tf.strings.format(
        f"Each Example must have one text (or text_a) and {second}; or all of "
        "them input_ids, input_mask and segment_ids, as many of each. "
        f"Received: Example {{}} with values of {received}",
        [number, *tf.unstack(tf.pad(sizes, [[0, 0], [0, 1]])[:, number])],
    )
    values = {name: x.flat_values for name, x in found.items()}
    values = serving_inputs.only_if(
        all_ids | tf.reduce_all(has_text), message, values
    )
    rows = {name: x.with_flat_values(values[name]) for name, x in found.items()}
    return rows, all_ids


def _batch(
    found: dict[str, tf.RaggedTensor], vocabulary: vocabularies.Vocabulary
) -> dict[str, tf.Tensor]:
    """Pads rows to the longest, int32 [B, S]."""
    fill = {
        "input_ids": vocabulary.special.pad.id,
        "input_mask": 0,
        "segment_ids": vocabulary.template.segments[0],
    }
    # Clips to int32; numbers beyond it stay invalid ids.
    return {
        name: tf.cast(
            tf.clip_by_value(found[name].to_tensor(value), *_INT32), tf.int32
        )
        for name, value in fill.items()
    }
