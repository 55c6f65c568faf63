"""Runs tests in forked processes, on private copies of a tree.

The parent process imports TensorFlow but nothing from the tree. A forked child
therefore starts within milliseconds and imports the tree from its mutated copy.
"""

import contextlib
import dataclasses
import importlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback

SKIPPED = (".git", ".venv*", "runs", "site", "__pycache__", ".*_cache", "build")
_MODULES = (
    *("numpy", "pytest", "tensorflow", "tensorflow_text", "keras"),
    *("sentencepiece", "sklearn.metrics", "scipy.stats", "google_crc32c"),
    *("safetensors.numpy", "etils.epath", "absl.app", "multiprocessing.pool"),
    *("concurrent.futures", "asyncio", "unittest.mock"),
)
_OPTIONS = ("-x", "-q", "-m", "not exhaustive", "-p", "no:cacheprovider")
_FAILED = (1, 2)  # pytest's status: a failed test, a failed import
_BROKEN = 70  # exit status of a child in which pytest itself fails


def import_libraries():
    """Imports the libraries that tests use, without starting TensorFlow."""
    os.environ.update(
        TF_CPP_MIN_LOG_LEVEL="2",
        TF_ENABLE_ONEDNN_OPTS="1",
        KERAS_BACKEND="tensorflow",
        CUDA_VISIBLE_DEVICES="-1",
    )
    errors = os.dup(2)  # TensorFlow logs its CPU features there
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for name in _MODULES:
        importlib.import_module(name)
    os.dup2(errors, 2)


@dataclasses.dataclass
class Run:
    """A process that runs tests in a copy of the tree."""

    copy: "Copy"
    process: int
    log: pathlib.Path
    start: float
    limit: float  # seconds

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    def outcome(self) -> str | None:
        """Returns survived, killed, timeout, error, or None while it runs."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        if not process and self.seconds < self.limit:
            return None
        self.stop()
        if not process:
            os.waitpid(self.process, 0)
            return "timeout"
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return "survived"
        if code in _FAILED or code < 0:  # negative: a crash
            return "killed"
        return "error"

    def stop(self):
        """Kills the process and the processes that its tests left running."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)


class Copy:
    """A copy of a tree in which one file at a time is mutated."""

    def __init__(self, tree: pathlib.Path, folder: pathlib.Path):
        self.root = folder / "tree"
        self._log = folder / "log"
        shutil.copytree(
            tree, self.root, ignore=shutil.ignore_patterns(*SKIPPED)
        )
        self._changed: tuple[pathlib.Path, str] | None = None
        self._changes = 0
        data = tree.parent / "shared"
        if data.is_dir():  # the test data, by default next to the clone
            (folder / "shared").symlink_to(data.resolve())

    def change(self, path: str, source: str) -> None:
        """Replaces the source of a file."""
        file = self.root / path
        self._changed = file, file.read_text(encoding="utf-8")
        self._write(file, source)

    def restore(self):
        """Undoes `change`."""
        if self._changed:
            self._write(*self._changed)
        self._changed = None

    def _write(self, file: pathlib.Path, source: str) -> None:
        file.write_text(source, encoding="utf-8")
        # Python recompiles a file if its time, in whole seconds, differs.
        self._changes += 1
        seconds = file.stat().st_mtime - 1e6 + 2 * self._changes
        os.utime(file, (seconds, seconds))

    def start(self, tests: list[str], limit: float) -> Run:
        """Starts tests in a forked process."""
        sys.stdout.flush()
        process = os.fork()
        if not process:
            code = _BROKEN
            try:
                os.setsid()
                code = _run_tests(self.root, tests, self._log)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        return Run(self, process, self._log, time.monotonic(), limit)


def _run_tests(root: pathlib.Path, tests: list[str], log: pathlib.Path) -> int:
    """Runs tests in the child and returns pytest's exit status."""
    for descriptor in (1, 2):
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
    os.chdir(root)
    sys.path[0] = str(root)
    sys.argv = ["pytest"]
    for name in [x for x in sys.modules if x.split(".")[0] == "tools"]:
        del sys.modules[name]
    # Processes that tests spawn must not import this program again.
    main = sys.modules["__main__"]
    main.__spec__, main.__file__ = None, None
    os.environ["PYTHONPATH"] = str(root)
    tempfile.tempdir = None
    import pytest

    class InOrder:
        """Runs the files in the order of `tests`: the most specific first."""

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list) -> None:
            items.sort(key=lambda x: tests.index(x.nodeid.split("::")[0]))

    base = f"--basetemp={root.parent / 'temp'}"
    return int(pytest.main([*tests, *_OPTIONS, base], [InOrder()]))
