"""Runs scripts as a user would, each only until it has completed once."""

import contextlib
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(script: str, target: pathlib.Path, *options: str) -> None:
    """Runs a script that creates `target`, unless it has done so before.

    Its output, its options and a completion mark are written next to `target`;
    results of other options are not reused. An interrupted script is started
    again, and resumes if it can: on Ctrl-C, this waits until it has saved its
    state.
    """
    done = target.parent / f"{target.name}.done"
    check_same(target, "\n".join([script, *options]) + "\n")
    if done.exists():
        return
    command = [sys.executable, str(ROOT / script), *options]
    began = time.monotonic()
    path = target.parent / f"{target.name}.log"
    print(f"{script} {target}: its output goes to {path}", flush=True)
    with path.open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        # The terminal has sent the signal to the script as well.
        print(f"{script} saves what it has. Ctrl-C again ends it at once.")
        with contextlib.suppress(KeyboardInterrupt):
            process.wait()
        raise SystemExit(
            f"{script} was stopped; the same command goes on."
        ) from None
    finally:
        with (target.parent / f"{target.name}.seconds").open("a") as file:
            file.write(f"{time.monotonic() - began:.1f}\n")
    if code:
        last = path.read_text().rstrip().rpartition("\n")[2]
        raise SystemExit(f"{script} ended with exit code {code}: {last}")
    print(f"{script} {target}: {seconds(target):.0f} s", flush=True)
    done.touch()


def seconds(target: pathlib.Path) -> float:
    """Returns the time that making `target` took, with all its starts."""
    path = target.parent / f"{target.name}.seconds"
    lines = path.read_text().splitlines() if path.exists() else []
    return sum(map(float, lines))


def check_same(target: pathlib.Path, made_of: str) -> None:
    """Records the inputs of `target` next to it, one per line.

    Ends the benchmark if they differ from the recorded ones.
    """
    note = target.parent / f"{target.name}.options"
    if not (note.exists() and target.exists()):
        target.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(made_of)
    before = note.read_text()
    if before != made_of:
        known = before.splitlines()
        others = [x for x in made_of.splitlines() if x not in known]
        raise SystemExit(
            f"{target} was made with other options, and is not what is asked "
            "for: remove it and what is beside it, or choose another folder. "
            f"Received: {' '.join(others) or 'fewer options'}"
        )
