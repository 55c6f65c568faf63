"""The kernels of a step on a GPU: nothing large is computed on the host.

TensorFlow registers int32 for most of its GPU operations in host memory, since
shapes are int32.
"""

import functools

from benchmarks import pretraining_step
from bert_tf import modeling, optimization
from bert_tf.encoders import families, ops
from bert_tf.training import replica_step
from tests import pretraining_records

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels


def on_the_host(graph):
    """Returns operations that would copy an int32 [.., .., ..] or larger."""
    return [
        f"{op.type} {op.name}"
        for op in graph.get_operations()
        if op.type not in ("Placeholder", "Const")
        if (names := _large_ints(op)) and names & _host_arguments(op.type)
    ]


def _large_ints(op):
    names = [argument.name for argument in op.op_def.input_arg]
    if len(names) != len(op.inputs):  # a list of tensors
        names = names[:1] * len(op.inputs)
    return {
        name
        for name, x in zip(names, op.inputs, strict=True)
        if x.dtype == tf.int32 and x.shape.rank is not None
        if x.shape.rank >= 3
    }


@functools.cache
def _host_arguments(op_type):
    """Returns arguments of the GPU's int32 kernel that are on the host."""
    found = set()
    for kernel in kernels.get_registered_kernels_for_op(op_type).kernel:
        types = {
            number
            for constraint in kernel.constraint
            if constraint.name == "T"
            for number in constraint.allowed_values.list.type
        }
        if kernel.device_type == "GPU" and tf.int32.as_datatype_enum in types:
            found |= set(kernel.host_memory_arg)
    return found


@pytest.fixture(autouse=True)
def _with_a_gpu(monkeypatch):
    products = kernels.get_registered_kernels_for_op("MatMul").kernel
    if not any(kernel.device_type == "GPU" for kernel in products):
        pytest.skip("tensorflow-cpu, for example, has no GPU kernels to ask")
    monkeypatch.setattr(ops, "_devices", lambda: {"CPU", "GPU"})


def test_comparison_of_int32_is_found():
    @tf.function
    def compare(x):
        return x >= 3

    graph = compare.get_concrete_function(tf.TensorSpec([2, 2, 2], tf.int32))
    assert on_the_host(graph.graph) == ["GreaterEqual GreaterEqual"]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "electra", "left_to_right"])
def test_pretraining_step(family):
    config = pretraining_step.config_of("tiny", family)
    config["num_hidden_layers"] = 1
    made = families.from_values(config)
    model, objective, trained = pretraining_step.model_of(made)
    optimizer = optimization.AdamWeightDecay(lambda step: tf.constant(1e-4))
    optimizer.build(trained)
    rows = pretraining_step.rows(config, 2, 16, 3)
    batch = pretraining_records.tensors(rows) | {"row_weights": tf.ones([2])}

    @tf.function(autograph=False)
    def step(seed):
        return replica_step.gradients_and_sums(
            model, optimizer, objective, batch, objective.weights(batch), seed
        )

    graph = step.get_concrete_function(tf.TensorSpec([2], tf.int32)).graph
    types = [op.type for op in graph.get_operations()]
    assert types.count("StatelessRandomUniformFullIntV2") >= 4, "dropout is on"
    # TensorFlow's kernels for these are far below the memory bandwidth.
    assert not {"ArgMax", "BiasAddGrad"} & set(types)
    assert on_the_host(graph) == []


def test_mask_of_packed_rows():
    mask = tf.function(modeling.block_diagonal_mask, autograph=False)
    graph = mask.get_concrete_function(tf.TensorSpec([2, 8], tf.int32)).graph
    assert on_the_host(graph) == []
