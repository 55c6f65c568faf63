"""What the documents name is there: commands, their flags, files, links."""

import glob
import importlib
import itertools
import pathlib
import re
import shlex

from tests import scripts

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAMS = [
    *sorted(_ROOT.glob("*.py")),
    *sorted((_ROOT / "benchmarks").rglob("*.py")),
    *sorted((_ROOT / "examples").rglob("*.py")),
]
# Paths from the root, without ".py", of those whose flags absl reads.
_SCRIPTS = [
    str(path.relative_to(_ROOT).with_suffix(""))
    for path in _PROGRAMS
    if re.search(r"^    (app|command_line)\.run\(", path.read_text(), re.M)
]
_DOCUMENTS = [
    *sorted(_ROOT.glob("*.md")),
    *sorted((_ROOT / "benchmarks").glob("*.md")),
    *sorted((_ROOT / "docs").rglob("*.md")),
]
_SOURCES = [
    *_PROGRAMS,
    *_DOCUMENTS,
    *sorted((_ROOT / "configs").rglob("*.flags")),
]
_COMMAND = re.compile(
    r"\b(python3? (?:-m )?|bert-tf )([a-z][\w./]*)(?: ([^\n`\"]*))?"
)
# Of `bert-tf`, beside the scripts.
_COMMANDS_OF_ITS_OWN = ("configs",)
# A path of the repository, perhaps with a `*`.
_PATH = re.compile(
    r"(?<![\w/.$])((?:bert_tf|benchmarks|configs|docs|examples|tests)/"
    r"[\w./*-]*\w)"
)
# To a file, perhaps with a heading.
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([\w-]+))?\)")


def _name(path: pathlib.Path) -> str:
    return str(path.relative_to(_ROOT))


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Returns the scripts of ours that a text runs, and their flags."""
    text = re.sub(r"\\\n#?", " ", text)  # "#" in flagfiles
    text = re.sub(r"\$\([^)]*\)", "x", text)  # another command's output
    found = []
    for how, program, rest in _COMMAND.findall(text):
        script = program.removesuffix(".py").replace(".", "/")
        words = shlex.split(rest, comments=True)
        flags = itertools.takewhile(lambda word: word.startswith("-"), words)
        is_ours = how == "bert-tf " and script not in _COMMANDS_OF_ITS_OWN
        if is_ours or program.endswith(".py") or script in _SCRIPTS:
            found.append((script, [re.sub(r"\$\w+", "x", f) for f in flags]))
    return found


def _headings(text: str) -> set[str]:
    """Returns what links call the headings of a document."""
    headings = set()
    for title in re.findall(r"^#+ (.*)", text, re.M):
        plain = re.sub(r"[^\w\s-]", "", title).strip().lower()
        headings.add(re.sub(r"\s", "-", plain))
    return headings


def test_commands_are_found():
    text = (
        "`python run_x.py --a`\n\n    python run_prediction.py --b=$C/d \\\n"
        "  --e | f\nbert-tf run_squad --h=$(python -m x) ...\nbert-tf configs"
        "\n`python -m benchmarks.parity.squad --g`, python -m pytest --h"
    )
    assert commands(text) == [
        ("run_x", ["--a"]),
        ("run_prediction", ["--b=x/d", "--e"]),
        ("run_squad", ["--h=x"]),
        ("benchmarks/parity/squad", ["--g"]),
    ]


@pytest.mark.parametrize("source", _SOURCES, ids=_name)
def test_commands_are_understood(source, tmp_path, monkeypatch):
    monkeypatch.chdir(_ROOT)
    text = source.read_text(encoding="utf-8")
    # Files that a page tells its reader to write.
    written = re.findall(r'title="([\w/]+)\.py"', text)
    for script, flags in commands(text):
        is_there = (_ROOT / f"{script}.py").exists()
        assert is_there or script in written, script
        if script in _SCRIPTS and flags:
            run = scripts.run(tmp_path, script, *flags, "--only_check_args")
            assert run.wait() == 0, (script, flags, run.lines)


@pytest.mark.parametrize("source", _SOURCES, ids=_name)
def test_paths_are_there(source):
    for path in _PATH.findall(source.read_text(encoding="utf-8")):
        assert glob.glob(str(_ROOT / path)), path


@pytest.mark.parametrize("source", _DOCUMENTS, ids=_name)
def test_links_lead_somewhere(source):
    for path, heading in _LINK.findall(source.read_text(encoding="utf-8")):
        to = source.parent / path if path else source
        assert to.exists(), path
        # The site of `make docs` has nothing else.
        of_site = _ROOT / "docs"
        if source.is_relative_to(of_site):
            assert to.resolve().is_relative_to(of_site), path
        if heading:
            assert heading in _headings(to.read_text(encoding="utf-8"))


def test_readme_is_short():
    lines = (_ROOT / "README.md").read_text(encoding="utf-8").split("\n")
    assert len(lines) <= 201


def test_every_page_is_in_the_menu():
    menu = re.findall(r": (\S+\.md)$", (_ROOT / "mkdocs.yml").read_text(), re.M)
    pages = {
        str(path.relative_to(_ROOT / "docs"))
        for path in (_ROOT / "docs").rglob("*.md")
    }
    assert len(menu) == len(set(menu))
    assert set(menu) == pages


def test_every_task_has_its_page_in_the_readme():
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    index = (_ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in (_ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"]({path.name})" in index
        assert f"](docs/{path.name}" in readme, path.name


def test_documented_modules_are_there():
    for path in (_ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"^::: (\S+)$", path.read_text(), re.M):
            module, _, last = name.rpartition(".")
            if (_ROOT / f"{name.replace('.', '/')}.py").exists():
                continue
            assert hasattr(importlib.import_module(module), last), name
