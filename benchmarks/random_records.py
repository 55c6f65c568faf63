"""Records of random text, for benchmarks of readers."""

import pathlib

from bert_tf.pretraining_data import pretraining_rows, pretraining_sequences
from bert_tf.records import record_types, tfrecord
from bert_tf.vocabularies import word_pieces

import numpy as np

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
