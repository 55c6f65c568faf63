"""Runs create_pretraining_data.py where a run has been, or was broken off."""

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from tests import creation_runs, held_locks

import pytest


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return creation_runs.write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def made(inputs, tmp_path_factory):
    return creation_runs.make(inputs, tmp_path_factory.mktemp("made"))


def test_same_command_again(inputs, made, tmp_path):
    folder, _ = made
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    # As if the run had been killed at its very end.
    with held_locks.holding(folder / ".work"):
        pass
    assert (folder / ".work" / "lock").exists()
    done = creation_runs.run(inputs, tmp_path, output_dir=folder, num_shards=3)
    assert done.wait() == 0, done.stderr
    assert re.search("This is done: .*/manifest.json", done.lines[-1])
    after = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert after == before


def test_other_flags_again(inputs, made, tmp_path):
    folder, _ = made
    done = creation_runs.run(
        inputs, tmp_path, output_dir=folder, num_shards=3, dupe_factor=4
    )
    assert done.wait() == 1
    message = "is of another run: dupe_factor was 3 and is 4. Remove it"
    assert message in done.lines[-1]


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_shard_is_lost(how, inputs, made, tmp_path):
    folder, _ = made
    shutil.copytree(folder, tmp_path / "out")
    lost = tmp_path / "out" / "part-00001-of-00003.tfrecord"
    lost.unlink()
    if how == "emptied":
        lost.touch()
    done = creation_runs.run(inputs, tmp_path, num_shards=3)
    assert done.wait() == 1
    message = rf"error: .*manifest.json lists {lost}, which is lost"
    assert re.search(message, done.lines[-1])


def test_disk_full(inputs, made, tmp_path):
    folder, _ = made
    shards = sorted(folder.glob("*.tfrecord"))
    sizes = [shard.stat().st_size for shard in shards]
    # One can't be finished; those before it are.
    limit = max(sizes) - 1
    finished = sizes.index(max(sizes))
    command = [
        sys.executable,
        creation_runs.SCRIPT,
        *creation_runs.flags_of(inputs, tmp_path, {"num_shards": 3}),
    ]
    full = subprocess.run(
        command,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)
        ),
        capture_output=True,
        text=True,
    )
    assert full.returncode == 1, full.stderr
    assert re.search(
        f"error: Cannot write all: .*The {finished} finished shards stay "
        r"valid.* Free space on the disk of .*/out/\.work, then run",
        full.stderr,
    )
    for shard in shards[:finished]:
        ours = tmp_path / "out" / shard.name
        assert ours.read_bytes() == shard.read_bytes()
    done = creation_runs.run(inputs, tmp_path, num_shards=3)
    assert done.wait() == 0, done.stderr
    assert creation_runs.contents(tmp_path / "out") == creation_runs.contents(
        folder
    )


def sizes(folder):
    """Name -> bytes of the files below a folder that a run works in."""
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found[path] = path.stat().st_size
    return found


@pytest.mark.slow
def test_killed_and_started_again(inputs, tmp_path):
    changes = {"num_shards": 4, "dupe_factor": 80}
    done = creation_runs.run(
        inputs, tmp_path, **changes, output_dir=tmp_path / "whole"
    )
    assert done.wait() == 0, done.stderr
    command = [
        sys.executable,
        creation_runs.SCRIPT,
        "--num_workers=2",
        *creation_runs.flags_of(inputs, tmp_path, changes),
    ]
    rng = random.Random(0)
    kills = 0
    for _ in range(10):
        before = sizes(tmp_path / "out")
        process = subprocess.Popen(command, start_new_session=True)
        # It comes to where the last one was killed, then somewhere further.
        while sizes(tmp_path / "out") == before and process.poll() is None:
            time.sleep(0.005)
        try:
            process.wait(rng.uniform(0, 0.4))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills
    subprocess.run(command, check=True)
    assert creation_runs.contents(tmp_path / "out") == creation_runs.contents(
        tmp_path / "whole"
    )
