"""Splits texts of any length into windows, in the graph.

The windows are the same as from `tagging_words.windows`.

Shapes: B texts, W windows, S sequence length, P tokens of all texts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bert_tf import vocabularies
from bert_tf.text import graph_rows

import tensorflow as tf

# Max windows that the model takes at a time, however long a text is.
MOST_WINDOWS = 64
# Max numbers in a tensor of a head; about four such tensors are held in memory.
MOST_NUMBERS = 2**26


class Windows(NamedTuple):
    """The bounds of windows, in tokens; each [W] int64."""

    rows: tf.Tensor  # the number of the text
    starts: tf.Tensor  # first token, among the tokens of all texts
    borders: tf.Tensor  # the first token that belongs to the window, likewise
    sizes: tf.Tensor

    def find(self, places: tf.Tensor) -> tf.Tensor:
        """Returns the window of each position among the tokens of all texts."""
        # A text without tokens has a window with the same border as the text
        # after it: the last of equal borders is the one with the token.
        found = graph_rows.search(self.borders, places, "right", tf.int64)
        return found - 1

    def take(self, chosen: tf.Tensor) -> "Windows":
        """Returns the chosen windows."""
        return Windows(*(tf.gather(x, chosen) for x in self))


def cut(pieces: tf.Tensor, room: int) -> Windows:
    """Splits texts of `pieces` [B] int64 tokens into windows of max `room`."""
    stride = max(room // 2, 1)
    last = tf.maximum(pieces - room, 0)  # [B]
    count = (last + stride - 1) // stride + 1
    rows = graph_rows.repeats(count)
    number = tf.ragged.range(count).flat_values  # 0, 1, ... in each text
    starts = tf.minimum(number * stride, tf.gather(last, rows))
    before = tf.concat([[0], starts], 0)[:-1]
    borders = (before + starts + room - 1) // 2 + 1
    offsets = tf.gather(tf.cumsum(pieces, exclusive=True), rows)
    return Windows(
        rows,
        offsets + starts,
        offsets + tf.where(number > 0, borders, 0),
        tf.minimum(tf.gather(pieces, rows) - starts, room),
    )


def layout(
    pieces: tf.Tensor, windows: Windows, vocabulary: vocabularies.Vocabulary
) -> tuple[tf.Tensor, tf.Tensor]:
    """Packs each window of tokens [P] as a single text: ids, mask [W, S]."""
    template = vocabulary.template
    longest = tf.reduce_max(tf.concat([[0], windows.sizes], 0))
    column = tf.range(longest + template.special(1))[tf.newaxis]  # [1, S]
    behind = len(template.before) + windows.sizes[:, tf.newaxis]  # [W, 1]
    # One more token, so that gather has a value where there are no tokens.
    pieces = tf.concat([pieces, [0]], 0)
    start = windows.starts[:, tf.newaxis] - len(template.before)
    end = tf.size(pieces, tf.int64) - 1
    ids = tf.gather(pieces, tf.clip_by_value(start + column, 0, end))
    ids = tf.where(column < behind, ids, vocabulary.special.pad.id)
    ids = graph_rows.put(ids, template.before, column)
    ids = graph_rows.put(ids, template.after, column - behind)
    is_used = column < behind + len(template.after)
    return ids, tf.cast(is_used, tf.int32)


def in_parts(
    function: Callable[[Sequence[tf.Tensor]], Any],
    inputs: Sequence[tf.Tensor],
    outputs: Any,
    of_row: int = 1,
) -> Any:
    """Applies a function to some rows [W, ...] at a time.

    This bounds the memory. `outputs` has the tf.TensorSpec of each result;
    `of_row` is the size of the function's largest tensor, for one row.
    """
    most = min(max(MOST_NUMBERS // of_row, 1), MOST_WINDOWS)
    rows = tf.shape(inputs[0])[0]
    parts = tf.maximum(-(-rows // most), 1)
    size = tf.maximum(-(-rows // parts), 1)

    def split(x: tf.Tensor) -> tf.Tensor:
        padding = [[0, parts * size - rows], *[[0, 0]] * (len(x.shape) - 1)]
        shape = tf.concat([[parts, size], tf.shape(x)[1:]], 0)
        return tf.reshape(tf.pad(x, padding), shape)

    def join(x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))[:rows]

    found = tf.map_fn(
        # In eager mode, AutoGraph would translate all functions that it calls.
        tf.autograph.experimental.do_not_convert(function),
        tuple(map(split, inputs)),
        fn_output_signature=outputs,
        parallel_iterations=1,
    )
    return tf.nest.map_structure(join, found)
