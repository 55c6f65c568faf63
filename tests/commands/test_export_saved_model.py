"""Tests of the script, on a checkpoint of random weights."""

import json
import shutil
from typing import Any

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files
from tests import scripts

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizer's op)

_PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a film what good bad , . A Bad"
VOCAB = _PIECES.split()
CONFIG: dict[str, Any] = {
    "vocab_size": len(VOCAB),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "initializer_range": 0.5,
}
TEXTS = tf.constant(["a bad film", "What, A film. A film", ""])


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    """What run_classifier.py leaves, trained on a table of one text each."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    (folder / "labels.txt").write_text("ham\nspam\neggs\n")
    (folder / "flags.txt").write_text(
        "--do_lower_case=false\n--max_seq_length=6\n--text_a_column=text\n"
    )
    model = heads.BertClassifier(
        modeling.Bert(modeling.BertConfig.from_dict(CONFIG)), 3
    )
    prefix = str(folder / "model.ckpt-7")
    tf1_files.write(prefix, {v.path: v.value for v in model.variables})
    tf1_files.write_state(str(folder), [prefix])
    (folder / "alone").mkdir()
    for path in folder.glob("model.ckpt-7.*"):
        shutil.copy(path, folder / "alone")
    return folder


@pytest.fixture(scope="module")
def of_run(model_dir, tmp_path_factory):
    """The export of the run."""
    path = tmp_path_factory.mktemp("of_run") / "1"
    done = scripts.run(
        path.parent / "log",
        "export_saved_model",
        f"--model_dir={model_dir}",
        f"--export_dir={path}",
    )
    assert done.wait() == 0, done.stderr
    return path


def test_run_tells_all(of_run):
    serve = tf.saved_model.load(str(of_run)).signatures["serving_default"]
    outputs = serve(text_a=TEXTS)
    assert set(outputs) == {"label", "probabilities", "logits"}
    assert outputs["logits"].shape == [3, 3]
    assert set(outputs["label"].numpy()) <= {b"ham", b"spam", b"eggs"}
    description = json.loads((of_run / "assets" / "export.json").read_text())
    assert description == {
        "head": "classification",
        "do_lower_case": False,
        "max_seq_length": 6,
        "takes_pairs": False,
        "multi_label": False,
        "long_documents": "head",
        "window_stride": None,
    }


@pytest.mark.slow
def test_run_with_several_labels_and_windows(model_dir, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(model_dir, folder)
    with (folder / "flags.txt").open("a") as file:
        file.write("--long_documents=windows\n--window_stride=3\n")
    path = folder / "bert_config.json"
    config = json.loads(path.read_text())
    config["problem_type"] = "multi_label_classification"
    path.write_text(json.dumps(config))
    done = scripts.run(
        tmp_path / "log",
        "export_saved_model",
        *(f"--model_dir={folder}", f"--export_dir={tmp_path}/1"),
    )
    assert done.wait() == 0, done.stderr
    outputs = tf.saved_model.load(f"{tmp_path}/1")(TEXTS)
    assert set(outputs) == {"labels", "probabilities", "logits"}
    path = tmp_path / "1" / "assets" / "export.json"
    description = json.loads(path.read_text())
    assert description["long_documents"] == "windows"
    assert description["window_stride"] == 3
    shares = 1 / (1 + np.exp(-outputs["logits"].numpy()))
    np.testing.assert_allclose(outputs["probabilities"], shares, atol=1e-6)


@pytest.mark.slow
def test_checkpoint_with_flags_gives_the_same(of_run, model_dir, tmp_path):
    done = scripts.run(
        tmp_path / "log",
        "export_saved_model",
        # Where no labels.txt says what the classes are.
        f"--init_checkpoint={model_dir}/alone/model.ckpt-7",
        f"--bert_config_file={model_dir}/bert_config.json",
        f"--vocab_file={model_dir}/vocab.txt",
        "--do_lower_case=false",
        "--max_seq_length=6",
        "--task_name=MNLI",
        f"--export_dir={tmp_path}/mnli",
    )
    assert done.wait() == 0, done.stderr
    loaded = tf.saved_model.load(f"{tmp_path}/mnli")
    outputs = loaded.signatures["serving_default"](
        text_a=TEXTS, text_b=tf.constant(["", "", ""])
    )
    expected = tf.saved_model.load(str(of_run))(TEXTS)
    np.testing.assert_array_equal(outputs["logits"], expected["logits"])
    labels = [b"contradiction", b"entailment", b"neutral"]
    best = outputs["logits"].numpy().argmax(-1)
    assert outputs["label"].numpy().tolist() == [labels[i] for i in best]


# ---- For TensorFlow Serving -------------------------------------------------


@pytest.mark.slow
def test_versions_of_a_server(of_run, model_dir, tmp_path):
    pytest.importorskip(
        "tensorflow_serving", reason="needs the package tensorflow-serving-api"
    )
    (tmp_path / "lines.txt").write_text("a bad film\nwhat , a good film .\n")
    command = (
        f"--model_dir={model_dir}",
        f"--serving_dir={tmp_path}/models/spam/",
        f"--config_dir={tmp_path}/models",
        f"--warmup_file={tmp_path}/lines.txt",
    )
    first = scripts.run(tmp_path / "log1", "export_saved_model", *command)
    assert first.wait() == 0, first.stderr
    second = scripts.run(tmp_path / "log2", "export_saved_model", *command)
    assert second.wait() == 0, second.stderr
    models = tmp_path / "models"
    assert f"Wrote version 1, {models}/spam/1." in first.stderr
    assert f"{models}/models.config lists it, as stable." in first.stderr
    assert f"Wrote version 2, {models}/spam/2." in second.stderr
    assert f"{models}/models.config lists it, as canary." in second.stderr
    assert "docker run -t --rm -p 8500:8500 -p 8501:8501 -v" in second.stderr
    assert sorted(path.name for path in models.iterdir()) == [
        "batching.config",
        "models.config",
        "spam",
    ]
    assert {path.name for path in (models / "spam").iterdir()} == {"1", "2"}
    expected = tf.saved_model.load(str(of_run))(TEXTS)
    for number in ("1", "2"):
        version = models / "spam" / number
        outputs = tf.saved_model.load(str(version))(TEXTS)
        np.testing.assert_array_equal(outputs["logits"], expected["logits"])
        requests = version / "assets.extra" / "tf_serving_warmup_requests"
        records = tf.data.TFRecordDataset(str(requests))
        # Of text two lines and both together, by three names; of ids three
        # lengths.
        assert len(list(records)) == 12
