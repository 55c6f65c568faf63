r"""Reports the code structure: rooms, arrows, sizes, and loaded modules.

    python -m benchmarks.house

or, to compare checkouts, one per column:

    python -m benchmarks.house /tmp/before .

A room is a folder of bert_tf or of bert_tf/tasks, or a module next to them. An
arrow means that a module of one room imports one of another, anywhere in the
file. Lists follow the table: rooms with their modules, import cycles, and files
and functions that are longer than they should be.
"""

import ast
import dataclasses
import io
import pathlib
import re
import statistics
import subprocess
import sys
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from typing import Any

from absl import app, flags

_FILE_LINES = flags.DEFINE_integer("file_lines", 400, "Of a file at most.", 1)
_FUNCTION_LINES = flags.DEFINE_integer(
    "function_lines", 60, "Of a function at most, its docstring included.", 1
)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Of timing; the median counts.", 1)

_HERE = pathlib.Path(__file__).resolve().parents[1]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_INDENTED: dict[str, Any] = {
    "initial_indent": "  ",
    "subsequent_indent": "  ",
    "break_long_words": False,
    "break_on_hyphens": False,
}
_COUNT_MODULES = """
import atexit, sys
atexit.register(lambda: print(
    len(sys.modules),
    sum(x.partition(".")[0] == "bert_tf" for x in sys.modules),
    file=sys.stderr,
))
import runpy
sys.path[0] = ""
sys.argv = ["run_pretraining.py", "--help"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclasses.dataclass(frozen=True)
class _Source:
    """A file of bert_tf, or a script at the root.

    Attributes:
        name: Its path in the checkout.
        module: Its dotted name without `bert_tf.`; for a script, its name.
        in_house: Whether it is part of bert_tf.
        text: Its contents.
        tree: The parsed contents.
    """

    name: str
    module: str
    in_house: bool
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


# ---- Reading a checkout -----------------------------------------------------


def _sources(root: pathlib.Path) -> list[_Source]:
    """Returns the package and the scripts at the root."""
    package = sorted((root / "bert_tf").rglob("*.py"))
    return [
        _source(root, path) for path in (*package, *sorted(root.glob("*.py")))
    ]


def _source(root: pathlib.Path, path: pathlib.Path) -> _Source:
    text = path.read_text("utf-8")
    relative = path.relative_to(root)
    parts = relative.with_suffix("").parts
    in_house = parts[0] == "bert_tf"
    own = [part for part in parts[in_house:] if part != "__init__"]
    tree = ast.parse(text, str(path))
    return _Source(str(relative), ".".join(own), in_house, text, tree)


def _room(module: str, folders: set[str]) -> str:
    """Returns a module's room: a folder, one of `tasks`, or the module."""
    first, _, rest = module.partition(".")
    if first == "tasks" and rest:
        return f"tasks.{rest.partition('.')[0]}"
    return f"{first}/" if first in folders else first


def _imports(source: _Source, modules: set[str]) -> set[str]:
    """Returns modules of bert_tf that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    own = set()
    for name in names:
        module = name.removeprefix("bert_tf.")
        if module == name:
            continue
        while module and module not in modules:  # a class or a function
            module = module.rpartition(".")[0]
        own.add(module)
    return own - {""}


def _circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Returns import cycles: Tarjan's strongly connected components."""
    reach = {room: _reached(room, arrows) for room in arrows}
    found = {
        tuple(sorted(x for x in reach[room] if room in reach[x]))
        for room in arrows
        if room in reach[room]
    }
    return [list(circle) for circle in sorted(found)]


def _reached(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """Returns the rooms that can be reached by one arrow or more."""
    found: set[str] = set()
    todo = [start]
    while todo:
        new = arrows[todo.pop()] - found
        found |= new
        todo += new
    return found


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yields names and lines of all functions, including nested ones."""
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}.{child.name}".lstrip(".")
        if isinstance(child, _FUNCTIONS):
            yield name, (child.end_lineno or 0) - child.lineno + 1
        yield from _functions(child, name)


def _code_lines(source: _Source) -> int:
    """Returns the number of lines except blanks, comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    lines: set[int] = set()
    for token in tokens:
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(source.tree):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                end = first.end_lineno or first.lineno
                lines -= set(range(first.lineno, end + 1))
    return len(lines)


def _definitions(source: _Source, flag: str) -> int:
    """Returns the number of calls that define a flag."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Attribute, ast.Name))
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == flag
        and _defines(ast.unparse(node.func))
        for node in ast.walk(source.tree)
    )


def _defines(function: str) -> bool:
    """Whether a function, such as `_DATA.integer`, defines flags."""
    section = r"(Section\(.*\)|\b_?[A-Z][A-Z_]*)\.[a-z_]+$"
    return bool(re.search(rf"\bDEFINE_\w+$|{section}", function))


# ---- Figures ----------------------------------------------------------------


def _house(sources: list[_Source]) -> dict[str, object]:
    """Returns rooms, arrows and cycles."""
    house = [x for x in sources if x.in_house and x.module]
    modules = {x.module for x in house}
    folders = {x.module.partition(".")[0] for x in house if "." in x.module}
    rooms: dict[str, list[str]] = {}
    arrows: dict[str, set[str]] = {}
    modules_of_init = {
        x.module for x in house if x.name.endswith("__init__.py")
    }
    for source in house:
        room = _room(source.module, folders)
        arrows.setdefault(room, set())
        if source.module not in modules_of_init:
            rooms.setdefault(room, []).append(source.module)
        for module in _imports(source, modules):
            arrows[room].add(_room(module, folders))
    for room, targets in arrows.items():
        targets.discard(room)
    circles = _circles(arrows)
    listed = [f"{room} {len(own)}" for room, own in sorted(rooms.items())]
    return {
        "rooms": listed,
        "of one module": sum(len(own) == 1 for own in rooms.values()),
        "modules": sum(map(len, rooms.values())),
        "arrows between rooms": sum(map(len, arrows.values())),
        "circles of rooms": [" <-> ".join(circle) for circle in circles],
    }


def _sizes(sources: list[_Source]) -> dict[str, object]:
    long_files = [
        f"{x.name} {x.lines}" for x in sources if x.lines > _FILE_LINES.value
    ]
    long_functions = [
        f"{x.name}:{name} {lines}"
        for x in sources
        for name, lines in _functions(x.tree)
        if lines > _FUNCTION_LINES.value
    ]
    return {
        f"files over {_FILE_LINES.value} lines": long_files,
        f"functions over {_FUNCTION_LINES.value} lines": long_functions,
        "definitions of max_seq_length": [
            x.name
            for x in sources
            for _ in range(_definitions(x, "max_seq_length"))
        ],
        "lines": sum(x.lines for x in sources),
        "lines of code": sum(map(_code_lines, sources)),
    }


def _run(root: pathlib.Path, *arguments: str) -> str:
    """Runs Python in a checkout and returns its stderr."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"In {root}:\n{done.stderr[-2000:]}")
    return done.stderr


def _loaded(root: pathlib.Path) -> dict[str, object]:
    """Returns figures of startup, after a warm-up that compiles modules."""
    counts = _run(root, "-c", _COUNT_MODULES).splitlines()[-1].split()
    code = f"import sys; sys.path[0] = {str(root)!r}; import bert_tf"
    seconds = []
    for _ in range(_ROUNDS.value + 1):
        said = _run(root, "-X", "importtime", "-c", code)
        found = re.search(r"\| +(\d+) \| bert_tf$", said, re.M)
        if not found:
            raise SystemExit(f"In {root}: no bert_tf was imported.")
        seconds.append(int(found[1]) / 1e6)
    return {
        "modules that run_pretraining.py --help loads": int(counts[0]),
        "of them bert_tf's": int(counts[1]),
        "seconds of import bert_tf": f"{statistics.median(seconds[1:]):.4f}",
    }


# ---- The table --------------------------------------------------------------


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return str(len(value) if isinstance(value, list) else value)


def main(argv):
    """Prints a column for each checkout, then the lists."""
    roots = [pathlib.Path(x).resolve() for x in argv[1:] or [str(_HERE)]]
    columns = []
    for root in roots:
        if not (root / "bert_tf").is_dir():
            raise SystemExit(
                f"There is no bert_tf in this folder. Received: {root}"
            )
        sources = _sources(root)
        columns.append(_house(sources) | _sizes(sources) | _loaded(root))
    widths = [max(10, len(root.name)) for root in roots]
    names = zip(roots, widths, strict=True)
    print(f"{'':46}" + "".join(f"  {x.name:>{w}}" for x, w in names))
    for name in columns[0]:
        cells = [_cell(column[name]) for column in columns]
        row = zip(cells, widths, strict=True)
        print(f"{name:46}" + "".join(f"  {x:>{w}}" for x, w in row))
    for root, column in zip(roots, columns, strict=True):
        for name, value in column.items():
            if isinstance(value, list) and value:
                print(f"\n{root}, {name}:")
                print(textwrap.fill(", ".join(value), 80, **_INDENTED))


if __name__ == "__main__":
    app.run(main)
