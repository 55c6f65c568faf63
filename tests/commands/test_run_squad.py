"""Runs the script's own main, on tiny data made here and on real questions."""

import json
import pathlib
import shutil

from bert_tf.checkpoints import tf1_files
from bert_tf.tasks.squad import metrics as squad_metrics
from bert_tf.tasks.squad import questions as squad_questions
from tests import saved_models, squad_runs

import numpy as np
import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Flags of a tiny model and its files."""
    return squad_runs.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory):
    """Version 1.1, with everything that follows training."""
    files, shared = model
    folder = tmp_path_factory.mktemp("output")
    arguments = [
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        f"--train_file={files}/train.json",
        f"--predict_file={files}/dev.json",
        *(*shared, "--num_train_epochs=2", "--save_checkpoints_steps=5"),
        f"--output_dir={folder}",
    ]
    done = squad_runs.run(folder, *arguments)
    return folder, arguments, done


def _results(folder):
    lines = (folder / "eval_results.txt").read_text().splitlines()
    assert lines == sorted(lines)
    return {
        name: float(value)
        for name, value in (line.split(" = ") for line in lines)
    }


def _json(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def test_version_1_1(trained, model):
    folder, _, done = trained
    questions = squad_questions.read(str(model[0] / "dev.json"))
    predictions = _json(folder, "predictions")
    assert list(predictions) == [question.key for question in questions]
    for question in questions:
        assert predictions[question.key] in question.context
    n_best = _json(folder, "nbest_predictions")
    for key, text in predictions.items():
        assert n_best[key][0]["text"] == text
        assert sum(x["probability"] for x in n_best[key]) == pytest.approx(1)
    assert not (folder / "null_odds.json").exists()
    results = _results(folder)
    step = results.pop("global_step")
    expected = squad_metrics.evaluate(questions, predictions)
    assert results == pytest.approx(expected)
    kept = _json(folder / "best", "results")
    assert kept == pytest.approx({**expected, "global_step": step})
    assert f"global_step = {int(step)}" in done.stderr


@pytest.mark.slow
def test_export_answers_as_predicted(trained, model):
    import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

    folder, _, _ = trained
    questions = squad_questions.read(str(model[0] / "dev.json"))
    outputs = tf.saved_model.load(str(folder / "export"))(
        tf.constant([question.text for question in questions]),
        tf.constant([question.context for question in questions]),
    )
    found = [text.decode() for text in outputs["answer"].numpy()]
    assert found == list(_json(folder, "predictions").values())


@pytest.mark.slow
def test_version_2_0_and_its_threshold(model, tmp_path):
    files, shared = model
    output = tmp_path / "output"
    shared = [
        *(*shared, "--version_2_with_negative", f"--output_dir={output}"),
        "--null_score_diff_threshold=auto",
    ]
    squad_runs.run(
        tmp_path,
        *("--do_train", "--do_predict", f"--train_file={files}/train2.json"),
        *(f"--predict_file={files}/dev2.json", "--num_train_epochs=1"),
        *shared,
    )
    results = _results(output)
    assert {"best_f1", "HasAns_f1", "NoAns_exact"} <= results.keys()
    assert results["f1"] == pytest.approx(results["best_f1"])
    odds, predictions = _json(output, "null_odds"), _json(output, "predictions")
    text = (output / "null_score_diff_threshold.txt").read_text()
    assert float(text) == results["best_f1_thresh"]
    for key, value in odds.items():
        assert (predictions[key] == "") == (value > float(text))
    # Questions without answers: the threshold is that of the dev set.
    done = squad_runs.run(
        tmp_path,
        *("--do_predict", f"--predict_file={files}/test2.json", *shared),
    )
    odds, predictions = _json(output, "null_odds"), _json(output, "predictions")
    assert len(odds) == 5
    for key, value in odds.items():
        assert (predictions[key] == "") == (value > float(text))
    assert "Wrote 5 predictions" in done.stderr
    # What is left out is as in training: the number that was tuned.
    bare = shared[: shared.index("--version_2_with_negative")]
    (output / "predictions.json").unlink()
    squad_runs.run(
        tmp_path,
        *("--do_predict", f"--predict_file={files}/test2.json", *bare),
        f"--output_dir={output}",
    )
    assert _json(output, "predictions") == predictions


@pytest.mark.exhaustive
def test_a_killed_run_ends_with_the_same_weights(trained, tmp_path):
    folder, arguments, _ = trained
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    newest = max(tf1_files.numbered(str(again)))
    tf1_files.remove(f"{again}/model.ckpt-{newest}")
    squad_runs.run(tmp_path, *arguments[:-1], f"--output_dir={again}")
    names = list(tf1_files.shapes(f"{folder}/model.ckpt-{newest}"))
    expected = tf1_files.read(f"{folder}/model.ckpt-{newest}", names)
    found = tf1_files.read(f"{again}/model.ckpt-{newest}", names)
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name], name)
    for name in ("predictions", "nbest_predictions"):
        assert _json(again, name) == _json(folder, name)


# ---- Objective --------------------------------------------------------------


def test_the_loss_is_the_mean_of_two_cross_entropies_without_padding():
    objective = squad_runs.run_here(name="module")["OBJECTIVE"]
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 7)).astype(np.float32)
    lengths, labels = np.array([7, 4, 5]), np.array([[6, 0, 2], [6, 3, 4]])
    rows = np.array([1.0, 1.0, 0.0], np.float32)  # The last one is filling.

    def batch(padding):
        return {
            "input_mask": np.arange(7 + padding) < lengths[:, np.newaxis],
            "start_positions": labels[0],
            "end_positions": labels[1],
            "row_weights": rows,
        }

    def sums(padding):
        padded = np.pad(logits, [(0, 0), (0, 0), (0, padding)])
        inputs = {k: tf.constant(v) for k, v in batch(padding).items()}
        inputs["input_mask"] = tf.cast(inputs["input_mask"], tf.int32)
        found = objective.sums(lambda *_: tf.constant(padded), inputs, None)
        return {k: float(v) for k, v in found["span"].items()}

    entropies = [
        np.log(np.exp(logits[side, i, : lengths[i]]).sum())
        - logits[side, i, labels[side, i]]
        for side in (0, 1)
        for i in (0, 1)
    ]
    best = [
        sum(
            logits[side, i, : lengths[i]].argmax() == labels[side, i]
            for i in (0, 1)
        )
        for side in (0, 1)
    ]
    expected = {
        "loss": pytest.approx(sum(entropies) / 2, rel=1e-5),
        "start_accuracy": best[0],
        "end_accuracy": best[1],
    }
    assert sums(0) == expected
    assert sums(9) == expected
    assert float(objective.weights({"row_weights": rows})["span"]) == 2


# ---- Real questions ---------------------------------------------------------


@pytest.mark.slow
def test_real_questions(shared_data, tmp_path):
    # The first article to train on, a thousand questions of others to answer.
    path = shared_data / "squad" / "dev-v2.0.json"
    articles = json.loads(path.read_text())["data"]
    questions = 0
    test = []
    for article in articles[1:]:
        for paragraph in article["paragraphs"]:
            if questions < 1000:
                questions += len(paragraph["qas"])
                test.append({"paragraphs": [paragraph]})
    for name, data in (("train", articles[:1]), ("test", test)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"data": data}))
    config = squad_runs.CONFIG | {
        "vocab_size": 30522,
        "max_position_embeddings": 192,
    }
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    output = tmp_path / "output"
    squad_runs.run(
        tmp_path,
        *("--do_train", "--do_predict", "--do_export"),
        *(f"--train_file={tmp_path}/train.json", "--num_train_epochs=1"),
        *(f"--predict_file={tmp_path}/test.json", "--predict_batch_size=64"),
        *("--version_2_with_negative", "--null_score_diff_threshold=auto"),
        f"--vocab_file={shared_data}/vocab/bert_uncased.txt",
        f"--bert_config_file={tmp_path}/bert_config.json",
        *("--max_seq_length=192", "--learning_rate=0.001"),
        f"--output_dir={output}",
    )
    predictions = _json(output, "predictions")
    asked = squad_questions.read(str(tmp_path / "test.json"))
    assert len(asked) == len(predictions) >= 1000
    results = _results(output)
    scores = squad_metrics.evaluate_2(asked, predictions)
    assert {name: results[name] for name in scores} == pytest.approx(scores)
    served = saved_models.serve_elsewhere(
        tmp_path,
        output / "export",
        question=[question.text for question in asked],
        context=[question.context for question in asked],
    )
    expected = [predictions[question.key] for question in asked]
    assert served["answer"] == expected
