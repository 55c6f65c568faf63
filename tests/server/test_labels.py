"""Promotion and rollback while a server runs, with an operator's commands."""

import shutil

from bert_tf.exporting import server_configs
from tests import processes, scripts
from tests.server import served

import pytest

pytest.importorskip(
    "tensorflow_serving", reason="needs the package tensorflow-serving-api"
)

PATH = "/v1/models/film"


def label(folder, *flags):
    """Runs the command, and returns its output."""
    log = folder / "log" / "labels"
    run = scripts.run(log, "label_versions", f"--config_dir={folder}", *flags)
    assert run.wait() == 0, run.stderr
    return run.stdout


def wait_for(server, expected):
    """Waits until these versions answer: {path: version}."""
    processes.wait_for(
        lambda: all(version_of(server, x) == y for x, y in expected.items()),
        server.run,
    )


def wait_for_log(server, text):
    processes.wait_for(lambda: text in server.run.stderr, server.run)


def version_of(server, where):
    status, found = server.get(f"{PATH}{where}/metadata")
    return int(found["model_spec"]["version"]) if status == 200 else status


def test_listing(tmp_path):
    base = tmp_path / "film"
    for number in (1, 2, 3):
        (base / str(number)).mkdir(parents=True)
    server_configs.add(str(tmp_path), str(base), 1)
    server_configs.add(str(tmp_path), "/elsewhere/ner", 7)
    assert label(tmp_path) == (
        f"film  {base}\n  1  stable\n  2  not served\n  3  not served\n"
        "ner  /elsewhere/ner\n  7  stable\n"
    )


@pytest.mark.slow
def test_promotion_and_rollback(tmp_path):
    """Labels move without a restart of the server."""
    base, config = tmp_path / "film", tmp_path / "models.config"
    served.write_model(base / "1", lambda text_a: {"label": text_a})
    server_configs.add(str(tmp_path), str(base), 1)
    flags = f"--config_dir={tmp_path}", "--poll_seconds=0.2"
    with served.start(tmp_path / "log", *flags) as server:
        # A version that cannot be loaded does not affect the others.
        (base / "2").mkdir()
        label(tmp_path, "--canary=2")
        wait_for_log(server, "film can't be loaded")
        wait_for(server, {"": 1, "/labels/stable": 1, "/labels/canary": 400})
        shutil.copytree(base / "1", base / "2", dirs_exist_ok=True)
        wait_for(server, {"": 2, "/labels/stable": 1, "/labels/canary": 2})
        said = label(tmp_path, "--stable=2")
        assert said == f"film  {base}\n  1  previous\n  2  stable\n"
        wait_for(server, {"": 2, "/labels/stable": 2, "/labels/previous": 1})
        assert version_of(server, "/versions/1") == 1
        assert version_of(server, "/labels/canary") == 400
        label(tmp_path, "--model=film", "--rollback")
        # Requests without a label, too.
        rolled_back = {"": 1, "/labels/stable": 1, "/versions/2": 404}
        wait_for(server, rolled_back)
        config.write_text("model_config_list {")
        wait_for_log(server, "models.config is not followed")
        wait_for(server, rolled_back)
        told = server.run.stderr.count("models.config is not followed")
    assert told == 1
