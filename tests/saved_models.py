"""What tests of SavedModels share: tiny models, and a stranger to serve them.

The stranger is a fresh process that has TensorFlow and tensorflow-text, and
not this package.
"""

import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bert_tf import modeling

import numpy as np

_STRANGER = """
import json, sys
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

with open(sys.argv[1]) as file:
    path, signature, inputs, size = json.load(file)
message = saved_model_pb2.SavedModel()
with open(path + "/saved_model.pb", "rb") as file:
    message.ParseFromString(file.read())
graph = message.meta_graphs[0].graph_def
ops = {node.op for node in graph.node}
for function in graph.library.function:
    ops |= {node.op for node in function.node_def}
ops -= {function.signature.name for function in graph.library.function}
# Before tensorflow_text is imported: what the core knows.
foreign = sorted(op for op in ops if op_def_registry.get(op) is None)

import tensorflow_text
serve = tf.saved_model.load(path).signatures[signature]
rows = {}
for start in range(0, len(next(iter(inputs.values()))), size):
    batch = {n: tf.constant(x[start : start + size]) for n, x in inputs.items()}
    for name, values in serve(**batch).items():
        rows.setdefault(name, []).extend(values.numpy().tolist())
with open(sys.argv[2], "w") as file:
    json.dump({
        "ops": len(ops),
        "foreign": foreign,
        "python": sorted(op for op in ops if "PyFunc" in op),
        "rows": rows,
        "imports_us": "bert_tf" in sys.modules,
    }, file, default=bytes.decode)
"""


def config(
    pieces: Sequence[str], layers: int = 2, max_position_embeddings: int = 16
) -> modeling.BertConfig:
    """Returns a tiny BERT that gives other texts other results."""
    return modeling.BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=max_position_embeddings,
        type_vocab_size=2,
        initializer_range=0.5,
    )


def some_ids(rows: int, length: int, vocab_size: int) -> dict[str, np.ndarray]:
    """Returns what models take: ids of rows of any length, int32."""
    rng = np.random.default_rng(length)
    mask = np.arange(length) < rng.integers(1, length + 1, [rows, 1])
    inputs = {
        "input_ids": rng.integers(0, vocab_size, [rows, length]),
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, [rows, length]),
    }
    return {name: ids.astype(np.int32) for name, ids in inputs.items()}


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def serve_elsewhere(
    folder: pathlib.Path,
    path: pathlib.Path,
    signature: str = "serving_default",
    batch_size: int = 100,
    tokenizer: str = "FastWordpieceTokenizeWithOffsets",
    **inputs: Sequence,
) -> dict[str, list[Any]]:
    """Serves rows by a stranger, and checks that it needs no more than it has.

    Args:
        folder: To work in.
        path: Of the SavedModel.
        signature: Which one.
        batch_size: Rows at a time.
        tokenizer: Its one op that is not TensorFlow's own.
        **inputs: The signature's, a value for each row.

    Returns:
        Output -> a value for each row; lists are padded as in their batch.
    """
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(json.dumps([str(path), signature, inputs, batch_size]))
    done = subprocess.run(
        [sys.executable, "-c", _STRANGER, str(request), str(answer)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(answer.read_text())
    assert not found["imports_us"]
    assert found["ops"] > 50
    # All that TensorFlow Serving's binary registers besides the core.
    assert found["foreign"] == [tokenizer]
    assert found["python"] == []
    return found["rows"]
