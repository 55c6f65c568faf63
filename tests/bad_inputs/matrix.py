"""Runs commands with one error each, and checks their output.

Every case must exit with code 1 and one line that states the problem, without a
traceback. It must leave its inputs unchanged and no results, and
`--check_only`, if the script has it, must report the same error.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests import scripts, tiny_model

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]

_LONGEST = 700


@dataclasses.dataclass(frozen=True)
class Case:
    """An invalid command.

    Attributes:
        flags: Differences from the valid command: flag -> value, None to omit
            it. {data} is the folder of inputs, {out} the folder of outputs,
            {root} the repository.
        line: A part of the error line, with the same fields.
        environment: Environment variables, with the same fields.
        checked: Whether --check_only reports the same. False if the error is
            not in the flags or inputs.
        arguments: Additional words on the command line.
        is_exhaustive: Whether CI skips it, as it has a similar case.
    """

    flags: Mapping[str, str | None]
    line: str
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    checked: bool = True
    arguments: tuple[str, ...] = ()
    is_exhaustive: bool = dataclasses.field(default=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Script:
    """A script and a valid command for it.

    Attributes:
        name: Name without ".py".
        good: Flag -> value, with the fields of `Case`.
        has_check_only: Whether it has --check_only.
    """

    name: str
    good: Mapping[str, str]
    has_check_only: bool = False


def check(
    script: Script, case: Case, data: pathlib.Path, folder: pathlib.Path
) -> None:
    """Runs a case, and asserts that its outcome is as required.

    Args:
        script: The script.
        case: The error in the command.
        data: Folder of inputs.
        folder: New folder for outputs and logs.
    """
    assert case.line, "What must the error say?"
    before = contents(data)
    line = _run(script, case, data, folder, [])
    assert contents(data) == before, "an input changed"
    if script.has_check_only and case.checked:
        assert _run(script, case, data, folder, ["--check_only"]) == line


def check_works(
    script: Script,
    case: Case,
    data: pathlib.Path,
    folder: pathlib.Path,
    *more: str,
) -> None:
    """Asserts that an unusual command works, and logs `case.line`."""
    flags = [*command(script, case, data, folder / "out"), *more]
    environment = _environment(case, data, folder)
    run = _run_untraced(folder / "log", script, *flags, **environment)
    assert run.wait() == 0, run.stderr
    said = case.line.format(data=data, out=folder / "out")
    assert said in run.stderr


# ---- The tests of a script --------------------------------------------------

# The test that pytest finds: `test_bad_input = refused(SCRIPT, CASES)`.
_Test = Callable[..., None]


def inputs(write: Callable[[pathlib.Path], Any]) -> Any:
    """Returns the fixture `data`: a folder written by a function.

    If `write` returns a context manager, such as a lock, it is held during the
    tests.
    """

    @pytest.fixture(scope="module")
    def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        folder = tmp_path_factory.mktemp("data")
        with write(folder) or contextlib.nullcontext():
            yield folder

    return data


def names_in_ci(cases: Mapping[str, Case]) -> set[str]:
    """Returns the cases that CI runs: the first of each error."""
    first = {
        case.line: name
        for name, case in reversed([*cases.items()])
        if not case.is_exhaustive
    }
    return {*first.values()}


def refused(script: Script, cases: Mapping[str, Case]) -> _Test:
    """Returns a test for each case: see `check`.

    CI runs those of `names_in_ci`; a third of these also with --check_only.
    """
    first = names_in_ci(cases)
    rest = pytest.mark.exhaustive
    every: list[Any] = []
    for number, (name, case) in enumerate(cases.items()):
        is_first = name in first
        checked = is_first and case.checked and script.has_check_only
        in_ci = checked and number % 3 == 0
        marks = [] if is_first else [rest]
        every.append(pytest.param(name, in_ci, id=name, marks=marks))
        if checked and not in_ci:
            named = f"{name}, checked"
            every.append(pytest.param(name, True, id=named, marks=rest))

    @pytest.mark.parametrize(("name", "checked"), every)
    def test(name, checked, data, tmp_path):
        case = dataclasses.replace(cases[name], checked=checked)
        check(script, case, data, tmp_path)

    return test


def right(
    script: Script, cases: Mapping[str, Case], to_the_end: Sequence[str] = ()
) -> _Test:
    """Returns a test for cases that work: see `check_works`.

    Args:
        script: The script.
        cases: Differences that are valid; a `line` is logged.
        to_the_end: Cases that run fully even if the script has --check_only.
    """

    marks = {True: [pytest.mark.exhaustive], False: []}

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, id=name, marks=marks[case.is_exhaustive])
            for name, case in cases.items()
        ],
    )
    def test(name, data, tmp_path):
        checks = script.has_check_only and name not in to_the_end
        more = ["--check_only"] * checks
        check_works(script, cases[name], data, tmp_path, *more)

    return test


# ---- Running ----------------------------------------------------------------


def _environment(
    case: Case, data: pathlib.Path, folder: pathlib.Path
) -> dict[str, str]:
    return {
        name: value.format(data=data, out=folder / "out")
        for name, value in case.environment.items()
    }


def _run_untraced(
    log: pathlib.Path, script: Script, *flags: str, **environment: str
) -> scripts.Done:
    """Runs a script with its graph functions executed eagerly.

    Tracing takes most of the time of a short run.
    """
    with tiny_model.untraced():
        return scripts.run(log, script.name, *flags, **environment)


def make(
    script: Script, data: pathlib.Path, out: pathlib.Path, *more: str
) -> None:
    """Runs the valid command to its end."""
    log = out.with_name(f"{out.name}.log")
    flags = command(script, Case({}, ""), data, out)
    run = _run_untraced(log, script, *flags, *more)
    assert run.wait() == 0, run.stderr
    shutil.rmtree(log)


def in_a_shell(
    script: Script,
    flags: Sequence[str],
    environment: Mapping[str, str],
    redirections: str = "",
) -> "subprocess.CompletedProcess[str]":
    """Runs a script in a shell, which takes seconds longer than in-process."""
    command = [sys.executable, f"{_ROOT}/{script.name}.py", *flags]
    return subprocess.run(
        ["bash", "-c", f"{shlex.join(command)} {redirections}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _run(
    script: Script,
    case: Case,
    data: pathlib.Path,
    folder: pathlib.Path,
    more: list[str],
) -> str:
    """Returns the error line."""
    out = folder / "out"
    before = contents(out)
    run = _run_untraced(
        folder / "log",
        script,
        *command(script, case, data, out),
        *more,
        **_environment(case, data, folder),
    )
    code = run.wait()
    assert "Traceback" not in run.stderr, run.stderr
    assert code, f"accepted though wrong: {run.stderr}"
    errors = [line for line in run.lines if line.startswith("error: ")]
    last = run.lines[-1] if run.lines else ""
    expected = case.line.format(data=data, out=out)
    is_clear = (
        code == 1 and errors == [last] and expected in last and not run.stdout
    )
    assert is_clear and len(last) <= _LONGEST, (
        f"exit code {code}, expected {expected!r} in\n{run.stderr}"
        f"\nstdout: {run.stdout}"
    )
    assert contents(out) == before, "half a result is left"
    return last


def command(
    script: Script, case: Case, data: pathlib.Path, out: pathlib.Path
) -> list[str]:
    """Returns the flags of a case."""
    flags = {**script.good, **case.flags}
    return [
        f"--{name}={value.format(data=data, out=out, root=_ROOT)}"
        for name, value in flags.items()
        if value is not None
    ] + [x.format(data=data, out=out, root=_ROOT) for x in case.arguments]


def contents(folder: pathlib.Path | str) -> dict[str, str]:
    """Returns path -> digest of all files in a folder; links by target."""
    found: dict[str, str] = {}
    if not os.path.isdir(folder):
        return found
    with os.scandir(folder) as entries:
        for entry in entries:
            path = entry.path
            if entry.is_symlink():
                found[path] = os.readlink(path)
            elif entry.is_dir():
                found |= contents(path)
            elif entry.is_file():
                status = entry.stat()
                changed = status.st_mtime_ns, status.st_ctime_ns
                found[path] = _digest(
                    path, status.st_ino, status.st_size, *changed
                )
    return found


@functools.cache
def _digest(path: str, *_: int) -> str:
    """Returns a file's digest, cached unless the file changes."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
