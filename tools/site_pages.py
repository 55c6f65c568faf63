"""Adds the results, the changelog and the notebooks to the site.

mkdocs calls these functions (`hooks` in mkdocs.yml). The files stay where the
repository has them, and their links are rewritten.
"""

import json
import pathlib
import posixpath
import re
from collections.abc import Iterator
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[1]
# File of the repository -> page of the site.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "results.md",
    "notebooks/fine_tune_and_serve.ipynb": "fine_tune_and_serve.md",
    "notebooks/pretrain_on_your_text.ipynb": "pretrain_on_your_text.md",
}
# Pages, and a folder, that search should list last: they have many words, and
# readers look for a guide first.
_LAST_IN_SEARCH = ("index.md", "changelog.md", "results.md", "api/")
_LINK = re.compile(r"\]\((?!https?://|#|data:)([^)#\s]+)")


def read(source: str) -> str:
    """Returns the Markdown of a page.

    Args:
        source: A key of `PAGES`.
    """
    text = (_ROOT / source).read_text("utf-8")
    is_notebook = source.endswith(".ipynb")
    return moved(source, markdown(text) if is_notebook else text)


def markdown(notebook: str) -> str:
    """Returns the cells and the outputs of a notebook as a page.

    Args:
        notebook: The contents of an .ipynb file.
    """
    cells = json.loads(notebook)["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    is_command = text.startswith("!")
    yield _block("bash" if is_command else "python", text.removeprefix("!"))
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            yield _block("text", "".join(output["text"]))
        elif "image/png" in output.get("data", ()):
            image = "".join(output["data"]["image/png"]).replace("\n", "")
            yield f"![Output](data:image/png;base64,{image})"


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def moved(source: str, text: str) -> str:
    """Returns the text of a file with the links that its page needs.

    Args:
        source: A key of `PAGES`.
        text: Its text, with links relative to its folder.
    """

    def link(match: re.Match[str]) -> str:
        folder = posixpath.dirname(source)
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        return f"]({PAGES.get(path, path.removeprefix('docs/'))}"

    return _LINK.sub(link, text)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=read(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Links files of `PAGES` that a page only names."""
    if page.file.src_uri.startswith(_LAST_IN_SEARCH):
        page.meta["search"] = {"boost": 0.1}
    if page.file.src_uri in PAGES.values():
        return markdown
    folder = posixpath.dirname(page.file.src_uri)
    for source, target in PAGES.items():
        link = posixpath.relpath(target, folder or ".")
        markdown = markdown.replace(f"`{source}`", f"[`{source}`]({link})")
    return markdown
