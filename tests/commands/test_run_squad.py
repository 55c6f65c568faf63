"""Runs run_squad.py on tiny questions."""

import json
import re

import bert_tf
from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.tasks.squad import squad_metrics, squad_questions
from tests import (
    classifier_runs,
    fine_tuned,
    scripts,
    tiny_model,
    trained_weights,
)

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def trained():
    return fine_tuned.trained("squad")


def _json(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


@pytest.mark.slow
def test_version_1_1(trained):
    folder = trained.output
    questions = squad_questions.read(str(trained.files / "dev.json"))
    predictions = _json(folder, "predictions")
    assert list(predictions) == [question.key for question in questions]
    for question in questions:
        assert predictions[question.key] in question.context
    n_best = _json(folder, "nbest_predictions")
    for key, text in predictions.items():
        assert n_best[key][0]["text"] == text
        assert sum(x["probability"] for x in n_best[key]) == pytest.approx(1)
    assert not (folder / "null_odds.json").exists()
    results = classifier_runs.results(folder / "eval_results.txt")
    step = results.pop("global_step")
    expected = squad_metrics.evaluate(questions, predictions)
    assert results == pytest.approx(expected)
    assert results["f1"] > 0
    kept = _json(folder / "best", "results")
    assert kept == pytest.approx({**expected, "global_step": step})
    assert re.search(rf"global_step +{int(step)}\n", trained.log)


@pytest.mark.slow
def test_the_best_is_not_compared_with_other_scores(trained, tmp_path):
    done = trained.run(
        *(tmp_path, *trained.command, f"--output_dir={trained.output}"),
        *("--check_only", "--max_answer_length=5"),
        code=1,
    )
    problem = "by other scores: max_answer_length was 30 and is 5. Give what"
    assert problem in done.lines[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_version_2_0_and_its_threshold(trained, tmp_path):
    files, output = trained.files, tmp_path / "output"
    bare = [*trained.flags, "--do_predict", f"--output_dir={output}"]
    shared = [
        *(*bare, "--version_2_with_negative"),
        "--null_score_diff_threshold=auto",
    ]

    def predict(name, *flags):
        path = f"--predict_file={files}/{name}.json"
        done = trained.run(tmp_path, *flags, path)
        return done, _json(output, "null_odds"), _json(output, "predictions")

    def assert_by_threshold(odds, predictions):
        for key, value in odds.items():
            assert (predictions[key] == "") == (value > threshold)

    _, *found = predict(
        *("dev2", *shared, "--do_train", "--num_train_epochs=0.2"),
        f"--train_file={files}/train2.json",
    )
    results = classifier_runs.results(output / "eval_results.txt")
    assert {"best_f1", "HasAns_f1", "NoAns_exact"} <= results.keys()
    assert results["f1"] == pytest.approx(results["best_f1"])
    asked = squad_questions.read(str(files / "dev2.json"))
    scores = squad_metrics.evaluate_2(asked, found[1])
    assert {x: results[x] for x in scores} == pytest.approx(scores)
    text = (output / "null_score_diff_threshold.txt").read_text()
    threshold = float(text)
    assert threshold == results["best_f1_thresh"]
    assert_by_threshold(*found)
    # Questions without answers: the threshold is that of the dev set.
    done, odds, predictions = predict("test2", *shared)
    assert len(odds) == 5
    assert_by_threshold(odds, predictions)
    assert "Wrote 5 predictions" in done.stderr
    # What is left out is as in training: the number that was tuned.
    (output / "predictions.json").unlink()
    assert predict("test2", *bare)[1:] == (odds, predictions)
    # The best threshold answers no question: this one answers some.
    threshold = sorted(odds.values())[2]
    _, *found = predict(
        *("test2", *bare, "--version_2_with_negative"),
        f"--null_score_diff_threshold={threshold}",
    )
    assert_by_threshold(*found)
    assert any(found[1].values()) and not all(found[1].values())


@pytest.mark.slow
def test_the_joint_head(trained, tmp_path):
    """Trained, resumed to predict by what it was trained with, and exported."""
    files, output = trained.files, tmp_path / "output"
    bare = [*trained.flags, f"--output_dir={output}"]
    asks = ["--do_predict", f"--predict_file={files}/dev2.json"]
    # A search of one's own, without saying again what it goes with.
    again = [*bare, "--start_n_top=4"]
    bold = "--null_score_diff_threshold=100"
    questions = squad_questions.read(str(files / "dev2.json"))
    asked = [(x.text, x.context) for x in questions]
    with tiny_model.untraced():
        trained.run(
            tmp_path,
            *(*again, *asks, "--answer_head=joint", "--end_n_top=3"),
            *("--version_2_with_negative", "--null_score_diff_threshold=auto"),
            *("--do_train", "--num_train_epochs=0.3"),
            f"--train_file={files}/train2.json",
        )
        predictions = _json(output, "predictions")
        trained.run(tmp_path, *again, *asks)
        assert _json(output, "predictions") == predictions
    odds = _json(output, "null_odds")
    results = classifier_runs.results(output / "eval_results.txt")
    assert results["f1"] == pytest.approx(results["best_f1"])
    threshold = float((output / "null_score_diff_threshold.txt").read_text())
    for key, value in odds.items():
        assert not predictions[key] or value <= threshold
    with tiny_model.untraced():
        # With this threshold, each question has an answer.
        trained.run(tmp_path, *again, *asks, bold)
        found = bert_tf.load(output, null_score_diff_threshold=100)(asked)
    answers = _json(output, "predictions")
    assert all(answers.values())
    assert [x["answer"] for x in found] == [answers[x.key] for x in questions]
    trained.run(tmp_path, *again, "--do_export", bold)
    predictor = bert_tf.load(output / "export")
    assert predictor.head == "joint_span"
    for question, answer in zip(questions, predictor(asked), strict=True):
        assert answer["answer"] == answers[question.key]
        odd = odds[question.key]
        assert answer["null_score"] == pytest.approx(odd, abs=1e-4)


def test_the_loss_is_the_mean_of_two_cross_entropies_without_padding():
    objective = scripts.run_here("run_squad", name="module")["OBJECTIVE"]
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 7)).astype(np.float32)
    lengths, labels = np.array([7, 4, 5]), np.array([[6, 0, 2], [6, 3, 4]])
    rows = np.array([1.0, 1.0, 0.0], np.float32)  # The last one is padding.

    def sums(padding):
        padded = np.pad(logits, [(0, 0), (0, 0), (0, padding)])
        mask = np.arange(7 + padding) < lengths[:, np.newaxis]
        inputs = {
            "input_mask": tf.constant(mask.astype(np.int32)),
            "start_positions": tf.constant(labels[0]),
            "end_positions": tf.constant(labels[1]),
            "row_weights": tf.constant(rows),
        }
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


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_every_question_is_predicted(trained, tmp_path):
    """As by the original, without answers to score by and without words."""
    output = tmp_path / "output"
    output.mkdir()
    _write_weights(trained, output)
    content = json.loads((trained.files / "dev.json").read_text())
    paragraph = content["data"][0]["paragraphs"][0]
    paragraph["qas"][0]["answers"] = []
    empty = {"context": " ", "qas": [{"id": "e", "question": "the cat"}]}
    content["data"][0]["paragraphs"].insert(0, empty)
    (tmp_path / "dev.json").write_text(json.dumps(content))
    done = trained.run(
        *(tmp_path, *trained.flags, f"--output_dir={output}", "--do_predict"),
        f"--predict_file={tmp_path}/dev.json",
    )
    predictions = _json(output, "predictions")
    assert predictions.pop("e") == "empty"
    # Contexts after it have the answers of their own windows.
    for question in squad_questions.read(str(trained.files / "dev.json")):
        assert predictions.pop(question.key) in question.context
    assert not predictions
    assert "The predictions are not scored: " in done.stderr
    assert not (output / "eval_results.txt").exists()


def _write_weights(trained, folder):
    config = modeling.BertConfig.from_json_file(
        f"{trained.files}/bert_config.json"
    )
    trained_weights.write(folder, heads.BertSpanFinder(modeling.Bert(config)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "code"),
    [
        (["--do_predict", "--predict_file={files}/test2.json"], 1),
        # Needs no threshold.
        (["--do_train", "--train_file={files}/train2.json"], 0),
    ],
)
@pytest.mark.usefixtures("untraced")
def test_a_tuned_threshold_is_there_where_it_must_be(
    work, code, trained, tmp_path
):
    output = tmp_path / "output"
    output.mkdir()
    if code:
        _write_weights(trained, output)
    done = trained.run(
        *(tmp_path, *trained.flags, "--version_2_with_negative"),
        *("--null_score_diff_threshold=auto", f"--output_dir={output}"),
        *(argument.format(files=trained.files) for argument in work),
        "--check_only",
        code=code,
    )
    is_missed = "threshold=auto needs questions with answers" in done.lines[-1]
    assert is_missed == bool(code)


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_reads_and_answers_as_in_training_or_says_so(
    trained, tmp_path, monkeypatch
):
    output = tmp_path / "output"
    output.mkdir()
    _write_weights(trained, output)
    (output / "flags.txt").write_text(
        "--do_lower_case=true\n--max_seq_length=16\n--max_query_length=4\n"
        "--max_answer_length=7\n--n_best_size=3\n--doc_stride=5\n--seed=7\n"
        "--version_2_with_negative=true\n--null_score_diff_threshold=auto\n"
    )
    (output / "null_score_diff_threshold.txt").write_text("-3.25\n")
    shared = [*trained.flags, f"--output_dir={output}"]
    done = trained.run(
        *(tmp_path, *shared, "--do_predict", "--check_only"),
        f"--predict_file={trained.files}/dev.json",
    )
    (said,) = [x for x in done.lines if "read in a different way" in x]
    assert said.endswith(": doc_stride was 5 and is 4")

    exported: list[saved_model.Export] = []
    monkeypatch.setattr(
        saved_model, "save", lambda path, made, **_: exported.append(made)
    )

    def export(*flags):
        trained.run(tmp_path, *shared, "--do_export", *flags)
        return json.loads(exported.pop().files["export.json"])

    said = export()
    assert said["null_score_diff_threshold"] == -3.25
    assert (said["max_answer_length"], said["n_best_size"]) == (7, 3)
    assert said["doc_stride"] == 4
    # A number of one's own, without saying again what it goes with.
    said = export("--null_score_diff_threshold=1.5")
    assert said["null_score_diff_threshold"] == 1.5
