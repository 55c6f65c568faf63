import pathlib
import shutil

from tests import small_disks
from tests.bad_inputs import cases, damaged, matrix, surroundings, trained

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
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)


def test_a_folder_that_is_replaced(data, tmp_path):
    """It is replaced by a complete folder, or not at all."""
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
    case = matrix.Case({}, "{out}/1 is in use: process ")
    with surroundings.held(out, "1.lock", "writes", out / "1"):
        matrix.check(SCRIPT, case, data, tmp_path)


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64):
        case = matrix.Case(
            {"export_dir": f"{tmp_path}/disk/1"}, "No space left on device"
        )
        matrix.check(SCRIPT, case, data, tmp_path)
