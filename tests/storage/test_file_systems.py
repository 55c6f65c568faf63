"""Paths that look like globs."""

import glob

from bert_tf.storage import file_systems

import pytest
import tensorflow as tf

_NAMES = (
    *("a[1]", "a1", "[!a]", "x*y", "xzy", "q?", "qq"),
    *(r"b\c", r"b\\c", r"\[b]*"),
)


@pytest.mark.parametrize("name", _NAMES)
def test_an_escaped_path_matches_itself_alone(tmp_path, name):
    for each in _NAMES:
        (tmp_path / each).write_text("x")
    path = str(tmp_path / name)
    escaped = file_systems.glob_escape(path)
    assert glob.glob(escaped) == [path]
    assert tf.io.gfile.glob(escaped) == [path]


def test_paths_in_buckets_have_no_links():
    path = "gs://bucket/a[1]/model.ckpt"
    with file_systems.not_as_glob(path, [f"{path}.index"]) as links:
        assert links == path
