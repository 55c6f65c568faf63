r"""Checks how the training step compiles for GPUs and TPUs, without either.

    python -m tools.accelerators --chips=h100
    python -m tools.accelerators --chips=v5e,v6e --compile=large/rows=32 \
        --lower=

Lowers the cases of --lower with the TensorFlow of this environment, which for
TPUs is tensorflow-tpu. Compiles those of --compile with JAX, in the environment
of --xla_python. Prints tables. The exit code is 1 if an operation is refused or
if a number exceeds that of expected.json by more than 3%. --write replaces the
expected numbers.

Milliseconds are a roofline: for each kernel, the time of its products at peak,
or of its bytes at the bandwidth of the memory. So the share of peak is a
ceiling.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.accelerators import cases, chips, hlo

_ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPECTED = pathlib.Path(__file__).with_name("expected.json")
_TOLERANCE = 1.03
_GATED = ("operations", "bytes", "moved", "memory")
# Expected in a case: the loop over micro-batches.
_ALLOWED = {"accumulate": ("while", "dynamic_slice")}

# Title -> the text of a row. The others need a compiled program.
_LOWERED: dict[str, Callable[[Any], object]] = {
    "case": lambda x: x["case"],
    "operations": lambda x: x["operations"],
    "a layer": lambda x: x["operations"] // x["layers"],
    "lowering, s": lambda x: x["seconds"],
}
_COMPILED: dict[str, Callable[[Any], object]] = {
    "compiling, s": lambda x: x["compile_seconds"],
    "kernels": lambda x: x["kernels"],
    "GB": lambda x: f"{x['bytes'] / 1e9:.2f}",
    "copies": lambda x: f"{x['moved'] / x['bytes']:.1%}",
    "GiB": lambda x: f"{x['memory'] / 2**30:.2f}",
    "ms": lambda x: f"{x['milliseconds']:.2f}",
    "sequences/s": lambda x: round(1e3 * x["sequences"] / x["milliseconds"]),
    "share of peak": lambda x: f"{x['utilization']:.1%}",
}


class _Error(Exception):
    """An error that is reported in one line, without a traceback."""


def _run(python: pathlib.Path | str, module: str, *arguments: str) -> None:
    """Runs a module of this package with another Python."""
    command = [str(python), "-m", f"tools.accelerators.{module}", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise _Error(f"{module} failed: {' '.join(last)}")


class Check:
    """Lowers and compiles cases for chips, and collects rows of numbers."""

    def __init__(
        self, folder: pathlib.Path, xla_python: pathlib.Path, longest: int = 0
    ):
        self._folder = folder
        self._python = xla_python
        self._longest = longest
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}
        self.problems: list[str] = []

    def lower(self, platform: str, names: Sequence[str]) -> list[str]:
        """Lowers cases; returns the ones that succeed."""
        folder = self._folder / platform
        _run(
            *(sys.executable, "export", f"--platform={platform}"),
            *(f"--folder={folder}", *names),
        )
        lowered = []
        for name in names:
            about = self._about(platform, name)
            if "refused" in about:
                self.problems.append(f"{name}: refused: {about['refused']}")
            else:
                lowered.append(name)
        if not lowered:
            raise _Error("; ".join(self.problems))
        paths = [str(self._path(platform, x)) for x in lowered]
        _run(self._python, "deviceless", *paths)
        for name in lowered:
            about = self._about(platform, name)
            counts = about.pop("operations")
            others = hlo.unexpected(counts, _ALLOWED.get(name, ()))
            if others:
                self.problems.append(f"{name}: unexpected operations: {others}")
            row = about | {"case": name, "operations": sum(counts.values())}
            self.rows.setdefault(platform, {})[name] = row
        return lowered

    def compile(self, chip: chips.Chip, names: Sequence[str]) -> None:
        """Compiles lowered cases."""
        for name in names:
            path = self._path(chip.platform, name)
            _run(self._python, "deviceless", f"--chip={chip.name}", str(path))
            about = self._about(chip.platform, name, f".{chip.name}.json")
            program = hlo.Program(
                path.with_suffix(f".{chip.name}.hlo").read_text()
            )
            costs = program.costs(chip.flops, chip.bandwidth)
            for seconds, number, kernel in program.longest(
                self._longest, chip.flops, chip.bandwidth
            ):
                print(f"{name}: {1e3 * seconds:.2f} ms, {number} x {kernel}")
            row = self.rows[chip.platform][name]
            self.rows.setdefault(chip.name, {})[name] = {
                **row,
                **about,
                **dataclasses.asdict(costs),
                "milliseconds": 1e3 * costs.seconds,
                "seconds": row["seconds"],
                "utilization": row["flops"] / costs.seconds / chip.flops,
            }

    def compare(self) -> None:
        """Adds a problem for each number above the expected one."""
        for place, name, number, value in _numbers(self.rows):
            expected = _expected().get(place, {}).get(name, {}).get(number)
            if expected is not None and value > _TOLERANCE * expected:
                self.problems.append(
                    f"{place} {name}: {number} {value}, expected at most "
                    f"{expected} and 3%"
                )

    def _path(self, platform: str, name: str) -> pathlib.Path:
        return self._folder / platform / cases.file_name(name)

    def _about(self, platform: str, name: str, suffix: str = ".json") -> Any:
        path = self._path(platform, name).with_suffix(suffix)
        return json.loads(path.read_text())


# ---- Expected numbers --------------------------------------------------------


def _expected() -> dict[str, dict[str, dict[str, int]]]:
    return json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}


def _numbers(rows: Mapping[str, Any]) -> list[tuple[str, str, str, int]]:
    """Returns (chip or platform, case, name of the number, number)."""
    return [
        (place, name, number, row[number])
        for place, of_place in rows.items()
        for name, row in of_place.items()
        for number in _GATED
        if number in row and not (number == "operations" and "bytes" in row)
    ]


def _write(rows: Mapping[str, Any]) -> None:
    expected = _expected()
    for place, name, number, value in _numbers(rows):
        expected.setdefault(place, {}).setdefault(name, {})[number] = value
    text = json.dumps(expected, indent=2, sort_keys=True)
    EXPECTED.write_text(text + "\n")


# ---- Output ------------------------------------------------------------------


def _table(
    columns: Mapping[str, Callable[[Any], object]], rows: Mapping[str, Any]
) -> str:
    lines = [list(columns), ["---"] * len(columns)]
    for row in rows.values():
        lines.append([str(text(row)) for text in columns.values()])
    return "\n".join(" | ".join(line) for line in lines)


def _names(text: str) -> list[str]:
    return [x for x in text.split(",") if x]


def main() -> int:
    """Runs the check; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--chips", default="h100", help=", ".join(chips.CHIPS))
    parser.add_argument("--lower", default=",".join(cases.SMALL))
    parser.add_argument("--compile", default="base2")
    parser.add_argument(
        *("--folder", "-o"),
        type=pathlib.Path,
        default=_ROOT / "runs" / "accelerators",
    )
    parser.add_argument(
        "--xla_python",
        type=pathlib.Path,
        default=_ROOT / ".venv-xla" / "bin" / "python",
    )
    parser.add_argument(
        *("--longest", "-n"),
        type=int,
        default=0,
        help="how many of the longest kernels to print",
    )
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    check = Check(
        options.folder.absolute(),
        options.xla_python.absolute(),
        options.longest,
    )
    wanted = [chips.CHIPS[x] for x in _names(options.chips)]
    lowered, compiled = _names(options.lower), _names(options.compile)
    try:
        for platform in dict.fromkeys(chip.platform for chip in wanted):
            done = check.lower(platform, [*lowered, *compiled])
            print(f"== Lowered for {platform}")
            print(_table(_LOWERED, check.rows[platform]), flush=True)
            for chip in wanted:
                if chip.platform == platform:
                    check.compile(chip, [x for x in compiled if x in done])
                    print(f"\n== Compiled for {chip.name}")
                    rows = check.rows.get(chip.name, {})
                    print(_table(_LOWERED | _COMPILED, rows), flush=True)
    except _Error as error:
        print(f"error: {error}")
        return 1
    if options.write:
        _write(check.rows)
    check.compare()
    for problem in check.problems:
        print(f"error: {problem}")
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main())
