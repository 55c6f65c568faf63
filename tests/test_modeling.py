"""The encoder's variables and initial weights."""

import dataclasses
import math
import pathlib

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, names, restoring
from bert_tf.encoders import families, layers
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests import reference

import keras
import numpy as np
import pytest
import tensorflow as tf

_MODELS = pathlib.Path(__file__).resolve().parents[1] / "configs" / "models"

_TINY = samples.THREES


class TestInitialWeights:
    def test_truncated_normal(self):
        config = dataclasses.replace(_TINY, initializer_range=0.05)
        values = layers.initializer(config)((1000, 400)).numpy() / 0.05
        assert np.abs(values).max() <= 2
        # The density of the truncated normal: its standard deviation is
        # sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)) = 0.8796.
        assert abs(values.mean()) < 5 * 0.8796 / math.sqrt(values.size)
        assert abs(values.std() - 0.8796) < 0.005
        # A clipped normal would have 2.3% at each limit.
        assert (np.abs(values) > 1.999).mean() < 0.001

    def test_each_variable(self):
        model = modeling.Bert(_TINY)
        kernels = []
        for variable in model.variables:
            value = variable.numpy()
            kind = variable.path.rpartition("/")[2]
            if kind in ("beta", "bias"):
                assert not value.any(), variable.path
            elif kind == "gamma":
                assert (value == 1).all(), variable.path
            else:
                assert 0 < np.abs(value).max() <= 0.04, variable.path
                kernels.append(value.ravel()[:20])
        # 3 tables, 6 kernels a layer, the pooler's: no two are alike.
        assert len(np.unique(kernels, axis=0)) == 3 + 2 * 6 + 1

    @pytest.mark.slow
    def test_is_a_function_of_the_global_seed(self):
        weights = []
        for seed in (1, 1, 2):
            keras.utils.set_random_seed(seed)
            model = modeling.Bert(_TINY)
            values = [v.numpy().ravel() for v in model.variables]
            weights.append(np.concatenate(values))
        np.testing.assert_array_equal(weights[0], weights[1])
        assert (weights[0] != weights[2]).any()


def test_the_originals_checkpoint(shared_data):
    """Its weights by name, in our model and in the formulas."""
    folder = shared_data / "tf1_checkpoint"
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    source = formats.open_checkpoint(str(folder))
    assert source.config is not None
    model = heads.BertPretrainer(modeling.Bert(source.config))
    report = restoring.restore_weights(model.variables, source)
    assert (report.fresh, report.unused) == ((), ())
    assert len(report.restored) == len(model.variables)
    # With their moments and the step.
    stored = reader.get_variable_to_shape_map()
    assert len(stored) == 3 * len(model.variables) + 1
    weights = {v.path: reader.get_tensor(v.path) for v in model.variables}
    reference.assert_same(reference.weights_of(model.variables), weights)
    inputs = reference.batch(source.config)
    expected = reference.pretrain(source.config, weights, inputs)
    for logits, values in zip(model(inputs), expected, strict=True):
        np.testing.assert_allclose(logits, values, atol=1e-5)


def _count(name, head="encoder"):
    config = families.read_config(str(_MODELS / f"{name}.json"))
    return names.parameters(config, head)


@pytest.mark.parametrize("head", ["encoder", "pretraining"])
def test_counts_are_of_the_models(head):
    assert (
        names.parameters(_TINY, head)
        == samples.model(head, _TINY).count_params()
    )


class TestParameterCounts:
    # KerasHub states them for the released weights that it has converted:
    # keras_hub/src/models/bert/bert_presets.py, "params".
    @pytest.mark.parametrize(
        ("name", "count"),
        [
            ("tiny", 4_385_920),
            ("small", 28_763_648),
            ("medium", 41_373_184),
            ("base", 109_482_240),
            # TinyBERT's (Jiao et al., 2019), as its code counts them.
            ("tinybert_4", 14_350_248),
            ("tinybert_6", 66_955_008),
            ("base_cased", 108_310_272),
            ("base_chinese", 102_267_648),
            ("base_multilingual_cased", 177_853_440),
            ("large", 335_141_888),
            ("large_cased", 333_579_264),
            ("roberta_base", 124_645_632),
            ("roberta_large", 355_359_744),
            # With a pooler, which the released model lacks.
            ("distilbert_base", 66_362_880 + 768 * 768 + 768),
            ("albert_base", 11_683_584),
            ("albert_large", 17_683_968),
            ("albert_xlarge", 58_724_864),
            ("albert_xxlarge", 222_595_584),
            # Words, kernels and biases; and the dense layer of the BiLSTM.
            ("textcnn", 30522 * 300 + 12 * 300 * 100 + 300),
            ("bilstm", 30522 * 300 + 2 * (600 * 1200 + 1200) + 600 * 600 + 600),
            # Two BiLSTMs, and two dense layers.
            ("esim", 30522 * 300 + 4 * 601 * 1200 + 2 * 2401 * 300),
        ],
    )
    def test_encoder(self, name, count):
        assert _count(name) == count

    def test_with_heads_exactly(self):
        # The encoder's 109,482,240; a dense layer, a layer norm and V biases
        # for words; 2 vectors and 2 biases for sentences.
        D, V = 768, 30522
        words = D * D + D + 2 * D + V
        assert _count("base", "pretraining") == (
            109_482_240 + words + 2 * D + 2
        )


def test_several_sequences_in_a_row_need_positions():
    rows = {x: np.ones([1, 4], np.int32) for x in ("input_ids", "sequence_ids")}
    bert = modeling.Bert(_TINY)
    with pytest.raises(InputError, match="need `position_ids`"):
        bert(rows)
    bert(rows | {"position_ids": np.array([[0, 1, 0, 1]])})
