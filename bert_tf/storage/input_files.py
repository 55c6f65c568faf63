"""Explains what is wrong with a file before its content is parsed.

It may be a git-lfs pointer, a web page, compressed, or missing. Also parses
labels.txt, which models and exports have.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator

from bert_tf.errors import InputError
from bert_tf.storage import file_systems

from etils import epath

_LFS = b"version https://git-lfs.github.com"
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
# Magic of .xls; first names in .xlsx and .ods, which are zip files.
_WORKBOOK = b"\xd0\xcf\x11\xe0"
_FIRST_IN_WORKBOOK = (
    b"[Content_Types].xml",
    b"_rels/",
    b"docProps/",
    b"xl/",
    b"mimetypeapplication/vnd.oasis.opendocument",
)
# With the byte of the first page's header, or padding: a text may begin alike.
_TABLES = {b"PAR1\x15": "Parquet", b"ARROW1\x00\x00": "Arrow"}
_WIDE = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def check(path: str | os.PathLike[str], flag: str = "") -> None:
    """Raises unless there is a file at a path; errors name the `flag`.

    FileNotFoundError is raised for a broken link, too, InputError for a folder.
    """
    path = os.fspath(path)
    system = file_systems.find_backend(path)
    name = f"{flag}=" * bool(flag)
    if not system.exists(path):
        raise FileNotFoundError(
            f"There is no such file. Received: {name}{path}"
        )
    if system.isdir(path):
        raise InputError(
            f"This is a folder: give a file. Received: {name}{path}"
        )


def check_can_be_read_again(path: str | os.PathLike[str]) -> None:
    """Raises InputError for a pipe, whose content can only be read once."""
    path = os.fspath(path)
    if file_systems.is_special(path):
        raise InputError(
            "This file is read twice, which a pipe or a device can't be: "
            f"write what it gives to a file. Received: {path}"
        )


@contextlib.contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Yields the path of a file on this machine, a copy if it is remote."""
    if not file_systems.is_remote(path):
        check_can_be_read_again(path)
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, os.path.basename(path))
        file_systems.find_backend(path).copy(path, copy, overwrite=True)
        yield copy


def check_no_pipes(folder: str) -> None:
    """Raises InputError if a pipe or a device is in a folder, at any depth.

    For folders whose files TensorFlow opens: it would block.
    """
    if file_systems.is_remote(folder):
        return
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            if file_systems.is_special(path):
                raise InputError(
                    "A model can't be read from a pipe or a device: write "
                    f"what it gives to a file. Received: {path}"
                )


def read(path: str | os.PathLike[str], flag: str = "") -> bytes:
    """Returns the content of a file after both checks; see `check`."""
    check(path, flag)
    check_can_be_read_again(path)
    return epath.Path(path).read_bytes()


def explain_text(start: bytes) -> str:
    """Explains why a file is not text, for example "it is empty".

    `start` is its first 64 bytes. Returns "" if they explain nothing.
    """
    if start.startswith(_WORKBOOK) or (
        start.startswith(b"PK\x03\x04")
        and start[30:].startswith(_FIRST_IN_WORKBOOK)
    ):
        return "it is a workbook, such as Excel's. Save it as CSV in UTF-8"
    for magic, name in _COMPRESSED.items():
        if start.startswith(magic):
            return f"it is compressed ({name}). Unpack it"
    for magic, name in _TABLES.items():
        if start.startswith(magic):
            return f"it is {name}. Save it as JSON lines or CSV"
    for magic, name in _WIDE.items():
        if start.startswith(magic):
            return f"it is {name}, not UTF-8. Convert it, as with iconv"
    # Exactly every other byte of Latin text is NUL.
    even, odd = start[::2], start[1::2]
    is_latin = any(all(a) and not any(b) for a, b in ((even, odd), (odd, even)))
    if len(start) > 2 and is_latin:
        return (
            "it is UTF-16 without a byte-order mark, or not text. Convert it, "
            "as with iconv"
        )
    return explain(start)


def explain(start: bytes) -> str:
    """Like `explain_text`, for files of any format."""
    if not start.strip():
        return "it is empty"
    if start.startswith(_LFS):
        return (
            "it is a pointer of git-lfs, not the file itself. Run `git lfs "
            "pull` in the clone that it comes from"
        )
    if start.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return (
            "it is a web page, saved in the place of the file. Download the "
            "file itself"
        )
    return ""


def check_line_ends(path: str, only: str) -> None:
    """Raises InputError if a file's only line has carriage returns inside."""
    if "\r" in only.rstrip("\r\n"):
        raise InputError(
            f"{path} is one line, with carriage returns (CR) inside. Expected "
            "line feeds (LF or CR LF) between lines. Convert the file by tr "
            "'\\r' '\\n' < FILE > NEW_FILE."
        )


def parse_labels(text: str) -> list[str]:
    """Returns the class names in the text of a labels.txt, one a line.

    Editors of Windows add a byte order mark and carriage returns.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
    # Not splitlines: a name may have a character that it takes for a line end.
    return text.split("\n") if text else []
