import os
import pathlib

from tests import small_disks
from tests.bad_inputs import cases, matrix, pretraining_inputs, surroundings
from tests.bad_inputs.matrix import Case

import pytest

SCRIPT, CASES, RIGHT = cases.read("pretraining_runs")


def _write(folder: pathlib.Path) -> None:
    pretraining_inputs.write_inputs(folder)
    matrix.make(SCRIPT, folder, folder / "trained")
    pretraining_inputs.write_folders(folder)


data = matrix.inputs(_write)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_works = matrix.right(
    *(SCRIPT, RIGHT),
    (
        "evaluation records of labels that are not read",
        "an evaluation batch of millions, and a name of words and marks",
    ),
)


@pytest.mark.exhaustive
def test_odd_shells(data, tmp_path):
    surroundings.check_odd_shell(SCRIPT, data, tmp_path)


@pytest.mark.parametrize(
    ("holder", "line"),
    [
        (surroundings.held, "is in use: process "),
        (
            surroundings.held_elsewhere,
            "is in use: process 12 on host far trains there since ",
        ),
    ],
)
def test_bad_output_that_is_in_use(holder, line, data, tmp_path):
    with holder(tmp_path / "out"):
        case = Case({}, f"{{out}} {line}", checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)


@pytest.mark.parametrize("more", [(), ("--check_only",)])
def test_bad_disk_that_is_too_small(more, data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64) as folder:
        case = Case(
            {"output_dir": f"{folder}/out"},
            f"The disk of {folder}/out has ",
            checked=False,
            arguments=more,
        )
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not list(folder.iterdir())


def test_bad_disk_that_is_read_only(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64, read_only=True) as folder:
        case = Case(
            {"output_dir": f"{folder}/out"},
            f"--output_dir can't be written: there is no permission to write "
            f"to {folder}.",
        )
        matrix.check(SCRIPT, case, data, tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_bad_permissions(data, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes((data / "records" / "records-0.tfrecord").read_bytes())
    secret.chmod(0)
    case = Case({"input_file": str(secret)}, "denied")
    matrix.check(SCRIPT, case, data, tmp_path)
    place = tmp_path / "place"
    place.mkdir(mode=0o500)
    case = Case({"output_dir": f"{place}/out"}, "no permission to write to")
    matrix.check(SCRIPT, case, data, tmp_path)
