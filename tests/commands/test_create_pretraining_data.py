"""Runs create_pretraining_data.py's own main."""

import hashlib
import importlib
import os
import random
import re
import shutil

from bert_tf.records import manifests, reading, record_types
from tests import held_locks, scripts, small_disks
from tests.pretraining_documents import restore
from tests.vocabularies import sentence_models

import pytest
import tensorflow as tf

_LENGTHS = {"S": 32, "P": 5}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLS, SEP, MASK = 2, 3, 4
DOCUMENTS = 12


def word(document, number):
    return f"{chr(ord('a') + document)}word{number}"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The folder of a vocabulary and two text files.

    Every word belongs to one document: the first letter is the document's. In
    the text it stands in capitals and is split in two pieces.
    """
    folder = tmp_path_factory.mktemp("inputs")
    first = [word(document, "") for document in range(DOCUMENTS)]
    pieces = [*SPECIAL, *first, *(f"##{number}" for number in range(10)), "."]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    rng = random.Random(0)

    def sentence(document):
        numbers = [rng.randrange(10) for _ in range(rng.randint(2, 9))]
        return " ".join(word(document, n).title() for n in numbers) + "."

    documents = [
        "\n".join(sentence(document) for _ in range(rng.randint(1, 30)))
        for document in range(DOCUMENTS)
    ]
    (folder / "a.txt").write_text("\n\n".join(documents[:5]) + "\n\n\n")
    # Windows line ends, and no blank line at the end.
    (folder / "b.txt").write_text("\r\n\r\n".join(documents[5:]))
    return folder


def flags_of(inputs, tmp_path, **changes):
    """The flags; a change to None leaves a flag out."""
    values = {
        "input_file": f"{inputs}/?.txt",
        "output_dir": tmp_path / "out",
        "vocab_file": inputs / "vocab.txt",
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 3,
        **changes,
    }
    return [f"--{k}={v}" for k, v in values.items() if v is not None]


def make(inputs, tmp_path, *flags, code=0, **changes):
    return scripts.run_checked(
        *(tmp_path / "log", "create_pretraining_data"),
        *(*flags_of(inputs, tmp_path, **changes), *flags),
        code=code,
    )


def contents(folder):
    """Name -> bytes of the files of a folder and those below it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made(inputs, tmp_path_factory):
    """The folder of a run with three shards, and its lines on the screen."""
    folder = tmp_path_factory.mktemp("made")
    return folder / "out", make(inputs, folder, num_shards=3).lines


def manifest_of(inputs, tmp_path, *flags, **changes):
    make(inputs, tmp_path, *flags, **changes)
    return manifests.Manifest.read(tmp_path / "out" / "manifest.json")


def read(path):
    return list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())


def parsed(serialized):
    """Returns the arrays of records by name."""
    batch = record_types.PRETRAINING.parse(tf.constant(serialized), _LENGTHS)
    return {name: tensor.numpy() for name, tensor in batch.items()}


class TestRecords:
    def test_hold_the_text(self, inputs, made):
        folder, _ = made
        pieces = (inputs / "vocab.txt").read_text().split()
        text = "".join((inputs / f"{name}.txt").read_text() for name in "ab")
        text = re.sub(r"[\s.]", "", text.lower())
        files = sorted(folder.glob("part-*"))
        serialized = [record for file in files for record in read(file)]
        rows = parsed(serialized)
        ids = rows["input_ids"]
        assert (ids == MASK).sum() > 0.7 * rows["masked_lm_weights"].sum()
        ids = restore(rows)
        for row in range(len(ids)):
            length = rows["input_mask"][row].sum()
            tokens = [pieces[i] for i in ids[row, :length]]
            segments = rows["segment_ids"][row, :length]
            middle = list(segments).index(1) - 1
            assert tokens[0] == "[CLS]"
            assert tokens[middle] == tokens[-1] == "[SEP]"
            first, second = tokens[1:middle], tokens[middle + 1 : -1]
            documents = []
            for segment in (first, second):
                joined = "".join(segment).replace("##", "").replace(".", "")
                assert joined in text
                documents.append({t[0] for t in segment if t[0].isalpha()})
            # A segment may be so short that it shows no word's beginning.
            if all(documents):
                same = documents[0] == documents[1]
                assert same == (rows["next_sentence_labels"][row, 0] == 0)

    def test_are_described_by_the_manifest(self, inputs, made):
        folder, _ = made
        files = sorted(map(str, folder.glob("*.tfrecord")))
        assert len(files) == 3
        manifest = manifests.find(files)
        assert manifest
        counts = reading.count(files)
        assert [shard.records for shard in manifest.shards] == counts
        vocab = (inputs / "vocab.txt").read_bytes()
        assert manifest.vocab_sha256 == hashlib.sha256(vocab).hexdigest()
        assert manifest.vocab_size == 28
        assert manifest.max_seq_length == 32
        assert manifest.max_predictions_per_seq == 5
        assert manifest.do_lower_case is True
        assert manifest.objective == "nsp"
        assert manifest.seed == 12345
        assert manifest.masking["policy"] == "token"
        assert manifest.masking["masked_lm_prob"] == 0.15
        assert manifest.made_of["dupe_factor"] == 3
        statistics = manifest.statistics
        assert statistics["documents"] == DOCUMENTS
        assert statistics["instances"] == sum(counts)
        assert statistics["unknown_tokens"] == 0
        total = statistics["real_tokens"] + statistics["padding_tokens"]
        assert total == 32 * sum(counts)
        assert sum(statistics["lengths"].values()) == sum(counts)
        reading.check(record_types.PRETRAINING, files, _LENGTHS)

    def test_a_vocabulary_from_windows_is_the_same(
        self, inputs, made, tmp_path
    ):
        folder, _ = made
        text = (inputs / "vocab.txt").read_text().replace("\n", "\r\n")
        vocab = tmp_path / "vocab.txt"
        vocab.write_text(f"\ufeff{text}\r\n", encoding="utf-8", newline="")
        done = make(inputs, tmp_path, num_shards=3, vocab_file=vocab)
        # Once, whatever number of processes read it.
        said = " ".join(done.stderr.split())
        assert said.count(f"{vocab} is read with the byte-order mark left") == 1
        theirs, ours = map(contents, (folder, tmp_path / "out"))
        assert ours == theirs

    def test_summary(self, made):
        folder, lines = made
        names = [f"part-0000{i}-of-00003.tfrecord" for i in range(3)]
        assert sorted(os.listdir(folder)) == ["manifest.json", *names]
        screen = "\n".join(lines)
        assert re.search(r"Tokenized 0.0 of 0.0 MB, 12 documents", screen)
        assert re.search(r"Read 12 documents, \d+ sentences, [\d,]+", screen)
        assert re.search(r"Wrote \d+ instances in \d+ rows, 3 files", screen)
        assert re.search(r"of these \d\d\.\d% are \[MASK\]", screen)

    def test_named_files_hold_the_same_as_a_folders(
        self, inputs, made, tmp_path
    ):
        folder, _ = made
        names = ["x", "new/y", "z"]
        make(
            inputs,
            tmp_path,
            output_dir=None,
            output_file=",".join(f"{tmp_path}/{name}" for name in names),
        )
        shards = sorted(folder.glob("*.tfrecord"))
        for name, shard in zip(names, shards, strict=True):
            assert (tmp_path / name).read_bytes() == shard.read_bytes()
        # A manifest for each folder; together they say what one would.
        for first, listed in (("x", ["x", "z"]), ("new/y", ["y"])):
            path = tmp_path / f"{first}.manifest.json"
            manifest = manifests.Manifest.read(path)
            assert [shard.file for shard in manifest.shards] == listed
        files = [f"{tmp_path}/{name}" for name in names]
        whole = manifests.find(files)
        assert whole
        counts = [shard.records for shard in whole.shards]
        assert counts == reading.count(files)
        assert not list(tmp_path.rglob("*.work"))

    def test_other_seed_other_records(self, inputs, made, tmp_path):
        folder, _ = made
        manifest = manifest_of(
            inputs, tmp_path, "--do_whole_word_mask", random_seed=1
        )
        ours = read(tmp_path / "out" / "part-00000-of-00001.tfrecord")
        theirs = read(folder / "part-00000-of-00003.tfrecord")
        assert not set(ours) & set(theirs)
        assert manifest.masking["policy"] == "whole_word"
        assert manifest.seed == 1

    def test_albert_by_the_names_of_its_script(self, inputs, tmp_path):
        manifest = manifest_of(
            *(inputs, tmp_path, "--ngram=2", "--favor_shorter_ngram=false"),
            *("--do_whole_word_mask=true", "--random_next_sentence=false"),
        )
        assert manifest.objective == "sop"
        masking = manifest.masking
        assert (masking["policy"], masking["ngram"]) == ("ngram", 2)
        assert masking["favor_shorter_ngram"] is False
        assert manifest.made_of["short_seq_prob"] == 0.1


@pytest.mark.parametrize(
    ("flag", "warns"), [("--dupe_factor=1", True), ("--objective=nsp", False)]
)
def test_records_of_bert_with_the_vocabulary_of_albert(
    inputs, tmp_path, flag, warns
):
    model = tmp_path / "spiece.model"
    model.write_bytes(sentence_models.train())
    changes = {"vocab_file": model, "do_lower_case": False}
    lines = make(inputs, tmp_path, flag, **changes).lines
    warnings = [x for x in lines if "configs/albert_records.flags" in x]
    assert len(warnings) == warns


def test_one_document_is_enough_for_one_segment(inputs, tmp_path):
    (tmp_path / "one").write_text("Aword1 aword2.\nAword3.\n")
    make(inputs, tmp_path, input_file=tmp_path / "one", objective="none")
    rows = parsed(read(tmp_path / "out" / "part-00000-of-00001.tfrecord")[:1])
    pieces = (inputs / "vocab.txt").read_text().split()
    tokens = " ".join(pieces[x] for x in restore(rows)[0] if x)
    assert tokens == "[CLS] aword ##1 aword ##2 . aword ##3 . [SEP]"


def test_a_missing_vocabulary_is_reported_at_once(
    inputs, tmp_path, monkeypatch
):
    """Without looking for more kinds, which takes seconds."""
    imported, import_module = [], importlib.import_module

    def watched(name, package=None):
        imported.append(name)
        return import_module(name, package)

    monkeypatch.setattr(importlib, "import_module", watched)
    flags = flags_of(inputs, tmp_path, vocab_file=tmp_path / "none.txt")
    assert scripts.run_here("create_pretraining_data", *flags) == 1
    assert "bert_tf.contrib" not in imported


def test_same_command_again(inputs, made, tmp_path):
    folder, _ = made
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    # As if the run had been killed at its very end.
    (folder / ".work").mkdir()
    held_locks.leave(folder / ".work", held_locks.gone())
    done = make(inputs, tmp_path, output_dir=folder, num_shards=3)
    last = "Nothing to do: .*/manifest.json is complete"
    assert re.search(last, done.lines[-1])
    after = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert after == before


def test_a_shard_is_lost(inputs, made, tmp_path):
    folder, _ = made
    shutil.copytree(folder, tmp_path / "out")
    lost = tmp_path / "out" / "part-00001-of-00003.tfrecord"
    lost.write_bytes(b"")
    done = make(inputs, tmp_path, num_shards=3, code=1)
    message = rf"error: .*manifest.json lists {lost}, which is lost"
    assert re.search(message, done.lines[-1])


def test_disk_full(inputs, made, tmp_path):
    folder, _ = made
    shards = sorted(folder.glob("*.tfrecord"))
    sizes = [shard.stat().st_size for shard in shards]
    # One can't be finished; those before it are.
    finished = sizes.index(max(sizes))
    with small_disks.limited(tmp_path / "out", (max(sizes) - 1) / 1024) as out:
        done = make(inputs, tmp_path, num_shards=3, code=1)
    assert re.search(
        f"error: Cannot write all: .*The {finished} finished shards stay "
        r"valid.* Free space on the disk of .*/out/\.work, then run",
        done.stderr,
    )
    for shard in shards[:finished]:
        assert (out / shard.name).read_bytes() == shard.read_bytes()
    make(inputs, tmp_path, num_shards=3)
    assert contents(out) == contents(folder)
