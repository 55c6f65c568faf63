"""Figures that the source code shows by itself: sizes, guards and names."""

import ast
import collections
import dataclasses
import io
import pathlib
import re
import tokenize
from collections.abc import Iterable, Iterator

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Module,
)
_CHECKS = re.compile(r"_?(check|refuse|require|verify|validate)")
_PREPOSITION = re.compile(
    "_*(about|above|across|after|along|around|as|at|before|behind|below|beside"
    "|between|by|during|for|from|in|inside|into|like|near|of|off|on|onto|out"
    "|over|since|than|through|to|under|until|upon|via|with|within)_*"
)
# Aliases that the whole field uses.
_USUAL = {"np", "tf", "plt", "pd"}


@dataclasses.dataclass(frozen=True)
class Source:
    """A Python file of bert_tf, or a script at the root.

    Attributes:
        name: Its path in the checkout.
        text: Its content.
        tree: Its syntax tree.
    """

    name: str
    text: str
    tree: ast.Module


def sources(root: pathlib.Path) -> list[Source]:
    """Returns the files of the package and the scripts of a checkout."""
    paths = (*sorted((root / "bert_tf").rglob("*.py")), *root.glob("*.py"))
    found = []
    for path in paths:
        text = path.read_text("utf-8")
        name = path.relative_to(root).as_posix()
        found.append(Source(name, text, ast.parse(text, name)))
    return found


def measure(files: list[Source]) -> dict[str, float | int]:
    """Returns the figures by name; the share of guards is a fraction."""
    code = {x.name: _code_lines(x) for x in files}
    guards = sum(len(_guard_lines(x.tree) & code[x.name]) for x in files)
    lines = sum(map(len, code.values()))
    package = [x.name for x in files if "/" in x.name]
    return {
        "files": len(package),
        "lines": sum(len(x.text.splitlines()) for x in files),
        "lines of code": lines,
        "guards, share of the code": guards / max(lines, 1),
        "modules imported by one file": _single_importers(files),
        "imports that rename": sum(_renames(x.tree) for x in files),
        "file names used twice": _repeated_names(package),
        "functions named by a preposition": sum(
            bool(_PREPOSITION.fullmatch(name))
            for x in files
            for name in _function_names(x.tree)
        ),
        "files that name doc_stride": _files_with(files, "doc_stride"),
        "files that name multiple_choice": _files_with(
            files, "multiple_choice"
        ),
    }


def _code_lines(source: Source) -> set[int]:
    """Returns the lines that are not blank, a comment or a docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(source.tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, False):
            lines -= _lines(node.body[0])
    return lines


def _guard_lines(tree: ast.Module) -> set[int]:
    """Returns the lines that only check: raises and their conditions."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            lines |= _lines(node)
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            end = node.body[-1].end_lineno or node.lineno
            lines.update(range(node.lineno, end + 1))
        elif isinstance(node, ast.FunctionDef) and _CHECKS.match(node.name):
            lines |= _lines(node)
    return lines


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _function_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name


def _renames(tree: ast.Module) -> int:
    """Returns how many names `import ... as ...` changes in a file."""
    return sum(
        alias.asname not in (None, alias.name, *_USUAL)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )


def _repeated_names(names: Iterable[str]) -> int:
    """Returns how many file names occur in several folders."""
    counts = collections.Counter(pathlib.PurePath(x).name for x in names)
    del counts["__init__.py"]
    return sum(number > 1 for number in counts.values())


def _single_importers(files: list[Source]) -> int:
    """Returns how many modules of the package exactly one file imports."""
    modules = {
        x.name.removesuffix(".py").replace("/", "."): x
        for x in files
        if "/" in x.name and not x.name.endswith("__init__.py")
    }
    importers: collections.Counter[str] = collections.Counter()
    for source in files:
        importers.update(_imports(source.tree) & modules.keys())
    return sum(number == 1 for number in importers.values())


def _imports(tree: ast.Module) -> set[str]:
    """Returns the dotted names that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{x.name}" for x in node.names)
    return names


def _files_with(files: list[Source], word: str) -> int:
    return sum(bool(re.search(rf"\b{word}\b", x.text)) for x in files)
