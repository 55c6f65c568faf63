"""Kernels that oneDNN keeps: batches of all sizes take them as they lie."""

import json
import re

from tests import processes

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


def _laid_out(said):
    """Returns the shapes of the kernels that are laid out in blocks."""
    return re.findall(r"cpu,reorder,.*dst:f32:\w*:blocked:AB.*,(\S+),", said)


@pytest.mark.slow
def test_a_kernel_is_laid_out_once(monkeypatch):
    monkeypatch.setenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "1")
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")
    code, said, errors = processes.run(_ASK, json.dumps(_BATCHES))
    assert code == 0, errors
    if not re.search(r"info,cpu,isa:.*AVX(2|-512)", said):
        pytest.skip("oneDNN lays kernels out in blocks with AVX2 and AVX-512.")
    first, second = said.split("turn second\n")
    # Query, key and value together; the layer's other products.
    assert {"768x256", "256x256", "512x256", "256x512"} <= {*_laid_out(first)}
    assert _laid_out(second) == []
