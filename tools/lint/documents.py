"""Rules about the documents: paths, links, menu and modules exist."""

import ast
import re
from collections.abc import Iterator

from tools import site_pages
from tools.lint.problems import File, Problem, Repository

# A path of the repository, perhaps with a `*`.
_PATH = (
    r"(?<![\w/.$])((?:bert_tf|benchmarks|configs|docker|docs|examples|notebooks"
    r"|tests|tools)/[\w./*-]*\w)"
)
# To a file, perhaps with a heading.
_LINK = r"\]\((?!https?://|data:)([^)#\s]*)(?:#([\w-]+))?\)"
_README_LINES = 180


def paths_exist(repository: Repository) -> Iterator[Problem]:
    """Files and folders that documents and programs name must exist."""
    for file in repository.sources:
        for line, match in file.find(_PATH):
            if not any(repository.root.glob(match[1])):
                yield file.problem(
                    line, f"there is no {match[1]}. Name the file's new path."
                )


def _headings(text: str) -> set[str]:
    """Returns the anchors of the headings of a document."""
    headings = set()
    for title in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", title).strip().lower()
        headings.add(re.sub(r"\s", "-", plain))
    return headings


def links_lead_somewhere(repository: Repository) -> Iterator[Problem]:
    """Links between documents, and to their headings, must resolve."""
    site = repository.root / "docs"
    for file in repository.documents:
        source = repository.root / file.path
        for line, match in file.find(_LINK):
            path, heading = match.groups()
            to = (source.parent / path if path else source).resolve()
            if not to.exists():
                yield file.problem(
                    line, f"the link {path} leads nowhere. Correct its path."
                )
            elif source.is_relative_to(site) and not to.is_relative_to(site):
                yield file.problem(
                    line,
                    f"the link {path} leads out of docs/, which is all that "
                    "the site of `make docs` has. Name the file instead.",
                )
            elif heading and heading not in _headings(
                to.read_text(encoding="utf-8")
            ):
                yield file.problem(
                    line,
                    f"{path or file.path} has no heading #{heading}. Correct "
                    "the link.",
                )


def readme_is_short(repository: Repository) -> Iterator[Problem]:
    """The README is an overview; details are in docs/."""
    readme = File(repository.root, "README.md")
    lines = readme.text.count("\n")
    if lines > _README_LINES:
        yield readme.problem(
            lines,
            f"README.md has {lines} lines: expected are at most "
            f"{_README_LINES}. Move details to docs/.",
        )


def every_page_is_in_the_menus(repository: Repository) -> Iterator[Problem]:
    """Pages are found from mkdocs.yml, README.md and docs/index.md."""
    menu = File(repository.root, "mkdocs.yml")
    pages = {file.path.removeprefix("docs/") for file in repository.pages}
    seen = set()
    generated = site_pages.PAGES.values()
    for line, match in menu.find(r": (\S+\.md)$"):
        if match[1] in seen or match[1] not in {*pages, *generated}:
            how = "twice in the menu" if match[1] in seen else "not in docs/"
            yield menu.problem(line, f"{match[1]} is {how}. Remove the line.")
        seen.add(match[1])
    for page in sorted(pages - seen):
        yield menu.problem(
            1, f"docs/{page} is not in the menu. Add a line to `nav`."
        )
    overviews = (("README.md", "](docs/{}"), ("docs/index.md", "]({})"))
    for path, link in overviews:
        overview = File(repository.root, path)
        for page in sorted(pages):
            is_listed = "/" in page or path == f"docs/{page}"
            if not is_listed and link.format(page) not in overview.text:
                yield overview.problem(
                    1, f"there is no link to docs/{page}. Add one."
                )


def _has(module: File, name: str) -> bool:
    """Whether a module defines a name at its top level, or imports it."""
    nodes = ast.walk(module.tree)
    imports = [x for x in nodes if isinstance(x, ast.ImportFrom)]
    if any(alias.name == name for x in imports for alias in x.names):
        return True
    for node in module.tree.body:
        if getattr(node, "name", None) == name:
            return True
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(isinstance(x, ast.Name) and x.id == name for x in targets):
            return True
    return False


def documented_modules_exist(repository: Repository) -> Iterator[Problem]:
    """Modules and names whose docstrings a page shows must exist."""
    for file in repository.pages:
        for line, match in file.find(r"^::: (\S+)$"):
            path = match[1].replace(".", "/")
            if (repository.root / f"{path}.py").exists():
                continue
            if (repository.root / path / "__init__.py").exists():
                continue
            folder, _, name = path.rpartition("/")
            modules = [
                *repository.files(f"{folder}.py"),
                *repository.files(f"{folder}/__init__.py"),
            ]
            if not any(_has(module, name) for module in modules):
                yield file.problem(
                    line, f"there is no {match[1]}. Correct the name."
                )


RULES = (
    paths_exist,
    links_lead_somewhere,
    readme_is_short,
    every_page_is_in_the_menus,
    documented_modules_exist,
)
