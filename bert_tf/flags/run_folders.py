"""Checks whether a run may write into a folder, from its contents."""

import os
import re
import sys
from collections.abc import Sequence

from bert_tf.errors import InputError
from bert_tf.flags import flag_sections, input_paths
from bert_tf.storage import file_systems, kept_flags, written_files

from absl import flags
from etils import epath

# The first line of a flags.txt.
_COMMAND = re.compile(
    r"# (?:bert-tf |python -m bert_tf |python -m |python )(\S+)"
)


def check(
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
    models = written_files.matching(names, written_files.MODELS)
    if models:
        raise InputError(
            f"{folder} holds a model ({models[0]}), and that of this run would "
            "lie beside it. Give it as --init_checkpoint, and a new folder as "
            f"--{name}. Received: {name}={folder}"
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
