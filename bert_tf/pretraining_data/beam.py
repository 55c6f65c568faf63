r"""Data creation as an Apache Beam pipeline, for a cluster.

It calls the functions of `stages` in the same order as `local`, so the output
is byte for byte the same. Beam's shuffle replaces the working folder:

    units -> tokenize -> (chunk, documents), and counts -> plan
    documents -> to the chunk itself, and to the chunks that it is a partner of
    group by chunk -> cut -> (shard, sequences)
    group by shard -> sort, mask, write -> manifest

All workers must have access to the input, the vocabulary and the output, such
as on gs:// or a shared file system. A worker keeps the sequences of a whole
shard in memory, or the documents of a chunk and of its --dupe_factor partners.
Remove the shards of a failed pipeline before you start it again.

Apache Beam requires older versions of protobuf and pyarrow than the newest
TensorFlow, so install it in a separate environment, here and on the workers:

    python -m venv beam && beam/bin/pip install '.[beam,data]'  # in a clone

Dask's cluster is tested: `make beam-check` compares its data with local data.
Its workers run in an environment like this one:

    dask scheduler
    dask worker tcp://HOST:8786 --nworkers=-1 --nthreads=1  # on each machine
    python create_pretraining_data.py --input_file=/nfs/wiki/*.txt \
        --output_dir=/nfs/records --vocab_file=/nfs/vocab.txt \
        --runner=DaskRunner --beam_options="--dask_npartitions=96
        --dask_client_address=tcp://HOST:8786"

The commands below follow the runners' manuals and were NOT tried. IMAGE is a
container image FROM apache/beam_python3.12_sdk:2.77.0, with the same versions
of Python and Beam as on the launching machine, by `COPY . /bert_tf` and
`RUN pip install '/bert_tf[beam]'`.

    # Google Cloud Dataflow; also: pip install "apache-beam[gcp]"
    python create_pretraining_data.py --input_file=gs://b/wiki/*.txt \
        --output_dir=gs://b/records --vocab_file=gs://b/vocab.txt \
        --runner=DataflowRunner --beam_options="--project=my-project
        --region=europe-west4 --temp_location=gs://b/tmp
        --sdk_container_image=IMAGE --machine_type=n1-highmem-4
        --max_num_workers=24"

    # Flink, 1.19 to 2.2. Beam downloads a job server, which needs Java here.
    python create_pretraining_data.py ... --runner=FlinkRunner \
        --beam_options="--flink_master=host:8081 --flink_version=1.20
        --parallelism=96 --environment_type=DOCKER --environment_config=IMAGE"

    # Spark 3, likewise.
    python create_pretraining_data.py ... --runner=SparkRunner \
        --beam_options="--spark_master_url=spark://host:7077
        --environment_type=DOCKER --environment_config=IMAGE"

    # This machine, for a trial. It keeps everything in memory (1.4 GB for 60 MB
    # of text with --dupe_factor=2), unlike --num_workers without a runner.
    python create_pretraining_data.py ... --runner=DirectRunner
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.pretraining_data import (
    corpus,
    creation_job,
    creation_output,
    local_creation,
    pretraining_sequences,
    stages,
)
from bert_tf.records import manifests, tfrecord

import numpy as np
from etils import epath

# Runners that Beam has, but knows only by their whole name.
_NAMES = {"DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner"}

_Counts = dict[str, int]
_Tokenized = tuple[pretraining_sequences.Corpus, _Counts]
# A chunk, a repetition, and sequences with their keys.
_Block = tuple[stages.Chunk, int, np.ndarray, pretraining_sequences.Sequences]


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Everything that depends on all documents together.

    `partners` maps each chunk to the chunks and repetitions that take random
    second segments from it.
    """

    partners: dict[stages.Chunk, list[tuple[stages.Chunk, int]]]
    layout: stages.Layout
    counts: _Counts


def run(
    job: creation_job.Job,
    output: creation_output.Output,
    runner: str,
    options: Sequence[str],
) -> creation_output.Result:
    """Creates all shards and the manifest, with one of options.RUNNERS.

    The job's working folder is not used. `options` look like "--name=value".

    Raises:
        InputError: Apache Beam is not installed, or the output contains
            unfinished work of a run without Beam.
        RuntimeError: The pipeline failed, perhaps because of the text or the
            settings; the local runner raises the InputError itself.
    """
    try:
        import apache_beam as beam
        from apache_beam.options import pipeline_options
    except ImportError as error:
        raise InputError(
            "--runner needs Apache Beam, in an environment of its own: pip "
            f"install '.[beam]' in a clone. Received: runner={runner}"
        ) from error
    if epath.Path(job.folder).exists():
        raise InputError(
            f"{job.folder} holds the unfinished work of a run without a "
            "runner: finish it by the same flags without --runner, or remove "
            f"that folder with its records. Received: runner={runner}"
        )
    for folder in output.folders:
        epath.Path(folder).mkdir(parents=True, exist_ok=True)
    arguments = pipeline_options.PipelineOptions(
        [f"--runner={_NAMES.get(runner, runner)}", *options]
    )
    with beam.Pipeline(options=arguments) as pipeline:
        _build(pipeline, job, output)
    return _result(output)


def _build(
    pipeline: Any, job: creation_job.Job, output: creation_output.Output
) -> None:
    import apache_beam as beam

    # Every step gets a copy, and there are many units.
    task = dataclasses.replace(job, units=())
    tokenized = (
        pipeline
        | "Units" >> beam.Create(job.units)
        | "Spread" >> beam.Reshuffle()
        # (chunk, (documents, counts)): not every runner has side outputs.
        | "Tokenize" >> beam.FlatMap(_tokenize, task)
    )
    plan = beam.pvalue.AsSingleton(
        tokenized
        | "Counts" >> beam.MapTuple(lambda piece, found: (piece, found[1]))
        | "All counts" >> beam.combiners.ToList()
        | "Plan" >> beam.Map(_plan, task, output)
    )
    (
        tokenized
        | "Send to partners" >> beam.FlatMap(_send, plan)
        | "By piece" >> beam.GroupByKey()
        | "Cut" >> beam.FlatMap(_cut, task, plan)
        | "By shard" >> beam.GroupByKey()
        | "Write" >> beam.Map(_write, task, output, plan)
        | "All shards" >> beam.combiners.ToList()
        | "Finish" >> beam.Map(_finish, job, output, plan)
    )


# ---- The steps --------------------------------------------------------------


def _tokenize(
    unit: corpus.Unit, job: creation_job.Job
) -> Iterator[tuple[stages.Chunk, _Tokenized]]:
    """Yields the chunks of a unit with their documents and counts."""
    for piece, documents, counts in local_creation.tokenize_unit(job, unit):
        yield piece, (documents, counts)


def _plan(
    counted: Iterable[tuple[stages.Chunk, _Counts]],
    job: creation_job.Job,
    output: creation_output.Output,
) -> _Plan:
    """Makes the decisions that need all chunks; checks like the local run."""
    counts: collections.Counter[str] = collections.Counter()
    pieces = []
    for piece, part in sorted(counted, key=lambda item: item[0]):
        counts.update(part)
        if part["documents"]:
            pieces.append(piece)
    layout = output.layout(counts, job.settings)
    stages.check(counts, job.settings, layout, job.has_words)
    partners = collections.defaultdict(list)
    for piece in pieces:
        for repetition in range(job.settings.dupe_factor):
            partner = stages.partner(piece, pieces, job.seed, repetition)
            if partner:
                partners[partner].append((piece, repetition))
    return _Plan(dict(partners), layout, dict(counts))


def _send(
    item: tuple[stages.Chunk, _Tokenized], plan: _Plan
) -> Iterator[tuple[stages.Chunk, Any]]:
    """Yields documents by receiving chunk: None marks the chunk's own."""
    piece, (documents, counts) = item
    if not counts["documents"]:
        return
    yield piece, (None, documents)
    for other, repetition in plan.partners.get(piece, ()):
        yield other, (repetition, documents)


def _cut(
    item: tuple[stages.Chunk, Iterable[Any]],
    job: creation_job.Job,
    plan: _Plan,
) -> Iterator[tuple[int, _Block]]:
    """Yields the sequences of a chunk, by shard."""
    piece, sent = item
    documents = dict(sent)
    for repetition in range(job.settings.dupe_factor):
        both = documents[None], documents.get(repetition)
        keys, sequences = stages.sequences_of_piece(
            job, piece, *both, repetition
        )
        borders = plan.layout.borders(keys)[:: plan.layout.slices]
        for shard, (start, end) in enumerate(itertools.pairwise(borders)):
            if start < end:
                block = sequences.take(np.arange(start, end))
                yield shard, (piece, repetition, keys[start:end], block)


def _write(
    item: tuple[int, Iterable[_Block]],
    job: creation_job.Job,
    output: creation_output.Output,
    plan: _Plan,
) -> tuple[int, int, _Counts]:
    """Writes a shard; returns its number, number of records and counts."""
    shard, blocks = item
    file = output.paths(plan.layout.shards)[shard]
    slices = _slices(shard, list(blocks), plan.layout)
    total: collections.Counter[str] = collections.Counter()
    with tfrecord.Writer(file) as writer:
        for serialized, counts in stages.shard_records(job, shard, slices):
            writer.write_all(serialized)
            total.update(counts)
    return shard, writer.records, dict(total)


def _slices(
    shard: int, blocks: list[_Block], layout: stages.Layout
) -> Iterator[tuple[np.ndarray, pretraining_sequences.Sequences]]:
    """Yields keys and sequences of each slice, as the local run reads them."""
    blocks.sort(key=lambda block: block[:2])
    keys = np.concatenate([block[2] for block in blocks])
    sequences = pretraining_sequences.Sequences.concatenate(
        [block[3] for block in blocks]
    )
    order = np.argsort(keys, kind="stable")
    first = shard * layout.slices
    borders = layout.borders(keys[order])[first : first + layout.slices + 1]
    for start, end in itertools.pairwise(borders):
        chosen = order[start:end]
        yield keys[chosen], sequences.take(chosen)


def _finish(
    written: Iterable[tuple[int, int, _Counts]],
    job: creation_job.Job,
    output: creation_output.Output,
    plan: _Plan,
) -> None:
    shards = sorted(written, key=lambda item: item[0])
    files = output.paths(plan.layout.shards)
    if len(shards) < len(files):
        raise InputError(
            "The text gives too few sequences for all files. "
            f"Received: {len(files)} files"
        )
    counts = collections.Counter(plan.counts)
    for _, _, part in shards:
        counts.update(part)
    records = [number for _, number, _ in shards]
    result = creation_output.Result(files, records, dict(counts))
    local_creation.write_manifest(job, output, result)


def _result(output: creation_output.Output) -> creation_output.Result:
    manifest = manifests.Manifest.read(output.manifest)
    counts = dict(manifest.statistics)
    for length, number in counts.pop("lengths").items():
        counts[stages.LENGTH + length] = number
    files = output.paths(len(manifest.shards))
    records = [0] * len(files)
    for path, there in output.manifests(files).items():
        shards = manifests.Manifest.read(path).shards
        for number, shard in zip(there, shards, strict=True):
            records[number] = shard.records
    return creation_output.Result(files, records, counts)
