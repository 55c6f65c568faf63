"""Every head in every runtime, compared with its run's model."""

import dataclasses
import functools
import itertools
import json
import os
import shutil
import types

import bert_tf
from bert_tf import options
from bert_tf.checkpoints import original
from bert_tf.errors import InputError
from bert_tf.exporting import numbers, onnx, runtimes, saved_model
from tests import (
    combinations,
    exports,
    sample_texts,
    saved_models,
    scripts,
    store,
    tiny_model,
)
from tests.commands import test_run_prediction as runs

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_ROWS = 40
_HEADS = [x for x in exports.NAMES if x != "next_piece"]
# Each format with each kind of weights; SavedModels for every head.
_CHOSEN = {
    ("classification", "litert", "float32"),
    ("classification", "litert", "int8"),
    ("span", "onnx", "float32"),
    ("span", "onnx", "int8"),
    ("encoder", "saved_model", "int8"),
}


def _cases(weights, *formats):
    """Returns all heads in all formats; only some run by default."""
    chosen = [(head, form) for head, form, own in _CHOSEN if own == weights]
    return pytest.mark.parametrize(
        ("head", "export_format"),
        combinations.some(chosen, itertools.product(_HEADS, formats)),
    )


def _needs(export_format):
    """Skips the test if the format's runtime is not installed."""
    packages = {
        "litert": ("ai_edge_litert",),
        "onnx": ("tf2onnx", "onnx", "onnxruntime"),
    }
    for package in packages.get(export_format, ()):
        pytest.importorskip(
            package, reason=f"needs {package}, of the extra {export_format}"
        )


class Made:
    """Models with a real vocabulary and random weights, each made once."""

    def __init__(self, shared_data):
        self._data = shared_data
        self.model = functools.cache(self._model)
        self.asked = functools.cache(self._asked)
        self.answers = functools.cache(self._answers)

    def run(self, head):
        """Returns the folder of a training run; do not change it."""

        def write(folder):
            file = self._data / "vocab" / "bert_uncased.txt"
            vocab = file.read_text("utf-8").removesuffix("\n").split("\n")
            exports.write_run(
                *(folder, head, "--max_seq_length=48", "--doc_stride=16"),
                "--max_query_length=12",
                config=saved_models.config(vocab, max_position_embeddings=64),
                vocab=vocab,
            )

        return store.made(f"real_run_{head}", write)

    def _model(self, head):
        return bert_tf.load(self.run(head))

    def _asked(self, head):
        """Returns real texts as the model's inputs."""
        lines = sample_texts.real_lines(self._data, head, _ROWS)
        rows = [tuple(line.split("\t")) for line in lines]
        if head == "multiple_choice":
            return [(prompt, choices) for prompt, *choices in rows]
        return rows

    def _answers(self, head):
        with tiny_model.untraced():
            return self.model(head)(self.asked(head))

    def written(self, head, export_format, weights="float32"):
        """Returns the folder of the model for a runtime; do not change it.

        Floats are written by the script, over an earlier export.
        """
        _needs(export_format)

        def write(folder):
            path = folder / "1"
            if weights == "float32":
                _earlier(path, export_format)
                assert not scripts.run_here(
                    "export_saved_model",
                    *(f"--model_dir={self.run(head)}", f"--export_dir={path}"),
                    *(f"--format={export_format}", "--overwrite"),
                )
                return
            bert_tf.export(
                self.model(head), path, format=export_format, weights=weights
            )

        name = f"real_{head}_{export_format}_{weights}"
        return store.made(name, write) / "1"


@pytest.fixture(scope="module")
def made(shared_data):
    return Made(shared_data)


def _same(found, expected, where=""):
    """Compares answers: numbers within 1e-5, all else equal."""
    assert type(found) is type(expected), where
    if isinstance(found, dict):
        assert found.keys() == expected.keys(), where
        for name, value in expected.items():
            _same(found[name], value, f"{where} {name}")
    elif isinstance(found, list):
        assert len(found) == len(expected), where
        for i, value in enumerate(expected):
            _same(found[i], value, f"{where} {i}")
    elif isinstance(found, float):
        # Sums of logits are larger than probabilities.
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5), where
    else:
        assert found == expected, where


@_cases("float32", *runtimes.RUNTIMES)
def test_answers_are_those_of_the_model(made, head, export_format, tmp_path):
    path = made.written(head, export_format)
    loaded, model = bert_tf.load(path), made.model(head)
    asked = made.asked(head)
    assert loaded.head == head
    assert loaded.labels == model.labels
    assert loaded.vocabulary == model.vocabulary
    answers = made.answers(head)
    _same(loaded(asked, batch_size=7), answers)
    assert len({str(answer) for answer in answers}) > 1, "all are the same"
    # A single input is another batch size, and another length.
    _same(loaded(asked[3]), answers[3])
    with pytest.raises(InputError, match="was exported already"):
        bert_tf.export(loaded, tmp_path / "2")
    _check_ids(model, path)


def _check_ids(model, path):
    """Compares batches of ids of several sizes."""
    description = json.loads((path / "export.json").read_text())
    assert description["weights"] == "float32"
    serve = model._made.signatures["serve_ids"]
    compute = runtimes.open_folder(str(path), description, threads=1)
    for rows, length in [(1, 3), (5, 16), (2, 9), (0, 4)]:
        choices = 2 if model.head == "multiple_choice" else 1
        inputs = saved_models.some_ids(choices * rows, length, 1000)
        if model.head == "multiple_choice":
            shape = rows, choices, length
            inputs = {k: x.reshape(shape) for k, x in inputs.items()}
        if model.head == "masked_lm":
            inputs["masked_lm_positions"] = np.ones([rows, 2], np.int32)
        assert set(inputs) == set(description["inputs"])
        tensors = {name: tf.constant(x) for name, x in inputs.items()}
        with tiny_model.untraced():
            expected = serve(**tensors)
        found = compute(tensors)
        assert set(found) == {
            name for name, x in expected.items() if x.dtype != tf.string
        }
        for name, value in found.items():
            assert value.dtype == expected[name].dtype
            np.testing.assert_allclose(
                value, expected[name], rtol=1e-5, atol=1e-5, err_msg=name
            )


@_cases("int8", "saved_model", *runtimes.RUNTIMES)
def test_int8_answers_and_is_smaller(made, head, export_format):
    path = made.written(head, export_format, "int8")
    file = "variables/variables.data-00000-of-00001"
    if export_format in runtimes.RUNTIMES:
        file = runtimes.RUNTIMES[export_format].file
    variables = made.model(head)._made.module.variables
    floats = 4 * sum(int(np.prod(x.shape)) for x in variables)
    # Most of this model is its word embeddings, with one scale for 16 values of
    # a row; real models have hundreds of values per scale.
    share = (path / file).stat().st_size / floats
    assert share < (0.75 if head == "masked_lm" else 0.4)
    loaded, answers = bert_tf.load(path), made.answers(head)
    assert loaded.description["weights"] == "int8"
    found = loaded(made.asked(head))
    assert [x.keys() for x in found] == [x.keys() for x in answers]
    if export_format == "onnx":
        # x86 processors without VNNI add the products of two uint8 activations
        # and two int8 weights in a saturating int16.
        import onnx as onnx_files

        weights = [
            onnx_files.numpy_helper.to_array(x)
            for x in onnx_files.load(path / file).graph.initializer
        ]
        kernels = [x for x in weights if x.dtype == np.int8 and x.size > 1]
        largest = max(np.abs(x.astype(int)).max() for x in kernels)
        assert 2 * 255 * largest <= np.iinfo(np.int16).max
    if head == "classification":
        # With random weights many answers are near ties.
        pairs = zip(found, answers, strict=True)
        assert np.mean([a["label"] == b["label"] for a, b in pairs]) > 0.7
    if head == "encoder":
        vectors = [
            np.array([answer["vector"] for answer in rows])
            for rows in (found, answers)
        ]
        product = (vectors[0] * vectors[1]).sum(-1)
        length = np.linalg.norm(vectors, axis=-1).prod(0)
        assert (product / length).min() > 0.99


# ---- Scripts -----------------------------------------------------------------


@pytest.mark.parametrize(
    "export_format", combinations.some(["litert"], runtimes.RUNTIMES)
)
def test_scripts_write_and_ask(made, export_format, tmp_path):
    path = made.written("classification", export_format)
    lines = ["what a film", "Bad, bad film.", "good"]
    with tiny_model.untraced():
        run = made.run("classification")
        expected = runs.answers(tmp_path, lines, f"--model_dir={run}")
    found = runs.answers(tmp_path, lines, f"--saved_model={path}")
    _same(found, expected)
    assert {*os.listdir(path)} == {
        *(original.CONFIG, "vocab.txt", "export.json", "labels.txt"),
        runtimes.RUNTIMES[export_format].file,
    }


def _earlier(path, export_format):
    """Writes an earlier export, in which only the names are right."""
    path.mkdir()
    model = runtimes.RUNTIMES[export_format].file
    (path / model).write_bytes(b"an earlier one")
    (path / "export.json").write_text("{}")
    return model


# ---- Refusals ----------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    return bert_tf.load(exports.run("one text"))


@pytest.mark.parametrize(
    "export_format", combinations.some(["litert"], runtimes.RUNTIMES)
)
def test_damaged_files(export_format, tmp_path):
    _needs(export_format)
    path = tmp_path / "1"
    shutil.copytree(exports.exported("classification", export_format), path)
    file = path / runtimes.RUNTIMES[export_format].file
    file.write_bytes(b"not a model")
    with pytest.raises(InputError, match="is damaged, or not all there"):
        bert_tf.load(path)
    (path / "export.json").unlink()
    with pytest.raises(InputError, match=r"export\.json"):
        bert_tf.load(path)


@pytest.mark.parametrize(
    "export_format", combinations.some(["litert"], options.EXPORT_FORMATS)
)
def test_another_vocabulary(export_format, tmp_path):
    """Its tokens would have ids of others, and all answers be wrong."""
    _needs(export_format)
    path = tmp_path / "1"
    shutil.copytree(exports.exported("classification", export_format), path)
    folder = path / "assets" if export_format == "saved_model" else path
    file = folder / "vocab.txt"
    lines = file.read_text("utf-8").splitlines()
    lines[5:7] = reversed(lines[5:7])
    bert_tf.Tokenizer(path)
    file.write_text("".join(f"{x}\n" for x in lines), "utf-8")
    for read in (bert_tf.load, bert_tf.Tokenizer):
        with pytest.raises(InputError, match="is not the one that the model w"):
            read(path)


def test_exports_of_earlier_versions(tmp_path):
    """They have no hash of their vocabulary."""
    path = tmp_path / "1"
    shutil.copytree(exports.exported("classification"), path)
    file = path / "assets" / "export.json"
    values = json.loads(file.read_text())
    del values["vocab_sha256"]
    file.write_text(json.dumps(values))
    assert bert_tf.load(path)("what a film")


@pytest.mark.parametrize("export_format", runtimes.RUNTIMES)
def test_nothing_is_overwritten_unasked(small, tmp_path, export_format):
    path = tmp_path / "1"
    model = _earlier(path, export_format)
    with pytest.raises(InputError, match="new folder"):
        bert_tf.export(small, path, format=export_format)
    assert (path / model).read_bytes() == b"an earlier one"


def test_int8_of_a_head_that_keeps_floats(small, tmp_path):
    made = dataclasses.replace(small._made, in_int8=None)
    with pytest.raises(
        InputError, match="of this head or encoder keeps float32"
    ):
        runtimes.save(str(tmp_path / "1"), made, "saved_model", "int8")
    with pytest.raises(InputError, match=r"Received: format=pt"):
        bert_tf.export(small, tmp_path / "1", format="pt")
    with pytest.raises(InputError, match=r"Received: weights=int4"):
        bert_tf.export(small, tmp_path / "1", weights="int4")
    assert not (tmp_path / "1").exists()


def test_models_that_no_file_of_onnx_holds():
    _needs("onnx")
    words = tf.TensorSpec([2**19, 2**10], tf.float32)  # 2 GiB
    traced = types.SimpleNamespace(variables=[words])
    function = types.SimpleNamespace(get_concrete_function=lambda: traced)
    with pytest.raises(InputError, match=r"format=onnx, 2\.0 GiB of weights"):
        onnx.convert(numbers.Numbers(function, {}, {}), is_int8=False)


def test_numbers_of_a_head(small):
    made = saved_model.Export(tf.Module(), {"serving_default": None}, {})
    with pytest.raises(InputError, match="no signature serve_ids"):
        numbers.ids_function(made, "mine")
    found = numbers.ids_function(small._made, "classification")
    assert list(found.inputs) == ["input_ids", "input_mask", "segment_ids"]
    assert list(found.outputs) == ["logits", "probabilities"]
