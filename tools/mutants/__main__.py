r"""Measures how many small faults in the code the tests detect.

    python -m tools.mutants --output=/tmp/mutants.jsonl
    python -m tools.mutants --only=losses --workers=1
    python -m tools.mutants --tree=/tmp/other_clone --output=/tmp/other.jsonl

A mutant is a copy of the code with one small change. Each line of chosen.txt
names a mutant, `module:function:operator:n`, and targets.py has the tests of
each module. A mutant is killed if a test fails, and survives if all pass.
Prints the share of killed mutants for each module, then the survivors.

--resume continues an interrupted run that has the same --output. --choose
rewrites chosen.txt from targets.py: it keeps names that the code still has.
before.txt has the survivors of the first run, by the names that they have now.
"""

import argparse
import collections
import itertools
import json
import pathlib
import re
import runpy
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from tools.mutants import operators, runs, targets

_FOLDER = pathlib.Path(__file__).resolve().parent
_ROOT = _FOLDER.parents[1]
_CHOSEN = _FOLDER / "chosen.txt"
_KILLED = ("killed", "timeout")
_FIRST_LIMIT = 600.0  # seconds, for unmutated tests


class _Error(Exception):
    """An error that is reported in one line, without a traceback."""


def _table(tree: pathlib.Path) -> list[Any]:
    """Returns the targets from the tree if it has the file, or else ours."""
    path = tree / "tools" / "mutants" / "targets.py"
    if path.exists() and path.parent != _FOLDER:
        return list(runpy.run_path(str(path), run_name="targets")["TARGETS"])
    return list(targets.TARGETS)


def _tests(tree: pathlib.Path, target: Any) -> list[str]:
    """Returns the paths of the tests of a target."""
    found = []
    for pattern in target.tests:
        paths = sorted((tree / "tests").glob(pattern))
        if not paths:
            raise _Error(
                f"No file matches tests/{pattern}, which targets.py lists for "
                f"{target.module}."
            )
        found += [str(x.relative_to(tree)) for x in paths]
    return found


def _sites(tree: pathlib.Path, module: str) -> dict[str, operators.Site]:
    path = tree / _path(module)
    if not path.exists():
        return {}
    return operators.named_sites(path.read_text(encoding="utf-8"))


def _path(module: str) -> str:
    return f"bert_tf/{module}.py"


# ---- Choosing ----------------------------------------------------------------


def _choose(tree: pathlib.Path, before: list[str]) -> list[str]:
    """Returns names of mutants, evenly spread over the sites of each module.

    Names of `before` are kept if the module still has these sites.
    """
    chosen = []
    for target in _table(tree):
        sites = list(_sites(tree, target.module).items())
        if not sites:
            raise _Error(
                f"targets.py lists {_path(target.module)}, which does not "
                "exist or has no code to mutate. Name the module that has its "
                "code now, there and in chosen.txt."
            )
        kept = [x for x, _ in sites if f"{target.module}:{x}" in before]
        names = _evenly(sites, kept[: target.mutants], target.mutants)
        chosen += [f"{target.module}:{x}" for x in names]
    return chosen


def _evenly(
    sites: list[tuple[str, operators.Site]], kept: list[str], number: int
) -> list[str]:
    """Adds evenly spaced sites to the kept ones, at most one per line."""
    names = list(kept)
    lines = {site.line for name, site in sites if name in kept}
    starts = [i * len(sites) // number for i in range(number + 1)]
    for start, end in itertools.pairwise(starts):
        is_taken = any(name in kept for name, _ in sites[start:end])
        if is_taken or len(names) == number:
            continue
        for name, site in sites[start:]:
            if site.line not in lines:
                lines.add(site.line)
                names.append(name)
                break
    return sorted(names, key=[x for x, _ in sites].index)


# ---- Running -----------------------------------------------------------------


class _Results:
    """The outcomes of mutants and the durations of unmutated tests."""

    def __init__(self, path: pathlib.Path | None, goes_on: bool):
        self._path = path
        self.mutants: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}
        if path and path.exists() and not goes_on:
            path.unlink()
        if path and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._keep(json.loads(line))

    def add(self, **row: Any) -> None:
        self._keep(row)
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _keep(self, row: dict[str, Any]) -> None:
        if "tests" in row:
            self.seconds[row["tests"]] = row["seconds"]
        else:
            self.mutants[row["name"]] = row


class _Session:
    """Runs tests in parallel, each worker in its own copy of the tree."""

    def __init__(self, tree: pathlib.Path, folder: str, workers: int):
        self._free = []
        for i in range(workers):
            place = pathlib.Path(folder) / str(i)
            place.mkdir()
            self._free.append(runs.Copy(tree, place))
        self._running: list[tuple[runs.Run, dict[str, Any]]] = []

    def run(self, jobs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yields each finished job with the keys that `_end` adds.

        A job has `tests`, `limit` and, for a mutant, `path` and `source`.
        """
        waiting = collections.deque(jobs)
        try:
            while waiting or self._running:
                while waiting and self._free:
                    self._start(waiting.popleft())
                time.sleep(0.02)
                for run, job in list(self._running):
                    outcome = run.outcome()
                    if outcome is not None:
                        yield self._end(run, job, outcome)
        finally:
            for run, _ in self._running:
                run.stop()

    def _start(self, job: dict[str, Any]) -> None:
        copy = self._free.pop()
        if job.get("path"):
            copy.change(job["path"], job["source"])
        self._running.append((copy.start(job["tests"], job["limit"]), job))

    def _end(
        self, run: runs.Run, job: dict[str, Any], outcome: str
    ) -> dict[str, Any]:
        self._running.remove((run, job))
        run.copy.restore()
        self._free.append(run.copy)
        log = run.log.read_text(encoding="utf-8", errors="replace")
        seconds = round(run.seconds, 1)
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", log, re.MULTILINE)
        return {
            **job,
            "outcome": outcome,
            "seconds": seconds,
            "by": failed[1] if failed else "",
            "log": log,
        }


def _measure(
    session: _Session, selections: list[list[str]], results: _Results
) -> None:
    """Measures the duration of unmutated tests, which must pass."""
    jobs = [
        {"tests": x, "limit": _FIRST_LIMIT}
        for x in selections
        if " ".join(x) not in results.seconds
    ]
    for i, job in enumerate(session.run(jobs), 1):
        tests = " ".join(job["tests"])
        if job["outcome"] != "survived":
            raise _Error(f"{tests} fail without a mutation:\n{job['log']}")
        results.add(tests=tests, seconds=job["seconds"])
        print(f"{i}/{len(jobs)} {tests}: {job['seconds']} s", flush=True)


def _mutants(
    tree: pathlib.Path, names: list[str], results: _Results
) -> list[dict[str, Any]]:
    """Returns the jobs of mutants.

    Those that another tree does not have are recorded as gone.
    """
    table = {x.module: x for x in _table(tree)}
    sites: dict[str, dict[str, operators.Site]] = {}
    jobs, gone = [], []
    for name in names:
        module, site_name = name.split(":", 1)
        if module not in sites:
            sites[module] = _sites(tree, module) if module in table else {}
        site = sites[module].get(site_name)
        if site is None:
            gone.append(name)
            continue
        path = _path(module)
        source = (tree / path).read_text(encoding="utf-8")
        changed = operators.apply(source, site)
        jobs.append(
            {
                "name": name,
                "path": path,
                "source": changed,
                "line": site.line,
                "code": changed.splitlines()[site.line - 1].strip(),
                "tests": _tests(tree, table[module]),
            }
        )
    if gone and tree == _ROOT:
        raise _Error(
            f"chosen.txt has mutants that the modules of targets.py do not "
            f"have: {', '.join(gone)}. Rename those whose code has moved, then "
            "run `python -m tools.mutants --choose` to replace the others."
        )
    for name in gone:
        results.add(name=name, outcome="gone", seconds=0.0)
    return jobs


def _run(
    session: _Session, jobs: list[dict[str, Any]], results: _Results
) -> None:
    """Runs the tests of each mutant and prints its outcome."""
    for job in jobs:
        job["limit"] = 3 * results.seconds[" ".join(job["tests"])] + 20
    start = time.monotonic()
    for i, job in enumerate(session.run(jobs), 1):
        keys = ("name", "outcome", "by", "seconds", "path", "line", "code")
        results.add(**{x: job[x] for x in keys})
        left = (time.monotonic() - start) / i * (len(jobs) - i) / 60
        print(
            f"{i}/{len(jobs)} {job['name']} {job['outcome']} "
            f"{job['seconds']} s, {left:.1f} min left",
            flush=True,
        )
        if job["outcome"] == "error":
            print(job["log"], flush=True)


# ---- Reporting ---------------------------------------------------------------


def _report(names: list[str], results: _Results) -> str:
    """Formats the score of each module and the survivors."""
    modules: dict[str, collections.Counter[str]] = {}
    for name in names:
        counter = modules.setdefault(name.split(":")[0], collections.Counter())
        counter[results.mutants[name]["outcome"]] += 1
    lines = [
        f"{module:36}{_score(counter)}" for module, counter in modules.items()
    ]
    total = sum(modules.values(), collections.Counter())
    lines += [f"{'all':36}{_score(total)}", ""]
    for name in names:
        row = results.mutants[name]
        if row["outcome"] not in _KILLED:
            lines.append(f"{row['outcome']}: {name}")
            if row["outcome"] != "gone":
                lines.append(f"    {row['path']}:{row['line']}: {row['code']}")
    return "\n".join(lines)


def _score(counter: collections.Counter[str]) -> str:
    """Formats the number and share of killed mutants."""
    killed = sum(counter[x] for x in _KILLED)
    there = sum(counter.values()) - counter["gone"]
    percent = f" {killed / there:6.1%}" if there else ""
    others = "".join(
        f", {counter[x]} {x}" for x in ("gone", "error") if counter[x]
    )
    return f"{killed:4} of {there:3} killed{percent}{others}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--tree", type=pathlib.Path, default=_ROOT)
    add("--workers", type=int, default=2)
    add("--only", default="", help="run mutants whose names contain this")
    add("--output", type=pathlib.Path, help="file of results, as JSON lines")
    add("--resume", action="store_true", help="skip mutants in --output")
    add("--choose", action="store_true", help="only rewrite chosen.txt")
    return parser.parse_args()


def main():
    """Runs or chooses the mutants."""
    arguments = _arguments()
    tree = arguments.tree.resolve()
    if not (tree / "bert_tf").is_dir():
        raise _Error(f"--tree must be a clone that has bert_tf: {tree}")
    if arguments.workers < 1:
        raise _Error(f"--workers must be at least 1: {arguments.workers}")
    chosen = _CHOSEN.read_text(encoding="utf-8").split()
    if arguments.choose:
        names = _choose(tree, chosen)
        _CHOSEN.write_text("\n".join(names) + "\n", encoding="utf-8")
        print(f"{_CHOSEN}: {len(names)} mutants")
        return
    names = [x for x in chosen if arguments.only in x]
    if not names:
        raise _Error(
            f"No mutant in chosen.txt has a name that contains "
            f"{arguments.only!r}. Pass a part of one, such as --only=losses."
        )
    results = _Results(arguments.output, arguments.resume)
    missing = [x for x in names if x not in results.mutants]
    jobs = _mutants(tree, missing, results)
    selections = dict.fromkeys(tuple(x["tests"]) for x in jobs)
    runs.import_libraries()
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        session = _Session(tree, folder, arguments.workers)
        _measure(session, [list(x) for x in selections], results)
        _run(session, jobs, results)
    print(_report(names, results))


if __name__ == "__main__":
    try:
        main()
    except _Error as error:
        sys.exit(f"error: {error}")
