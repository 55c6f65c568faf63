"""The files of the repository, and problems in them."""

import ast
import dataclasses
import functools
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from tools import site_pages

# The last line of scripts and of benchmarks.
_RUNS = re.compile(r"^    (app|command_line)\.run\(", re.MULTILINE)


@dataclasses.dataclass(frozen=True, order=True)
class Problem:
    """A rule that a line of a file breaks, and how to fix it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclasses.dataclass(frozen=True, eq=False)
class File:
    """A text file of the repository.

    Attributes:
        root: The folder of the repository.
        path: The file's path from there.
    """

    root: pathlib.Path
    path: str

    @functools.cached_property
    def text(self) -> str:
        """The contents."""
        return (self.root / self.path).read_text(encoding="utf-8")

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The parsed contents of a Python file; ruff reports wrong syntax."""
        try:
            return ast.parse(self.text)
        except SyntaxError:
            return ast.Module([], [])

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def stem(self) -> str:
        """The path without ".py"."""
        return self.path.removesuffix(".py")

    def problem(self, line: int, message: str) -> Problem:
        """Returns a problem in this file."""
        return Problem(self.path, line, message)

    def find(self, pattern: str) -> Iterator[tuple[int, re.Match[str]]]:
        """Yields all matches in the contents with their line numbers."""
        for match in re.finditer(pattern, self.text, re.MULTILINE):
            yield self.text.count("\n", 0, match.start()) + 1, match


class Notebook(File):
    """A notebook, whose text and lines are those of its page."""

    @functools.cached_property
    def text(self) -> str:
        """The cells and their outputs as Markdown."""
        return site_pages.markdown(super().text)

    @property
    def cells(self) -> list[tuple[int, dict[str, Any]]]:
        """The cells with code and their numbers among all, from 1."""
        contents = (self.root / self.path).read_text(encoding="utf-8")
        cells = enumerate(json.loads(contents)["cells"], 1)
        return [(n, cell) for n, cell in cells if cell["cell_type"] == "code"]


class Repository:
    """The files that the rules check."""

    def __init__(self, root: pathlib.Path):
        """Reads the repository in a folder."""
        self.root = root
        self.scripts = self.files("*.py")
        self.package = self.files("bert_tf/**/*.py")
        self.examples = self.files("examples/**/*.py")
        self.programs = [
            *self.scripts,
            *self.files("benchmarks/**/*.py"),
            *self.examples,
        ]
        self.pages = self.files("docs/**/*.md")
        self.notebooks = [
            Notebook(root, file.path)
            for file in self.files("notebooks/*.ipynb")
        ]
        self.documents = [
            *self.files("*.md"),
            *self.files("benchmarks/*.md"),
            *self.pages,
            *self.notebooks,
        ]
        self.flagfiles = self.files("configs/**/*.flags")
        self.sources = [*self.programs, *self.documents, *self.flagfiles]

    def files(self, pattern: str) -> list[File]:
        """Returns the files of a pattern, sorted by their paths."""
        paths = sorted(self.root.glob(pattern))
        return [
            File(self.root, path.relative_to(self.root).as_posix())
            for path in paths
        ]

    @functools.cached_property
    def flag_readers(self) -> list[File]:
        """The programs that read flags with absl."""
        return [file for file in self.programs if _RUNS.search(file.text)]
