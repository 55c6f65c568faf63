"""Trains, exports and serves ESIM by the scripts."""

import json

import bert_tf
from bert_tf.errors import InputError
from bert_tf.server import json_requests, refusals, signature_defs
from tests import classifier_runs, family_runs, scripts, tiny_model

import pytest

pytestmark = pytest.mark.slow


_PAIRS = "--text_b_column=second"


def _row(rng, number):
    """Whether a text has the other's word."""
    *text, other = rng.permutation(classifier_runs.WORDS[:12])[:5]
    second, label = ((other, "no"), (rng.choice(text), "yes"))[number % 2]
    return " ".join(text), second, label


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("esim")


@pytest.fixture(scope="module")
def flags(folder):
    return [
        *classifier_runs.write_pairs(
            *(folder, _row, 640),
            model_type="esim",
            embedding_size=16,
            hidden_size=16,
            hidden_dropout_prob=0.0,
            initializer_range=1.0,
        ),
        *("--max_seq_length=12", "--train_batch_size=32"),
        *("--num_train_epochs=4", "--learning_rate=0.02"),
    ]


@pytest.fixture(scope="module")
def trained(folder, flags):
    return classifier_runs.train_on_pairs(folder, *flags, _PAIRS)


@pytest.fixture(scope="module")
def loaded(trained):
    """Returns the run and its export, as functions of pairs."""
    return [bert_tf.load(path) for path in (trained, trained / "export")]


def test_learns_to_compare_and_answers_as_the_script(folder, trained, loaded):
    found = classifier_runs.results(trained / "eval_results.txt")
    assert found["eval_accuracy"] >= 0.95
    wanted = classifier_runs.rows(trained / "predictions.jsonl")
    pairs = classifier_runs.pairs(folder)
    run, export = loaded
    with tiny_model.untraced():
        family_runs.assert_same_answers(run(pairs), wanted)
    family_runs.assert_same_answers(export(pairs), wanted)


def test_single_texts_are_refused(flags, trained, loaded, tmp_path):
    done = classifier_runs.run(
        *(tmp_path, *flags, f"--output_dir={tmp_path}/output"),
        code=1,
    )
    assert "error: This encoder compares the two texts" in done.lines[-1]
    assert "Received: model_type=esim" in done.lines[-1]
    for model in loaded:
        for single in ("the cat", ("the cat", "")):
            with pytest.raises(InputError, match="text_b"):
                model(single)
    (tmp_path / "lines.txt").write_text("the cat\n")
    done = scripts.run_checked(
        *(tmp_path, "run_prediction", f"--saved_model={trained}/export"),
        f"--input_file={tmp_path}/lines.txt",
        code=1,
    )
    assert "text_b missing or empty. Expected text_a and" in done.lines[-1]


def test_the_server_requires_both_texts(trained):
    signatures = signature_defs.read(str(trained / "export"))
    body = {"instances": [{"text_a": "the cat", "text_b": "cat"}]}
    json_requests.to_predict(json.dumps(body).encode(), signatures)
    del body["instances"][0]["text_b"]
    with pytest.raises(refusals.Refusal, match="text_b"):
        json_requests.to_predict(json.dumps(body).encode(), signatures)
