import pathlib
import shutil

from bert_tf.exporting import saved_model
from tests.bad_inputs import cases, damaged, matrix, surroundings, trained

import pytest

SCRIPT, CASES, RIGHT = cases.read("exporting")


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    trained.write(folder)
    damaged.write_models(folder)
    for name in ("exported", "more"):
        (folder / name / "variables").mkdir(parents=True)
        (folder / name / "saved_model.pb").write_bytes(b"x")
    (folder / "notes").mkdir()
    shutil.copy(folder / "run" / "vocab.txt", folder / "notes")
    files = {
        "more/warmup.txt": b"mine",
        "notes.txt": b"mine",
        "linked": damaged.Link("run"),
    }
    damaged.write_files(folder, files)


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)


@pytest.fixture
def unsaved(monkeypatch):
    """Leaves out the SavedModel, whose graphs take seconds to trace."""
    monkeypatch.setattr(saved_model, "save", lambda *_: None)


test_what_rightly_works = pytest.mark.usefixtures("unsaved")(
    matrix.right(SCRIPT, RIGHT)
)


def test_a_folder_that_would_be_replaced_stays(data, tmp_path):
    shutil.copytree(data / "exported", tmp_path / "out" / "1")
    bad = {"model_dir": "{data}/runs/nan", "overwrite": "true"}
    matrix.check(SCRIPT, matrix.Case(bad, "or no numbers"), data, tmp_path)


def test_another_process_writes_it(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    case = matrix.Case({}, "{out}/1 is in use: process ")
    with surroundings.held(out, "1.lock", "writes", out / "1"):
        matrix.check(SCRIPT, case, data, tmp_path)
