"""Startup and exit of every script: flags, logging, one-line errors.

A script defines its flags, calls `start(__name__)`, then imports slow modules,
and ends with `run(main)`.
"""

import contextlib
import difflib
import importlib.util
import itertools
import logging as python_logging
import os
import pathlib
import re
import select
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import bert_tf
from bert_tf import quiet, terminals
from bert_tf.errors import InputError
from bert_tf.flags import error_lines, flag_sections, help_text, output_paths
from bert_tf.storage import file_systems

from absl import app, flags, logging

# ---- Start ------------------------------------------------------------------

_rest: list[str] | None = None  # of the command line, without flags
_unsupported: Collection[str] = ()  # flags that `--help` leaves out


def start(
    name: str,
    always: Sequence[str] = (),
    later: Sequence[str] = (),
    unsupported: Collection[str] = (),
) -> None:
    """Parses the flags of a script, before it imports slow modules.

    `--help` and invalid flags end the process here.

    Args:
        name: The script's `__name__`; does nothing unless it is "__main__".
        always: Flags that count as true in the conditions of other flags,
            whatever their values.
        later: Flags that the run determines itself if they are omitted;
            conditions on them are not checked here.
        unsupported: Flags of other scripts that this one rejects. `--help`
            hides them.
    """
    global _rest, _unsupported
    if name != "__main__":
        return
    _unsupported = unsupported
    _open_what_is_closed()
    logging.use_absl_handler()
    logging.get_absl_handler().setFormatter(terminals.LogFormatter())
    logging.get_absl_handler().addFilter(_is_worth_a_line)
    try:
        _rest = _parse()
        file_systems.check_working_folder()
        if flags.FLAGS.only_check_args:
            sys.exit(0)
        if _rest[1:]:
            raise InputError(
                "Only flags are expected, as --name=value. "
                f"Received: {_rest[1]!r}"
            )
        output_paths.check_not_empty()
        _check_required()
        unknown = {
            x: flags.FLAGS[x].value if flags.FLAGS[x].present else None
            for x in later
        }
        not_used = flag_sections.check_used(always, unknown)
        output_paths.check_local()
        _check_tensorflow()
    except (InputError, OSError) as error:
        _end(str(error))
    if flags.FLAGS["verbosity"].using_default_value:
        logging.set_verbosity(logging.INFO)
    for sentence in not_used:
        logging.warning("%s", sentence)
    _use_tensorflow_in_keras()
    # matplotlib fails if the backend that this specifies is not installed. We
    # open no windows.
    os.environ["MPLBACKEND"] = "agg"
    if flags.FLAGS.verbosity > logging.INFO:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    elif "tensorflow" not in sys.modules:
        if sys.stderr.isatty():
            logging.info("Loading libraries.")
        quiet.begin()
    cache_compiled()
    quiet.skip_unused_imports()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing has been done yet that would need cleanup.
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))


def _is_worth_a_line(record: python_logging.LogRecord) -> bool:
    """Whether a line is ours, or from TensorFlow at the requested level."""
    is_ours = f"{os.sep}tensorflow{os.sep}" not in record.pathname
    if is_ours or record.levelno >= python_logging.ERROR:
        return True
    return flags.FLAGS.is_parsed() and flags.FLAGS.verbosity > logging.INFO


_closed: set[str] = set()


def was_closed(name: str) -> bool:
    """Whether "stdin", "stdout" or "stderr" was closed at startup."""
    return name in _closed


def _open_what_is_closed() -> None:
    """Opens standard streams that were closed at startup.

    Otherwise the next files to be opened would get their numbers, and printed
    output would be written to them.
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
    """Exits the script with a one-line error."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(1)


class _Help(flags.BooleanFlag):
    """A flag that prints help and exits."""

    def __init__(self, name: str, full: bool):
        super().__init__(name, False, "Shows the flags.", allow_override=True)
        self._full = full

    def parse(self, argument: Any) -> None:
        if not self._parse(argument):
            return
        main = sys.modules["__main__"]
        own = [
            flag
            for flag in flags.FLAGS.get_key_flags_for_module(sys.argv[0])
            if flag.name not in _unsupported
        ]
        terminals.write(help_text.page(main.__doc__ or "", own, self._full))
        sys.exit(0)


def _parse() -> list[str]:
    """Parses the command line; InputError for unknown flags."""
    app.define_help_flags()
    for name, full in (
        ("help", False),
        ("helpshort", False),
        ("helpfull", True),
    ):
        flags.DEFINE_flag(_Help(name, full))
    arguments = ["--help" if x == "-h" else x for x in sys.argv]
    if arguments[1:] == ["--version"]:
        terminals.write(f"bert-tf {bert_tf.__version__}\n")
        sys.exit(0)
    for path in (x.partition("flagfile=")[2] for x in arguments):
        if path and file_systems.is_special(path):
            text = f"Waiting for the program that writes to {path}."
            print(text, file=sys.stderr)
    try:
        expanded, notes = _expand(arguments[1:])
        rest = flags.FLAGS([arguments[0], *expanded])
        for note in notes:
            logging.warning("%s", note)
        return rest
    except flags.UnrecognizedFlagError as error:
        own = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
        names = [flag.name for flag in own]
        near = difflib.get_close_matches(error.flagname, names, 1)
        way_out = f"Did you mean --{near[0]}?" if near else ""
        raise InputError(
            f"There is no flag --{error.flagname}. {way_out} "
            f"{help_text.command()} --help shows all."
        ) from None
    except flags.CantOpenFlagFileError as error:
        cause = error.__context__
        raise _of_flagfile(getattr(cause, "strerror", None) or cause) from None
    except flags.Error as error:
        raise InputError(_of_flag(str(error))) from None
    except UnicodeDecodeError as error:
        raise _of_flagfile(f"it is not UTF-8 text, {error.reason}") from None


def _expand(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Reads the flagfiles of a command line, and settles what aliases say.

    Of two names of a flag, the later counts, as for a flag given twice, but
    within the command line or within a flagfile, where nobody overrides a value
    on purpose. A choice that was made within the command line always counts.

    Returns:
        All arguments, and sentences about names that do not count.
    """
    expanded: list[str] = []
    own: list[str] = []
    notes: list[str] = []
    while arguments:
        is_file = re.match("--?flagfile(=|$)", arguments[0])
        number = 2 if is_file and not is_file[1] else 1
        given, arguments = arguments[:number], arguments[number:]
        if not is_file:
            own += given
        else:
            given = flags.FLAGS.read_flags_from_files(given)
            given += _winners(given, notes)
        expanded += given
    return expanded + _winners(own, notes), notes


def _winners(arguments: list[str], notes: list[str]) -> list[str]:
    """Returns arguments that make aliases count which win over a flag."""
    named: dict[str, str] = {}
    for argument, following in itertools.pairwise([*arguments, ""]):
        name, has_value, value = argument.partition("=")
        if name.startswith("-"):
            named[name.lstrip("-")] = value if has_value else following
    winners = []
    for alias in [name for name in named if name in flags.FLAGS]:
        about = flag_sections.find_about(flags.FLAGS[alias])
        if about is None or not about.alias:
            continue
        name = about.alias
        if named.get(name, named[alias]) == named[alias]:
            continue
        if not about.wins:
            raise InputError(
                f"--{alias} is another name of --{name}: leave one out. "
                f"Received: {alias}={named[alias]}, {name}={named[name]}"
            )
        if not named[alias]:  # The empty value of a variable that is not set.
            winners.append(f"--{name}={named[name]}")
            continue
        notes.append(
            f"Not used, because --{alias}={named[alias]} is another name of "
            f"it: --{name}={named[name]}."
        )
        winners.append(f"--{name}={named[alias]}")
    return winners


def _of_flagfile(problem: object) -> InputError:
    """Returns the error for a flagfile that can't be read."""
    names = [x for x in sys.argv if x.lstrip("-").startswith("flagfile")]
    way_out = "Give a text with a flag a line."
    if any("=configs/" in name for name in names):
        way_out = (
            "The flagfiles of this project are in configs/ of a clone; bert-tf "
            "configs copies them to here."
        )
    return InputError(
        f"A flagfile, or one that it names, can't be read: {problem}. "
        f"{way_out} Received: {', '.join(names)}"
    )


def _of_flag(message: str) -> str:
    """Converts absl's message about a value to our format."""
    # Our own messages are already complete.
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
    """Raises InputError if a required flag is missing."""
    own = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
    missing = []
    for flag in own:
        about = flag_sections.find_about(flag)
        if about and about.required and flag.value in (None, "", []):
            first, _, _ = flag.help.partition(". ")
            missing.append(f"--{flag.name} ({first.rstrip('.')})")
    if missing:
        raise InputError(
            f"Give {', '.join(missing)}. {help_text.command()} --help shows "
            "all flags."
        )


def _check_tensorflow() -> None:
    """Raises InputError if TensorFlow is missing, which most scripts need."""
    if importlib.util.find_spec("tensorflow") is None:
        raise InputError(
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


# ---- Settings of XLA --------------------------------------------------------

_TENSORFLOW_FLAGS = "TF_XLA_FLAGS"
_XLA_FLAGS = "XLA_FLAGS"
# What XLA replays as CUDA graphs. By default that includes cuDNN's calls, whose
# dropout would then be the same in each step.
_COMMANDS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL"
# A program of BERT-Large takes some tens of megabytes. A failed write would
# end the run.
_ROOM = 2**30
# NVIDIA, AMD, and either of them under WSL2.
_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def cache_compiled() -> None:
    """Sets the flags of XLA, if this machine has a GPU.

    Compiled programs and the fastest kernels that XLA finds by timing are kept
    in the user's cache folder. Flags that are already set stay. TensorFlow
    reads them when it starts. Programs for CPUs are not cached: XLA does not
    trust them even on the same machine.
    """
    if not any(map(os.path.exists, _GPUS)):
        return
    _add_flags(_XLA_FLAGS, _COMMANDS)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(cache, "bert_tf", "xla")
    kernels = folder / "kernels"
    if not _has_room(kernels):
        return
    _add_flags(
        _XLA_FLAGS, f"--xla_gpu_per_fusion_autotune_cache_dir='{kernels}'"
    )
    _add_flags(
        _TENSORFLOW_FLAGS,
        f"--tf_xla_persistent_cache_directory='{folder}'",
        "--tf_xla_persistent_cache_device_types=GPU",
    )


def _add_flags(variable: str, flag: str, *others: str) -> None:
    """Adds flags to an environment variable, unless it has the first one."""
    given = os.environ.get(variable, "")
    if flag.partition("=")[0] not in given:
        os.environ[variable] = " ".join([given, flag, *others]).strip()


def _has_room(folder: pathlib.Path) -> bool:
    """Creates the folder, and returns whether it has room for programs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError:
        return False
    is_ours = os.access(folder, os.W_OK) and "'" not in str(folder)
    return is_ours and free > _ROOM


# ---- Run --------------------------------------------------------------------


def run(main: Callable[[list[str]], Any]) -> None:
    """Runs a script's `main`; the last line of every script.

    A user error ends with one line on stderr and exit code 1. An unexpected
    error keeps its traceback.
    """
    global _rest
    if _rest is None:
        start("__main__")
    rest, _rest = _rest, None
    # TensorFlow logs more about itself while it looks for devices.
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].config.list_physical_devices()
    quiet.end()
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def without_bars(argv):
        from bert_tf import phases  # slow to import

        try:
            return main(argv)
        finally:
            phases.close_bars()  # before errors are printed

    def guarded(argv):
        python_logging.getLogger("tensorflow").setLevel("WARNING")
        try:
            output_paths.check_remote(of_runs=False)
            with output_paths.reserved():
                return without_bars(argv)
        except KeyboardInterrupt:
            # A second Ctrl-C exits at once, without a Python traceback.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            return 128 + signal.SIGINT
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _nobody_reads():
                return 128 + signal.SIGPIPE
            if not error_lines.is_foreseen(error):
                raise
            print(f"error: {error_lines.one_line(error)}", file=sys.stderr)
            return 1
        finally:
            _AT_END.close()

    app.run(guarded, flags_parser=lambda _: rest)


_AT_END = contextlib.ExitStack()


def at_end(function: Callable[[], None]) -> None:
    """Registers a function to call when the script ends, even by an error."""
    _AT_END.callback(function)


def unwind_at_signals() -> None:
    """Makes SIGTERM and SIGHUP end the script as Ctrl-C does, with cleanup.

    For scripts whose unfinished work is lost anyway; training saves instead.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # nohup ignores it, and so do we then.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _end_without_terminal)


def _end_without_terminal(*_: Any) -> None:
    terminals.let_go()
    sys.exit(128 + signal.SIGHUP)


def _nobody_reads() -> bool:
    """Whether the reader of our output has closed it, as `head` does."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if not poll.poll(0):
        return False
    # Remaining output, including that at exit, is discarded.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True
