"""Runs the scripts at the root as users do, each in a process of its own.

The processes are forked from one that has imported TensorFlow but not started
it, which saves each of them that import: several seconds.
"""

import contextlib
import multiprocessing
import os
import pathlib
import re
import runpy
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from absl import flags
from absl.testing import flagsaver

_ROOT = pathlib.Path(__file__).resolve().parents[1]

_CONTEXT = multiprocessing.get_context("forkserver")
# No module that defines flags: scripts that do without it define their own.
_CONTEXT.set_forkserver_preload(
    [
        "bert_tf.training.fine_tuning",
        "bert_tf.serving.model",
        "bert_tf.serving.batches",
        # Last.
        "tests.frozen",
    ]
)


# Such as "I0000 00:00:1795226366.9 7604 port.cc:153] oneDNN custom ..."; 2.20
# writes "2026-11-23 06:00:13.04: E external/...".
TENSORFLOWS = re.compile(
    r"[IWE]\d{4} [\d:.]+ +\d+ |WARNING: All log messages"
    r"|\d{4}-\d\d-\d\d [\d:.]+: [IWE] "
)


class Run:
    """A script that runs, or has run."""

    def __init__(
        self,
        folder: pathlib.Path,
        script: str,
        flags: list[str],
        environment: Mapping[str, str],
        has_children: bool = False,
        before: Callable[[], None] | None = None,
    ):
        """Starts the script; its output goes to two files in `folder`.

        A script that has children of its own outlives the tests. `before` is
        called in its process first.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [str(folder / name) for name in ("stdout", "stderr")]
        self._process = _CONTEXT.Process(
            target=_main,
            args=(script, flags, dict(environment), *self._files, before),
            daemon=not has_children,
        )
        self._process.start()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends the process a signal."""
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

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    @property
    def stdout(self) -> str:
        return pathlib.Path(self._files[0]).read_text()

    @property
    def stderr(self) -> str:
        """What was written, lines that were broken whole again."""
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


def _main(script, flags, environment, stdout, stderr, before):
    for path, number in ((stdout, 1), (stderr, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    os.environ.update(environment)
    if before is not None:
        before()
    path = str(_ROOT / f"{script}.py")
    sys.argv = [path, *flags]
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def start(
    folder: pathlib.Path, script: str, *flags: str, **environment: str
) -> Run:
    """Starts a script; its output is kept in `folder`."""
    return Run(folder, script, list(flags), environment)


def run(
    folder: pathlib.Path, script: str, *flags: str, **environment: str
) -> Run:
    """Runs a script to its end."""
    started = start(folder, script, *flags, **environment)
    started.wait()
    return started


# What defines the flags of scripts and benchmarks: modules, and files that
# tests load by their paths.
_OF_SCRIPTS = ("bert_tf.", "benchmarks.", "importlib.")


@contextlib.contextmanager
def only_flags_of(*modules: types.ModuleType) -> Iterator[None]:
    """Hides the flags of all others that tests of this process imported.

    A script run in this process would otherwise define some of them again.
    """
    known = {module.__name__ for module in modules}
    defined = [
        (str(flags.FLAGS.find_module_defining_flag(name)), flags.FLAGS[name])
        for name in flags.FLAGS
    ]
    hidden = [
        (module, flag)
        for module, flag in defined
        if module.startswith(_OF_SCRIPTS) and module not in known
    ]
    flags.FLAGS.remove_flag_values([flag.name for _, flag in hidden])
    before, imported = set(flags.FLAGS), set(sys.modules)
    try:
        yield
    finally:
        # The next run defines its own again, and imports the modules that do.
        flags.FLAGS.remove_flag_values(set(flags.FLAGS) - before)
        for name in set(sys.modules) - imported:
            package, _, leaf = name.rpartition(".")
            if package == "bert_tf.flags" and _defines(sys.modules[name]):
                delattr(sys.modules[package], leaf)
                del sys.modules[name]
        for module, flag in hidden:
            flags.FLAGS[flag.name] = flag
            flags.FLAGS.register_flag_by_module(module, flag)
            flags.FLAGS.register_key_flag_for_module(module, flag)


def _defines(module: types.ModuleType) -> bool:
    """Whether the module defines flags."""
    holders = vars(module).values()
    return any(isinstance(x, flags.FlagHolder) for x in holders)


def run_here(
    script: str,
    flag_modules: Iterable[types.ModuleType],
    *arguments: str,
    name: str = "__main__",
) -> Any:
    """Runs a script in this process: quicker, for runs that end soon.

    Args:
        script: Its path from the root, without ".py".
        flag_modules: Those of bert_tf whose flags it adopts. The test imports
            them before any run, so that no run defines them anew.
        *arguments: Its command line.
        name: Of the module; of another than "__main__" `main` does not run.

    Returns:
        The exit code; of another name what the script defines.
    """
    path = str(_ROOT / f"{script}.py")
    argv, sys.argv = sys.argv, [path, *arguments]
    try:
        # absl lets notes through in a process's first run only, and not where
        # the level was ever set before.
        level = flagsaver.flagsaver(verbosity=0)
        with only_flags_of(*flag_modules), level:
            return runpy.run_path(path, run_name=name)
    except SystemExit as exit_:
        return exit_.code
    finally:
        sys.argv = argv
        _end_determinism()


def _end_determinism() -> None:
    """Lets tests after a run draw without a seed: TensorFlow would refuse."""
    from tensorflow.python.framework import config

    config.disable_op_determinism()
