"""Tests of exported feature extractors, against Python's own features."""

import json
import subprocess
import sys

from bert_tf import export_features, features, modeling
from tests import test_features

import numpy as np
import pytest
import tensorflow as tf

_CHOICE = features.Choice("layers", (-1, -2))
_PAIRS = [text.partition(" ||| ")[::2] for text in test_features.TEXTS]
TEXTS_A, TEXTS_B = map(list, zip(*_PAIRS, strict=True))


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    return modeling.Bert(test_features.CONFIG)


def save(path, model, unit="token", choice=_CHOICE):
    export_features.save_extractor(
        str(path),
        model,
        test_features.VOCAB,
        do_lower_case=True,
        max_seq_length=test_features.LENGTH,
        choice=choice,
        unit=unit,
    )


_STRANGER = """
import json, sys
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

path, texts_a, texts_b = json.loads(sys.argv[1])
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
serve = tf.saved_model.load(path).signatures["serving_default"]
outputs = serve(text_a=tf.constant(texts_a), text_b=tf.constant(texts_b))
print(json.dumps({
    "foreign": foreign,
    "outputs": {name: x.numpy().tolist() for name, x in outputs.items()},
    "imports_us": "bert_tf" in sys.modules,
}))
"""


def test_tokens_in_another_process(model, tmp_path):
    save(tmp_path / "tokens", model)
    arguments = json.dumps([str(tmp_path / "tokens"), TEXTS_A, TEXTS_B])
    done = subprocess.run(
        [sys.executable, "-c", _STRANGER, arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["imports_us"]
    assert found["foreign"] == ["FastWordpieceTokenizeWithOffsets"]
    outputs = {name: np.array(x) for name, x in found["outputs"].items()}
    lines, expected = test_features.extract(model, _CHOICE, "token")
    for i, (line, vectors) in enumerate(zip(lines, expected, strict=True)):
        size = len(line.ids)
        assert outputs["input_ids"][i, :size].tolist() == list(line.ids)
        assert outputs["input_mask"][i].sum() == size
        np.testing.assert_allclose(
            outputs["vectors"][i, :size], vectors, atol=1e-5
        )
        assert not outputs["vectors"][i, size:].any()


def test_one_vector_of_a_text(model, tmp_path):
    save(tmp_path / "mean", model, "mean", features.Choice("last"))
    loaded = tf.saved_model.load(str(tmp_path / "mean"))
    found = loaded(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
    _, expected = test_features.extract(model, features.Choice("last"), "mean")
    np.testing.assert_allclose(
        found["vectors"], np.concatenate(expected), atol=1e-5
    )
    alone = loaded(tf.constant(TEXTS_A[:1]))["vectors"]
    np.testing.assert_allclose(alone, expected[0], atol=1e-5)


def test_words_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match="unit=word"):
        save(tmp_path / "new", model, "word")
    assert not (tmp_path / "new").exists()
