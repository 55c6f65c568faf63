"""Times pre-training with static masks, and with masks drawn while reading.

    python -m benchmarks.dynamic_masking

The same sequences are written twice: as masked records, and as text that is
masked by the reader. run_pretraining.py's input pipeline runs alone and with
the training step, for both kinds, all four in turn. Prints sequences/s (the
median of the rounds), the cost of dynamic masking for the pipeline and for
training, and how many times as fast as the training step the pipeline is.
"""

import dataclasses
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

from benchmarks import pretraining_step, random_records
from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import dynamic_masks, record_types
from bert_tf.records import pipeline as records_pipeline

import tensorflow as tf
from absl import app, flags

_MODEL = flags.DEFINE_string("model", "mini", "Of configs/models.")
_POLICY = flags.DEFINE_string("masking", "token", "The policy.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Times that each side runs.")
_BATCH = flags.DEFINE_integer("batch", 32, "B.")
_BATCHES = flags.DEFINE_integer("batches", 200, "Read in every round.")
_STEPS = flags.DEFINE_integer("steps", 8, "Trained in every round.")


def pipeline(
    folder: pathlib.Path, dynamic: bool
) -> tf.distribute.DistributedDataset:
    """Returns batches as run_pretraining.py reads them."""
    settings = pretraining_sequences.Settings(
        masking=_POLICY.value, dynamic_masking=dynamic
    )
    file, number = random_records.write(folder, settings)
    masks = None
    if dynamic:
        masks = dynamic_masks.DynamicMasks(
            pretraining_sequences.masking_of(
                settings, random_records.VOCABULARY
            ),
            seed=1,
        )
    return records_pipeline.distribute(
        tf.distribute.get_strategy(),
        lambda: records_pipeline.train([file], [number], _BATCH.value, seed=1),
        record_types.PRETRAINING_TYPES[settings.record_type],
        random_records.LENGTHS,
        masks=masks,
    )


def reader(batches):
    """Returns a function that reads a number of batches."""
    iterator = iter(batches)

    @tf.function
    def read(count):
        total = tf.constant(0)
        for _ in tf.range(count):
            total += tf.reduce_sum(next(iterator)["masked_lm_ids"])
        return total

    return lambda count: read(tf.constant(count)).numpy()


def trainer(batches):
    """Returns a function that trains a number of steps."""
    train = pretraining_step.train_steps(_MODEL.value, "nsp", batches)
    return lambda count: train(0, count)


@dataclasses.dataclass
class Side:
    """A consumer of batches.

    Args:
        name: Name in the output.
        run: Consumes a number of batches.
        count: Number of batches per round.
    """

    name: str
    run: Callable[[int], object]
    count: int

    def __post_init__(self):
        self.rates: list[float] = []

    def round(self) -> None:
        """Runs one round."""
        start = time.perf_counter()
        self.run(self.count)
        seconds = time.perf_counter() - start
        self.rates.append(self.count * _BATCH.value / seconds)

    @property
    def rate(self) -> float:
        """Returns sequences per second."""
        return statistics.median(self.rates)


def main(_):
    """Runs the consumers in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sides = []
        for kind, make, count in (
            ("input", reader, _BATCHES.value),
            ("training", trainer, _STEPS.value),
        ):
            for dynamic in (False, True):
                how = "masked while reading" if dynamic else "masked records"
                run = make(pipeline(folder, dynamic))
                run(2)  # traces, and fills the buffers
                sides.append(Side(f"{kind}, {how}", run, count))
        for _ in range(_ROUNDS.value):
            for side in sides:
                side.round()
    print(
        f"BERT-{_MODEL.value}, S=128, P=20, B={_BATCH.value}, "
        f"masking={_POLICY.value}, {os.cpu_count()} cores"
    )
    for side in sides:
        print(f"{side.name:30} {side.rate:10,.0f} sequences/s")
    masked, reading, masked_step, reading_step = (side.rate for side in sides)
    print(f"{'dynamic / static, input':30} {reading / masked:10.3f}")
    print(
        f"{'dynamic / static, training':30} {reading_step / masked_step:10.3f}"
    )
    print(f"{'dynamic input / training':30} {reading / reading_step:10.1f}")


if __name__ == "__main__":
    app.run(main)
