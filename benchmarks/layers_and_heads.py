r"""What layers and heads cost, and what they are worth, by the length of texts.

    pip install -e '.[viz]'
    python -m benchmarks.layers_and_heads --vocab_file=vocab.txt
    python -m benchmarks.layers_and_heads --vocab_file=vocab.txt \
        --init_checkpoint=$MINILM --train_file=$GLUE_DIR/SST-2/train.tsv \
        --dev_file=$GLUE_DIR/SST-2/dev.tsv --picture=/tmp/layers_and_heads.png

Time: classifiers of random weights, of some numbers of layers and of heads, are
exported and answer the same text in turn, from raw text, one thread. Printed
are medians of milliseconds of processor time for texts of some lengths; how
well a line through the times over the layers explains them (R squared), what a
layer adds, and how far the times of the numbers of heads are apart.

Score, of what `--train_file` and `--dev_file` have in the columns `--columns`:
the lowest layers of `--init_checkpoint`, fine-tuned; and models of random
weights whose heads differ, as those of trained weights are given. Printed is
the accuracy on dev, of texts of some lengths in pieces and of all.

What is complete in --output_dir is not trained again.
"""

import collections
import csv
import dataclasses
import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import serving

import numpy as np
from absl import app, flags

_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_HIDDEN_SIZE = flags.DEFINE_integer("hidden_size", 256, "D.")
_RUNS = flags.DEFINE_integer("runs", 31, "Whose medians are printed.", 1)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "Whose lowest layers are fine-tuned."
)
_TRAIN_FILE = flags.DEFINE_string("train_file", None, "TSV with a header.")
_DEV_FILE = flags.DEFINE_string("dev_file", None, "TSV with a header.")
_COLUMNS = flags.DEFINE_list(
    "columns", ["sentence", "label"], "Of the text, and of its label."
)
_EPOCHS = flags.DEFINE_float("epochs", 1, "Of fine-tuning.", 0)
_RANDOM_EPOCHS = flags.DEFINE_float(
    "random_epochs", 1, "Of training from random weights.", 0
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/layers_and_heads", "Of what is trained."
)
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = (16, 32, 64, 128)
LAYERS = (2, 4, 6, 8, 10, 12)
HEADS = (2, 4, 8, 16)
_THREADS = 1
# What stays as it is while the other one varies.
_USUAL_LAYERS, _USUAL_HEADS = 6, 4
# The most pieces of a text of each group, [CLS] and [SEP] included.
_GROUPS = (16, 32, 128)
_ALL = "all"

# Number of layers or heads -> length, or group of lengths -> time or score.
Curve = Mapping[int, Mapping[Any, float]]


# ---- Time --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model to time."""

    layers: int
    heads: int


def shapes() -> list[Shape]:
    """Lists the models, each once."""
    found = [Shape(layers, _USUAL_HEADS) for layers in LAYERS]
    found += [Shape(_USUAL_LAYERS, heads) for heads in HEADS]
    return list(dict.fromkeys(found))


def exported(shape: Shape, folder: pathlib.Path) -> serving.Answer:
    """Returns what answers raw texts, on one thread."""
    from bert_tf import heads, modeling
    from bert_tf.exporting import saved_model
    from bert_tf.vocabularies import word_pieces

    pieces = pathlib.Path(_VOCAB_FILE.value).read_text("utf-8").splitlines()
    config = modeling.BertConfig(
        vocab_size=len(pieces),
        hidden_size=_HIDDEN_SIZE.value,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * _HIDDEN_SIZE.value,
    )
    made = saved_model.classifier(
        heads.BertClassifier(modeling.Bert(config), 2),
        config,
        word_pieces.WordPiece(tuple(pieces), True),
        ["no", "yes"],
        max(LENGTHS),
        takes_pairs=False,
    )
    path = folder / f"{shape.layers}_{shape.heads}"
    saved_model.save(str(path), made)
    return serving.load(path, _THREADS)


def times() -> dict[Shape, dict[int, float]]:
    """Returns the milliseconds of each model for a text of each length."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(_THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS)
    words = serving.read_words(_VOCAB_FILE.value)
    found: dict[Shape, dict[int, float]] = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        models = {x: exported(x, pathlib.Path(folder)) for x in shapes()}
        for length in LENGTHS:
            texts = serving.make_texts(words, [length])
            seconds = serving.times_in_turn(models, texts, _RUNS.value)
            for shape, values in seconds.items():
                found[shape][length] = 1000 * statistics.median(values)
    return found


def line_through(curve: Curve, length: int) -> tuple[float, float, float]:
    """Returns slope, place at 0 and R squared of times over numbers."""
    x = np.array(list(curve))
    y = np.array([row[length] for row in curve.values()])
    slope, start = np.polyfit(x, y, 1)
    error = np.sum((y - slope * x - start) ** 2)
    return slope, start, 1 - error / np.sum((y - y.mean()) ** 2)


def show_times(layers: Curve, heads: Curve) -> None:
    """Prints the tables of times."""
    print("Milliseconds of one thread, from raw text")
    show("layers", layers, "{:8.2f}")
    lines = [line_through(layers, length) for length in LENGTHS]
    print("a layer", *(f"{slope:8.3f}" for slope, _, _ in lines))
    print("the rest", *(f"{start:7.3f}" for _, start, _ in lines))
    print("R^2    ", *(f"{r:8.4f}" for *_, r in lines))
    show("heads", heads, "{:8.2f}")
    apart = []
    for length in LENGTHS:
        found = [row[length] for row in heads.values()]
        apart.append(max(found) / min(found) - 1)
    print("apart  ", *(f"{100 * x:7.1f}%" for x in apart), flush=True)


# ---- Score -------------------------------------------------------------------


def examples(path: str) -> Iterator[tuple[str, str]]:
    """Yields the texts of dev and their labels."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            text, label = (row[name] for name in _COLUMNS.value)
            yield text, label


def trained(name: str, *options: str) -> pathlib.Path:
    """Trains a classifier, unless it is there; returns its folder."""
    target = pathlib.Path(_OUTPUT_DIR.value) / name
    done = target / "eval_results.txt"
    if done.exists():
        return target
    text, label = _COLUMNS.value
    command = [
        *(sys.executable, str(ROOT / "run_classifier.py")),
        *("--do_train", "--do_eval", f"--output_dir={target}"),
        *(f"--train_file={_TRAIN_FILE.value}", "--train_batch_size=32"),
        *(f"--dev_file={_DEV_FILE.value}", f"--max_seq_length={max(_GROUPS)}"),
        *(f"--text_a_column={text}", f"--label_column={label}"),
        *options,
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with open(f"{target}.log", "w") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True)
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return target


def scores_of(folder: pathlib.Path, dev: str) -> dict[Any, float]:
    """Returns the accuracy of each group of texts of dev, in per cent."""
    import bert_tf

    model = bert_tf.load(str(folder))
    tokenizer = bert_tf.Tokenizer(str(folder), max_seq_length=max(_GROUPS))
    texts, labels = zip(*examples(dev), strict=True)
    right = np.array(
        [
            answer["label"] == label
            for answer, label in zip(model(list(texts)), labels, strict=True)
        ]
    )
    lengths = tokenizer(list(texts))["input_mask"].numpy().sum(axis=1)
    groups = np.searchsorted(_GROUPS, lengths)
    found: dict[Any, float] = {
        most: 100 * right[groups == i].mean() for i, most in enumerate(_GROUPS)
    }
    return found | {_ALL: 100 * right.mean()}


def scores_by_layers(checkpoint: str, dev: str) -> Curve:
    """Returns those of the lowest layers of trained weights."""
    from bert_tf.checkpoints import formats
    from bert_tf.errors import InputError

    source = formats.open_checkpoint(checkpoint)
    if source.config is None:
        raise InputError(f"{source.path} has no config beside it.")
    found = {}
    for count in range(1, source.config.num_hidden_layers + 1):
        start = pathlib.Path(_OUTPUT_DIR.value) / f"lowest_{count}"
        if not start.exists():
            _take_lowest(count, start)
        folder = trained(
            f"layers_{count}",
            *(f"--init_checkpoint={start}", "--learning_rate=5e-5"),
            f"--num_train_epochs={_EPOCHS.value}",
        )
        found[count] = scores_of(folder, dev)
    return found


def _take_lowest(count: int, target: pathlib.Path) -> None:
    command = [
        *(sys.executable, str(ROOT / "convert_checkpoint.py")),
        f"--input_checkpoint={_INIT_CHECKPOINT.value}",
        f"--layers={','.join(map(str, range(count)))}",
        *("--output_format=tf1", f"--output_path={target}"),
    ]
    subprocess.run(command, check=True, capture_output=True)


def scores_by_heads(dev: str) -> Curve:
    """Returns those of models of random weights, BERT-mini but for heads."""
    from bert_tf import modeling

    known = modeling.BertConfig.from_json_file(
        str(ROOT / "configs/models/mini.json")
    )
    found = {}
    folder = pathlib.Path(_OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    for count in HEADS:
        config = dataclasses.replace(known, num_attention_heads=count)
        path = folder / f"heads_{count}.json"
        path.write_text(config.to_json())
        run = trained(
            f"heads_{count}",
            *(
                f"--bert_config_file={path}",
                f"--vocab_file={_VOCAB_FILE.value}",
            ),
            *("--learning_rate=3e-4", "--lr_schedule=linear"),
            f"--num_train_epochs={_RANDOM_EPOCHS.value}",
        )
        found[count] = scores_of(run, dev)
    return found


# ---- What is shown -----------------------------------------------------------


def show(name: str, curve: Curve, number: str) -> None:
    """Prints a table: a row for each number of layers or heads."""
    columns = next(iter(curve.values()))
    print(f"{name:7}", *(f"{column!s:>8}" for column in columns))
    for count, row in curve.items():
        print(f"{count:7}", *(number.format(row[x]) for x in columns))
    sys.stdout.flush()


def draw(curves: Sequence[tuple[str, str, Curve]], path: str) -> None:
    """Writes a picture of the curves, each with what its axes are."""
    plots = importlib.import_module("matplotlib.pyplot")
    figure, axes = plots.subplots(
        -(-len(curves) // 2), 2, figsize=(9, 7), layout="constrained"
    )
    for axis, (of_x, of_y, curve) in zip(axes.flat, curves, strict=True):
        for column in next(iter(curve.values())):
            values = [row[column] for row in curve.values()]
            name = f"{column} pieces" if column != _ALL else _ALL
            axis.plot(list(curve), values, "o-", label=name)
        axis.set_xlabel(of_x)
        axis.set_ylabel(of_y)
        axis.set_xticks(list(curve))
        axis.legend()
    figure.savefig(path, dpi=150)


def main(_: list[str]) -> None:
    """Measures, prints the tables and draws them."""
    os.environ[serving.KEEP] = "1"
    found = times()
    layers = {n: found[Shape(n, _USUAL_HEADS)] for n in LAYERS}
    heads = {n: found[Shape(_USUAL_LAYERS, n)] for n in HEADS}
    show_times(layers, heads)
    curves: list[tuple[str, str, Curve]] = [
        ("layers", "milliseconds", layers),
        ("heads", "milliseconds", heads),
    ]
    dev, checkpoint = _DEV_FILE.value, _INIT_CHECKPOINT.value
    if _TRAIN_FILE.value and dev:
        scored = {"heads": scores_by_heads(dev)}
        if checkpoint:
            scored["layers"] = scores_by_layers(checkpoint, dev)
        for name, curve in scored.items():
            print("Accuracy of texts of up to so many pieces")
            show(name, curve, "{:8.1f}")
            curves.append((name, "accuracy", curve))
    if _PICTURE.value:
        draw(curves, _PICTURE.value)


if __name__ == "__main__":
    app.run(main)
