"""Files of vectors: the original's JSON lines, NumPy, Parquet, TFRecord.

Vectors are written as they arrive, in constant memory. A file appears under its
final name only once it is complete.

Shapes: n vectors per line, K layers, D values.
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol

from bert_tf import extras, files
from bert_tf.errors import InputError
from bert_tf.records import tfrecord, wire_format
from bert_tf.tasks.features import feature_layers, feature_lines

import numpy as np

_ENDINGS = {".npy": "npy", ".parquet": "parquet", ".tfrecord": "tfrecord"}


# Extensions of other formats, which must not be written as JSON lines.
_OF_OTHERS = (
    *(".csv", ".feather", ".h5", ".hdf5", ".mat", ".npz", ".pkl", ".pq"),
    *(".pt", ".pth", ".safetensors", ".tsv"),
)


def format_of(path: str) -> str:
    """Returns the format for a file's extension, by default JSON lines.

    Raises InputError for the extension of a format that cannot be written.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending in _OF_OTHERS:
        raise InputError(
            f"No file of {ending} is written: give a name that ends in "
            f"{', '.join(_ENDINGS)} or .jsonl, or --output_format. "
            f"Received: output_file={path}"
        )
    return _ENDINGS.get(ending, "jsonl")


class Writer(Protocol):
    """Writes lines and their vectors to a file."""

    def write(
        self, lines: Sequence[feature_lines.Line], vectors: Sequence[np.ndarray]
    ) -> None:
        """Appends lines in order; each line's vectors are [n, K, D]."""


@contextlib.contextmanager
def writer(
    path: str,
    file_format: str,
    choice: feature_layers.Choice,
    unit: str,
    vocab: Sequence[str],
) -> Iterator[Writer]:
    """Opens a file of vectors, which appears when the context exits.

    `unit` is one of options.UNITS; `vocab` maps ids to token texts.
    """
    if file_format == "tfrecord":
        with tfrecord.Writer(path) as records_file:
            yield _TfRecords(records_file)
        return
    if file_format == "npy":
        with _numpy_writer(path, unit) as arrays:
            yield arrays
        return
    with files.new_file(path) as file:
        output = _KINDS[file_format](file, choice, unit, vocab)
        try:
            yield output
        finally:
            output.finish()


def _tokens(
    line: feature_lines.Line, unit: str, vocab: Sequence[str]
) -> Sequence[str]:
    """Returns the token, word or line that each vector belongs to."""
    return [vocab[i] for i in line.ids] if unit == "token" else line.words


class _JsonLines:
    """The original's JSON lines, with word and line vectors in addition."""

    def __init__(
        self,
        file: IO[bytes],
        choice: feature_layers.Choice,
        unit: str,
        vocab: Sequence[str],
    ):
        self._file = file
        self._names = choice.names
        self._unit = unit
        self._vocab = vocab

    def write(
        self, lines: Sequence[feature_lines.Line], vectors: Sequence[np.ndarray]
    ) -> None:
        for line, values in zip(lines, vectors, strict=True):
            row: dict[str, Any] = {"linex_index": line.index}
            layers = [self._layers(x) for x in values]
            if self._unit in ("token", "word"):
                tokens = _tokens(line, self._unit, self._vocab)
                row["features"] = [
                    {"token": token, "layers": x}
                    for token, x in zip(tokens, layers, strict=True)
                ]
            else:
                (row["layers"],) = layers
            self._file.write(json.dumps(row).encode() + b"\n")

    def _layers(self, vectors: np.ndarray) -> list[dict[str, Any]]:
        # The original rounds in Python; NumPy's rounding differs at times.
        return [
            {"index": name, "values": [round(x, 6) for x in values]}
            for name, values in zip(self._names, vectors.tolist(), strict=True)
        ]

    def finish(self) -> None:
        """Does nothing: JSON lines have no footer."""


_OFFSETS = ".offsets.npy"


@contextlib.contextmanager
def _numpy_writer(path: str, unit: str) -> Iterator["_Npy"]:
    """Opens a file of vectors and, if lines have several, a file of offsets.

    If writing is interrupted, no offsets are left, so old offsets never appear
    next to new vectors.
    """
    if "://" in path:
        raise InputError(
            "An .npy file is written in place, which a bucket does not allow. "
            "Write it to a local disk, or as Parquet or TFRecord. "
            f"Received: {path}"
        )
    beside = pathlib.Path(path + _OFFSETS)
    has_offsets = unit in ("token", "word")
    with (
        # Renamed last, after the vectors.
        files.new_file(beside if has_offsets else os.devnull) as offsets,
        files.new_file(path) as vectors,
    ):
        output = _Npy(_GrowingArray(vectors), _GrowingArray(offsets))
        yield output
        output.finish()
        beside.unlink(missing_ok=True)


class _Npy:
    """Vectors [total, K * D] float32, and `<file>.offsets.npy` [lines + 1]."""

    def __init__(self, vectors: "_GrowingArray", offsets: "_GrowingArray"):
        self._vectors = vectors
        self._offsets = offsets
        self._total = 0
        offsets.append(np.zeros([1], "<i8"))

    def write(
        self, lines: Sequence[feature_lines.Line], vectors: Sequence[np.ndarray]
    ) -> None:
        del lines
        for values in vectors:
            flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
            self._vectors.append(flat.astype("<f4", copy=False))
        ends = self._total + np.cumsum([len(x) for x in vectors], dtype="<i8")
        self._offsets.append(ends)
        self._total = int(ends[-1])

    def finish(self) -> None:
        self._vectors.finish()
        self._offsets.finish()


class _GrowingArray:
    """An .npy file whose first dimension is known only at the end."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._length = 0
        self._like = np.zeros([0], "<f4")

    def append(self, values: np.ndarray) -> None:
        if not self._length:
            self._like = values[:0]
            self._write_header()
        self._file.write(values.tobytes())
        self._length += len(values)

    def finish(self) -> None:
        self._write_header()

    def _write_header(self) -> None:
        # NumPy reserves room in the header for the first dimension to grow.
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(self._like.dtype),
                "fortran_order": False,
                "shape": (self._length, *self._like.shape[1:]),
            },
        )


class _Parquet:
    """One row per line: its number, its tokens and its vectors."""

    def __init__(
        self,
        file: IO[bytes],
        choice: feature_layers.Choice,
        unit: str,
        vocab: Sequence[str],
    ):
        del choice
        extras.check("pyarrow", "parquet", "Parquet files")
        import pyarrow
        import pyarrow.parquet

        self._arrow = pyarrow
        self._file = file
        self._writer: Any = None
        self._unit = unit
        self._vocab = vocab

    def write(
        self, lines: Sequence[feature_lines.Line], vectors: Sequence[np.ndarray]
    ) -> None:
        arrow = self._arrow
        width = int(np.prod(vectors[0].shape[1:]))
        flat = np.concatenate([x.reshape(-1) for x in vectors])
        values = arrow.FixedSizeListArray.from_arrays(arrow.array(flat), width)
        columns = {"line": arrow.array([x.index for x in lines], arrow.int64())}
        if self._unit in ("token", "word"):
            offsets = np.cumsum([0, *map(len, vectors)], dtype=np.int32)
            columns["tokens"] = arrow.array(
                [list(_tokens(x, self._unit, self._vocab)) for x in lines],
                arrow.list_(arrow.string()),
            )
            columns["vectors"] = arrow.ListArray.from_arrays(
                arrow.array(offsets), values
            )
        else:
            columns["vector"] = values
        table = arrow.table(columns)
        if self._writer is None:
            self._writer = arrow.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()


_KINDS: Mapping[str, Callable[..., "_JsonLines | _Parquet"]] = {
    "jsonl": _JsonLines,
    "parquet": _Parquet,
}


class _TfRecords:
    """One Example per line: `line`, `shape` and the flattened `vectors`."""

    def __init__(self, file: tfrecord.Writer):
        self._file = file

    def write(
        self, lines: Sequence[feature_lines.Line], vectors: Sequence[np.ndarray]
    ) -> None:
        for line, values in zip(lines, vectors, strict=True):
            row = {
                "line": np.array([[line.index]]),
                "shape": np.array([values.shape]),
                "vectors": values.reshape(1, -1),
            }
            self._file.write_all(wire_format.encode(row))
