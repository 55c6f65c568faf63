"""Data creation on one machine: tasks, restart, progress.

A task is a unit, a repetition of a chunk, or a shard. Tasks whose files exist
are not run again. The output does not depend on which process runs a task, or
when.
"""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Sequence

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.pretraining_data import (
    corpus,
    creation_job,
    creation_output,
    pretraining_sequences,
    stages,
    workers,
)
from bert_tf.records import manifests, tfrecord

import numpy as np
from absl import logging
from etils import epath

# ---- Tasks ------------------------------------------------------------------


def tokenize_unit(
    job: creation_job.Job, unit: corpus.Unit
) -> Iterator[
    tuple[stages.Chunk, pretraining_sequences.Corpus, dict[str, int]]
]:
    """Yields the chunks of a unit: their documents and counts."""
    vocabulary, tokenizer, words = job.vocabulary, job.tokenizer, job.words
    documents = corpus.read(unit, job.reader, vocabulary.has_sentences)
    for number, piece in enumerate(corpus.pieces(documents)):
        tokenized = stages.tokenize_documents(
            piece, tokenizer, vocabulary, words
        )
        counts = stages.count_documents(
            piece, tokenized, vocabulary, job.settings, job.seed
        )
        yield (unit.index, number), tokenized, counts


def _tokenize(
    job: creation_job.Job, unit: corpus.Unit
) -> Iterator[workers.Counts]:
    all_counts = []
    for piece, tokenized, counts in tokenize_unit(job, unit):
        job.work.save_documents(piece, tokenized)
        all_counts.append(counts)
        yield counts
    job.work.save_counts(f"tokens-{unit.index}", all_counts)
    yield {"files_bytes": unit.size}


def _cut(
    job: creation_job.Job,
    pieces: Sequence[stages.Chunk],
    layout: stages.Layout,
    piece: stages.Chunk,
    repetition: int,
) -> Iterator[workers.Counts]:
    partner = stages.partner(piece, pieces, job.seed, repetition)
    keys, sequences = stages.sequences_of_piece(
        job,
        piece,
        job.work.load_documents(piece),
        job.work.load_documents(partner) if partner else None,
        repetition,
    )
    borders = layout.borders(keys)
    job.work.save_sequences(piece, repetition, keys, sequences, borders)
    yield {"parts": 1, "sequences": len(keys)}


def _write(
    job: creation_job.Job,
    pieces: Sequence[stages.Chunk],
    layout: stages.Layout,
    shard: int,
    file: str,
) -> Iterator[workers.Counts]:
    first = shard * layout.slices
    slices = (
        _slice(job, pieces, number)
        for number in range(first, first + layout.slices)
    )
    total: collections.Counter[str] = collections.Counter()
    with tfrecord.Writer(file) as writer:
        for serialized, counts in stages.shard_records(job, shard, slices):
            writer.write_all(serialized)
            total.update(counts)
            yield counts
        if not writer.records:
            raise InputError(
                f"The text gives too few sequences: {file} would be empty. "
                f"Give fewer files. Received: {layout.shards} files"
            )
    total["records"] = writer.records
    job.work.save_counts(f"shard-{shard}", total)


def _slice(
    job: creation_job.Job, pieces: Sequence[stages.Chunk], number: int
) -> tuple[np.ndarray, pretraining_sequences.Sequences]:
    keys, sequences = zip(
        *(
            job.work.load_slice(piece, repetition, number)
            for piece in pieces
            for repetition in range(job.settings.dupe_factor)
        ),
        strict=True,
    )
    return (
        np.concatenate(keys),
        pretraining_sequences.Sequences.concatenate(sequences),
    )


# ---- The run ----------------------------------------------------------------


def run(
    job: creation_job.Job, output: creation_output.Output, pool: workers.Workers
) -> creation_output.Result:
    """Creates all shards, or the missing ones.

    Raises:
        InputError: The text or the settings are not suitable, the working
            folder belongs to another run, or another process uses it.
        OSError: A file cannot be read or written. Finished files stay.
    """
    for folder in output.folders:
        epath.Path(folder).mkdir(parents=True, exist_ok=True)
    with job.work.alone():
        job.work.begin(job.fingerprint(output))
        return _run(job, output, pool)


def _run(
    job: creation_job.Job, output: creation_output.Output, pool: workers.Workers
) -> creation_output.Result:
    shards: list[str] = []
    try:
        pieces, counts = _tokenize_all(job, pool)
        job = dataclasses.replace(job, units=())
        layout = output.layout(counts, job.settings)
        try:
            stages.check(counts, job.settings, layout, job.has_words)
        except ValueError:
            # Other flags are needed, and this work can't be used with them.
            job.work.remove()
            raise
        shards = output.paths(layout.shards)
        _cut_all(job, pool, pieces, layout)
        return _write_all(job, pool, pieces, layout, shards, counts)
    except OSError as error:
        if error.errno not in files.FULL:
            raise
        raise OSError(job.work.on_full_disk(shards, error)) from error


def finish(
    job: creation_job.Job,
    output: creation_output.Output,
    result: creation_output.Result,
) -> None:
    """Writes the manifest, then removes the working folder's files."""
    with job.work.alone():
        write_manifest(job, output, result)
        job.work.remove()


def write_manifest(
    job: creation_job.Job,
    output: creation_output.Output,
    result: creation_output.Result,
) -> None:
    """Writes the manifest, or one for each folder."""
    settings = job.settings
    vocabulary = job.vocabulary
    masking = pretraining_sequences.masking_of(settings, vocabulary)
    shards = result.shards()
    manifest = manifests.Manifest(
        record_type=settings.record_type,
        max_seq_length=settings.max_seq_length,
        max_predictions_per_seq=settings.max_predictions_per_seq,
        vocab_sha256=vocabulary.sha256,
        vocab_size=len(vocabulary.pieces),
        do_lower_case=vocabulary.settings.get("do_lower_case"),
        objective=settings.objective,
        masking=dataclasses.asdict(masking),
        dynamic_masking=settings.dynamic_masking,
        sequences_per_row=(
            settings.max_sequences_per_row if settings.pack else 1
        ),
        seed=job.seed,
        shards=shards,
        statistics=result.statistics(),
        made_of=job.fingerprint(output),
    )
    for path, there in output.manifests(result.files).items():
        listed = tuple(shards[number] for number in there)
        dataclasses.replace(manifest, shards=listed).write(path)


def _tokenize_all(
    job: creation_job.Job, pool: workers.Workers
) -> tuple[list[stages.Chunk], collections.Counter[str]]:
    """Runs phase 1; returns the chunks with documents, and all counts."""
    units = job.units
    # Each task has a copy of the job, and there are many units.
    job = dataclasses.replace(job, units=())
    missing = [
        unit
        for unit in units
        if job.work.load_counts(f"tokens-{unit.index}") is None
    ]
    reporter = workers.Reporter(
        "Tokenized {files_bytes:,.1f} of {total:,.1f} MB, {documents:,} "
        "documents, {rate:.1f} MB/s",
        "files_bytes",
        sum(unit.size for unit in missing),
        scale=1e-6,
    )
    try:
        tasks = [functools.partial(_tokenize, job, unit) for unit in missing]
        _run_tasks(pool, tasks, len(units), reporter)
    except ValueError:
        # Usually bad text. Without finished tasks, nothing is lost.
        if job.work.is_empty:
            job.work.remove()
        raise
    pieces, counts = [], collections.Counter[str]()
    for unit in units:
        for number, part in enumerate(
            job.work.load_counts(f"tokens-{unit.index}")
        ):
            counts.update(part)
            if part["documents"]:
                pieces.append((unit.index, number))
    return pieces, counts


def _run_tasks(
    pool: workers.Workers,
    tasks: Sequence[workers.Task],
    number: int,
    reporter: workers.Reporter,
) -> None:
    if len(tasks) < number:
        done = number - len(tasks)
        logging.info("%d of %d tasks of this phase were done.", done, number)
    pool.run(tasks, reporter)
    reporter.finish()


def _cut_all(
    job: creation_job.Job,
    pool: workers.Workers,
    pieces: Sequence[stages.Chunk],
    layout: stages.Layout,
) -> None:
    parts = [
        (piece, repetition)
        for piece in pieces
        for repetition in range(job.settings.dupe_factor)
    ]
    missing = [part for part in parts if not job.work.has_sequences(*part)]
    reporter = workers.Reporter(
        "Cut {parts:,.0f} of {total:,.0f} parts into {sequences:,} sequences, "
        "{rate:.1f} parts/s",
        "parts",
        len(missing),
    )
    tasks = [
        functools.partial(_cut, job, pieces, layout, *part) for part in missing
    ]
    _run_tasks(pool, tasks, len(parts), reporter)


def _write_all(
    job: creation_job.Job,
    pool: workers.Workers,
    pieces: Sequence[stages.Chunk],
    layout: stages.Layout,
    paths: Sequence[str],
    counts: collections.Counter[str],
) -> creation_output.Result:
    missing = [
        (shard, file)
        for shard, file in enumerate(paths)
        if job.work.load_counts(f"shard-{shard}") is None
        or not epath.Path(file).exists()
    ]
    expected = stages.expected_sequences(counts, job.settings)
    reporter = workers.Reporter(
        "Wrote {instances:,.0f} of about {total:,.0f} instances, "
        "{rate:,.0f} instances/s",
        "instances",
        expected * len(missing) / len(paths),
    )
    tasks = [
        functools.partial(_write, job, pieces, layout, *part)
        for part in missing
    ]
    _run_tasks(pool, tasks, len(paths), reporter)
    shards = [
        job.work.load_counts(f"shard-{shard}") for shard in range(len(paths))
    ]
    records = [shard.pop("records") for shard in shards]
    for shard in shards:
        counts.update(shard)
    return creation_output.Result(list(paths), records, dict(counts))
