"""Searches with instant trials: scores are functions of the values.

tests/commands/test_run_classifier_search.py runs run_classifier.py itself.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import sqlite3
import statistics

from bert_tf.tasks import search, trials
from bert_tf.training import train_examples

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("optuna", reason="needs the extra `search`")

_SPACE = {"rate": ["1", "2", "3"], "batch": ["16", "32"]}


class _Killed(BaseException):
    """Ends the process in the middle of a trial."""


class _Script:
    """Writes the files of a run that the search reads.

    The score of an epoch is the epoch times the rate, less for large batches.
    """

    def __init__(self):
        self.calls = []
        self.killed_in = None
        self.outcomes = {}

    def __call__(self, folder, values, is_over):
        self.calls.append((os.path.basename(folder), dict(values)))
        os.makedirs(f"{folder}/best", exist_ok=True)
        rate, batch = int(values["rate"]), int(values["batch"])
        pathlib.Path(folder, "flags.txt").write_text(f"--rate={rate}\n")
        if values["rate"] in self.outcomes:
            raise trials.FailedError("See log.", self.outcomes[values["rate"]])
        scores = [epoch * rate - batch / 32 for epoch in (1, 2)]
        for step, score in enumerate(scores, 1):
            line = {"step": step, "eval_f1": score, "eval_best_step": step}
            with pathlib.Path(folder, "metrics.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
            if len(self.calls) == self.killed_in:
                raise _Killed
            if is_over and is_over():
                return True
        results = {"eval_f1": max(scores), "global_step": 2}
        pathlib.Path(folder, "best/results.json").write_text(
            json.dumps(results)
        )
        return False


@pytest.fixture
def script():
    return _Script()


@pytest.fixture
def make(tmp_path, script):
    def make(name="out", pruner=None, seed=1, space=_SPACE):
        (tmp_path / name).mkdir(exist_ok=True)
        return search.Search(
            folder=str(tmp_path / name),
            space=space,
            metric="eval_f1",
            seed=seed,
            pruner=pruner,
            keeps_last=False,
            train=script,
        )

    return make


def _rows(lines):
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines
    ]
    assert header == ["trial", "rate", "batch", "eval_f1"]
    return rows


def test_all_values_are_tried_once_and_the_best_is_kept(
    make, script, tmp_path, caplog
):
    rows = _rows(make().run(9))
    tried = [(rate, batch) for _, rate, batch, _ in rows]
    assert sorted(tried) == sorted(itertools.product(*_SPACE.values()))
    assert "ends after 6 trials" in caplog.text
    assert [row[0] for row in rows] == [f"trial-00{i}" for i in range(6)]
    assert [name for name, _ in script.calls] == [row[0] for row in rows]
    scores = {
        (rate, batch): f"{2 * int(rate) - int(batch) / 32:.4f}"
        for rate, batch in tried
    }
    scores["3", "16"] += " (best)"
    assert [row[3] for row in rows] == [scores[x] for x in tried]
    kept = json.loads((tmp_path / "out/best/results.json").read_text())
    assert kept == {"eval_f1": 5.5, "global_step": 2}
    assert (tmp_path / "out/best/flags.txt").read_text() == "--rate=3\n"
    (chosen,) = (row[0] for row in rows if "best" in row[3])
    weights = [x.parent.name for x in tmp_path.glob("out/trial-*/best")]
    assert weights == [chosen]
    assert "| trial " in (tmp_path / "out/table.md").read_text()


@pytest.mark.parametrize("number", [1, 3, 4])
def test_a_killed_search_makes_the_same_trials(make, script, number):
    make("whole").run(4)
    whole, script.calls = script.calls, []
    script.killed_in = number
    with pytest.raises(_Killed):
        make().run(4)
    script.killed_in = None
    lines = make().run(4)
    # The killed trial is resumed in its folder; no other trial is repeated.
    assert script.calls == [*whole[:number], *whole[number - 1 :]]
    assert lines == make("whole").run(4)
    script.calls.clear()
    assert make().run(4) == lines
    assert script.calls == []
    make().run(5)
    assert [name for name, _ in script.calls] == ["trial-004"]


def _is_pruned(scores, whole):
    """The median rule, which applies once five trials have ended."""
    return len(whole) >= 5 and any(
        max(scores[: i + 1]) < statistics.median(other[i] for other in whole)
        for i in range(len(scores))
    )


def test_hopeless_trials_are_pruned_only_where_requested(make, caplog):
    space = {"rate": list("123456"), "batch": ["16", "32"]}
    rows = _rows(make(pruner="median", space=space).run(12))
    whole: list[list[float]] = []
    for _, rate, batch, outcome in rows:
        scores = [epoch * int(rate) - int(batch) / 32 for epoch in (1, 2)]
        is_pruned = _is_pruned(scores, whole)
        assert (outcome == "pruned") == is_pruned
        if not is_pruned:
            whole.append(scores)
    assert 5 < len(whole) < 12
    assert "No trial is pruned" not in caplog.text
    make("few", pruner="median").run(1)
    assert "No trial is pruned" in caplog.text
    rows = _rows(make("others", space=space).run(12))
    assert "pruned" not in {row[3] for row in rows}


def test_a_trial_that_diverges_is_left_out(make, script):
    script.outcomes = {"3": "error: Not a finite number in steps 1 to 2: loss."}
    rows = _rows(make().run(6))
    for _, rate, _, score in rows:
        assert (score == "not finite") == (rate == "3")
    script.outcomes = dict.fromkeys("123", script.outcomes["3"])
    with pytest.raises(ValueError, match="No trial has a finite eval_f1"):
        make("other").run(2)


_MEMORY = "error: out of memory."


def test_an_error_ends_the_search_which_resumes_its_trial(make, script):
    script.outcomes = {"3": _MEMORY}
    message = r"^trial-\d{3}: See log\. At the same error again, .*: rate 3, "
    with pytest.raises(ValueError, match=message):
        make().run(6)
    failed = script.calls[-1]
    # Another error is not the same error again.
    script.outcomes = {"3": "error: no space left."}
    with pytest.raises(ValueError, match=message):
        make().run(6)
    assert script.calls[-2:] == [failed, failed]
    script.outcomes = {}
    rows = _rows(make().run(6))
    assert script.calls.count(failed) == 3
    assert len(rows) == 6
    assert not {row[3] for row in rows} & {"failed", "not finite"}


def test_the_mark_of_an_error_is_removed(make, script):
    script.outcomes = {"3": _MEMORY}
    with pytest.raises(ValueError, match="At the same error again"):
        make(space={"rate": ["3"], "batch": ["16"]}).run(1)
    script.outcomes = {"3": "error: Not a finite number in step 1: loss."}
    with pytest.raises(ValueError, match="No trial has a finite eval_f1"):
        make(space={"rate": ["3"], "batch": ["16"]}).run(1)


def test_the_same_error_again_leaves_the_trial_out(
    make, script, tmp_path, caplog
):
    script.outcomes = {"3": _MEMORY}
    with pytest.raises(ValueError, match=r"^trial-\d{3}: "):
        make(space={"rate": ["3"], "batch": ["16"]}).run(1)
    with pytest.raises(ValueError, match=f"^All trials .* {_MEMORY} Correct"):
        make(space={"rate": ["3"], "batch": ["16"]}).run(1)

    script.calls.clear()
    with pytest.raises(ValueError, match=r"^trial-\d{3}: "):
        make("other").run(4)
    failed, values = script.calls[-1]
    script.outcomes = {}

    def fail_again(folder, values, is_over):
        if folder.endswith(failed):
            script.calls.append((failed, dict(values)))
            raise trials.FailedError("See log.", _MEMORY)
        return script(folder, values, is_over)

    rows = _rows(dataclasses.replace(make("other"), train=fail_again).run(4))
    assert f"{failed}: {_MEMORY}" in caplog.text
    assert script.calls.count((failed, values)) == 2
    assert [row[3] for row in rows if row[0] == failed] == ["failed"]
    # It does not count.
    assert len([row for row in rows if row[0] != failed]) == 4
    with sqlite3.connect(tmp_path / "other/study.db") as database:
        query = "select number from trials where state = 'FAIL'"
        found = database.execute(query).fetchall()
    assert found == [(int(failed.removeprefix("trial-")),)]
    # No more than all combinations are tried.
    assert len(make("other").run(6)) == 2 + 6
    tried = [tuple(x.values()) for _, x in script.calls]
    assert sorted(set(tried)) == sorted(itertools.product(*_SPACE.values()))
    assert len(tried) == 6 + 1


def test_the_identity_of_the_examples_is_copied(make, script, tmp_path):
    table = tmp_path / "table.tsv"
    table.write_text("the rows")

    def train(folder, values, is_over):
        found = script(folder, values, is_over)
        train_examples.write(folder, {"records": 1}, table=str(table))
        return found

    dataclasses.replace(make(), train=train).run(1)
    copied = tmp_path / "copy.tsv"
    copied.write_text("the rows")
    for folder in ("out", "out/best"):
        folder = str(tmp_path / folder)
        assert train_examples.is_table(folder, str(copied))
    copied.write_text("others")
    assert train_examples.is_table(str(tmp_path / "out"), str(copied)) is False
