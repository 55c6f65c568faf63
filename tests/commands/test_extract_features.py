"""Runs the script's own main, on a tiny model made here."""

import json

from bert_tf.checkpoints import formats
from bert_tf.exporting import saved_model
from tests import exports, scripts
from tests import interop_samples as samples
from tests.tasks.features import test_extraction as test_features

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    made = exports.model("encoder", test_features.CONFIG)
    samples.write_tf1(folder, made, vocab=test_features.VOCAB)
    (folder / "input.txt").write_text("\n".join(test_features.TEXTS) + "\n")
    flags = [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        f"--init_checkpoint={folder}/bert_model.ckpt",
        f"--max_seq_length={test_features.LENGTH}",
        f"--input_file={folder}/input.txt",
        "--batch_size=2",
        # More than one window of lines.
        "--sort_window=3",
    ]
    return flags, made


def run(folder, *arguments):
    return scripts.run_checked(folder / "log", "extract_features", *arguments)


@pytest.mark.usefixtures("untraced")
def test_the_originals_command(model, tmp_path):
    flags, made = model
    done = run(tmp_path, *flags, f"--output_file={tmp_path}/out.jsonl")
    assert "7 lines" in done.stderr
    assert "2 of 7 lines were longer than --max_seq_length=12" in done.stderr
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["linex_index"] for row in rows] == list(range(7))
    for row, expected in zip(rows, test_features.original_rows(), strict=True):
        found = [x["token"] for x in row["features"]]
        assert found == [piece for piece, _, _ in expected]
        _, layers, _ = test_features.outputs_of(made, expected)
        for i, token in enumerate(row["features"]):
            assert [x["index"] for x in token["layers"]] == [-1, -2, -3, -4]
            for layer in token["layers"]:
                vector = layers[layer["index"]][i]
                np.testing.assert_allclose(layer["values"], vector, atol=1e-5)


@pytest.mark.usefixtures("untraced")
def test_a_folder_of_sentence_transformers(model, tmp_path, monkeypatch):
    exported: list[saved_model.Export] = []
    monkeypatch.setattr(
        saved_model, "save", lambda path, made, *_: exported.append(made)
    )
    _, made = model
    folder = tmp_path / "model"
    flags = [x for x in model[0] if x.startswith(("--input", "--batch"))]
    source = formats.open_checkpoint(model[0][2].partition("=")[2])
    formats.write(str(folder), "hf", source)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_N": "Normalize"}
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in kinds.items()
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": test_features.LENGTH})
    )
    done = run(
        tmp_path,
        *(*flags, f"--init_checkpoint={folder}"),
        *(f"--output_file={tmp_path}/out.npy", f"--export_dir={tmp_path}/new"),
    )
    said = " ".join(done.stderr.split())
    assert "modules.json says: unit=cls, normalize=True, max_seq" in said
    assert "longer than --max_seq_length=12" in said
    vectors = np.load(tmp_path / "out.npy")
    for found, row in zip(vectors, test_features.original_rows(), strict=True):
        _, layers, _ = test_features.outputs_of(made, row)
        wanted = layers[-1][0] / np.linalg.norm(layers[-1][0])
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    description = json.loads(exported.pop().files["export.json"])
    assert (description["unit"], description["normalize"]) == ("cls", True)
    assert (description["features"], description["max_seq_length"]) == (
        ["last"],
        12,
    )
