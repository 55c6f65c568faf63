"""Writes a model with the joint head as a SavedModel, as `saved_model`.

Shapes: B questions, W windows of all questions, S sequence length, K starts of
a window, J ends of each start.
"""

from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import joint_answers, modeling, vocabularies
from bert_tf.exporting import saved_model
from bert_tf.tasks.squad import squad_model, squad_options
from bert_tf.text import graph_windows

import tensorflow as tf

# The types of the model's outputs.
_BEAMS = joint_answers.Beams(
    tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None, None], tf.float32),
    tf.TensorSpec([None, None, None], tf.int32),
    tf.TensorSpec([None], tf.float32),
)


class _JointModule(squad_model.SpanModule):
    """Questions and contexts -> answers, by starts and the ends of each."""

    _search: squad_options.JointSearch

    def odds(self, null: tf.Tensor, score: tf.Tensor) -> tf.Tensor:
        """Returns how much better no answer is than the best one."""
        del score
        return null

    def named(self, found: joint_answers.Beams) -> dict[str, tf.Tensor]:
        """Returns the model's outputs by name."""
        return found._asdict()

    def search(
        self,
        rows: squad_model.Rows,
        may_start: tf.Tensor,
        read: Callable,
        size: tf.Tensor,
    ) -> squad_model.Found:
        """Reads windows and finds the best of each of `size` questions."""

        def beams(inputs: Sequence[tf.Tensor]) -> tuple[tf.Tensor, ...]:
            return tuple(read(inputs))

        # Ends are scored by a vector for each start and position.
        vectors = self._search.start_n_top * self._layout.max_seq_length
        found = joint_answers.Beams(
            *graph_windows.in_parts(
                beams,
                rows.inputs,
                tuple(_BEAMS),
                vectors * self._hidden_size,
            )
        )
        windows = rows.windows
        start = tf.cast(found.starts, tf.int64)  # [W, K]
        end = tf.cast(found.ends, tf.int64)  # [W, K, J]
        fits = tf.gather(may_start, start, batch_dims=1)[..., tf.newaxis]
        start = start[..., tf.newaxis]
        behind = windows.heads + windows.lengths  # [W]
        fits &= end < behind[:, tf.newaxis, tf.newaxis]
        fits &= self._search.allows(start, end)
        scores = tf.cast(found.start_scores, tf.float64)[..., tf.newaxis]
        scores += tf.cast(found.end_scores, tf.float64)
        scores = tf.where(fits, scores, squad_model.NONE)
        shape = tf.shape(scores, tf.int64)
        flat = [shape[0], shape[1] * shape[2]]
        best = squad_model.first_best(
            tf.reshape(scores, flat), windows.rows, size
        )
        start = tf.reshape(start + tf.zeros_like(end), flat)

        def chosen(places: tf.Tensor) -> tf.Tensor:  # [W, K * J]
            own = tf.gather(places, best.window)
            return tf.gather(own, best.column, batch_dims=1)

        null = tf.math.unsorted_segment_min(
            tf.cast(found.no_answer, tf.float64), windows.rows, size
        )
        return squad_model.Found(
            best, chosen(start), chosen(tf.reshape(end, flat)), null
        )


def joint_span_finder(
    model: joint_answers.BertJointSpanFinder,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    layout: squad_options.Layout,
    search: squad_options.JointSearch,
    threshold: float | None,
) -> saved_model.Export:
    """Returns the model as one that takes raw text.

    Signatures are the same as in `squad_model.span_finder`, but `serve_ids`
    returns the starts, ends and scores of `joint_answers.Beams`. The answer is
    "" if the logit of no answer, `null_score`, exceeds `threshold`.
    """
    made: Any = _JointModule
    return squad_model.export(
        made,
        "joint_span",
        model,
        config,
        vocabulary,
        layout,
        search,
        threshold,
    )
