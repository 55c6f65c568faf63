"""Runs SavedModels for benchmarks/same_as_before.py, without bert_tf.

    python benchmarks/same/answers_of_exports.py \
        QUESTIONS FOLDER NAME=SAVED_MODEL ...

For each SavedModel, writes the outputs of every signature to FOLDER, as
NAME.SIGNATURE.npz. Signatures that take text get the lines of QUESTIONS, by the
names of their inputs; signatures that take ids get random ones.
"""

import json
import pathlib
import sys
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

_BATCH = 50
# For ids: the vocabulary size of the models, and an arbitrary length.
_PIECES, _ROWS, _CHOICES, _LENGTH = 30522, 200, 3, 24


def _ids(shapes: dict[str, Any]) -> dict[str, np.ndarray]:
    """Returns random ids, some of them padding: [B, S] or [B, K, S]."""
    rng = np.random.default_rng(1)
    rank = len(shapes["input_ids"])
    shape = {2: (_ROWS, _LENGTH), 3: (_ROWS, _CHOICES, _LENGTH)}[rank]
    lengths = rng.integers(3, _LENGTH + 1, (*shape[:-1], 1))
    mask = np.arange(_LENGTH) < lengths
    known = {
        "input_ids": rng.integers(1, _PIECES, shape) * mask,
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, shape) * mask,
        "masked_lm_positions": rng.integers(0, 3, (_ROWS, 2)),
    }
    return {name: known[name].astype(np.int32) for name in shapes}


def _examples(texts: list[str]) -> np.ndarray:
    """Serializes texts as tf.Examples, for classify and regress."""
    features = [
        {"text": tf.train.Feature(bytes_list={"value": [text.encode()]})}
        for text in texts
    ]
    examples = [tf.train.Example(features={"feature": x}) for x in features]
    return np.array([x.SerializeToString() for x in examples], object)


def _answers(signature: Any, questions: dict[str, list[Any]]) -> dict[str, Any]:
    """Returns output -> values of all rows, padded to the longest batch."""
    _, specs = signature.structured_input_signature
    if "inputs" in specs:
        inputs = {"inputs": _examples(questions["text_a"])}
    elif "input_ids" in specs:
        inputs = _ids({name: spec.shape for name, spec in specs.items()})
    else:
        inputs = {name: np.array(questions[name], object) for name in specs}
    rows = len(next(iter(inputs.values())))
    batches: dict[str, list[np.ndarray]] = {}
    for start in range(0, rows, _BATCH):
        batch = {
            name: tf.constant(values[start : start + _BATCH].tolist())
            for name, values in inputs.items()
        }
        for name, values in signature(**batch).items():
            batches.setdefault(name, []).append(values.numpy())
    return {name: _joined(arrays) for name, arrays in batches.items()}


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    if arrays[0].dtype == object:  # bytes
        arrays = [array.astype("S") for array in arrays]
    longest = np.max([array.shape[1:] for array in arrays], axis=0)
    return np.concatenate(
        [
            np.pad(
                array,
                [(0, 0)]
                + [
                    (0, int(most) - size)
                    for most, size in zip(longest, array.shape[1:], strict=True)
                ],
            )
            for array in arrays
        ]
    )


def main() -> None:
    """Runs all models."""
    path, folder, *models = sys.argv[1:]
    questions = json.loads(pathlib.Path(path).read_text())
    for model in models:
        name, _, saved_model = model.partition("=")
        signatures = tf.saved_model.load(saved_model).signatures
        for key in sorted(signatures):
            found = _answers(signatures[key], questions)
            np.savez(f"{folder}/{name}.{key}.npz", **found)
    if "bert_tf" in sys.modules:
        raise SystemExit("bert_tf was imported, which no stranger has.")


if __name__ == "__main__":
    main()
