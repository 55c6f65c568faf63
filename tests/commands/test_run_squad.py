"""Runs the script's own main, on tiny data made here and on real questions."""

import json
import pathlib
import shutil

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files
from bert_tf.flags import distillation as distillation_flags
from bert_tf.flags import fine_tuning as fine_tuning_flags
from bert_tf.flags import optimization as optimization_flags
from bert_tf.flags import run as run_flags
from bert_tf.tasks.squad import metrics as squad_metrics
from bert_tf.tasks.squad import questions as squad_questions
from tests import saved_models, scripts, trained_weights

import numpy as np
import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Imported before any run in this process, which must not define them anew.
_FLAG_MODULES = (
    run_flags,
    fine_tuning_flags,
    optimization_flags,
    distillation_flags,
)
_LINE = "the cat dog bird fish runs sleeps eats red blue green old new big"
_WORDS = _LINE.split()
_CONFIG = {
    "vocab_size": 8 + len(_WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def run(folder, *arguments, **environment):
    """Runs the script in a process of its own, which must succeed."""
    done = scripts.run(folder / "log", "run_squad", *arguments, **environment)
    assert done.wait() == 0, done.stderr
    return done


def _run_here(*arguments, name="__main__"):
    """Runs the script in this process: quicker, for runs that end at once."""
    return scripts.run_here("run_squad", _FLAG_MODULES, *arguments, name=name)


def _model(folder):
    """Writes a vocabulary and a config; returns flags of a quick run."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", ",", "##s"]
    (folder / "vocab.txt").write_text("\n".join([*marks, *_WORDS]) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(_CONFIG))
    return [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        *("--max_seq_length=16", "--max_query_length=4", "--doc_stride=4"),
        *("--train_batch_size=8", "--eval_batch_size=8"),
        "--learning_rate=0.01",
    ]


def _store(path, number, impossible=0, answered=True):
    """Writes questions "cat?" whose answer is the word after "cat"."""
    rng = np.random.default_rng(number)
    paragraphs = []
    for i in range(number):
        words = [str(word) for word in rng.choice(_WORDS[2:], 20)]
        if i >= impossible:
            words[rng.integers(18)] = "Cat"
        context = ", ".join(words[:10]) + " \n" + " ".join(words[10:])
        qa = {"id": f"q{i}", "question": "Cat?", "is_impossible": False}
        if i < impossible:
            qa |= {"answers": [], "is_impossible": True}
        else:
            text = words[words.index("Cat") + 1]
            start = context.index(text, context.index("Cat"))
            qa["answers"] = [{"text": text, "answer_start": start}]
        if not answered:
            del qa["answers"]
        paragraphs.append({"context": context, "qas": [qa]})
    content = {"version": "x", "data": [{"paragraphs": paragraphs}]}
    path.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Flags of a tiny model and its files."""
    folder = tmp_path_factory.mktemp("model")
    _store(folder / "train.json", 30)
    _store(folder / "dev.json", 9)
    _store(folder / "train2.json", 30, impossible=8)
    _store(folder / "dev2.json", 11, impossible=4)
    _store(folder / "test2.json", 5, impossible=2, answered=False)
    return folder, _model(folder)


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
    done = run(folder, *arguments)
    return folder, arguments, done


def _results(folder):
    lines = (folder / "eval_results.txt").read_text().splitlines()
    assert lines == sorted(lines)
    return {
        name: float(value)
        for name, value in (line.split(" = ") for line in lines)
    }


def _write_weights(folder):
    config = modeling.BertConfig.from_dict(_CONFIG)
    trained_weights.write(folder, heads.BertSpanFinder(modeling.Bert(config)))


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
    run(
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
    done = run(
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
    run(
        tmp_path,
        *("--do_predict", f"--predict_file={files}/test2.json", *bare),
        f"--output_dir={output}",
    )
    assert _json(output, "predictions") == predictions


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(trained, tmp_path):
    folder, arguments, _ = trained
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    newest = max(tf1_files.numbered(str(again)))
    tf1_files.remove(f"{again}/model.ckpt-{newest}")
    run(tmp_path, *arguments[:-1], f"--output_dir={again}")
    names = list(tf1_files.shapes(f"{folder}/model.ckpt-{newest}"))
    expected = tf1_files.read(f"{folder}/model.ckpt-{newest}", names)
    found = tf1_files.read(f"{again}/model.ckpt-{newest}", names)
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name], name)
    for name in ("predictions", "nbest_predictions"):
        assert _json(again, name) == _json(folder, name)


def test_check_only_says_what_it_found_and_writes_nothing(
    model, trained, tmp_path, caplog
):
    files, shared = model
    caplog.set_level("INFO", logger="absl")
    code = _run_here(
        *(*shared, "--do_train", "--do_eval", "--check_only"),
        f"--train_file={files}/train.json",
        f"--predict_file={files}/dev.json",
        f"--init_checkpoint={tf1_files.latest(str(trained[0]))}",
        f"--output_dir={tmp_path}/output",
    )
    assert not code
    for text in (
        "Data: 30 questions to train on",
        "Data: 9 questions to answer",
        "Restored ",
        "Found nothing that would stop this run",
    ):
        assert text in caplog.text
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    ("is_tuned", "work"),
    [
        (True, ["--do_export"]),
        (True, ["--do_predict", "--predict_file={files}/test2.json"]),
        # Will be tuned on these questions.
        (
            False,
            ["--do_export", "--do_predict", "--predict_file={files}/dev2.json"],
        ),
        # Needs no threshold.
        (False, ["--do_train", "--train_file={files}/train2.json"]),
    ],
)
def test_a_tuned_threshold_is_there_where_it_must_be(
    is_tuned, work, model, tmp_path
):
    files, shared = model
    if "--do_train" not in work:
        _write_weights(tmp_path)
    if is_tuned:
        (tmp_path / "null_score_diff_threshold.txt").write_text("1.5\n")
    code = _run_here(
        *(*shared, "--version_2_with_negative", "--check_only"),
        *("--null_score_diff_threshold=auto", f"--output_dir={tmp_path}"),
        *(argument.format(files=files) for argument in work),
    )
    assert not code


# ---- Objective --------------------------------------------------------------


def test_the_loss_is_the_mean_of_two_cross_entropies_without_padding():
    objective = _run_here(name="module")["OBJECTIVE"]
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


# ---- Mistakes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [
                "--flagfile={root}/configs/squad.flags",
                *("--max_seq_length=9", "--train_file={files}/none.json"),
                *("--max_query_length=3", "--predict_file={files}/dev.json"),
            ],
            "There is no such file. Received: {files}/none.json",
        ),
        (
            [
                "--flagfile={root}/configs/squad2.flags",
                *("--max_seq_length=9", "--train_file={files}/none.json"),
                *("--max_query_length=3", "--predict_file={files}/dev.json"),
            ],
            "There is no such file. Received: {files}/none.json",
        ),
    ],
)
def test_mistakes_end_in_one_line(arguments, message, model, tmp_path, capsys):
    files, shared = model
    places = {"files": files, "output": tmp_path / "output", "root": _ROOT}
    given = [argument.format(**places) for argument in arguments]
    code = _run_here(*shared, f"--output_dir={places['output']}", *given)
    assert code == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("error: ")
    assert message.format(**places) in error[-1]
    assert not any("Traceback" in line for line in error)


def test_a_checkpoint_without_the_head(model, tmp_path, capsys):
    files, shared = model
    prefix = str(tmp_path / "bert_model.ckpt")
    tf1_files.write(prefix, {"output_weights": np.zeros([2, 8], np.float32)})
    code = _run_here(
        *(*shared, "--do_predict", f"--predict_file={files}/dev.json"),
        *(f"--init_checkpoint={prefix}", f"--output_dir={tmp_path}/output"),
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "is not fine-tuned: it has no span head" in error
    assert "cls/squad/output_weights" in error


def test_windows_are_cut_as_in_training_or_it_is_logged(
    model, tmp_path, caplog
):
    files, shared = model
    _write_weights(tmp_path)
    (tmp_path / "flags.txt").write_text(
        "--do_lower_case=true\n--max_seq_length=16\n--doc_stride=4\n"
        "--max_query_length=4\n--version_2_with_negative=false\n--seed=7\n"
    )
    code = _run_here(
        *(*shared, "--do_predict", "--check_only", "--doc_stride=5"),
        *(f"--predict_file={files}/dev.json", f"--output_dir={tmp_path}"),
    )
    assert not code
    said = [x for x in caplog.messages if "read in another way" in x]
    assert [x.partition(": ")[2] for x in said] == ["doc_stride was 4 and is 5"]


def test_answers_are_as_in_training_where_nothing_else_is_said(
    model, tmp_path, caplog
):
    _, shared = model
    caplog.set_level("INFO", logger="absl")
    _write_weights(tmp_path)
    (tmp_path / "flags.txt").write_text(
        "--max_answer_length=7\n--n_best_size=3\n--doc_stride=5\n"
        "--version_2_with_negative=true\n--null_score_diff_threshold=auto\n"
    )
    (tmp_path / "null_score_diff_threshold.txt").write_text("-3.25\n")
    code = _run_here(
        *(*shared, "--do_export", "--doc_stride=4"),
        f"--output_dir={tmp_path}",
    )
    assert not code
    export = tmp_path / "export" / "assets" / "export.json"
    said = json.loads(export.read_text())
    assert said["null_score_diff_threshold"] == -3.25
    assert (said["max_answer_length"], said["n_best_size"]) == (7, 3)
    assert said["doc_stride"] == 4
    # A number of one's own, without saying again what it goes with.
    code = _run_here(
        *(*shared, "--do_export", "--null_score_diff_threshold=1.5"),
        f"--output_dir={tmp_path}",
    )
    assert not code
    assert json.loads(export.read_text())["null_score_diff_threshold"] == 1.5


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
    config = _CONFIG | {"vocab_size": 30522, "max_position_embeddings": 192}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    output = tmp_path / "output"
    run(
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
