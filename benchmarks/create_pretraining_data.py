"""Measures the creation of pre-training data.

    python -m benchmarks.create_pretraining_data \
        --text=enwiki_AA.txt --vocab_file=vocab.txt

--text is the output of WikiExtractor, 103 MB for the figures in RESULTS.md. The
sections, selected by --sections:

- speed: instances per CPU-second, with a cold and with a warm word cache. For
  WordPiece vocabularies also those of the original's algorithm in plain Python,
  on the same text and settings (dupe_factor 5, 128 tokens, 20 predictions).
- tokenization: MB/s, with a cold and with a warm word cache, and the number of
  sentences whose ids differ from the Python tokenizer's, which must be 0.
- memory: peak memory and time on 6, 60 and 103 MB, the exponent of the time,
  and an extrapolation to 16 GB on 96 cores.
- workers: the SHA-256 of all shards with 1, 2 and 4 workers, which must be
  equal, and the peak memory of a worker.
- kills: the SHA-256 is the same after ten kills at random times.

--vocab_file may be of any kind. Learn byte-pair and SentencePiece vocabularies
from a part of the text that the sections do not read, such as its end:

    LC_ALL=C awk '/^<doc / {take = n > 80e6} {n += length + 1} take' \
        enwiki_AA.txt > end.txt
    python learn_vocabulary.py --kind=byte_pairs --vocab_size=50000 \
        --input_file=end.txt --input_format=wikiextractor \
        --vocab_file=pairs/vocab.json
    python learn_vocabulary.py --kind=sentence_pieces --vocab_size=30000 \
        --input_file=end.txt --input_format=wikiextractor \
        --vocab_file=spiece.model

Takes about ten minutes on two cores; prints the number of cores. CPU-seconds
exclude the imports of the programs (0.3 s for ours, 4 s for TensorFlow in the
other).
"""

import functools
import hashlib
import math
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import commands
from bert_tf import tokenization, vocabularies
from bert_tf.pretraining_data import (
    corpus,
    creation_job,
    creation_output,
    local_creation,
    pretraining_sequences,
    workers,
)
from bert_tf.vocabularies import word_pieces

from absl import app, flags

_TEXT = flags.DEFINE_string(
    "text", None, "WikiExtractor output.", required=True
)
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file", None, "An uncased English vocabulary.", required=True
)
_SECTIONS = flags.DEFINE_multi_enum(
    "sections",
    ["speed", "tokenization", "memory", "workers", "kills"],
    ["speed", "tokenization", "memory", "workers", "kills"],
    "What to measure.",
)
_MEGABYTES = flags.DEFINE_integer(
    "megabytes",
    6,
    "Of text; five times as much to tokenize and for workers. Not for memory.",
)

_DUPE_FACTOR = 5
_DOCUMENTED = 1070  # instances per second, measured with the original
_KILLS = 10


def cut(text: str, megabytes: float, folder: str) -> str:
    """Writes the first megabytes of a text, up to the end of a document."""
    path = os.path.join(folder, f"wiki_{megabytes}.txt")
    with open(text, "rb") as source:
        data = source.read(int(megabytes * 1e6))
    end = data.rindex(b"</doc>") + len(b"</doc>\n")
    pathlib.Path(path).write_bytes(data[:end])
    return path


@functools.cache
def sentences(path: str) -> list[str]:
    """Returns the sentences, with "" after each document."""
    reader = corpus.Reader("wikiextractor")
    return [
        sentence
        for unit in corpus.plan([path], "wikiextractor")
        for document in corpus.read(unit, reader)
        for sentence in (*document.sentences, "")
    ]


def command(path: str, output: str, *more: str) -> list[str]:
    """Returns the command that creates data from a text."""
    return [
        sys.executable,
        str(commands.ROOT / "create_pretraining_data.py"),
        f"--input_file={path}",
        "--input_format=wikiextractor",
        f"--vocab_file={_VOCAB_FILE.value}",
        f"--output_dir={output}",
        f"--dupe_factor={_DUPE_FACTOR}",
        "--shard_size_mb=20",
        *more,
    ]


def sha256(folder: str) -> str:
    """Returns a single hash of all shards."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).glob("*.tfrecord")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# ---- Sections ---------------------------------------------------------------


def speed(text: str, folder: str) -> None:
    """Measures instances per CPU-second, also for the published algorithm."""
    lines = sentences(cut(text, _MEGABYTES.value, folder))
    ours: list[float] = []
    path = os.path.join(folder, "lines.txt")
    pathlib.Path(path).write_text("\n".join(lines))
    size = os.path.getsize(path) / 1e6
    print(f"text: {size:.2f} MB, one sentence per line")
    for start in ("from a new start", "with every word known"):
        seconds, instances = min(
            seconds_of_ours(
                path, os.path.join(folder, f"{start}_{i}"), "new" in start
            )
            for i in range(3)
        )
        print(
            f"ours, {start}: {instances:,} instances, {seconds:.2f} "
            f"CPU-seconds, {instances / seconds:,.0f} by CPU-second, "
            f"{size / seconds:.2f} MB of text"
        )
        ours.append(instances / seconds)
    kind = vocabularies.open(_VOCAB_FILE.value, True, say=False).kind
    if kind == word_pieces.WordPiece.kind:
        beside_the_published(lines, ours[0], folder)


def beside_the_published(
    lines: Sequence[str], ours: float, folder: str
) -> None:
    """Compares instances per CPU-second with the published algorithm."""
    # Imports TensorFlow, which the other sections do not need.
    from benchmarks import published_creation
    from tests import tokenizer_rules

    vocab = tokenization.load_vocab(_VOCAB_FILE.value)
    tokenizer = tokenizer_rules.Tokenizer(vocab, do_lower_case=True)
    settings = pretraining_sequences.Settings(dupe_factor=_DUPE_FACTOR)
    start = time.process_time()
    theirs = published_creation.create(
        lines, tokenizer, settings, os.path.join(folder, "published")
    )
    seconds_theirs = time.process_time() - start
    rate = theirs / seconds_theirs
    print(
        f"published algorithm: {theirs:,} instances, {seconds_theirs:.2f} "
        f"CPU-seconds, {rate:,.0f} by CPU-second "
        f"(the original itself was measured at {_DOCUMENTED:,})"
    )
    print(
        f"ratio: {ours / rate:.1f}; to the documented "
        f"{_DOCUMENTED:,}: {ours / _DOCUMENTED:.1f}"
    )


def seconds_of_ours(path: str, output: str, is_new: bool) -> tuple[float, int]:
    """Returns CPU-seconds and instances of all three phases, in this process.

    If `is_new`, the word cache of earlier runs is cleared.
    """
    where = creation_output.Output(folder=output, shard_bytes=20 * 10**6)
    if is_new:
        creation_job._tokenizer.cache_clear()
    job = creation_job.Job(
        units=tuple(corpus.plan([path], "lines")),
        reader=corpus.Reader("lines"),
        vocab_file=_VOCAB_FILE.value,
        do_lower_case=True,
        settings=pretraining_sequences.Settings(dupe_factor=_DUPE_FACTOR),
        seed=12345,
        folder=where.work_folder,
    )
    start = time.process_time()
    with workers.Workers(1, []) as pool:
        result = local_creation.run(job, where, pool)
    local_creation.finish(job, where, result)
    return time.process_time() - start, result.counts["instances"]


def tokenize(text: str, folder: str) -> None:
    """Measures the speed of tokenization, and differences to the reference."""
    lines = sentences(cut(text, 5 * _MEGABYTES.value, folder))
    size = sum(len(line.encode()) for line in lines) / 1e6
    vocabulary = vocabularies.open(_VOCAB_FILE.value, do_lower_case=True)
    bulk = vocabulary.bulk_tokenizer()
    seconds = []
    for _ in range(2):
        start = time.process_time()
        ids, lengths = bulk.tokenize(lines)
        seconds.append(time.process_time() - start)
    reference = vocabulary.tokenizer()
    start = time.process_time()
    theirs = [
        reference.convert_tokens_to_ids(reference.tokenize(line))
        for line in lines
    ]
    slow = time.process_time() - start
    flat, place, different = ids.tolist(), 0, 0
    for expected, length in zip(theirs, lengths.tolist(), strict=True):
        different += flat[place : place + length] != expected
        place += length
    print(
        f"{size:.2f} MB in {len(lines):,} sentences: "
        f"{size / seconds[0]:.1f} MB/s from a new start, "
        f"{size / seconds[1]:.1f} MB/s with every word known; "
        f"Python reference {size / slow:.1f} MB/s"
    )
    print(f"different sentences: {different}")


def memory(text: str, folder: str) -> None:
    """Measures peak memory and time by size of the text."""
    whole = os.path.getsize(text) / 1e6
    sizes, seconds = [], []
    for megabytes in (6, 60, whole):
        path = text if megabytes == whole else cut(text, megabytes, folder)
        output = os.path.join(folder, f"memory_{megabytes:.0f}")
        size = os.path.getsize(path) / 1e6
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            command(path, output, "--num_workers=1"),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        peak = watch(process)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime
        cpu -= before.ru_utime + before.ru_stime
        written = sum(
            file.stat().st_size for file in pathlib.Path(output).iterdir()
        )
        print(
            f"{size:6.1f} MB: {cpu:6.1f} CPU-seconds, peak {peak:.0f} MB of "
            f"memory, {written / 1e6:.0f} MB of records"
        )
        sizes.append(size)
        seconds.append(cpu)
    print(f"exponent of the time: {exponent(sizes, seconds):.2f}")
    extrapolate(seconds[-1] / sizes[-1], written / 1e6 / sizes[-1])


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Returns the least-squares slope of log(seconds) over log(size)."""
    x = [math.log(size) for size in sizes]
    y = [math.log(value) for value in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def extrapolate(seconds_by_mb: float, written_by_mb: float) -> None:
    """Prints an estimate for 16 GB on 96 cores."""
    megabytes, cores = 16_000, 96
    hours = seconds_by_mb * megabytes / cores / 3600
    records = written_by_mb * megabytes / 1e3
    print(
        f"16 GB on {cores} cores would take {hours * 60:.1f} minutes and "
        f"write {records:.0f} GB of records, {records / hours / 3600:.2f} "
        "GB/s: the disk breaks first"
    )


def worker_counts(text: str, folder: str) -> None:
    """Checks equal output for any number of workers; measures peak memory."""
    path = cut(text, 5 * _MEGABYTES.value, folder)
    hashes = set()
    for number in (1, 2, 4):
        output = os.path.join(folder, f"workers_{number}")
        start = time.monotonic()
        process = subprocess.Popen(
            command(path, output, f"--num_workers={number}"),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        peak = watch(process)
        seconds = time.monotonic() - start
        hashes.add(sha256(output))
        print(
            f"{number} workers: {seconds:.1f} s, peak {peak:.0f} MB in one "
            f"process, SHA-256 {sha256(output)[:16]}"
        )
    print(f"different outputs: {len(hashes) - 1}")


def watch(process: subprocess.Popen[bytes]) -> float:
    """Waits for a session of processes; returns the largest peak memory."""
    peak = 0.0
    while process.poll() is None:
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                if os.getsid(int(status.parent.name)) != process.pid:
                    continue
                for line in status.read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        peak = max(peak, int(line.split()[1]) * 1024 / 1e6)
            except (OSError, ValueError):
                continue  # The process has ended.
        time.sleep(0.1)
    if process.returncode:
        raise RuntimeError("The command failed")
    return peak


def kills(text: str, folder: str) -> None:
    """Checks that the output is the same after ten kills."""
    path = cut(text, _MEGABYTES.value, folder)
    whole = os.path.join(folder, "whole")
    start = time.monotonic()
    subprocess.run(
        command(path, whole, "--num_workers=2"),
        check=True,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.monotonic() - start
    rng = random.Random(0)
    output = os.path.join(folder, "killed")
    killed = finished = 0
    while killed < _KILLS:
        process = subprocess.Popen(
            command(path, output, "--num_workers=2"),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(rng.uniform(0.3, 0.8) * seconds)
            # It had completed: start over.
            finished += sha256(output) == sha256(whole)
            output += "_again"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
    subprocess.run(
        command(path, output, "--num_workers=2"),
        check=True,
        stderr=subprocess.DEVNULL,
    )
    print(
        f"killed {killed} times in runs of {seconds:.1f} s, finished "
        f"{finished} times on the way; different outputs: "
        f"{int(sha256(output) != sha256(whole))}"
    )


_FUNCTIONS = {
    "speed": speed,
    "tokenization": tokenize,
    "memory": memory,
    "workers": worker_counts,
    "kills": kills,
}


def main(_: Sequence[str]) -> None:
    """Runs the sections."""
    print(f"cores: {workers.cores()}")
    for section in _SECTIONS.value:
        print(f"== {section}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            _FUNCTIONS[section](_TEXT.value, folder)


if __name__ == "__main__":
    app.run(main)
