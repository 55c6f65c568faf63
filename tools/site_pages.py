"""Adds the results and the changelog to the site.

mkdocs calls these functions (`hooks` in mkdocs.yml). The files stay where the
repository has them, and their links are rewritten.
"""

import pathlib
import posixpath
import re
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[1]
# File of the repository -> page of the site.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "results.md",
}
# Pages that have every word, and that search lists after the others.
_LAST_IN_SEARCH = ("index.md", *PAGES.values())
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


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
        text = moved(source, (_ROOT / source).read_text("utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Makes links of the files of `PAGES` that a page only names."""
    if page.file.src_uri in _LAST_IN_SEARCH:
        page.meta["search"] = {"boost": 0.1}
    if page.file.src_uri in PAGES.values():
        return markdown
    folder = posixpath.dirname(page.file.src_uri)
    for source, target in PAGES.items():
        link = posixpath.relpath(target, folder or ".")
        markdown = markdown.replace(f"`{source}`", f"[`{source}`]({link})")
    return markdown
