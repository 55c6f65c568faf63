"""Bad inputs of augment_data.py."""

import os

from bert_tf.storage import file_systems
from tests import small_disks
from tests.bad_inputs import matrix
from tests.bad_inputs.augmenting import cases, right
from tests.bad_inputs.augmenting.inputs import SCRIPT, build

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, cases.CASES)


test_what_rightly_works = matrix.rightly_works(SCRIPT, right.RIGHT)


def test_another_process_writes_it(data, tmp_path):
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "more.tsv.tmp"
    descriptor = file_systems.lock(str(path))
    assert descriptor is not None
    case = matrix.Case(
        {}, f"Another process writes {{out}}/more.tsv: process {os.getpid()}"
    )
    try:
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        file_systems.unlock(descriptor)


def test_a_pipe(data, tmp_path):
    os.mkfifo(tmp_path / "pipe.tsv")
    case = matrix.Case(
        {"input_file": f"{tmp_path}/pipe.tsv"},
        "This file is read twice, which a pipe or a device can't be: write",
    )
    matrix.check(SCRIPT, case, data, tmp_path / "run")


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 4):
        case = matrix.Case(
            {
                "augmentation_copies": "10000",
                "candidates": "27",
                "output_file": f"{tmp_path}/disk/x.tsv",
            },
            f"Cannot write {tmp_path}/disk/x.tsv: No space left on device",
        )
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not os.listdir(tmp_path / "disk")
