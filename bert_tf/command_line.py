"""How every script starts and ends: log lines, one-line errors, flag files."""

import contextlib
import datetime
import logging as python_logging
import os
import re
import select
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from absl import app, flags, logging
from etils import epath

# TensorFlow's own file errors say all in one line, as OSError does. By name:
# scripts that do without TensorFlow start in a tenth of the time.
_TENSORFLOWS_FILE_ERRORS = (
    "NotFoundError",
    "PermissionDeniedError",
    "FailedPreconditionError",
    "ResourceExhaustedError",
    "UnimplementedError",  # a path such as s3://, without its plugin
    "UnauthenticatedError",
    "UnavailableError",  # a bucket, or the network to it
)


# TensorFlow's message has it behind the names of all functions on the way. An
# error of the same kind as that of a full disk.
_OUT_OF_MEMORY = re.compile(
    r"OOM when allocating[^\n]*|failed to allocate memory[^\n]*", re.IGNORECASE
)


def run(main: Callable[[list[str]], Any]) -> None:
    """Runs a script's `main`; the last line of every script.

    A user's mistake ends in one line on stderr and exit code 1. An error that
    we did not foresee keeps its traceback.
    """

    def guarded(argv):
        logging.get_absl_handler().setFormatter(_Formatter())
        python_logging.getLogger("tensorflow").setLevel("WARNING")
        try:
            _refuse_arguments(argv)
            return main(argv)
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _nobody_reads():
                return 128 + signal.SIGPIPE
            if not _foreseen(error, main):
                raise
            print(f"error: {_one_line(error)}", file=sys.stderr)
            return 1
        finally:
            _AT_END.close()

    app.run(guarded)


_AT_END = contextlib.ExitStack()


def at_end(function: Callable[[], None]) -> None:
    """Calls a function when the script ends, by an error or signal as well."""
    _AT_END.callback(function)


def unwind_at_sigterm() -> None:
    """Lets SIGTERM end the script as Ctrl-C does: what is half-written goes.

    For scripts whose work is lost anyway. Training saves instead.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def _nobody_reads() -> bool:
    """Whether who read our output has had enough, as `head` has."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if not poll.poll(0):
        return False
    # What is still to be written, also at the exit, goes nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


class _Formatter(python_logging.Formatter):
    """The time, the level if it is more than a note, and the message."""

    def __init__(self):
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")

    def format(self, record):
        if record.levelno < python_logging.WARNING:
            return super().format(record)
        time = self.formatTime(record, self.datefmt)
        return f"{time} {record.levelname}: {record.getMessage()}"


def _refuse_arguments(argv: list[str]) -> None:
    if len(argv) > 1:
        raise ValueError(
            f"Only flags are expected, as --name=value. Received: {argv[1]!r}"
        )


def _foreseen(error: BaseException, main: Callable[..., Any]) -> bool:
    """Whether the error is a check of ours, or of the file system."""
    if isinstance(error, (OSError, *_tensorflows_errors())):
        return True
    if not isinstance(error, (ValueError, FloatingPointError)):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    package = os.path.dirname(os.path.abspath(__file__)) + os.sep
    ours = (
        os.path.abspath(last.filename).startswith(package)
        or last.filename == main.__code__.co_filename
    )
    # int("x") in our code has no frame of its own, but is no check of ours.
    return ours and (last.line or "").startswith("raise ")


def _tensorflows_errors() -> tuple[type, ...]:
    tf = sys.modules.get("tensorflow")
    if tf is None:
        return ()
    return tuple(getattr(tf.errors, name) for name in _TENSORFLOWS_FILE_ERRORS)


def _one_line(error: BaseException) -> str:
    # TensorFlow's errors are long; they have the message by itself.
    text = getattr(error, "message", None) or str(error)
    out_of_memory = _OUT_OF_MEMORY.search(text)
    if out_of_memory:
        text = (
            "The device has too little memory. Take smaller batches, --remat, "
            "--dtype=bfloat16 or --gradient_accumulation_steps; pre-training "
            f"has --auto_batch_size. Received: {out_of_memory[0]}"
        )
    return " ".join(text.split()) or type(error).__name__


# ---- The flags of a run, as a flagfile --------------------------------------


def write_flagfile(path: str) -> None:
    """Writes the script's flags so that --flagfile=path repeats the run."""
    script = os.path.basename(sys.argv[0])
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    lines = [
        f"# python {script} --flagfile={path}",
        f"# {now}",
        *(f"--{name}={text}" for name, text in sorted(_values().items())),
    ]
    temporary = f"{path}.tmp{os.getpid()}"
    epath.Path(temporary).write_text("\n".join(lines) + "\n")
    epath.Path(temporary).replace(path)


def read_flagfile(path: str) -> dict[str, str]:
    """Returns the flags that `write_flagfile` wrote, as text by name."""
    lines = epath.Path(path).read_text().split("\n")
    texts = {}
    for line in lines:
        if line.startswith("--"):
            name, _, text = line.removeprefix("--").partition("=")
            texts[name] = text
    return texts


def check_same_run(path: str, identity: Iterable[str]) -> None:
    """Compares the flags with those of the run that the folder holds.

    Args:
        path: the run's flags.txt; nothing is checked if there is none.
        identity: names of flags that can't change while a run goes on. A
            change of any other is logged.
    """
    if not epath.Path(path).exists():
        return
    changed = changes(read_flagfile(path))
    fatal = [changed[name] for name in identity if name in changed]
    if fatal:
        raise ValueError(
            f"{os.path.dirname(path)} holds another run: {'; '.join(fatal)}. "
            "Choose another output_dir, or remove this one to start again."
        )
    for change in changed.values():
        logging.warning("Going on with another flag: %s", change)


def changes(before: Mapping[str, str]) -> dict[str, str]:
    """Says of each flag that is not what it was, what it was and is.

    Args:
        before: the flags of a run, from `read_flagfile`.
    """
    now = _values()
    return {
        name: f"{name} was {before.get(name)} and is {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    }


def values_of(*modules: types.ModuleType) -> dict[str, str]:
    """Name -> text of the modules' flags that have a value."""
    return {
        name: text
        for module in modules
        for name, text in _values(module.__name__).items()
    }


def _values(module: str | None = None) -> dict[str, str]:
    """Name -> text of a module's own flags, by default the script's."""
    own = flags.FLAGS.get_key_flags_for_module(module or sys.argv[0])
    return {f.name: _text(f) for f in own if f.value is not None}


def _text(flag: flags.Flag) -> str:
    if flag.boolean:
        return "true" if flag.value else "false"
    return flag.serialize().removeprefix(f"--{flag.name}=")
