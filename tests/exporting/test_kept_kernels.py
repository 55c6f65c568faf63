"""Kernels that oneDNN caches: batches of all sizes use them as stored."""

import re

from bert_tf import kept_kernels, modeling
from bert_tf.exporting import inference
from tests import scripts

import keras
import numpy as np
import pytest
import tensorflow as tf

# Lengths of each batch's rows: few and many positions, few and many rows, and
# padding that is removed, with few and many tokens.
_BATCHES = [
    *([4], [1], [30], [70], [3] * 8, [100], [12] * 8, [100] * 3),
    *([10, 3, 40, 2], [100, 3], [40, *[1] * 8], [60, 40, 1, 30]),
]
_SAVE = """
import sys
import numpy as np
from tests.exporting import test_kept_kernels as tests
np.save(sys.argv[1], tests._answers())
"""


def _answers():
    """Returns the vectors of all batches, each computed twice."""
    keras.utils.set_random_seed(1)
    config = modeling.BertConfig(
        vocab_size=50,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
    )
    bert = inference.make_inference_model(
        modeling.Bert(config), reads_all=False
    )
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[spec, spec], autograph=False)
    def ask(ids, mask):
        inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": 0 * ids}
        return bert(inputs, positions=mask[:, :1] * 0).pooled

    found = []
    for turn in ("first", "second"):
        print("turn", turn, flush=True)
        rng = np.random.default_rng(0)
        for lengths in _BATCHES:
            mask = np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]
            ids = rng.integers(0, config.vocab_size, mask.shape)
            found.append(ask(tf.constant(ids, tf.int32), np.int32(mask)))
    return np.concatenate(found)


def _laid_out(said):
    """Returns the shapes of the kernels that are stored in blocks."""
    return re.findall(r"cpu,reorder,.*dst:f32:\w*:blocked:AB.*,(\S+),", said)


@pytest.mark.slow
@pytest.mark.usefixtures("grappler")
def test_a_kernel_is_laid_out_once_and_answers_as_before(monkeypatch, tmp_path):
    monkeypatch.delenv(kept_kernels.VARIABLE, raising=False)
    dropped, out = _answers(), tmp_path / "kept.npy"
    (tmp_path / "save.py").write_text(_SAVE)
    run = scripts.run_process(
        tmp_path / "log",
        str(tmp_path / "save"),
        str(out),
        **{kept_kernels.VARIABLE: "1", "ONEDNN_VERBOSE": "1"},
    )
    said = run.stdout
    assert run.wait() == 0, run.stderr
    np.testing.assert_allclose(np.load(out), dropped, rtol=0, atol=5e-6)
    if not re.search(r"info,cpu,isa:.*AVX(2|-512)", said):
        pytest.skip("oneDNN lays kernels out in blocks with AVX2 and AVX-512.")
    first, second = said.split("turn second\n")
    # Query, key and value together; the layer's other products.
    assert {"768x256", "256x256", "512x256", "256x512"} <= {*_laid_out(first)}
    assert _laid_out(second) == []
