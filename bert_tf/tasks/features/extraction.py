"""Vectors of tokens, words or whole lines: BERT as a feature extractor.

Shapes: B lines per batch, S sequence length, D hidden size, K vectors per token
(one per layer), n vectors per line.
"""

from collections.abc import Callable, Sequence

from bert_tf import modeling
from bert_tf.tasks.features import feature_layers, feature_lines
from bert_tf.training import distribution

import numpy as np
import tensorflow as tf

# Kernels run faster when lengths are a multiple of this.
_MULTIPLE = 8
# Size of the vectors that are held in memory at a time.
_MOST_BYTES = 1 << 29


class Extractor:
    """Applies a model to lines, batching lines of similar length."""

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        model: modeling.Bert,
        choice: feature_layers.Choice,
        unit: str,
        batch_size: int,
        max_seq_length: int,
        normalize: bool = False,
    ):
        """Prepares the graph.

        Args:
            strategy: Distribution strategy.
            model: The model, created in the strategy's scope.
            choice: The layers to read.
            unit: One of options.UNITS.
            batch_size: Number of lines over all replicas.
            max_seq_length: Max number of tokens per line.
            normalize: Whether vectors are scaled to length 1.
        """
        choice.check(model.config.num_blocks)
        distribution.check_batch_size(strategy, "batch_size", batch_size)
        self._unit = unit
        self._batch_size = batch_size
        self._length = max_seq_length
        self._normalize = normalize
        # One shape on TPUs, and equally sized batches on all replicas.
        self._is_fixed = distribution.is_tpu(strategy)
        self._fills = self._is_fixed or strategy.num_replicas_in_sync > 1

        def vectors(ids, input_mask, segments):  # [B, S] each
            inputs = {
                "input_ids": ids,
                "input_mask": input_mask,
                "segment_ids": segments,
            }
            found = choice.select(model(inputs))
            found = tf.cast(
                feature_layers.pool(found, input_mask, unit), tf.float32
            )
            # Word vectors are computed from token vectors and normalized later.
            is_whole = normalize and unit != "word"
            return feature_layers.unit_length(found) if is_whole else found

        spec = tf.TensorSpec([None, None], tf.int32)

        @tf.function(input_signature=[spec] * 3, autograph=False)
        def run(*inputs):
            if strategy.num_replicas_in_sync == 1:
                return distribution.run(strategy, vectors, inputs)
            shares = [_shares(strategy, x) for x in inputs]
            found = distribution.run(strategy, vectors, shares)
            return strategy.gather(found, axis=0)

        self._run = run

    def extract(
        self,
        lines: Sequence[feature_lines.Line],
        done: Callable[[int], None] = lambda _: None,
    ) -> list[np.ndarray]:
        """Returns the vectors of each line, [n, K, D] float32, in input order.

        `done` is called with the number of lines of each batch.
        """
        order = sorted(range(len(lines)), key=lambda i: -len(lines[i].ids))
        found: list[np.ndarray] = [np.zeros(0)] * len(lines)
        for start in range(0, len(lines), self._batch_size):
            places = order[start : start + self._batch_size]
            batch = [lines[i] for i in places]
            vectors = self._run(*self._pad(batch)).numpy()
            for i, line, values in zip(places, batch, vectors, strict=False):
                found[i] = self._unpad(line, values)
            done(len(batch))
        return found

    def _pad(self, lines: Sequence[feature_lines.Line]) -> list[np.ndarray]:
        longest = max(len(line.ids) for line in lines)
        length = min(-(-longest // _MULTIPLE) * _MULTIPLE, self._length)
        if self._is_fixed:
            length = self._length
        rows = self._batch_size if self._fills else len(lines)
        ids, mask, segments = np.zeros([3, rows, length], np.int32)
        # Padding rows attend to their first position, so they produce no NaN.
        mask[:, 0] = 1
        for i, line in enumerate(lines):
            size = len(line.ids)
            ids[i, :size] = line.ids
            mask[i, :size] = 1
            segments[i, :size] = line.segments
        return [ids, mask, segments]

    def _unpad(
        self, line: feature_lines.Line, vectors: np.ndarray
    ) -> np.ndarray:
        if self._unit == "token":
            return vectors[: len(line.ids)]
        if self._unit != "word":
            return vectors
        if not line.words:
            return vectors[:0]
        # A word's vector is the mean of its tokens' vectors.
        words = means(vectors, np.array(line.starts), np.array(line.ends))
        return (
            feature_layers.unit_length(words).numpy()
            if self._normalize
            else words
        )


def _shares(strategy: tf.distribute.Strategy, x: tf.Tensor) -> tf.Tensor:
    size = tf.shape(x)[0] // strategy.num_replicas_in_sync

    def share(context):
        start = size * context.replica_id_in_sync_group
        return x[start : start + size]

    return strategy.experimental_distribute_values_from_function(share)


def means(
    vectors: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Returns the mean vector of each word, float32 [words, K, D].

    `vectors` is [S, K, D]. A word's tokens are those from `starts` [words] up
    to, but not including, `ends` [words].
    """
    # In float64, as each mean is the difference of two large cumulative sums.
    sums = np.zeros([len(vectors) + 1, *vectors.shape[1:]])
    np.cumsum(vectors, axis=0, out=sums[1:])
    counts = (ends - starts)[:, np.newaxis, np.newaxis]
    return ((sums[ends] - sums[starts]) / counts).astype(np.float32)


def lines_in_memory(
    choice: feature_layers.Choice,
    unit: str,
    hidden_size: int,
    max_seq_length: int,
) -> int:
    """Returns the number of lines whose vectors fit into half a gigabyte."""
    values = hidden_size * len(choice.names)
    values *= feature_layers.JOINED.get(choice.name, 1)
    if unit in ("token", "word"):
        values *= max_seq_length
    return max(1, _MOST_BYTES // (4 * values))
