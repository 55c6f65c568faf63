import struct
import threading

from bert_tf.errors import InputError
from bert_tf.records import reading, record_types, tfrecord
from tests.record_values import LENGTHS, pretraining_values

import google_crc32c
import pytest


def write(path, number, **lengths):
    with tfrecord.Writer(path) as writer:
        for seed in range(number):
            values = pretraining_values(seed, **lengths)
            writer.write(record_types.PRETRAINING.encode(values))
    return str(path)


class TestCheck:
    def test_accepts_what_fits(self, tmp_path):
        files = [write(tmp_path / name, 2) for name in ("a", "b")]
        reading.check(record_types.PRETRAINING, files, LENGTHS)
        with pytest.raises(ValueError, match=r"a does not hold class.*label"):
            reading.check(record_types.CLASSIFICATION, files, LENGTHS)

    @pytest.mark.parametrize(
        "S, P, message",
        [
            (
                *(512, 3),
                r"b holds sequences of 8 tokens \(feature input_ids\), "
                r"expected 512: give --max_seq_length=8 or make the data",
            ),
            (
                *(8, 20),
                r"b holds 3 predictions per sequence \(feature "
                r"masked_lm_positions\), expected 20: "
                r"give --max_predictions_per_seq=3",
            ),
        ],
    )
    def test_names_both_lengths(self, tmp_path, S, P, message):
        first = write(tmp_path / "a", 1, sequence=S, predictions=P)
        files = [first, write(tmp_path / "b", 1)]
        with pytest.raises(ValueError, match=message):
            reading.check(record_types.PRETRAINING, files, {"S": S, "P": P})

    def test_other_dtype(self, tmp_path):
        values = {
            "input_ids": [1] * 8,
            "input_mask": [1] * 8,
            "segment_ids": [0] * 8,
            "label_ids": 1,
            "is_real_example": 1,
        }
        path = str(tmp_path / "a")
        with tfrecord.Writer(path) as writer:
            writer.write(record_types.CLASSIFICATION.encode(values))
        with pytest.raises(ValueError, match=r"label_ids.*int64_list"):
            reading.check(record_types.REGRESSION, [path], LENGTHS)

    def test_no_examples(self, tmp_path):
        path = str(tmp_path / "a")
        with tfrecord.Writer(path) as writer:
            writer.write(b"\xff\xff\xff")
        with pytest.raises(ValueError, match=r"a, record 1: not a tf\.train"):
            reading.check(record_types.PRETRAINING, [path], LENGTHS)
        (tmp_path / "a").write_text("a text file, longer than a header\n")
        with pytest.raises(ValueError, match="a, record 1: truncated, corr"):
            reading.check(record_types.PRETRAINING, [path], LENGTHS)


class TestFiles:
    @pytest.mark.slow
    def test_count(self, tmp_path):
        files = [write(tmp_path / str(n), n) for n in (3, 1, 1500)]
        assert reading.count(files) == [3, 1, 1500]
        assert reading.diagnose(files) is None

    def test_truncated_file(self, tmp_path):
        good, bad = write(tmp_path / "a", 9), write(tmp_path / "b", 9)
        content = (tmp_path / "b").read_bytes()
        (tmp_path / "b").write_bytes(content[: len(content) * 6 // 9 + 20])
        with pytest.raises(ValueError, match="b, record 7: truncated, corr"):
            reading.count([good, bad])
        diagnosis = reading.diagnose([good, bad])
        assert diagnosis
        assert f"{bad}, record 7" in diagnosis

    @pytest.mark.parametrize("before", [0, 6])
    def test_truncated_header(self, tmp_path, before):
        """TensorFlow takes it for the end of the file."""
        path = write(tmp_path / "a", 9)
        content = (tmp_path / "a").read_bytes()
        (tmp_path / "a").write_bytes(content[: len(content) * before // 9 + 5])
        message = f"a, record {before + 1}: truncated.*its header is cut off"
        with pytest.raises(InputError, match=message):
            reading.count([path])

    def test_corrupt_file(self, tmp_path):
        with tfrecord.Writer(tmp_path / "a") as writer:
            for letter in b"abcdef":
                writer.write(bytes([letter]) * 50)
        content = (tmp_path / "a").read_bytes()
        (tmp_path / "a").write_bytes(content.replace(b"ddd", b"dxd"))
        with pytest.raises(ValueError, match="a, record 4: truncated, corr"):
            reading.count([str(tmp_path / "a")])


@pytest.mark.parametrize("number", [1, 3])
def test_a_length_beyond_the_file(tmp_path, number):
    """TensorFlow would try to allocate that much memory, and crash."""
    path = write(tmp_path / "a", number - 1)
    length = struct.pack("<Q", 1 << 36)
    crc = google_crc32c.value(length)
    rotated = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    with open(path, "ab") as file:
        file.write(length + struct.pack("<I", rotated) + bytes(100))
    message = f"a, record {number}: .*it is 68,719,476,736 bytes long"
    with pytest.raises(InputError, match=message):
        reading.count([path])
    if number == 1:
        with pytest.raises(InputError, match=message):
            reading.check(record_types.PRETRAINING, [path], LENGTHS)


def test_files_are_diagnosed_together(monkeypatch):
    together = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(reading, "_count", lambda _: together.wait())
    assert reading.diagnose(["a", "b"]) is None
