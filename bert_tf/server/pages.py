"""The web pages of the server, which need no other resources."""

import functools
import importlib.resources

# Forbids loading anything from other hosts.
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'"
)
_SHARED = ("shared.css", "shared.js")


# Path -> file.
FILES = {"/": "page.html", "/docs": "docs.html"}


@functools.cache
def read(path: str) -> str:
    """Returns the HTML of a page, with the shared style and code."""
    text = _read(FILES[path])
    for name in _SHARED:
        text = text.replace(f"/* {name} */", _read(name))
    return text


def _read(name: str) -> str:
    file = importlib.resources.files("bert_tf.server").joinpath(name)
    return file.read_text(encoding="utf-8")
