r"""Makes pre-training records of text: masked words and next sentences.

    python create_pretraining_data.py \
        --input_file=/data/wiki/*.txt \
        --output_dir=/data/wiki_records \
        --vocab_file=vocab.txt --do_lower_case=true \
        --max_seq_length=128 --max_predictions_per_seq=20 \
        --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=5

To see what is in records (two sequences of the first file):

    python create_pretraining_data.py --show=2 --vocab_file=vocab.txt \
        --input_file=/data/wiki_records/part-00000*

The same text, flags and seed give the same bytes, whatever --num_workers is.
A run that was stopped goes on when the same command is given again. Writes a
manifest beside the records, which run_pretraining.py takes their lengths and
counts from.

On a cluster the same bytes come from an Apache Beam pipeline
(bert_tf/pretraining_data/beam.py has the commands for Dataflow, Flink and
Spark, and what to install):

    python create_pretraining_data.py --input_file=gs://b/wiki/*.txt \
        --output_dir=gs://b/records --vocab_file=gs://b/vocab.txt \
        --runner=DataflowRunner --beam_options="--project=my-project
        --region=europe-west4 --temp_location=gs://b/tmp"
"""

import os
import shlex

from bert_tf import extras, options, phases, vocab_files, vocabularies
from bert_tf.errors import InputError
from bert_tf.flags import command_line, quiet, shared
from bert_tf.flags import sections as flag_sections
from bert_tf.flags import text as text_flags
from bert_tf.pretraining_data import beam, workers
from bert_tf.pretraining_data import job as creation_job
from bert_tf.pretraining_data import local as local_creation
from bert_tf.pretraining_data import output as creation_output
from bert_tf.pretraining_data import sequences as pretraining_sequences
from bert_tf.records import masking
from bert_tf.storage import paths

from absl import flags, logging
from etils import epath

flags.adopt_module_key_flags(text_flags)

# More than anyone needs; far beyond, memory ends before the records begin.
_LONGEST, _MOST_TIMES, _MOST_WORKERS = 1 << 16, 10_000, 1024

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
    "Whether files of output_file may be replaced that no run wrote.",
    only_with="output_file",
    rare=True,
)
_NUM_SHARDS = _OUTPUT.integer(
    "num_shards",
    None,
    "Files to write to output_dir. By default it follows from shard_size_mb.",
    least=1,
    only_with="output_dir",
)
_SHARD_SIZE_MB = _OUTPUT.integer(
    "shard_size_mb",
    None,
    "About the size of a file in output_dir; by default 100.",
    least=1,
    only_with="output_dir",
)
_VOCAB_FILE = _MODEL.input_path(
    "vocab_file", "The vocabulary, one piece per line.", required=True
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
    "Processes. By default one for each core, but no more than 16 MB parts of "
    "the text.",
    least=1,
    most=_MOST_WORKERS,
    only_with="!runner",
)
_RUNNER = _RUN.choice(
    "runner",
    None,
    options.RUNNERS,
    "Runs by Apache Beam, perhaps on a cluster, instead of in processes here.",
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
_MASKS = flag_sections.Section("Masks", only_with="!show")

_MAX_SEQ_LENGTH = shared.max_seq_length(
    _RECORDS, 128, "Tokens per sequence.", most=_LONGEST
)
_MAX_PREDICTIONS_PER_SEQ = _MASKS.integer(
    "max_predictions_per_seq", 20, "Masked tokens per sequence at most."
)
_RANDOM_SEED = _RECORDS.integer(
    "random_seed", 12345, "Of all random choices.", least=0
)
_DUPE_FACTOR = _RECORDS.integer(
    "dupe_factor",
    10,
    "Times to use each document, masked differently.",
    most=_MOST_TIMES,
)
_SHORT_SEQ_PROB = _RECORDS.number(
    "short_seq_prob", 0.1, "Share of the documents cut into shorter sequences."
)
_OBJECTIVE = _RECORDS.choice(
    "objective",
    "nsp",
    pretraining_sequences.OBJECTIVES,
    "nsp: does the second segment follow (BERT)? sop: are the two in order "
    "(ALBERT)? none: one segment (RoBERTa).",
)
_MASKING = _MASKS.choice(
    "masking",
    None,
    masking.POLICIES,
    "What is masked as one: token (default), whole_word, or span: several "
    "words in a row (SpanBERT).",
)
_DO_WHOLE_WORD_MASK = _MASKS.boolean(
    "do_whole_word_mask", False, "The same as --masking=whole_word."
)
_OF_WORDS = ("do_whole_word_mask", "masking=whole_word", "masking=span")
_WORD_LIST = _MASKS.input_path(
    "word_list",
    "Words of several characters, one per line, for Chinese text: those that "
    "--masking=whole_word and span mask as one.",
    only_with=_OF_WORDS,
)
_SEGMENTER = _MASKS.string(
    "segmenter",
    None,
    "Instead of a word list: module:function that splits a text into words, "
    "such as jieba:lcut.",
    kind="MODULE:FUNCTION",
    only_with=_OF_WORDS,
)
_DYNAMIC_MASKING = _MASKS.boolean(
    "dynamic_masking",
    False,
    "Leaves masking to run_pretraining.py, which masks anew each time that it "
    "reads a record: one record does for all --dupe_factor.",
)
_MASKED_LM_PROB = _MASKS.number(
    "masked_lm_prob", 0.15, "Share of the tokens to mask."
)
_MASK_SHARE = _MASKS.number(
    "mask_share", 0.8, "Share of the masked tokens that become [MASK]."
)
_RANDOM_SHARE = _MASKS.number(
    "random_share", 0.1, "Share that become a random piece; the rest stay."
)
_PACK = _RECORDS.boolean(
    "pack", False, "Puts several short sequences into a row: less padding."
)
_SHOW = _SHOWING.integer(
    "show",
    0,
    "Shows so many of the records in --input_file as text, masks marked, and "
    "makes none.",
    least=0,
)
_MAX_SEQUENCES_PER_ROW = _RECORDS.integer(
    "max_sequences_per_row", 8, "At most, of packed rows.", only_with="pack"
)

command_line.start(__name__)


# ---- What the flags say -----------------------------------------------------


def settings_of_flags() -> pretraining_sequences.Settings:
    """Returns what the records are to be like."""
    policy = _MASKING.value or "token"
    if _DO_WHOLE_WORD_MASK.value:
        if _MASKING.value not in (None, "whole_word"):
            raise InputError(
                "--do_whole_word_mask means --masking=whole_word: leave one "
                f"out. Received: masking={_MASKING.value}"
            )
        policy = "whole_word"
    return pretraining_sequences.Settings(
        max_seq_length=_MAX_SEQ_LENGTH.value,
        max_predictions_per_seq=_MAX_PREDICTIONS_PER_SEQ.value,
        masked_lm_prob=_MASKED_LM_PROB.value,
        short_seq_prob=_SHORT_SEQ_PROB.value,
        dupe_factor=_DUPE_FACTOR.value,
        masking=policy,
        dynamic_masking=_DYNAMIC_MASKING.value,
        objective=_OBJECTIVE.value,
        pack=_PACK.value,
        max_sequences_per_row=_MAX_SEQUENCES_PER_ROW.value,
        mask_share=_MASK_SHARE.value,
        random_share=_RANDOM_SHARE.value,
    )


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


def job_of_flags(output: creation_output.Output) -> creation_job.Job:
    """Returns what to make; checks all that can be checked before the work."""
    settings, vocab_file = settings_of_flags(), _VOCAB_FILE.value
    vocabulary = vocabularies.open(vocab_file, _DO_LOWER_CASE.value)
    vocab_files.check_casing(
        vocabulary.pieces, _DO_LOWER_CASE.value, vocab_file
    )
    pretraining_sequences.check_vocabulary(vocabulary, vocab_file)
    settings.check_room(vocabulary)
    reader = text_flags.reader()
    if reader.input_format != "lines":
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
        word_list=_WORD_LIST.value or "",
        segmenter=_SEGMENTER.value or "",
    )
    if job.word_list and job.segmenter:
        raise InputError(
            "Give either --word_list or --segmenter. Received: "
            f"word_list={job.word_list}, segmenter={job.segmenter}"
        )
    # A cluster may have what is not here.
    if not _RUNNER.value:
        _ = job.words
    return job


def show_records(number: int) -> None:
    """Prints records as text."""
    # It needs TensorFlow, which takes seconds to import.
    with quiet.kept_back():
        from bert_tf.records import show

    vocabulary = vocabularies.open(_VOCAB_FILE.value, _DO_LOWER_CASE.value)
    files = paths.expand(text_flags.INPUT_FILE.value)
    for text in show.show(files, vocabulary.pieces, number, vocabulary.sha256):
        print(text)


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
    number = _NUM_WORKERS.value or min(workers.cores(), len(job.units))
    with workers.Workers(number, ["bert_tf.pretraining_data.local"]) as pool:
        result = local_creation.run(job, output, pool)
    local_creation.finish(job, output, result)
    return result


def main(_):
    """Makes all shards, then the manifest."""
    if _SHOW.value:
        show_records(_SHOW.value)
        return
    command_line.unwind_at_sigterm()
    meter = phases.Meter()
    output = output_of_flags()
    job = job_of_flags(output)
    if output.is_done(job.fingerprint(output)):
        job.work.remove()
        logging.info("This is done: see %s.", output.manifest)
        return
    result = create(job, output)
    for line in result.summary():
        logging.info("%s", line)
    logging.info("Took %.1f seconds.", meter.seconds)


if __name__ == "__main__":
    command_line.run(main)
