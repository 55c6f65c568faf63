"""Tests of the files of vectors, each read back by its own library."""

import json

from bert_tf.tasks.features import files as feature_files
from bert_tf.tasks.features import layers as feature_layers
from bert_tf.tasks.features import lines as feature_lines

import numpy as np
import pytest
import tensorflow as tf

_VOCAB = ["[CLS]", "[SEP]", "é", "b"]
_CHOICE = feature_layers.Choice("layers", (-1, 0))
# Two windows of lines; the last has no words.
_LINES = [
    [
        feature_lines.Line(0, [0, 2, 3, 1], [0] * 4, ["éb"], [1], [3]),
        feature_lines.Line(1, [0, 2, 1], [0] * 3, ["é"], [1], [2]),
    ],
    [feature_lines.Line(2, [0, 1], [0] * 2)],
]


def _all_lines():
    return [line for window in _LINES for line in window]


def vectors_of(unit):
    """Lines' vectors, [n, 2, 3], in their windows."""
    rng = np.random.default_rng(0)
    counts = {
        "token": lambda line: len(line.ids),
        "word": lambda line: len(line.words),
        "mean": lambda line: 1,
    }
    return [
        [
            rng.normal(size=[counts[unit](line), 2, 3]).astype(np.float32)
            for line in window
        ]
        for window in _LINES
    ]


def write(path, unit, file_format=None):
    """Writes the windows; returns the vectors of all lines."""
    vectors = vectors_of(unit)
    file_format = file_format or feature_files.format_of(str(path))
    with feature_files.writer(
        str(path), file_format, _CHOICE, unit, _VOCAB
    ) as output:
        for lines, values in zip(_LINES, vectors, strict=True):
            output.write(lines, values)
            assert not path.exists(), "it is not complete"
    return [x for window in vectors for x in window]


def test_format_of():
    names = ["a.npy", "a.parquet", "a.tfrecord", "a.jsonl", "a", "npy"]
    formats = ["npy", "parquet", "tfrecord", "jsonl", "jsonl", "jsonl"]
    assert list(map(feature_files.format_of, names)) == formats


def test_json_lines_are_the_originals(tmp_path):
    path = tmp_path / "out.jsonl"
    vectors = write(path, "token")
    expected = ""
    for line, values in zip(_all_lines(), vectors, strict=True):
        # As in the original's main.
        output = {"linex_index": line.index}
        all_features = []
        for i, token in enumerate(_VOCAB[x] for x in line.ids):
            all_layers = []
            for j, layer_index in enumerate(_CHOICE.layers):
                layers: dict = {"index": layer_index}
                layers["values"] = [
                    round(float(x), 6) for x in values[i : i + 1, j].flat
                ]
                all_layers.append(layers)
            all_features.append({"token": token, "layers": all_layers})
        output["features"] = all_features
        expected += json.dumps(output) + "\n"
    assert path.read_text() == expected


def test_json_lines_of_words_and_lines(tmp_path):
    vectors = write(tmp_path / "words", "word")
    rows = [
        json.loads(x) for x in (tmp_path / "words").read_text().split("\n")[:-1]
    ]
    assert [[x["token"] for x in row["features"]] for row in rows] == [
        ["éb"],
        ["é"],
        [],
    ]
    vectors = write(tmp_path / "lines", "mean")
    rows = [
        json.loads(x) for x in (tmp_path / "lines").read_text().split("\n")[:-1]
    ]
    assert [set(row) for row in rows] == [{"linex_index", "layers"}] * 3
    found = [[layer["values"] for layer in row["layers"]] for row in rows]
    np.testing.assert_allclose(found, [x[0] for x in vectors], atol=1e-6)


def test_numpy(tmp_path):
    vectors = write(tmp_path / "tokens.npy", "token")
    flat = np.load(tmp_path / "tokens.npy", mmap_mode="r")
    offsets = np.load(tmp_path / "tokens.npy.offsets.npy")
    assert flat.shape == (9, 6)
    for i, values in enumerate(vectors):
        np.testing.assert_array_equal(
            flat[offsets[i] : offsets[i + 1]], values.reshape(-1, 6)
        )
    vectors = write(tmp_path / "lines.npy", "mean")
    np.testing.assert_array_equal(
        np.load(tmp_path / "lines.npy"),
        np.concatenate(vectors).reshape(3, 6),
    )
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"tokens.npy", "tokens.npy.offsets.npy", "lines.npy"}
    # Offsets of other vectors do not stay.
    (tmp_path / "tokens.npy").unlink()
    write(tmp_path / "tokens.npy", "mean")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"tokens.npy", "lines.npy"}


@pytest.mark.parametrize("unit", ["token", "word", "mean"])
def test_parquet(unit, tmp_path):
    parquet = pytest.importorskip(
        "pyarrow.parquet", reason="needs the extra `parquet`"
    )
    vectors = write(tmp_path / "out.parquet", unit)
    file = parquet.ParquetFile(tmp_path / "out.parquet")
    assert file.num_row_groups == 2
    table = file.read().to_pydict()
    assert table["line"] == [0, 1, 2]
    if unit == "mean":
        np.testing.assert_array_equal(
            np.array(table["vector"], np.float32),
            np.concatenate(vectors).reshape(3, 6),
        )
        return
    for i, line in enumerate(_all_lines()):
        tokens = (
            [_VOCAB[x] for x in line.ids] if unit == "token" else line.words
        )
        assert table["tokens"][i] == list(tokens)
        found = np.array(table["vectors"][i], np.float32).reshape(-1, 6)
        np.testing.assert_array_equal(found, vectors[i].reshape(-1, 6))


def test_tfrecord(tmp_path):
    vectors = write(tmp_path / "out.tfrecord", "token")
    dataset = tf.data.TFRecordDataset(str(tmp_path / "out.tfrecord"))
    spec = {
        "line": tf.io.FixedLenFeature([], tf.int64),
        "shape": tf.io.FixedLenFeature([3], tf.int64),
        "vectors": tf.io.VarLenFeature(tf.float32),
    }
    rows = [tf.io.parse_single_example(x, spec) for x in dataset]
    assert [int(row["line"]) for row in rows] == [0, 1, 2]
    for row, values in zip(rows, vectors, strict=True):
        found = tf.reshape(row["vectors"].values, row["shape"])
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("file_format", feature_files.FORMATS)
def test_failure_leaves_nothing(file_format, tmp_path):
    vectors = vectors_of("token")
    path = str(tmp_path / "out")

    def fail():
        with feature_files.writer(
            path, file_format, _CHOICE, "token", _VOCAB
        ) as output:
            output.write(_LINES[0], vectors[0])
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert not list(tmp_path.iterdir())


def test_numpy_files_are_local():
    with (
        pytest.raises(ValueError, match=r"local disk.*gs://b/x.npy"),
        feature_files.writer("gs://b/x.npy", "npy", _CHOICE, "cls", _VOCAB),
    ):
        pass
