"""Imports go one way, and flags end at the scripts' `main`."""

import ast
import itertools
import pathlib
import re
import subprocess
import sys

from tests import rooms

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SCRIPTS = sorted(_ROOT.glob("*.py"))
_SCRIPT_NAMES = {path.stem for path in _SCRIPTS}
_KNOW_FLAGS = {"flags", "setup"}

_TENSORFLOW = {"tensorflow", "tensorflow_text", "keras", "keras_hub"}


def _name(path: pathlib.Path) -> str:
    """`bert_tf/tasks/tables.py` -> `tasks.tables`."""
    parts = path.relative_to(_ROOT / "bert_tf").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


_MODULES = {
    _name(path): path for path in sorted((_ROOT / "bert_tf").rglob("*.py"))
}


def _tree(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _imports(path: pathlib.Path) -> set[str]:
    """Dotted names that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _packages(path: pathlib.Path) -> set[str]:
    return {name.split(".")[0] for name in _imports(path)}


def _own_imports(path: pathlib.Path) -> set[str]:
    """Modules of ours that a file imports, without `bert_tf.`."""
    own = set()
    for name in _imports(path):
        if name == "bert_tf" or not name.startswith("bert_tf."):
            continue
        module = name.removeprefix("bert_tf.")
        while module and module not in _MODULES:  # a class or a function
            module = module.rpartition(".")[0]
        if module:
            own.add(module)
    return own


def _room(module: str) -> str:
    """The row of the table that a module belongs to."""
    name = module
    while name and name not in rooms.ROOMS:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize("module", [m for m in _MODULES if m])
def test_module_imports_only_what_its_room_allows(module):
    room = _room(module)
    assert room, f"{module} is in no room of the table"
    got = {_room(name) for name in _own_imports(_MODULES[module])}
    assert got - {room} <= rooms.ROOMS[room]


def test_table_itself_goes_one_way():
    above: set[str] = set()
    for room, may_import in rooms.ROOMS.items():
        assert may_import <= above, room
        above.add(room)


def test_table_names_only_rooms_there_are():
    assert {_room(module) for module in _MODULES if module} == set(rooms.ROOMS)


def test_table_allows_only_what_is_used():
    used: dict[str, set[str]] = {room: set() for room in rooms.ROOMS}
    for module, path in _MODULES.items():
        if module:
            used[_room(module)] |= {_room(x) for x in _own_imports(path)}
    for room, may_import in rooms.ROOMS.items():
        assert may_import == used[room] - {room}, room


def test_light_rooms_load_no_tensorflow():
    # Two modules of flags define the same ones, and can't be loaded together.
    modules = [
        name
        for name in _MODULES
        if _room(name) in rooms.LIGHT and name != "flags.model"
    ]
    code = "import sys\n"
    code += "".join(f"import bert_tf.{name}\n" for name in modules)
    code += f"print(sorted(set(sys.modules) & {_TENSORFLOW!r}))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == "[]"


def test_the_tokenizers_alone_import_tensorflow_text():
    importers = [
        module
        for module, path in _MODULES.items()
        if "tensorflow_text" in _packages(path)
    ]
    assert importers == ["text.graph", "text.sentence_pieces"]
    assert not [x for x in _SCRIPTS if "tensorflow_text" in _packages(x)]


def test_nobody_imports_a_script():
    paths = [*_MODULES.values(), *_SCRIPTS]
    paths += sorted((_ROOT / "examples").rglob("*.py"))
    for path in paths:
        assert not _packages(path) & _SCRIPT_NAMES, path


def test_library_knows_no_flags():
    for module, path in _MODULES.items():
        if _room(module) in _KNOW_FLAGS:
            continue
        flags = {name for name in _imports(path) if "absl.flags" in name}
        assert not flags, module
        assert "FLAGS" not in {
            node.id
            for node in ast.walk(_tree(path))
            if isinstance(node, ast.Name)
        }, module


def _flag_reads(nodes: list[ast.stmt]) -> list[int]:
    """Lines that read `_FLAG.value` or `run_flags.FLAG.value`."""
    lines = []
    for node in itertools.chain.from_iterable(map(ast.walk, nodes)):
        if isinstance(node, ast.Attribute) and node.attr == "value":
            of = node.value
            holder = str(getattr(of, "attr", "") or getattr(of, "id", ""))
            if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", holder):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: path.stem)
def test_no_flag_is_read_at_import(path):
    functions = (ast.FunctionDef, ast.ClassDef)
    body = _tree(path).body
    assert not _flag_reads([x for x in body if not isinstance(x, functions)])
    assert _flag_reads(body), "which shows that reads are found"


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: path.stem)
def test_script_has_a_main_that_runs_only_as_a_script(path):
    body = _tree(path).body
    names = [x.name for x in body if isinstance(x, ast.FunctionDef)]
    assert names[-1] == "main"
    assert ast.unparse(body[-1]) == (
        "if __name__ == '__main__':\n    command_line.run(main)"
    )
