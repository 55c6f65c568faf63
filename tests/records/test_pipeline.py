import itertools
import json
import pathlib

from bert_tf.records import pipeline, record_types, tfrecord
from tests import pretraining_records, scripts
from tests.pretraining_runs import free_ports

import numpy as np
import pytest
import tensorflow as tf

# One record type whose one feature is the record's number.
NUMBERED = record_types.RecordType(
    "numbered", (record_types.Feature("number", None, tf.int64),)
)
COUNTS = (5, 0, 1, 9, 2)
TOTAL = sum(COUNTS)


def write(folder, counts=COUNTS):
    """Writes files of records that are numbered consecutively."""
    numbers = itertools.count()
    files = []
    for name, count in enumerate(counts):
        path = folder / str(name)
        with tfrecord.Writer(path) as writer:
            for number in itertools.islice(numbers, count):
                writer.write(NUMBERED.encode({"number": number}))
        files.append(str(path))
    return files


@pytest.fixture(name="files")
def _files(tmp_path):
    return write(tmp_path)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(pipeline, "BLOCK", 4)


def numbers(serialized):
    parsed = NUMBERED.parse(serialized, {})
    return parsed["number"].numpy().tolist()


def take(dataset, batches):
    """Returns the records of the first batches as one list."""
    parts = [numbers(rows) for rows, _ in dataset.take(batches)]
    return list(itertools.chain(*parts))


def stream(files, records_wanted, counts=COUNTS, seed=7, start=0):
    """Returns the first records of a training dataset."""
    dataset = pipeline.train(files, counts, 1, seed, start)
    return take(dataset, records_wanted)


# A sequence's index and its tokens.
SEQUENCE = record_types.RecordType(
    "sequence",
    (
        record_types.Feature("number", None, tf.int64),
        record_types.Feature("input_ids", "S", tf.int64),
        record_types.Feature("input_mask", "S", tf.int64),
    ),
)
LENGTH = 40


def distributed(batches, strategy=None, kind=NUMBERED, lengths=None, **how):
    strategy = strategy or tf.distribute.get_strategy()
    lengths = lengths or {}
    return pipeline.distribute(strategy, lambda: batches, kind, lengths, **how)


def write_sequences(folder, lengths):
    """Writes one file of sequences, padded to LENGTH."""
    path = folder / "sequences"
    with tfrecord.Writer(path) as writer:
        for number, length in enumerate(lengths):
            mask = (np.arange(LENGTH) < length).astype(int)
            features = {"number": number, "input_ids": 1000 * mask}
            writer.write(SEQUENCE.encode(features | {"input_mask": mask}))
    return str(path)


class TestGroupByLength:
    BATCH = 8

    @pytest.fixture(autouse=True)
    def _blocks_of_several_batches(self, monkeypatch):
        monkeypatch.setattr(pipeline, "BLOCK", 64)
        monkeypatch.setattr(pipeline, "_WINDOW", 4)

    @pytest.fixture(name="lengths")
    def _lengths(self):
        return np.random.default_rng(0).integers(1, LENGTH + 1, 150)

    def batches(self, folder, lengths, steps, start=0, trim=pipeline.FINELY):
        path = write_sequences(folder, lengths)
        dataset = pipeline.train(
            [path], [len(lengths)], self.BATCH, 5, start, group_by_length=True
        )
        found = distributed(dataset, None, SEQUENCE, {"S": LENGTH}, trim=trim)
        return list(itertools.islice(found, steps))

    def order(self, *args, **kwargs):
        found = self.batches(*args, **kwargs)
        return np.concatenate([batch["number"].numpy() for batch in found])

    @pytest.mark.slow
    def test_every_epoch_holds_every_record_once(self, tmp_path, lengths):
        found = self.order(tmp_path, lengths, 3 * 150 // self.BATCH)
        for epoch in range(2):
            part = found[epoch * 150 : (epoch + 1) * 150]
            assert sorted(part) == list(range(150))

    @pytest.mark.slow
    def test_goes_on_anywhere(self, tmp_path, lengths):
        # A later epoch begins in the 19th batch.
        whole = self.order(tmp_path, lengths, 24)
        for step in (3, 20):
            rest = self.order(tmp_path, lengths, 24 - step, step * self.BATCH)
            np.testing.assert_array_equal(rest, whole[step * self.BATCH :])

    def test_saves_padding_in_every_epoch(self, tmp_path, lengths):
        # 150 records are 18 batches and 6 records, so batches of later epochs
        # begin at other positions of the order, which is random.
        batches = self.batches(tmp_path, lengths, 56, trim=1)
        computed = [batch["input_ids"].shape[1] for batch in batches]
        assert computed[:8] != sorted(computed[:8])
        random = np.random.default_rng(1).permutation(lengths)
        at_random = random[:144].reshape(-1, self.BATCH).max(axis=1).mean()
        for epoch in range(3):
            part = slice(19 * epoch, 19 * epoch + 18)
            # Four batches sorted together, of lengths up to 40: 10, 20, 30
            # and 40 long, where 8 lengths at random have a maximum of 36.
            assert np.mean(computed[part]) < 0.8 * at_random

    @pytest.mark.slow
    def test_cuts_off_padding_only(self, tmp_path, lengths):
        for batch in self.batches(tmp_path, lengths, 20):
            numbers = batch["number"].numpy()
            assert batch["input_ids"].shape[1] % 8 == 0
            own = batch["input_mask"].numpy().sum(axis=1)
            np.testing.assert_array_equal(own, lengths[numbers])
            longest = lengths[numbers].max()
            assert longest <= batch["input_ids"].shape[1] < longest + 8
        for batch in self.batches(tmp_path, lengths, 5, trim=0):
            assert batch["input_ids"].shape == (self.BATCH, LENGTH)

    def test_rows_without_tokens_keep_a_position(self, tmp_path):
        (batch,) = self.batches(tmp_path, [0] * self.BATCH, 1, trim=1)
        assert batch["input_mask"].shape == (self.BATCH, 1)


class TestTrain:
    @pytest.mark.slow
    def test_each_epoch_holds_every_record_once(self, files):
        found = stream(files, 3 * TOTAL)
        epochs = [found[i : i + TOTAL] for i in (0, TOTAL, 2 * TOTAL)]
        epochs.append(stream(files, TOTAL, seed=8))
        assert all(sorted(epoch) == list(range(TOTAL)) for epoch in epochs)
        assert len(set(map(tuple, epochs))) == 4

    @pytest.mark.slow
    def test_files_and_records_are_shuffled(self, tmp_path):
        counts = (20,) * 10
        files = write(tmp_path, counts)
        found = np.array(stream(files, 200, counts))
        order = found // 20
        assert order.tolist() != sorted(order)
        assert any(np.diff(found[order == file]).min() < 0 for file in range(3))

    @pytest.mark.slow
    def test_batches_cross_the_borders_of_epochs_and_blocks(self, files):
        dataset = pipeline.train(files, COUNTS, 10, 7)
        assert take(dataset, 5) == stream(files, 50)
        assert all(len(rows) == 10 for rows, _ in dataset.take(5))
        # A batch may be larger than an epoch.
        dataset = pipeline.train(files, COUNTS, 40, 7)
        assert take(dataset, 1) == stream(files, 40)
        ((_, weights),) = dataset.take(1)
        assert weights.dtype == tf.float32
        assert weights.numpy().tolist() == [1] * 40

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "counts",
        [
            COUNTS,
            # Blocks that end at the end of a file.
            (4, 0, 4),
            (0, 3, 0),
            *(
                pytest.param(counts, marks=pytest.mark.exhaustive)
                for counts in [(1,), (4, 4), (8,), (4, 1)]
            ),
        ],
    )
    def test_start_gives_the_tail_of_the_stream(self, tmp_path, counts):
        files, total = write(tmp_path, counts), sum(counts)
        whole = stream(files, 3 * total, counts)
        assert sorted(whole[:total]) == list(range(total))
        # Inside a block, at the ends of blocks and epochs, in later epochs.
        for start in (1, 4, 17, 21) if total > 7 else (1, total, total + 2):
            rest = stream(files, 3 * total - start, counts, start=start)
            assert rest == whole[start:]

    @pytest.mark.slow
    def test_start_in_a_far_epoch(self, files):
        # More records than an int32 counts.
        start = 3_000_000_000 // TOTAL * TOTAL
        found = stream(files, 2 * TOTAL, start=start + 3)
        assert found == stream(files, 2 * TOTAL + 3, start=start)[3:]
        assert sorted(found[TOTAL - 3 : 2 * TOTAL - 3]) == list(range(TOTAL))

    @pytest.mark.parametrize("counts", [(), (1, 2), (0,) * 5])
    def test_needs_records_and_their_counts(self, files, counts):
        with pytest.raises(ValueError, match=r"Training needs.*Received: fil"):
            pipeline.train(files, counts, 1, 7)


class TestEvaluate:
    @pytest.mark.slow
    def test_all_records_once_in_order(self, files):
        batches = list(pipeline.evaluate(files, 5))
        for start, (rows, _) in zip((0, 5, 10), batches, strict=False):
            assert numbers(rows) == list(range(start, start + 5))
        rows, weights = batches[3]
        assert numbers(rows)[:2] == [15, 16]
        assert rows.shape == [5]
        assert weights.numpy().tolist() == [1, 1, 0, 0, 0]
        assert len(batches) == 4

        ((_, weights),) = pipeline.evaluate(files, TOTAL)
        assert weights.numpy().tolist() == [1] * TOTAL
        # `number` limits the batches.
        assert len(list(pipeline.evaluate(files, 5, 2))) == 2
        assert len(list(pipeline.evaluate(files, 5, 9))) == 4


class TwoPipelines:
    """A stand-in for a strategy of two hosts with two replicas each."""

    num_replicas_in_sync = 4

    def __init__(self, host):
        self.context = tf.distribute.InputContext(2, host, 4)

    def distribute_datasets_from_function(self, function):
        return function(self.context)


# A program with two TensorFlow servers, as --tpu_name has one on each host.
_SERVERS = """
import json, pathlib, sys
from bert_tf.records import pipeline
from tests.records import test_pipeline as test
import tensorflow as tf

output, files, addresses = map(json.loads, sys.argv[1:])
pipeline.BLOCK = 4
servers = [
    tf.distribute.Server({"worker": addresses}, "worker", host)
    for host in range(2)
]
cluster = tf.train.ClusterSpec({"worker": addresses})
tf.config.experimental_connect_to_cluster(cluster, job_name="client")

class Host(test.TwoPipelines):
    def distribute_datasets_from_function(self, function):
        number = self.context.input_pipeline_id
        with tf.device(f"/job:worker/task:{number}/device:CPU:0"):
            rows = iter(function(self.context))
            return [next(rows)["number"].numpy().tolist() for _ in range(6)]

def make():
    return pipeline.train(files, test.COUNTS, 8, 7)

found = [
    pipeline.distribute(Host(host), make, test.NUMBERED, {})
    for host in range(2)
]
pathlib.Path(output).write_text(json.dumps(found))
"""


@pytest.mark.slow
def test_hosts_of_a_pod_make_their_datasets(files, tmp_path):
    (tmp_path / "servers.py").write_text(_SERVERS)
    output = tmp_path / "found.json"
    addresses = [f"localhost:{port}" for port in free_ports(2)]
    run = scripts.start(
        *(tmp_path / "log", str(tmp_path / "servers")),
        *(json.dumps(x) for x in (str(output), files, addresses)),
    )
    assert run.wait(120) == 0, run.stderr[-3000:]
    # Host, step and replica -> its two records.
    found = np.reshape(json.loads(output.read_text()), [2, 3, 2, 2])
    steps = found.transpose(1, 0, 2, 3)
    assert steps.ravel().tolist() == stream(files, 24)


class TestDistribute:
    @pytest.mark.slow
    def test_replicas_share_the_global_batch(self, files, two_replicas):
        batches = pipeline.train(files, COUNTS, 6, 7)
        found = distributed(batches, two_replicas)
        expected = stream(files, 30)
        for i, batch in enumerate(itertools.islice(found, 5)):
            parts = [x.numpy().tolist() for x in batch["number"].values]
            assert [len(part) for part in parts] == [3, 3]
            assert parts[0] + parts[1] == expected[i * 6 : (i + 1) * 6]
            assert batch["row_weights"].values[1].numpy().tolist() == [1] * 3
        found = itertools.islice(distributed(batches), 5)
        parts = [batch["number"].numpy().tolist() for batch in found]
        assert list(itertools.chain(*parts)) == expected

    def test_evaluation_ends_with_filling(self, files, two_replicas):
        found = distributed(pipeline.evaluate(files, 6), two_replicas)
        weights = [
            [x.numpy().tolist() for x in batch["row_weights"].values]
            for batch in found
        ]
        assert weights == [[[1] * 3] * 2] * 2 + [[[1] * 3, [1, 1, 0]]]

    def test_parses_by_the_record_type(self, tmp_path):
        files = pretraining_records.write(tmp_path, [3])
        kind, lengths = record_types.PRETRAINING, pretraining_records.LENGTHS
        batches = pipeline.evaluate(files, 3)
        (batch,) = distributed(batches, None, kind, lengths)
        (serialized,) = tf.data.TFRecordDataset(files).batch(3)
        expected = kind.parse(serialized, lengths)
        assert batch.keys() == expected.keys() | {"row_weights"}
        for name, value in expected.items():
            np.testing.assert_array_equal(batch[name], value)

    def test_batch_must_be_shared_evenly(self, files, two_replicas):
        batches = pipeline.train(files, COUNTS, 5, 7)
        with pytest.raises(ValueError, match="batch_size=5, replicas=2"):
            distributed(batches, two_replicas)


def read(files, counts):
    with pipeline.explained(files):
        stream(files, 3 * sum(counts), counts)


class TestExplained:
    def test_truncated(self, files):
        path = pathlib.Path(files[3])
        content = path.read_bytes()
        path.write_bytes(content[: len(content) * 5 // 9 + 20])
        with pytest.raises(ValueError, match=rf"{path}, record 6: truncated"):
            read(files, COUNTS)

    # A file that is cut off between two records looks complete.
    @pytest.mark.slow
    @pytest.mark.parametrize("kept", [8, 10])
    def test_other_number_of_records(self, files, kept):
        pretraining_records.write_manifest([files[0], *files[2:]])
        path = pathlib.Path(files[3])
        content = path.read_bytes()
        record = content[: len(content) // 9]
        path.write_bytes(record * kept)
        message = f"{path} holds {kept} records, its manifest says 9"
        with pytest.raises(ValueError, match=message):
            read([files[0], *files[2:]], (5, 1, 9, 2))

    @pytest.mark.slow
    def test_other_number_is_found_where_the_file_ends(self, tmp_path):
        """Not at the end of the epoch, which may be weeks later."""
        counts = [6] * 10
        files = write(tmp_path, counts)
        whole = stream(files, 60, counts)
        first, *_ = whole
        (second,) = {x // 6 for x in whole[4:8]} - {first // 6}
        path = pathlib.Path(files[second])
        content = path.read_bytes()
        path.write_bytes(content[: len(content) * 4 // 6])
        # Blocks of four and of two records of each; the third file lacks two.
        assert stream(files, 8, counts) == whole[:8]
        with pytest.raises(tf.errors.FailedPreconditionError):
            stream(files, 12, counts)

    def test_file_changed_while_it_was_read(self, files):
        pathlib.Path(files[4]).write_bytes(b"")
        message = r"Files changed.*/0, .*/2 and 2 others"
        with pytest.raises(ValueError, match=message):
            read(files, COUNTS)

    def test_number_beyond_the_model(self):
        table = tf.zeros([30, 2])
        message = r"a, b holds the number 33 where .* 0 to 29\. Use the bert_"
        with (
            pytest.raises(ValueError, match=message),
            pipeline.explained(["a", "b"]),
        ):
            tf.gather(table, [[1, 33]])
        with (
            pytest.raises(ValueError, match=r"number 30 where .* 0 to 29"),
            pipeline.explained(["a"]),
        ):
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                [30], tf.zeros([1, 30])
            )
        with (
            pytest.raises(tf.errors.InvalidArgumentError),
            pipeline.explained(["a"]),
        ):
            tf.reshape(tf.zeros([3]), [2])


@pytest.mark.parametrize("kept", [8, 10])
def test_evaluation_reads_the_counted_records(files, kept):
    batches = pipeline.evaluate(files, 4, counts=COUNTS)
    assert take(batches, 9)[:TOTAL] == list(range(TOTAL))
    path = pathlib.Path(files[3])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 9] * kept)
    with (
        pytest.raises(ValueError, match="Files changed while they were read"),
        pipeline.explained(files),
    ):
        list(batches)
