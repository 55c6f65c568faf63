"""The output of data creation: shards, manifest and summary."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError, counted
from bert_tf.pretraining_data import pretraining_sequences, stages, work_folder
from bert_tf.records import manifests
from bert_tf.storage import file_systems, paths

from etils import epath

# File systems allow 255 bytes; a file has the suffix .tmp until it is complete.
_LONGEST_NAME = 251
# This many random second segments in a row are not a coincidence.
_SURELY = 20
# Share of tokens beyond --max_seq_length that is normal in text of sentences.
_FEW = 0.02


@dataclasses.dataclass(frozen=True)
class Output:
    """The location and division of the shards.

    Attributes:
        files: The paths of the shards, if users name them.
        folder: The folder of shards with generated names otherwise.
        num_shards: Number of shards in the folder; None derives it from their
            size.
        shard_bytes: The approximate size of a shard.
        overwrites: Whether named files that no run created may be replaced.
    """

    files: tuple[str, ...] = ()
    folder: str = ""
    num_shards: int | None = None
    shard_bytes: int = 100 * 10**6
    overwrites: bool = False

    @property
    def manifest(self) -> str:
        """The path of the manifest, which is written last."""
        if self.files:
            return f"{self.files[0]}.manifest.json"
        return os.path.join(self.folder, "manifest.json")

    def manifests(self, files: Sequence[str]) -> dict[str, list[int]]:
        """Returns the paths of all manifests, `manifest` last.

        Each folder has one. It lists the files in that folder, by their
        numbers.
        """
        if not self.files:
            return {self.manifest: list(range(len(files)))}
        folders: dict[str, list[int]] = {}
        for number, file in enumerate(files):
            folders.setdefault(os.path.dirname(file), []).append(number)
        return {
            f"{files[there[0]]}.manifest.json": there
            for there in reversed(folders.values())
        }

    def fingerprint(self) -> dict[str, Any]:
        """Returns the settings that determine the shards, by names of flags."""
        return {
            "output_file": [os.path.basename(file) for file in self.files],
            "num_shards": self.num_shards,
            "shard_bytes": self.shard_bytes,
        }

    @property
    def folders(self) -> set[str]:
        """All folders of the output."""
        return {os.path.dirname(file) for file in self.files} or {self.folder}

    @property
    def work_folder(self) -> str:
        """The path of the working folder."""
        if self.files:
            return f"{self.files[0]}.work"
        return os.path.join(self.folder, ".work")

    def layout(
        self,
        counts: Mapping[str, int],
        settings: pretraining_sequences.Settings,
    ) -> stages.Layout:
        """Divides the sequences counted in phase 1 into shards."""
        shards = len(self.files) or self.num_shards
        return stages.layout(counts, settings, shards, self.shard_bytes)

    def paths(self, shards: int) -> list[str]:
        """Returns the paths of all shards."""
        return list(self.files) or [
            os.path.join(
                self.folder, f"part-{shard:05d}-of-{shards:05d}.tfrecord"
            )
            for shard in range(shards)
        ]

    def check_names(self) -> None:
        """Raises InputError if the file names conflict with other output."""
        for path in self.files:
            is_local = not file_systems.is_remote(path)
            if is_local and os.path.exists(path) and not os.path.isfile(path):
                raise InputError(
                    "--output_file must name files, and this is a pipe or a "
                    f"device. Received: output_file={path}"
                )
            # Other components compare paths as strings.
            own = (*self.manifests(self.files), self.work_folder)
            is_own = any(f"{path}/".startswith(f"{each}/") for each in own)
            if is_own or manifests.is_manifest(path):
                raise InputError(
                    f"{path} is kept for what belongs to the records: "
                    "choose another name. "
                    f"Received: output_file={','.join(self.files)}"
                )
        longest = max(
            len(os.fsencode(os.path.basename(path)))
            for path in self.manifests(self.files)
        )
        if longest > _LONGEST_NAME:
            raise InputError(
                "The name of --output_file is too long: that of its manifest "
                f"would have more than {_LONGEST_NAME} bytes. Choose a shorter "
                f"one. Received: {longest} bytes"
            )

    def is_done(self, fingerprint: Mapping[str, Any]) -> bool:
        """Returns whether the output has all files that a run would create.

        Raises InputError if it has records of another run, or only some of this
        one.
        """
        manifest = epath.Path(self.manifest)
        if manifest.exists():
            try:
                before = manifests.Manifest.read(manifest)
            except InputError as error:
                problem, _, _ = str(error).partition(". ")
                raise InputError(
                    "There is a file in the place of the manifest that is "
                    f"none of ours: {problem}. Remove it, or choose another "
                    "output"
                ) from error
            differences = work_folder.differing(before.made_of, fingerprint)
            if differences:
                raise InputError(
                    f"{manifest} is of another run: {differences}. Remove it "
                    "with its records, or choose another output"
                )
            shards = self.paths(len(before.shards))
            sizes = paths.at_once(paths.size, shards)
            lost = [shards[i] for i, size in enumerate(sizes) if not size]
            if lost:
                raise InputError(
                    f"{manifest} lists {lost[0]}, which is lost. Remove "
                    "it with the records that are left to make all again, or "
                    "choose another output"
                )
            return True
        if epath.Path(self.work_folder).exists():
            return False
        if self.files:
            self._check_not_there()
            return False
        folder = epath.Path(self.folder)
        # Users read *.tfrecord, which must not match records of another run.
        others = sorted(map(os.fspath, folder.glob("*.tfrecord")))
        if others:
            raise InputError(
                f"The folder {folder} holds other records, such as "
                f"{others[0]}: remove them or choose another --output_dir"
            )
        return False

    def _check_not_there(self) -> None:
        """Raises InputError if one of the files exists that no run created."""
        listed = {
            folder: manifests.list_shards(folder)
            for folder in self.folders
            if epath.Path(folder).exists()
        }
        sizes = paths.at_once(paths.size, self.files)
        for path, size in zip(self.files, sizes, strict=True):
            if size and not self.overwrites:
                raise InputError(
                    f"{path} exists, and its manifest does not: no run of ours "
                    "wrote it. Choose another --output_file, or replace it by "
                    f"--overwrite. Received: output_file={path}"
                )
            folder, name = os.path.split(path)
            if name in listed.get(folder, ()):
                raise InputError(
                    f"{path} is in the manifest of other records in its "
                    "folder. Remove these with their manifest, or choose "
                    f"another --output_file. Received: output_file={path}"
                )


@dataclasses.dataclass(frozen=True)
class Result:
    """The shards that a run created, their sizes in records, and its counts."""

    files: list[str]
    records: list[int]
    counts: dict[str, int]

    def shards(self) -> tuple[manifests.Shard, ...]:
        """Returns the manifest's entries of the shards."""
        return tuple(
            manifests.Shard(os.path.basename(file), records)
            for file, records in zip(self.files, self.records, strict=True)
        )

    def statistics(self) -> dict[str, Any]:
        """Returns the manifest's statistics of the records."""
        lengths = {
            name.removeprefix(stages.LENGTH): count
            for name, count in self.counts.items()
            if name.startswith(stages.LENGTH)
        }
        others = {
            name: count
            for name, count in self.counts.items()
            if not name.startswith(stages.LENGTH)
        }
        # Numbers of sequences, by max length in tokens.
        return others | {
            "lengths": dict(sorted(lengths.items(), key=lambda x: int(x[0])))
        }

    def summary(self, input_format: str) -> list[str]:
        """Returns the lines that users see at the end."""
        counts = self.counts
        tokens, real = counts["tokens"], counts["real_tokens"]
        rows, instances = counts["rows"], counts["instances"]
        padding = counts["padding_tokens"] / (real + counts["padding_tokens"])
        lines = [
            f"Read {counts['documents']:,} documents, "
            f"{counts['sentences']:,} sentences, {tokens:,} tokens "
            f"({counts['unknown_tokens'] / tokens:.2%} [UNK]).",
            f"Wrote {instances:,} instances in {rows:,} rows, "
            f"{counted(len(self.files), 'file')}: "
            f"{real / instances:.1f} tokens each, "
            f"{padding:.1%} padding, {counts['random_next'] / instances:.1%} "
            "with a random or swapped second segment.",
        ]
        if unused := counts["unused_tokens_once"]:
            is_long = counts["tokens_beyond_length"] > _FEW * tokens
            lines.append(
                f"{unused / tokens:.1%} of the tokens are in no sequence, "
                "because segments that are too long are cut."
                + is_long
                * (
                    " Many sentences are longer than a sequence. "
                    + (
                        "If your lines have several sentences, "
                        "--input_format=documents splits them."
                        if input_format == "lines"
                        else "Check that --language matches the text."
                    )
                )
            )
        if counts["random_next"] == instances >= _SURELY:
            lines.append(
                "No second segment is what follows: where documents have one "
                "sentence each, nothing does, and all labels of next sentences "
                "are the same. Break documents into sentences, one a line of "
                "--input_format=lines, or give --objective=none."
            )
        if counts["empty_documents"] or counts["replaced_lines"]:
            lines.append(
                f"{counts['empty_documents']:,} documents were empty; in "
                f"{counts['replaced_lines']:,} lines bad text was replaced."
            )
        if predictions := counts.get("predictions", 0):
            masked = counts["predictions_masked"] / predictions
            unchanged = counts["predictions_unchanged"] / predictions
            lines.append(
                f"Chose {predictions / real:.1%} of the tokens to predict; of "
                f"these {masked:.1%} are [MASK], {unchanged:.1%} unchanged, "
                f"{abs(1 - masked - unchanged):.1%} random."
            )
        return lines
