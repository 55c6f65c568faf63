"""No output destroys an input, or what is not ours: one rule for all scripts.

A path to write is refused if the same command reads it, and if something lies
there that the script did not write; `--overwrite`, where a script has it,
allows to replace the latter.
"""

import fnmatch
import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from bert_tf import file_systems, flag_sections

from absl import flags
from etils import epath

# What runs write into their folder where they evaluate and predict.
RESULT_FILES = (
    *("eval_results*.txt", "eval_report*.txt", "confusion_matrix*.png"),
    *("test_results*.tsv", "test_results.txt", "test_report.txt"),
    *("predictions*.jsonl", "test_predictions.*", "test_entities.jsonl"),
    *("predictions.json", "nbest_predictions.json", "null_odds.json"),
    *("null_score_diff_threshold.txt", "flags.txt"),
)
# What they write where they train, beside checkpoints.
_STATE_FILES = (
    *("metrics.jsonl", "checkpoint", "bert_config.json", "vocab.txt"),
    *("labels.txt", "train_examples.json"),
)
# All that they write: nothing of these names may be there unless a run of
# ours, or of the original, is.
RUN_FILES = (
    *RESULT_FILES,
    *_STATE_FILES,
    *("model.ckpt-*", "best", "export", "*.tf_record"),
    *("micro_batches.txt", "results.jsonl"),
    *("table.md", "table.json", "submission.zip", "encoders", "model"),
    *("lock", "evaluation.lock"),
)
# Weights of a model that was brought here: two models in a folder mislead.
_MODELS = (
    *("bert_model.ckpt.*", "model.safetensors*", "pytorch_model*.bin"),
    *("model.weights.h5", "saved_model.pb"),
)
# What is written into the folders of a SavedModel and of a checkpoint.
SAVED_MODEL = (
    *("saved_model.pb", "fingerprint.pb", "variables", "assets"),
    *("assets.extra", "keras_metadata.pb"),
)
CHECKPOINT = (
    *_MODELS[:-1],
    *("bert_config.json", "config.json", "metadata.json", "task.json"),
    *("vocab.txt", "labels.txt", "tokenizer*.json", "preprocessor.json"),
    *("special_tokens_map.json", "assets"),
)
# Folders in that of a model, which are read with it.
_PARTS_OF_MODELS = ("variables", "assets", "best", "1_Pooling")
# Of buckets, some with a plug-in.
_SCHEMES = ("gs", "s3", "az", "hf")
_COMMAND = re.compile(r"# python (?:-m )?(\S+)")


def check_local(known: flags.FlagValues) -> None:
    """Looks at all outputs that the flags name, but those in buckets.

    Args:
        known: All flags, parsed.

    Raises:
        ValueError: One of them is an input, holds something else, or can't be
            written. Names both flags.
    """
    _check(known, lambda path, _: not file_systems.is_remote(path))
    _check_apart(known)


def _check_apart(known: flags.FlagValues) -> None:
    """Raises ValueError if two flags name one output, or one inside another."""
    before: dict[str, tuple[str, str]] = {}
    apart = (flag_sections.FILE, flag_sections.NEW_FOLDER)
    for flag, path in _given(known, flag_sections.OUTPUT):
        how = flag_sections.about(flag)
        if how is None or how.holds not in apart:
            continue
        if file_systems.is_remote(path):
            continue
        real = os.path.realpath(path)
        for other, (name, theirs) in before.items():
            if os.path.commonpath([real, other]) in (real, other):
                raise ValueError(
                    f"--{flag.name} and --{name} would be written over one "
                    "another: name paths apart. "
                    f"Received: {flag.name}={path}, {name}={theirs}"
                )
        before[real] = flag.name, path


def check_remote(known: flags.FlagValues, of_runs: bool) -> None:
    """Looks at outputs in buckets as `check_local` does; needs TensorFlow.

    Args:
        known: All flags, parsed.
        of_runs: Whether to look at folders of runs, or at all others.
    """

    def is_asked_for(path, how):
        is_run = how.holds == flag_sections.RUN
        return file_systems.is_remote(path) and is_run == of_runs

    _check(known, is_asked_for)


def _check(
    known: flags.FlagValues,
    is_asked_for: Callable[[str, flag_sections.About], bool],
) -> None:
    inputs = list(_given(known, flag_sections.INPUT))
    overwrite = "overwrite" in known and bool(known["overwrite"].value)
    for flag, path in _given(known, flag_sections.OUTPUT):
        how = flag_sections.about(flag)
        if how is None or not is_asked_for(path, how):
            continue
        path = _as_made(path)
        own = [path, *(path + ending for ending in how.beside)]
        _check_writable(flag.name, path)
        if how.holds in (flag_sections.RUN, flag_sections.FOLDER):
            _check_no_file(flag.name, path)
        for each in own:
            _check_no_input(flag.name, each, inputs, how)
        if how.holds == flag_sections.RUN:
            _check_run_folder(flag.name, path, inputs, overwrite)
        elif how.holds == flag_sections.NEW_FOLDER:
            _check_new_folder(flag.name, path, how.own, overwrite)
        elif how.holds == flag_sections.FILE:
            for each in own:
                _check_file(flag.name, each, overwrite)


def check_not_empty(known: flags.FlagValues) -> None:
    """Raises ValueError if a flag gives an empty path, or one in two lines."""
    for role in (flag_sections.INPUT, flag_sections.OUTPUT):
        for flag, path in _given(known, role):
            if not path.strip():
                if isinstance(flag.value, list) and len(flag.value) > 1:
                    raise ValueError(
                        f"--{flag.name} has a comma too many, or a variable of "
                        "the shell is not set: one of its names is empty. "
                        f"Received: {flag.name}={','.join(flag.value)}"
                    )
                raise ValueError(
                    f"--{flag.name} is empty. Is a variable of the shell not "
                    "set? Give a path, or leave the flag out."
                )
            _check_spelling(flag, path)
            _check_scheme(flag, path)


def _check_spelling(flag: flags.Flag, path: str) -> None:
    """Raises ValueError for names that not all can keep or find."""
    if "\n" in path or "\r" in path:
        raise ValueError(
            f"--{flag.name} holds a line end, which flags.txt can't keep. "
            f"Rename the file or folder. Received: {flag.name}={path!r}"
        )
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"--{flag.name} is no UTF-8 text, and TensorFlow finds no other "
            "names. Rename the file or folder; or if it is UTF-8, and this is "
            "another locale, set PYTHONUTF8=1. "
            f"Received: {flag.name}={path!a}"
        ) from error


def _check_scheme(flag: flags.Flag, path: str) -> None:
    """Raises ValueError for addresses of which nobody knows the files."""
    how = flag_sections.about(flag)
    # Models come from elsewhere, too.
    is_model = how is not None and how.holds == flag_sections.MODEL
    scheme, is_address, _ = path.partition("://")
    if is_address and not is_model and scheme not in _SCHEMES:
        raise ValueError(
            f"There is no file system {scheme}:// here. Give a local path, or "
            f"one of gs://. Received: {flag.name}={path}"
        )


def _given(
    known: flags.FlagValues, role: str
) -> Iterator[tuple[flags.Flag, str]]:
    """Yields the paths that flags of a role name."""
    for name in sorted(known):
        flag = known[name]
        how = flag_sections.about(flag)
        if how is None or how.role != role or flag.name != name:
            continue
        if flag.value is None:
            continue
        paths = flag.value if isinstance(flag.value, list) else [flag.value]
        for path in paths or [""]:
            yield flag, path


def _as_made(path: str) -> str:
    """Returns where a path leads when its folders are made.

    Before that, nothing is found by a `..` behind one that is not there.
    """
    if file_systems.is_remote(path) or os.path.lexists(path):
        return path
    return os.path.realpath(path) if ".." in path.split("/") else path


# ---- Inputs -----------------------------------------------------------------


def _check_no_input(
    name: str,
    path: str,
    inputs: Sequence[tuple[flags.Flag, str]],
    output: flag_sections.About,
) -> None:
    """Raises ValueError if an output is an input, or a part of one.

    Args:
        name: Of the flag that names the output.
        path: What is written.
        inputs: What the command reads.
        output: What is known of the output.
    """
    is_whole = output.holds == flag_sections.NEW_FOLDER
    own = [path]
    if output.holds == flag_sections.FOLDER:
        own = [os.path.join(path, file) for file in output.own]
    for flag, pattern in inputs:
        how = flag_sections.about(flag)
        is_model = how is not None and how.holds == flag_sections.MODEL
        received = f"Received: {name}={path}, {flag.name}={pattern}"
        if _is_same(path, pattern, is_model) or (
            is_whole and _lies_in(pattern, path)
        ):
            raise ValueError(
                f"--{name} would be written over what --{flag.name} reads: "
                f"choose another. {received}"
            )
        if any(_is_matched(file, pattern) for file in own):
            raise ValueError(
                f"--{flag.name} would read what is written to --{name} when "
                "this command is given again: choose another place, or name "
                f"the files to read more closely. {received}"
            )


def _lies_in(path: str, folder: str) -> bool:
    """Whether a path is that of a folder that is there, or lies in it."""
    if file_systems.is_remote(folder):
        return f"{path}/".startswith(folder.rstrip("/") + "/")
    if file_systems.is_remote(path) or not os.path.isdir(folder):
        return False
    inside = os.path.join(os.path.realpath(folder), "")
    return os.path.join(os.path.realpath(path), "").startswith(inside)


def _is_matched(path: str, pattern: str) -> bool:
    """Whether a glob matches a path, be there a file or not."""
    if not set("*?[") & set(pattern) or os.path.exists(pattern):
        return False
    parts, patterns = (
        (x if file_systems.is_remote(x) else os.path.abspath(x)).split("/")
        for x in (path, pattern)
    )
    if "**" in patterns:  # Any folders: what is before it, and the name.
        before = patterns.index("**")
        parts = [*parts[:before], parts[-1]]
        patterns = [*patterns[:before], patterns[-1]]
    return len(parts) == len(patterns) and all(
        map(fnmatch.fnmatchcase, parts, patterns)
    )


def _is_same(path: str, pattern: str, is_model: bool) -> bool:
    """Whether writing to a path would change an input.

    Args:
        path: What is written, a file or a folder.
        pattern: What is read: a file, a glob, a folder or, of a model, the
            prefix of a checkpoint.
        is_model: Whether the whole folder of a model may be written to: a run
            goes on in its own.
    """
    if file_systems.is_remote(path) or file_systems.is_remote(pattern):
        path, pattern = path.rstrip("/"), pattern.rstrip("/")
        return path == pattern or fnmatch.fnmatchcase(path, pattern)
    if not os.path.exists(path):
        return False
    if os.path.isdir(path):
        # A run's folder is what an earlier run left, and goes on from.
        return not is_model and _same_file(path, pattern)
    if os.path.isdir(pattern):
        folder = os.path.dirname(path) or "."
        parts = ("", *_PARTS_OF_MODELS) if is_model else ("",)
        return any(_same_file(folder, os.path.join(pattern, x)) for x in parts)
    if is_model and path.startswith(f"{pattern}."):
        return True
    found = [pattern] if os.path.exists(pattern) else glob.glob(pattern)
    return any(_same_file(path, each) for each in found)


def _same_file(left: str, right: str) -> bool:
    """Whether two paths are one file, also by links."""
    return (
        os.path.exists(left)
        and os.path.exists(right)
        and os.path.samefile(left, right)
    )


# ---- Files ------------------------------------------------------------------


def _check_file(name: str, path: str, overwrite: bool) -> None:
    """Raises ValueError if there is something at a path to write."""
    place = epath.Path(path)
    if path.endswith("/") or place.is_dir():
        raise ValueError(
            f"--{name} must name a file, and this is a folder. "
            f"Received: {name}={path}"
        )
    # What mktemp made is empty, and meant for us; devices hold nothing.
    is_file = file_systems.is_remote(path) or os.path.isfile(path)
    if place.exists() and is_file and place.stat().length and not overwrite:
        raise ValueError(
            f"{path} exists. Choose another --{name}, or replace it by "
            f"--overwrite. Received: {name}={path}"
        )


def _check_writable(name: str, path: str) -> None:
    """Raises ValueError if nothing can be made at a path."""
    if file_systems.is_remote(path):
        return
    folder = os.path.abspath(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.exists(folder):
        raise ValueError(
            f"--{name} can't be made: {folder} is a link to what is not there. "
            f"Remove it. Received: {name}={path}"
        )
    if folder != os.path.abspath(path) and not os.path.isdir(folder):
        raise ValueError(
            f"--{name} can't be made: {folder} is no folder. "
            f"Received: {name}={path}"
        )
    longest = _longest_name(folder)
    for part in os.path.relpath(path, folder).split(os.sep):
        if len(os.fsencode(part)) > longest:
            raise ValueError(
                f"--{name} can't be made: a name has at most {longest} bytes "
                f"there. Choose a shorter one. Received: {part[:40]}..., "
                f"{len(os.fsencode(part))} bytes"
            )
    if not os.access(folder, os.W_OK):
        raise ValueError(
            f"--{name} can't be written: there is no permission to write to "
            f"{folder}. Received: {name}={path}"
        )


# What stands behind a name while what it names is written.
_ENDING = ".tmp"


def _longest_name(folder: str) -> int:
    """Returns how many bytes the name of a file or a folder may have."""
    try:
        return os.pathconf(folder, "PC_NAME_MAX") - len(_ENDING)
    except OSError:
        return 255 - len(_ENDING)


# ---- Folders ----------------------------------------------------------------


def _check_no_file(name: str, path: str) -> None:
    """Raises ValueError if a file stands where a folder is to be."""
    place = epath.Path(path)
    if place.exists() and not place.is_dir():
        raise ValueError(
            f"--{name} must be a folder, and this is a file. "
            f"Received: {name}={path}"
        )


def _check_new_folder(
    name: str, path: str, own: Sequence[str], overwrite: bool
) -> None:
    """Raises ValueError unless a folder is new, empty or to be replaced.

    Args:
        name: Of the flag.
        path: Of the folder.
        own: Patterns of what the script writes into it: only a folder of
            nothing else is replaced.
        overwrite: Whether it may be.
    """
    place = epath.Path(path)
    if not place.exists():
        return
    if not place.is_dir():
        raise ValueError(
            f"--{name} must be a new folder, and this is a file. "
            f"Received: {name}={path}"
        )
    names = sorted(each.name for each in place.iterdir())
    others = [x for x in names if not _matching([x], own)]
    if names and (others or not overwrite):
        way_out = " or replace it by --overwrite" * (not others)
        raise ValueError(
            f"{path} holds {(others or names)[0]}, and must be new or empty: "
            f"choose another --{name}{way_out}. Received: {name}={path}"
        )


def _matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names that match any of the patterns."""
    return [
        name
        for name in names
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


# ---- Folders of runs --------------------------------------------------------


def _check_run_folder(
    name: str,
    folder: str,
    inputs: Sequence[tuple[flags.Flag, str]],
    overwrite: bool,
) -> None:
    """Raises ValueError unless a run may write into a folder.

    It may be new, be empty, hold a run of the same script, or hold other files
    than those that runs write.

    Args:
        name: Of the flag that names it.
        folder: Its path.
        inputs: What the command reads.
        overwrite: Whether files may be replaced that are not of a run.
    """
    place = epath.Path(folder)
    if "[" in folder:
        raise ValueError(
            "TensorFlow takes the name of a checkpoint for a glob, so it would "
            "not find those of a folder with a bracket in its name: choose "
            "another name. "
            f"Received: {name}={folder!r}"
        )
    if not place.exists():
        return
    names = sorted(path.name for path in place.iterdir())
    _check_kinds(name, place, names)
    _check_not_read(name, folder, inputs)
    if _is_run(names):
        _check_same_script(name, place)
        return
    models = _matching(names, _MODELS)
    if models:
        raise ValueError(
            f"{folder} holds a model ({models[0]}), and that of this run would "
            "lie beside it. Give it as --init_checkpoint, and a new folder as "
            f"--{name}. Received: {name}={folder}"
        )
    foreign = _matching(names, RUN_FILES)
    if foreign and not overwrite:
        raise ValueError(
            f"{folder} holds {', '.join(foreign[:3])}"
            f"{' and others' * (len(foreign) > 3)}, which this run would "
            f"replace and no run of ours wrote. Choose another --{name}, or "
            f"replace them by --overwrite. Received: {name}={folder}"
        )


def _check_kinds(name: str, place: epath.Path, names: Sequence[str]) -> None:
    """Raises ValueError if a folder stands where a run writes a file.

    It would be found out when the run writes it: at its end.
    """
    if file_systems.is_remote(os.fspath(place)):
        return
    for own in _matching(names, (*RESULT_FILES, *_STATE_FILES)):
        if (place / own).is_dir():
            raise ValueError(
                f"{place / own} is a folder, and the run writes a file of that "
                f"name: remove it, or choose another --{name}. "
                f"Received: {name}={os.fspath(place)}"
            )
    for own in _matching(names, ("best", "export")):
        if not (place / own).is_dir():
            raise ValueError(
                f"{place / own} is no folder, and the run writes one of that "
                f"name: remove it, or choose another --{name}. "
                f"Received: {name}={os.fspath(place)}"
            )


def _check_not_read(
    name: str, folder: str, inputs: Sequence[tuple[flags.Flag, str]]
) -> None:
    """Raises ValueError if the run would replace a file that it reads."""
    for flag, path in inputs:
        how = flag_sections.about(flag)
        # A run goes on in its own folder, whose model it writes as it was.
        is_model = how is not None and how.holds == flag_sections.MODEL
        inside, file = os.path.split(path)
        if is_model or not _matching([file], RUN_FILES):
            continue
        if inside.rstrip("/") == folder.rstrip("/") or (
            not file_systems.is_remote(folder)
            and _same_file(inside or ".", folder)
        ):
            raise ValueError(
                f"The run would write over what --{flag.name} reads: choose "
                f"another --{name}. Received: {name}={folder}, "
                f"{flag.name}={path}"
            )


def _is_run(names: Sequence[str]) -> bool:
    """Whether a folder is that of a run, or of the original's, by names."""
    return bool(
        {"flags.txt", "lock", "evaluation.lock", "results.jsonl"} & set(names)
        or _matching(names, ["model.ckpt-*.index"])
    )


def _check_same_script(name: str, place: epath.Path) -> None:
    """Raises ValueError if the run in a folder is another script's."""
    file = place / "flags.txt"
    if not file.exists():
        return
    # Who goes on with the run is told of what is no text.
    written = _COMMAND.match(file.read_bytes().decode(errors="replace"))
    theirs = os.path.basename(written[1]) if written else None
    ours = os.path.basename(sys.argv[0])
    if theirs and theirs != ours:
        raise ValueError(
            f"{os.fspath(place)} holds a run of {theirs}, not of {ours}: "
            f"choose another --{name}, and give its weights by "
            f"--init_checkpoint. Received: {name}={os.fspath(place)}"
        )
