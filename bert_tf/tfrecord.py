"""Writes TFRecord files without TensorFlow.

A record is its length, a checksum of the length, the data and a checksum of the
data (tensorflow/core/lib/io/record_writer.h).
"""

import os
import struct
from collections.abc import Iterable
from typing import Self

import google_crc32c
from etils import epath

_DELTA = 0xA282EAD8


def _checksum(data: bytes) -> int:
    """CRC-32C, rotated so that checksums of checksums are no trouble."""
    value = google_crc32c.value(data)
    return ((value >> 15 | value << 17) + _DELTA) & 0xFFFFFFFF


class Writer:
    """Writes a file that appears only when it is complete.

    A context manager: leaving it normally renames the temporary file, leaving
    it by an exception removes it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = epath.Path(path)
        self._temporary = epath.Path(os.fspath(path) + ".tmp")
        self._headers: dict[int, bytes] = {}
        self.records = 0

    def __enter__(self) -> Self:
        self._file = self._temporary.open("wb")
        return self

    def write_all(self, serialized: Iterable[bytes]) -> None:
        """Appends serialized records."""
        parts = []
        for record in serialized:
            parts.append(self._header(len(record)))
            parts.append(record)
            parts.append(struct.pack("<I", _checksum(record)))
        self._file.write(b"".join(parts))
        self.records += len(parts) // 3

    def _header(self, length: int) -> bytes:
        # Records of one kind have few different lengths.
        header = self._headers.get(length)
        if header is None:
            packed = struct.pack("<Q", length)
            header = packed + struct.pack("<I", _checksum(packed))
            self._headers[length] = header
        return header

    def __exit__(self, error_type: type | None, *_: object) -> None:
        try:
            self._file.close()
            if error_type is None:
                self._temporary.replace(self._path)
        finally:
            self._temporary.unlink(missing_ok=True)
