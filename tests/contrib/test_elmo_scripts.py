"""ELMo from its released files to taggers, classifiers and features."""

import json
import shutil

import bert_tf
from tests import (
    classifier_runs,
    family_runs,
    scripts,
    tiny_model,
    trained_weights,
)
from tests.contrib import elmo_models as small

import numpy as np
import pytest

pytestmark = pytest.mark.slow

# One layer of each kind: graphs are built often.
_OPTIONS = {
    "lstm": small.OPTIONS["lstm"] | {"n_layers": 1},
    "char_cnn": small.OPTIONS["char_cnn"]
    | {"n_highway": 1, "filters": [[1, 6], [3, 8]]},
    "hidden_dropout_prob": 0.1,
}
_WORDS = ["cat", "Anna", "sleeps", "in", "Rome", "Zürich", "😀"]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """Released files, and words: a place has a capital R or Z."""
    found = small.tensors(_OPTIONS)
    folder = small.write(tmp_path_factory.mktemp("elmo"), _OPTIONS, found)
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(120):
        words = rng.choice(_WORDS, 4)
        lines += [f"{x} {'B-place' if x[0] in 'RZ' else 'O'}" for x in words]
        lines.append("")
    (folder / "words.conll").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def _train(folder, output, *flags):
    return scripts.run_checked(
        *(output.with_name("log"), "run_ner", f"--init_checkpoint={folder}"),
        *(f"--train_file={folder}/words.conll", "--do_train", *flags),
        *("--max_seq_length=48", "--learning_rate=0.02"),
        *("--num_train_epochs=4", "--train_batch_size=8"),
        # Of 60 steps.
        *("--save_checkpoints_steps=55", f"--output_dir={output}"),
    )


@pytest.fixture(scope="module", name="trained")
def _trained(folder):
    dev = f"--dev_file={folder}/words.conll"
    _train(folder, folder / "output", "--do_eval", dev, "--do_export")
    return folder / "output"


def test_a_tagger_learns_and_its_export_answers(folder, trained):
    found = classifier_runs.results(trained / "eval_results.txt")
    assert found["eval_f1"] >= 0.95
    texts = ["Anna sleeps in Zürich", "😀 cat Rome Anna"]
    with tiny_model.untraced():
        answers = bert_tf.load(trained)(texts)
    assert bert_tf.load(trained / "export")(texts) == answers
    places = [[x["text"] for x in y["entities"]] for y in answers]
    assert places == [["Zürich"], ["Rome"]]
    weights = trained_weights.read(trained)
    assert np.abs(weights["elmo/mixture/weights"]).max() > 1e-3
    config = json.loads((trained / "bert_config.json").read_text())
    assert config["model_type"] == "elmo"


def test_a_resumed_run_ends_with_the_same_weights(folder, trained, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(trained, again)
    last = trained_weights.drop_last(again)
    done = _train(folder, again)
    assert f"Resuming from step {last}" in done.stderr
    trained_weights.assert_same(again, trained)


def test_features_of_words(folder, tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra `parity`")
    lines = ["Anna sleeps", "in Zürich"]
    rows = family_runs.extract(
        tmp_path, folder, lines, "--unit=word", "--layers=0,1,-1"
    )
    weights = {
        name: torch.tensor(x.astype(float))
        for name, x in small.tensors(_OPTIONS).items()
    }
    for line, row in zip(lines, rows, strict=True):
        words = line.split()
        assert [x["token"] for x in row["features"]] == words
        layers = [
            x.numpy()[1:-1] for x in small.layers(weights, words, _OPTIONS)
        ]
        layers.append(np.mean(layers, axis=0))
        found = [[y["values"] for y in x["layers"]] for x in row["features"]]
        wanted = np.stack(layers, axis=1)  # [words, 3, D]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-6)


@pytest.mark.exhaustive
def test_the_last_layer_in_a_tagger(folder, tmp_path):
    """TagLM (Peters et al., 2017), by one value of a flag."""
    released = small.write(tmp_path / "elmo")
    done = scripts.run_checked(
        *(tmp_path, "examples/feature_based_ner", "--epochs=20"),
        *(f"--init_checkpoint={released}", "--features=second_to_last"),
        *(f"--train_file={folder}/words.conll", "--lstm_size=6"),
        *(f"--dev_file={folder}/words.conll", "--learning_rate=0.05"),
    )
    name, score = done.stdout.splitlines()[-1].strip("| ").split(" | ")
    assert name == "second_to_last"
    assert float(score) > 80


@pytest.mark.exhaustive
def test_a_classifier(folder, tmp_path):
    rows = [
        {"text": f"{a} {b}", "other": a, "label": str(b in ("Rome", "Zürich"))}
        for a in _WORDS
        for b in _WORDS
    ]
    table = tmp_path / "table.jsonl"
    table.write_text("".join(f"{json.dumps(x)}\n" for x in rows), "utf-8")
    output = family_runs.fine_tune(
        *("run_classifier", folder, table, "--text_b_column=other"),
    )
    asked = [{"text_a": "in Rome", "text_b": "cat"}]
    answers = family_runs.ask(tmp_path, asked, f"--model_dir={output}")
    exported = bert_tf.load(output / "export")(asked)
    family_runs.assert_same_answers(exported, answers)
    family_runs.run(
        *("convert_checkpoint", f"--input_checkpoint={output}"),
        *("--output_format=tf1", f"--output_path={tmp_path}/copy"),
    )
    copied = bert_tf.load(tmp_path / "copy", pairs=True)(asked)
    family_runs.assert_same_answers(copied, answers, 1e-6)
