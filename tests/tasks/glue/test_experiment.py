"""The order of the runs and the files kept, with a stand-in for the script.

tests/commands/test_run_glue.py runs run_classifier.py itself.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil

import bert_tf
from bert_tf import heads, modeling
from bert_tf.checkpoints import best, formats, restoring, trained_models
from bert_tf.storage import run_lock
from bert_tf.tasks import trials
from bert_tf.tasks.glue import glue_data, glue_experiment, glue_runs
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = dataclasses.replace(samples.TINY, vocab_size=6)
_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
_VOCAB = samples.vocab_files(_PIECES)


def _call(script, values, log, lock):
    """Writes the files of run_classifier.py that the experiment reads.

    The score is a function of seed and rate; runs whose seed is in the file
    "fails" fail.
    """
    here = script.parent
    with (here / "calls").open("a") as file:
        file.write(json.dumps(values) + "\n")
    pathlib.Path(log).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(log).touch()
    folder = pathlib.Path(values["output_dir"])
    if "do_predict" in values:
        names = {"MNLI": ["MNLI-m.tsv"], "AX": ["AX.tsv"], "RTE": ["RTE.tsv"]}
        for name in names[values["task_name"]]:
            (folder / name).write_text("predictions")
        return
    if values["seed"] in (here / "fails").read_text().split():
        last = "error: out of luck."
        raise trials.FailedError(f"It ended with exit code 1: {last}", last)
    if "check_only" in values:
        return
    shutil.copytree(here / "best", folder / "best", dirs_exist_ok=True)
    for name in ("train.tf_record", "model.ckpt-3.index"):
        (folder / name).touch()
    score = int(values["seed"]) * float(values["learning_rate"])
    (folder / "eval_results.txt").write_text(f"eval_accuracy = {score}\n")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Returns the path of the stand-in, next to the weights that it writes."""
    folder = tmp_path_factory.mktemp("script")
    model = heads.BertClassifier(modeling.Bert(_CONFIG), 3)
    kept = best.Best(str(folder), "accuracy", {})
    kept.offer(3, {"accuracy": 0.5}, model)
    return folder / "run_classifier.py"


def _data(folder, *names):
    (folder / "data").mkdir(exist_ok=True)
    for name in ("test.tsv", "test_matched.tsv", "diagnostic.tsv"):
        (folder / "data" / name).write_text("x")
    return {
        name: glue_data.Data(name, str(folder / "data"), 100, "digest")
        for name in names
    }


@pytest.fixture
def make(script, tmp_path, monkeypatch):
    """Makes an experiment in the same folder, with no calls counted yet."""
    monkeypatch.setattr(trials, "call", _call)
    locks: list[run_lock.Lock] = []

    def make(*tasks, rates=(0.1,), seeds=(1, 2), fails="", **flags):
        for name, text in (("calls", ""), ("fails", fails)):
            (script.parent / name).write_text(text)
        for old in locks:
            old.release()
        locks[:] = [run_lock.hold(tmp_path / "out")]
        return glue_experiment.Experiment(
            str(tmp_path / "out"),
            locks[0],
            script,
            {"use_checkpoint": "best", "dtype": "float32", **flags},
            trained_models.ModelFiles(_CONFIG, _VOCAB, True),
            _data(tmp_path, *tasks),
            glue_runs.grid(rates, [3.0], [32]),
            seeds,
        )

    yield make
    for old in locks:
        old.release()


_START = glue_experiment.Start("/weights", "of the weights")


@pytest.fixture
def calls(script):
    """Returns the flags of the runs since the experiment was made."""
    return lambda: [
        json.loads(line)
        for line in (script.parent / "calls").read_text().splitlines()
    ]


def test_word_vectors_are_for_runs_without_a_start(make, calls, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a 1 2 3 4\n")
    experiment = make("RTE", seeds=(1,), word_vectors=str(words))
    nothing = glue_experiment.Start(None, "of random weights")
    experiment.plan({"RTE": nothing})
    experiment.train("RTE", nothing)
    # As after an intermediate task.
    experiment.train("RTE", _START)
    given = [x.get("word_vectors") for x in calls()]
    assert given == [str(words), None]


def test_a_temperature_is_for_classes(make, calls):
    starts = {"STS-B": _START, "RTE": _START}
    make("STS-B", "RTE", temperature="1.0").check(starts)
    given = {x["task_name"]: x.get("temperature") for x in calls()}
    assert given == {"STS-B": None, "RTE": "1.0"}


def test_word_vectors_are_known_by_their_content(make, tmp_path):
    nothing = glue_experiment.Start(None, "of random weights")

    def key(path):
        experiment = make("RTE", seeds=(1,), word_vectors=str(path))
        return experiment.runs("RTE", nothing)[0].key

    words = tmp_path / "words.txt"
    words.write_text("a 1 2 3 4\n")
    here = key(words)
    assert key(f"file://{words}") == here, "an address, as in a bucket"
    words.write_text("a 1 2 3 5\n")
    assert key(f"file://{words}") != here
    # A folder is a checkpoint.
    model = samples.random_model("classification", _CONFIG)
    folder = samples.write_tf1(tmp_path / "weights", model)
    here = key(folder)
    assert key(shutil.copytree(folder, tmp_path / "copy")) == here
    model.variables[0].assign_add(tf.ones_like(model.variables[0]))
    assert key(samples.write_tf1(tmp_path / "weights", model)) != here


def test_a_check_asks_for_each_task_and_batch(make, calls, tmp_path, script):
    experiment = make("RTE", "WNLI", rates=(0.1, 0.2))
    experiment.settings.append(glue_runs.Setting(0.1, 3.0, 16))
    other = dataclasses.replace(_START, path="/others")
    starts = {"RTE": _START, "WNLI": other}
    experiment.check(starts)
    asked = [
        [given[name] for name in ("task_name", "train_batch_size", "seed")]
        for given in calls()
    ]
    expected = [["RTE", "32", "1"], ["RTE", "16", "1"], ["WNLI", "32", "1"]]
    assert asked == expected
    assert {given["check_only"] for given in calls()} == {"true"}
    assert calls()[-1]["init_checkpoint"] == "/others"
    assert os.listdir(tmp_path / "out") == ["lock"]
    (script.parent / "fails").write_text("1")
    with pytest.raises(ValueError) as caught:
        experiment.check(starts)
    assert str(caught.value) == (
        "RTE, seed 1, 0.1, 3 epochs, batch 32: out of luck."
    )


def test_a_check_leaves_out_what_finished_runs_show(make, calls):
    make("RTE").train("RTE", _START)
    starts = dict.fromkeys(("RTE", "WNLI"), _START)
    experiment = make("RTE", "WNLI", rates=(0.1, 0.2))
    experiment.settings.append(glue_runs.Setting(0.1, 3.0, 16))
    experiment.check(starts)
    asked = [(x["task_name"], x["train_batch_size"]) for x in calls()]
    assert asked == [("RTE", "16"), ("WNLI", "32")]
    make("RTE", predict_batch_size="4", overwrite="true").check({"RTE": _START})
    assert calls() == []


def test_runs_are_made_once(make, calls, tmp_path):
    experiment = make("RTE")
    experiment.plan({"RTE": _START})
    done = experiment.train("RTE", _START)
    assert [run.score for run in done] == pytest.approx([0.1, 0.2])
    given = calls()
    assert [c["seed"] for c in given] == ["1", "2"]
    assert given[0] == {
        "task_name": "RTE",
        "data_dir": str(tmp_path / "data"),
        "use_checkpoint": "best",
        "dtype": "float32",
        "bert_config_file": f"{tmp_path}/out/model/bert_config.json",
        "vocab_file": f"{tmp_path}/out/model/vocab.txt",
        "output_dir": str(tmp_path / "out" / done[0].folder),
        "do_train": "true",
        "do_eval": "true",
        "init_checkpoint": "/weights",
        "seed": "1",
        "learning_rate": "0.1",
        "num_train_epochs": "3.0",
        "train_batch_size": "32",
    }
    # The same experiment again; another seed; other weights.
    assert make("RTE").train("RTE", _START) == done
    assert calls() == []
    make("RTE", seeds=(1, 2, 3)).train("RTE", _START)
    assert [c["seed"] for c in calls()] == ["3"]
    other = dataclasses.replace(_START, digest="others")
    make("RTE").train("RTE", other)
    assert [c["seed"] for c in calls()] == ["1", "2"]


def test_runs_of_earlier_versions_are_found(make, calls, tmp_path):
    """They had --overwrite in their keys, false by default."""
    setting = {
        "learning_rate": 0.1,
        "num_train_epochs": 3.0,
        "train_batch_size": 32,
    }
    others = {"use_checkpoint": "best", "dtype": "float32"}
    others |= {"overwrite": "false", "data": "digest"}
    others |= {"start": _START.digest, "version": bert_tf.__version__}
    run = {"task": "RTE", "setting": setting, "seed": 1, "others": others}
    text = json.dumps(run, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()
    line = {"key": key, **run, "results": {"accuracy": 0.5}, "score": 0.5}
    line |= {"examples": 100, "seconds": 1.0, "folder": "RTE/here"}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.jsonl").write_text(json.dumps(line) + "\n")
    for value in ("false", "true"):
        experiment = make("RTE", seeds=(1,), overwrite=value)
        (done,) = experiment.train("RTE", _START)
        assert (done.score, done.folder) == (0.5, "RTE/here")
        assert calls() == []


def test_it_stops_at_a_run_that_fails_and_goes_on_there(make, calls):
    problem = r"exit code 1: error: out of luck\..*leave.* out.*RTE, seed 2, "
    with pytest.raises(ValueError, match=problem):
        make("RTE", seeds=(1, 2, 3), fails="2").train("RTE", _START)
    assert [c["seed"] for c in calls()] == ["1", "2"]
    make("RTE", seeds=(1, 2, 3)).train("RTE", _START)
    assert [c["seed"] for c in calls()] == ["2", "3"]


def test_the_weights_of_the_best_run_are_kept(make, tmp_path):
    experiment = make("RTE", rates=(0.1, 0.3, 0.2), seeds=(1, 2))
    done = experiment.train("RTE", _START)
    folders = {run.folder: tmp_path / "out" / run.folder for run in done}
    kept = [name for name, path in folders.items() if (path / "best").exists()]
    assert kept == [done[3].folder]  # Rate 0.3, seed 2.
    for path in folders.values():
        assert not (path / "train.tf_record").exists()
        assert not (path / "model.ckpt-3.index").exists()
        assert (path / "log.txt").exists()
    folder, source = experiment.trained("RTE", done, _START)
    assert folder == str(folders[done[3].folder])
    assert source.path == f"{folder}/best/model.ckpt-3"


def test_weights_that_are_gone_are_made_again(make, calls):
    make("RTE", rates=(0.1, 0.3)).train("RTE", _START)
    experiment = make("RTE")
    done = experiment.train("RTE", _START)
    assert calls() == []
    experiment.trained("RTE", done, _START)
    assert [(c["seed"], c["learning_rate"]) for c in calls()] == [("2", "0.1")]


def test_an_encoder_to_start_from(make, calls, tmp_path):
    experiment = make("MNLI", "RTE")
    done = experiment.train("MNLI", _START)
    after = ("RTE", "MNLI", "WNLI")
    unknown = dict.fromkeys(("MNLI", "RTE"), _START)
    assert experiment.starts(_START, "MNLI", after) == unknown
    experiment.write_encoder("MNLI", done, _START)
    starts = experiment.starts(_START, "MNLI", after)
    assert starts["MNLI"] == _START
    encoder = starts["RTE"]
    _, source = experiment.trained("MNLI", done, _START)
    assert encoder.digest == done[1].key  # Seed 2.
    found = formats.open_checkpoint(encoder.path)
    names = [n for n in source.shapes if n.startswith("bert/")]
    assert sorted(found.shapes) == sorted(names)
    assert (found.config, found.vocab) == (_CONFIG, _VOCAB)
    for name in names:
        ours, theirs = (x.read([name])[name] for x in (found, source))
        np.testing.assert_array_equal(ours, theirs)
    restoring.restore_weights(
        heads.BertClassifier(modeling.Bert(_CONFIG), 2).variables, found
    )
    experiment.train("RTE", encoder)
    assert calls()[-1]["init_checkpoint"] == encoder.path
    again = make("MNLI", "RTE")
    assert again.starts(_START, "MNLI", after) == starts
    assert again.starts(_START, None, after) == unknown
    again.plan(starts)
    assert again.missing == {"MNLI": [], "RTE": []}
    again.write_encoder("MNLI", done, _START)
    again.train("RTE", encoder)
    assert calls() == []
    # The best may be another one once there are more runs.
    more = make("MNLI", "RTE", seeds=(1, 2, 3))
    assert more.starts(_START, "MNLI", after) == unknown


def test_predictions_are_made_once_of_the_same_files(make, calls, tmp_path):
    experiment = make("MNLI", "RTE")
    done = {t: experiment.train(t, _START) for t in ("MNLI", "RTE")}

    def predict(experiment):
        found = experiment.predict("RTE", done["RTE"], _START)
        found |= experiment.predict("MNLI", done["MNLI"], _START)
        found |= experiment.predict_diagnostics(
            str(tmp_path / "data"), done["MNLI"], _START
        )
        return found

    best = {task: runs[1].folder for task, runs in done.items()}
    found = predict(experiment)
    assert found == {
        "RTE.tsv": f"{tmp_path}/out/{best['RTE']}/RTE.tsv",
        "MNLI-m.tsv": f"{tmp_path}/out/{best['MNLI']}/MNLI-m.tsv",
        "AX.tsv": f"{tmp_path}/out/AX/{done['MNLI'][1].key[:8]}/AX.tsv",
    }
    *_, ax = calls()
    assert ax["init_checkpoint"] == (
        f"{tmp_path}/out/{best['MNLI']}/best/model.ckpt-3"
    )
    assert {"do_train", "seed"} & ax.keys() == set()
    again = make("MNLI", "RTE")
    assert predict(again) == found
    assert calls() == []
    (tmp_path / "data" / "test.tsv").write_text("y")
    predict(again)
    assert [c["task_name"] for c in calls()] == ["RTE"]


def test_a_task_without_a_test_set(make, tmp_path):
    experiment = make("WNLI")
    tf.io.gfile.remove(str(tmp_path / "data" / "test.tsv"))
    done = experiment.train("WNLI", _START)
    assert experiment.predict("WNLI", done, _START) == {}
