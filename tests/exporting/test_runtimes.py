"""Every head for every runtime, against its SavedModel."""

import dataclasses
import json
import os

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


@pytest.fixture(scope="module", params=list(real.MODELS))
def head(request):
    return request.param


@pytest.fixture(scope="module")
def run(head, shared_data, tmp_path_factory):
    """The run of a tiny model with a real vocabulary."""
    text = (shared_data / "vocab" / "bert_uncased.txt").read_text("utf-8")
    vocab = text.removesuffix("\n").split("\n")
    config = saved_models.config(vocab, max_position_embeddings=64)
    tf.keras.utils.set_random_seed(1)
    return runs.write_run(
        tmp_path_factory.mktemp("runs") / head,
        real.MODELS[head](modeling.Bert(config)),
        vocab,
        config,
        *("--max_seq_length=48", "--doc_stride=16", "--max_query_length=12"),
        "--text_b_column=b",
        labels=_LABELS if head in ("classification", "tagging") else (),
    )


@pytest.fixture(scope="module")
def model(run):
    return bert_tf.load(run)


@pytest.fixture(scope="module")
def asked(head, shared_data):
    """Real texts as the model takes them."""
    lines = real.real_lines(shared_data, head)[:_ROWS]
    rows = [tuple(line.split("\t")) for line in lines]
    if head == "multiple_choice":
        return [(prompt, choices) for prompt, *choices in rows]
    return rows


@pytest.fixture(scope="module")
def answers(model, asked, tmp_path_factory):
    """What the SavedModel answers."""
    path = tmp_path_factory.mktemp("saved") / "1"
    bert_tf.export(model, path)
    return bert_tf.load(path)(asked)


@pytest.fixture(scope="module")
def exported(export_format, model, tmp_path_factory):
    """The model for a runtime."""
    path = tmp_path_factory.mktemp("exported") / "1"
    bert_tf.export(model, path, format=export_format)
    return path


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
    made = model._made
    compute = runtimes.open_folder(str(exported), description, threads=1)
    for rows, length in [(1, 3), (5, 16), (2, 9), (0, 4)]:
        inputs = saved_models.some_ids(rows, length, 1000)
        if head == "multiple_choice":
            inputs = {k: np.stack([x, x[::-1]], 1) for k, x in inputs.items()}
        if head == "masked_lm":
            inputs["masked_lm_positions"] = np.ones([rows, 2], np.int32)
        assert set(inputs) == set(description["inputs"])
        inputs = {name: tf.constant(x) for name, x in inputs.items()}
        expected = made.signatures["serve_ids"](**inputs)
        found = compute(inputs)
        assert set(found) == {
            name for name, x in expected.items() if x.dtype != tf.string
        }
        for name, value in found.items():
            assert value.dtype == expected[name].dtype
            np.testing.assert_allclose(
                value, expected[name], rtol=1e-5, atol=1e-5, err_msg=name
            )


@pytest.mark.slow
def test_int8_answers_and_is_smaller(
    export_format, exported, model, head, asked, answers, tmp_path
):
    path = tmp_path / "int8"
    bert_tf.export(model, path, format=export_format, weights="int8")
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


def test_int8_in_a_saved_model(model, head, asked, answers, tmp_path):
    sizes = {}
    for weights in ("float32", "int8"):
        path = tmp_path / weights
        bert_tf.export(model, path, weights=weights)
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
        (),
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
        [original.CONFIG, original.VOCAB, "export.json", "labels.txt", model]
    )


# ---- Refusals ----------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return bert_tf.load(_classifier(tmp_path_factory.mktemp("small") / "run"))


def test_damaged_files(export_format, small, tmp_path):
    path = tmp_path / "1"
    bert_tf.export(small, path, format=export_format)
    file = path / runtimes.RUNTIMES[export_format].file
    file.write_bytes(b"not a model")
    with pytest.raises(InputError, match="is damaged, or not all there"):
        bert_tf.load(path)
    (path / "export.json").unlink()
    with pytest.raises(InputError, match=r"export\.json"):
        bert_tf.load(path)


def test_nothing_is_overwritten_unasked(small, tmp_path):
    _needs("litert")
    path = tmp_path / "1"
    bert_tf.export(small, path, format="litert")
    before = (path / "model.tflite").stat().st_mtime_ns
    with pytest.raises(InputError, match="new folder"):
        bert_tf.export(small, path, format="litert")
    assert (path / "model.tflite").stat().st_mtime_ns == before
    bert_tf.export(small, path, True, format="litert", weights="int8")
    assert json.loads((path / "export.json").read_text())["weights"] == "int8"


def test_int8_of_a_head_that_keeps_floats(small, tmp_path):
    made = dataclasses.replace(small._made, in_int8=None)
    with pytest.raises(InputError, match="of this head keeps float32"):
        runtimes.save(str(tmp_path / "1"), made, "saved_model", "int8")
    assert not (tmp_path / "1").exists()


def test_int8_needs_core_ops_only(small, tmp_path):
    bert_tf.export(small, tmp_path / "1", weights="int8")
    lines = ["what a film", "bad, bad"]
    rows = saved_models.serve_elsewhere(tmp_path, tmp_path / "1", text_a=lines)
    assert rows["label"] == [
        x["label"] for x in bert_tf.load(tmp_path / "1")(lines)
    ]


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
