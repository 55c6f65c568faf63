"""The manifest next to TFRecord files: their contents and their origin."""

import collections
import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, get_args, get_type_hints

import bert_tf
from bert_tf import files, options
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files, json_files

FORMAT_VERSION = 2

# Values for files of the first format, which did not have these fields.
_OF_VERSION_1 = {
    "objective": "nsp",
    "dynamic_masking": False,
    "sequences_per_row": 1,
    "made_of": {},
    "created_by": "0.1",
}
_LEAST = {
    "max_seq_length": 1,
    "max_predictions_per_seq": 0,
    "vocab_size": 1,
    "sequences_per_row": 1,
}
_WAY_OUT = (
    "Copy it from where the records were made, or make them again; records of "
    "the original have none."
)


@dataclasses.dataclass(frozen=True)
class Shard:
    """A file in a set of records, by its name without the folder."""

    file: str
    records: int


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The contents of a set of TFRecord files, and how they were created.

    Attributes:
        record_type: The name of the `RecordType`.
        max_predictions_per_seq: P, also if masks are drawn during training.
        do_lower_case: The casing; None for a vocabulary without casing.
        objective: The objective on pairs: "nsp" or "sop"; without one
            "two_segments", or for sequences without pairs "none" or
            "full_sentences".
        masking: The settings for choosing masked words.
        dynamic_masking: Whether masks are drawn during training.
        sequences_per_row: Max number of sequences packed into a record.
        statistics: Counts of real, padding and masked tokens, and a histogram
            of lengths, for people to read.
        made_of: The settings that determine the records, by names of flags.
        created_by: The version of the program; `version` is the format's.
    """

    record_type: str
    max_seq_length: int
    max_predictions_per_seq: int
    vocab_sha256: str
    vocab_size: int
    do_lower_case: bool | None
    masking: dict
    seed: int
    shards: tuple[Shard, ...]
    statistics: dict
    objective: str = "nsp"
    dynamic_masking: bool = False
    sequences_per_row: int = 1
    made_of: dict = dataclasses.field(default_factory=dict)
    created_by: str = bert_tf.__version__
    version: int = FORMAT_VERSION

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the manifest as JSON; the file appears when it is complete."""
        files.write_json(path, dataclasses.asdict(self))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a manifest.

        Raises InputError if it is not JSON, has unknown or missing keys or a
        value of the wrong type, or has a newer version.
        """
        path = os.fspath(path)
        data = input_files.read(path)
        values = json_files.parse(data, path, "JSON", _WAY_OUT)
        version = values.get("version") if isinstance(values, dict) else None
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise InputError(
                f"{path} is of a newer format than this program's "
                f"{FORMAT_VERSION}: install a newer bert-tf or make the "
                f"data again. Received: version={version}"
            )
        if version == 1:
            values = {**_OF_VERSION_1, **values, "version": FORMAT_VERSION}
        _check_keys(path, cls, values)
        shards = []
        for shard in values["shards"]:
            _check_keys(path, Shard, shard)
            shards.append(Shard(**shard))
        made = cls(**{**values, "shards": tuple(shards)})
        made._check_values(path)
        return made

    def _check_values(self, path: str) -> None:
        """Raises InputError if a value is impossible."""
        checked = [
            (name, getattr(self, name), getattr(self, name) >= least)
            for name, least in _LEAST.items()
        ]
        checked.append(
            ("objective", self.objective, self.objective in options.OBJECTIVES)
        )
        checked += [("records", x.records, x.records >= 0) for x in self.shards]
        for name, value, is_right in checked:
            if not is_right:
                raise InputError(
                    f"{path} is damaged: no data is made with {name}={value!r}."
                    f" {_WAY_OUT}"
                )

    def check_kind(self, kind: str, settings: Mapping[str, Any]) -> None:
        """Raises InputError if the vocabulary was read as another kind.

        A vocabulary with the right bytes may have another file name, which
        determines its kind: WordPiece has a casing, and symbols have the same
        format without one.
        """
        is_cased = self.do_lower_case is not None
        if is_cased != ("do_lower_case" in settings):
            raise InputError(
                "The records were made with this vocabulary under another "
                f"name: here it is read as one of {kind}. Give it a name such "
                f"as {'vocab.txt' if is_cased else 'symbols.txt'}. Received: "
                f"kind={kind}, do_lower_case={self.do_lower_case} in the "
                "records' manifest"
            )


def _check_keys(path: str, kind: type, values: Any) -> None:
    if not isinstance(values, dict):
        raise InputError(
            f"{path} is not a manifest of this format. {_WAY_OUT} "
            f"Expected a JSON object, received: {repr(values)[:80]}"
        )
    types = _types(kind)
    unknown = sorted(values.keys() - types.keys())
    missing = sorted(types.keys() - values.keys())
    if unknown or missing:
        raise InputError(
            f"{path} is not a manifest of this format. {_WAY_OUT} "
            f"Unknown keys: {', '.join(unknown) or 'none'}; "
            f"missing keys: {', '.join(missing) or 'none'}"
        )
    for key, value in values.items():
        expected = list if key == "shards" else types[key]
        # Values that may be null have two types.
        several = get_args(expected) or (expected,)
        if type(value) not in several:
            names = " or ".join(
                "null" if one is type(None) else one.__name__ for one in several
            )
            raise InputError(
                f"{path}: {key!r} must be of type {names}. "
                f"{_WAY_OUT} Received: {key}={repr(value)[:80]}"
            )


@functools.cache  # Ten thousand shards have the same type.
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def find(paths: Sequence[str]) -> Manifest | None:
    """Finds the manifest of some files, None if no file has one.

    A manifest is a file in the same folder, named `manifest.json` or ending in
    `.manifest.json`, that lists them. If there are several, the result has the
    seed, statistics and masking of the first file's manifest. The masking may
    differ between manifests unless it is dynamic.

    Raises:
        InputError: Two manifests disagree, or list the same file; or only some
            of the files are in a manifest, or a file is itself a manifest.
    """
    for path in paths:
        if is_manifest(path):
            raise InputError(
                f"{path} is no record file but a manifest, which is found by "
                "itself. Give the files that it lists, or a pattern for them."
            )
    folders = {os.path.dirname(file) for file in paths}
    listings = {folder: list_shards(folder) for folder in folders}
    found, others = [], []
    for file in paths:
        folder, name = os.path.split(file)
        matches = listings[folder][name]
        if not matches:
            others.append(file)
        if len(matches) > 1:
            raise InputError(
                f"{file} is listed by both {matches[0].path} and "
                f"{matches[1].path}: delete the one that is out of date"
            )
        found += matches
    if not found:
        return None
    if others:
        raise InputError(
            f"{others[0]} is in no manifest, and other files are: "
            f"{found[0].path} lists {found[0].shard.file}. Records that are "
            "read together must be made alike: leave it out, or copy its "
            f"manifest. Received: {len(others)} of {len(paths)} files without"
        )
    for listing in found:
        _check_agreement(found[0], listing)
    return dataclasses.replace(
        found[0].manifest, shards=tuple(listing.shard for listing in found)
    )


class _Listing(NamedTuple):
    path: str
    manifest: Manifest
    shard: Shard


def list_shards(folder: str) -> Mapping[str, list[_Listing]]:
    """Returns the entries of the manifests in a folder, by names of files."""
    listings = collections.defaultdict(list)
    for name in sorted(
        file_systems.find_backend(folder).listdir(folder or ".")
    ):
        if not is_manifest(name):
            continue
        path = os.path.join(folder, name)
        manifest = Manifest.read(path)
        for shard in manifest.shards:
            listings[shard.file].append(_Listing(path, manifest, shard))
    return listings


def is_manifest(path: str) -> bool:
    """Returns whether a path has the name of a manifest."""
    return f".{os.path.basename(path)}".endswith(".manifest.json")


def _check_agreement(first: _Listing, other: _Listing) -> None:
    of_masks = ("masking",) if first.manifest.dynamic_masking else ()
    for name in (
        "record_type",
        "max_seq_length",
        "max_predictions_per_seq",
        "vocab_sha256",
        "do_lower_case",
        "objective",
        "sequences_per_row",
        *of_masks,
    ):
        values = getattr(first.manifest, name), getattr(other.manifest, name)
        if values[0] != values[1]:
            raise InputError(
                "Records that are read together must be made alike: "
                f"{first.path} says {name}={values[0]}, "
                f"{other.path} says {name}={values[1]}"
            )
