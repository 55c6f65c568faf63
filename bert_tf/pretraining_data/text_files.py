"""Reads lines of text files: compressed or not, local or on gs://.

Text that is not UTF-8 is rejected, with the file and the line, or replaced.
"""

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bert_tf.errors import InputError
from bert_tf.storage import input_files

from backports import zstd
from etils import epath

ON_BAD_TEXT = ("error", "replace")
REMEDY = ". Convert it, as with iconv, or give --on_bad_text=replace"

# Bounds the memory. A book in one line is a tenth of it.
MAX_LINE = 32 << 20

_WINDOW = zstd.DecompressionParameter.window_log_max
_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    # With --long=31, files need 2 GB: as much as zstd can read.
    ".zst": functools.partial(
        zstd.open, options={_WINDOW: _WINDOW.bounds()[1]}
    ),
}
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError)
_BUFFER = 1 << 20


class Line(NamedTuple):
    """A line of a file, without white space at its ends.

    `offset` and `size` (including the newline) are in bytes of uncompressed
    text.
    """

    offset: int
    text: str
    size: int
    replaced: bool


def is_compressed(file: str) -> bool:
    """Returns whether a file is compressed, by the suffix of its name."""
    return epath.Path(file).suffix in _OPENERS


class _Raw(io.RawIOBase):
    """Adapts a file of another library, such as tf.io.gfile, to Python's io."""

    def __init__(self, file: Any):
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._file.seek(offset, whence)
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()


@contextlib.contextmanager
def open_bytes(file: str) -> Iterator[io.BufferedReader]:
    """Opens a file and decompresses it; InputError if it is corrupt."""
    path = epath.Path(file)
    with contextlib.ExitStack() as stack:
        stream: Any = stack.enter_context(path.open("rb"))
        if not isinstance(stream, io.IOBase):
            stream = stack.enter_context(_Raw(stream))
        if path.suffix in _OPENERS:
            stream = stack.enter_context(_OPENERS[path.suffix](stream))
        try:
            # Buffering makes lines of compressed files twice as fast.
            yield io.BufferedReader(stream, _BUFFER)
        except _BROKEN as error:
            # Errors of the operating system have an errno.
            if getattr(error, "errno", None) is not None:
                raise
            raise InputError(
                f"{file} is truncated or corrupt, or not what its ending "
                f"{path.suffix} says: {error}"
            ) from error


def lines(file: str, on_bad_text: str, start: int = 0) -> Iterator[Line]:
    """Yields the lines that begin at or after `start`, in bytes.

    A file with a start other than 0 must not be compressed. `on_bad_text` is
    "error", or "replace" (by U+FFFD).

    Raises:
        InputError: A line is not UTF-8, contains a NUL byte or is longer than
            32 MB; or the file is not text, or one line with carriage returns.
    """
    with open_bytes(file) as stream:
        offset = start
        if not start:
            _check_is_text(file, stream.peek(64)[:64])
        if start:
            # The line with the byte before belongs to the previous range.
            stream.seek(start - 1)
            offset += _skip_line(stream) - 1
        while raw := stream.readline(MAX_LINE):
            is_only = not offset and (raw[-1:] != b"\n" or not stream.peek(1))
            if is_only and b"\0" not in raw:
                input_files.check_line_ends(file, raw.decode("latin-1"))
            if len(raw) == MAX_LINE:
                raise error_at(
                    file,
                    offset,
                    f"the line is longer than {MAX_LINE >> 20} MB: break it "
                    "into several. Is the file text, and --input_format what "
                    "it is in?",
                )
            text, problem = decode(raw)
            if problem and on_bad_text == "error":
                raise error_at(file, offset, problem + REMEDY)
            if not offset:
                text = text.removeprefix("\ufeff")  # a byte order mark
            yield Line(offset, text.strip(), len(raw), bool(problem))
            offset += len(raw)


def _check_is_text(file: str, start: bytes) -> None:
    # Blank lines are allowed anywhere.
    problem = input_files.explain_text(start) if start.strip() else ""
    if problem:
        raise InputError(
            f"{file} is no text: {problem}"
            + f", or name it by what it is ({', '.join(_OPENERS)})"
            * ("compressed" in problem)
        )


def _skip_line(stream: io.BufferedReader) -> int:
    size = 0
    while part := stream.readline(_BUFFER):
        size += len(part)
        if part.endswith(b"\n"):
            break
    return size


def decode(raw: bytes) -> tuple[str, str]:
    """Returns the decoded text, and a description of errors, or ""."""
    try:
        text, problem = raw.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", "replace")
        problem = (
            f"the text must be UTF-8 ({error.reason}). "
            f"Received: byte {error.start} is {raw[error.start]:#x}"
        )
    if "\0" in text:
        place = text.index("\0")
        problem = problem or f"no text has a NUL. Received: character {place}"
        text = text.replace("\0", "\ufffd")
    return text, problem


def error_at(file: str, offset: int, message: str) -> InputError:
    """Returns an error with the file and the line number of an offset."""
    number = 1
    with open_bytes(file) as stream:
        while offset > 0 and (data := stream.read(min(_BUFFER, offset))):
            number += data.count(b"\n")
            offset -= len(data)
    return InputError(f"{file}, line {number}: {message}")
