"""Protects inputs and other files from outputs, for all scripts.

An output path is rejected if the same command reads it, or if it exists and the
script did not create it. `--overwrite`, in scripts that have it, allows the
latter.
"""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.flags import flag_sections, input_paths
from bert_tf.storage import file_systems, kept_flags, writer_lock, written_files

from absl import flags
from etils import epath

# Schemes of buckets; some need a plugin.
_SCHEMES = ("gs", "s3", "az", "hf")


def check_local() -> None:
    """Checks all outputs that the flags specify, except those in buckets.

    Raises:
        InputError: An output is also an input, exists already, or can't be
            written. The message names both flags.
    """
    _check(lambda path, _: not file_systems.is_remote(path))
    _check_apart()


def _check_apart() -> None:
    """Raises InputError if two outputs are equal, or one contains the other."""
    before: dict[str, tuple[str, str]] = {}
    apart = (flag_sections.FILE, flag_sections.NEW_FOLDER)
    for flag, path in _given(flag_sections.OUTPUT):
        how = flag_sections.find_about(flag)
        if how is None or how.holds not in apart:
            continue
        if file_systems.is_remote(path):
            continue
        real = os.path.realpath(path)
        for other, (name, theirs) in before.items():
            if os.path.commonpath([real, other]) in (real, other):
                raise InputError(
                    f"--{flag.name} and --{name} would be written over one "
                    "another: name paths apart. "
                    f"Received: {flag.name}={path}, {name}={theirs}"
                )
        before[real] = flag.name, path


def check_remote(of_runs: bool) -> None:
    """Checks outputs in buckets as `check_local` does; needs TensorFlow.

    `of_runs` is whether to check folders of runs, or all other outputs.
    """

    def is_asked_for(path, how):
        is_run = how.holds == flag_sections.RUN
        return file_systems.is_remote(path) and is_run == of_runs

    _check(is_asked_for)


@contextlib.contextmanager
def reserved() -> Iterator[None]:
    """Keeps other processes from writing the output files of a script.

    Raises InputError if another process is writing one, or has written it since
    `check_local`.
    """

    def is_local_file(path, how):
        is_file = how.holds == flag_sections.FILE
        return is_file and not file_systems.is_remote(path)

    with contextlib.ExitStack() as stack:
        for flag, path in _given(flag_sections.OUTPUT):
            how = flag_sections.find_about(flag)
            if how is not None and is_local_file(path, how):
                with files.naming(path, path + writer_lock.ENDING):
                    stack.enter_context(writer_lock.reserve(path))
        _check(is_local_file)
        yield


def _check(is_asked_for: Callable[[str, flag_sections.About], bool]) -> None:
    inputs = list(_given(flag_sections.INPUT))
    overwrite = "overwrite" in flags.FLAGS and bool(
        flags.FLAGS["overwrite"].value
    )
    for flag, path in _given(flag_sections.OUTPUT):
        how = flag_sections.find_about(flag)
        if how is None or not is_asked_for(path, how):
            continue
        is_new = not (file_systems.is_remote(path) or os.path.lexists(path))
        if is_new and ".." in path.split("/"):
            # A `..` after a missing folder cannot be resolved.
            path = os.path.realpath(path)
        own = [path, *(path + ending for ending in how.beside)]
        _check_writable(flag.name, path)
        if how.holds in (flag_sections.RUN, flag_sections.FOLDER):
            place = epath.Path(path)
            if place.exists() and not place.is_dir():
                raise InputError(
                    f"--{flag.name} must be a folder, and this is a file. "
                    f"Received: {flag.name}={path}"
                )
        for each in own:
            input_paths.check_no_input(flag.name, each, inputs, how)
        if how.holds == flag_sections.RUN:
            check_run_folder(flag.name, path, inputs, overwrite)
        elif how.holds == flag_sections.NEW_FOLDER:
            _check_new_folder(flag.name, path, how.own, overwrite)
        elif how.holds == flag_sections.FILE:
            for each in own:
                _check_file(flag.name, each, overwrite)


def check_not_empty() -> None:
    """Raises InputError if a flag has an empty path, or one in two lines."""
    for role in (flag_sections.INPUT, flag_sections.OUTPUT):
        for flag, path in _given(role):
            if not path.strip():
                if isinstance(flag.value, list) and len(flag.value) > 1:
                    raise InputError(
                        f"--{flag.name} has a comma too many, or a variable of "
                        "the shell is not set: one of its names is empty. "
                        f"Received: {flag.name}={','.join(flag.value)}"
                    )
                raise InputError(
                    f"--{flag.name} is empty. Is a variable of the shell not "
                    "set? Give a path, or leave the flag out."
                )
            _check_spelling(flag, path)
            _check_scheme(flag, path)


def _check_spelling(flag: flags.Flag, path: str) -> None:
    """Raises InputError for names that flags.txt or TensorFlow can't handle."""
    if "\n" in path or "\r" in path:
        raise InputError(
            f"--{flag.name} holds a line end, which flags.txt can't keep. "
            f"Rename the file or folder. Received: {flag.name}={path!r}"
        )
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"--{flag.name} is no UTF-8 text, and TensorFlow finds no other "
            "names. Rename the file or folder; or if it is UTF-8, and this is "
            "another locale, set PYTHONUTF8=1. "
            f"Received: {flag.name}={path!a}"
        ) from error


def _check_scheme(flag: flags.Flag, path: str) -> None:
    """Raises InputError for addresses that are not file systems."""
    how = flag_sections.find_about(flag)
    # Models may also be downloaded.
    is_model = how is not None and how.holds == flag_sections.MODEL
    scheme, is_address, _ = path.partition("://")
    if is_address and not is_model and scheme not in _SCHEMES:
        raise InputError(
            f"There is no file system {scheme}:// here. Give a local path, or "
            f"one of gs://. Received: {flag.name}={path}"
        )


def _given(role: str) -> Iterator[tuple[flags.Flag, str]]:
    """Yields the paths of flags with a role."""
    for name in sorted(flags.FLAGS):
        flag = flags.FLAGS[name]
        how = flag_sections.find_about(flag)
        if how is None or how.role != role or flag.name != name:
            continue
        if flag.value is None:
            continue
        paths = flag.value if isinstance(flag.value, list) else [flag.value]
        for path in paths or [""]:
            yield flag, path


# ---- Files ------------------------------------------------------------------


def _check_file(name: str, path: str, overwrite: bool) -> None:
    """Raises InputError if the output file exists already."""
    place = epath.Path(path)
    if path.endswith("/") or place.is_dir():
        raise InputError(
            f"--{name} must name a file, and this is a folder. "
            f"Received: {name}={path}"
        )
    # A file from mktemp is empty and meant to be written; devices are no files.
    is_file = file_systems.is_remote(path) or os.path.isfile(path)
    if place.exists() and is_file and place.stat().length and not overwrite:
        raise InputError(
            f"{path} exists. Choose another --{name}, or replace it by "
            f"--overwrite. Received: {name}={path}"
        )


def _check_writable(name: str, path: str) -> None:
    """Raises InputError if nothing can be created at a path."""
    if file_systems.is_remote(path):
        return
    folder = os.path.abspath(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.exists(folder):
        raise InputError(
            f"--{name} can't be made: {folder} is a link to what is not there. "
            f"Remove it. Received: {name}={path}"
        )
    if folder != os.path.abspath(path) and not os.path.isdir(folder):
        raise InputError(
            f"--{name} can't be made: {folder} is no folder. "
            f"Received: {name}={path}"
        )
    try:
        longest = os.pathconf(folder, "PC_NAME_MAX")  # in bytes
    except OSError:
        longest = 255
    longest -= len(writer_lock.ENDING)
    for part in os.path.relpath(path, folder).split(os.sep):
        if len(os.fsencode(part)) > longest:
            raise InputError(
                f"--{name} can't be made: a name has at most {longest} bytes "
                f"there. Choose a shorter one. Received: {part[:40]}..., "
                f"{len(os.fsencode(part))} bytes"
            )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"--{name} can't be written: there is no permission to write to "
            f"{folder}. Received: {name}={path}"
        )


# ---- Folders ----------------------------------------------------------------


def _check_new_folder(
    name: str, path: str, own: Sequence[str], overwrite: bool
) -> None:
    """Raises InputError unless a folder is new, empty or replaceable.

    Args:
        name: Name of the flag.
        path: Path of the folder.
        own: Patterns of the script's files: only a folder that has nothing else
            is replaced.
        overwrite: Whether it may be replaced.
    """
    place = epath.Path(path)
    if not place.exists():
        return
    if not place.is_dir():
        raise InputError(
            f"--{name} must be a new folder, and this is a file. "
            f"Received: {name}={path}"
        )
    files.check_not_mounted(path, name)
    names = sorted(each.name for each in place.iterdir())
    others = written_files.foreign(names, own)
    if names and (others or not overwrite):
        way_out = " or replace it by --overwrite" * (not others)
        raise InputError(
            f"{path} holds {(others or names)[0]}, and must be new or empty: "
            f"choose another --{name}{way_out}. Received: {name}={path}"
        )


# ---- Folders of runs --------------------------------------------------------

# The first line of a flags.txt.
_COMMAND = re.compile(
    r"# (?:bert-tf |python -m bert_tf |python -m |python )(\S+)"
)


def check_run_folder(
    name: str,
    folder: str,
    inputs: Sequence[tuple[flags.Flag, str]],
    overwrite: bool,
) -> None:
    """Raises InputError unless a run may write into a folder.

    The folder may be new or empty, have a run of the same script, or have only
    files whose names runs do not use.

    Args:
        name: Name of the folder's flag.
        folder: Path of the folder.
        inputs: Input flags of the command, with their paths.
        overwrite: Whether files that do not belong to a run may be replaced.
    """
    place = epath.Path(folder)
    if "[" in folder and file_systems.is_remote(folder):
        raise InputError(
            "TensorFlow takes the name of a checkpoint for a glob, so it would "
            "not find those of a bucket's folder with a bracket in its name: "
            f"choose another name. Received: {name}={folder!r}"
        )
    if not place.exists():
        return
    names = sorted(path.name for path in place.iterdir())
    _check_kinds(name, place, names)
    _check_not_read(name, folder, inputs)
    if _is_run(names):
        _check_same_script(name, place)
        return
    models = written_files.matching(names, written_files.models())
    if models:
        raise InputError(
            f"{folder} holds a model ({models[0]}), and this run would write "
            "another next to it. Pass the folder as --init_checkpoint, and a "
            f"new folder as --{name}. Received: {name}={folder}"
        )
    foreign = written_files.matching(names, written_files.RUN_FILES)
    if foreign and not overwrite:
        raise InputError(
            f"{folder} holds {', '.join(foreign[:3])}"
            f"{' and others' * (len(foreign) > 3)}, which this run would "
            f"replace and no run of ours wrote. Choose another --{name}, or "
            f"replace them by --overwrite. Received: {name}={folder}"
        )


def _check_kinds(name: str, place: epath.Path, names: Sequence[str]) -> None:
    """Raises InputError if there is a folder where a run writes a file.

    Otherwise the run would fail at its end, when it writes the file. It would
    block on a pipe.
    """
    if file_systems.is_remote(os.fspath(place)):
        return
    for own in written_files.matching(names, written_files.RUN_FILES):
        if file_systems.is_special(os.fspath(place / own)):
            raise InputError(
                f"{place / own} is a pipe or a device, and the run writes a "
                f"file of that name: remove it, or choose another --{name}. "
                f"Received: {name}={os.fspath(place)}"
            )
    for own in written_files.matching(
        names, (*written_files.RESULT_FILES, *written_files.STATE_FILES)
    ):
        if (place / own).is_dir():
            raise InputError(
                f"{place / own} is a folder, and the run writes a file of that "
                f"name: remove it, or choose another --{name}. "
                f"Received: {name}={os.fspath(place)}"
            )
    for own in written_files.matching(names, ("best", "export")):
        if not (place / own).is_dir():
            raise InputError(
                f"{place / own} is no folder, and the run writes one of that "
                f"name: remove it, or choose another --{name}. "
                f"Received: {name}={os.fspath(place)}"
            )


def _check_not_read(
    name: str, folder: str, inputs: Sequence[tuple[flags.Flag, str]]
) -> None:
    """Raises InputError if the run would replace a file that it reads."""
    for flag, path in inputs:
        how = flag_sections.find_about(flag)
        # A run may read its own folder, whose model it rewrites unchanged.
        is_model = how is not None and how.holds == flag_sections.MODEL
        inside, file = os.path.split(path)
        if is_model or not written_files.matching(
            [file], written_files.RUN_FILES
        ):
            continue
        if inside.rstrip("/") == folder.rstrip("/") or (
            not file_systems.is_remote(folder)
            and input_paths.is_same_file(inside or ".", folder)
        ):
            raise InputError(
                f"The run would write over what --{flag.name} reads: choose "
                f"another --{name}. Received: {name}={folder}, "
                f"{flag.name}={path}"
            )


def _is_run(names: Sequence[str]) -> bool:
    """Whether file names belong to a run, or to a run of the original."""
    return bool(
        {kept_flags.FILE, "lock", "evaluation.lock", "results.jsonl"}
        & set(names)
        or written_files.matching(names, ["model.ckpt-*.index"])
    )


def _check_same_script(name: str, place: epath.Path) -> None:
    """Raises InputError if the run in a folder is another script's."""
    file = place / kept_flags.FILE
    if not file.exists():
        return
    # A file that is not text is reported later, when the run resumes.
    written = _COMMAND.match(file.read_bytes().decode(errors="replace"))
    theirs = _script(written[1]) if written else None
    ours = _script(sys.argv[0])
    if theirs and theirs != ours:
        raise InputError(
            f"{os.fspath(place)} holds a run of {theirs}, not of {ours}: "
            f"choose another --{name}, and give its weights by "
            f"--init_checkpoint. Received: {name}={os.fspath(place)}"
        )


def _script(path: str) -> str:
    """Returns a script's file name, also for a command of bert-tf."""
    return f"{os.path.basename(path).removesuffix('.py')}.py"
