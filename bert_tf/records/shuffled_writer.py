"""Writes records in a random order, in bounded memory."""

import os
import types
from collections.abc import Iterable, Iterator

from bert_tf.records import tfrecord

import numpy as np
import tensorflow as tf

# Max bytes of records that are shuffled in memory.
_PART_BYTES = 1 << 28


class Writer(tfrecord.Writer):
    """A writer that shuffles its records uniformly.

    Parts that fit into memory are shuffled and written to temporary files. At
    the end, each next record comes from a part with a probability proportional
    to the number of its remaining records, like riffling shuffled packs of
    cards.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        seed: int,
        part_bytes: int = _PART_BYTES,
    ):
        """Keeps `part_bytes` of records in memory; `seed` fixes the order."""
        super().__init__(path)
        self._rng = np.random.default_rng(seed)
        self._part_bytes = part_bytes
        self._part: list[bytes] = []
        self._size = 0
        self._aside: list[tfrecord.Writer] = []

    def write_all(self, serialized: Iterable[bytes]) -> None:
        for record in serialized:
            self._part.append(record)
            self._size += len(record)
            if self._size >= self._part_bytes:
                self._put_aside()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        try:
            if error_type is None:
                super().write_all(self._merged())
        except BaseException as failed:
            super().__exit__(type(failed), failed, failed.__traceback__)
            raise
        else:
            super().__exit__(error_type, error, traceback)
        finally:
            for writer in self._aside:
                if tf.io.gfile.exists(writer.path):
                    tf.io.gfile.remove(writer.path)

    def _put_aside(self) -> None:
        path = f"{self.path}.part{len(self._aside)}"
        self._aside.append(tfrecord.Writer(path))
        with self._aside[-1] as writer:
            writer.write_all(self._shuffled())
        self._part, self._size = [], 0

    def _shuffled(self) -> list[bytes]:
        return [self._part[i] for i in self._rng.permutation(len(self._part))]

    def _merged(self) -> Iterator[bytes]:
        parts: list[Iterator[bytes]] = [
            tf.data.TFRecordDataset(writer.path).as_numpy_iterator()
            for writer in self._aside
        ]
        parts.append(iter(self._shuffled()))
        counts = [w.records for w in self._aside] + [len(self._part)]
        order = np.repeat(np.arange(len(parts), dtype=np.uint16), counts)
        self._rng.shuffle(order)
        return (next(parts[part]) for part in order)


def writer(path: str, seed: int | None) -> tfrecord.Writer:
    """Returns a writer that shuffles by a seed, or keeps the order without."""
    return tfrecord.Writer(path) if seed is None else Writer(path, seed)
