"""The configuration of a run of data creation."""

import concurrent.futures
import dataclasses
import functools
import hashlib
import os
from collections.abc import Sequence
from typing import Any

import bert_tf
from bert_tf import files, vocabularies
from bert_tf.pretraining_data import (
    corpus,
    creation_output,
    pretraining_sequences,
    word_lists,
    work_folder,
)
from bert_tf.storage import paths

from etils import epath

# Max number of input files that are sampled, of blocks in total, and bytes of a
# block: every byte of a single file up to 128 MB, eight blocks each of 256
# files.
_SAMPLED, _BLOCKS, _BLOCK = 256, 2048, 1 << 16


@dataclasses.dataclass(frozen=True)
class Job:
    """The input, the output settings and the helpers of data creation.

    Attributes:
        do_lower_case: Whether to lower-case and strip accents; kinds of
            vocabularies without casing ignore it.
        folder: The working folder, whose files are removed at the end.
        word_list: A file of words of several tokens, "" for none.
        segmenter: `module:function` that splits a text into such words.
        kinds: Kinds of vocabularies, by name: worker processes have not
            imported the modules that registered custom kinds.
    """

    units: tuple[corpus.Unit, ...]
    reader: corpus.Reader
    vocab_file: str
    do_lower_case: bool
    settings: pretraining_sequences.Settings
    seed: int
    folder: str
    word_list: str = ""
    segmenter: str = ""
    kinds: tuple[tuple[str, vocabularies.Kind], ...] = dataclasses.field(
        default_factory=lambda: tuple(vocabularies.KINDS.items())
    )

    @property
    def vocabulary(self) -> vocabularies.Vocabulary:
        """The vocabulary, which splits the text into tokens."""
        self._register()
        return _vocabulary(self.vocab_file, self.do_lower_case)

    @property
    def tokenizer(self) -> vocabularies.BulkTokenizer:
        """The tokenizer of sentences."""
        self._register()
        return _tokenizer(self.vocab_file, self.do_lower_case)

    def _register(self) -> None:
        for name, kind in self.kinds:
            # Beam's pickling makes copies that compare unequal.
            if name not in vocabularies.KINDS:
                vocabularies.register(name, kind)

    @property
    def has_words(self) -> bool:
        """Whether there are words of several tokens."""
        return bool(self.word_list or self.segmenter)

    @property
    def words(self) -> word_lists.WordList | word_lists.Segmenter | None:
        """The words of several tokens, None without any."""
        self._register()
        vocabulary = self.vocab_file, self.do_lower_case
        return _words(self.word_list, self.segmenter, *vocabulary)

    @property
    def work(self) -> work_folder.WorkFolder:
        """The files of the working folder."""
        return work_folder.WorkFolder(self.folder, len(self.vocabulary.pieces))

    def fingerprint(self, output: creation_output.Output) -> dict[str, Any]:
        """Returns the settings that determine the shards, by names of flags."""
        names = {part.file for unit in self.units for part in unit.parts}
        is_of_files = self.reader.input_format != "tfds"
        reader = dataclasses.asdict(self.reader)
        # Good text gives the same records either way.
        del reader["on_bad_text"]
        return {
            "input_file": {
                "files": len(names),
                "bytes": sum(unit.size for unit in self.units),
                "sha256": hashlib.sha256(repr(self.units).encode()).hexdigest(),
                # Edited text may have the same number of bytes as before.
                "sample": _sample(tuple(sorted(names))) if is_of_files else "",
            },
            "vocab_file": self.vocabulary.sha256,
            "do_lower_case": self.vocabulary.settings.get("do_lower_case"),
            "word_list": self.word_list and files.sha256(self.word_list),
            "segmenter": self.segmenter,
            "random_seed": self.seed,
            "created_by": bert_tf.__version__,
            **reader,
            **dataclasses.asdict(self.settings),
            **output.fingerprint(),
        }


# Cached, so that the manifest describes the input at the start of the run.
@functools.cache
def _sample(names: tuple[str, ...]) -> str:
    """Returns a SHA-256 of blocks throughout some of the files."""
    some = paths.spread(names, _SAMPLED)
    most = _BLOCKS // len(some)

    def sampled(name: str) -> bytes:
        found = hashlib.sha256()
        with epath.Path(name).open("rb") as file:
            file.seek(0, os.SEEK_END)
            size = file.tell()  # TensorFlow's seek returns None
            starts: Sequence[int] = range(0, size, _BLOCK)
            if len(starts) > most:
                last = size - _BLOCK
                starts = [last * i // (most - 1) for i in range(most)]
            for start in starts:
                file.seek(start)
                found.update(file.read(_BLOCK))
        return found.digest()

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return hashlib.sha256(b"".join(pool.map(sampled, some))).hexdigest()


# Once per process. Changes to the content were logged when the file was
# checked, and workers must not log them again.
@functools.cache
def _vocabulary(
    vocab_file: str, do_lower_case: bool
) -> vocabularies.Vocabulary:
    return vocabularies.open(vocab_file, do_lower_case, say=False)


@functools.cache
def _tokenizer(
    vocab_file: str, do_lower_case: bool
) -> vocabularies.BulkTokenizer:
    return _vocabulary(vocab_file, do_lower_case).bulk_tokenizer()


@functools.cache
def _words(
    word_list: str, segmenter: str, vocab_file: str, do_lower_case: bool
) -> word_lists.WordList | word_lists.Segmenter | None:
    tokenize = _tokenizer(vocab_file, do_lower_case).tokenize
    if word_list:
        return word_lists.WordList(word_list, tokenize)
    if segmenter:
        return word_lists.Segmenter(segmenter, tokenize)
    return None
