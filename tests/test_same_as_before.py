"""Tests of benchmarks/same_as_before.py: it finds differences."""

import pathlib

from benchmarks.same import comparison, runs

import numpy as np
import pytest

_RENAMED = comparison.Expected("old.py", "new.py", "a better name", "a*")


def _write(folder, **texts):
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def _compare(tmp_path, run="a", **more):
    before, after = (
        comparison.Side(name, pathlib.Path("/code", name), tmp_path / name)
        for name in ("before", "after")
    )
    return comparison.compare(run, before, after, [_RENAMED], **more)


def _compare_texts(tmp_path, before, after, name="stderr", run="a"):
    _write(tmp_path / "before" / run, **{name: before})
    _write(tmp_path / "after" / run, **{name: after})
    return _compare(tmp_path, run)


def test_log_lines_are_equal_at_other_times_and_speeds(tmp_path):
    found = _compare_texts(
        tmp_path,
        "07:53:30 Reading: 32 of 100 lines, 2.5 lines/s, 0:31 left\n"
        "07:53:31 Writing the SavedModel: 0:10 so far\n"
        "07:53:35 step 10/50  0:22 left  loss 1.25  14.6 sequences/s\n"
        "    1,893 tokens/s  memory 0.9 GiB\n"
        f"07:53:36 In {tmp_path}/before/x\n",
        f"08:00:01 step 10/50  1:02 left  loss 1.25\n    9.6 sequences/s  "
        f"893 tokens/s  memory 1.1 GiB\n08:00:02 In {tmp_path}/after/x\n",
    )
    assert found == comparison.Verdict(1)


def test_another_number_in_a_log_is_found(tmp_path):
    found = _compare_texts(
        tmp_path, "07:53:35 loss 1.2502\n", "07:53:35 loss 1.2503\n"
    )
    assert found.difference == (
        "stderr: line 1: 'loss 1.2502' became 'loss 1.2503'"
    )


def test_times_in_results_are_not_left_out(tmp_path):
    found = _compare_texts(tmp_path, "07:53:35 a\n", "08:53:35 a\n", "x.txt")
    assert "x.txt: line 1" in found.difference


@pytest.mark.parametrize(("run", "is_expected"), [("ab", True), ("b", False)])
def test_expected_difference(run, is_expected, tmp_path):
    found = _compare_texts(
        tmp_path, "use old.py \\\n --a", "use new.py --a", "x.txt", run
    )
    assert bool(found.difference) != is_expected
    assert found.expected == ({"old.py -> new.py": 1} if is_expected else {})


def test_expected_difference_hides_no_other(tmp_path):
    found = _compare_texts(tmp_path, "old.py --a=1", "new.py --a=2", "x.txt")
    assert "--a=2" in found.difference


def test_file_of_one_side(tmp_path):
    _write(tmp_path / "before" / "a", x="1", y="2")
    _write(tmp_path / "after" / "a", x="1")
    assert _compare(tmp_path).difference == "y: only the first writes it"


def test_bytes(tmp_path):
    found = _compare_texts(tmp_path, "abcd", "abXde", "x.tfrecord")
    assert found.difference == "x.tfrecord: byte 2, of 4 and 5 bytes"


def test_largest_difference_of_answers(tmp_path):
    values = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
    for side, answer in (("before", values), ("after", values - [0, 0.25])):
        (tmp_path / side / "a").mkdir(parents=True)
        path = tmp_path / side / "a" / "head.npz"
        np.savez(path, logits=answer.astype(np.float32))
    assert _compare(tmp_path).difference == (
        "head.npz: logits: largest difference 0.25"
    )


def test_runs_need_only_what_comes_before_them():
    known: set[str] = set()
    for run in runs.RUNS:
        assert {name for _, name in run.needs} <= known, run.name
        assert run.name not in known
        known.add(run.name)


def test_files_that_are_meant_to_differ_are_counted(tmp_path):
    for side, text in (("before", "x"), ("after", "y")):
        _write(tmp_path / side / "a", **{"part-1": text, "log.txt": "same"})
    meant = comparison.Changed("part-*", "a better cut", "a*")
    found = _compare(tmp_path, changed=[meant])
    assert found == comparison.Verdict(1, expected={"part-*": 1})
