"""Kernels that oneDNN keeps: batches of all sizes take them as they lie."""

import json
import os
import re
import subprocess
import sys

import pytest

# The lengths of each batch's rows: few places and many, few rows and many, and
# with padding that is left out, of few tokens and of many.
_BATCHES = [
    *([4], [1], [30], [70], [3] * 8, [100], [12] * 8, [100] * 3),
    *([10, 3, 40, 2], [100, 3], [40, *[1] * 8], [60, 40, 1, 30]),
]
_ASK = """
import json
import sys

import numpy as np
import tensorflow as tf

from bert_tf import modeling
from bert_tf.exporting import inference

config = modeling.BertConfig(
    vocab_size=50,
    hidden_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=512,
)
bert = inference.of(modeling.Bert(config), reads_all=False)
spec = tf.TensorSpec([None, None], tf.int32)


@tf.function(input_signature=[spec], autograph=False)
def ask(mask):
    inputs = {"input_ids": mask, "input_mask": mask, "segment_ids": 0 * mask}
    return bert(inputs, positions=mask[:, :1] * 0).pooled


for turn in ("first", "second"):
    print("turn", turn, flush=True)
    for lengths in json.loads(sys.argv[1]):
        places = np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]
        ask(tf.constant(places, tf.int32))
"""


def _turns(batches):
    """Asks all batches twice; returns what oneDNN tells of either time."""
    found = subprocess.run(
        [sys.executable, "-c", _ASK, json.dumps(batches)],
        env=os.environ
        | {"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1", "ONEDNN_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split("turn second\n")


def _laid_out(said):
    """Returns the shapes of the kernels that are laid out in blocks."""
    return re.findall(
        r"exec,cpu,reorder,.*dst:f32:\w*:blocked:AB.*,(\S+),", said
    )


@pytest.mark.slow
def test_a_kernel_is_laid_out_once():
    first, second = _turns(_BATCHES)
    if "inner_product,brgemm" not in first:
        pytest.skip("oneDNN has no blocked kernels here.")
    # Query, key and value together; the layer's other products.
    assert {"768x256", "256x256", "512x256", "256x512"} <= {*_laid_out(first)}
    assert _laid_out(second) == []
