"""Complete runs of data creation: their output, and how they resume."""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import pickle
import random

from bert_tf import options, tokenization
from bert_tf.pretraining_data import (
    corpus,
    creation_job,
    creation_output,
    local_creation,
    pretraining_rows,
    pretraining_sequences,
    stages,
    work_folder,
    workers,
)
from bert_tf.records import manifests
from bert_tf.vocabularies import word_pieces
from tests import pretraining_records

import numpy as np
import pytest
import tensorflow as tf

_PIECES = [*tokenization.SPECIAL_TOKENS, *"abcdefghij", "."]
_PIECES += [f"##{char}" for char in "klmnopqrst"]
_VOCABULARY = word_pieces.WordPiece(tuple(_PIECES), True)
_SETTINGS = pretraining_sequences.Settings(
    max_seq_length=32, max_predictions_per_seq=5, dupe_factor=3
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a vocabulary and two files of 150 documents each."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "vocab.txt").write_text("\n".join(_PIECES) + "\n")
    rng = random.Random(0)

    def word():
        rest = rng.choices("klmnopqrst", k=rng.randrange(3))
        return rng.choice("abcdefghij") + "".join(rest)

    def sentence():
        return " ".join(word() for _ in range(rng.randint(3, 15))) + "."

    for name in ("x", "y"):
        documents = [
            "\n".join(sentence() for _ in range(rng.randint(1, 20)))
            for _ in range(150)
        ]
        (folder / f"{name}.txt").write_text("\n\n".join(documents))
    return folder


def make_job(folder, work, settings=_SETTINGS, seed=1):
    files = [str(folder / f"{name}.txt") for name in ("x", "y")]
    return creation_job.Job(
        units=tuple(corpus.plan(files, "lines", unit_bytes=15_000)),
        reader=corpus.Reader("lines"),
        vocab_file=str(folder / "vocab.txt"),
        do_lower_case=True,
        settings=settings,
        seed=seed,
        folder=str(work),
    )


def run(folder, output, shards=4, pool=None, **settings):
    """Runs all stages; returns the result and the SHA-256 of each shard."""
    where = creation_output.Output(folder=str(output), num_shards=shards)
    changed = dataclasses.replace(_SETTINGS, **settings)
    job = make_job(folder, where.work_folder, changed)
    assert len(job.units) > 3
    with pool or workers.Workers(1, []) as pool:
        result = local_creation.run(job, where, pool)
    local_creation.finish(job, where, result)
    return result, hashes(output)


def hashes(output):
    return [
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.glob("*.tfrecord"))
    ]


@pytest.fixture(scope="module")
def made(folder, tmp_path_factory):
    return run(folder, tmp_path_factory.mktemp("made"))


def parse(files, names):
    """Reads shards; returns each feature as an array of all rows."""
    records = [
        record
        for file in files
        for record in tf.data.TFRecordDataset(file).as_numpy_iterator()
    ]
    spec = dict.fromkeys(
        names, tf.io.FixedLenSequenceFeature([], tf.int64, True)
    )
    parsed = tf.io.parse_example(records, spec)
    return {name: parsed[name].numpy() for name in names}


class TestRun:
    @pytest.mark.slow
    def test_workers_do_not_matter(self, folder, made, tmp_path):
        pool = workers.Workers(2, ["bert_tf.pretraining_data.local_creation"])
        result, ours = run(folder, tmp_path, pool=pool)
        assert ours == made[1]
        assert result.counts == made[0].counts

    @pytest.mark.slow
    def test_slices_do_not_matter(self, folder, made, tmp_path, monkeypatch):
        monkeypatch.setattr(stages, "_SLICE_TOKENS", 2000)
        assert run(folder, tmp_path)[1] == made[1]

    @pytest.mark.slow
    def test_all_sequences_are_there_once(self, folder, tmp_path):
        settings = dataclasses.replace(_SETTINGS, dynamic_masking=True)
        result, _ = run(folder, tmp_path / "out", dynamic_masking=True)
        names = ["input_ids", "next_sentence_labels"]
        ours = as_counter(parse(result.files, names))
        vocabulary = _VOCABULARY
        tokenizer = vocabulary.bulk_tokenizer()
        job = make_job(folder, tmp_path)
        pieces = {
            (unit.index, 0): stages.tokenize_documents(
                list(corpus.read(unit, job.reader)), tokenizer, vocabulary
            )
            for unit in job.units
        }
        expected: collections.Counter[tuple] = collections.Counter()
        for piece, documents in pieces.items():
            for repetition in range(settings.dupe_factor):
                other = stages.partner(piece, list(pieces), 1, repetition)
                assert other
                sequences = pretraining_sequences.create_sequences(
                    *(documents, pieces[other], settings),
                    *(vocabulary.template, 1, repetition),
                )
                rows = pretraining_rows.features(
                    sequences, vocabulary, settings, np.random.default_rng()
                )
                expected += as_counter(rows)
        assert ours == expected

    @pytest.mark.parametrize("pack", [False, True])
    def test_full_sentences_hold_the_text_once(
        self, folder, tmp_path, monkeypatch, pack
    ):
        monkeypatch.setattr(stages, "_SLICE_TOKENS", 2000)
        result, _ = run(
            folder,
            tmp_path / "out",
            objective="full_sentences",
            dynamic_masking=True,
            dupe_factor=1,
            short_seq_prob=0,
            pack=pack,
            max_seq_length=128,
        )
        text = "\n".join((folder / f"{x}.txt").read_text() for x in "xy")
        pieces = _VOCABULARY.tokenizer().tokenize(text)
        expected = collections.Counter(_VOCABULARY.ids[x] for x in pieces)
        names = ["input_ids", "input_mask", "next_sentence_labels"]
        parsed = parse(result.files, names)
        ids = parsed["input_ids"][parsed["input_mask"] > 0]
        found = collections.Counter(ids.tolist())
        special = _VOCABULARY.special
        instances = result.counts["instances"]
        assert found.pop(special.cls.id) == instances
        # One [SEP] ends each sequence. Some documents end there, too.
        between = found.pop(special.sep.id) - instances
        assert 0.5 * 300 < between < 300
        assert found == expected
        assert not parsed["next_sentence_labels"].any()
        # No row could take more, except the last of each part.
        if not pack:
            full = parsed["input_mask"].sum(axis=1)
            assert full.mean() > 0.85 * 128

    @pytest.mark.slow
    def test_shuffles_globally(self, tmp_path):
        # The words reveal the file of a sequence.
        for name, word in (("x", "a"), ("y", "b")):
            documents = ["\n".join([word] * 120)] * 100
            (tmp_path / f"{name}.txt").write_text("\n\n".join(documents))
        (tmp_path / "vocab.txt").write_text("\n".join(_PIECES) + "\n")
        result, _ = run(tmp_path, tmp_path / "out", objective="none")
        parsed = parse(result.files, ["masked_lm_ids"])
        is_a = parsed["masked_lm_ids"][:, 0] == _PIECES.index("a")
        # As many runs of equal items as in a random order (Wald-Wolfowitz).
        n, m = is_a.sum(), (~is_a).sum()
        runs = 1 + np.count_nonzero(np.diff(is_a))
        mean = 2 * n * m / (n + m) + 1
        deviation = ((mean - 1) * (mean - 2) / (n + m - 1)) ** 0.5
        assert abs(runs - mean) < 4 * deviation

    def test_a_part_may_be_without_words(self, folder, tmp_path):
        copy(folder, tmp_path)
        # Words of characters that are removed, in separate units.
        (tmp_path / "y.txt").write_text("\u200b\n\n" * 6000)
        result, _ = run(tmp_path, tmp_path / "out")
        assert result.counts["documents"] == 150
        assert result.counts["empty_documents"] == 6000

    @pytest.mark.parametrize(
        ("objective", "pack", "dynamic_masking"),
        [
            # Any two of the three, with each pair of their values.
            (name, pack, pack != (number % 2 > 0))
            for number, name in enumerate(options.OBJECTIVES)
            for pack in (False, True)
        ],
    )
    def test_expects_about_what_there_is(
        self, folder, tmp_path, objective, pack, dynamic_masking
    ):
        kind = {"objective": objective, "dynamic_masking": dynamic_masking}
        kind |= {"max_seq_length": 128, "max_predictions_per_seq": 20}
        result, _ = run(folder, tmp_path, 1, pack=pack, **kind)
        settings = dataclasses.replace(_SETTINGS, pack=pack, **kind)
        expected = stages.expected_sequences(result.counts, settings)
        assert result.counts["instances"] == pytest.approx(expected, rel=0.1)
        size = (tmp_path / "part-00000-of-00001.tfrecord").stat().st_size
        layout = stages.layout(result.counts, settings, None, size // 10)
        # These tokens take one byte each, those of a real vocabulary two.
        assert 9 <= layout.shards <= 16

    def test_lengths_are_counted(self, made):
        result, _ = made
        lengths = result.statistics()["lengths"]
        assert [int(x) for x in lengths] == sorted(int(x) for x in lengths)
        assert sum(lengths.values()) == result.counts["instances"]
        upper = sum(int(x) * count for x, count in lengths.items())
        # Each bin is two tokens wide.
        real = result.counts["real_tokens"]
        assert real <= upper <= real + result.counts["instances"]


def copy(folder, other):
    for name in ("x", "y", "vocab"):
        text = (folder / f"{name}.txt").read_text()
        (other / f"{name}.txt").write_text(text)


def test_edited_text_is_other_text(folder, tmp_path):
    """Even if it has as many bytes as before."""
    copy(folder, tmp_path)
    where = creation_output.Output(folder=str(tmp_path / "out"))
    text = tmp_path / "y.txt"
    before = text.read_text()
    prints = []
    for changed in (before, before, before[:-2] + "k.", "k" + before[1:]):
        text.write_text(changed)
        creation_job._sample.cache_clear()  # like a new process
        job = make_job(tmp_path, where.work_folder)
        prints.append(job.fingerprint(where))
    assert prints[0] == prints[1]
    for other in prints[2:]:
        differences = work_folder.differing(prints[0], other)
        assert differences.startswith("input_file was 2 files")


def test_a_file_of_other_records_is_not_replaced(tmp_path):
    """Their manifest would list it still."""
    shards = (manifests.Shard("b", 3),)
    made = pretraining_records.manifest(shards=shards)
    made.write(tmp_path / "b.manifest.json")
    files = (str(tmp_path / "a"), str(tmp_path / "b"))
    output = creation_output.Output(files, overwrites=True)
    with pytest.raises(ValueError, match="/b is in the manifest of other"):
        output.is_done({})


def test_manifests_of_a_folder_are_read_once(tmp_path, monkeypatch):
    shards = (manifests.Shard("b", 3),)
    made = pretraining_records.manifest(shards=shards)
    made.write(tmp_path / "b.manifest.json")
    reads, read = [], manifests.Manifest.read

    def counted(path):
        reads.append(path)
        return read(path)

    monkeypatch.setattr(manifests.Manifest, "read", counted)
    files = tuple(f"{tmp_path}/c{i}" for i in range(9))
    assert not creation_output.Output(files).is_done({})
    assert reads == [f"{tmp_path}/b.manifest.json"]


def test_names_of_manifests_are_kept(tmp_path):
    for name in ("manifest.json", "x.manifest.json"):
        output = creation_output.Output((f"{tmp_path}/a", f"{tmp_path}/{name}"))
        with pytest.raises(ValueError, match=f"/{name} is kept for what"):
            output.check_names()


@pytest.mark.parametrize("place", [0, 500_000, 777_777, 999_999])
def test_text_is_edited_anywhere(place, tmp_path):
    """In a file of one megabyte every byte counts."""
    text = bytearray(b"x" * 1_000_000)
    path = tmp_path / "x.txt"
    prints = []
    for value in (b"x", b"y"):
        text[place : place + 1] = value
        path.write_bytes(text)
        creation_job._sample.cache_clear()  # like a new process
        prints.append(creation_job._sample((str(path),)))
    assert prints[0] != prints[1]


def test_text_in_a_bucket(tmp_path, monkeypatch):
    """etils opens files of buckets as TensorFlow's, whose seek returns None."""
    path = tmp_path / "x.txt"
    path.write_text("x" * 100_000)
    here = creation_job._sample((str(path),))
    creation_job._sample.cache_clear()
    monkeypatch.setattr(
        creation_job.epath.Path,
        "open",
        lambda path, mode: tf.io.gfile.GFile(path, mode),
    )
    assert creation_job._sample((str(path),)) == here


@pytest.mark.parametrize("place", [0, 999_999])
def test_both_ends_of_large_texts_count(place, monkeypatch, tmp_path):
    monkeypatch.setattr(creation_job, "_BLOCKS", 4)
    test_text_is_edited_anywhere(place, tmp_path)


class MeasuringPool(contextlib.nullcontext):
    """Runs nothing, and records the size of the first tasks."""

    def __init__(self):
        super().__init__(self)
        self.sizes = []

    def run(self, tasks, report):
        self.sizes += [len(pickle.dumps(task)) for task in tasks]
        raise StoppedError


def _plan(plan, count, *given, **more):
    return plan(*given, **more)[:4] * count


@pytest.mark.slow
def test_a_task_does_not_bring_the_whole_plan(folder, tmp_path, monkeypatch):
    """With a million files every task would hold a million names."""
    pool, plan = MeasuringPool(), corpus.plan
    for count in (1, 2000):
        plans = functools.partial(_plan, plan, count)
        monkeypatch.setattr(corpus, "plan", plans)
        with pytest.raises(StoppedError):
            run(folder, tmp_path / str(count), pool=pool)
    assert len(pool.sizes) == 4 * 2001
    assert max(pool.sizes) < pool.sizes[0] + 20


def as_counter(rows):
    """Returns how often each pair of ids and label occurs."""
    ids = map(tuple, rows["input_ids"].tolist())
    labels = rows["next_sentence_labels"].ravel().tolist()
    return collections.Counter(zip(ids, labels, strict=True))


class StoppedError(Exception):
    pass


class StoppingPool(contextlib.nullcontext):
    """Runs tasks in this process, and stops at the n-th count."""

    def __init__(self, stop):
        super().__init__(self)
        self._left = stop

    def run(self, tasks, report):
        for task in tasks:
            for counts in task():
                report(counts)
                self._left -= 1
                if not self._left:
                    raise StoppedError


class TestGoesOn:
    def test_wherever_it_stopped(self, folder, made, tmp_path):
        stops = 0
        # Each attempt gets a little further.
        while True:
            try:
                _, ours = run(folder, tmp_path, pool=StoppingPool(3))
                break
            except StoppedError:
                stops += 1
                assert stops < 100
        assert stops > 5
        assert ours == made[1]
        assert not list(tmp_path.rglob("*.tmp"))

    def test_not_with_other_settings(self, folder, tmp_path):
        with pytest.raises(StoppedError):
            run(folder, tmp_path, pool=StoppingPool(3))
        message = "run: dupe_factor was 3 and is 9; num_shards was 4 and is 5"
        with pytest.raises(ValueError, match=message):
            run(folder, tmp_path, 5, dupe_factor=9)

    def test_not_beside_another_process(self, folder, made, tmp_path):
        with pytest.raises(StoppedError):
            run(folder, tmp_path, pool=StoppingPool(3))
        work = make_job(folder, tmp_path / ".work").work
        with work.alone():
            before = sorted(tmp_path.rglob("*"))
            with pytest.raises(ValueError, match=r"in use: .* makes records"):
                run(folder, tmp_path)
            assert sorted(tmp_path.rglob("*")) == before
        assert run(folder, tmp_path)[1] == made[1]

    def test_a_lost_shard_is_made_again(self, folder, made, tmp_path):
        where = creation_output.Output(folder=str(tmp_path), num_shards=4)
        job = make_job(folder, where.work_folder)
        with workers.Workers(1, []) as pool:
            result = local_creation.run(job, where, pool)
            (tmp_path / "part-00002-of-00004.tfrecord").unlink()
            again = local_creation.run(job, where, pool)
        assert again == result
        assert hashes(tmp_path) == made[1]
