"""Values of a pre-training record, for tests of records."""

import numpy as np

LENGTHS = {"S": 8, "P": 3}


def pretraining_values(seed=0, sequence=8, predictions=3):
    rng = np.random.default_rng(seed)
    return {
        "input_ids": rng.integers(0, 30_522, sequence),
        "input_mask": [1] * (sequence - 2) + [0] * 2,
        "segment_ids": np.arange(sequence) // 4,
        "masked_lm_positions": np.arange(predictions, dtype=np.int32),
        "masked_lm_ids": rng.integers(0, 30_522, predictions),
        "masked_lm_weights": np.linspace(0, 1, predictions),
        "next_sentence_labels": [seed % 2],
    }
