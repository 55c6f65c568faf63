"""Runs a script and counts the functions it enters before a stop function.

    python -m tools.house.trace OUT ROOT FILE:FUNCTION SCRIPT [FLAGS ...]

FILE:FUNCTION may be empty: then the whole script counts. ROOT is the checkout
with the package. Functions that run while a module is imported do not count: a
reader skips them. The counts are written to OUT as JSON.
"""

import importlib
import inspect
import json
import pathlib
import runpy
import sys
import threading
import types
from typing import Any


class _Trace:
    """The functions of the package that are entered, up to a stop function.

    Args:
        package: The folder of the package.
        script: The path of the script.
        stop: The end of the stop function's file name, and its name.
    """

    def __init__(self, package: str, script: str, stop: tuple[str, str]):
        self._package = package
        self._script = script
        self._stop = stop
        self._lines: dict[types.CodeType, int] = {}
        self.has_stopped = False

    def profile(self, frame: types.FrameType, event: str, _: Any) -> None:
        """The function that `sys.setprofile` takes."""
        code = frame.f_code
        if event != "call" or self.has_stopped or not self._is_ours(code):
            return
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # not a class body
        is_named = is_function and not code.co_name.startswith("<")
        is_new = is_named and code not in self._lines
        if is_new and not self._is_imported(frame):
            self._lines[code] = _length(code)
        file, name = self._stop
        self.has_stopped = code.co_name == name and code.co_filename.endswith(
            file
        )
        if self.has_stopped:
            sys.setprofile(None)  # of this thread; the others just return

    def counts(self) -> dict[str, int]:
        """Returns the number of files, functions and lines of these."""
        return {
            "files": len({code.co_filename for code in self._lines}),
            "functions": len(self._lines),
            "lines": sum(self._lines.values()),
        }

    def _is_ours(self, code: types.CodeType) -> bool:
        name = code.co_filename
        return name.startswith(self._package) or name == self._script

    def _is_imported(self, frame: types.FrameType | None) -> bool:
        """Returns whether a module of the package is being imported."""
        while frame := frame and frame.f_back:
            code = frame.f_code
            if code.co_name == "<module>" and self._is_ours(code):
                return code.co_filename != self._script
        return False


def _length(code: types.CodeType) -> int:
    """Returns the number of lines of a function, with those inside it."""
    inner = [x for x in code.co_consts if isinstance(x, types.CodeType)]
    lines = [line for *_, line in code.co_lines() if line]
    ends = [x.co_firstlineno + _length(x) - 1 for x in inner]
    return max(*lines, *ends, code.co_firstlineno) - code.co_firstlineno + 1


def run(root: str, stop: str, script: str, flags: list[str]) -> dict[str, int]:
    """Runs the script; returns the numbers of files, functions and lines.

    Raises:
        SystemExit: The stop function did not run.
    """
    file, _, name = stop.rpartition(":")
    script = str(pathlib.Path(script).resolve())
    trace = _Trace(f"{root}/bert_tf/", script, (file, name))
    sys.argv = [script, *flags]
    # Importing them takes three times as long when it is traced.
    for module in ("bert_tf", "tensorflow", "keras"):
        importlib.import_module(module)
    threading.setprofile(trace.profile)
    sys.setprofile(trace.profile)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if stop and not trace.has_stopped:
        raise SystemExit(f"{script} did not reach {stop}.")
    return trace.counts()


if __name__ == "__main__":
    _out, _root, _stop, _script, *_flags = sys.argv[1:]
    _counts = run(_root, _stop, _script, _flags)
    pathlib.Path(_out).write_text(json.dumps(_counts))
