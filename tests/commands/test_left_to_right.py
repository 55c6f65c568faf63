"""Pre-trains a left-to-right model on records of masked words, and uses it."""

import json
import re

import bert_tf
from bert_tf.checkpoints import formats, names, tf1_files
from tests import (
    classifier_runs,
    family_runs,
    pretraining_records,
    tiny_model,
)
from tests.pretraining_runs import Setting, metrics, results

import numpy as np
import pytest

_VOCABULARY = pretraining_records.VOCABULARY
_HEAD = names.HEADS["next_piece"].all_variables
# Where it is an objective next to a task's.
_OBJECTIVE = {name: name.replace("cls/", "objective/") for name in _HEAD}

pytestmark = pytest.mark.slow


_CONFIG = pretraining_records.CONFIG | {
    "model_type": "left_to_right",
    "hidden_size": 32,
    "intermediate_size": 64,
    "initializer_range": 0.1,
}


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("setting")
    return Setting.of_texts(folder, _CONFIG, objective="nsp")


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    output = setting.folder / "trained"
    run = setting.train(output)
    assert "Each token is predicted from those before it." in run.stderr
    return output


def test_what_is_learned(trained):
    found = results(trained)
    names_of = ["loss", "next_piece_accuracy", "next_piece_loss"]
    assert list(found) == ["global_step", *names_of]
    # Four steps from chance, over 40 pieces.
    assert found["loss"] == pytest.approx(np.log(40), abs=0.3)
    losses = [line["loss"] for line in metrics(trained)]
    assert losses[-1] < losses[0]
    source = formats.open_checkpoint(str(trained))
    assert source.config is not None
    assert source.config.model_type == "left_to_right"
    assert source.vocab is not None
    assert source.vocab.contents == _VOCABULARY.files
    assert names.find_head(source.shapes, "x") == "next_piece"
    moments = {x for x in source.state if x.startswith("bert/pooler")}
    assert not moments, "the pooler is not trained"


def test_a_teacher_is_refused(setting, trained, tmp_path):
    assert (
        "A teacher is for models that learn masked words, and this one learns "
    ) in setting.refused(tmp_path / "out", f"--teacher={trained}")


def test_export_and_questions(trained, tmp_path):
    export = tmp_path / "export"
    family_runs.run(
        *("export_saved_model", f"--model_dir={trained}"),
        *("--top_k=2", f"--export_dir={export}", "--max_seq_length=16"),
    )
    answers = bert_tf.load(export)(["w5 w6", "w7"])
    assert [len(x["pieces"]) for x in answers] == [2, 2]
    lines = [{"text": "w5 w6"}, {"text": "w7"}]
    flags = (f"--model_dir={trained}", "--top_k=2", "--max_seq_length=16")
    assert family_runs.ask(tmp_path, lines, *flags) == answers


def _table(folder):
    """A text is red where it says so, perhaps at its very beginning."""
    words = [f"w{x}" for x in range(6, 30)]
    for split, rows in (("train", 512), ("dev", 32)):
        classifier_runs.write_red(folder / f"{split}.tsv", "w5", words, rows)


def _fine_tune(folder, trained, output, *flags):
    return classifier_runs.run(
        output / "log",
        *(f"--init_checkpoint={trained}", "--do_train", "--do_eval"),
        *(f"--train_file={folder}/train.tsv", f"--dev_file={folder}/dev.tsv"),
        *("--max_seq_length=12", "--train_batch_size=16"),
        *("--learning_rate=3e-3", "--num_train_epochs=3"),
        *("--save_checkpoints_steps=80", f"--output_dir={output}/out", *flags),
    )


def _check_work(setting, output):
    """It needs the last layer of all pieces, and the words of all but one."""
    config = json.loads((setting.folder / "config.json").read_text())
    D, F = config["hidden_size"], config["intermediate_size"]
    S, P = 7, 6  # five words between [CLS] and [SEP], and what follows a piece
    layer = S * (4 * D * D + 2 * D * F) + 2 * S * S * D
    words = P * (D * D + D * config["vocab_size"])
    # A multiplication and an addition, and twice as much in the way back.
    expected = 6 * (config["num_hidden_layers"] * layer + D * D + words)
    lines = (output / "metrics.jsonl").read_text().splitlines()
    found = [
        line["flops_utilization"] * 1e9 / line["sequences_per_second"]
        for line in map(json.loads, lines)
        if "loss" in line
    ]
    assert found == pytest.approx([expected] * len(found), rel=1e-3)
    assert found


def test_auxiliary_language_model(setting, trained, tmp_path):
    _table(tmp_path)
    run = _fine_tune(
        *(tmp_path, trained, tmp_path, "--auxiliary_lm_weight=0.5"),
        "--peak_flops=1e9",
    )
    output = tmp_path / "out"
    _check_work(setting, output)
    lines = metrics(output)
    pieces = [x["next_piece_loss"] for x in lines if "next_piece_loss" in x]
    assert pieces[-1] < pieces[0]
    for line in lines:
        if "label_loss" in line:
            total = line["label_loss"] + 0.5 * line["next_piece_loss"]
            assert line["loss"] == pytest.approx(total, rel=1e-5)
    assert "has no language-model head" not in run.stderr
    found = classifier_runs.results(output / "eval_results.txt")
    assert found["eval_accuracy"] > 0.9
    # The head stays with the run, not with what is used of it.
    newest, best = (
        formats.open_checkpoint(str(path)) for path in (output, output / "best")
    )
    assert {*_OBJECTIVE.values()} <= {*newest.shapes, *newest.state}
    stored = {*best.shapes, *best.state}
    assert not [name for name in stored if name.startswith("objective/")]
    texts = ["w5 w9 w9 w8 w7", "w6 w9 w9 w8 w7"]
    with tiny_model.untraced():
        answers = bert_tf.load(output)(texts)
        # The best weights have no such head to start from.
        again = _fine_tune(
            *(tmp_path, output / "best", tmp_path / "again"),
            *("--auxiliary_lm_weight=0.5", "--check_only"),
        )
    assert [answer["label"] for answer in answers] == ["red", "other"]
    assert "has no language-model head: the one of --auxil" in again.stderr


@pytest.mark.exhaustive
def test_memory_with_the_auxiliary_language_model(trained, tmp_path):
    """Its logits, [B, S, V], are the largest of what a step keeps."""
    _table(tmp_path)
    found = []
    for flags in ((), ("--auxiliary_lm_weight=0.5",)):
        run = _fine_tune(
            *(tmp_path, trained, tmp_path, "--check_only"),
            *("--train_batch_size=100000", "--num_train_epochs=1000", *flags),
        )
        memory = re.search(r"Memory: about (\d+\.\d) GB", run.stderr)
        assert memory, run.stderr
        found.append(float(memory[1]))
    # In float32: logits, their softmax, its slope.
    logits = 100_000 * 12 * 40 * 3 * 4 / 1e9
    assert found[1] - found[0] > 0.95 * logits


@pytest.mark.exhaustive
def test_auxiliary_head_of_pre_training(setting, trained, tmp_path):
    _table(tmp_path)
    run = _fine_tune(
        *(tmp_path, trained, tmp_path, "--auxiliary_lm_weight=0.5"),
        *("--learning_rate=1e-12", "--num_train_epochs=0.2"),
    )
    assert "not used by this model" not in run.stderr
    # A run with the loss has the head among what training needs.
    again = _fine_tune(
        *(tmp_path, tmp_path / "out", tmp_path / "again"),
        *("--auxiliary_lm_weight=0.5", "--check_only"),
    )
    assert "weight starts from that of" in again.stderr
    # Pre-training that goes on from there has it as its own again.
    run = setting.finished(
        *(tmp_path / "pre", f"--init_checkpoint={tmp_path / 'out'}"),
        "--learning_rate=1e-12",
    )
    assert "random values" not in run.stderr
    before, during, after = (
        formats.open_checkpoint(str(folder)).read(list(own))
        for folder, own in (
            (trained, _HEAD),
            (tmp_path / "out", _OBJECTIVE.values()),
            (tmp_path / "pre", _HEAD),
        )
    )
    for name, own in _OBJECTIVE.items():
        for kept in (during[own], after[name]):
            np.testing.assert_allclose(kept, before[name], atol=1e-9)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x * np.nan, "holds weights that are infinite or no numbers"),
        (lambda x: x[..., :-1], "has other shapes than this model"),
    ],
)
def test_an_auxiliary_head_that_does_not_fit(
    change, message, setting, trained, tmp_path, capsys
):
    _table(tmp_path)
    prefix = tf1_files.find(str(trained))
    values = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
    for name in _HEAD:
        values[name] = change(values[name])
    # Weights alone: no config beside them tells of their sizes.
    tf1_files.write(f"{tmp_path}/model.ckpt-1", values)
    code = classifier_runs.run_here(
        *("--do_train", "--check_only", "--auxiliary_lm_weight=0.5"),
        *(f"--init_checkpoint={tmp_path}/model.ckpt-1", "--max_seq_length=12"),
        f"--bert_config_file={setting.folder}/config.json",
        f"--vocab_file={setting.folder}/vocab.txt",
        f"--train_file={tmp_path}/train.tsv",
        f"--output_dir={tmp_path}/out",
    )
    assert code == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.exhaustive
def test_a_bilstm_on_top(setting, trained, tmp_path):
    _table(tmp_path)
    values = json.loads((setting.folder / "config.json").read_text())
    values["model_type"] = "left_to_right_bilstm"
    config = tmp_path / "config.json"
    config.write_text(json.dumps(values))
    run = _fine_tune(
        *(tmp_path, trained, tmp_path, f"--bert_config_file={config}"),
        *("--do_export", "--num_train_epochs=5"),
    )
    assert "start from random values: bert/bilstm/backward/" in run.stderr
    output = tmp_path / "out"
    found = classifier_runs.results(output / "eval_results.txt")
    assert found["eval_accuracy"] > 0.9
    texts = ["w5 w9 w9 w8 w7", "w6 w9 w9 w8 w7"]
    served = bert_tf.load(output / "export")(texts)
    assert [x["label"] for x in served] == ["red", "other"]
    # The folder of the run says what it is.
    again = bert_tf.load(output)(texts)
    family_runs.assert_same_answers(again, served, 1e-6)
    # It sees what it would have to predict.
    assert "This model is fine-tuned only: pre-train one of" in setting.refused(
        tmp_path / "no", f"--bert_config_file={config}"
    )
