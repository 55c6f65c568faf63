"""Every head for every runtime, against its SavedModel."""

import dataclasses
import functools
import json
import os
import shutil

import bert_tf
from bert_tf import modeling
from bert_tf.checkpoints import original
from bert_tf.errors import InputError
from bert_tf.exporting import numbers, runtimes, saved_model
from tests import saved_models, scripts
from tests.commands import test_run_prediction as runs
from tests.commands import test_run_prediction_real_lines as real

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_LABELS = ("O", "B-x", "I-x")
_ROWS = 40


def _needs(export_format):
    """Skips what needs a runtime that is not installed."""
    packages = {
        "litert": ("ai_edge_litert",),
        "onnx": ("tf2onnx", "onnx", "onnxruntime"),
    }[export_format]
    for package in packages:
        pytest.importorskip(
            package, reason=f"needs {package}, of the extra {export_format}"
        )


@pytest.fixture(scope="module", params=runtimes.RUNTIMES)
def export_format(request):
    _needs(request.param)
    return request.param


# Like the others, and take as long to be written.
_VARIANTS = ("tagging", "multiple_choice", "next_sentence")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            name, marks=pytest.mark.exhaustive if name in _VARIANTS else ()
        )
        for name in real.MODELS
    ],
)
def head(request):
    return request.param


class Made:
    """What tests share: each model is made, and each is written, once."""

    def __init__(self, shared_data, folder):
        self._data = shared_data
        self._folder = folder
        self.model = functools.cache(self._model)
        self.asked = functools.cache(self._asked)
        self._written_once = functools.cache(self._write)
        self.answers = functools.cache(self._answers)

    def _model(self, head):
        """A tiny model with a real vocabulary, of its run."""
        text = (self._data / "vocab" / "bert_uncased.txt").read_text("utf-8")
        vocab = text.removesuffix("\n").split("\n")
        config = saved_models.config(vocab, max_position_embeddings=64)
        tf.keras.utils.set_random_seed(1)
        run = runs.write_run(
            self._folder / f"run_{head}",
            real.MODELS[head](modeling.Bert(config)),
            vocab,
            config,
            *("--max_seq_length=48", "--doc_stride=16"),
            *("--max_query_length=12", "--text_b_column=b"),
            labels=_LABELS if head in ("classification", "tagging") else (),
        )
        return bert_tf.load(run)

    def _asked(self, head):
        """Real texts as the model takes them."""
        lines = real.real_lines(self._data, head)[:_ROWS]
        rows = [tuple(line.split("\t")) for line in lines]
        if head == "multiple_choice":
            return [(prompt, choices) for prompt, *choices in rows]
        return rows

    def written(self, head, export_format="saved_model", weights="float32"):
        """The model's folder, for a runtime."""
        return self._written_once(head, export_format, weights)

    def _write(self, head, export_format, weights):
        path = self._folder / "written" / head / export_format / weights
        path.parent.mkdir(parents=True, exist_ok=True)
        model = self.model(head)
        bert_tf.export(model, path, format=export_format, weights=weights)
        return path

    def _answers(self, head):
        """What the SavedModel answers."""
        return bert_tf.load(self.written(head))(self.asked(head))


@pytest.fixture(scope="module")
def made(shared_data, tmp_path_factory):
    return Made(shared_data, tmp_path_factory.mktemp("made"))


@pytest.fixture
def model(made, head):
    return made.model(head)


@pytest.fixture
def asked(made, head):
    return made.asked(head)


@pytest.fixture
def answers(made, head):
    return made.answers(head)


@pytest.fixture
def exported(made, head, export_format):
    """The model for a runtime."""
    return made.written(head, export_format)


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


def test_answers_are_those_of_the_saved_model(
    exported, model, head, asked, answers, tmp_path
):
    loaded = bert_tf.load(exported)
    assert loaded.head == head
    assert loaded.labels == model.labels
    assert loaded.vocabulary == model.vocabulary
    found = loaded(asked, batch_size=7)
    _same(found, answers)
    assert len({str(answer) for answer in answers}) > 1, "all are the same"
    # One by itself is another batch, and another length.
    _same(loaded(asked[3]), answers[3])
    with pytest.raises(InputError, match="was exported already"):
        bert_tf.export(loaded, tmp_path / "2")


def test_ids_of_any_batch_and_length(exported, model, head):
    description = json.loads((exported / "export.json").read_text())
    assert description["weights"] == "float32"
    serve = model._made.signatures["serve_ids"]
    compute = runtimes.open_folder(str(exported), description, threads=1)
    for rows, length in [(1, 3), (5, 16), (2, 9), (0, 4)]:
        choices = 2 if head == "multiple_choice" else 1
        inputs = saved_models.some_ids(choices * rows, length, 1000)
        if head == "multiple_choice":
            shape = rows, choices, length
            inputs = {k: x.reshape(shape) for k, x in inputs.items()}
        if head == "masked_lm":
            inputs["masked_lm_positions"] = np.ones([rows, 2], np.int32)
        assert set(inputs) == set(description["inputs"])
        inputs = {name: tf.constant(x) for name, x in inputs.items()}
        expected = serve(**inputs)
        found = compute(inputs)
        assert set(found) == {
            name for name, x in expected.items() if x.dtype != tf.string
        }
        for name, value in found.items():
            assert value.dtype == expected[name].dtype
            np.testing.assert_allclose(
                value, expected[name], rtol=1e-5, atol=1e-5, err_msg=name
            )


def test_int8_answers_and_is_smaller(
    made, export_format, exported, head, asked, answers
):
    path = made.written(head, export_format, "int8")
    name = runtimes.RUNTIMES[export_format].file
    sizes = [(folder / name).stat().st_size for folder in (path, exported)]
    # Most of this model is its table of words, with 16 values in a row.
    assert sizes[0] < sizes[1] * (0.75 if head == "masked_lm" else 0.35)
    found = bert_tf.load(path)(asked)
    assert [x.keys() for x in found] == [x.keys() for x in answers]
    if head == "classification":
        # Random weights: many lines are close calls.
        pairs = zip(found, answers, strict=True)
        assert np.mean([a["label"] == b["label"] for a, b in pairs]) > 0.7


def test_int8_in_a_saved_model(made, head, asked, answers):
    sizes = {}
    for weights in ("float32", "int8"):
        path = made.written(head, weights=weights)
        parts = (path / "variables").iterdir()
        sizes[weights] = sum(part.stat().st_size for part in parts)
    # A scale for 16 values of a row, where real models have hundreds.
    assert sizes["int8"] < 0.4 * sizes["float32"]
    loaded = bert_tf.load(path)
    assert loaded.description["weights"] == "int8"
    found = loaded(asked)
    assert [x.keys() for x in found] == [x.keys() for x in answers]
    if head == "encoder":
        vectors = [
            np.array([answer["vector"] for answer in rows])
            for rows in (found, answers)
        ]
        product = (vectors[0] * vectors[1]).sum(-1)
        length = np.linalg.norm(vectors, axis=-1).prod(0)
        assert (product / length).min() > 0.99


# ---- Scripts -----------------------------------------------------------------


def _classifier(folder):
    from tests.api import models

    return models.classifier_run(folder)


def test_scripts_write_and_ask(export_format, tmp_path):
    folder = _classifier(tmp_path / "run")
    code = scripts.run_here(
        "export_saved_model",
        *(f"--model_dir={folder}", f"--export_dir={tmp_path}/1"),
        f"--format={export_format}",
    )
    assert not code
    lines = ["what a film", "Bad, bad film.", "good"]
    expected = runs.answers(tmp_path, lines, f"--model_dir={folder}")
    found = runs.answers(tmp_path, lines, f"--saved_model={tmp_path}/1")
    _same(found, expected)
    files = sorted(os.listdir(tmp_path / "1"))
    model = runtimes.RUNTIMES[export_format].file
    assert files == sorted(
        [original.CONFIG, "vocab.txt", "export.json", "labels.txt", model]
    )


# ---- Refusals ----------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return bert_tf.load(_classifier(tmp_path_factory.mktemp("small") / "run"))


def test_damaged_files(made, export_format, tmp_path):
    path = tmp_path / "1"
    shutil.copytree(made.written("classification", export_format), path)
    file = path / runtimes.RUNTIMES[export_format].file
    file.write_bytes(b"not a model")
    with pytest.raises(InputError, match="is damaged, or not all there"):
        bert_tf.load(path)
    (path / "export.json").unlink()
    with pytest.raises(InputError, match=r"export\.json"):
        bert_tf.load(path)


def test_nothing_is_overwritten_unasked(made, small, tmp_path):
    _needs("litert")
    path = tmp_path / "1"
    shutil.copytree(made.written("classification", "litert"), path)
    before = (path / "model.tflite").stat().st_mtime_ns
    with pytest.raises(InputError, match="new folder"):
        bert_tf.export(small, path, format="litert")
    assert (path / "model.tflite").stat().st_mtime_ns == before
    bert_tf.export(small, path, True, format="litert", weights="int8")
    assert json.loads((path / "export.json").read_text())["weights"] == "int8"


def test_int8_of_a_head_that_keeps_floats(small, tmp_path):
    made = dataclasses.replace(small._made, in_int8=None)
    with pytest.raises(
        InputError, match="of this head or encoder keeps float32"
    ):
        runtimes.save(str(tmp_path / "1"), made, "saved_model", "int8")
    assert not (tmp_path / "1").exists()


def test_int8_needs_core_ops_only(made, tmp_path):
    path = made.written("classification", weights="int8")
    lines, none = ["what a film", "bad, bad"], ["", ""]
    rows = saved_models.serve_elsewhere(
        tmp_path, path, text_a=lines, text_b=none
    )
    assert rows["label"] == [x["label"] for x in bert_tf.load(path)(lines)]


def test_unknown_formats(small, tmp_path):
    with pytest.raises(InputError, match=r"Received: format=pt"):
        bert_tf.export(small, tmp_path / "1", format="pt")
    with pytest.raises(InputError, match=r"Received: weights=int4"):
        bert_tf.export(small, tmp_path / "1", weights="int4")
    assert not (tmp_path / "1").exists()


def test_head_without_ids():
    made = saved_model.Export(tf.Module(), {"serving_default": None}, {})
    with pytest.raises(InputError, match="no signature serve_ids"):
        numbers.of(made, "mine")


def test_texts_are_no_numbers(small):
    found = numbers.of(small._made, "classification")
    assert list(found.inputs) == ["input_ids", "input_mask", "segment_ids"]
    assert list(found.outputs) == ["logits", "probabilities"]
