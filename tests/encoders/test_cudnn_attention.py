"""cuDNN's attention: its calls in a program for GPUs, and how layers use it."""

import json
import pathlib
import re

from benchmarks import pretraining_step
from bert_tf import compiled
from bert_tf.encoders import cudnn_attention, families
from tests import cudnn_formula

import keras
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
)

pytestmark = pytest.mark.slow

_SHAPE = B, S, N, H = 4, 128, 16, 64
_OPTIONS = cudnn_attention.Options(0.125, 0.1, 3)
# What JAX 0.10.2 writes for these (jax._src.cudnn.fused_attention_stablehlo).
_JAX = {
    "operation_queue_id": "0",
    "cudnn_fmha_backend_config": {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": 0.125,
        "intermediate_tensor_shape": {
            "element_type": "BF16",
            "dimensions": ["4", "16", "128", "128"],
            "tuple_shapes": [],
            "layout": {
                "dim_level_types": [],
                "dim_unique": [],
                "dim_ordered": [],
                "minor_to_major": ["3", "2", "1", "0"],
                "tiles": [],
                "element_size_in_bits": "0",
                "memory_space": "0",
                "index_primitive_type": "PRIMITIVE_TYPE_INVALID",
                "pointer_primitive_type": "PRIMITIVE_TYPE_INVALID",
                "dynamic_shape_metadata_prefix_bytes": "0",
            },
            "is_dynamic_dimension": [False, False, False, False],
        },
        "is_flash_attention": True,
        "mask_type": "PADDING",
        "dropout_rate": 0.1,
        "seed": 3,
        "sliding_window_length": 0,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
    },
}


def _dimensions(left, right, left_batch, right_batch):
    return {
        "lhs_contracting_dimensions": [left],
        "rhs_contracting_dimensions": [right],
        "lhs_batch_dimensions": left_batch,
        "rhs_batch_dimensions": right_batch,
    }


_PRODUCTS = {
    "__cudnn$fmhaSoftmaxDropout": {
        "bmm1": _dimensions("3", "3", ["0", "2"], ["0", "2"]),
        "bmm2": _dimensions("3", "1", ["0", "1"], ["0", "2"]),
    },
    "__cudnn$fmhaSoftmaxDropoutBackward": {
        "bmm1_grad_gemm1": _dimensions("2", "1", ["0", "1"], ["0", "2"]),
        "bmm1_grad_gemm2": _dimensions("3", "1", ["0", "1"], ["0", "2"]),
        "bmm2_grad_gemm1": _dimensions("2", "1", ["0", "1"], ["0", "2"]),
        "bmm2_grad_gemm2": _dimensions("3", "3", ["0", "2"], ["0", "2"]),
    },
}


class TestCalls:
    @pytest.fixture(name="calls")
    def _calls(self):
        """Returns target -> (result, operands, config), lowered for GPUs."""

        @tf.function(autograph=False, jit_compile=True)
        def function(q, k, v, lengths, dy):
            with tf.GradientTape() as tape:
                tape.watch([q, k, v])
                y = cudnn_attention.attend(q, k, v, lengths, _OPTIONS)
            return y, tape.gradient(y, [q, k, v], dy)

        x = tf.TensorSpec(_SHAPE, tf.bfloat16)
        lengths = tf.TensorSpec([B], tf.int32)
        make = function.experimental_get_compiler_ir(x, x, x, lengths, x)
        calls = re.findall(
            r"= \((.*?)\) custom-call\((.*)\), "
            r'custom_call_target="(.*?)".*backend_config=(\{.*\})',
            make(stage="hlo", platform_name="GPU"),
        )
        return {
            target: (
                re.sub(r"/\*.*?\*/", "", result),
                re.findall(r"(\w+\[.*?\]\{.*?\})", operands),
                json.loads(config),
            )
            for result, operands, target, config in calls
        }

    # As XLA expects them: heads before positions in the results' shapes, after
    # them in memory.
    rows = f"bf16[{B},{S},{N},{H}]{{3,2,1,0}}"
    result = f"bf16[{B},{N},{S},{H}]{{3,1,2,0}}"
    statistics = f"f32[{B},{N},{S}]{{2,1,0}}"
    lengths = f"s32[{B}]{{0}}"

    def test_forward(self, calls):
        result, operands, _ = calls["__cudnn$fmhaSoftmaxDropout"]
        assert result == f"{self.result}, {self.statistics}, u8[0]{{0}}"
        assert operands == [self.rows] * 3 + [self.lengths] * 2

    def test_backward(self, calls):
        result, operands, _ = calls["__cudnn$fmhaSoftmaxDropoutBackward"]
        assert result == ", ".join([self.result] * 3 + ["u8[0]{0}"])
        assert operands == [
            *([self.rows] * 3),
            self.statistics,
            *([self.rows] * 2),
            *([self.lengths] * 2),
        ]

    @pytest.mark.parametrize("target", _PRODUCTS)
    def test_configs_are_those_of_jax(self, calls, target):
        """Parsed by TensorFlow's own definition, which refuses other fields."""
        expected = json.loads(json.dumps(_JAX))
        expected["cudnn_fmha_backend_config"] |= {
            f"{name}_dot_dimension_numbers": values
            for name, values in _PRODUCTS[target].items()
        }
        config = _gpu_config()
        parsed = json_format.ParseDict(calls[target][2], config())
        assert parsed == json_format.ParseDict(expected, config())


def _gpu_config():
    """Returns the message xla.gpu.GpuBackendConfig of TensorFlow's library."""
    folder = pathlib.Path(tf.sysconfig.get_lib())
    (path,) = folder.glob("libtensorflow_framework.so.?")
    data = path.read_bytes()
    pool = descriptor_pool.DescriptorPool()
    _add(pool, data, "xla/service/gpu/backend_configs.proto")
    name = "xla.gpu.GpuBackendConfig"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _add(pool, data, name):
    """Adds a file of messages, and those that it imports, to the pool."""
    found = descriptor_pb2.FileDescriptorProto()
    start = data.find(bytes([10, len(name)]) + name.encode() + b"\x12")
    if start < 0:  # One of protobuf's own.
        found.MergeFromString(
            descriptor_pool.Default().FindFileByName(name).serialized_pb
        )
    else:
        found.MergeFromString(data[start : _end(data, start)])
    for other in found.dependency:
        _add(pool, data, other)
    pool.Add(found)


def _end(data, i):
    """Returns where the serialized FileDescriptorProto at `i` ends."""

    def number(i):
        value = shift = 0
        while True:
            value |= (data[i] & 127) << shift
            shift, i = shift + 7, i + 1
            if data[i - 1] < 128:
                return value, i

    while True:
        tag, after = number(i)
        size, after = number(after)
        # All its fields are texts or messages.
        if tag & 7 != 2 or not 1 <= tag >> 3 <= 12:
            return i
        i = after + size


_ROWS, _LENGTH = 3, 16
_SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "vocab_size": 99}


class TestLayers:
    @pytest.fixture(name="formula", autouse=True)
    def _formula(self, monkeypatch):
        formula = cudnn_formula.Formula()
        monkeypatch.setattr(cudnn_attention, "_call", formula)
        return formula

    @pytest.mark.parametrize("remat", [False, True])
    @pytest.mark.parametrize("family", ["bert", "left_to_right"])
    def test_outputs_and_gradients_stay(self, family, remat, formula):
        model = _model(family)
        model.encoder.remat = remat
        expected = _gradients(model, [16, 9, 1])
        assert not any(formula.seeds)
        model.fuses_attention = True
        found = _gradients(model, [16, 9, 1])
        assert all(formula.seeds)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

    def test_rows_without_tokens_stay_finite(self):
        model = _model("bert")
        model.fuses_attention = True
        assert all(np.isfinite(x).all() for x in _gradients(model, [16, 9, 0]))

    def test_not_where_rows_hold_several_sequences(self, formula):
        model = _model("bert")
        model.fuses_attention = True
        _gradients(
            model, [16, 9, 1], sequence_ids=tf.ones([_ROWS, _LENGTH], tf.int32)
        )
        assert not any(formula.seeds)

    def test_not_op_by_op(self, formula):
        model = _model("bert")
        model.fuses_attention = True
        model(_inputs([16, 9, 1]))
        assert not any(formula.seeds)

    def test_layers_and_replicas_draw_their_own_bits(self, formula):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            model = _model("bert", num_hidden_layers=2)
        model.fuses_attention = model.encoder.remat = True
        seed = tf.constant([1, 2])

        @tf.function(autograph=False)
        def step():
            return strategy.run(
                lambda: _gradients(model, [16, 9, 1], dropout_seed=seed)
            )

        step.get_concrete_function()
        # Rematerialization calls the forward pass once more.
        numbers = [replica << 16 | i for replica in (0, 1) for i in (0, 1)]
        forward, backward = formula.seeds
        assert sorted(forward) == sorted(2 * numbers)
        assert sorted(backward) == numbers

    def test_encoders_of_a_step_draw_their_own_bits(self, formula):
        values = pretraining_step.config_of("tiny", "electra") | _SIZES
        model, *_ = pretraining_step.model_of(families.from_values(values))
        for bert in (model.bert, model.generator):
            bert.fuses_attention = True
        places = tf.ones([_ROWS, 1], tf.int32)
        predicted = {
            "masked_lm_positions": places,
            "masked_lm_ids": places,
            "masked_lm_weights": tf.ones([_ROWS, 1]),
        }
        inputs = _inputs([16, 9, 4], **predicted)
        seed = tf.constant([1, 2])
        compiled.marked(lambda: model(inputs, dropout_seed=seed))()
        forward = formula.seeds[0]
        # The generator's last layer is read in part.
        assert len(forward) == len(set(forward)) == 3 + 2

    def test_the_layer_that_is_read_in_part_is_not_fused(self, formula):
        model = _model("bert")
        model.fuses_attention = True
        positions = tf.constant([[0, 3]] * _ROWS)
        found = _gradients(model, [16, 9, 4], positions=positions)
        assert len(formula.seeds[0]) == 2
        model.fuses_attention = False
        expected = _gradients(model, [16, 9, 4], positions=positions)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def _model(family, **sizes):
    keras.utils.set_random_seed(1)
    values = pretraining_step.config_of("tiny", family) | _SIZES | sizes
    return families.make(families.from_values(values))


def _inputs(lengths, **others):
    ids = np.random.default_rng(1).integers(1, 99, (_ROWS, _LENGTH))
    mask = np.arange(_LENGTH) < np.array(lengths)[:, np.newaxis]
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.constant(mask, tf.int32),
        **others,
    }


def _gradients(model, lengths, sequence_ids=None, **options):
    """Returns outputs and gradients, as in a compiled step."""
    others = {}
    if sequence_ids is not None:
        others = {"sequence_ids": sequence_ids}
        others["position_ids"] = tf.zeros_like(sequence_ids)
    variables = [x.value for x in model.encoder.trainable_variables]

    def step():
        with tf.GradientTape() as tape:
            y = model(_inputs(lengths, **others), **options).sequence
            loss = tf.reduce_sum(y**2 * tf.range(1.0, 1 + y.shape[-1]))
        return [y, *tape.gradient(loss, variables)]

    return compiled.marked(step)()
