"""Runs in Weights & Biases and MLflow, read back from their own files."""

import json
import pathlib
import struct

from bert_tf.training import progress, trackers
from tests import classifier_runs, scripts

import pytest

mlflow = pytest.importorskip("mlflow", reason="needs the extra `mlflow`")
wandb = pytest.importorskip("wandb", reason="needs the extra `wandb`")
wandb_records = pytest.importorskip("wandb.proto.wandb_internal_pb2")

_BOTH = ("wandb", "mlflow")
_FLAGS = {"learning_rate": "0.01", "train_file": "x" * 7000}


@pytest.fixture
def environment(tmp_path):
    return {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
    }


@pytest.fixture
def offline(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def _wandb(path):
    """Returns the records of a W&B file, which is a log in LevelDB's format."""
    data, at, record, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # A complete record, or the end of one.
            found.append(wandb_records.Record.FromString(record))
            record = b""
    return found


def _in_wandb(folder):
    """Returns IDs, name, flags and {(step, name): value} of a folder's run."""
    # At its end a run does not wait for W&B's process to write the file.
    wandb.teardown()
    ids, names, flags, scalars = set(), set(), {}, {}
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for record in _wandb(path):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                ids.add(record.run.run_id)
                names.add(record.run.display_name)
            elif kind == "config":
                for item in record.config.update:
                    if not item.key.startswith("_"):
                        flags[item.key] = json.loads(item.value_json)
            elif kind == "history":
                for item in record.history.item:
                    name = item.key or item.nested_key[0]
                    if not name.startswith("_"):
                        step = record.history.step.num
                        scalars[step, name] = json.loads(item.value_json)
    (name,) = names
    return ids, name, flags, scalars


def _in_mlflow(environment, folder):
    client = mlflow.MlflowClient(environment["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name("bert_tf")
    runs = client.search_runs([experiment.experiment_id])
    (run,) = (x for x in runs if x.info.run_name == str(folder))
    history = {
        (metric.step, name): metric.value
        for name in run.data.metrics
        for metric in client.get_metric_history(run.info.run_id, name)
    }
    return run, history


def _lines(folder):
    text = pathlib.Path(folder, "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    return {
        (line["step"], name): value
        for line in lines
        for name, value in line.items()
        if name != "step"
    }


def _report(folder, step):
    with trackers.Trackers(_BOTH, str(folder), _FLAGS) as tracked:
        report = progress.Progress(str(folder), step - 1, 10, tracked=tracked)
        report.evaluation(step, {"accuracy": step / 8, "loss": 0.5}, step)


def test_a_run_and_its_resumption(offline, environment, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for step in (1, 2):
        _report(folder, step)
    expected = _lines(folder)
    assert expected[2, "eval_accuracy"] == 0.25
    ids = json.loads((folder / "trackers.json").read_text())

    numbers, name, flags, scalars = _in_wandb(folder)
    assert (numbers, name) == ({ids["wandb"]}, str(folder))
    assert flags == _FLAGS
    assert scalars == expected

    run, history = _in_mlflow(environment, folder)
    assert run.info.run_id == ids["mlflow"]
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        name: value[:6000] for name, value in _FLAGS.items()
    }
    assert history == expected


def test_a_tracker_that_fails_is_left_out(
    offline, environment, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://x")
    _report(tmp_path, 1)
    assert caplog.text.count("mlflow failed, and gets no more reports: ") == 1
    assert "wandb failed" not in caplog.text
    assert _in_wandb(tmp_path)[3] == _lines(tmp_path)


def test_nothing_is_started_without_a_report(offline, tmp_path):
    with trackers.Trackers(_BOTH, str(tmp_path), _FLAGS):
        pass
    assert not list(tmp_path.iterdir())


def test_an_unknown_tracker():
    with pytest.raises(ValueError, match=r"wandb, mlflow\. Received: .*=comet"):
        trackers.check(["comet"])


@pytest.mark.slow
def test_a_script(environment, tmp_path):
    output = tmp_path / "output"
    table = classifier_runs.write_table(tmp_path / "table.tsv", 12)
    done = scripts.run_process(
        tmp_path / "log",
        "run_classifier",
        *classifier_runs.write_model(tmp_path / "model"),
        *("--do_train=true", "--do_eval=true", "--num_train_epochs=2"),
        *(f"--train_file={table}", f"--dev_file={table}", "--log_steps=2"),
        *("--report_to=wandb,mlflow", f"--output_dir={output}"),
        **environment,
    )
    assert done.wait() == 0, done.stderr
    expected = _lines(output)
    assert {"loss", "eval_accuracy"} <= {name for _, name in expected}
    _, name, flags, scalars = _in_wandb(output)
    assert scalars == expected
    assert name == flags["output_dir"] == str(output)
    run, history = _in_mlflow(environment, output)
    assert history == expected
    assert run.data.params["num_train_epochs"] == "2.0"
