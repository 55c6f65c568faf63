r"""Creates pre-training records from text: masked words and next sentences.

    python create_pretraining_data.py \
        --input_file=/data/wiki/*.txt \
        --output_dir=/data/wiki_records \
        --vocab_file=vocab.txt --do_lower_case=true \
        --max_seq_length=128 --max_predictions_per_seq=20 \
        --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=5

To print records (two sequences of the first file):

    python create_pretraining_data.py --show=2 --vocab_file=vocab.txt \
        --input_file=/data/wiki_records/part-00000*

The same text, flags and seed give the same bytes with any --num_workers. To
resume a run that was stopped, run the same command again. The script writes a
manifest next to the records, with the lengths and counts that
run_pretraining.py reads.

On a cluster, an Apache Beam pipeline writes the same bytes
(bert_tf/pretraining_data/beam.py has the commands and packages for Dataflow,
Flink and Spark):

    python create_pretraining_data.py --input_file=gs://b/wiki/*.txt \
        --output_dir=gs://b/records --vocab_file=gs://b/vocab.txt \
        --runner=DataflowRunner --beam_options="--project=my-project
        --region=europe-west4 --temp_location=gs://b/tmp"
"""

import importlib
import os
import shlex

from bert_tf import extras, options, phases, quiet, terminals, vocabularies
from bert_tf.errors import InputError
from bert_tf.flags import (
    command_line,
    flag_sections,
    mask_flags,
    shared_flags,
    text_flags,
)
from bert_tf.pretraining_data import (
    beam,
    corpus,
    creation_job,
    creation_output,
    local_creation,
    pretraining_sequences,
    workers,
)
from bert_tf.storage import paths

from absl import flags, logging
from etils import epath

flags.adopt_module_key_flags(text_flags)

# More than any machine has cores.
_MOST_WORKERS = 1024

# ---- Flags: files -----------------------------------------------------------

_SHOWING = flag_sections.Section("What to do")
_OUTPUT = flag_sections.Section("Output", only_with="!show")
_MODEL = flag_sections.Section("Model")
_RUN = flag_sections.Section("Processes", only_with="!show")

_OUTPUT_FILE = _OUTPUT.output_paths(
    "output_file", "TFRecord files to write, comma separated."
)
_OUTPUT_DIR = _OUTPUT.output_path(
    "output_dir",
    "Folder for part-*.tfrecord and manifest.json, instead of output_file.",
    holds=flag_sections.FOLDER,
    own=("part-00000-of-00001.tfrecord", "manifest.json"),
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite",
    False,
    "Replaces files in output_file that no run of this script wrote.",
    only_with="output_file",
    rare=True,
)
_NUM_SHARDS = _OUTPUT.integer(
    "num_shards",
    None,
    "Number of files in output_dir. By default computed from shard_size_mb.",
    min=1,
    only_with="output_dir",
)
_SHARD_SIZE_MB = _OUTPUT.integer(
    "shard_size_mb",
    None,
    "Approximate size of a file in output_dir; by default 100.",
    min=1,
    only_with="output_dir",
)
_VOCAB_FILE = shared_flags.vocab_file(
    _MODEL,
    "The vocabulary: vocab.txt, RoBERTa's vocab.json (with merges.txt next to "
    "it) or tokenizer.json, ALBERT's spiece.model, or symbols.txt.",
    required=True,
    holds="",
)
_DO_LOWER_CASE = _MODEL.boolean(
    "do_lower_case",
    True,
    "Whether to lower-case and strip accents: true for uncased models.",
    only_with="!show",
    harmless=True,
)
_NUM_WORKERS = _RUN.integer(
    "num_workers",
    None,
    "Number of processes. By default one per core, but at most one per 16 MB "
    "of text.",
    min=1,
    max=_MOST_WORKERS,
    only_with="!runner",
)
_RUNNER = _RUN.choice(
    "runner",
    None,
    options.RUNNERS,
    "Creates the data with Apache Beam, for example on a cluster, instead of "
    "in local processes.",
    rare=True,
)
_BEAM_OPTIONS = _RUN.string(
    "beam_options",
    "",
    "Options of the runner, as '--name=value --other=value'.",
    only_with="runner",
    rare=True,
)

# ---- Flags: what the records are like ---------------------------------------

_RECORDS = flag_sections.Section("Records", only_with="!show")
_SETTINGS = pretraining_sequences.Settings

_RECORDS.define(_SETTINGS, "max_seq_length")
_RANDOM_SEED = _RECORDS.integer(
    "random_seed", 12345, "Random seed of sampling and masking.", min=0
)
_RECORDS.define(_SETTINGS, "dupe_factor")
_RECORDS.define(_SETTINGS, "short_seq_prob", "objective", default=None)
_RANDOM_NEXT_SENTENCE = _RECORDS.boolean(
    "random_next_sentence",
    None,
    "ALBERT's name: true means --objective=nsp, false --objective=sop.",
    rare=True,
)
_OBJECTIVES = ("objective", _RANDOM_NEXT_SENTENCE.name)
_RECORDS.define(_SETTINGS, "pack", "max_sequences_per_row")
_SHOW = _SHOWING.integer(
    "show",
    0,
    "Prints this number of records from --input_file as text with marked "
    "masks, and writes nothing.",
    min=0,
)

flags.adopt_module_key_flags(mask_flags)

command_line.start(__name__)


# ---- What the flags say -----------------------------------------------------


def settings_of_flags() -> pretraining_sequences.Settings:
    """Returns what the records are to be like."""
    objective, short = objective_of_flags(), flags.FLAGS.short_seq_prob
    if short is None:
        # RoBERTa's sequences are as long as can be.
        usual = {"full_sentences": 0.0, "two_segments": 0.05}
        short = usual.get(objective, _SETTINGS.short_seq_prob)
    return flag_sections.read(
        _SETTINGS,
        short_seq_prob=short,
        objective=objective,
        masking=mask_flags.policy(),
    )


def objective_of_flags() -> str:
    """Returns what is learnt of two segments."""
    given, is_random = flags.FLAGS.objective, _RANDOM_NEXT_SENTENCE.value
    if is_random is None:
        return given or _SETTINGS.objective
    meant = "nsp" if is_random else "sop"
    if given not in (None, meant):
        raise InputError(
            f"--random_next_sentence={str(is_random).lower()} means "
            f"--objective={meant}: leave one out. Received: "
            f"objective={given}"
        )
    return meant


def output_of_flags() -> creation_output.Output:
    """Returns where the shards go."""
    files, folder = _OUTPUT_FILE.value or [], _OUTPUT_DIR.value or ""
    if bool(files) == bool(folder):
        raise InputError(
            "Give either --output_file or --output_dir. Received: "
            f"output_file={','.join(files)}, output_dir={folder}"
        )
    shards, megabytes = _NUM_SHARDS.value, _SHARD_SIZE_MB.value
    if not files:
        if shards and megabytes:
            raise InputError(
                "The size of a file follows from their number: give either "
                "--num_shards or --shard_size_mb. Received: "
                f"num_shards={shards}, shard_size_mb={megabytes}"
            )
        return creation_output.Output(
            folder=folder,
            num_shards=shards,
            shard_bytes=(megabytes or 100) * 10**6,
        )
    if len(set(map(os.path.realpath, files))) < len(files):
        raise InputError(
            "--output_file must name each file once. "
            f"Received: output_file={','.join(files)}"
        )
    folders = [file for file in files if epath.Path(file).is_dir()]
    if folders:
        raise InputError(
            "--output_file must name files: give a folder by --output_dir. "
            f"Received: output_file={folders[0]}"
        )
    output = creation_output.Output(
        files=tuple(files), overwrites=_OVERWRITE.value
    )
    output.check_names()
    return output


def check_words_are_pieces(vocabulary: vocabularies.Vocabulary) -> None:
    """Raises InputError if words are listed for a kind that can't join them."""
    if any(mask_flags.words().values()) and not vocabulary.has_fixed_words:
        raise InputError(
            "--word_list and --segmenter join word pieces only: leave them "
            f"out. Received: vocab_file={_VOCAB_FILE.value}, a vocabulary of "
            f"{vocabulary.kind}"
        )


def open_vocabulary() -> vocabularies.Vocabulary:
    """Reads the vocabulary; InputError if it is of no kind."""
    given = _VOCAB_FILE.value, _DO_LOWER_CASE.value
    try:
        return vocabularies.open(*given)
    except InputError:
        if not epath.Path(_VOCAB_FILE.value).exists():
            raise
        # It registers more kinds and imports TensorFlow, which takes seconds.
        with quiet.kept_back():
            importlib.import_module("bert_tf.contrib")
        return vocabularies.open(*given)


def job_of_flags(output: creation_output.Output) -> creation_job.Job:
    """Returns what to make; checks all that can be checked before the work."""
    settings, vocab_file = settings_of_flags(), _VOCAB_FILE.value
    vocabulary = open_vocabulary()
    shared_flags.check_casing_is_used(
        vocabulary.kind, vocabulary.settings, vocab_file
    )
    pretraining_sequences.check_vocabulary(vocabulary, vocab_file)
    vocabulary.check(vocab_file)
    check_words_are_pieces(vocabulary)
    settings.check_room(vocabulary)
    choices = (*_OBJECTIVES, *mask_flags.POLICIES)
    if vocabularies.KINDS[vocabulary.kind].objective == "sop" and not any(
        flags.FLAGS[name].present for name in choices
    ):
        logging.warning(
            "The vocabulary is like ALBERT's, and these records are BERT's: "
            "next sentence prediction, and masks of single tokens. For "
            "ALBERT's, pass --flagfile=configs/albert_records.flags."
        )
    reader = text_flags.reader()
    if vocabulary.has_sentences and reader.input_format != "lines":
        extras.check(
            "sentencex",
            "data",
            f"Sentences of --input_format={reader.input_format}",
        )
    job = creation_job.Job(
        units=tuple(text_flags.units()),
        reader=reader,
        vocab_file=vocab_file,
        do_lower_case=_DO_LOWER_CASE.value,
        settings=settings,
        seed=_RANDOM_SEED.value,
        folder=output.work_folder,
        **mask_flags.words(),
    )
    # Both are what workers need a package for, and a cluster may have what is
    # not here.
    if not _RUNNER.value:
        _ = job.tokenizer, job.words
    return job


def show_records(number: int) -> None:
    """Prints records as text."""
    # It needs TensorFlow, which takes seconds to import.
    with quiet.kept_back():
        from bert_tf.records import manifests, show

    vocabulary = open_vocabulary()
    files = paths.expand(text_flags.INPUT_FILE.value, manifests.is_manifest)
    for text in show.show(files, vocabulary, number):
        terminals.write(f"{text}\n")


# ---- Main -------------------------------------------------------------------


def beam_options() -> list[str]:
    """Returns the options of the runner."""
    try:
        return shlex.split(_BEAM_OPTIONS.value)
    except ValueError as error:
        raise InputError(
            f"--beam_options must be written as in a shell ({error}). "
            f"Received: beam_options={_BEAM_OPTIONS.value}"
        ) from error


def create(
    job: creation_job.Job, output: creation_output.Output
) -> creation_output.Result:
    """Makes all shards and the manifest, here or on a cluster."""
    if _RUNNER.value:
        return beam.run(job, output, _RUNNER.value, beam_options())
    most = corpus.parallelism(job.units)
    number = _NUM_WORKERS.value or min(workers.cores(), most)
    with workers.Workers(
        number, ["bert_tf.pretraining_data.local_creation"]
    ) as pool:
        result = local_creation.run(job, output, pool)
    local_creation.finish(job, output, result)
    return result


def main(_):
    """Makes all shards, then the manifest."""
    if _SHOW.value:
        show_records(_SHOW.value)
        return
    command_line.unwind_at_signals()
    meter = phases.Meter()
    output = output_of_flags()
    job = job_of_flags(output)
    if output.is_done(job.fingerprint(output)):
        job.work.clear()
        logging.info("Nothing to do: %s is complete.", output.manifest)
        return
    result = create(job, output)
    for line in result.summary(job.reader.input_format):
        logging.info("%s", line)
    logging.info("Took %.1f seconds.", meter.seconds)


if __name__ == "__main__":
    command_line.run(main)
