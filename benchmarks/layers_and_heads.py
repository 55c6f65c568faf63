r"""Measures the cost of layers and heads, by the length of a text.

    pip install -e '.[viz]'
    python -m benchmarks.layers_and_heads --vocab_file=vocab.txt \
        --picture=/tmp/layers_and_heads.png

Classifiers with random weights and various numbers of layers and heads are
exported and answer the same text in turn, from raw text on one thread. Prints
medians of milliseconds of CPU time for texts of several lengths; for the times
over the number of layers, R squared of a linear fit and the time per layer; and
the spread of the times over the numbers of heads.
"""

import collections
import dataclasses
import os
import pathlib
import statistics
import tempfile

from benchmarks import curves, serving
from benchmarks.curves import Curve

import numpy as np
from absl import app, flags

_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_HIDDEN_SIZE = flags.DEFINE_integer("hidden_size", 256, "D.")
_RUNS = flags.DEFINE_integer("runs", 31, "Whose medians are printed.", 1)
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")

LENGTHS = (16, 32, 64, 128)
LAYERS = (2, 4, 6, 8, 10, 12)
HEADS = (2, 4, 8, 16)
_THREADS = 1
# The fixed number while the other one varies.
_USUAL_LAYERS, _USUAL_HEADS = 6, 4


# ---- Time --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model to time."""

    layers: int
    heads: int


def shapes() -> list[Shape]:
    """Returns the distinct models."""
    found = [Shape(layers, _USUAL_HEADS) for layers in LAYERS]
    found += [Shape(_USUAL_LAYERS, heads) for heads in HEADS]
    return list(dict.fromkeys(found))


def exported(shape: Shape, folder: pathlib.Path) -> serving.Answer:
    """Returns a function that answers raw texts, on one thread."""
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
    """Returns slope, intercept and R squared of a linear fit."""
    x = np.array(list(curve))
    y = np.array([row[length] for row in curve.values()])
    slope, start = np.polyfit(x, y, 1)
    error = np.sum((y - slope * x - start) ** 2)
    return slope, start, 1 - error / np.sum((y - y.mean()) ** 2)


def show_times(layers: Curve, heads: Curve) -> None:
    """Prints the tables of times."""
    print("Milliseconds of one thread, from raw text")
    show("layers", layers)
    lines = [line_through(layers, length) for length in LENGTHS]
    print("a layer", *(f"{slope:8.3f}" for slope, _, _ in lines))
    print("the rest", *(f"{start:7.3f}" for _, start, _ in lines))
    print("R^2    ", *(f"{r:8.4f}" for *_, r in lines))
    show("heads", heads)
    apart = []
    for length in LENGTHS:
        found = [row[length] for row in heads.values()]
        apart.append(max(found) / min(found) - 1)
    print("apart  ", *(f"{100 * x:7.1f}%" for x in apart), flush=True)


# ---- Output ------------------------------------------------------------------


def show(name: str, curve: Curve) -> None:
    """Prints a table: a row for each number of layers or heads."""
    columns = next(iter(curve.values()))
    print(f"{name:7}", *(f"{column!s:>8}" for column in columns))
    for count, row in curve.items():
        print(f"{count:7}", *(f"{row[x]:8.2f}" for x in columns))


def main(_: list[str]) -> None:
    """Measures, prints the tables and plots them."""
    os.environ[serving.KEEP] = "1"
    found = times()
    layers = {n: found[Shape(n, _USUAL_HEADS)] for n in LAYERS}
    heads = {n: found[Shape(_USUAL_LAYERS, n)] for n in HEADS}
    show_times(layers, heads)
    if _PICTURE.value:
        curves.draw(
            {"layers": layers, "heads": heads},
            *("{} pieces", "milliseconds", _PICTURE.value),
        )


if __name__ == "__main__":
    app.run(main)
