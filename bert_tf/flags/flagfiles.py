"""Writes the flags of a run to a flagfile, and compares runs by it."""

import datetime
import os
import shlex
import sys
import types
from collections.abc import Collection, Iterable, Mapping

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.flags import flag_sections, help_text, input_paths
from bert_tf.storage import kept_flags

from absl import flags, logging
from etils import epath

read_flagfile = kept_flags.read


def write_flagfile(path: str) -> None:
    """Writes the script's flags so that --flagfile=path repeats the run."""
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    lines = [
        f"# {help_text.command()} --flagfile={shlex.quote(path)}",
        f"# {now}",
    ]
    for name, text in sorted(_values().items()):
        if text != text.rstrip():
            lines.append(
                "# Flagfiles drop the blank that ends the next line. Remove "
                f"the line, and pass --{name}."
            )
        lines.append(f"--{name}={text}")
    files.write_lines(path, lines)


# What a command does with a run. With --do_eval, training also selects best/.
_ACTIONS = ("check_only", "do_train", "do_predict", "do_export")
# If omitted, their values come from the manifest of the records.
_TOLD_BY_RECORDS = ("max_seq_length", "max_predictions_per_seq")


def check_same_run(
    path: str,
    identity: Iterable[str],
    tells: bool = True,
    same: Collection[str] = (),
) -> None:
    """Compares the flags with the flags of a folder's run.

    `path` is the run's flags.txt; nothing is checked if it does not exist.
    `identity` names the flags that can't change when a run resumes. Changes of
    other flags are logged if `tells` is true. `same` names flags whose values
    are known to mean the same.
    """
    if not epath.Path(path).exists():
        return
    before = read_flagfile(path)
    changed, here = changes(before), before.keys() & _values().keys()
    # What an earlier command did is no change of the run, nor is another
    # spelling of its folder.
    for name in (*_ACTIONS, "output_dir", *same):
        changed.pop(name, None)
    fatal = [
        changed[name]
        for name in identity
        if name in changed and (name in here or name not in _TOLD_BY_RECORDS)
    ]
    if fatal:
        raise InputError(
            f"{os.path.dirname(path)} holds another run: {'; '.join(fatal)}. "
            "Choose another output_dir, or remove this one to start again; or "
            "give what it had, to go on."
        )
    for change in changed.values() if tells else ():
        logging.warning("Resuming with a changed flag: %s", change)


def changes(before: Mapping[str, str]) -> dict[str, str]:
    """Describes each flag that changed, with its old and new value.

    A flag that is missing in the run and has its default value is unchanged.

    Args:
        before: The flags of a run, from `read_flagfile`.
    """
    now = _values()
    return {
        name: f"{name} was {before.get(name)} and is {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
        and not (name in before and _means(name, before[name]))
        and (name in before or not _is_default(flags.FLAGS[name]))
    }


def _means(name: str, text: str) -> bool:
    """Whether a flag has the value of a text: 0.0 of 0, ./a of the file a."""
    known = flags.FLAGS
    if name not in known:
        return False
    value = known[name].value
    try:
        return known[name].parser.parse(text) == value or (
            isinstance(value, str) and input_paths.is_same_file(text, value)
        )
    except ValueError:
        return False


def _is_default(flag: flags.Flag) -> bool:
    """Whether a flag has its default; None equals false for booleans."""
    is_false = flag.boolean and not flag.value
    return bool(is_false or flag.value == flag.default)


def told(names: Iterable[str]) -> dict[str, str]:
    """Returns the values, as text, of the given flags that are set."""
    values = _values()
    return {name: values[name] for name in names if name in values}


def values_of(*modules: types.ModuleType) -> dict[str, str]:
    """Returns the values, as text, of the modules' flags that are set."""
    return {
        name: text
        for module in modules
        for name, text in _values(module.__name__).items()
    }


def _values(module: str | None = None) -> dict[str, str]:
    """Returns the values of a module's flags, by default the script's."""
    own = flags.FLAGS.get_key_flags_for_module(module or sys.argv[0])
    return {f.name: _text(f) for f in own if _is_said(f)}


def _is_said(flag: flags.Flag) -> bool:
    """Whether a flag has a value and is not an alias."""
    about = flag_sections.find_about(flag)
    return flag.value is not None and not (about and about.alias)


def _text(flag: flags.Flag) -> str:
    if flag.boolean:
        return "true" if flag.value else "false"
    return flag.serialize().removeprefix(f"--{flag.name}=")
