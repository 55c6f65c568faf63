r"""Checks that a change of the code does not change any output for users.

    python -m benchmarks.same_as_before --before=FOLDER --parts=flags,records

FOLDER is a checkout of the earlier commit. It is compared with this checkout,
or with the folder of --after. The root scripts of both run as users run them,
each in a separate process, on the same small inputs: flags and help pages,
records, checkpoints after 50 steps, results of fine-tuning, answers of exports,
and outputs of the other scripts must be equal to the last bit. Needs the folder
of test data. Prints a row for each run with its first difference, and exits
with 1 if a difference was not expected.
"""

import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable

from benchmarks.same import comparison, expected, inputs, runs

from absl import app, flags

_BEFORE = flags.DEFINE_string(
    "before", None, "A checkout of the commit before.", required=True
)
_AFTER = flags.DEFINE_string(
    "after", None, "A checkout of the commit after; by default this one."
)
_PARTS = flags.DEFINE_list(
    "parts",
    list(runs.PARTS),
    "What is compared; or names of runs, such as records_nsp_*.",
)
_FOLDER = flags.DEFINE_string(
    "folder", None, "A new folder to work in, to keep all that was written."
)
_JOBS = flags.DEFINE_integer("jobs", 2, "Runs at a time.", lower_bound=1)

_HERE = pathlib.Path(__file__).resolve().parents[1]

# Computes on CPUs only, without log messages of TensorFlow.
_ON_CPUS = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}

# ---- Runs -------------------------------------------------------------------


class _Lab:
    """Runs scripts of two checkouts, each once, and keeps their outputs."""

    def __init__(self, folder: pathlib.Path, *sides: comparison.Side):
        self.before, self.after = sides
        self._folder = folder
        self._data = inputs.data_folder()
        self._runs = {run.name: run for run in runs.RUNS}
        self._began = time.monotonic()
        self.failed: dict[str, str] = {}
        inputs.write(folder / "inputs", self._data)

    def old_name(self, script: str) -> str:
        """Returns the name of a script in the first checkout."""
        for text in expected.TEXTS:
            is_there = (self.before.checkout / text.old).is_file()
            if text.new == f"{script}.py" and is_there:
                return text.old.removesuffix(".py")
        return script

    def scripts(self) -> list[str]:
        """Returns all scripts at the roots, by their names in the second."""
        names = {path.name for path in self.after.checkout.glob("*.py")}
        for path in self.before.checkout.glob("*.py"):
            new = [x.new for x in expected.TEXTS if x.old == path.name]
            names.update(new or [path.name])
        return sorted(name.removesuffix(".py") for name in names)

    def run_all(self, wanted: Iterable[runs.Run], jobs: int) -> None:
        """Runs both sides, including the runs of the first that others read."""
        todo: dict[tuple[str, str], tuple[comparison.Side, runs.Run]] = {}

        def add(side: comparison.Side, run: runs.Run) -> None:
            for whose, name in run.needs:
                own = self.before if whose == "before" else side
                add(own, self._runs[name])
            todo.setdefault((side.name, run.name), (side, run))

        for run in wanted:
            add(self.before, run)
            add(self.after, run)
        done: dict[tuple[str, str], concurrent.futures.Future[None]] = {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for number, (key, (side, run)) in enumerate(todo.items()):
                # They were submitted earlier, so waiting cannot deadlock.
                awaited = [
                    done[self.before.name if x == "before" else side.name, name]
                    for x, name in run.needs
                ]
                label = f"{number + 1}/{len(todo)} {side.name}: {run.name}"
                done[key] = pool.submit(self._run, side, run, awaited, label)
            for future in done.values():
                future.result()

    def _run(
        self,
        side: comparison.Side,
        run: runs.Run,
        awaited: list[concurrent.futures.Future[None]],
        label: str,
    ) -> None:
        for future in awaited:
            future.result()
        folder = side.work / run.name
        (folder / "out").mkdir(parents=True)
        began = time.monotonic()
        with (
            (folder / "stdout").open("w") as stdout,
            (folder / "stderr").open("w") as stderr,
        ):
            done = subprocess.run(
                self._command(side, run),
                cwd=side.checkout,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                check=False,
            )
        if done.returncode != run.code:
            said = (folder / "stderr").read_text("utf-8", "replace").strip()
            last = said.rpartition("\n")[2]
            self.failed.setdefault(
                run.name,
                f"{side.name} ended with {done.returncode}, not "
                f"{run.code}: {last}",
            )
        now = time.monotonic()
        seconds = f"{now - self._began:5.0f} s"
        print(f"{seconds}  {label}, {now - began:.0f} s\n", end="", flush=True)

    def _command(self, side: comparison.Side, run: runs.Run) -> list[str]:
        """Returns a command that differs between sides only in its folders."""
        own = run.script
        if (_HERE / "benchmarks" / "same" / f"{own}.py").exists():
            path = str(_HERE / "benchmarks" / "same" / f"{own}.py")
        else:
            path = f"{self.old_name(own) if side is self.before else own}.py"
        scripts = {
            name: self.old_name(name) if side is self.before else name
            for name in self.scripts()
        }
        return [
            sys.executable,
            path,
            *(
                flag.format(
                    inputs=self._folder / "inputs",
                    vocab=self._data / "vocab",
                    out=side.work / run.name / "out",
                    before=_Outputs(self.before.work),
                    own=_Outputs(side.work),
                    script=scripts,
                )
                for flag in run.flags.split()
            ),
        ]


class _Outputs:
    """The output folders of a side's runs, by name."""

    def __init__(self, work: pathlib.Path):
        self._work = work

    def __getitem__(self, name: str) -> pathlib.Path:
        return self._work / name / "out"


def _environment() -> dict[str, str]:
    """Returns the environment without module paths and devices."""
    left = {"PYTHONPATH", "PYTHONSAFEPATH", "TF_CONFIG"}
    own = {k: v for k, v in os.environ.items() if k not in left}
    return own | _ON_CPUS


# ---- The table --------------------------------------------------------------


def _compare(lab: _Lab, run: runs.Run) -> comparison.Verdict:
    """Compares a run; an unexpected exit code is a difference."""
    if run.name in lab.failed:
        return comparison.Verdict(difference=lab.failed[run.name])
    return comparison.compare(
        *(run.name, lab.before, lab.after),
        *(expected.TEXTS, expected.FILES, expected.CHANGED),
        *(expected.TAKEN_OUT, expected.ROUNDED),
    )


def _show(lab: _Lab, wanted: list[runs.Run]) -> bool:
    """Prints a row for each run; returns whether all are as expected."""
    # All comparisons come first, as importing TensorFlow prints messages.
    verdicts = {run: _compare(lab, run) for run in wanted}
    print(f"\n{'part':12} {'run':30} {'files':>5}  result")
    meant: collections.Counter[str] = collections.Counter()
    for run, found in verdicts.items():
        result = "equal" + f" ({found.lines:,} answers)" * bool(found.lines)
        if found.expected:
            result = f"equal but for {', '.join(found.expected)}"
        if found.difference:
            result = f"DIFFERENT: {found.difference}"
        meant.update(found.expected)
        print(f"{run.part:12} {run.name:30} {found.compared:5}  {result}")
    different = sum(bool(x.difference) for x in verdicts.values())
    total = sum(x.compared for x in verdicts.values())
    print(f"\n{len(wanted)} runs, {total} files, {different} runs different")
    print("\nExpected differences:")
    for x in expected.TEXTS:
        count = meant[f"{x.old} -> {x.new}"]
        print(f"  {x.old} -> {x.new} in {count} files: {x.reason}")
    for y in expected.FILES:
        print(f"  {meant[y.names]} more files {y.names}: {y.reason}")
    for z in expected.CHANGED:
        print(f"  {meant[z.names]} other files {z.names}: {z.reason}")
    for out in expected.TAKEN_OUT:
        print(f"  in {out.files}, without {out.pattern}: {out.reason}")
    for near in expected.ROUNDED:
        print(f"  {near.names} of {near.runs} to {near.most}: {near.reason}")
    print("Not compared:")
    for pattern, reason in comparison.LEFT_OUT.items():
        print(f"  files {pattern}: {reason}")
    for pattern, names, reason in comparison.MASKS:
        print(f"  in {names}, {pattern}: {reason}")
    print("  paths of the two checkouts and of what they write")
    return not different


def _checkout(flag: str, folder: str) -> pathlib.Path:
    path = pathlib.Path(folder).resolve()
    if not (path / "bert_tf" / "__init__.py").is_file():
        raise SystemExit(
            f"--{flag} must be a checkout of this project. "
            f"Received: {flag}={folder}"
        )
    return path


def _choose(every: list[runs.Run]) -> list[runs.Run]:
    """Returns the runs that --parts selects."""
    wanted: set[str] = set()
    for pattern in _PARTS.value:
        found = {
            run.name
            for run in every
            if run.part == pattern or fnmatch.fnmatch(run.name, pattern)
        }
        if not found:
            raise SystemExit(
                f"--parts must be of {', '.join(runs.PARTS)}, or name runs. "
                f"Received: parts={pattern}"
            )
        wanted |= found
    return [run for run in every if run.name in wanted]


def main(_):
    """Runs both checkouts and prints the differences."""
    os.environ.update(_ON_CPUS)  # The comparison also uses TensorFlow.
    before = _checkout("before", _BEFORE.value)
    after = _checkout("after", _AFTER.value or str(_HERE))
    folder = pathlib.Path(_FOLDER.value or tempfile.mkdtemp()).resolve()
    try:
        lab = _Lab(
            folder,
            comparison.Side("before", before, folder / "before"),
            comparison.Side("after", after, folder / "after"),
        )
        wanted = _choose([*runs.of_flags(lab.scripts()), *runs.RUNS])
        lab.run_all(wanted, _JOBS.value)
        is_same = _show(lab, wanted)
    finally:
        if not _FOLDER.value:
            shutil.rmtree(folder)
    sys.exit(0 if is_same else 1)


if __name__ == "__main__":
    app.run(main)
