"""Checks of input files before their content is parsed."""

import gzip
import os

from bert_tf.storage import input_files

import pytest


def test_nothing_and_folders_are_no_files(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    for name in ("none", "link"):
        with pytest.raises(FileNotFoundError, match=f"Received: .*{name}$"):
            input_files.check(tmp_path / name)
    with pytest.raises(ValueError, match=r"a folder.*Received: vocab_file=/"):
        input_files.check(tmp_path, "vocab_file")
    (tmp_path / "file").write_text("")
    input_files.check(tmp_path / "file")


def test_pipes_are_read_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"read twice.*pipe$"):
        input_files.check_can_be_read_again(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    input_files.check_can_be_read_again(tmp_path / "file")
    input_files.check_can_be_read_again(tmp_path / "none")


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "of git-lfs"),
        (b"\n<!DOCTYPE HTML><html>", "a web page"),
        (b'<html lang="en">', "a web page"),
        (gzip.compress(b"a", mtime=0), "compressed (gzip)"),
        (b"PK\x03\x04", "compressed (zip)"),
        (b"PK\x03\x04" + b"_" * 26 + b"[Content_Types].xml", "Save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Save it as CSV"),
        ("a".encode("utf-16"), "UTF-16, not UTF-8"),
        ("a".encode("utf-32"), "UTF-32, not UTF-8"),
        ("ab\n".encode("utf-16-le"), "UTF-16 without a byte-order mark"),
        ("ab\n".encode("utf-16-be"), "UTF-16 without a byte-order mark"),
        (b"PAR1\x15\x04", "it is Parquet. Save it as JSON lines or CSV"),
        (b"PAR1 (a receptor)", None),
        (b"ARROW1\0\0", "it is Arrow. Save it as JSON lines or CSV"),
        (b"a\0b c", None),
        (b"\0\0\0\0", None),
        (b"a\tb\n", None),
        (b"\xe9", None),
    ],
)
def test_what_a_text_plainly_is(start, problem):
    found = input_files.explain_text(start)
    assert problem in found if problem else not found


def test_weights_are_compressed_by_themselves():
    assert not input_files.explain(b"PK\x03\x04")
    assert input_files.explain(b"") == "it is empty"
