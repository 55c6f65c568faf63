"""Tests of benchmarks/scaling.py and benchmarks/small_tasks.py."""

from benchmarks import scaling, scaling_here, small_tasks

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


SENTENCES = ("a b c d", "e f", "g h i", "j", "k l m", "n o")
PHRASES = ("b c", "a b", "f", "g h", "i", "k", "m", "d", "o n", "b d")


def _examples(texts):
    return [((f"{text} ",), "1") for text in texts]


def test_whole_texts_stand_in_no_other():
    texts = [*PHRASES, *SENTENCES]
    # The words of these two are not adjacent in any sentence.
    assert small_tasks.whole_texts(texts) == ["o n", "b d", *SENTENCES]


def test_parts_of_what_is_held_out_are_not_learned():
    everything = _examples([*SENTENCES, *PHRASES])
    learned, held_out = small_tasks.hold_out(
        small_tasks.TASKS["SST-2"], everything, everything
    )
    # Every fifth sentence, in their order.
    assert held_out == _examples(["a b c d", "n o"])
    kept = ["e f", "g h i", "j", "k l m", "f", "g h", "i", "k", "m"]
    assert learned == _examples([*kept, "o n", "b d"])


def test_of_other_tasks_it_is_every_tenth():
    rows = [((str(i),), "0") for i in range(25)]
    learned, held_out = small_tasks.hold_out(
        small_tasks.TASKS["spam"], rows, []
    )
    assert held_out == [rows[0], rows[10], rows[20]]
    assert len(learned) == 22
    assert not {*learned} & {*held_out}
