r"""Measures the memory of a process that serves a SavedModel.

    python -m benchmarks.serving_memory --vocab_file=/data/bert_uncased.txt \
        --bert_config_file=configs/models/base.json

A classifier with random weights is exported in float32 and in int8. For each, a
process with TensorFlow and tensorflow-text, and without this package, loads it
and answers texts: one of 384 tokens, then batches of 32 of 128 tokens, --times
each. Prints megabytes of the folder, and the peak resident memory of the
process: with TensorFlow only, with the model, and after each kind of request.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from bert_tf import configuration, heads, modeling, options, vocabularies
from bert_tf.exporting import inference, quantized, runtimes, saved_model

import numpy as np
from absl import app, flags

_CONFIG_FILE = flags.DEFINE_string(
    "bert_config_file", None, "JSON.", required=True
)
_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_TIMES = flags.DEFINE_integer("times", 3, "How often each is asked.", 1)
_LENGTH = 384
_REQUESTS = {"1 x 384": (1, 384), "32 x 128": (32, 128)}

_SERVER = """
import json, re, sys
import tensorflow as tf
import tensorflow_text

def most():
    # Not ru_maxrss, which a process has of the one that started it.
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s*(\\d+)", file.read())[1]) * 1024 / 1e6

tf.constant([1.0]) + 1.0
path, requests, times = json.load(sys.stdin)
found = [most()]
model = tf.saved_model.load(path)
serve = model.signatures["serving_default"]
found.append(most())
for texts in requests:
    for _ in range(times):
        serve(text_a=tf.constant(texts))
    found.append(most())
assert "bert_tf" not in sys.modules
print(json.dumps(found))
"""


def export(path, kept):
    """Exports a classifier with random weights."""
    config = configuration.BertConfig.from_json_file(_CONFIG_FILE.value)
    vocabulary = vocabularies.open(_VOCAB_FILE.value, do_lower_case=True)
    model = inference.make_inference_model(
        heads.BertClassifier(modeling.Bert(config), 2),
        weights=quantized.Int8() if kept == "int8" else None,
    )
    labels = ("no", "yes")
    made = saved_model.classifier(
        model, config, vocabulary, labels, _LENGTH, takes_pairs=False
    )
    runtimes.save(path, made, "saved_model", kept)


def texts():
    """Returns the texts of each request, of words that are a single token."""
    pieces = pathlib.Path(_VOCAB_FILE.value).read_text("utf-8").split("\n")
    words = [x for x in pieces if x.isascii() and x.isalpha()]
    draw = np.random.default_rng(1)
    return [
        [" ".join(draw.choice(words, length - 2)) for _ in range(rows)]
        for rows, length in _REQUESTS.values()
    ]


def measure(path):
    """Returns the megabytes of a separate process, step by step."""
    done = subprocess.run(
        [sys.executable, "-c", _SERVER],
        input=json.dumps([path, texts(), _TIMES.value]),
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def main(_):
    """Measures each storage format of weights."""
    steps = "folder", "TensorFlow", "loaded", *_REQUESTS
    print("weights", *(f"{x + ' MB':>14}" for x in steps))
    for kept in options.EXPORT_WEIGHTS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "1")
            export(path, kept)
            files = [x for x in pathlib.Path(path).rglob("*") if x.is_file()]
            size = sum(map(os.path.getsize, files)) / 1e6
            values = size, *measure(path)
            print(f"{kept:7}", *(f"{x:14.0f}" for x in values), flush=True)


if __name__ == "__main__":
    app.run(main)
