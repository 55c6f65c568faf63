import bz2
import gzip
import io
import itertools
import lzma
import random
from collections.abc import Callable

from bert_tf.pretraining_data import text_files

import pytest
import tensorflow as tf
from backports import zstd

TEXT = "Ein Satz.\r\n  Größe \n\n\u3000\nno end".encode()
EXPECTED = [
    (0, "Ein Satz.", 11),
    (11, "Größe", 11),
    (22, "", 1),
    (23, "", 4),
    (27, "no end", 6),
]
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


def read(path, on_bad_text="error", start=0):
    return [
        (line.offset, line.text, line.size)
        for line in text_files.lines(str(path), on_bad_text, start)
    ]


@pytest.mark.parametrize("ending", COMPRESS)
def test_lines(tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    compress = COMPRESS[ending]
    # Several streams, as from `cat a.gz b.gz` and parallel compressors.
    for data in (compress(TEXT), compress(TEXT[:15]) + compress(TEXT[15:])):
        path.write_bytes(data)
        assert text_files.is_compressed(str(path))
        assert read(path) == EXPECTED


def test_the_longest_window_of_zstd(tmp_path):
    """As by `zstd --ultra --long=31`, which is common for large texts."""
    path = tmp_path / "a.zst"
    window: dict[int, int] = {zstd.CompressionParameter.window_log: 31}
    with zstd.open(path, "wb", options=window) as file:
        file.write(TEXT)
    assert zstd.get_frame_info(path.read_bytes()).decompressed_size is None
    assert read(path) == EXPECTED


@pytest.mark.parametrize(
    "ending, fault",
    [
        *itertools.product(COMPRESS, ["truncated", "not compressed"]),
        # zstd's files have no checksum by default.
        *itertools.product([".gz", ".bz2", ".xz"], ["corrupt"]),
    ],
)
def test_broken_compressed_files(tmp_path, ending, fault):
    text = random.Random(0).randbytes(3000).hex().encode() + b"\n"
    data = COMPRESS[ending](text * 10)
    if fault == "truncated":
        data = data[: len(data) // 2]
    elif fault == "corrupt":
        data = data[:100] + bytes(200) + data[300:]
    else:
        data = text
    path = tmp_path / f"a{ending}"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"a\{ending} is truncated or corru"):
        read(path)


@pytest.mark.parametrize("start", range(len(TEXT) + 1))
def test_lines_from_any_offset(tmp_path, start):
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    assert not text_files.is_compressed(str(path))
    later = [line for line in EXPECTED if line[0] >= start]
    assert read(path, start=start) == later


def test_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\n\ufefftwo".encode())
    assert read(path) == [(0, "one", 7), (7, "\ufefftwo", 6)]


@pytest.mark.parametrize(
    "bad, problem, replaced",
    [
        (b"a\xffb", r"UTF-8 \(invalid start byte\).*byte 1 is 0xff", "a�b"),
        (b"a\xc3", r"UTF-8 \(invalid continuation byte\)", "a�"),
        (b"a\xed\xa0\x80", "UTF-8", "a���"),
        (b"a\0b", "NUL. Received: character 1", "a�b"),
        (b"\0\xff", "UTF-8", "��"),
    ],
)
@pytest.mark.parametrize("start", [0, 4])
def test_bad_text(tmp_path, bad, problem, replaced, start):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n" + bad + b"\nfour\n")
    with pytest.raises(ValueError, match=rf"a\.txt, line 3: .*{problem}.*on_b"):
        read(path, start=start)
    lines = text_files.lines(str(path), "replace")
    assert [(line.text, line.replaced) for line in lines] == [
        ("one", False), ("two", False), (replaced, True), ("four", False)
    ]  # fmt: skip


@pytest.mark.parametrize("on_bad_text", ["error", "replace"])
def test_other_files_are_no_text(tmp_path, on_bad_text):
    path = tmp_path / "a.txt"
    for start in (
        b"PAR1\x15\x04",
        b"\x1f\x8b\x08",
        "one\n".encode("utf-16-le"),
    ):
        path.write_bytes(start)
        with pytest.raises(ValueError, match=r"a\.txt is no text: it is "):
            list(text_files.lines(str(path), on_bad_text))


@pytest.mark.parametrize("on_bad_text", ["error", "replace"])
def test_line_ends_of_old_macs(tmp_path, on_bad_text):
    path = tmp_path / "a.txt"
    for end in (b"", b"\n"):
        path.write_bytes(b"one\r\rtwo\xff\r" + end)
        with pytest.raises(ValueError, match=r"a\.txt is one line, with car"):
            read(path, on_bad_text)
    for text in (b"one\r", b"a\rb\nc\n"):
        path.write_bytes(text)
        assert len(read(path, on_bad_text)) == max(1, text.count(b"\n"))


def test_a_very_long_line(tmp_path):
    path = tmp_path / "a.txt"
    long = "word " * 2_000_000  # 10 MB
    path.write_text("one\n" + long + "\nthree\n")
    assert [text for _, text, _ in read(path)] == ["one", long.strip(), "three"]
    assert read(path, start=5) == [(5 + len(long), "three", 6)]


def test_a_line_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE", 100)
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n" + b"x" * 98 + b"\n" + b"x" * 1000)
    with pytest.raises(ValueError, match=r"a\.txt, line 3: the line is longer"):
        read(path)


@pytest.mark.parametrize("start", [0, 5, 20])
def test_files_of_tensorflow(tmp_path, start):
    # On gs:// etils opens TensorFlow's GFile, which is not a Python file.
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    raw = text_files._Raw(tf.io.gfile.GFile(str(path), "rb"))
    with raw, io.BufferedReader(raw, 4) as stream:
        stream.seek(start)
        assert stream.read() == TEXT[start:]
