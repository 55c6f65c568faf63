"""The working folder of data creation: finished tasks and their results.

Every file gets its name when it is complete, so that a killed run continues
from the existing files:

    run.json                    the settings that determine the records
    counts/tokens-U.json        of unit U, a list with an entry for each chunk
    tokens/U-P.npy              the documents of chunk P of unit U
    sequences/U-P-R.bin         its sequences of repetition R, by their keys
    counts/shard-N.json         of shard N, which is in the output folder

A file of sequences begins with a table of the starts of each shard's slices. So
a shard only reads its part: the shuffle of 1,000 chunks into 10,000 shards
reads each sequence once.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.pretraining_data import pretraining_sequences, stages
from bert_tf.storage import file_systems, run_lock

import numpy as np
from etils import epath

_FOLDERS = ("counts", "tokens", "sequences")
_HEAD = np.dtype(
    [("key", "<u8"), ("length", "<u4"), ("middle", "<u4"), ("label", "i1")]
)
_TABLE = np.dtype("<i8")


class WorkFolder:
    """The files of one run; `vocab_size` determines the bytes of a token."""

    def __init__(self, path: str | os.PathLike[str], vocab_size: int):
        # "" and "." are the current folder.
        if epath.Path(path).name in ("", ".."):
            raise InputError(
                "The working folder must have a name of its own. "
                f"Received: path={os.fspath(path)!r}"
            )
        self.path = epath.Path(path)
        # The highest bit marks the start of a word.
        self._dtype = np.dtype("<u2" if vocab_size <= 1 << 15 else "<u4")

    # ---- The run ------------------------------------------------------------

    def begin(self, fingerprint: Mapping[str, Any]) -> None:
        """Creates the folder, or checks that it belongs to the same run.

        The fingerprint has the settings that determine the records, by names of
        flags. Raises InputError if it differs from the folder's.
        """
        file = self.path / "run.json"
        if file.exists():
            before = self._read_json(file)
            if not isinstance(before, dict):
                raise self._damaged(file, f"Received: {repr(before)[:40]}")
            if differences := differing(before, fingerprint):
                raise InputError(
                    f"{self.path} holds the unfinished work of another run: "
                    f"{differences}. Finish it with the same flags, remove "
                    "that folder to start again, or choose another output"
                )
        # Also after an interrupted removal, which leaves run.json.
        for name in _FOLDERS:
            (self.path / name).mkdir(parents=True, exist_ok=True)
        if not file.exists():
            files.write_json(file, fingerprint)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Locks the folder; InputError if another process works in it."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(
                f"{self.path} must be the folder that the work is done in, and "
                "is a file. Move it, or choose another output"
            )
        try:
            with run_lock.hold(self.path, what="makes records"):
                yield
        finally:
            self._remove_if_empty()

    @property
    def is_empty(self) -> bool:
        """Whether no task is finished yet."""
        return not any((self.path / "counts").iterdir())

    def remove(self) -> None:
        """Removes the run's files by name, and the folder if it is empty."""
        if not (self.path / "run.json").exists():
            return
        for folder in (self.path / name for name in _FOLDERS):
            if folder.exists():
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()
        # Last, so that an interrupted removal can be continued.
        (self.path / "run.json").unlink()
        self._remove_if_empty()

    def clear(self) -> None:
        """Removes the files of a run that was killed at its very end.

        Does nothing if another process is still removing them.
        """
        if self.path.is_dir():
            with contextlib.suppress(run_lock.HeldError), self.alone():
                self.remove()

    def _remove_if_empty(self) -> None:
        if not self.path.exists() or any(self.path.iterdir()):
            return
        if file_systems.is_remote(os.fspath(self.path)):
            self.path.rmdir()
            return
        # Another process may have begun to write here.
        with contextlib.suppress(OSError):
            os.rmdir(self.path)

    # ---- Counts, which also mark tasks as finished ---------------------------

    def save_counts(self, name: str, counts: Any) -> None:
        """Marks a task as finished, and saves its counts."""
        files.write_text(self._counts(name), json.dumps(counts))

    def load_counts(self, name: str) -> Any:
        """Returns the argument of `save_counts`, None if it was not called."""
        file = self._counts(name)
        return self._read_json(file) if file.exists() else None

    def _read_json(self, file: epath.Path) -> Any:
        try:
            return json.loads(file.read_bytes())
        except ValueError as error:  # Bad encoding or syntax.
            raise self._damaged(file, str(error)) from error

    def _damaged(self, file: epath.Path, reason: str) -> InputError:
        return InputError(
            f"{file}, of the unfinished work of an earlier run, is damaged. "
            f"Remove the folder {self.path} to begin anew. {reason}"
        )

    def _counts(self, name: str) -> epath.Path:
        return self.path / "counts" / f"{name}.json"

    def on_full_disk(self, shards: Sequence[str], error: OSError) -> str:
        """Describes finished and missing shards, and how to continue."""
        sizes = [
            epath.Path(file).stat().length
            for shard, file in enumerate(shards)
            if self.load_counts(f"shard-{shard}") is not None
        ]
        needed = ""
        if sizes:
            missing = (len(shards) - len(sizes)) * sum(sizes) / len(sizes)
            needed = f" About {missing / 1e6:,.0f} MB are still needed."
        return (
            f"Cannot write all: {error}. The {len(sizes)} finished shards stay "
            f"valid.{needed} Free space on the disk of {self.path}, then run "
            "the same command again: it goes on from here"
        )

    # ---- Documents ----------------------------------------------------------

    def save_documents(
        self, piece: stages.Chunk, documents: pretraining_sequences.Corpus
    ) -> None:
        """Writes the documents of a chunk."""
        path = self.path / "tokens" / "{:06d}-{:04d}.npy".format(*piece)
        with files.new_file(path) as file:
            for array in (
                self._pack(documents.tokens, documents.word_starts),
                documents.sentences,
                documents.documents,
                documents.keys,
            ):
                np.lib.format.write_array(file, array)

    def load_documents(
        self, piece: stages.Chunk
    ) -> pretraining_sequences.Corpus:
        """Reads the documents of a chunk."""
        path = self.path / "tokens" / "{:06d}-{:04d}.npy".format(*piece)
        with path.open("rb") as file:
            try:
                packed, sentences, documents, keys = (
                    np.lib.format.read_array(file) for _ in range(4)
                )
            except ValueError as error:
                raise self._damaged(path, str(error)) from error
        tokens, word_starts = self._unpack(packed)
        return pretraining_sequences.Corpus(
            tokens, word_starts, sentences, documents, keys
        )

    # ---- Sequences ----------------------------------------------------------

    def save_sequences(
        self,
        piece: stages.Chunk,
        repetition: int,
        keys: np.ndarray,
        sequences: pretraining_sequences.Sequences,
        borders: np.ndarray,
    ) -> None:
        """Writes the sequences of a chunk, by ascending keys [r] uint64.

        `borders` [slices + 1] are the starts of the slices in `keys`.
        """
        heads = np.empty(len(keys), _HEAD)
        heads["key"] = keys
        heads["length"] = np.diff(sequences.starts)
        heads["middle"] = sequences.middles
        heads["label"] = sequences.labels
        tokens = self._pack(sequences.tokens, sequences.word_starts)
        # Byte offsets of the heads and the tokens of each slice.
        table = np.empty((len(borders), 2), _TABLE)
        table[:, 0] = table.nbytes + borders * heads.itemsize
        table[:, 1] = (
            table.nbytes
            + heads.nbytes
            + sequences.starts[borders] * tokens.itemsize
        )
        files.write_bytes(
            self._sequences(piece, repetition),
            table.tobytes() + heads.tobytes() + tokens.tobytes(),
        )

    def has_sequences(self, piece: stages.Chunk, repetition: int) -> bool:
        """Returns whether the sequences have been saved."""
        return self._sequences(piece, repetition).exists()

    def load_slice(
        self, piece: stages.Chunk, repetition: int, number: int
    ) -> tuple[np.ndarray, pretraining_sequences.Sequences]:
        """Reads the keys and sequences of a slice."""
        path = self._sequences(piece, repetition)
        with path.open("rb") as file:
            try:
                row = 2 * _TABLE.itemsize
                table = _read(file, _TABLE, number * row, (number + 2) * row)
                heads = _read(file, _HEAD, table[0], table[2])
                packed = _read(file, self._dtype, table[1], table[3])
            except ValueError as error:
                raise self._damaged(path, str(error)) from error
        starts = np.zeros(len(heads) + 1, np.int64)
        np.cumsum(heads["length"], out=starts[1:])
        tokens, word_starts = self._unpack(packed)
        return heads["key"], pretraining_sequences.Sequences(
            tokens=tokens,
            word_starts=word_starts,
            starts=starts,
            middles=heads["middle"].astype(np.int32),
            labels=heads["label"],
        )

    def _sequences(self, piece: stages.Chunk, repetition: int) -> epath.Path:
        name = "{:06d}-{:04d}-{:03d}.bin".format(*piece, repetition)
        return self.path / "sequences" / name

    def _pack(self, tokens: np.ndarray, word_starts: np.ndarray) -> np.ndarray:
        packed = tokens.astype(self._dtype)
        packed |= word_starts.astype(self._dtype) << self._bit
        return packed

    def _unpack(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        word_starts = (packed >> self._bit).astype(bool)
        rest = self._dtype.type((1 << int(self._bit)) - 1)
        return (packed & rest).astype(np.int32), word_starts

    @property
    def _bit(self) -> np.generic:
        return self._dtype.type(8 * self._dtype.itemsize - 1)


def _read(file: BinaryIO, dtype: np.dtype, start: int, end: int) -> np.ndarray:
    file.seek(int(start))
    data = file.read(int(end - start))
    if len(data) != end - start:
        raise InputError(f"Received: {len(data)} bytes of {end - start}")
    return np.frombuffer(data, dtype)


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describes how two fingerprints differ, "" if they are equal."""
    # Convert to JSON types: tuples become lists.
    now = json.loads(json.dumps(now))
    return "; ".join(
        f"{name} was {_short(before.get(name))} and is {_short(now.get(name))}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    )


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_short(x)} {name}" for name, x in value.items())
    # The beginning of a digest is enough.
    is_digest = isinstance(value, str) and len(value) == 64
    text = value[:8] if is_digest else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
