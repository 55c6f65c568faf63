"""Rules about docs/architecture.md: its table, picture and names are current.

The page has a table of components, which are groups of modules, and a picture
of the imports between them.
"""

import ast
import html
import re
from collections.abc import Iterator, Mapping

from tools.lint import code
from tools.lint.problems import File, Problem, Repository

PAGE = "docs/architecture.md"
PICTURE = "docs/pictures/components.svg"
# A row of the table of components: its name and its modules.
_ROW = r"^([\w ]+) \| (`[\w*]+`(?:, `[\w*]+`)*|`\*\.py`) \|"
_SCRIPTS = "*.py"
# Component -> the components that it imports.
Imports = dict[str, set[str]]


def components(page: File) -> dict[str, str]:
    """Returns the component of each module of bert_tf and of the scripts."""
    return {
        module: match[1]
        for _, match in page.find(_ROW)
        for module in re.findall(r"`([^`]+)`", match[2])
    }


def imports(repository: Repository, names: Mapping[str, str]) -> Imports:
    """Returns the imports between components, in the order of the table.

    `names` are the components of modules, as `components` returns them.
    """
    found: Imports = {name: set() for name in names.values()}
    for file in [*repository.package, *repository.scripts]:
        name = names.get(_module(file), "")
        for _, imported in code.imports(file):
            package, *path = imported.split(".")
            if name and package == "bert_tf" and path:
                found[name].add(names.get(path[0], name))
    return {name: others - {name} for name, others in found.items()}


def _module(file: File) -> str:
    """Returns the module or folder of bert_tf that a file belongs to."""
    package, *path = file.stem.split("/")
    return path[0] if package == "bert_tf" else _SCRIPTS


def arrows(found: Imports) -> set[tuple[str, str]]:
    """Returns the imports that do not follow from others (no cycles)."""
    return {
        (name, other)
        for name, others in found.items()
        for other in others
        if not any(other in _below(found, x) for x in others - {other})
    }


def _below(found: Imports, name: str) -> set[str]:
    """Returns everything that a component imports, also through others."""
    below, new = set(), {name}
    while new:
        below |= new
        new = {x for one in new for x in found[one]} - below
    return below - {name}


def components_have_all_modules(repository: Repository) -> Iterator[Problem]:
    """The table has each module once, after all modules that it imports."""
    page = File(repository.root, PAGE)
    names = components(page)
    there = {_module(file) for file in repository.package} | {_SCRIPTS}
    for module in sorted(there - names.keys()):
        yield page.problem(
            1, f"the table of components lacks {module}. Add it to a row."
        )
    for module in sorted(names.keys() - there):
        yield page.problem(1, f"there is no {module}. Remove it.")
    order = list(dict.fromkeys(names.values()))
    for name, others in imports(repository, names).items():
        for other in sorted(others):
            if order.index(other) > order.index(name):
                yield page.problem(
                    1,
                    f"{name} imports {other}, which is below it in the table. "
                    "Move the row.",
                )


def picture_is_current(repository: Repository) -> Iterator[Problem]:
    """The picture shows the imports that the code has."""
    page = File(repository.root, PAGE)
    expected = arrows(imports(repository, components(page)))
    picture = File(repository.root, PICTURE)
    titles = (html.unescape(x[1]) for _, x in picture.find("<title>(.*)</titl"))
    drawn = {tuple(title.split("->")) for title in titles if "->" in title}
    for pair in sorted(expected ^ drawn):
        has = "lacks" if pair in expected else "has no reason for"
        yield picture.problem(
            1, f"the picture {has} {' -> '.join(pair)}. Run `make picture`."
        )


def _defined(tree: ast.AST, before: str = "") -> Iterator[str]:
    """Yields the names that a module defines, with its classes' names."""
    for node in ast.iter_child_nodes(tree):
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                yield before + target.id
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield before + node.name
        if isinstance(node, ast.ClassDef):
            yield before + node.name
            yield from _defined(node, f"{before}{node.name}.")


def named_code_exists(repository: Repository) -> Iterator[Problem]:
    """A row that names files names functions and classes of these files."""
    page = File(repository.root, PAGE)
    for line, text in enumerate(page.text.splitlines(), 1):
        words = re.findall(r"`([^`]+)`", text)
        paths = [x for x in words if x.endswith(".py") and x != _SCRIPTS]
        files = [x for path in paths for x in repository.files(path)]
        defined = {name for file in files for name in _defined(file.tree)}
        names = [x for x in words if re.fullmatch(r"[A-Za-z_][\w.]*", x)]
        missing = set(paths) - {file.path for file in files}
        if files:
            missing |= {x for x in names if x not in paths} - defined
        for name in sorted(missing):
            yield page.problem(line, f"there is no {name}. Correct the row.")


RULES = (components_have_all_modules, picture_is_current, named_code_exists)
