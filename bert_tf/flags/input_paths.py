"""Protects inputs: checks that no output path is also read."""

import fnmatch
import glob
import os
from collections.abc import Sequence

from bert_tf.errors import InputError
from bert_tf.flags import flag_sections
from bert_tf.storage import file_systems

from absl import flags

# Subfolders of a model that are read along with it.
_PARTS_OF_MODELS = ("variables", "assets", "best", "1_Pooling")


def check_no_input(
    name: str,
    path: str,
    inputs: Sequence[tuple[flags.Flag, str]],
    output: flag_sections.About,
) -> None:
    """Raises InputError if an output is an input, or a part of one.

    Args:
        name: Name of the output's flag.
        path: Path of the output.
        inputs: Input flags of the command, with their paths.
        output: Properties of the output.
    """
    is_whole = output.holds == flag_sections.NEW_FOLDER
    own = [path]
    if output.holds == flag_sections.FOLDER:
        own = [os.path.join(path, file) for file in output.own]
    for flag, pattern in inputs:
        how = flag_sections.find_about(flag)
        is_model = how is not None and how.holds == flag_sections.MODEL
        received = f"Received: {name}={path}, {flag.name}={pattern}"
        if _is_same(path, pattern, is_model) or (
            is_whole and _lies_in(pattern, path)
        ):
            raise InputError(
                f"--{name} would be written over what --{flag.name} reads: "
                f"choose another. {received}"
            )
        if any(_is_matched(file, pattern) for file in own):
            raise InputError(
                f"--{flag.name} would read what is written to --{name} when "
                "this command is given again: choose another place, or name "
                f"the files to read more closely. {received}"
            )


def _lies_in(path: str, folder: str) -> bool:
    """Whether a path is an existing folder, or is in it."""
    if file_systems.is_remote(folder):
        return f"{path}/".startswith(folder.rstrip("/") + "/")
    if file_systems.is_remote(path) or not os.path.isdir(folder):
        return False
    inside = os.path.join(os.path.realpath(folder), "")
    return os.path.join(os.path.realpath(path), "").startswith(inside)


def _is_matched(path: str, pattern: str) -> bool:
    """Whether a glob matches a path, even if there is no such file."""
    if not set("*?[") & set(pattern) or os.path.exists(pattern):
        return False
    parts, patterns = (
        (x if file_systems.is_remote(x) else os.path.abspath(x)).split("/")
        for x in (path, pattern)
    )
    if "**" in patterns:  # Any folders: compares the start and the name.
        before = patterns.index("**")
        parts = [*parts[:before], parts[-1]]
        patterns = [*patterns[:before], patterns[-1]]
    return len(parts) == len(patterns) and all(
        map(fnmatch.fnmatchcase, parts, patterns)
    )


def _is_same(path: str, pattern: str, is_model: bool) -> bool:
    """Whether writing to a path would change an input.

    Args:
        path: The file or folder to be written.
        pattern: The input: a file, a glob, a folder or, for a model, the prefix
            of a checkpoint.
        is_model: Whether it is allowed to write to the folder of a model, as a
            run that resumes does.
    """
    if file_systems.is_remote(path) or file_systems.is_remote(pattern):
        path, pattern = path.rstrip("/"), pattern.rstrip("/")
        return path == pattern or fnmatch.fnmatchcase(path, pattern)
    if not os.path.exists(path):
        return False
    if os.path.isdir(path):
        # An earlier run wrote this folder, and this run may resume it.
        return not is_model and is_same_file(path, pattern)
    if os.path.isdir(pattern):
        folder = os.path.dirname(path) or "."
        parts = ("", *_PARTS_OF_MODELS) if is_model else ("",)
        return any(
            is_same_file(folder, os.path.join(pattern, x)) for x in parts
        )
    if is_model and path.startswith(f"{pattern}."):
        return True
    found = [pattern] if os.path.exists(pattern) else glob.glob(pattern)
    return any(is_same_file(path, each) for each in found)


def is_same_file(left: str, right: str) -> bool:
    """Whether two paths refer to one file, including links."""
    return (
        os.path.exists(left)
        and os.path.exists(right)
        and os.path.samefile(left, right)
    )
