"""Runs the scripts at the root as users do.

`run` runs a script in this process: TensorFlow is already imported and started,
so an invalid command line takes a few hundredths of a second. `start` and
`run_process` start a process, for features of processes: signals, limits, and
environment variables that TensorFlow reads when it starts. These processes are
forked from one that has imported TensorFlow but not started it.
"""

import atexit
import contextlib
import functools
import importlib
import logging as python_logging
import multiprocessing
import os
import pathlib
import re
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from bert_tf import terminals
from bert_tf.errors import InputError
from bert_tf.training import cluster
from tests import script_flags

import keras
import tensorflow as tf
from absl import logging
from tensorflow.python.framework import config as tensorflow_config

_ROOT = pathlib.Path(__file__).resolve().parents[1]

_CONTEXT = multiprocessing.get_context("forkserver")
# No modules that define flags, as scripts that do not import them may define
# the same flags.
_CONTEXT.set_forkserver_preload(
    [
        # Must be first.
        "tests.conftest",
        "bert_tf.training.fine_tuning",
        "bert_tf.serving.serving_model",
        "bert_tf.serving.batches",
        # Must be last.
        "tests.frozen",
    ]
)

# Compiling a script takes a quarter of the time that defines its flags.
_COMPILE = "_get_code_from_file"
vars(runpy)[_COMPILE] = functools.cache(vars(runpy)[_COMPILE])

# For example "I0000 00:00:1795226366.9 7604 port.cc:153] oneDNN custom ...";
# 2.20 writes "2026-11-23 06:00:13.04: E external/...".
TENSORFLOWS = re.compile(
    r"[IWE]\d{4} [\d:.]+ +\d+ |WARNING: All log messages"
    r"|\d{4}-\d\d-\d\d [\d:.]+: [IWE] "
)


class _Output:
    """The two files with a script's output."""

    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [str(folder / name) for name in ("stdout", "stderr")]

    @property
    def stdout(self) -> str:
        return pathlib.Path(self._files[0]).read_text()

    @property
    def stderr(self) -> str:
        """The log, with wrapped lines joined again."""
        text = pathlib.Path(self._files[1]).read_text()
        return re.sub(r"\n {9}(?! )", " ", text)

    @property
    def lines(self) -> list[str]:
        """The lines of stderr without TensorFlow's own log."""
        return [
            line
            for line in self.stderr.splitlines()
            if not TENSORFLOWS.match(line)
        ]


# ---- In a separate process --------------------------------------------------


class Run(_Output):
    """A script that runs, or has run, in a separate process."""

    def __init__(
        self,
        folder: pathlib.Path,
        script: str,
        flags: list[str],
        environment: Mapping[str, str],
        has_children: bool = False,
        before: Callable[[], None] | None = None,
    ):
        """Starts the script; its output is written to two files in `folder`.

        A script with child processes is not killed when the tests end. `before`
        is called in its process first. Graphs are optimized as in this process,
        so that the last bits can be compared.
        """
        super().__init__(folder)
        optimizer = tf.config.optimizer.get_experimental_options()
        self._process = _CONTEXT.Process(
            target=_main,
            args=(
                *(script, flags, dict(environment), *self._files, before),
                optimizer,
            ),
            daemon=not has_children,
        )
        self._process.start()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal to the process."""
        pid = self._process.pid
        assert pid is not None
        os.kill(pid, number)

    def wait(self, seconds: float = 600) -> int:
        """Waits for the end and returns the exit code; -9 if killed."""
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            self.kill()
            raise TimeoutError(f"still running; stderr:\n{self.stderr}")
        return code

    def poll(self) -> int | None:
        """Returns the exit code; None while the process runs."""
        return self._process.exitcode


def _main(script, flags, environment, stdout, stderr, before, optimizer):
    for path, number in ((stdout, 1), (stderr, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    os.environ.update(environment)
    if before is not None:
        before()
    tf.config.optimizer.set_experimental_options(optimizer)
    path = str(_ROOT / f"{script}.py")
    sys.argv = [path, *flags]
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def take_terminal(name: str) -> None:
    """Makes a terminal that of this process; for `before` of a `Run`.

    Args:
        name: Path of the terminal, as of `os.ttyname`.
    """
    os.setsid()
    terminal = os.open(name, os.O_RDWR)
    for number in range(3):
        os.dup2(terminal, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1, closefd=False)
        for number, mode in enumerate("rww")
    )
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it


def start(
    folder: pathlib.Path, script: str, *flags: str, **environment: str
) -> Run:
    """Starts a script in a separate process, with its output in `folder`."""
    return Run(folder, script, list(flags), environment)


def run_process(
    folder: pathlib.Path, script: str, *flags: str, **environment: str
) -> Run:
    """Runs a script to its end in a separate process."""
    started = start(folder, script, *flags, **environment)
    started.wait()
    return started


# ---- In this process --------------------------------------------------------


class Finished(_Output):
    """A script that has run in this process."""

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        self.code = 0

    def wait(self) -> int:
        """Returns the exit code."""
        return self.code


Done: TypeAlias = Finished | Run


def run(
    folder: pathlib.Path, script: str, *flags: str, **environment: str
) -> Done:
    """Runs a script to its end, in this process if possible.

    Args:
        folder: Folder for its output.
        script: Its path from the root, without ".py".
        *flags: Its command line.
        **environment: Environment variables to set.

    Returns:
        Its exit code and output.
    """
    if _needs_process(flags, environment):
        return run_process(folder, script, *flags, **environment)
    done = Finished(folder)
    with (
        _redirected(*done._files),
        _own_process_state(environment),
        script_flags.own_flags(),
    ):
        done.code = _exit_code(script, flags)
    return done


def run_checked(
    folder: pathlib.Path,
    script: str,
    *flags: str,
    code: int = 0,
    **environment: str,
) -> Done:
    """Runs a script, which must exit with the code; see `run`."""
    done = run(folder, script, *flags, **environment)
    assert done.wait() == code, done.stderr
    return done


def run_here(script: str, *arguments: str, name: str = "__main__") -> Any:
    """Runs a script in this process, with its output going to pytest.

    Args:
        script: Its path from the root, without ".py".
        *arguments: Its command line.
        name: Name of the module; `main` runs only if it is "__main__".

    Returns:
        The exit code, or the script's globals for another name.
    """
    with _own_process_state({}), script_flags.own_flags():
        if name == "__main__":
            return _exit_code(script, arguments)
        return _execute(script, arguments, name)


class _StoppedError(Exception):
    """Raised when a script has defined its flags."""


@contextlib.contextmanager
def starting(
    script: str,
) -> Iterator[tuple[Callable[[list[str]], None], dict[str, Any]]]:
    """Defines a script's flags, without running it.

    Yields:
        A function that parses a command line as the script does, and raises
        SystemExit if it is invalid; and the keyword arguments that the script
        passes to `command_line.start`.
    """
    path, argv = str(_ROOT / f"{script}.py"), sys.argv
    with _own_process_state({}), script_flags.own_flags():
        command_line = importlib.import_module("bert_tf.flags.command_line")
        start_script = command_line.start
        keywords: dict[str, Any] = {}

        def stop(_, **given):
            keywords.update(given)
            raise _StoppedError

        def read(words):
            sys.argv = [path, *words]
            start_script("__main__", **keywords)

        vars(command_line)["start"] = stop
        with contextlib.suppress(_StoppedError):
            _execute(script, (), "__main__")
        try:
            yield read, keywords
        finally:
            sys.argv = argv


def _needs_process(flags: tuple[str, ...], environment: Mapping) -> bool:
    """Whether a run changes state that a process cannot restore."""
    at_start = ("TF_", "TFDS_", "KERAS_", "PYTHON")
    devices = [x for x in flags if x.startswith("--logical_cpus=")]
    return (
        any(x.startswith(at_start) for x in environment if x != "TF_CONFIG")
        or _starts_cluster(flags, environment)
        or any(x[-2:] not in ("=1", "=2") for x in devices)
    )


def _starts_cluster(flags: tuple[str, ...], environment: Mapping) -> bool:
    """Whether a run connects to other workers: not to an invalid cluster."""
    if "--distribution_strategy=multi_worker_mirrored" not in flags:
        return False
    try:
        cluster.find({**os.environ, **environment})
    except InputError:
        return False
    return True


def _execute(script: str, arguments: tuple[str, ...], name: str) -> Any:
    path = str(_ROOT / f"{script}.py")
    argv, sys.argv = sys.argv, [path, *arguments]
    try:
        return runpy.run_path(path, run_name=name)
    finally:
        sys.argv = argv


def _exit_code(script: str, arguments: tuple[str, ...]) -> int:
    try:
        _execute(script, arguments, "__main__")
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def _redirected(*paths: str) -> Iterator[None]:
    """Redirects stdout and stderr, including those of children, to files."""
    streams = sys.stdout, sys.stderr
    handler = logging.get_absl_handler().python_handler
    for stream in streams:
        stream.flush()
    kept = [os.dup(number) for number in (1, 2)]
    for number, path in zip((1, 2), paths, strict=True):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", encoding="utf-8", closefd=False, buffering=1)
        for number in (1, 2)
    )
    logged, handler.stream = handler.stream, sys.stderr
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        sys.stdout, sys.stderr = streams
        handler.stream = logged


def forget_logged():
    """Lets lines that are logged once be logged again, as in a new process."""
    terminals.log_once.cache_clear()
    terminals.warn_once.cache_clear()


@contextlib.contextmanager
def _own_process_state(environment: Mapping[str, str]) -> Iterator[None]:
    """Restores process state after a script, and runs its atexit functions."""
    forget_logged()
    variables = dict(os.environ)
    os.environ.update(environment)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
    handlers = {number: signal.getsignal(number) for number in numbers}
    handler = logging.get_absl_handler()
    formatter, filters = handler.formatter, list(handler.filters)
    verbosity = logging.get_verbosity()
    log = python_logging.getLogger("tensorflow")
    level = log.level
    at_exit: list[Callable[[], object]] = []
    register, unregister = atexit.register, atexit.unregister

    def later(function, *args, **kwargs):
        at_exit.append(lambda: function(*args, **kwargs))
        return function

    # Each strategy numbers its collective operations from this number, so those
    # of two strategies in one process would collide.
    tf.distribute.MirroredStrategy._collective_key_base += 100_000
    atexit.register = later  # type: ignore[assignment]
    atexit.unregister = lambda function: None
    try:
        yield
    finally:
        atexit.register, atexit.unregister = register, unregister
        for function in reversed(at_exit):
            function()
        os.environ.clear()
        os.environ.update(variables)
        for number, previous in handlers.items():
            signal.signal(number, previous)
        handler.setFormatter(formatter)
        handler.filters = filters
        logging.set_verbosity(verbosity)
        log.setLevel(level)
        tensorflow_config.disable_op_determinism()
        keras.config.set_dtype_policy("float32")
