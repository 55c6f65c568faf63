"""Trains, exports and serves TextCNN and BiLSTM by the scripts."""

import json
from typing import Any

import bert_tf
from tests import (
    classifier_runs,
    combinations,
    saved_models,
    scripts,
    tiny_model,
    trained_weights,
)

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_SIZES: dict[str, dict[str, Any]] = {
    "textcnn": {
        "embedding_size": 8,
        "hidden_size": 8,
        "filter_widths": [2, 3],
        "hidden_dropout_prob": 0.2,
    },
    "bilstm": {"embedding_size": 8, "hidden_size": 12},
}
_RED = "red"
_OTHERS = [word for word in classifier_runs.WORDS[:20] if word != _RED]


# test_bilstm_lm.py trains a BiLSTM, too.
@pytest.fixture(
    scope="module", params=combinations.some(["textcnn"], list(_SIZES))
)
def name(request):
    return request.param


def _row(rng, number):
    """A text is red if it says so."""
    words = list(rng.choice(_OTHERS, rng.integers(2, 7)))
    if number % 2:
        words[rng.integers(len(words))] = _RED
    second = " ".join(rng.choice(_OTHERS, 2))
    return " ".join(words), second, ("other", "red")[number % 2]


@pytest.fixture(scope="module")
def folder(name, tmp_path_factory):
    return tmp_path_factory.mktemp(name)


@pytest.fixture(scope="module")
def flags(folder, name):
    return [
        *classifier_runs.write_pairs(
            folder, _row, 160, model_type=name, **_SIZES[name]
        ),
        *("--text_b_column=second", "--max_seq_length=16"),
        *("--train_batch_size=16", "--learning_rate=0.02"),
        *("--num_train_epochs=8", "--save_checkpoints_steps=20"),
    ]


@pytest.fixture(scope="module")
def trained(folder, flags):
    return classifier_runs.train_on_pairs(folder, *flags)


def _probabilities(rows):
    return [list(row["probabilities"].values()) for row in rows]


def test_learns_a_rule_and_its_export_answers_elsewhere_as_the_script(
    folder, trained, tmp_path
):
    found = classifier_runs.results(trained / "eval_results.txt")
    assert found["eval_accuracy"] >= 0.95
    wanted = _probabilities(classifier_runs.rows(trained / "predictions.jsonl"))
    first, second = zip(*classifier_runs.pairs(folder), strict=True)
    rows = saved_models.serve(
        tf.saved_model.load(str(trained / "export")),
        text_a=list(first),
        text_b=list(second),
        batch_size=7,
    )
    np.testing.assert_allclose(rows["probabilities"], wanted, atol=1e-5)
    with tiny_model.untraced():
        answers = bert_tf.load(trained)(classifier_runs.pairs(folder))
    np.testing.assert_allclose(_probabilities(answers), wanted, atol=1e-5)


@pytest.mark.usefixtures("untraced")
def test_starts_from_word_vectors(folder, flags, name):
    path, output = folder / "vectors.txt", folder / "from_vectors"
    numbers = " ".join(["0.5"] * 8)
    path.write_text(f"red {numbers}\nthe {numbers}\nmouse {numbers}\n")
    done = classifier_runs.run(
        folder / "vectors",
        *(*flags, "--learning_rate=1e-12", "--num_train_epochs=0.1"),
        *(f"--word_vectors={path}", f"--output_dir={output}"),
    )
    pieces = (folder / "vocab.txt").read_text().split()
    said = f"Word vectors of {path} for 2 of {len(pieces)} tokens; the others"
    assert said in done.stderr
    words = f"{name}/embeddings/word_embeddings"
    table = trained_weights.read(output)[words]
    has_vector = np.array([piece in ("red", "the") for piece in pieces])
    np.testing.assert_allclose(table[has_vector], 0.5, atol=1e-6)
    assert (np.abs(table[~has_vector] - 0.5) > 1e-3).any(axis=1).all()


def test_other_libraries_have_no_such_model(trained, name, tmp_path):
    convert = (
        *(tmp_path, "convert_checkpoint", f"--input_checkpoint={trained}"),
        f"--output_path={tmp_path}/theirs",
    )
    for output_format in ("hf", "keras_hub"):
        form = f"--output_format={output_format}"
        done = scripts.run_checked(*convert, form, code=1)
        assert f"Received: encoder={name}" in done.lines[-1]
    scripts.run_checked(*convert, "--output_format=tf1")
    config = json.loads((tmp_path / "theirs/bert_config.json").read_text())
    assert config["model_type"] == name


@pytest.mark.exhaustive
def test_int8_and_other_runtimes(trained, name, tmp_path):
    export = (
        *(tmp_path, "export_saved_model", f"--model_dir={trained}"),
        f"--export_dir={tmp_path}/export",
    )
    said = scripts.run_checked(*export, "--weights=int8", code=1).lines[-1]
    assert "A SavedModel of this head or encoder keeps float32." in said
    if name == "bilstm":
        said = scripts.run_checked(*export, "--format=litert", code=1).lines[-1]
        assert "it computes in a loop, step by step, which LiteRT" in said
        return
    pytest.importorskip("ai_edge_litert", reason="needs the extra `litert`")
    scripts.run_checked(*export, "--format=litert")
    pairs = classifier_runs.pairs(trained.parent)
    found, wanted = (
        _probabilities(bert_tf.load(str(path))(pairs))
        for path in (tmp_path / "export", trained)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5)
