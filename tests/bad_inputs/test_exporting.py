"""Bad inputs of export_saved_model.py."""

import os
import pathlib
import shutil

from bert_tf.storage import run_lock
from tests import small_disks, tiny_files
from tests.bad_inputs import bad_models, cases, matrix, trained

SCRIPT, CASES, RIGHT = cases.read("exporting")


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    trained.write(folder)
    tiny_files.write_model(folder / "model")
    (folder / "models").mkdir()
    bad_models.write(folder / "models", folder / "model")
    for name in ("exported", "more"):
        (folder / name / "variables").mkdir(parents=True)
        (folder / name / "saved_model.pb").write_bytes(b"x")
    (folder / "more" / "warmup.txt").write_bytes(b"mine")
    (folder / "notes").mkdir()
    shutil.copy(folder / "run" / "vocab.txt", folder / "notes")
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "linked").symlink_to("run")


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.rightly_works(SCRIPT, RIGHT)


def test_a_folder_that_is_replaced(data, tmp_path):
    """By a whole one, or not at all."""
    out = tmp_path / "out"
    shutil.copytree(data / "exported", out / "1")
    bad = {"model_dir": "{data}/runs/nan", "overwrite": "true"}
    matrix.check(SCRIPT, matrix.Case(bad, "or no numbers"), data, tmp_path)
    good = matrix.Case({"overwrite": "true"}, "Wrote {out}/1.")
    matrix.check_works(SCRIPT, good, data, tmp_path)
    assert (out / "1" / "assets" / "export.json").exists()
    assert [path.name for path in out.iterdir()] == ["1"]


def test_another_process_writes_it(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    case = matrix.Case({}, f"{{out}}/1 is in use: process {os.getpid()}")
    with run_lock.hold(out, "1.lock", "writes", of=str(out / "1")):
        matrix.check(SCRIPT, case, data, tmp_path)


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64):
        case = matrix.Case(
            {"export_dir": f"{tmp_path}/disk/1"}, "No space left on device"
        )
        matrix.check(SCRIPT, case, data, tmp_path)
