import dataclasses
import pathlib
import resource

from bert_tf import heads, modeling
from bert_tf.checkpoints import names
from bert_tf.encoders import families
from bert_tf.training import accelerators

import numpy as np
import pytest
import tensorflow as tf

_CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"


def config(name):
    return modeling.BertConfig.from_json_file(str(_CONFIGS / f"{name}.json"))


class TestTable:
    @pytest.mark.parametrize(
        "name, row, memory",
        [
            ("NVIDIA H200", "H200", 141e9),
            ("NVIDIA H100 80GB HBM3", "H100", 80e9),
            ("NVIDIA H100 PCIe", "H100 PCIe", 80e9),
            ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", 40e9),
            ("NVIDIA A100-SXM4-80GB", "A100", 80e9),
            ("NVIDIA A10G", "A10G", 24e9),
            ("Tesla V100-SXM2-32GB", "V100", 32e9),
            ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB", 16e9),
            ("Tesla T4", "T4", 16e9),
            ("NVIDIA L4", "L4", 24e9),
            ("TPU v5p", "TPU v5p", 95e9),
            # Each of two cores of a chip, with half of its memory.
            ("TPU v2", "TPU v2", 8e9),
            ("TPU v3", "TPU v3", 16e9),
        ],
    )
    def test_names_that_tensorflow_gives(self, name, row, memory):
        found = accelerators.find(name)
        assert found is not None
        assert (found.name, found.memory) == (row, memory)

    @pytest.mark.parametrize(
        "name",
        ["Radeon VII", "NVIDIA RTX A1000 Laptop GPU", "NVIDIA L40", "T400"],
    )
    def test_unknown(self, name):
        assert accelerators.find(name) is None

    @pytest.mark.parametrize(("name", "chip"), [("v2", 46e12), ("v3", 123e12)])
    def test_devices_of_old_tpus_are_half_a_chip(self, name, chip):
        found = accelerators.find(f"TPU {name}")
        assert found is not None
        assert 2 * found.flops["bfloat16"] == chip

    def test_numbers_are_of_one_kind(self):
        for device in accelerators.DEVICES:
            assert device.flops["bfloat16"] >= device.flops["float32"] > 1e12
            assert 8e9 <= device.memory < 1e12
            assert 1e11 < device.bandwidth < 1e13
            assert 1e10 < device.link < 1e12
            # Matrix products need many operations per byte.
            assert device.flops["bfloat16"] / device.bandwidth > 50


@pytest.mark.parametrize("name", ["tiny", "mini"])
def test_parameters_are_the_models(name):
    model = heads.BertPretrainer(modeling.Bert(config(name)))
    expected = sum(int(np.prod(v.shape)) for v in model.variables)
    assert accelerators.parameters(config(name)) == expected


def test_parameters_include_a_decoder():
    config = families.FAMILIES["encoder-decoder"].config(11)
    expected = names.parameters(config, "seq2seq")
    assert accelerators.parameters(config) == expected


class TestFlops:
    def test_of_base_by_hand(self):
        # One sequence of 128 tokens with 20 predictions, forward, in GFLOP:
        # 11 layers: 11 * 128 * (24 * 768^2 + 4 * 128 * 768) = 20.4849
        # the last: k, v 0.3020; 21 * (20 * 768^2 + 4 * 128 * 768) = 0.2560
        # heads: 768^2 * 2 + 20 * 2 * (768^2 + 768 * 30522) = 0.9624
        flops = accelerators.training_flops(config("base"), 1, 128, 128**2, 20)
        expected = 3 * (20.4849 + 0.3020 + 0.2560 + 0.9624) * 1e9
        assert flops == pytest.approx(expected, rel=1e-4)

    def test_adds_up(self):
        base = config("base")
        one = accelerators.training_flops(base, 1, 100, 100**2, 15)
        ten = accelerators.training_flops(base, 10, 1000, 10 * 100**2, 150)
        assert ten == pytest.approx(10 * one)

    def test_a_head_that_reads_all(self):
        # One layer of one sequence of 128 tokens, D = 768, forward: q, k, v and
        # the output 8 D^2 per token, the feed-forward's two products 16 D^2,
        # attention 4 S D; and the pooler.
        layer = dataclasses.replace(config("base"), num_hidden_layers=1)
        flops = accelerators.training_flops(
            layer, 1, 128, 128**2, 0, reads_all=True
        )
        D, S = 768, 128
        expected = 3 * (S * (24 * D**2 + 4 * S * D) + 2 * D**2)
        assert flops == pytest.approx(expected)


_BLOCK = {
    "sequences": 20.0,
    "tokens": 2000.0,
    "pairs": 2e5,
    "masked_lm_weight": 300.0,
    "seconds": 4.0,
    "input_seconds": 1.0,
}


class TestMeter:
    def test_shares(self):
        base = config("base")
        meter = accelerators.Meter(base, 2, 1e12, "masked_lm")
        flops = accelerators.training_flops(base, 20, 2000, 2e5, 300)
        found = meter(_BLOCK)
        assert found["flops_utilization"] == pytest.approx(flops / 8e12)
        assert found["input_share"] == 0.25
        assert 1e8 < found["peak_memory"] < 1e12

    def test_nothing_is_said_of_a_wait_that_is_not_known(self):
        meter = accelerators.Meter(config("base"), 1, None)
        block = {k: x for k, x in _BLOCK.items() if k != "input_seconds"}
        assert set(meter(block)) == {"peak_memory"}

    @pytest.mark.parametrize("platform", ["linux", "darwin"])
    def test_units_of_the_memory_of_a_process(self, platform, monkeypatch):
        used = resource.getrusage(resource.RUSAGE_SELF)
        monkeypatch.setattr(resource, "getrusage", lambda _: used)
        monkeypatch.setattr("sys.platform", platform)
        factor = {"linux": 1024, "darwin": 1}[platform]
        assert accelerators.peak_of_process() == used.ru_maxrss * factor

    def test_nothing_is_said_of_an_unknown_peak(self):
        one = tf.distribute.get_strategy()
        meter = accelerators.meter(one, config("base"), "float32")
        assert "flops_utilization" not in meter(_BLOCK)
        given = accelerators.meter(one, config("base"), "float32", 1e12)
        assert given(_BLOCK)["flops_utilization"] > 0
