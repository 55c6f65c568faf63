"""Tiny models for tests of SavedModels, and a process to serve them.

The process has TensorFlow and tensorflow-text, but not this package.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import modeling

import numpy as np
import tensorflow as tf

# The only op of each kind of vocabulary that is not part of TensorFlow.
WORD_PIECES = "FastWordpieceTokenizeWithOffsets"
SENTENCE_PIECES = "TFText>FastSentencepieceTokenize"

_STRANGER = """
import json, sys
# TensorFlow would import them, too, which takes seconds.
sys.modules.update(dict.fromkeys(("jax", "matplotlib", "sklearn")))
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

def ops_of(path):
    message = saved_model_pb2.SavedModel()
    with open(path + "/saved_model.pb", "rb") as file:
        message.ParseFromString(file.read())
    graph = message.meta_graphs[0].graph_def
    ops = {node.op for node in graph.node}
    for function in graph.library.function:
        ops |= {node.op for node in function.node_def}
    return ops - {x.signature.name for x in graph.library.function}

with open(sys.argv[1]) as file:
    asked = json.load(file)
answers = {}
for name, (path, *_) in asked.items():
    ops = ops_of(path)
    # Before tensorflow_text is imported: what the core knows.
    foreign = sorted(op for op in ops if op_def_registry.get(op) is None)
    answers[name] = {"ops": sorted(ops), "foreign": foreign, "rows": {}}
if any(answer["foreign"] for answer in answers.values()):
    import tensorflow_text
for name, (path, signature, inputs, size) in asked.items():
    if not inputs:
        continue
    serve = tf.saved_model.load(path).signatures[signature]
    rows = answers[name]["rows"]
    for i in range(0, len(next(iter(inputs.values()))), size):
        batch = {n: tf.constant(x[i : i + size]) for n, x in inputs.items()}
        for output, values in serve(**batch).items():
            rows.setdefault(output, []).extend(values.numpy().tolist())
answers["imports_us"] = "bert_tf" in sys.modules
with open(sys.argv[2], "w") as file:
    json.dump(answers, file, default=bytes.decode)
"""


def config(
    tokens: Sequence[str], max_position_embeddings: int = 16
) -> modeling.BertConfig:
    """Returns a tiny BERT that gives different texts different results."""
    return modeling.BertConfig(
        vocab_size=len(tokens),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=max_position_embeddings,
        type_vocab_size=2,
        initializer_range=0.5,
    )


def assert_described(
    folder: pathlib.Path, head: str, length: int, **values: Any
) -> None:
    """Compares the description in an export with what it should hold."""
    vocabulary = (folder / "assets" / "vocab.txt").read_bytes()
    text = (folder / "assets" / "export.json").read_text()
    assert json.loads(text) == {
        "head": head,
        "do_lower_case": True,
        "max_seq_length": length,
        "vocab_sha256": hashlib.sha256(vocabulary).hexdigest(),
        **values,
    }


def assert_classifier(folder: pathlib.Path, length: int, **values: Any) -> None:
    """Compares the description of a classifier that reads the head of texts."""
    values = {"long_documents": "head", "window_stride": None} | values
    assert_described(
        *(folder, "classification", length), multi_label=False, **values
    )


def some_ids(rows: int, length: int, vocab_size: int) -> dict[str, np.ndarray]:
    """Returns inputs of models: ids of sequences of any length, int32."""
    rng = np.random.default_rng(length)
    mask = np.arange(length) < rng.integers(1, length + 1, [rows, 1])
    inputs = {
        "input_ids": rng.integers(0, vocab_size, [rows, length]),
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, [rows, length]),
    }
    return {name: ids.astype(np.int32) for name, ids in inputs.items()}


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns probabilities over the last axis."""
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


class Asked(NamedTuple):
    """A request to the serving process.

    Attributes:
        path: Path of the SavedModel.
        inputs: Inputs of the signature, with a value for each row. Without any,
            only the model's ops are checked.
        signature: Name of the signature.
        batch_size: Rows per batch.
    """

    path: pathlib.Path
    inputs: Mapping[str, Sequence]
    signature: str = "serving_default"
    batch_size: int = 100


def serve(
    loaded: Any,
    signature: str = "serving_default",
    batch_size: int = 100,
    **inputs: Sequence,
) -> dict[str, list[Any]]:
    """Serves rows of a SavedModel in this process.

    Args:
        loaded: The SavedModel.
        signature: Name of the signature.
        batch_size: Rows per batch.
        **inputs: Inputs of the signature, with a value for each row.

    Returns:
        Output -> a value for each row; lists are padded as in their batch.
    """
    function = loaded.signatures[signature]
    rows: dict[str, list[Any]] = {}
    for start in range(0, len(next(iter(inputs.values()))), batch_size):
        batch = {
            name: tf.constant(values[start : start + batch_size])
            for name, values in inputs.items()
        }
        for name, values in function(**batch).items():
            found = values.numpy()
            if found.dtype == object:
                found = np.vectorize(bytes.decode, otypes=[object])(found)
            rows.setdefault(name, []).extend(found.tolist())
    return rows


def serve_all_elsewhere(
    folder: pathlib.Path, asked: Mapping[str, Asked], foreign: Sequence[str]
) -> dict[str, dict[str, list[Any]]]:
    """Serves rows in a process without this package, and checks the ops.

    Args:
        folder: Working directory.
        asked: Name -> request.
        foreign: The ops of each SavedModel that are not part of TensorFlow.

    Returns:
        Name -> output -> a value for each row.
    """
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(
        json.dumps(
            {
                name: (str(x.path), x.signature, x.inputs, x.batch_size)
                for name, x in asked.items()
            }
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", _STRANGER, str(request), str(answer)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(answer.read_text())
    assert not found.pop("imports_us")
    for model in found.values():
        assert len(model["ops"]) > 50
        # All ops that TensorFlow Serving's binary registers besides the core.
        assert model["foreign"] == list(foreign)
        # No Python functions, and no state that grows in a server.
        refused = ("PyFunc", "Mutable")
        assert not [x for x in model["ops"] if any(y in x for y in refused)]
    return {name: model["rows"] for name, model in found.items()}
