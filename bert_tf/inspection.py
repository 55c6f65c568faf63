"""Shows pre-training records as a person can read them.

    record 3: part-00000.tfrecord, 31 of 128 tokens, 5 predictions
      1 [CLS] the [MASK→cat] sat =on the mat→roof . [SEP] it slept . [SEP]
        second segment: follows the first (label 0)

A [MASK] says what it hides, a replaced token what it was and what it is, and a
token that is to be predicted as it stands has an equals sign.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from bert_tf import input_pipeline, manifests, masking, records

import numpy as np
import tensorflow as tf

# Label -> what it says of the second segment, by the objective of the data.
_LABELS = {
    "nsp": ("follows the first", "is of another document"),
    "sop": ("follows the first", "comes before the first: swapped"),
}


def show(
    files: Sequence[str], pieces: Sequence[str], number: int
) -> Iterator[str]:
    """Yields the first records of some files, each as lines of text.

    Records that are masked while they are read are shown with masks such as
    training draws.

    Args:
        files: Of pre-training records, with or without a manifest.
        pieces: The vocabulary.
        number: How many records to show.
    """
    manifest = manifests.find(files)
    objective, masks = "nsp", None
    if manifest is not None:
        objective = manifest.objective
        if manifest.dynamic_masking:
            settings = masking.Masking(**manifest.masking)
            masks = input_pipeline.DynamicMasks(settings, manifest.seed)
    shown = 0
    for file in files:
        for row in _rows(file, number - shown):
            if masks is not None:
                batch = {n: tf.constant(x[np.newaxis]) for n, x in row.items()}
                batch = masks.apply(batch, tf.constant([0], tf.int64), shown)
                row = {name: x[0].numpy() for name, x in batch.items()}
            if "masked_lm_weights" not in row:
                raise ValueError(
                    f"{file} holds text without masks: copy the manifest that "
                    "belongs to it, which says how training masks it"
                )
            shown += 1
            yield _text(shown, file, row, pieces, objective)


def _rows(file: str, number: int) -> Iterator[dict[str, np.ndarray]]:
    """Yields the features of a file's first records."""
    with input_pipeline.explained([file]):
        for serialized in tf.data.TFRecordDataset(file).take(number):
            yield _decode(file, serialized.numpy())


def _decode(file: str, record: bytes) -> dict[str, np.ndarray]:
    """Returns the features of a record, whatever their lengths."""
    features = records.decode(file, record).features.feature
    row = {}
    for name, feature in features.items():
        if feature.HasField("float_list"):
            values = np.array(feature.float_list.value, np.float32)
        else:
            values = np.array(feature.int64_list.value, np.int32)
        row[name] = values
    if not {"input_ids", "segment_ids", "next_sentence_labels"} <= row.keys():
        raise ValueError(
            f"{file} does not hold pre-training records. "
            f"Received: features={sorted(row)}"
        )
    return row


def _text(
    number: int,
    file: str,
    row: Mapping[str, np.ndarray],
    pieces: Sequence[str],
    objective: str,
) -> str:
    ids, mask = row["input_ids"], row["input_mask"]
    is_prediction = row["masked_lm_weights"] > 0
    places = row["masked_lm_positions"][is_prediction].tolist()
    hidden = _pieces(pieces, row["masked_lm_ids"][is_prediction], file)
    labels = dict(zip(places, hidden, strict=True))
    tokens = [
        _token(piece, labels.get(place))
        for place, piece in enumerate(_pieces(pieces, ids, file))
    ]
    lines = [
        f"record {number}: {os.path.basename(file)}, {int(mask.sum())} of "
        f"{len(ids)} tokens, {len(labels)} predictions"
    ]
    sequences = row.get("sequence_ids", mask)
    for sequence in range(1, int(sequences.max()) + 1):
        inside = np.flatnonzero(sequences == sequence)
        text = " ".join(tokens[place] for place in inside)
        lines.append(f"{sequence:3} {text}")
        label = int(row["next_sentence_labels"][sequence - 1])
        if objective in _LABELS and row["segment_ids"][inside].any():
            said = _LABELS[objective][label]
            lines.append(f"    second segment: {said} (label {label})")
    return "\n".join(lines)


def _pieces(pieces: Sequence[str], ids: np.ndarray, file: str) -> list[str]:
    if len(ids) and not 0 <= ids.min() <= ids.max() < len(pieces):
        raise ValueError(
            f"{file} holds the token {ids.max()}, the vocabulary has "
            f"{len(pieces)}: give the one that the records were made with"
        )
    return [pieces[token] for token in ids]


def _token(piece: str, label: str | None) -> str:
    if label is None:
        return piece
    if piece == label:
        return f"={piece}"
    return f"[MASK→{label}]" if piece == "[MASK]" else f"{label}→{piece}"
