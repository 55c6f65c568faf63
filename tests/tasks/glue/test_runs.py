import dataclasses
import hashlib
import json
import math

from bert_tf.storage import run_lock
from bert_tf.tasks.glue import glue_runs

import pytest

_A, _B = glue_runs.grid([2e-5, 3e-5], [3.0], [32])


def _done(score, setting=_A, seed=1, task="RTE", seconds=10.0):
    return glue_runs.Done(
        key=f"{task} {setting} {seed}",
        task=task,
        seed=seed,
        setting=setting,
        results={"accuracy": score},
        score=score,
        examples=100,
        seconds=seconds,
        folder="RTE/x",
        others={"dtype": "float32"},
    )


def test_grid_is_the_papers():
    found = glue_runs.grid([2e-5, 3e-5, 4e-5, 5e-5], [2, 3, 4], [16, 32])
    assert len(set(found)) == 24
    assert found[0] == glue_runs.Setting(2e-5, 2, 16)
    assert str(found[-1]) == "5e-05, 4 epochs, batch 32"


def test_key_is_of_everything_that_decides_the_result():
    run = glue_runs.Run("RTE", _A, 1, {"data": "x", "dtype": "float32"})
    same = glue_runs.Run("RTE", _A, 1, {"dtype": "float32", "data": "x"})
    assert run.key == same.key
    others = [
        dataclasses.replace(run, task="MRPC"),
        dataclasses.replace(run, setting=_B),
        dataclasses.replace(run, seed=2),
        dataclasses.replace(run, others={**run.others, "data": "y"}),
    ]
    assert len({x.key for x in [run, *others]}) == 5
    assert len({x.folder for x in [run, *others]}) == 5
    assert run.folder == f"RTE/seed1_2e-05_3epochs_batch32_{run.key[:8]}"


def test_digest_tells_files_apart(tmp_path):
    (tmp_path / "a").write_bytes(b"ab")
    (tmp_path / "b").write_bytes(b"c")
    (tmp_path / "c").write_bytes(b"a")
    (tmp_path / "d").write_bytes(b"bc")
    digests = [
        glue_runs.digest([str(tmp_path / name) for name in names])
        for names in ("ab", "cd", "ba")
    ]
    assert len(set(digests)) == 3
    parts = hashlib.sha256(b"ab").digest() + hashlib.sha256(b"c").digest()
    assert digests[0] == hashlib.sha256(parts).hexdigest()


def test_results_are_read_again(tmp_path):
    path = str(tmp_path / "results.jsonl")
    results = glue_runs.Results(path)
    assert results.find(_done(0.5).key) is None
    results.add(_done(0.5))
    results.add(_done(0.7, seed=2))
    again = glue_runs.Results(path)
    assert again.find(_done(0.5).key) == _done(0.5)
    assert again.find(_done(0.7, seed=2).key) == _done(0.7, seed=2)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["score"] for line in lines] == [0.5, 0.7]


@pytest.mark.parametrize("end", [5, -1])
def test_half_a_last_line_is_left_out(tmp_path, end):
    path = tmp_path / "results.jsonl"
    results = glue_runs.Results(str(path))
    results.add(_done(0.5))
    first = path.read_text()
    results.add(_done(0.7, seed=2))
    path.write_text(first + path.read_text().removeprefix(first)[:end])
    again = glue_runs.Results(str(path))
    assert again.find(_done(0.7, seed=2).key) is None
    again.add(_done(0.8, seed=2))
    assert path.read_text().startswith(f'{first}{{"key"')
    found = glue_runs.Results(str(path)).find(_done(0.8, seed=2).key)
    assert found is not None and found.score == 0.8


def test_no_line_is_written_into_the_folder_of_the_next_run(
    tmp_path, monkeypatch
):
    folder, moved = tmp_path / "run", tmp_path / "moved"
    with run_lock.hold(folder):
        results = glue_runs.Results(str(folder / "results.jsonl"))
        folder.rename(moved)
        folder.mkdir()
        # As if the folder was checked before it was moved.
        monkeypatch.setattr(run_lock, "check_held", lambda: None)
        results.add(_done(0.5))
    assert not list(folder.iterdir())
    kept = glue_runs.Results(str(moved / "results.jsonl"))
    assert kept.find(_done(0.5).key) is not None


def test_another_bad_line_is_named(tmp_path):
    path = tmp_path / "results.jsonl"
    glue_runs.Results(str(path)).add(_done(0.5))
    text = path.read_text()
    for bad in ("{}", "x", '{"key": "x"}', "[1]"):
        path.write_text(f"{text}{bad}\n{text}")
        with pytest.raises(ValueError, match=r"results.jsonl, line 2 is not"):
            glue_runs.Results(str(path))


def test_evaluation_of_both_dev_sets(tmp_path):
    (tmp_path / "eval_results.txt").write_text(
        "eval_accuracy = 0.25\neval_loss = 1.5\nglobal_step = 3\nloss = 1.5\n"
    )
    found = glue_runs.read_evaluation(str(tmp_path))
    assert found == {"accuracy": 0.25, "loss": 1.5}
    (tmp_path / "eval_results_mismatched.txt").write_text(
        "eval_accuracy = 0.5\nglobal_step = 3\n"
    )
    found = glue_runs.read_evaluation(str(tmp_path))
    assert found["mismatched_accuracy"] == 0.5
    assert found["accuracy"] == 0.25


def test_the_setting_with_the_best_mean_is_chosen():
    runs = [_done(0.9), _done(0.5, seed=2), _done(0.8, _B), _done(0.7, _B, 2)]
    assert glue_runs.choose(runs) == runs[2:]
    assert glue_runs.best(runs) == runs[0]
    # Ties go to the earlier run.
    tied = [_done(0.5, _B), _done(0.5, _A)]
    assert glue_runs.choose(tied) == tied[:1]
    assert glue_runs.best(tied) == tied[0]


def test_weights_that_may_be_needed_are_kept():
    """The run that is best in the end is never removed on the way."""
    scores = [(0.6, 0.7), (0.9, 0.1), (0.8, 0.75), (0.2, 0.9)]
    settings = glue_runs.grid([1e-5, 2e-5, 3e-5, 4e-5], [3.0], [32])
    done: list[glue_runs.Done] = []
    kept: list[glue_runs.Done] = []
    for setting, pair in zip(settings, scores, strict=True):
        for seed, score in enumerate(pair):
            done.append(_done(score, setting, seed))
            # A removed run stays removed.
            kept = [*kept, done[-1]]
            kept = [x for x in glue_runs.to_keep(done, seeds=2) if x in kept]
            assert len(kept) <= 2
    assert kept == [done[4]]  # 0.8, of the setting whose mean is 0.775.


def test_time_left():
    assert glue_runs.seconds_left([], []) == 0
    assert math.isnan(glue_runs.seconds_left([], [("RTE", 300)]))
    # 100 rows, 3 epochs: 0.1 and 0.3 seconds per row of RTE and MRPC.
    done = [_done(0, seconds=30), _done(0, task="MRPC", seconds=90)]
    to_do = [("RTE", 600.0), ("MRPC", 600.0), ("QQP", 1000.0)]
    assert glue_runs.seconds_left(done, to_do) == pytest.approx(
        600 * 0.1 + 600 * 0.3 + 1000 * 0.2
    )
