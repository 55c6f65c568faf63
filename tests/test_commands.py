"""Every command that the documents tell is one that its script takes."""

import itertools
import pathlib
import re
import shlex

import pytest
import scripts

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_SCRIPTS = sorted(path.stem for path in _ROOT.glob("*.py"))
_SOURCES = [
    *sorted(_ROOT.glob("*.md")),
    *sorted(_ROOT.glob("*.py")),
    *sorted((_ROOT / "benchmarks").glob("*.md")),
    *sorted((_ROOT / "configs").rglob("*.flags")),
]
_COMMAND = re.compile(r"\bpython (?:-m )?(\w+)(?:\.py)? ([^\n`\"]*)")
# Shows help, or is not all of a command.
_LEFT = ("--help", "...")


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Returns the scripts of the root that a text runs, and their flags."""
    text = re.sub(r"\\\n#?", " ", text)  # "#" in flagfiles
    found = []
    for script, rest in _COMMAND.findall(text):
        words = shlex.split(rest, comments=True)
        flags = itertools.takewhile(lambda word: word.startswith("-"), words)
        if script in _SCRIPTS and words and words[-1] not in _LEFT:
            found.append((script, [re.sub(r"\$\w+", "x", f) for f in flags]))
    return found


def test_commands_are_found():
    text = (
        "`python run_x.py --a`\n\n    python predict.py --b=$C/d \\\n  --e | f"
    )
    assert commands(text) == [("predict", ["--b=x/d", "--e"])]


@pytest.mark.parametrize("source", _SOURCES, ids=lambda path: path.name)
def test_commands_are_understood(source, tmp_path, monkeypatch):
    monkeypatch.chdir(_ROOT)
    for script, flags in commands(source.read_text(encoding="utf-8")):
        run = scripts.run(tmp_path, script, *flags, "--only_check_args")
        assert run.wait() == 0, (script, flags, run.lines)
