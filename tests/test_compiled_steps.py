"""Tests of tools/accelerators: exported steps, and the costs of programs."""

import dataclasses
import json
import math
import pathlib

from benchmarks import pretraining_step
from bert_tf.training import replica_step
from tests import script_flags
from tools.accelerators import __main__ as command
from tools.accelerators import cases, export, hlo

import numpy as np
import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_CASE = cases.Case(
    layers=1, rows=4, length=16, predictions=4, dtype="float32", vocab_size=99
)


def _batch(step):
    case = step.case
    config = {"vocab_size": 99, "type_vocab_size": step.config.type_vocab_size}
    features = pretraining_step.rows(
        config, case.rows, case.length, case.predictions
    )
    features["row_weights"] = np.ones(case.rows)
    return {
        name: tf.constant(features[name], spec.dtype)
        for name, spec in step.batch.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "is_traced"),
    [
        ({"family": "left_to_right", "remat": True, "accumulate": 2}, True),
        # Tracing two models takes longer than two steps.
        ({"family": "electra"}, False),
        pytest.param({"family": "electra"}, True, marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_an_exported_step_is_a_step_of_training(changes, is_traced, request):
    if not is_traced:
        request.getfixturevalue("untraced")
    step = export.Step(dataclasses.replace(_CASE, **changes))
    batch = _batch(step)
    before = state = [tf.convert_to_tensor(x) for x in step.variables]
    exported = tf.function(step.function, autograph=False)
    numbers = tf.constant([50, 51], tf.int64)
    for number in numbers:
        state, outputs, report = exported(state, number, batch)
    assert all(
        np.array_equal(x, y)
        for x, y in zip(before, step.variables, strict=True)
    )

    trained = tf.function(
        replica_step.ReplicaStep(
            *(step.model, step.optimizer, step.objective),
            *(export.passes("CPU"), 1, step.case.accumulate),
        ),
        autograph=False,
    )
    for number in numbers:
        expected = trained(number, batch)
    tf.nest.map_structure(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6),
        (outputs, report),
        expected,
    )
    changed = 0
    for old, new, variable in zip(before, state, step.variables, strict=True):
        np.testing.assert_allclose(new, variable, rtol=2e-6, atol=1e-9)
        changed += not np.array_equal(old, new)
    assert changed >= 3 * len(step.optimizer.variables) - 3


@pytest.mark.parametrize(
    "name",
    [x for x, case in cases.SMALL.items() if case.head.startswith("run")],
)
def test_the_steps_of_scripts_have_their_batches(name):
    case = dataclasses.replace(cases.SMALL[name], layers=1, rows=2)
    with script_flags.own_flags():
        step = export.Step(dataclasses.replace(case, dtype="float32"))
    assert step.flops > 0
    weights = step.objective.weights(
        {
            name: tf.ones([*spec.shape], spec.dtype)
            for name, spec in step.batch.items()
        }
    )
    assert all(weight > 0 for weight in weights.values())


# ---- Costs -------------------------------------------------------------------

_GPU = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%moves (p: bf16[64,32]) -> bf16[32,64] {
  %p = bf16[64,32]{1,0} parameter(0)
  ROOT %t = bf16[32,64]{1,0} transpose(%p), dimensions={1,0}
}

%body (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %x = f32[8]{0} get-tuple-element(%s), index=1
  %y = f32[8]{0} exponential(%x)
  ROOT %r = (s32[], f32[8]{0}) tuple(%n, %y)
}

ENTRY %main (x: bf16[16,64], w: bf16[64,32]) -> f32[8] {
  %x.1 = bf16[16,64]{1,0} parameter(0)
  %w = bf16[64,32]{1,0} parameter(1)
  %moved = bf16[32,64]{1,0} fusion(%w), kind=kInput, calls=%moves
  %product = (f32[16,32]{1,0}, s8[999]{0}) custom-call(%x.1, %moved), \
custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":\
{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}
  %y.1 = f32[16,32]{1,0} get-tuple-element(%product), index=0
  %total = f32[16]{0} reduce(%y.1), dimensions={1}, to_apply=%add
  %init = (s32[], f32[8]{0}) tuple(%total, %total)
  ROOT %loop = (s32[], f32[8]{0}) while(%init), condition=%c, body=%body, \
backend_config={"known_trip_count":{"n":"3"}}
}
"""


def test_costs_of_a_gpu_program():
    costs = hlo.Program(_GPU).costs(peak_flops=1e6, bandwidth=1e6)
    flops = 2 * 16 * 64 * 32
    moved = 2 * 64 * 32 * 2
    product = 2 * (16 * 64 + 64 * 32) + 4 * 16 * 32
    total = 4 * (16 * 32 + 16)
    loop = 3 * 2 * 4 * 8
    assert dataclasses.asdict(costs) == pytest.approx(
        {
            "kernels": 6,
            "flops": flops,
            "bytes": moved + product + total + loop,
            "moved": moved,
            "seconds": (moved + flops + total + loop) / 1e6,
        }
    )


_TPU = """
%fused (l: bf16[8,16], r: bf16[16,4]) -> bf16[8,4] {
  %l = bf16[8,16]{1,0} parameter(0)
  %r = bf16[16,4]{1,0} parameter(1)
  ROOT %c = bf16[8,4]{1,0} convolution(%l, %r), dim_labels=bf_io->bf
}

%batched (l: bf16[5,8,16], r: bf16[5,16,4]) -> bf16[5,8,4] {
  %l = bf16[5,8,16]{2,1,0} parameter(0)
  %r = bf16[5,16,4]{2,1,0} parameter(1)
  ROOT %c = bf16[5,8,4]{2,1,0} convolution(%l, %r), dim_labels=0bf_0io->0bf
}

ENTRY %main (x: bf16[8,16], w: bf16[16,4]) -> bf16[8,4] {
  %x = bf16[8,16]{1,0:T(8,128)(2,1)} parameter(0)
  %w = bf16[16,4]{1,0:T(8,128)(2,1)} parameter(1)
  %a = bf16[5,8,16]{2,1,0} parameter(2)
  %b = bf16[5,16,4]{2,1,0} parameter(3)
  %start = (bf16[16,4]{1,0:T(8,128)(2,1)S(1)}, bf16[16,4]{1,0}, u32[]{:S(2)}) \
copy-start(%w)
  %here = bf16[16,4]{1,0:T(8,128)(2,1)S(1)} copy-done(%start)
  %y = bf16[8,4]{1,0} fusion(%x, %here), kind=kOutput, calls=%fused
  ROOT %z = bf16[5,8,4]{2,1,0} fusion(%a, %b), kind=kOutput, calls=%batched
}
"""


def test_costs_of_a_tpu_program():
    costs = hlo.Program(_TPU).costs(peak_flops=1e9, bandwidth=1.0)
    one, loaded = 2 * (8 * 16 + 8 * 4), 2 * 16 * 4
    five = 2 * 5 * (8 * 16 + 16 * 4 + 8 * 4)
    assert dataclasses.asdict(costs) == pytest.approx(
        {
            "kernels": 2,
            "flops": 6 * 2 * 8 * 16 * 4,
            "bytes": one + loaded + five,
            "moved": 0,
            "seconds": one + loaded + five,
        }
    )


def test_costs_of_attention_by_a_library():
    shape = "bf16[2,128,12,64]{3,2,1,0}"
    text = (
        f"ENTRY %main (q: {shape}) -> {shape} {{\n"
        f"  %q = {shape} parameter(0)\n  %k = {shape} parameter(1)\n"
        f"  %v = {shape} parameter(2)\n"
        f"  ROOT %y = ({shape}, f32[2,12,128]{{2,1,0}}, s8[0]{{0}}) "
        "custom-call(%q, %k, %v), "
        'custom_call_target="__cudnn$fmhaSoftmaxDropout"\n}\n'
    )
    (kernel,) = hlo.Program(text).kernels()
    assert kernel.flops == 2 * 2 * 2 * 12 * 128 * 128 * 64
    arrays = 4 * 2 * math.prod((2, 128, 12, 64))
    assert kernel.bytes == arrays + 4 * 2 * 12 * 128


def test_operations_that_are_not_expected():
    counts = {
        "add": 9,
        "while": 1,
        "dynamic_slice": 2,
        "custom_call Sharding": 3,
        "custom_call __cudnn$fmhaSoftmaxDropout": 4,
    }
    assert hlo.unexpected(counts, ["while"]) == {
        "dynamic_slice": 2,
        "custom_call Sharding": 3,
    }


# ---- The command -------------------------------------------------------------


def test_a_case_with_other_fields():
    case = cases.find("large/rows=32/family=roberta/remat=True")
    assert case == dataclasses.replace(
        cases.CASES["large"], rows=32, family="roberta", remat=True
    )
    with pytest.raises(KeyError, match="hats"):
        cases.find("large/hats=3")


@pytest.mark.parametrize(("factor", "count"), [(1.02, 0), (1.04, 1)])
def test_numbers_above_the_expected_ones(factor, count, tmp_path):
    expected = json.loads(command.EXPECTED.read_text())
    row = dict(expected["h100"]["base2"])
    row["bytes"] = int(row["bytes"] * factor)
    check = command.Check(tmp_path, tmp_path)
    check.rows = {"h100": {"base2": row}}
    check.compare()
    assert len(check.problems) == count
