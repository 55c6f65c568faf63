"""Tests of benchmarks/scaling.py."""

from benchmarks import scaling, scaling_here

import pytest


def run(device="H100", count=8, length=128, micro=32, accumulate=4, **more):
    large, kind = scaling.load("large"), scaling.find(device)
    return scaling.Run(large, kind, count, length, micro, accumulate, **more)


def test_published_speeds():
    errors = [found / given - 1 for _, given, found in scaling.compare()]
    # One A100, fitted; eight A100s with 128 and 512 tokens; 256 A100s.
    expected = [0, 0, 0.02, 0.19, -0.18]
    order = [0, 2, 1, 3, 4]
    assert [errors[i] for i in order] == pytest.approx(expected, abs=0.03)


def test_step_is_its_parts():
    parts = run()
    expected = 4 * (parts.product_seconds() + parts.memory_seconds())
    expected += parts.update_seconds() + parts.reduce_seconds()
    assert parts.step_seconds() == pytest.approx(expected)
    assert parts.batch_size == 8 * 32 * 4
    assert parts.speed() == pytest.approx(1024 / parts.step_seconds())
    assert 0.1 < parts.utilization() < scaling.GPU.products


def test_all_reduce():
    assert run(count=1).reduce_seconds() == 0
    # 336 M gradients of 4 bytes, twice 7/8 of them, at 450 GB/s.
    assert run().reduce_seconds() == pytest.approx(0.0052, rel=0.02)
    # Between nodes the network is the limit.
    assert run(count=64).reduce_seconds() > 2 * run().reduce_seconds()


def test_more_and_better_devices_are_faster():
    speeds = [
        run(device, count).speed()
        for device, count in (("A100", 8), ("H100", 8), ("H200", 8))
    ]
    assert speeds == sorted(speeds)
    assert run(count=16).speed() > 1.8 * run(count=8).speed()


def test_unknown_device():
    with pytest.raises(ValueError, match="Received: device='abacus'"):
        scaling.find("abacus")


def test_speeds_of_this_machine_are_found_again():
    works = [
        scaling_here.work(scaling_here.run_of(*x)) for x in scaling_here.FITTED
    ]
    # Computed with 50 GFLOP/s and 8 GB/s.
    seconds = [flops / 50e9 + size / 8e9 for flops, size in works]
    assert 1 / scaling_here.fit(works, seconds) == pytest.approx([50e9, 8e9])
    with pytest.raises(SystemExit, match="contradict the model"):
        scaling_here.fit(works, [1.0, 1e-3])
    # The logits alone, forward and backward; 11 M weights, ten passes.
    flops, size = works[0]
    assert flops > 6 * 32 * 20 * 256 * 30522
    assert size > 40 * 11e6
