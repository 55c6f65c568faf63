r"""Augments a table: a masked language model replaces words in copies of rows.

A task of GLUE, as TinyBERT's data augmentation:
    python augment_data.py --task_name=MRPC --data_dir=$GLUE_DIR/MRPC \
        --init_checkpoint=$BERT_BASE_DIR \
        --output_file=/tmp/augmented/MRPC/train.tsv
A custom table:
    python augment_data.py --input_file=train.csv --text_a_column=message \
        --init_checkpoint=$BERT_BASE_DIR --output_file=augmented.csv

Each row is followed by copies of it. In a copy, each word that is not a stop
word is replaced, with some probability, by one of the model's most likely words
at this position. All other columns stay, and the output has the format of the
input: run_classifier.py takes it with the same flags. See docs/augmentation.md.
"""

import collections
import os

from bert_tf.errors import InputError
from bert_tf.flags import command_line, flag_sections, shared_flags
from bert_tf.tasks import table_formats
from bert_tf.tasks.classification import classification_task, glue

# ---- Flags ------------------------------------------------------------------

_MODEL = flag_sections.Section("Model")
_DATA = flag_sections.Section("Data")
_WORDS = flag_sections.Section("Augmentation")
_OUTPUT = flag_sections.Section("Output")

_INIT_CHECKPOINT = shared_flags.init_checkpoint(
    _MODEL,
    "A pre-trained checkpoint of any format, with its head for masked words.",
    required=True,
)
shared_flags.bert_config_file(_MODEL)
shared_flags.vocab_file(_MODEL)
shared_flags.do_lower_case(_MODEL)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _MODEL,
    128,
    "Max number of tokens that the model reads at a time: a text, and as much "
    "of its copy as fits. Words of a text after these tokens stay unchanged.",
    min=4,
)
_BATCH_SIZE = shared_flags.batch_size(_MODEL)
_WINDOW = shared_flags.sort_window(_MODEL)

_TASK_NAME = shared_flags.task_name(_DATA)
_DATA_DIR = _DATA.input_path(
    "data_dir", "Folder of the task's files.", only_with="task_name"
)
_XNLI_LANGUAGE = shared_flags.xnli_language(_DATA)
_INPUT_FILE = _DATA.input_path(
    "input_file", "Your own table. Replaces --task_name."
)
_OF_INPUT = {"only_with": "input_file"}
_FILE_FORMAT = shared_flags.file_format(_DATA, **_OF_INPUT)
_HAS_HEADER = shared_flags.has_header(_DATA, **_OF_INPUT)
_TEXT_A_COLUMN = shared_flags.text_a_column(_DATA, **_OF_INPUT)
_TEXT_B_COLUMN = shared_flags.text_b_column(_DATA, **_OF_INPUT)

_COPIES = _WORDS.integer(
    "augmentation_copies",
    None,
    "Copies of each row, without duplicates. By default as in TinyBERT: 20 for "
    "SST-2 and QNLI, 10 for MNLI and QQP, otherwise 30.",
    min=1,
    max=10_000,
)
_PROBABILITY = _WORDS.number(
    "replace_probability",
    0.4,
    "Probability of replacing a word.",
    above=0,
    max=1,
)
_CANDIDATES = _WORDS.integer(
    "candidates",
    15,
    "Number of most likely words from which a replacement is drawn.",
    min=1,
)
_STOP_WORDS = _WORDS.input_path(
    "stop_words_file",
    "File of words that are never replaced, one per line. By default a list "
    "of English stop words.",
)
_MASKED_SHARE = _WORDS.number(
    "masked_share",
    0.25,
    "Max share of a row's tokens that are masked at once. 0 masks one at a "
    "time, as TinyBERT does, which takes far longer.",
    min=0,
    max=1,
    rare=True,
)
_SEED = _WORDS.integer("seed", 12345, "Random seed.", min=0, max=2**31 - 1)

_OUTPUT_FILE = _OUTPUT.output_path(
    "output_file",
    "The new table.",
    holds=flag_sections.FILE,
    required=True,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace an existing output_file."
)

command_line.start(__name__)

from bert_tf import files, heads, phases
from bert_tf.checkpoints import formats, names, trained_models
from bert_tf.encoders import families
from bert_tf.exporting import inference
from bert_tf.setup import model_files_setup
from bert_tf.storage import input_files
from bert_tf.tasks.augmentation import candidates, copies, table_lines, words

from absl import logging
from etils import epath

_HEAD = "masked_lm"
# Of tasks with many rows, as TinyBERT's.
_COPIES_OF_TASKS = {"SST-2": 20, "QNLI": 20, "MNLI": 10, "QQP": 10, "XNLI": 10}


# ---- The table --------------------------------------------------------------


def find_table(task):
    """Returns the table that the flags name, of a task or the user's own."""
    if task is None:
        input_files.check(_INPUT_FILE.value, _INPUT_FILE.name)
        split = classification_task.Split(
            _INPUT_FILE.value,
            _TEXT_A_COLUMN.value,
            _TEXT_B_COLUMN.value,
            has_header=_HAS_HEADER.value,
            file_format=_FILE_FORMAT.value
            or table_formats.find(_INPUT_FILE.value, _HAS_HEADER.value),
        )
    else:
        classification_task.check_split(task, "train")
        split = task.splits["train"]
    if split.text_a == split.text_b:
        raise InputError(
            "--text_a_column and --text_b_column must name columns apart. "
            f"Received: text_a_column={split.text_a}, "
            f"text_b_column={split.text_b}"
        )
    texts = {"text_a": split.text_a, "text_b": split.text_b}
    return table_lines.Table(
        os.path.join(_DATA_DIR.value or "", split.file),
        {name: at for name, at in texts.items() if at is not None},
        split.file_format,
        split.has_header,
        task is not None and task.skips_short_rows,
        is_own=task is None,
    )


def find_task():
    """Returns the task that the flags name; None of the user's own table."""
    name, path = _TASK_NAME.value, _INPUT_FILE.value
    if bool(name) == bool(path):
        raise InputError(
            "Give either --task_name with --data_dir, or a table of your own "
            f"by --input_file. Received: task_name={name}, input_file={path}"
        )
    if name and not _DATA_DIR.value:
        raise InputError(
            "Give --data_dir, the folder of the task's files: what is written "
            f"has their format. Received: task_name={name}"
        )
    return glue.find(name, _XNLI_LANGUAGE.value) if name else None


def check_format(table):
    """Raises InputError if the output's name promises another format."""
    promised = table_formats.of_name(_OUTPUT_FILE.value)
    if promised != table.file_format and not _FILE_FORMAT.value:
        raise InputError(
            f"The output has the format of {table.path}, {table.file_format}: "
            "let the name of --output_file end so. Received: "
            f"output_file={_OUTPUT_FILE.value}"
        )


def check_rows(table):
    """Checks all rows; returns how many there are."""
    return sum(1 for _ in phases.tracked(table.rows(), "Checking", "rows"))


def read_stop_words():
    """Returns the words that stay; None if they are not named."""
    path = _STOP_WORDS.value
    if not path:
        return None
    input_files.check(path, _STOP_WORDS.name)
    return words.read_stop_words(path)


# ---- The model --------------------------------------------------------------


def check_head(source):
    """Raises InputError if a checkpoint can't predict masked words."""
    if not names.HEADS[_HEAD].variables.keys() <= source.shapes.keys():
        raise InputError(
            f"{source.path} has no head for masked words. Give a pre-trained "
            "checkpoint that has; an encoder alone, or one that was "
            "fine-tuned, has none. "
            f"Received: init_checkpoint={_INIT_CHECKPOINT.value}"
        )
    if not trained_models.is_trained(source, _HEAD):
        raise InputError(
            f"{source.path} has a head for masked words that its run did not "
            "train, as by --distillation=minilm. Give a checkpoint whose run "
            f"did. Received: init_checkpoint={_INIT_CHECKPOINT.value}"
        )


def load_finder(stay):
    """Returns what finds words in texts, and what finds others for them."""
    length = _MAX_SEQ_LENGTH.value
    source = formats.open_checkpoint(_INIT_CHECKPOINT.value)
    check_head(source)
    files = model_files_setup.load(source)
    vocabulary = files.vocabulary
    files.config.check_sequence_length(length)
    if stay is None:
        # Symbols are of no language.
        stay = words.STOP_WORDS if vocabulary.splits_punctuation else ()
    reader = words.Reader(vocabulary, stay, length)
    model = heads.BertMaskedLM(families.make(files.config))
    trained_models.restore(model, source, _HEAD)
    finder = candidates.Finder(
        inference.make_inference_model(model),
        vocabulary,
        length,
        _CANDIDATES.value,
        _BATCH_SIZE.value,
        _MASKED_SHARE.value,
    )
    return reader, finder


# ---- Rows -------------------------------------------------------------------


def augmented(table, reader, finder, settings, phase, counts):
    """Yields the lines of the new table; counts its rows and words."""
    yield from table.header()
    for window in table_lines.windows(table.rows(), _WINDOW.value):
        texts = [[reader.read(x) for x in row.texts.values()] for row in window]
        flat = [text for of_row in texts for text in of_row]
        found = iter(finder.find(flat, phase.add))
        for row, of_row in zip(window, texts, strict=True):
            choices = [next(found) for _ in of_row]
            made = copies.draw(of_row, choices, settings, counts["rows in"])
            counts["rows in"] += 1
            counts["rows out"] += 1 + len(made)
            yield table.line(row.cells)
            for copy in made:
                counts["words replaced"] += copy.replaced
                changed = dict(zip(row.texts, copy.texts, strict=True))
                cells = table_lines.changed(row, changed)
                yield table.line(cells)
    phase.finish()


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole augmentation as an outline."""
    command_line.unwind_at_signals()
    task, path = find_task(), _OUTPUT_FILE.value
    table = find_table(task)
    check_format(table)
    total = check_rows(table) * len(table.columns)
    reader, finder = load_finder(read_stop_words())
    usual = _COPIES_OF_TASKS.get(task.name if task else "", 30)
    settings = copies.Settings(
        _COPIES.value or usual, _PROBABILITY.value, _SEED.value
    )
    phase, meter = phases.Phase("Augmenting", "texts", total), phases.Meter()
    counts: collections.Counter[str] = collections.Counter()
    epath.Path(path).parent.mkdir(parents=True, exist_ok=True)
    lines = augmented(table, reader, finder, settings, phase, counts)
    files.write_lines(path, lines)
    if not counts["words replaced"]:
        logging.warning("No word was replaced, so no row has copies.")
    logging.info(
        "Wrote %s: %d rows in, %d rows out, %d words replaced; %.1f rows in/s.",
        path,
        counts["rows in"],
        counts["rows out"],
        counts["words replaced"],
        meter.rate(counts["rows in"]),
    )


if __name__ == "__main__":
    command_line.run(main)
