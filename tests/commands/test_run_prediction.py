"""Runs run_prediction.py's own main, on tiny models."""

import json
import os
import shutil

from bert_tf import heads, modeling
from bert_tf.checkpoints import best, tf1_files
from tests import exports, saved_models, scripts
from tests.tasks.squad import test_saved_model as spans

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def predict(*arguments):
    return scripts.run_here("run_prediction", *arguments)


def answers(tmp_path, lines, *arguments):
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    code = predict(
        f"--input_file={tmp_path}/in.txt",
        f"--output_file={tmp_path}/out.jsonl",
        "--overwrite",
        # Windows and batches of several lengths.
        *("--batch_size=3", "--sort_window=4"),
        *arguments,
    )
    assert not code
    assert sorted(os.listdir(tmp_path)).count("out.jsonl") == 1
    rows = (tmp_path / "out.jsonl").read_text("utf-8").split("\n")
    assert rows.pop() == ""
    return [json.loads(row) for row in rows]


@pytest.mark.usefixtures("untraced")
def test_next_sentences_of_a_pre_trained_model(tmp_path):
    model = exports.model("pretraining")
    own = exports.model("next_sentence")
    theirs = {v.path: v for v in model.variables}
    for variable in own.variables:
        variable.assign(theirs[variable.path])
    run = exports.run("pretraining")
    pairs = [("What a film.", "good, good Café"), ("bad", "Whatever good")]
    found = answers(
        *(tmp_path, ["\t".join(pair) for pair in pairs]),
        *(f"--init_checkpoint={run}", "--head=next_sentence"),
    )
    shares = saved_models.softmax(exports.python_logits(own, *pairs))
    np.testing.assert_allclose(
        [answer["is_next"] for answer in found], shares[:, 0], atol=1e-5
    )
    # The other head that it has is the one that is taken by itself.
    (answer,) = answers(tmp_path, ["a [MASK]"], f"--init_checkpoint={run}")
    assert len(answer["masks"][0]) == 5


def _keep_best(run, model):
    names = ("vocab.txt", "bert_config.json")
    files = {name: (run / name).read_bytes() for name in names}
    kept = best.Best(str(run), "loss", files, lowest=True)
    assert kept.offer(5, {"loss": 1.0}, model)


@pytest.mark.usefixtures("untraced")
def test_weights_of_a_run_are_read_as_the_run_says(tmp_path):
    """By whichever flag, and wherever in the run's folder they lie."""
    flags = "--max_seq_length=6", "--long_documents=windows"
    run = exports.write_run(tmp_path / "run", "score", *flags)
    texts = ["a b a b a b a b a b a b", "b"]
    expected = answers(tmp_path, texts, f"--model_dir={run}")
    of_prefix = f"--init_checkpoint={run}/model.ckpt-7"
    assert answers(tmp_path, texts, of_prefix) == expected
    other = answers(tmp_path, texts, of_prefix, "--max_seq_length=12")
    assert other != expected
    model = heads.BertClassifier(modeling.Bert(exports.CONFIG), 1)
    _keep_best(run, model)
    expected = answers(tmp_path, texts, f"--model_dir={run}")
    assert answers(tmp_path, texts, f"--init_checkpoint={run}/best") == expected


@pytest.mark.usefixtures("untraced")
def test_answers_to_questions(tmp_path, capsys):
    model = exports.model("span", spans.CONFIG)
    run = exports.write_run(
        *(tmp_path / "run", "span", "--max_seq_length=14"),
        *("--max_answer_length=3", "--version_2_with_negative=true"),
        "--null_score_diff_threshold=auto",
        config=spans.CONFIG,
        vocab=spans.VOCAB,
    )
    (run / "null_score_diff_threshold.txt").write_text("0.25\n")
    pairs = [pair for pair in spans.PAIRS if pair[0].strip()]
    lines = [
        json.dumps({"question": question, "context": context, "id": i})
        for i, (question, context) in enumerate(pairs)
    ]
    found = answers(
        tmp_path, lines, f"--model_dir={run}", "--input_format=jsonl"
    )
    nulls = 0
    for i, (pair, answer) in enumerate(zip(pairs, found, strict=True)):
        expected = spans.python_answer(model, *pair)
        is_null = expected.null_odds > 0.25
        nulls += is_null
        assert answer["id"] == i
        assert answer["answer"] == ("" if is_null else expected.text)
        assert answer["score"] == pytest.approx(expected.score, abs=1e-4)
    assert 0 < nulls < len(pairs)
    # A threshold of no questions.
    code = predict(
        *(f"--model_dir={run}", "--version_2_with_negative=false"),
        "--null_score_diff_threshold=-1.5",
    )
    assert code == 1
    assert (
        "--null_score_diff_threshold goes with --version_2_with_negative, of "
        "questions without an answer. Received: "
        "null_score_diff_threshold=-1.5, version_2_with_negative=False"
    ) in capsys.readouterr().err


@pytest.mark.usefixtures("untraced")
def test_a_head_that_its_run_did_not_train(tmp_path, capsys):
    run, model = tmp_path / "run", exports.model("pretraining")
    shutil.copytree(exports.run("pretraining"), run)
    tensors = {v.path: v.value for v in model.variables}
    tensors |= {
        f"{name}/adam_m": value
        for name, value in list(tensors.items())
        if "seq_relationship" not in name
    }
    tf1_files.write(str(run / "model.ckpt-7"), tensors)
    (tmp_path / "in.txt").write_text("a\tb\n")

    def error(*given):
        code = predict(
            *("--head=next_sentence", f"--input_file={tmp_path}/in.txt"),
            *(f"--output_file={tmp_path}/out", *given),
        )
        assert code == 1
        return capsys.readouterr().err.splitlines()[-1]

    problem = "has a next_sentence head that its run did not train"
    assert f"{run}/model.ckpt-7 {problem}" in error(f"--model_dir={run}")
    # The best weights are kept without what training needs.
    _keep_best(run, model)
    assert not any(
        name.endswith("adam_m")
        for name in tf1_files.shapes(str(run / "best" / "model.ckpt-5"))
    )
    said = f"{run}/best/model.ckpt-5 {problem}"
    assert said in error(f"--init_checkpoint={run}/best")
    # A newer one that no one can read does not hide it.
    (run / "model.ckpt-9.index").write_bytes(b"torn")
    assert said in error(f"--model_dir={run}")
    (answer,) = answers(tmp_path, ["[MASK]"], f"--model_dir={run}")
    assert answer["masks"]
