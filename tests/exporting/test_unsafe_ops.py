"""SavedModels that touch files or the host, and ours, which do not."""

import asyncio
import pickle
import re
import shutil

import bert_tf
from bert_tf.errors import InputError
from bert_tf.exporting import unsafe_ops, version_labels
from bert_tf.server import batching, served_models
from tests import combinations, exports

import pytest
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.client import pywrap_tf_session

_TEXT = tf.TensorSpec([None], tf.string)


def _hostile(op, place):
    """Returns a function of texts that touches the file `place`."""
    name = str(place)

    def write(_):
        tf.io.write_file(name, "x")

    def python(texts):
        return tf.py_function(lambda x: x, [texts], tf.string)

    def lines(texts):
        data = tf.data.TextLineDataset(name)
        return data.reduce(texts[0], lambda _, line: line)

    def save(texts):
        tf.raw_ops.SaveV2(
            prefix=name,
            tensor_names=["x"],
            shape_and_slices=[""],
            tensors=[texts],
        )

    functions = {
        "WriteFile": write,
        "ReadFile": lambda texts: tf.io.read_file(name) + texts,
        "MatchingFiles": lambda _: tf.io.matching_files(name),
        "EagerPyFunc": python,
        "TextLineDataset": lines,
        "SaveV2": save,
        "RestoreV2": lambda _: tf.raw_ops.RestoreV2(
            prefix=name,
            tensor_names=["x"],
            shape_and_slices=[""],
            dtypes=[tf.string],
        )[0],
        "PrintV2": lambda texts: tf.print(
            texts, output_stream=f"file://{name}"
        ),
        "DatasetToTFRecord": lambda texts: tf.raw_ops.DatasetToTFRecord(
            input_dataset=tf.data.Dataset.from_tensors(texts)._variant_tensor,
            filename=name,
            compression_type="",
        ),
        "DecodeProtoV2": lambda texts: tf.io.decode_proto(
            texts, "M", ["x"], [tf.string], name
        )[0],
        "EncodeProto": lambda texts: tf.io.encode_proto(
            tf.ones([1, 1], tf.int32), [texts[:1, tf.newaxis]], ["x"], "M", name
        ),
        "FixedUnigramCandidateSampler": lambda _: (
            tf.random.fixed_unigram_candidate_sampler(
                tf.zeros([1, 1], tf.int64), 1, 1, False, 1, vocab_file=name
            )[0]
        ),
        "ImmutableConst": lambda _: tf.raw_ops.ImmutableConst(
            dtype=tf.uint8, shape=[1], memory_region_name=name
        ),
    }

    def serve(text_a):
        found = functions[op](text_a)
        after = [] if found is None else [found]
        with tf.control_dependencies(after):
            return {"label": tf.identity(text_a)}

    return serve


_OPS = (
    *("WriteFile", "ReadFile", "MatchingFiles", "EagerPyFunc"),
    *("TextLineDataset", "SaveV2", "RestoreV2", "PrintV2"),
    *("DatasetToTFRecord", "DecodeProtoV2", "EncodeProto"),
    *("FixedUnigramCandidateSampler", "ImmutableConst"),
)


def _write(path, serve, is_nested=False):
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    function = tf.function(serve, input_signature=[_TEXT])
    if is_nested:
        inner = function

        def outer(text_a):
            return tf.cond(
                tf.size(text_a) > 5,
                lambda: inner(text_a)["label"],
                lambda: text_a,
            )

        function = tf.function(outer, input_signature=[_TEXT])
    module.function = function
    tf.saved_model.save(module, str(path), {"serving_default": function})


@pytest.mark.parametrize(
    ("op", "is_nested"), [(op, i % 2 == 1) for i, op in enumerate(_OPS)]
)
def test_hostile_models_are_found(tmp_path, op, is_nested):
    place = tmp_path / "touched"
    _write(tmp_path / "1", _hostile(op, place), is_nested)
    assert op in unsafe_ops.find(str(tmp_path / "1"))
    with pytest.raises(InputError, match=f"if you trust .*{op}") as error:
        unsafe_ops.check(str(tmp_path / "1"), "--allow_unsafe_ops")
    assert "\n" not in str(error.value)


def test_what_is_never_called_is_found(tmp_path):
    """It could be called by who loads the model."""
    module = tf.Module()
    module.own = tf.function(
        _hostile("WriteFile", tmp_path / "touched"), input_signature=[_TEXT]
    )
    module.serve = tf.function(lambda x: x, input_signature=[_TEXT])
    path = str(tmp_path / "1")
    tf.saved_model.save(module, path, {"serving_default": module.serve})
    assert unsafe_ops.find(path) == {"WriteFile"}


# Strings with these words in their names are paths, or graphs.
_PATHS = re.compile(r"(.*_)?(file\w*|path|dir|graph|prefix\w*|region)(_.*)?")
# Operations with such a string that touch no files, and, since the loader
# restores variables, operations on weights that nothing calls.
_SAFE = {
    *("ExperimentalSetStatsAggregatorDataset", "SetStatsAggregatorDataset"),
    *("Restore", "RestoreSlice", "RestoreV2"),
    *("Save", "SaveSlices", "SaveV2", "MergeV2Checkpoints"),
}


def test_all_operations_of_tensorflow_that_take_paths_are_known(tmp_path):
    operations = op_def_pb2.OpList()
    buffer = pywrap_tf_session.TF_GetAllOpList()
    operations.ParseFromString(pywrap_tf_session.TF_GetBuffer(buffer))
    model = saved_model_pb2.SavedModel()
    graph = model.meta_graphs.add().graph_def
    for op in operations.op:
        strings = [x.name for x in op.input_arg if x.type == tf.string]
        strings += [x.name for x in op.attr if "string" in x.type]
        if any(map(_PATHS.fullmatch, strings)):
            graph.node.add(name=op.name, op=op.name)
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    names = {node.op for node in graph.node}
    assert {"WriteFile", "DatasetFromGraph", "DumpTensor"} <= names
    assert names - unsafe_ops.find(str(tmp_path)) == _SAFE


@pytest.fixture(name="changed")
def _changed(tmp_path):
    """An export of ours whose graph was exchanged."""
    path = tmp_path / "model" / "1"
    shutil.copytree(exports.exported("one text"), path)
    (path / "saved_model.pb").unlink()
    _write(tmp_path / "other", _hostile("WriteFile", tmp_path / "touched"))
    shutil.copy(tmp_path / "other" / "saved_model.pb", path)
    shutil.rmtree(path / "variables")
    shutil.copytree(tmp_path / "other" / "variables", path / "variables")
    return path


def test_they_are_refused_before_they_are_loaded(changed, monkeypatch):
    loaded = []
    load = tf.saved_model.load

    def loading(path, *args, **kwargs):
        loaded.append(path)
        return load(path, *args, **kwargs)

    monkeypatch.setattr(tf.saved_model, "load", loading)
    with pytest.raises(InputError, match=r"with allow_unsafe_ops=True .*Write"):
        bert_tf.load(changed)
    place = version_labels.Served("m", str(changed.parent))
    with pytest.raises(InputError, match=r"with --allow_unsafe_ops .*Write"):
        asyncio.run(served_models.Model(place, batching.Limits()).update())
    assert not loaded
    assert not (changed.parent.parent / "touched").exists()
    model = bert_tf.load(changed, allow_unsafe_ops=True)
    pickle.loads(pickle.dumps(model))
    assert loaded == [str(changed)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", combinations.some(["span"], exports.NAMES))
def test_exports_are_taken(name):
    assert not unsafe_ops.find(str(exports.exported(name)))
