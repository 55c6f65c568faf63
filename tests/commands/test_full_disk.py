"""No writer leaves anything half-written on a disk that is full."""

import json
from collections.abc import Callable

from bert_tf import heads, modeling
from bert_tf.checkpoints import best, formats, opened, tf1_files
from bert_tf.exporting import saved_model
from bert_tf.pretraining_data import pretraining_sequences, work_folder
from bert_tf.records import manifests, shuffled_writer, tfrecord
from bert_tf.tasks.classification import predictions, reports
from bert_tf.tasks.features import feature_files, feature_layers, feature_lines
from bert_tf.tasks.squad import squad_answers
from bert_tf.training import progress
from bert_tf.vocabularies import word_pieces
from tests import interop_samples as samples
from tests import pretraining_records, small_disks

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

# Pages of the disk are of 4 kB: what is written does not fit in the least.
_KILOBYTES = 32
_MUCH = 300_000
_CONFIG = modeling.BertConfig(
    **samples.SMALL | {"vocab_size": 6, "hidden_size": 48}
)
_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
_VOCABULARY = word_pieces.WordPiece(tuple(_VOCAB), True)


def _records(writer):
    with writer:
        for _ in range(100):
            writer.write_all([b"x" * 10_000])


def _features(path, unit="mean"):
    kind = feature_files.format_of(path)
    choice = feature_layers.Choice("layers", (-1,))
    lines = [
        feature_lines.Line(i, [0, 1], [0] * 2, ["a"], [1], [2])
        for i in range(100)
    ]
    count = {"mean": 1, "token": 2}[unit]
    vectors = [np.random.default_rng(0).normal(size=[count, 1, 99])] * 100
    with feature_files.writer(path, kind, choice, unit, _VOCAB) as output:
        for _ in range(20):
            output.write(lines, vectors)


def _corpus():
    return pretraining_sequences.Corpus(
        *(np.zeros(_MUCH, np.int32), np.zeros(_MUCH, bool)),
        sentences=np.array([0, _MUCH]),
        documents=np.array([0, 1]),
        keys=np.array([1], np.uint64),
    )


def _work(folder):
    work = work_folder.WorkFolder(f"{folder}/work", 1000)
    work.begin({})
    return work


def _sequences(work):
    sequences = pretraining_sequences.Sequences(
        *(np.zeros(_MUCH, np.int32), np.zeros(_MUCH, bool)),
        starts=np.array([0, _MUCH]),
        middles=np.array([1], np.int32),
        labels=np.array([0], np.int8),
    )
    keys = np.array([5], np.uint64)
    work.save_sequences((0, 0), 0, keys, sequences, np.array([0, 1]))


def _manifest():
    shards = tuple(manifests.Shard(f"{i}", i) for i in range(20_000))
    return pretraining_records.manifest(shards=shards)


def _model():
    return heads.BertClassifier(modeling.Bert(_CONFIG), 3)


def _convert(folder, output_format):
    model = _model()
    source = opened.Checkpoint(
        path="made here",
        format="tf1",
        shapes={v.path: tuple(v.shape) for v in model.variables},
        read=lambda names: {
            v.path: v.numpy() for v in model.variables if v.path in names
        },
        config=_CONFIG,
        vocab=samples.vocab_files(_VOCAB),
        do_lower_case=True,
        labels=("x", "y", "z"),
    )
    formats.write(f"{folder}/{output_format}", output_format, source)


def _export(path):
    module = tf.Module()
    module.weights = tf.Variable(tf.zeros([_MUCH]))
    spec = tf.TensorSpec([None], tf.string)
    module.serve = tf.function(lambda text: {"text": text}, [spec])
    signatures = {"serving_default": module.serve}
    saved_model.save(path, saved_model.Export(module, signatures, {}), False)


def _picture(path):
    figure = pytest.importorskip("matplotlib.figure")
    drawn = figure.Figure()
    drawn.figimage(np.random.default_rng(0).random((300, 300)))
    reports.write_png(path, drawn)


def _answers(folder):
    answer = squad_answers.Answer("a", 0, 1, 1.0, 0.0, [{"text": "x" * _MUCH}])
    squad_answers.write(folder, {"id": answer}, None)


def _best(folder):
    kept = best.Best(folder, "f1", {"vocab.txt": b"a\n"})
    kept.offer(1, {"f1": 1.0}, _model())


# Name -> what writes it in a folder, and too much.
_WRITERS: dict[str, Callable[[str], None]] = {
    "model.ckpt-1": lambda f: tf1_files.write(
        f"{f}/model.ckpt-1", {"a": np.zeros(_MUCH)}
    ),
    "checkpoint": lambda f: tf1_files.write_state(f, ["x" * _MUCH]),
    "best": _best,
    "manifest.json": lambda f: _manifest().write(f"{f}/manifest.json"),
    "eval_results.txt": lambda f: progress.write_results(
        f"{f}/eval_results.txt", {f"{i}": 0.1 for i in range(20_000)}
    ),
    "x.tf_record": lambda f: _records(tfrecord.Writer(f"{f}/x.tf_record")),
    "y.tf_record": lambda f: _records(
        shuffled_writer.Writer(f"{f}/y.tf_record", 1)
    ),
    # Its parts don't fit either.
    "z.tf_record": lambda f: _records(
        shuffled_writer.Writer(f"{f}/z.tf_record", 1, 50_000)
    ),
    "x.tfrecord": lambda f: _records(tfrecord.Writer(f"{f}/x.tfrecord")),
    "f.jsonl": lambda f: _features(f"{f}/f.jsonl"),
    "f.npy": lambda f: _features(f"{f}/f.npy"),
    "tokens.npy": lambda f: _features(f"{f}/tokens.npy", "token"),
    "f.parquet": lambda f: _features(f"{f}/f.parquet"),
    "f.tfrecord": lambda f: _features(f"{f}/f.tfrecord"),
    "hf": lambda f: _convert(f, "hf"),
    "tf1": lambda f: _convert(f, "tf1"),
    "keras_hub": lambda f: _convert(f, "keras_hub"),
    "export": lambda f: _export(f"{f}/export"),
    "test_results.tsv": lambda f: predictions.write_probabilities(
        f"{f}/test_results.tsv", np.zeros([20_000, 2]), False
    ),
    "nbest_predictions.json": _answers,
    "work/tokens/000000-0000.npy": lambda f: _work(f).save_documents(
        (0, 0), _corpus()
    ),
    "work/sequences/000000-0000-000.bin": lambda f: _sequences(_work(f)),
    "work/counts/shard-0.json": lambda f: _work(f).save_counts(
        "shard-0", {"a": "x" * _MUCH}
    ),
    "picture.png": lambda f: _picture(f"{f}/picture.png"),
}


_REASONS = {"mounted": "No space left on device", "limited": "File too large"}


@pytest.mark.parametrize("kind", _REASONS)
@pytest.mark.parametrize("name", _WRITERS)
def test_nothing_is_left(tmp_path, name, kind):
    if name == "f.parquet":
        pytest.importorskip("pyarrow")
    full = getattr(small_disks, kind)
    if name == "keras_hub" and kind == "limited":
        pytest.skip("HDF5 crashes where a file does not fit")
    with full(tmp_path / "disk", _KILOBYTES) as disk:
        with pytest.raises(OSError, match=_REASONS[kind]) as error:
            _WRITERS[name](str(disk))
        assert f"{disk}/{name}" in str(error.value)
        assert ".tmp" not in str(error.value)
        left = {path.name for path in disk.rglob("*") if path.is_file()}
        # Small ones had room.
        small = {"vocab.txt", "chosen_on.json", "predictions.json", "run.json"}
        assert left <= small


def test_lines_of_a_log_stay(tmp_path):
    lines = [json.dumps({"step": i, "loss": 1.0}) + "\n" for i in range(1500)]
    with small_disks.mounted(tmp_path / "disk", 64) as disk:
        (disk / "metrics.jsonl").write_text("".join(lines))
        message = (
            f"^Cannot write {disk}/metrics.jsonl: No space left on device$"
        )
        with pytest.raises(OSError, match=message):
            progress.Progress(str(disk), 1499, 2000)
        assert (disk / "metrics.jsonl").read_text() == "".join(lines)
        assert [path.name for path in disk.iterdir()] == ["metrics.jsonl"]
