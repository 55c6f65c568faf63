"""Byte pairs in SavedModels: only TensorFlow's own ops, nothing of ours."""

import subprocess
import sys

from bert_tf.text import byte_pairs
from tests.vocabularies import byte_pair_samples

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

# Opens the model where this package is not imported.
_LOAD = """
import sys
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
print(loaded.ids(tf.constant(["it's  a word", "", "Größe 中"])).to_list())
assert "bert_tf" not in sys.modules and "tokenizers" not in sys.modules
"""


class Module(tf.Module):
    """Text in, ids out."""

    def __init__(self) -> None:
        super().__init__()
        vocabulary = byte_pair_samples.vocabulary()
        self.tokenizer = byte_pairs.BytePairTokenizer(vocabulary)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Splits texts."""
        return self.tokenizer.tokenize(texts)


def test_saved(tmp_path):
    folder = str(tmp_path / "model")
    tf.saved_model.save(Module(), folder)
    found = subprocess.run(
        [sys.executable, "-c", _LOAD, folder],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    reference = byte_pair_samples.reference()
    texts = ["it's  a word", "", "Größe 中"]
    expected = [reference.encode(text).ids for text in texts]
    assert found.stdout.strip() == str(expected)
    saved = saved_model_pb2.SavedModel.FromString(
        (tmp_path / "model" / "saved_model.pb").read_bytes()
    )
    (graph,) = saved.meta_graphs
    nodes = [*graph.graph_def.node]
    for function in graph.graph_def.library.function:
        nodes += function.node_def
    ops = {node.op for node in nodes}
    assert not [x for x in ops if ">" in x or "Wordpiece" in x]
    assert not {"PyFunc", "EagerPyFunc", "MutableHashTableV2"} & ops
