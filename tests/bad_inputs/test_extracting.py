"""Bad inputs of extract_features.py."""

import os

from bert_tf.storage import file_systems
from tests import small_disks
from tests.bad_inputs import matrix
from tests.bad_inputs.extracting import flags, models, right
from tests.bad_inputs.extracting.inputs import SCRIPT, build

CASES = {
    **flags.CASES,
    **models.CASES,
}

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, CASES)


test_what_rightly_works = matrix.rightly_works(SCRIPT, right.RIGHT)


def test_another_process_writes_it(data, tmp_path):
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "vectors.jsonl.tmp"
    descriptor = file_systems.lock(str(path))
    assert descriptor is not None
    case = matrix.Case(
        {},
        f"Another process writes {{out}}/vectors.jsonl: process {os.getpid()}",
    )
    try:
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        file_systems.unlock(descriptor)


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 4):
        case = matrix.Case(
            {
                "input_file": "{data}/many.txt",
                "output_file": f"{tmp_path}/disk/x.jsonl",
            },
            f"Cannot write {tmp_path}/disk/x.jsonl: No space left on device",
        )
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not os.listdir(tmp_path / "disk")
