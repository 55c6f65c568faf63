"""Processes that write exports of one model or folder, partly in parallel."""

import pathlib

from bert_tf.exporting import server_configs, versions
from tests import processes

import pytest


def test_a_killed_writer_leaves_its_number(tmp_path):
    script = """
    import os, pathlib, sys
    from bert_tf.exporting import versions
    with versions.new_version(sys.argv[1]) as (number, folder):
        pathlib.Path(folder, "saved_model.pb").write_text("half")
        os.kill(os.getpid(), 9)
    """
    model = tmp_path / "mrpc"
    code, _, _ = processes.run(script, model)
    assert code == -9
    assert versions.numbers(str(model)) == []
    with versions.new_version(str(model)) as (number, folder):
        pathlib.Path(folder, "saved_model.pb").write_text("new")
    assert number == 1
    assert [path.name for path in model.iterdir()] == ["1"]
    assert (model / "1" / "saved_model.pb").read_text() == "new"


@pytest.mark.slow
def test_versions_have_numbers_of_their_own(tmp_path):
    script = """
    import pathlib, sys, time
    from bert_tf.exporting import versions
    for i in range(5):
        with versions.new_version(sys.argv[1]) as (number, folder):
            for name in ("saved_model.pb", "more.pb"):
                pathlib.Path(folder, name).write_text(f"{sys.argv[2]} {i}")
                time.sleep(0.02)
            print(number)
    """
    model = tmp_path / "mrpc"
    started = [processes.start(script, model, name) for name in "abc"]
    ended = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 3, ended
    numbers = [int(x) for output, _ in ended for x in output.split()]
    assert len(set(numbers)) == len(numbers) == 15
    assert versions.numbers(str(model)) == sorted(numbers)
    found = set()
    for path in model.iterdir():
        (text,) = {each.read_text() for each in path.iterdir()}
        assert len(list(path.iterdir())) == 2
        found.add(text)
    assert found == {f"{name} {i}" for name in "abc" for i in range(5)}


def test_processes_that_add_models_lose_none(tmp_path):
    pytest.importorskip(
        "tensorflow_serving", reason="needs the package tensorflow-serving-api"
    )
    script = """
    import sys
    from bert_tf.exporting import server_configs
    for i in range(5):
        model = f"{sys.argv[1]}/{sys.argv[2]}{i}"
        server_configs.add(sys.argv[1], model, 1)
    """
    started = [processes.start(script, tmp_path, name) for name in "ab"]
    ended = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended
    found = server_configs.read(str(tmp_path)).model_config_list.config
    assert sorted(entry.name for entry in found) == [
        f"{name}{i}" for name in "ab" for i in range(5)
    ]
