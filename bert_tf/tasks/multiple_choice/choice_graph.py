"""Lays out a prompt with each of its choices, in the graph.

A sequence is `[CLS] prompt [SEP] choice [SEP]`.

Shapes: B prompts, K choices per prompt, S sequence length.
"""

from bert_tf.errors import InputError
from bert_tf.text import graph_rows

import tensorflow as tf


def pack(
    tokenizer: graph_rows.Tokenizer,
    prompts: tf.Tensor,
    choices: tf.Tensor,
    max_seq_length: int,
    pad_to_max: bool,
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Tokenizes prompts [B] and choices [B, K] and lays them out.

    Prompts are truncated at the end. A choice is truncated only if it fills a
    sequence by itself, and then at its start, because the answer to a question
    is at its end. "" pads the choices of a prompt that has fewer; its sequence
    is empty. Sequences are padded to `max_seq_length` if `pad_to_max`, else to
    the longest.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, each [B, K, S] int32, and
        which sequences were truncated, [B, K].

    Raises:
        InputError: `max_seq_length` leaves no room for a token of a choice.
    """
    vocabulary = tokenizer.vocabulary
    special = vocabulary.template.special(2)
    room = max_seq_length - special
    if room < 1:
        raise InputError(
            f"`max_seq_length` must be at least {special + 1}: {special} "
            "special tokens, and one token of a choice. "
            f"Received: max_seq_length={max_seq_length}"
        )
    shape = tf.shape(choices)  # [2]
    flat = tf.reshape(choices, [-1])
    pieces, second = tokenizer.tokenize_columns(prompts, flat)
    is_choice = flat != ""
    rows = tf.range(tf.size(flat)) // tf.maximum(shape[1], 1)
    # Truncated before it is repeated; one more token shows that it is.
    first = tf.gather(pieces[:, : room + 1], rows)  # [B * K, (tokens)]
    is_long = first.row_lengths() + second.row_lengths() > room
    second = second[:, -room:]
    packed = tokenizer.pack(
        _at_most(first, room - second.row_lengths()),
        second,
        max_seq_length,
        pad_to_max,
    )
    none = {
        "input_ids": vocabulary.special.pad.id,
        "input_mask": 0,
        "segment_ids": vocabulary.template.segments[0],
    }
    columns = tf.concat([shape, [-1]], 0)
    rows = {
        name: tf.where(is_choice[:, tf.newaxis], x, none[name])
        for name, x in packed.items()
    }
    return (
        {name: tf.reshape(x, columns) for name, x in rows.items()},
        tf.reshape(is_choice & is_long, shape),
    )


def _at_most(ragged: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Truncates row i of a ragged matrix to `lengths[i]` >= 0."""
    ends = tf.gather(ragged.row_starts() + lengths, graph_rows.row_ids(ragged))
    kept = tf.where(tf.range(tf.size(ends, tf.int64)) < ends)
    return tf.RaggedTensor.from_row_lengths(
        tf.gather_nd(ragged.values, kept),
        tf.minimum(ragged.row_lengths(), lengths),
        validate=False,
    )
