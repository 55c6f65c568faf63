"""Rehearses the input of a pod: the readers of a run, without accelerators.

    python -m benchmarks.pod_input
    python -m benchmarks.pod_input --dynamic_masking --device=H100

Each host of a run reads all records, shuffles them and parses its own share, by
run_pretraining.py's pipeline. Three things are measured:

- one reader, as one of 1, 8 and 64 hosts: its processor time for a sequence of
  the whole run, and how many sequences of the run it gets through in a second;
- --readers at once, as all hosts of a run, which wait for each other at each
  step as they would for the gradients: how many sequences a second they feed;
- the same, if a step takes as long as so many devices take for it, that the
  readers can just feed: the share of the time that is spent waiting for input.

Then it prints, for slices of --device, how many sequences of BERT-Large they
train on in a second, as `python -m benchmarks.scaling` predicts it; which share
that is of what one of many hosts reads, and of its --cores; and the fewest
hosts whose cores would do.
"""

import dataclasses
import multiprocessing
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import random_records, scaling
from bert_tf.pretraining_data import sequences as pretraining_sequences
from bert_tf.records import dynamic_masks, pipeline
from bert_tf.records import types as record_types

import tensorflow as tf
from absl import app, flags

_DYNAMIC_MASKING = flags.DEFINE_bool(
    "dynamic_masking", False, "Whether words are masked while reading."
)
_READERS = flags.DEFINE_integer("readers", 2, "Processes at once.", 1)
_STEP = flags.DEFINE_integer("step", 4096, "Sequences of a step.", 1)
_STEPS_READ = flags.DEFINE_integer("steps_read", 60, "In a measurement.", 2)
_DEVICES_OF_A_HOST = flags.DEFINE_integer("devices_of_a_host", 4, "", 1)
_CORES = flags.DEFINE_integer("cores", 96, "Of a host of the pod.", 1)

_HOSTS = (1, 8, 64)
# Steps before a measurement, in which buffers fill.
_FIRST = 10
# A slice that readers keep up with takes their speed times this.
_EASE = 0.8


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a reader took.

    Attributes:
        seconds: Of all steps.
        waited: Seconds of these in which there was no batch yet.
        processor: Seconds of processor time.
        sequences: Of the whole run.
    """

    seconds: float
    waited: float
    processor: float
    sequences: int


class Host:
    """What a pipeline asks a strategy about one host of a run."""

    def __init__(self, number: int, hosts: int, replicas: int):
        self.num_replicas_in_sync = replicas
        self._context = tf.distribute.InputContext(hosts, number, replicas)

    def distribute_datasets_from_function(
        self, make: Callable[[tf.distribute.InputContext], tf.data.Dataset]
    ) -> tf.data.Dataset:
        """Returns the batches of this host's replicas, in turn."""
        return make(self._context)


@dataclasses.dataclass(frozen=True)
class Run:
    """What all readers of a measurement have in common.

    Attributes:
        file: Of records, of which it holds `count`.
        step: Sequences of a step, of all hosts.
        hosts: Of the run, each with so many devices.
        seconds: That a step's computation takes; 0: none.
    """

    file: str
    count: int
    dynamic: bool
    step: int
    hosts: int
    devices_of_a_host: int
    steps: int
    seconds: float = 0


def read(run: Run, number: int, barrier: Any) -> Reading:
    """Reads the steps of one host, in step with the others."""
    settings = pretraining_sequences.Settings(dynamic_masking=run.dynamic)
    masks = None
    if run.dynamic:
        masking = pretraining_sequences.masking_of(
            settings, random_records.VOCABULARY
        )
        masks = dynamic_masks.DynamicMasks(masking, seed=1)
    host = Host(number, run.hosts, run.hosts * run.devices_of_a_host)
    batches = iter(
        pipeline.distribute(
            host,  # as much of a strategy as is asked for
            pipeline.train([run.file], [run.count], run.step, seed=1),
            record_types.PRETRAINING_TYPES[settings.record_type],
            random_records.LENGTHS,
            masks=masks,
        )
    )
    waited = processor = began = 0.0
    for step in range(_FIRST + run.steps):
        if step == _FIRST:
            barrier.wait()
            waited, processor = 0.0, time.process_time()
            began = time.perf_counter()
        start = time.perf_counter()
        for _ in range(run.devices_of_a_host):
            next(batches)
        waited += time.perf_counter() - start
        barrier.wait()
        if step >= _FIRST:
            end = began + (step - _FIRST + 1) * run.seconds
            time.sleep(max(0.0, end - time.perf_counter()))
    return Reading(
        time.perf_counter() - began,
        waited,
        time.process_time() - processor,
        run.steps * run.step,
    )


def read_all(run: Run, numbers: Sequence[int]) -> list[Reading]:
    """Lets readers of these numbers read at once, each in a process."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(len(numbers))
        with context.Pool(len(numbers)) as pool:
            return pool.starmap(read, [(run, n, barrier) for n in numbers])


def show_slices(costs: dict[int, float], rate: float) -> None:
    """Prints what slices need.

    Args:
        costs: Seconds of processor time a sequence of the run, by hosts.
        rate: Sequences of the run that one of many hosts reads in a second, as
            one thread reads all records.
    """
    # A host's work is that for all records and that for its own.
    few, many = min(costs), max(costs)
    own = (costs[few] - costs[many]) / (1 / few - 1 / many)
    all_records = max(0.0, costs[many] - own / many)
    device = scaling.find(flags.FLAGS.device or "TPU v4")
    config = scaling.load("large")
    print(
        f"A host's processor time, us: {1e6 * all_records:.2f} for each "
        f"sequence of the run, and {1e6 * own:.2f} for each of its own"
    )
    for count in (8, 32, 128, 512):
        size = scaling.largest(config, device, 128, 65536 // count)
        accumulate = 65536 // count // size
        speed = scaling.Run(
            config, device, count, 128, size, accumulate
        ).speed()
        hosts = count // _DEVICES_OF_A_HOST.value
        share = speed * (all_records + own / hosts) / _CORES.value
        left = _CORES.value / speed - all_records
        fewest = f"{max(1, -(-own // left)):.0f}" if left > 0 else "none"
        print(
            f"{count:4} x {device.name}, {hosts:3} hosts: {speed:8.0f} "
            f"sequences/s, {speed / rate:.0%} of what one reads, "
            f"{share:.2%} of {_CORES.value} cores each; fewest hosts: {fewest}"
        )


def main(_: list[str]) -> None:
    """Measures and prints."""
    settings = pretraining_sequences.Settings(
        dynamic_masking=_DYNAMIC_MASKING.value
    )
    with tempfile.TemporaryDirectory() as folder:
        file, count = random_records.write(pathlib.Path(folder), settings)
        run = Run(
            file,
            count,
            _DYNAMIC_MASKING.value,
            _STEP.value,
            1,
            _DEVICES_OF_A_HOST.value,
            _STEPS_READ.value,
        )
        costs, rate = {}, 0.0
        for hosts in _HOSTS:
            of_hosts = dataclasses.replace(run, hosts=hosts)
            (found,) = read_all(of_hosts, [0])
            costs[hosts] = found.processor / found.sequences
            rate = found.sequences / found.seconds
            print(
                f"one of {hosts} hosts: {1e6 * costs[hosts]:.2f} us of "
                "processor time for a sequence of the run, "
                f"{rate:,.0f} of them a second",
                flush=True,
            )
        readers = _READERS.value
        run = dataclasses.replace(run, hosts=readers)
        together = read_all(run, range(readers))
        fed = min(x.sequences / x.seconds for x in together)
        print(f"{readers} readers at once feed {fed:,.0f} sequences/s")
        paced = dataclasses.replace(run, seconds=run.step / (_EASE * fed))
        together = read_all(paced, range(readers))
        waited = max(x.waited / x.seconds for x in together)
        print(
            f"a slice that takes {_EASE * fed:,.0f} sequences/s of them waits "
            f"{waited:.1%} of the time for input",
            flush=True,
        )
    show_slices(costs, rate)


if __name__ == "__main__":
    app.run(main)
