"""Times pre-training on masked records, and with masks drawn while reading.

    python -m benchmarks.dynamic_masking

The same sequences are written twice, as masked records and as text that the
reader masks. run_pretraining.py's input pipeline reads each alone, and feeds
the training step with each, all four in turn. Prints sequences per second (the
median of the rounds), what dynamic masking costs the pipeline and training,
and how many times faster the pipeline is than the training step.
"""

import dataclasses
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

from bert_tf import heads, modeling, optimization
from bert_tf.pretraining_data import rows as pretraining_rows
from bert_tf.pretraining_data import sequences as pretraining_sequences
from bert_tf.records import dynamic_masks, tfrecord
from bert_tf.records import pipeline as records_pipeline
from bert_tf.records import types as record_types
from bert_tf.training import loop, pretraining, schedules
from bert_tf.vocabularies import word_pieces

import numpy as np
import tensorflow as tf
from absl import app, flags

ROOT = pathlib.Path(__file__).resolve().parent.parent
_MODEL = flags.DEFINE_string("model", "mini", "Of configs/models.")
_POLICY = flags.DEFINE_string("masking", "token", "The policy.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Times that each side runs.")
_BATCH = flags.DEFINE_integer("batch", 32, "B.")
_BATCHES = flags.DEFINE_integer("batches", 200, "Read in every round.")
_STEPS = flags.DEFINE_integer("steps", 8, "Trained in every round.")

_SPECIAL = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
VOCABULARY = word_pieces.WordPiece(
    tuple(
        _SPECIAL.get(number, f"##{number}" if number % 4 == 0 else f"w{number}")
        for number in range(30522)
    ),
    do_lower_case=True,
)
LENGTHS = {"S": 128, "P": 20}


def write(
    folder: pathlib.Path, settings: pretraining_sequences.Settings
) -> tuple[str, int]:
    """Writes random text as records; returns the file and their number."""
    rng = np.random.default_rng(0)
    sentences = rng.integers(8, 45, (400, 50))
    tokens = rng.integers(1000, 30522, sentences.sum(), dtype=np.int32)
    corpus = pretraining_sequences.Corpus(
        tokens,
        ~VOCABULARY.continues[tokens],
        pretraining_sequences.borders(sentences.ravel()),
        50 * np.arange(401),
        np.arange(400, dtype=np.uint64),
    )
    sequences = pretraining_sequences.create_sequences(
        corpus, None, settings, VOCABULARY.template, 1, 0
    )
    rows = pretraining_rows.features(sequences, VOCABULARY, settings, rng)
    path = folder / settings.record_type
    with tfrecord.Writer(path) as writer:
        record_type = record_types.PRETRAINING_TYPES[settings.record_type]
        writer.write_all(record_type.encode_batch(rows))
    return str(path), len(sequences)


def pipeline(
    folder: pathlib.Path, dynamic: bool
) -> tf.distribute.DistributedDataset:
    """Returns batches as run_pretraining.py reads them."""
    settings = pretraining_sequences.Settings(
        masking=_POLICY.value, dynamic_masking=dynamic
    )
    file, number = write(folder, settings)
    masks = None
    if dynamic:
        masks = dynamic_masks.DynamicMasks(
            pretraining_sequences.masking_of(settings, VOCABULARY), seed=1
        )
    return records_pipeline.distribute(
        tf.distribute.get_strategy(),
        records_pipeline.train([file], [number], _BATCH.value, seed=1),
        record_types.PRETRAINING_TYPES[settings.record_type],
        LENGTHS,
        masks=masks,
    )


def reader(batches):
    """Returns a function: read so many batches."""
    iterator = iter(batches)

    @tf.function
    def read(count):
        total = tf.constant(0)
        for _ in tf.range(count):
            total += tf.reduce_sum(next(iterator)["masked_lm_ids"])
        return total

    return lambda count: read(tf.constant(count)).numpy()


def trainer(batches):
    """Returns a function: train so many steps."""
    path = ROOT / "configs" / "models" / f"{_MODEL.value}.json"
    model = heads.BertPretrainer(
        modeling.Bert(modeling.BertConfig.from_json_file(str(path)))
    )
    optimizer = optimization.AdamWeightDecay(
        schedules.linear_warmup_decay(1e-4, 100, 10000)
    )
    optimizer.build(model.trainable_variables)
    train = loop.make_train_steps(
        tf.distribute.get_strategy(),
        model,
        optimizer,
        pretraining.objective("nsp"),
        batches,
        seed=1,
    )
    return lambda count: train(0, count)


@dataclasses.dataclass
class Side:
    """Something that consumes batches.

    Args:
        name: For the output.
        run: Consumes so many.
        count: How many in a round.
    """

    name: str
    run: Callable[[int], object]
    count: int

    def __post_init__(self):
        self.rates: list[float] = []

    def round(self) -> None:
        """Runs once."""
        start = time.perf_counter()
        self.run(self.count)
        seconds = time.perf_counter() - start
        self.rates.append(self.count * _BATCH.value / seconds)

    @property
    def rate(self) -> float:
        """Sequences per second."""
        return statistics.median(self.rates)


def main(_):
    """Runs the sides in turn."""
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
