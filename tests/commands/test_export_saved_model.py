"""Tests of the script, on a checkpoint of random weights."""

import json
import shutil

from bert_tf.exporting import saved_model
from tests import exports, saved_models, scripts

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizer's op)

pytestmark = pytest.mark.slow

VOCAB = [x.replace("film", "Film") for x in exports.VOCAB]
TEXTS = tf.constant(["a bad Film", "what, A Film. a Film", ""])


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    """What run_classifier.py leaves, trained on a table of one text each."""
    folder = exports.write_run(
        *(tmp_path_factory.mktemp("run"), "one text"),
        *("--do_lower_case=false", "--max_seq_length=6"),
        vocab=VOCAB,
        labels=("ham", "spam", "eggs"),
    )
    (folder / "alone").mkdir()
    for path in folder.glob("model.ckpt-7.*"):
        shutil.copy(path, folder / "alone")
    return folder


def export(folder, *flags):
    return scripts.run_checked(folder, "export_saved_model", *flags).stderr


def described(path):
    return json.loads((path / "assets" / "export.json").read_text())


@pytest.fixture(scope="module")
def of_run(model_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("of_run") / "1"
    flags = f"--model_dir={model_dir}", f"--export_dir={path}"
    export(path.parent / "log", *flags)
    return path


def test_run_tells_all(of_run):
    serve = tf.saved_model.load(str(of_run)).signatures["serving_default"]
    outputs = serve(text_a=TEXTS)
    assert set(outputs) == {"label", "probabilities", "logits"}
    assert outputs["logits"].shape == [3, 3]
    assert set(outputs["label"].numpy()) <= {b"ham", b"spam", b"eggs"}
    saved_models.assert_classifier(
        of_run, 6, takes_pairs=False, do_lower_case=False
    )


def test_checkpoint_with_flags_gives_the_same(
    of_run, model_dir, tmp_path, monkeypatch
):
    exported: list[saved_model.Export] = []
    monkeypatch.setattr(
        saved_model, "save", lambda path, made, *_: exported.append(made)
    )
    export(
        tmp_path / "log",
        # Where no labels.txt says what the classes are.
        f"--init_checkpoint={model_dir}/alone/model.ckpt-7",
        f"--bert_config_file={model_dir}/bert_config.json",
        f"--vocab_file={model_dir}/vocab.txt",
        *("--do_lower_case=false", "--max_seq_length=6", "--task_name=MNLI"),
        f"--export_dir={tmp_path}/mnli",
    )
    (made,) = exported
    outputs = made.signatures["serving_default"](
        text_a=TEXTS, text_b=tf.constant(["", "", ""])
    )
    expected = tf.saved_model.load(str(of_run))(TEXTS)
    np.testing.assert_array_equal(outputs["logits"], expected["logits"])
    labels = [b"contradiction", b"entailment", b"neutral"]
    best = outputs["logits"].numpy().argmax(-1)
    assert outputs["label"].numpy().tolist() == [labels[i] for i in best]


@pytest.mark.exhaustive
def test_versions_of_a_server(of_run, model_dir, tmp_path):
    pytest.importorskip(
        "tensorflow_serving", reason="needs the package tensorflow-serving-api"
    )
    (tmp_path / "lines.txt").write_text("a bad Film\nwhat , a good Film .\n")
    models = tmp_path / "models"
    command = (
        f"--model_dir={model_dir}",
        f"--serving_dir={models}/spam/",
        f"--config_dir={models}",
        f"--warmup_file={tmp_path}/lines.txt",
    )
    for number, label in ((1, "stable"), (2, "canary")):
        said = export(tmp_path / f"log{number}", *command)
        assert f"Wrote version {number}, {models}/spam/{number}." in said
        assert f"{models}/models.config lists it, as {label}." in said
        assert "docker run -t --rm -p 8500:8500 -p 8501:8501 -v" in said
    assert {path.name for path in models.iterdir()} == {
        *("batching.config", "models.config", "spam")
    }
    assert {path.name for path in (models / "spam").iterdir()} == {"1", "2"}
    expected = tf.saved_model.load(str(of_run))(TEXTS)
    version = models / "spam" / "2"
    outputs = tf.saved_model.load(str(version))(TEXTS)
    np.testing.assert_array_equal(outputs["logits"], expected["logits"])
    requests = version / "assets.extra" / "tf_serving_warmup_requests"
    # Of text two lines and both together, by three names; of ids three lengths.
    assert len(list(tf.data.TFRecordDataset(str(requests)))) == 12
