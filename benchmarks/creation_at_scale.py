r"""Estimates the cost of pre-training data of Wikipedia and books on 96 cores.

    python -m benchmarks.creation_at_scale

This is a calculation; the run has not been made. It uses the cost of a megabyte
on one core, which is in the defaults of these flags, and the plan of a large
run: units, shards, reads. The defaults were measured on the first 6 MB of a
WikiExtractor file, on one of two cores that were also busy with other work, by

    python -m benchmarks.creation_at_scale --text=enwiki_AA.txt \
        --vocab_file=vocab.txt

which prints these flags with the values of your machine, except --worker_mb: 6
MB do not fill a worker. The figures also hold for ten times the text: 60 MB
with dupe_factor 3 took 14.4 CPU-seconds, and they predict 15.3.
"""

import math
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence

from bert_tf.pretraining_data import (
    corpus,
    creation_job,
    creation_output,
    local_creation,
    pretraining_sequences,
    stages,
    work_folder,
    workers,
)

import numpy as np
from absl import app, flags

# ---- Flags: the run ---------------------------------------------------------

_GIGABYTES = flags.DEFINE_float("gigabytes", 16, "Of text.")
_CORES = flags.DEFINE_integer("cores", 96, "Each has a worker.")
_DUPE_FACTOR = flags.DEFINE_integer("dupe_factor", 10, "As of the script.")
_SHARD_SIZE_MB = flags.DEFINE_integer("shard_size_mb", 100, "As of the script.")
_DISK_GB_S = flags.DEFINE_float(
    "disk_gb_s", 1.0, "What the disk writes by the second."
)
_OPEN_MS = flags.DEFINE_float(
    "open_ms",
    0.0,
    "What opening a working file takes more than here: tens on gs://.",
)

# ---- Flags: measured cost per megabyte of text ------------------------------

_FIGURES = {
    name: flags.DEFINE_float(name, default, help)
    for name, default, help in (
        ("tokenize_s", 0.134, "CPU-seconds of phase 1."),
        ("cut_s", 0.0073, "CPU-seconds of phase 2, one repetition."),
        ("write_s", 0.0327, "CPU-seconds of phase 3, one repetition."),
        ("read_s", 46e-6, "CPU-seconds of reading a slice of a file."),
        ("tokens_mb", 0.489, "Of working files after phase 1."),
        ("sequences_mb", 0.544, "Of working files by repetition."),
        ("records_mb", 1.865, "Of records, by repetition."),
        ("sequences", 2265, "Of a repetition."),
        ("sequence_tokens", 260_600, "Of a repetition."),
        # With --num_shards=1 --dupe_factor=3, on 60 MB: full units and slices.
        ("worker_mb", 322, "Peak memory of a worker, whatever the text."),
    )
}
_TEXT = flags.DEFINE_string("text", "", "WikiExtractor's, to measure with.")
_VOCAB_FILE = flags.DEFINE_string("vocab_file", "", "To measure with.")


# ---- Measures ---------------------------------------------------------------


class _Clock(workers.Workers):
    """Runs tasks in this process and records the CPU-seconds of each phase."""

    def __init__(self, folder: str):
        super().__init__(1, [])
        self._folder = pathlib.Path(folder)
        self.seconds: list[float] = []
        self.sizes: list[float] = []

    def run(
        self,
        tasks: Sequence[workers.Task],
        report: Callable[[workers.Counts], None],
    ) -> None:
        start = time.process_time()
        super().run(tasks, report)
        self.seconds.append(time.process_time() - start)
        self.sizes.append(_megabytes(self._folder))


def measure(text: str, vocab_file: str, folder: str) -> dict[str, float]:
    """Creates records of the first 6 MB; returns the figures by their flags."""
    data = pathlib.Path(text).read_bytes()[: 6 * 10**6]
    end = data.rindex(b"</doc>") + len(b"</doc>\n")
    path = pathlib.Path(folder, "text")
    path.write_bytes(data[:end])
    output = creation_output.Output(
        folder=os.path.join(folder, "records"), num_shards=1
    )
    repetitions = 5
    job = creation_job.Job(
        units=tuple(corpus.plan([str(path)], "wikiextractor", 2**20)),
        reader=corpus.Reader("wikiextractor"),
        vocab_file=vocab_file,
        do_lower_case=True,
        settings=pretraining_sequences.Settings(dupe_factor=repetitions),
        seed=12345,
        folder=output.work_folder,
    )
    with _Clock(job.folder) as clock:
        result = local_creation.run(job, output, clock)
    local_creation.finish(job, output, result)
    text_mb = end / 1e6
    repeated = text_mb * repetitions
    return {
        "tokenize_s": clock.seconds[0] / text_mb,
        "cut_s": clock.seconds[1] / repeated,
        "write_s": clock.seconds[2] / repeated,
        "read_s": _seconds_of_a_read(folder),
        "tokens_mb": clock.sizes[0] / text_mb,
        "sequences_mb": (clock.sizes[1] - clock.sizes[0]) / repeated,
        "records_mb": _megabytes(pathlib.Path(output.folder)) / repeated,
        "sequences": result.counts["sequences_once"] / text_mb,
        "sequence_tokens": result.counts["sequence_tokens_once"] / text_mb,
    }


def _seconds_of_a_read(folder: str) -> float:
    """Returns the CPU-seconds of reading one of 6,000 slices of a file."""
    number, length = 60_000, 113
    starts = np.arange(number + 1) * length
    sequences = pretraining_sequences.Sequences(
        tokens=np.zeros(starts[-1], np.int32),
        word_starts=np.zeros(starts[-1], bool),
        starts=starts,
        middles=np.ones(number, np.int32),
        labels=np.zeros(number, np.int8),
    )
    keys = np.linspace(0, 2**63, number).astype(np.uint64) * np.uint64(2)
    borders = stages.Layout(3000, 2).borders(keys)
    work = work_folder.WorkFolder(os.path.join(folder, "reads"), 30_522)
    work.begin({})
    work.save_sequences((0, 0), 0, keys, sequences, borders)
    start = time.process_time()
    _keys, slices = zip(
        *(work.load_slice((0, 0), 0, i) for i in range(6000)), strict=True
    )
    pretraining_sequences.Sequences.concatenate(slices)
    return (time.process_time() - start) / 6000


def _megabytes(folder: pathlib.Path) -> float:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files) / 1e6


# ---- Extrapolates -----------------------------------------------------------


class Run:
    """The run described by the flags: its tasks, and its sizes in GB."""

    def __init__(self):
        self.figures = {name: flag.value for name, flag in _FIGURES.items()}
        text_mb = _GIGABYTES.value * 1e3
        # Sizes for the text once, and for all repetitions.
        self.once = {k: v * text_mb for k, v in self.figures.items()}
        self.repeated = {
            k: v * _DUPE_FACTOR.value for k, v in self.once.items()
        }
        self.units = math.ceil(text_mb * 1e6 / corpus.UNIT_BYTES)
        self.parts = self.units * _DUPE_FACTOR.value
        layout = stages.layout(
            {
                "sequences_once": round(self.once["sequences"]),
                "sequence_tokens_once": round(self.once["sequence_tokens"]),
            },
            pretraining_sequences.Settings(dupe_factor=_DUPE_FACTOR.value),
            None,
            _SHARD_SIZE_MB.value * 10**6,
        )
        self.shards, self.slices = layout.shards, layout.slices
        self.reads = self.parts * self.slices  # per shard
        self.tokens = self.once["tokens_mb"] / 1e3
        self.sequences = self.repeated["sequences_mb"] / 1e3
        # Two 8-byte numbers per slice.
        self.tables = self.reads * self.shards * 16 / 1e9
        self.records = self.repeated["records_mb"] / 1e3
        self.working = self.tokens + self.sequences + self.tables
        self.memory = self.figures["worker_mb"] * _CORES.value / 1e3


def print_plan(run: Run) -> None:
    """Prints the tasks of the run, and the sizes that must fit."""
    all_reads = run.reads * run.shards
    print(
        f"{_GIGABYTES.value:g} GB of text, dupe_factor {_DUPE_FACTOR.value}\n"
        f"units: {run.units:,}; with their repetitions {run.parts:,} files\n"
        f"shards: {run.shards:,} of {_SHARD_SIZE_MB.value} MB, in "
        f"{run.slices} slices; units x shards: {run.units * run.shards:,}\n"
        f"reads: {run.reads:,} by shard, {all_reads:,} in all, of "
        f"{run.sequences * 1e9 / all_reads:,.0f} bytes each\n"
        f"disk: {run.working + run.records:,.0f} GB: records "
        f"{run.records:,.0f}, tokens {run.tokens:,.1f}, sequences "
        f"{run.sequences:,.0f}, their tables {run.tables:,.1f}\n"
        f"memory: {run.memory:,.0f} GB, whatever the text; with less than "
        f"{run.memory + run.working:,.0f} GB the reads are the disk's"
    )


def times(run: Run) -> dict[str, dict[str, float]]:
    """Returns each phase's seconds, as limited by each resource alone."""
    disk, cores = _DISK_GB_S.value, _CORES.value

    def on_cores(tasks: int, seconds: float) -> float:
        # In the last round, some cores are idle.
        return math.ceil(tasks / cores) * seconds / tasks

    read = run.reads * run.shards
    opening = (run.figures["read_s"] + _OPEN_MS.value / 1e3) * read
    return {
        "tokenize": {
            "cores": on_cores(run.units, run.once["tokenize_s"]),
            "disk": (_GIGABYTES.value + run.tokens) / disk,
        },
        "cut": {
            "cores": on_cores(run.parts, run.repeated["cut_s"]),
            "disk": (run.sequences + run.tables) / disk,
        },
        "write": {
            "cores": on_cores(run.shards, run.repeated["write_s"]),
            "small reads": on_cores(run.shards, opening),
            "disk": run.records / disk,
        },
    }


def print_times(run: Run) -> None:
    """Prints the seconds of each phase, and its bottleneck."""
    print(f"on {_CORES.value} cores, {_DISK_GB_S.value:g} GB/s of the disk:")
    total, worst = 0.0, (0.0, "")
    for phase, needs in times(run).items():
        # Cores do both; the disk works in parallel.
        computing = needs["cores"] + needs.get("small reads", 0)
        seconds = max(computing, needs["disk"])
        total += seconds
        worst = max(worst, *((v, f"{k} ({phase})") for k, v in needs.items()))
        told = ", ".join(f"{name} {need:,.0f}" for name, need in needs.items())
        print(f"  {phase:8} {seconds:7,.0f} s; seconds if alone: {told}")
    print(f"  in all   {total:7,.0f} s\nbreaks first: {worst[1]}")


def main(_: Sequence[str]) -> None:
    """Measures if there is a text, otherwise extrapolates."""
    if not _TEXT.value:
        run = Run()
        print_plan(run)
        print_times(run)
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(_TEXT.value, _VOCAB_FILE.value, folder)
    for name, value in figures.items():
        print(f"--{name}={value:.4g}")


if __name__ == "__main__":
    app.run(main)
