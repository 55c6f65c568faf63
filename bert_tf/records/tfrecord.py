"""Writes TFRecord files without TensorFlow, and finds impossible lengths.

The format is described in tensorflow/core/lib/io/record_writer.h.
"""

import contextlib
import itertools
import mmap
import os
import struct
import types
from collections.abc import Iterable, Sequence
from typing import Self

from bert_tf import files

import google_crc32c
import numpy as np
from etils import epath

_DELTA = np.uint32(0xA282EAD8)
# Bytes around each record: its length with a checksum, and its own checksum.
_HEADER, _FOOTER = 8 + 4, 4
# Max records that are joined in memory.
_AT_A_TIME = 1024


def _checksums(data: Sequence[bytes]) -> np.ndarray:
    """CRC-32C, rotated so that checksums of checksums are safe."""
    values = np.fromiter(map(google_crc32c.value, data), np.uint32, len(data))
    rotated = values >> np.uint32(15) | values << np.uint32(17)
    return (rotated + _DELTA).astype("<u4")


def impossible_length(
    path: str | os.PathLike[str], most: int | None = None
) -> tuple[int, int] | None:
    """Finds a record whose stated length exceeds its file; None without one.

    TensorFlow allocates the length that a record states if its checksum is
    right, and crashes if memory is insufficient. This function only reads the
    lengths: of the first `most` records, and for remote files of the first
    record.

    Returns:
        The number of the record, from 1, and its length in bytes.
    """
    name = os.fspath(path)
    if "://" in name:
        place = epath.Path(name)
        with place.open("rb") as file:
            header = file.read(_HEADER)
        return _find_impossible(header, place.stat().length, 1)
    size = os.path.getsize(name)
    # An empty file cannot be mapped.
    if size < _HEADER:
        return None
    with (
        open(name, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return _find_impossible(data, size, most)


def _find_impossible(
    data: bytes | mmap.mmap, size: int, most: int | None
) -> tuple[int, int] | None:
    start = 0
    for number in itertools.count(1) if most is None else range(1, most + 1):
        if start + _HEADER > len(data):
            return None
        length, checksum = struct.unpack_from("<QI", data, start)
        if length > size:
            is_right = checksum == _checksums([data[start : start + 8]])[0]
            return (number, length) if is_right else None
        start += length + _HEADER + _FOOTER
    return None


class Writer:
    """Context manager that writes a file, which appears when it is complete.

    After an exception there is no file.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        self._stack = contextlib.ExitStack()
        self._headers: dict[int, bytes] = {}
        self.records = 0

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(files.new_file(self.path))
        return self

    def write(self, record: bytes) -> None:
        """Appends one serialized record."""
        self.write_all([record])

    def write_all(self, serialized: Iterable[bytes]) -> None:
        """Appends many serialized records, each faster than with `write`."""
        records = iter(serialized)
        while part := list(itertools.islice(records, _AT_A_TIME)):
            self._write_part(part)

    def _write_part(self, serialized: Sequence[bytes]) -> None:
        sums = _checksums(serialized).tobytes()
        parts = [b""] * (3 * len(serialized))
        parts[::3] = [self._header(len(record)) for record in serialized]
        parts[1::3] = serialized
        parts[2::3] = [sums[i : i + 4] for i in range(0, len(sums), 4)]
        self._file.write(b"".join(parts))
        self.records += len(serialized)

    def _header(self, length: int) -> bytes:
        # Records of one type have few distinct lengths.
        header = self._headers.get(length)
        if header is None:
            packed = struct.pack("<Q", length)
            header = packed + _checksums([packed]).tobytes()
            self._headers[length] = header
        return header

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self._stack.__exit__(error_type, error, traceback)
