"""The site works from disk, and includes pages for files outside docs/."""

import json
import pathlib
import re
import types

from tools import site_pages

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_pages_link_to_files_not_to_folders():
    """Opened from disk, a link to a folder lists files instead of a page."""
    settings = (_ROOT / "mkdocs.yml").read_text("utf-8")
    assert re.search(r"^plugins:\n(?: .*\n)*  - offline$", settings, re.M)
    (script,) = re.findall(r"polyfills:\n.*\n    - (.*)", settings)
    # Otherwise the plugin loads a script from another host.
    assert "iframe-worker" in script
    assert (_ROOT / "docs" / script).is_file()


@pytest.mark.parametrize("source", site_pages.PAGES)
def test_links_of_pages_from_other_folders(source):
    text = site_pages.read(source)
    links = re.findall(r"\]\((?!https?://|#|data:)([^)#]+)", text)
    assert links
    pages = site_pages.PAGES.values()
    assert all(x in pages or (_ROOT / "docs" / x).exists() for x in links)


def test_links_are_rewritten():
    text = "[a](../docs/b.md#c) [d](#e) [f](../CHANGELOG.md) [g](https://h.i/j)"
    assert site_pages.moved("benchmarks/RESULTS.md", text) == (
        "[a](b.md#c) [d](#e) [f](changelog.md) [g](https://h.i/j)"
    )


def test_notebooks_are_pages():
    """With text, code, outputs and images."""
    stream = {"output_type": "stream", "text": ["a\n", "b\n"]}
    picture = {
        "output_type": "display_data",
        "data": {"text/plain": ["<Figure>"], "image/png": "iVBO\nRw0="},
    }
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Text."]},
        {"cell_type": "code", "source": ["f()"], "outputs": [stream, picture]},
        {"cell_type": "code", "source": ["!ls"], "outputs": []},
    ]
    assert site_pages.markdown(json.dumps({"cells": cells})) == (
        "# Title\nText.\n\n"
        "```python\nf()\n```\n\n"
        "```text\na\nb\n```\n\n"
        "![Output](data:image/png;base64,iVBORw0=)\n\n"
        "```bash\nls\n```\n"
    )


def test_pages_link_to_files_that_they_name():
    page = types.SimpleNamespace(
        file=types.SimpleNamespace(src_uri="guides/models.md"), meta={}
    )
    text = "Scores are in `benchmarks/RESULTS.md`."
    assert site_pages.on_page_markdown(text, page, files=[]) == (
        "Scores are in [`benchmarks/RESULTS.md`](../results.md)."
    )
    assert page.meta == {}
    # Searches list pages that contain every word after the others.
    page.file.src_uri = "results.md"
    assert site_pages.on_page_markdown(text, page) == text
    assert page.meta["search"]["boost"] < 1
