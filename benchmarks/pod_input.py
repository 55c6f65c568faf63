"""Simulates the input pipeline of a pod: a run's readers, no accelerators.

    python -m benchmarks.pod_input
    python -m benchmarks.pod_input --dynamic_masking --device=H100

Each host of a run reads all records, shuffles them and parses its own share,
with run_pretraining.py's pipeline. It measures

- one reader, as one of 1, 8 and 64 hosts: its CPU time per sequence of the
  whole run, and the number of the run's sequences that it processes per second;
- --readers in parallel, as all hosts of a run, which wait for each other at
  each step as they would for the gradients: the sequences/s that they feed;
- the same with simulated steps, as long as they are on the number of devices
  that the readers can just feed: the fraction of time spent waiting for input.

Then it prints, for slices of --device, the training speed of BERT-Large in
sequences/s as predicted by `python -m benchmarks.scaling`; this speed as a
fraction of the speed that one of many hosts reads at, and of its --cores; and
the min number of hosts with enough cores.
"""

import dataclasses
import multiprocessing
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import random_records, scaling
from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import dynamic_masks, pipeline, record_types

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
# Steps before a measurement, while buffers fill.
_FIRST = 10
# Fraction of the readers' speed that a slice should need at most.
_EASE = 0.8


@dataclasses.dataclass(frozen=True)
class Reading:
    """The measurements of a reader.

    Attributes:
        seconds: Duration of all steps.
        waited: Seconds of these spent waiting for a batch.
        processor: Seconds of CPU time.
        sequences: Number of sequences of the whole run.
    """

    seconds: float
    waited: float
    processor: float
    sequences: int


class Host:
    """A host of a run, with the interface of a strategy that input needs."""

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
    """Properties shared by all readers of a measurement.

    Attributes:
        file: File of records, with `count` records.
        step: Sequences per step, over all hosts.
        hosts: Number of hosts of the run; each has several devices.
        seconds: Duration of a step's computation; 0 for none.
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
            host,  # has the parts of a strategy that are used
            lambda: pipeline.train([run.file], [run.count], run.step, seed=1),
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
    """Runs readers in parallel, each in a process."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(len(numbers))
        with context.Pool(len(numbers)) as pool:
            return pool.starmap(read, [(run, n, barrier) for n in numbers])


def show_slices(costs: dict[int, float], rate: float) -> None:
    """Prints the requirements of slices.

    Args:
        costs: Number of hosts -> seconds of CPU time per sequence of the run.
        rate: Sequences of the run that one of many hosts reads per second, as
            one thread reads all records.
    """
    # A host's work has a part for all records and a part for its own share.
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
