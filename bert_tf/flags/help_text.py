"""Formats `--help`: purpose, example, and flags in sections."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable

from bert_tf.flags import flag_sections

from absl import flags

# In display order; sections that are not listed come last.
_TITLES = (
    "Required",
    "What to do",
    "Model",
    "Data",
    "Output",
    "Training",
    "Optimizer",
    "Search",
    "Evaluation",
    "Prediction",
    "Devices",
    "Flags of the original",
)
_WIDEST = 100
_INDENT = 6

# The command that launched the script, if not its path.
_launcher: str | None = None


def launch_with(launcher: str | None) -> None:
    """Sets the command that runs scripts, such as `bert-tf`."""
    global _launcher
    _launcher = launcher


def name() -> str:
    """Returns the name of the current script: run_classifier.py."""
    script = os.path.basename(sys.argv[0])
    return script.removesuffix(".py") if _launcher else script


def command(script: str = "") -> str:
    """Returns the command that runs a script: python run_classifier.py.

    Args:
        script: Its name without ".py"; by default the current script.
    """
    if script and not _launcher:
        script += ".py"
    return f"{_launcher or 'python'} {script or name()}"


def _as_typed(text: str) -> str:
    """Rewrites the commands in a text to use the current launcher."""
    if not _launcher:
        return text
    return re.sub(r"\bpython (\w+)\.py\b", rf"{_launcher} \1", text)


def page(purpose: str, own: Iterable[flags.Flag], full: bool) -> str:
    """Returns the help of the current script.

    Args:
        purpose: The script's docstring.
        own: The script's flags.
        full: Whether to show rare flags.
    """
    width = min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)
    sections: dict[str, list[str]] = {title: [] for title in _TITLES}
    hidden = 0
    for flag in own:
        about = flag_sections.find_about(flag)
        about = about or flag_sections.About("Flags", "VALUE")
        if about.rare and not full and not about.required:
            hidden += 1
            continue
        title = "Required" if about.required else about.section
        sections.setdefault(title, []).append(_entry(flag, about, width))
    parts = [f"{name()}: {_as_typed(purpose.strip())}"]
    parts += [
        "\n".join([f"{title}:", *entries])
        for title, entries in sections.items()
        if entries
    ]
    parts.append(
        "--flagfile=FILE reads flags from a file, one per line; --verbosity=1 "
        "shows more."
        + f"\n--helpfull shows {hidden} more flags."
        * bool(hidden)
    )
    return "\n\n".join(parts) + "\n"


def _entry(flag: flags.Flag, about: flag_sections.About, width: int) -> str:
    """Returns a flag's lines: syntax, description and default."""
    head = f"  --{flag.name}" + f"={about.kind}" * bool(about.kind)
    if flag.boolean:
        head = f"  --{flag.name}=true|false"
    # A long list of choices is moved into the text.
    text = flag.help.strip()
    if len(head) > width:
        head = f"  --{flag.name}=NAME"
        text += f" One of {about.kind.replace('|', ', ')}."
    default = _default(flag)
    if default:
        text += f" (default: {default})"
    body = textwrap.fill(
        text,
        width,
        initial_indent=" " * _INDENT,
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return f"{head}\n{body}"


def _default(flag: flags.Flag) -> str:
    if flag.default is None or flag.default in ("", []):
        return ""
    if flag.boolean:
        return "true" if flag.default else "false"
    if isinstance(flag.default, list):
        return ",".join(map(str, flag.default))
    if isinstance(flag.default, float):
        return f"{flag.default:g}"
    return str(flag.default)
