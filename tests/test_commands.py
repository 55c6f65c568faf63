"""Every command that the documents tell is one that its script takes."""

import itertools
import pathlib
import re
import shlex

import pytest
import scripts

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_PROGRAMS = [
    *sorted(_ROOT.glob("*.py")),
    *sorted((_ROOT / "benchmarks").rglob("*.py")),
    *sorted((_ROOT / "examples").glob("*.py")),
]
# Paths from the root, without ".py", of those whose flags absl reads.
_SCRIPTS = [
    str(path.relative_to(_ROOT).with_suffix(""))
    for path in _PROGRAMS
    if re.search(r"^    (app|command_line)\.run\(", path.read_text(), re.M)
]
_SOURCES = [
    *_PROGRAMS,
    *sorted(_ROOT.glob("*.md")),
    *sorted((_ROOT / "benchmarks").glob("*.md")),
    *sorted((_ROOT / "configs").rglob("*.flags")),
]
_COMMAND = re.compile(r"\bpython (?:-m )?([\w./]+) ([^\n`\"]*)")
# Shows help, or is not all of a command.
_LEFT = ("--help", "...")


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Returns the scripts of ours that a text runs, and their flags."""
    text = re.sub(r"\\\n#?", " ", text)  # "#" in flagfiles
    found = []
    for program, rest in _COMMAND.findall(text):
        script = program.removesuffix(".py").replace(".", "/")
        words = shlex.split(rest, comments=True)
        flags = itertools.takewhile(lambda word: word.startswith("-"), words)
        if script in _SCRIPTS and words and words[-1] not in _LEFT:
            found.append((script, [re.sub(r"\$\w+", "x", f) for f in flags]))
    return found


def test_commands_are_found():
    text = (
        "`python run_x.py --a`\n\n    python predict.py --b=$C/d \\\n  --e | f"
        "\n`python -m benchmarks.parity.squad --g`, python -m pytest --h"
    )
    assert commands(text) == [
        ("predict", ["--b=x/d", "--e"]),
        ("benchmarks/parity/squad", ["--g"]),
    ]


@pytest.mark.parametrize("source", _SOURCES, ids=lambda path: path.name)
def test_commands_are_understood(source, tmp_path, monkeypatch):
    monkeypatch.chdir(_ROOT)
    for script, flags in commands(source.read_text(encoding="utf-8")):
        run = scripts.run(tmp_path, script, *flags, "--only_check_args")
        assert run.wait() == 0, (script, flags, run.lines)
