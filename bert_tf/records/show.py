"""Prints pre-training records in readable form.

    record 3: part-00000.tfrecord, 31 of 128 tokens, 5 predictions
      1 [CLS] the [MASK→cat] sat =on the mat→roof . [SEP] it slept . [SEP]
        second segment: follows the first (label 0)

A [MASK] shows the original token, a replaced token shows the original and the
replacement, and a token that is predicted unchanged has an equals sign.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.records import (
    dynamic_masks,
    manifests,
    masking,
    pipeline,
    reading,
    record_types,
)

import numpy as np
import tensorflow as tf

# Features whose numbers of values are the lengths of a record.
_MEASURES = {
    "S": "input_ids",
    "P": "masked_lm_positions",
    "K": "next_sentence_labels",
}
# Objective -> the meaning of label 0 and 1 for the second segment.
_LABELS = {
    "nsp": ("follows the first", "is of another document"),
    "sop": ("follows the first", "comes before the first: swapped"),
}


def show(
    files: Sequence[str], vocabulary: vocabularies.Vocabulary, number: int
) -> Iterator[str]:
    """Yields the first `number` records, each as lines of text.

    Unmasked records get masks as in training. Raises InputError if the files
    can't be read, are not pre-training records, or according to their manifest
    were made with another vocabulary.
    """
    manifest = manifests.find(files)
    objective, masks = None, None
    if manifest is not None:
        if manifest.vocab_sha256 != vocabulary.sha256:
            raise InputError(
                f"{files[0]} was not made with this vocabulary: its manifest "
                "has another vocab_sha256. Give the one that it was made "
                f"with. Received: {len(vocabulary.pieces)} tokens, in the "
                f"manifest {manifest.vocab_size}"
            )
        manifest.check_kind(vocabulary.kind, vocabulary.settings)
        objective = manifest.objective
        if manifest.dynamic_masking:
            settings = masking.Masking.of_manifest(manifest.masking, files[0])
            masks = dynamic_masks.DynamicMasks(settings, manifest.seed)
    shown = 0
    for file in files:
        if shown == number:
            return
        for row, original in _rows(file, number - shown, vocabulary):
            if masks is not None:
                batch = {n: _batch_of_one(x) for n, x in row.items()}
                batch = masks.apply(batch, tf.constant([0], tf.int64), shown)
                row = {name: x[0].numpy() for name, x in batch.items()}
            if "masked_lm_weights" not in row:
                raise InputError(
                    f"{file} holds text without masks: copy the manifest that "
                    "belongs to it, which says how training masks it"
                )
            shown += 1
            yield _text(shown, file, row, vocabulary, objective or original)


def _batch_of_one(values: np.ndarray) -> tf.Tensor:
    is_float = values.dtype == np.float32
    return tf.constant(values[np.newaxis], tf.float32 if is_float else tf.int32)


def _rows(
    file: str, number: int, vocabulary: vocabularies.Vocabulary
) -> Iterator[tuple[dict[str, np.ndarray], str]]:
    """Yields each record, and its objective if there is no manifest."""
    seen = 0
    reading.check_lengths(file, number)
    with pipeline.explained([file]):
        for serialized in tf.data.TFRecordDataset(file).take(number):
            seen += 1
            record = serialized.numpy()
            row = _decode(file, seen, record)
            _check_ranges(f"{file}, record {seen}", row, vocabulary.template)
            yield row, reading.original_objective(file, record, seen)
    if seen < number:
        # TensorFlow takes a truncated header for the end of the file.
        reading.count([file])


def _decode(file: str, number: int, record: bytes) -> dict[str, np.ndarray]:
    """Returns the features of a record, of any lengths."""
    stored = reading.decode(file, record, number).features.feature
    kinds = [
        kind
        for kind in record_types.PRETRAINING_TYPES.values()
        if {feature.name for feature in kind.features} <= stored.keys()
    ]
    if not kinds:
        raise InputError(
            f"{file} does not hold pre-training records: give those that "
            "create_pretraining_data.py has made. "
            f"Received: features={sorted(stored)}"
        )
    # Packed rows have all features of the other types.
    features = max((kind.features for kind in kinds), key=len)
    row = {
        feature.name: np.array(
            stored[feature.name].float_list.value
            if feature.dtype == tf.float32
            else stored[feature.name].int64_list.value,
            feature.dtype.as_numpy_dtype,
        )
        for feature in features
    }
    lengths = {x: len(row.get(name, ())) for x, name in _MEASURES.items()}
    where = f"{file}, record {number}"
    for feature in features:
        expected = int(np.prod(feature.shape(lengths)))
        if not expected or len(row[feature.name]) != expected:
            stored_as = stored[feature.name].WhichOneof("kind")
            kind = "float" if feature.dtype == tf.float32 else "int"
            raise InputError(
                f"{where}: {feature.name} must hold {expected or 'some'} "
                f"{'floats' if kind == 'float' else 'integers'}. Make the data "
                f"again. Received: {len(row[feature.name])} in its {stored_as}"
            )
    return row


def _check_ranges(
    where: str,
    row: Mapping[str, np.ndarray],
    template: vocabularies.Template,
) -> None:
    """Raises InputError if an index is outside of the record."""
    most_segments = max(1, *template.segments)
    for name, most in (
        ("input_mask", 1),
        ("segment_ids", most_segments),
        ("next_sentence_labels", 1),
        ("masked_lm_positions", len(row["input_ids"]) - 1),
        ("sequence_ids", len(row["next_sentence_labels"])),
    ):
        for wrong in row.get(name, np.empty(0)):
            if not 0 <= wrong <= most:
                raise InputError(
                    f"{where}: {name} must be from 0 to {most}. Make the data "
                    f"again. Received: {name}={wrong}"
                )


def _text(
    number: int,
    file: str,
    row: Mapping[str, np.ndarray],
    vocabulary: vocabularies.Vocabulary,
    objective: str,
) -> str:
    pieces, mask_piece = vocabulary.pieces, vocabulary.special.mask.text
    ids, mask = row["input_ids"], row["input_mask"]
    is_prediction = row["masked_lm_weights"] > 0
    places = row["masked_lm_positions"][is_prediction].tolist()
    hidden = _pieces(pieces, row["masked_lm_ids"][is_prediction], file)
    labels = dict(zip(places, hidden, strict=True))
    tokens = [
        _token(piece, labels.get(place), mask_piece)
        for place, piece in enumerate(_pieces(pieces, ids, file))
    ]
    lines = [
        f"record {number}: {os.path.basename(file)}, {int(mask.sum())} of "
        f"{len(ids)} tokens, {len(labels)} predictions"
    ]
    unmasked = ids.copy()
    unmasked[places] = row["masked_lm_ids"][is_prediction]
    sequences = row.get("sequence_ids", mask)
    for sequence in range(1, int(sequences.max()) + 1):
        inside = np.flatnonzero(sequences == sequence)
        text = " ".join(tokens[place] for place in inside)
        lines.append(f"{sequence:3} {text}")
        label = int(row["next_sentence_labels"][sequence - 1])
        is_pair = _is_pair(unmasked[inside].tolist(), vocabulary.template)
        if objective in _LABELS and is_pair:
            said = _LABELS[objective][label]
            lines.append(f"    second segment: {said} (label {label})")
    return "\n".join(lines)


def _is_pair(ids: Sequence[int], template: vocabularies.Template) -> bool:
    """Returns whether the separator of two texts is inside an unmasked row.

    Segment ids can't show this: some kinds of vocabularies have the same for
    both.
    """
    size = len(template.between)
    start, end = len(template.before), len(ids) - len(template.after)
    return any(
        tuple(ids[place : place + size]) == template.between
        for place in range(start, end - size + 1)
    )


def _pieces(pieces: Sequence[str], ids: np.ndarray, file: str) -> list[str]:
    for token in ids:
        if not 0 <= token < len(pieces):
            raise InputError(
                f"{file} holds the token {token}, the vocabulary has "
                f"{len(pieces)}: give the one that the records were made with"
            )
    return [pieces[token] for token in ids]


def _token(piece: str, label: str | None, mask: str) -> str:
    if label is None:
        return piece
    if piece == label:
        return f"={piece}"
    if piece == mask:
        return f"{mask[:-1]}→{label}{mask[-1:]}"
    return f"{label}→{piece}"
