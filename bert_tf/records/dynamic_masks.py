"""Dynamic masking: words are masked as records are read.

Shapes: B global batch, S sequence length, P predictions per row.
"""

import dataclasses
from collections.abc import Mapping

from bert_tf.records import masking

import numpy as np
import tensorflow as tf

# Inputs and outputs of masking.
_NEEDED_TO_MASK = ("input_ids", "input_mask", "word_starts", "sequence_ids")
_MASKED = {
    "input_ids": tf.int32,
    "masked_lm_positions": tf.int32,
    "masked_lm_ids": tf.int32,
    "masked_lm_weights": tf.float32,
}


@dataclasses.dataclass(frozen=True)
class DynamicMasks:
    """Masks words as records are read, different ones in every epoch.

    The masks of a row depend on `seed`, the step (counted from `first_step`)
    and the row's index in the global batch. So they are the same for any number
    of replicas and hosts, and in a resumed run. In an evaluation, which has a
    `batch_size`, they depend on `seed` and the index of the record, so they are
    the same for any batch size, too.
    """

    settings: masking.Masking
    seed: int
    first_step: int = 0
    batch_size: int | None = None

    def apply(
        self, batch: Mapping[str, tf.Tensor], numbers: tf.Tensor, row: int
    ) -> dict[str, tf.Tensor]:
        """Masks the same rows, starting at `row`, of several global batches.

        `batch` has the features of unmasked records, [batches * rows, ...], and
        `numbers` the indices of the batches in the run, int64 [batches], from
        0.
        """
        names = [name for name in _NEEDED_TO_MASK if name in batch]

        def mask(numbers, *arrays):
            B, S = arrays[0].shape
            rows = B // len(numbers)
            # Philox counts in blocks of four numbers.
            blocks = masking.numbers_of_row(S, self.settings) // 4
            draws = []
            for number in numbers.tolist():
                step, index = self.first_step + number, row
                if self.batch_size:
                    step, index = 0, number * self.batch_size + row
                key = np.array([self.seed, step], np.uint64)
                rng = np.random.Generator(
                    np.random.Philox(key=key, counter=index * blocks)
                )
                draws.append(masking.draw(rng, rows, S, self.settings))
            masked = masking.mask(
                dict(zip(names, arrays, strict=True)),
                self.settings,
                np.concatenate(draws),
            )
            return [masked[name] for name in _MASKED]

        arrays = tf.numpy_function(
            mask,
            [numbers, *(batch[name] for name in names)],
            list(_MASKED.values()),
            stateful=False,  # else deterministic ops allow no prefetching
        )
        masked = dict(zip(_MASKED, arrays, strict=True))
        rows, S = batch["input_ids"].shape
        for name, array in masked.items():
            P = self.settings.max_predictions_per_seq
            array.set_shape([rows, S if name == "input_ids" else P])
        rest = {n: x for n, x in batch.items() if n != "word_starts"}
        return rest | masked
