"""A run whose folder is taken away ends before it writes anything more."""

from tests import processes

import pytest

_RUN = """
    import os, shutil, sys
    from bert_tf.storage import run_lock
    folder, way = sys.argv[1:]
    run_lock.hold(folder, what="trains")
    run_lock.check_held()
    if way == "moved":
        os.rename(folder, folder + "_old")
    elif way != "untouched":
        shutil.rmtree(folder)
    if way == "replaced":
        os.mkdir(folder)
    if way == "a file":
        open(folder, "w").close()
    run_lock.check_held()
    print("writes")
"""


@pytest.mark.parametrize("way", ["removed", "moved", "replaced", "a file"])
def test_ends_at_once(tmp_path, way):
    code, output, errors = processes.run(_RUN, tmp_path / "run", way)
    assert (code, output) == (1, "")
    assert errors == (
        f"error: The lock of {tmp_path}/run is lost: the folder was removed, "
        "moved or replaced. This process ends at once, to write nothing into "
        "the run of another.\n"
    )
    if way == "replaced":
        assert not list((tmp_path / "run").iterdir())


def test_goes_on_otherwise(tmp_path):
    found = processes.run(_RUN, tmp_path / "run", "untouched")
    assert found == (0, "writes\n", "")
