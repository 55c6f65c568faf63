"""Times pre-training on packed rows against padded ones, on real text.

    python -m benchmarks.packing --vocab_file=vocab.txt \
        --input_file=enwiki_AA.txt --input_format=wikiextractor

The same sequences of the same text, with the lengths of its documents, one per
row or several. The model trains on each in turn. Prints the fraction of
padding, and real tokens/s (the median of the rounds) with their ratio.
"""

import itertools
import os
import pathlib
import statistics
import tempfile
import time

from benchmarks import pretraining_step
from bert_tf import options, vocabularies
from bert_tf.flags import text_flags
from bert_tf.pretraining_data import (
    corpus,
    pretraining_rows,
    pretraining_sequences,
    stages,
)
from bert_tf.records import pipeline, record_types, tfrecord

import numpy as np
import tensorflow as tf
from absl import app, flags

_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_MODEL = flags.DEFINE_string("model", "tiny", "Of configs/models.")
_LENGTH = flags.DEFINE_integer("length", 512, "S.")
_OBJECTIVE = flags.DEFINE_enum(
    "objective", "nsp", tuple(options.OBJECTIVES), "What is learnt."
)
_DOCUMENTS = flags.DEFINE_integer("documents", 1000, "Of the text.")
_BATCH = flags.DEFINE_integer("batch", 16, "B, in rows.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Times that each side runs.")
_STEPS = flags.DEFINE_integer("steps", 10, "Trained in every round.")


def make_sequences(settings, vocabulary):
    """Cuts the first documents of the text into sequences."""
    tokenizer = vocabulary.bulk_tokenizer()
    texts = itertools.chain.from_iterable(
        corpus.read(unit, text_flags.reader()) for unit in text_flags.units()
    )
    documents = list(itertools.islice(texts, _DOCUMENTS.value))
    made = stages.tokenize_documents(documents, tokenizer, vocabulary)
    sequences = pretraining_sequences.create_sequences(
        made, None, settings, vocabulary.template, 1, 0
    )
    order = np.random.default_rng(1).permutation(len(sequences))
    return sequences.take(order)


def make_trainer(folder, sequences, settings, vocabulary):
    """Writes records; returns a function that trains, and their statistics."""
    rng = np.random.default_rng(1)
    rows = pretraining_rows.features(sequences, vocabulary, settings, rng)
    path = str(folder / settings.record_type)
    record_type = record_types.PRETRAINING_TYPES[settings.record_type]
    with tfrecord.Writer(path) as writer:
        writer.write_all(record_type.encode_batch(rows))
    batches = pipeline.distribute(
        tf.distribute.get_strategy(),
        lambda: pipeline.train([path], [writer.records], _BATCH.value, seed=1),
        record_type,
        {
            "S": settings.max_seq_length,
            "P": settings.max_predictions_per_seq,
            "K": settings.max_sequences_per_row,
        },
    )
    train = pretraining_step.train_steps(
        _MODEL.value, settings.objective, batches
    )
    return train, pretraining_rows.statistics(rows, vocabulary)


def main(_):
    """Trains on both in turn."""
    vocabulary = vocabularies.open(_VOCAB_FILE.value, do_lower_case=True)
    settings = [
        pretraining_sequences.Settings(
            _LENGTH.value,
            round(0.15 * _LENGTH.value) + 1,
            objective=_OBJECTIVE.value,
            pack=pack,
        )
        for pack in (False, True)
    ]
    sequences = make_sequences(settings[0], vocabulary)
    rates: list[list[float]] = [[], []]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sides = [
            make_trainer(folder, sequences, side, vocabulary)
            for side in settings
        ]
        for train, _ in sides:
            train(0, 2)
        for _ in range(_ROUNDS.value):
            for own, (train, _) in zip(rates, sides, strict=True):
                start = time.perf_counter()
                tokens = train(0, _STEPS.value).counts["tokens"]
                own.append(tokens / (time.perf_counter() - start))
    print(
        f"BERT-{_MODEL.value}, S={_LENGTH.value}, B={_BATCH.value}, "
        f"{_OBJECTIVE.value}, {os.cpu_count()} cores"
    )
    padded, packed = (statistics.median(rate) for rate in rates)
    for kind, rate, (_, counts) in zip(
        ("padded", "packed"), (padded, packed), sides, strict=True
    ):
        padding = counts["padding_tokens"]
        share = padding / (padding + counts["real_tokens"])
        print(
            f"{kind}: {counts['instances']:,} sequences in "
            f"{counts['rows']:,} rows, {share:.1%} padding, "
            f"{rate:,.0f} real tokens/s"
        )
    print(f"packed / padded {packed / padded:.2f}")


if __name__ == "__main__":
    app.run(main)
