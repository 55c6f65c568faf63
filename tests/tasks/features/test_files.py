"""Tests of the vector files, each read back by its own library."""

import json

from bert_tf import options
from bert_tf.tasks.features import feature_files, feature_layers, feature_lines

import numpy as np
import pytest
import tensorflow as tf

_VOCAB = ["[CLS]", "[SEP]", "é", "b"]
_CHOICE = feature_layers.Choice("layers", (-1, 0))
# Two windows of lines; the last line has no words.
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
    """Returns the lines' vectors, [n, 2, 3], in their windows."""
    rng = np.random.default_rng(0)

    def count(line):
        return {"token": len(line.ids), "word": len(line.words)}.get(unit, 1)

    return [
        [rng.normal(size=[count(x), 2, 3]).astype(np.float32) for x in window]
        for window in _LINES
    ]


def write(path, unit):
    """Writes the windows; returns the vectors of all lines."""
    vectors = vectors_of(unit)
    how = (feature_files.format_of(str(path)), _CHOICE, unit, _VOCAB)
    with feature_files.writer(str(path), *how) as output:
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
            all_layers = [
                {"index": index, "values": [round(float(x), 6) for x in row]}
                for index, row in zip(_CHOICE.layers, values[i], strict=True)
            ]
            all_features.append({"token": token, "layers": all_layers})
        output["features"] = all_features
        expected += json.dumps(output) + "\n"
    assert path.read_text() == expected


def test_json_lines_of_words_and_lines(tmp_path):
    def rows(unit):
        vectors = write(tmp_path / unit, unit)
        lines = (tmp_path / unit).read_text().splitlines()
        return vectors, list(map(json.loads, lines))

    _, of_words = rows("word")
    words = [[x["token"] for x in row["features"]] for row in of_words]
    assert words == [["éb"], ["é"], []]
    vectors, of_lines = rows("mean")
    assert [set(row) for row in of_lines] == [{"linex_index", "layers"}] * 3
    found = [[layer["values"] for layer in row["layers"]] for row in of_lines]
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
    one_each = np.concatenate(vectors).reshape(3, 6)
    np.testing.assert_array_equal(np.load(tmp_path / "lines.npy"), one_each)
    names = {"tokens.npy", "tokens.npy.offsets.npy", "lines.npy"}
    assert {path.name for path in tmp_path.iterdir()} == names
    # Offsets of earlier vectors are removed.
    (tmp_path / "tokens.npy").unlink()
    write(tmp_path / "tokens.npy", "mean")
    names -= {"tokens.npy.offsets.npy"}
    assert {path.name for path in tmp_path.iterdir()} == names


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
        found = np.array(table["vector"], np.float32)
        expected = np.concatenate(vectors).reshape(3, 6)
        np.testing.assert_array_equal(found, expected)
        return
    for i, line in enumerate(_all_lines()):
        pieces = [_VOCAB[x] for x in line.ids]
        tokens = pieces if unit == "token" else list(line.words)
        assert table["tokens"][i] == tokens
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


@pytest.mark.parametrize("file_format", options.FEATURE_FORMATS)
def test_failure_leaves_nothing(file_format, tmp_path):
    vectors = vectors_of("token")
    how = (str(tmp_path / "out"), file_format, _CHOICE, "token", _VOCAB)
    with (
        pytest.raises(OSError, match="disk full"),
        feature_files.writer(*how) as output,
    ):
        output.write(_LINES[0], vectors[0])
        raise OSError("disk full")
    assert not list(tmp_path.iterdir())


def test_numpy_files_are_local():
    writer = feature_files.writer("gs://b/x.npy", "npy", _CHOICE, "cls", _VOCAB)
    with pytest.raises(ValueError, match=r"local disk.*gs://b/x.npy"), writer:
        pass
