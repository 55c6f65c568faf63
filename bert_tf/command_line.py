"""How every script starts and ends: flags, log lines, one-line errors.

A script defines its flags, calls `start(__name__)`, then imports what takes
seconds, and ends with `run(main)`.
"""

import contextlib
import difflib
import importlib.util
import logging as python_logging
import os
import re
import select
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import flag_sections, help_text, output_paths, quiet

from absl import app, flags, logging

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
# What TensorFlow puts around a message: who called, on what.
_OF_NO_USE = re.compile(r"\{\{[^}]*\}\}|\s*\[Op:\w+\](?: name: \S*)?")
_NO_FILE_SYSTEM = re.compile(
    r"File system scheme '(\w+)' not implemented \(file: '(.*)'\)"
)
# Columns of the log.
_WIDTH = 120


# ---- Start ------------------------------------------------------------------

_rest: list[str] | None = None  # of the command line, without flags


def start(
    name: str, always: Sequence[str] = (), later: Sequence[str] = ()
) -> None:
    """Reads the flags of a script, before it imports what takes seconds.

    `--help` and mistakes end the process here.

    Args:
        name: The script's `__name__`; nothing is done unless it is run.
        always: Flags that count as true, whatever they are, where others
            go with them.
        later: Flags that say nothing of themselves unless they are given:
            the run finds out what they are.
    """
    global _rest
    if name != "__main__":
        return
    _open_what_is_closed()
    logging.use_absl_handler()
    logging.get_absl_handler().setFormatter(_Formatter())
    logging.get_absl_handler().addFilter(_is_worth_a_line)
    try:
        _rest = _parse()
        if flags.FLAGS.only_check_args:
            sys.exit(0)
        output_paths.check_not_empty(flags.FLAGS)
        _check_required()
        _refuse_arguments(_rest)
        unknown = {x: flags.FLAGS[x].value for x in later}
        unused = flag_sections.check_used(flags.FLAGS, always, unknown)
        output_paths.check_local(flags.FLAGS)
        _check_tensorflow()
    except (ValueError, OSError) as error:
        _end(str(error))
    if flags.FLAGS["verbosity"].using_default_value:
        logging.set_verbosity(logging.INFO)
    for sentence in unused:
        logging.warning("%s", sentence)
    _use_tensorflow_in_keras()
    # Keras imports matplotlib, which ends where it lacks what this names. We
    # open no windows.
    os.environ["MPLBACKEND"] = "agg"
    if flags.FLAGS.verbosity > logging.INFO:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    elif "tensorflow" not in sys.modules:
        quiet.begin()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is done yet that would have to be undone.
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))


_closed: set[str] = set()


def was_closed(name: str) -> bool:
    """Whether whoever started us had closed "stdin", "stdout" or "stderr"."""
    return name in _closed


def _open_what_is_closed() -> None:
    """Opens standard input and outputs that whoever started us has closed.

    Else the next files have their numbers, and get what is printed.
    """
    for number, name, mode in (
        (0, "stdin", "r"),
        (1, "stdout", "w"),
        (2, "stderr", "w"),
    ):
        try:
            os.fstat(number)
        except OSError:
            file = os.open(os.devnull, os.O_RDWR)
            if file != number:
                os.dup2(file, number)
                os.close(file)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
            _closed.add(name)
    if logging.get_absl_handler().python_handler.stream is None:
        logging.get_absl_handler().python_handler.stream = sys.stderr


def _end(message: str) -> None:
    """Ends the script with one line."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(1)


class _Help(flags.BooleanFlag):
    """Shows help, and ends the script."""

    def __init__(self, name: str, text: str, full: bool):
        super().__init__(name, False, text, allow_override=True)
        self._full = full

    def parse(self, argument: Any) -> None:
        if not self._parse(argument):
            return
        main = sys.modules["__main__"]
        own = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
        script = os.path.basename(sys.argv[0])
        print(
            help_text.page(script, main.__doc__ or "", own, self._full), end=""
        )
        sys.exit(0)


def _parse() -> list[str]:
    """Reads the command line; ValueError for what is no flag of ours."""
    app.define_help_flags()
    for name, full in (
        ("help", False),
        ("helpshort", False),
        ("helpfull", True),
    ):
        flags.DEFINE_flag(_Help(name, "Shows the flags.", full))
    try:
        return flags.FLAGS(sys.argv)
    except flags.UnrecognizedFlagError as error:
        own = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
        names = [flag.name for flag in own]
        near = difflib.get_close_matches(error.flagname, names, 1)
        way_out = f"Did you mean --{near[0]}?" if near else ""
        script = os.path.basename(sys.argv[0])
        raise ValueError(
            f"There is no flag --{error.flagname}. {way_out} "
            f"python {script} --help shows all."
        ) from None
    except flags.CantOpenFlagFileError as error:
        cause = error.__context__
        raise _of_flagfile(getattr(cause, "strerror", None) or cause) from None
    except flags.Error as error:
        raise ValueError(_of_flag(str(error))) from None
    except UnicodeDecodeError as error:
        raise _of_flagfile(f"it is not UTF-8 text, {error.reason}") from None


def _of_flagfile(problem: object) -> ValueError:
    """Returns the error of a flagfile that can't be read."""
    names = [x for x in sys.argv if x.lstrip("-").startswith("flagfile")]
    return ValueError(
        f"A flagfile, or one that it names, can't be read: {problem}. Give a "
        f"text with a flag a line. Received: {', '.join(names)}"
    )


def _of_flag(message: str) -> str:
    """Returns absl's message about a value as ours would be."""
    # Ours say it all themselves.
    ours = re.match(r"flag --(\w+)=.*?: (--\1 must be .*)", message, re.DOTALL)
    if ours:
        return ours[2]
    boolean = re.match(
        r"flag --(\w+)=(.*): .*(?:boolean|Non-boolean)", message, re.DOTALL
    )
    if boolean:
        name, value = boolean.groups()
        return f"--{name} must be true or false. Received: {name}={value}"
    return message.removeprefix("flag ")


def _check_required() -> None:
    """Raises ValueError unless all flags are there that a run needs."""
    own = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
    missing = []
    for flag in own:
        about = flag_sections.about(flag)
        if about and about.required and flag.value in (None, "", []):
            first, _, _ = flag.help.partition(". ")
            missing.append(f"--{flag.name} ({first.rstrip('.')})")
    if missing:
        script = os.path.basename(sys.argv[0])
        raise ValueError(
            f"Give {', '.join(missing)}. python {script} --help shows all "
            "flags."
        )


def _check_tensorflow() -> None:
    """Raises ValueError where TensorFlow, which nearly all need, is missing."""
    if importlib.util.find_spec("tensorflow") is None:
        raise ValueError(
            "TensorFlow is not installed for this Python. In a clone: make "
            "venv, then .venv/bin/python instead of python; elsewhere: pip "
            f"install . Received: {sys.executable}"
        )


def _use_tensorflow_in_keras() -> None:
    wanted = os.environ.get("KERAS_BACKEND", "tensorflow")
    if wanted != "tensorflow" and "keras" not in sys.modules:
        logging.warning(
            "KERAS_BACKEND=%s is not used: the scripts compute with "
            "TensorFlow.",
            wanted,
        )
        os.environ["KERAS_BACKEND"] = "tensorflow"


# ---- Run --------------------------------------------------------------------


def run(main: Callable[[list[str]], Any]) -> None:
    """Runs a script's `main`; the last line of every script.

    A user's mistake ends in one line on stderr and exit code 1. An error that
    we did not foresee keeps its traceback.
    """
    global _rest
    if _rest is None:
        start("__main__")
    rest, _rest = _rest, None
    # While TensorFlow looks for devices it tells more of itself.
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].config.list_physical_devices()
    quiet.end()
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def guarded(argv):
        python_logging.getLogger("tensorflow").setLevel("WARNING")
        try:
            output_paths.check_remote(flags.FLAGS, of_runs=False)
            return main(argv)
        except KeyboardInterrupt:
            # Another one ends this at once, without a word of Python's.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
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

    app.run(guarded, flags_parser=lambda _: rest)


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


def _refuse_arguments(argv: list[str]) -> None:
    if len(argv) > 1:
        raise ValueError(
            f"Only flags are expected, as --name=value. Received: {argv[1]!r}"
        )


# ---- What is said -----------------------------------------------------------


def _is_worth_a_line(record: python_logging.LogRecord) -> bool:
    """Whether a line is ours, or one of TensorFlow's that was asked for."""
    is_ours = f"{os.sep}tensorflow{os.sep}" not in record.pathname
    is_wanted = flags.FLAGS.is_parsed() and flags.FLAGS.verbosity > logging.INFO
    return is_ours or is_wanted or record.levelno >= python_logging.ERROR


class _Formatter(python_logging.Formatter):
    """The time, the level if it is more than a note, and the message.

    Long lines are broken between words, and go on under their beginning.
    """

    def __init__(self):
        super().__init__("%(message)s", "%H:%M:%S")

    def format(self, record):
        head = f"{self.formatTime(record, self.datefmt)} "
        indent = " " * len(head)
        if record.levelno >= python_logging.WARNING:
            head += f"{record.levelname}: "
        lines: list[str] = []
        for line in (head + super().format(record)).split("\n"):
            lines += _broken(line, indent) if len(line) > _WIDTH else [line]
        return "\n".join(lines)


def _broken(line: str, indent: str) -> list[str]:
    """Breaks a line between words, where it can."""
    return textwrap.wrap(
        line,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
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
    scheme = _NO_FILE_SYSTEM.match(text)
    if scheme:
        text = (
            f"TensorFlow has no file system {scheme[1]}:// here. Give a local "
            f"path, or one of gs://. Received: {scheme[2]}"
        )
    text = _OF_NO_USE.sub("", text)
    return " ".join(text.split()) or type(error).__name__
