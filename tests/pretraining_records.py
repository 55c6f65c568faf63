"""Tiny pre-training data and a matching model, for tests of training."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.pretraining_data import pretraining_rows, pretraining_sequences
from bert_tf.records import manifests, reading, record_types, tfrecord
from bert_tf.vocabularies import word_pieces

import numpy as np
import tensorflow as tf

LENGTHS = {"S": 16, "P": 4}
CONFIG: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}
WITHOUT_DROPOUT = CONFIG | {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def values(
    rng: np.random.Generator, sequence: int = 16, predictions: int = 4
) -> dict[str, Any]:
    """Returns one record's features, with a random number of predictions."""
    length = int(rng.integers(sequence // 2, sequence + 1))
    real = int(rng.integers(0, predictions + 1))
    tokens = np.arange(sequence) < length
    slots = np.arange(predictions) < real
    positions = rng.choice(np.arange(1, length), predictions, replace=False)
    return {
        "input_ids": rng.integers(1, 40, sequence) * tokens,
        "input_mask": tokens * 1,
        "segment_ids": tokens * (np.arange(sequence) >= length // 2) * 1,
        "masked_lm_positions": np.sort(positions) * slots,
        "masked_lm_ids": rng.integers(1, 40, predictions) * slots,
        "masked_lm_weights": slots.astype(float),
        "next_sentence_labels": [rng.integers(2)],
    }


def tensors(rows: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    """Returns rows as parsed records: float32 and int32."""
    return {
        name: tf.constant(x, tf.float32 if x.dtype.kind == "f" else tf.int32)
        for name, x in rows.items()
    }


def write(
    folder: pathlib.Path,
    counts: Sequence[int] = (7, 12, 5),
    seed: int = 0,
    **lengths: int,
) -> list[str]:
    """Writes files with these numbers of random records; returns the paths."""
    rng = np.random.default_rng(seed)
    files = []
    for number, count in enumerate(counts):
        path = folder / f"records-{number}.tfrecord"
        with tfrecord.Writer(path) as writer:
            for _ in range(count):
                features = values(rng, **lengths)
                writer.write(record_types.PRETRAINING.encode(features))
        files.append(str(path))
    return files


# Has as many tokens as the model.
VOCABULARY = word_pieces.WordPiece(
    (
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        *(f"w{number}" for number in range(5, 31)),
        *(f"##s{number}" for number in range(31, 40)),
    ),
    do_lower_case=True,
)


def make_sequences(
    settings: pretraining_sequences.Settings, documents: int = 40, seed: int = 0
) -> pretraining_sequences.Sequences:
    """Cuts random text into sequences."""
    rng = np.random.default_rng(seed)
    sentences = rng.integers(1, 12, (documents, 5))
    tokens = rng.integers(5, 40, sentences.sum(), dtype=np.int32)
    corpus = pretraining_sequences.Corpus(
        tokens,
        ~VOCABULARY.continues[tokens],
        pretraining_sequences.borders(sentences.ravel()),
        5 * np.arange(documents + 1),
        np.arange(documents, dtype=np.uint64),
    )
    return pretraining_sequences.create_sequences(
        corpus, None, settings, VOCABULARY.template, seed, 0
    )


def write_made(
    folder: pathlib.Path, settings: pretraining_sequences.Settings
) -> list[str]:
    """Writes records of random text, with a manifest."""
    record_type = record_types.PRETRAINING_TYPES[settings.record_type]
    files = []
    for number in range(2):
        rows = pretraining_rows.features(
            make_sequences(settings, seed=number),
            VOCABULARY,
            settings,
            np.random.default_rng(number),
        )
        path = folder / f"made-{number}.tfrecord"
        with tfrecord.Writer(path) as writer:
            writer.write_all(record_type.encode_batch(rows))
        files.append(str(path))
    masks = pretraining_sequences.masking_of(settings, VOCABULARY)
    write_manifest(
        files,
        record_type=settings.record_type,
        vocab_sha256=VOCABULARY.sha256,
        max_seq_length=settings.max_seq_length,
        max_predictions_per_seq=settings.max_predictions_per_seq,
        objective=settings.objective,
        masking=dataclasses.asdict(masks),
        dynamic_masking=settings.dynamic_masking,
        sequences_per_row=(
            settings.max_sequences_per_row if settings.pack else 1
        ),
    )
    return files


def manifest(**changes: Any) -> manifests.Manifest:
    """Returns the manifest of such records, with some values changed."""
    fields: dict[str, Any] = {
        "record_type": "pretraining",
        "max_seq_length": 16,
        "max_predictions_per_seq": 4,
        "vocab_sha256": "ab" * 32,
        "vocab_size": 40,
        "do_lower_case": True,
        "masking": {},
        "seed": 12345,
        "statistics": {},
    }
    return manifests.Manifest(**fields | changes)


def write_manifest(files: Sequence[str], **changes: Any) -> None:
    """Writes manifest.json next to the files, with some values changed."""
    shards = tuple(
        manifests.Shard(pathlib.Path(file).name, count)
        for file, count in zip(files, reading.count(files), strict=True)
    )
    path = pathlib.Path(files[0]).with_name("manifest.json")
    manifest(**{"shards": shards} | changes).write(path)


def write_config(path: pathlib.Path, **changes: Any) -> str:
    """Writes a bert_config.json of the tiny model and returns its path."""
    path.write_text(json.dumps(CONFIG | changes))
    return str(path)
