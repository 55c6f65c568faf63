r"""Computes vectors of texts from BERT's layers.

The original's JSON lines, with the last four layers of each token:
    python extract_features.py --input_file=/tmp/input.txt \
        --output_file=/tmp/output.jsonl --layers=-1,-2,-3,-4 \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --max_seq_length=128 --batch_size=8

A vector for each line, as one NumPy array:
    python extract_features.py --input_file=lines.txt \
        --output_file=vectors.npy --features=last --unit=mean ...

A line is a text, or two texts separated by ` ||| `. --export_dir writes a
SavedModel that takes raw text and returns the same features
(bert_tf/tasks/features/features_model.py).

A folder of sentence-transformers sets the defaults of --unit, --features,
--normalize and --max_seq_length.
"""

import math
import os

from bert_tf import options
from bert_tf.errors import InputError, counted
from bert_tf.flags import command_line, flag_sections, shared_flags
from bert_tf.storage import written_files

# ---- Flags: the original's --------------------------------------------------

_MODEL = flag_sections.Section("Model")
_DATA = flag_sections.Section("Data")
_FILES = flag_sections.Section("Data", only_with="output_file")
_OUTPUT = flag_sections.Section("Output")
_VECTORS = flag_sections.Section("Vectors")
_DEVICES = flag_sections.Section("Devices")
_ORIGINAL = flag_sections.Section("Flags of the original")

_INPUT_FILE = _DATA.input_path("input_file", "File with one text per line.")
_OUTPUT_FILE = _OUTPUT.output_path(
    "output_file",
    "File to write.",
    holds=flag_sections.FILE,
    beside=(".offsets.npy",),
)
_LAYERS = _VECTORS.words(
    "layers",
    "-1,-2,-3,-4",
    "Layers for --features=layers, counted from 0; negative numbers count "
    "from the last.",
    only_with="features=layers",
)
shared_flags.bert_config_file(_MODEL)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Max number of tokens per line; longer ones are cut.", min=4
)
_INIT_CHECKPOINT = shared_flags.init_checkpoint(
    _MODEL, "Checkpoint of the model, of any format.", required=True
)
shared_flags.vocab_file(_MODEL)
shared_flags.do_lower_case(_MODEL)
_BATCH_SIZE = shared_flags.batch_size(_FILES)
_USE_TPU = shared_flags.use_tpu(_DEVICES)
_MASTER = _ORIGINAL.string(
    "master", None, "A TF1 flag that is not supported. Use --tpu_name."
)
_USE_ONE_HOT_EMBEDDINGS = _ORIGINAL.boolean(
    "use_one_hot_embeddings",
    False,
    "A TF1 flag that is not supported. Use --use_tpu.",
)

# ---- Flags: which features, and where they go -------------------------------

_FEATURES = _VECTORS.choice(
    "features",
    "layers",
    options.FEATURES,
    "How layers are combined: layers returns a vector for each of --layers; "
    "the others are from table 7 of the BERT paper.",
)
_LAYER_WEIGHTS = _VECTORS.words(
    "layer_weights",
    None,
    "Weights for --features=weighted_sum_last_four, from the last layer down. "
    "By default 0.25 each.",
    only_with="features=weighted_sum_last_four",
)
_UNIT = _VECTORS.choice(
    "unit",
    "token",
    options.UNITS,
    "What gets a vector: each token, as in the original; each word between "
    "white space (the mean of its tokens); or the line ([CLS], or the mean of "
    "all tokens).",
)
_NORMALIZE = _VECTORS.boolean(
    "normalize",
    False,
    "Scales each vector to length 1, so that dot products are cosine "
    "similarities.",
)
_OUTPUT_FORMAT = _OUTPUT.choice(
    "output_format",
    None,
    options.FEATURE_FORMATS,
    "By default chosen by the extension: .npy, .parquet, .tfrecord, otherwise "
    "JSON lines.",
    only_with="output_file",
)
_EXPORT_DIR = _OUTPUT.output_path(
    "export_dir",
    "New folder for a SavedModel of these features.",
    holds=flag_sections.NEW_FOLDER,
    own=written_files.SAVED_MODEL,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace existing outputs."
)
_WINDOW = shared_flags.sort_window(_FILES)

# ---- Flags: on what ---------------------------------------------------------

_TPU = flag_sections.Section(
    "Devices", only_with=("use_tpu", "distribution_strategy=tpu")
)
_DISTRIBUTION_STRATEGY = _DEVICES.choice(
    "distribution_strategy",
    None,
    ("default", "mirrored", "tpu"),
    "One device, all local GPUs, or a TPU. By default one device.",
)
_DTYPE = shared_flags.dtype(_DEVICES, "Number format of activations.")
_TPU_NAME = shared_flags.tpu_name(_TPU)
_NUM_TPU_CORES = shared_flags.num_tpu_cores(_TPU)

command_line.start(__name__)

from bert_tf import phases
from bert_tf.checkpoints import formats, hub, restoring, sentence_transformers
from bert_tf.encoders import families
from bert_tf.exporting import saved_model
from bert_tf.setup import model_files_setup
from bert_tf.storage import input_files
from bert_tf.tasks import table_formats, tables
from bert_tf.tasks.features import (
    extraction,
    feature_files,
    feature_layers,
    feature_lines,
    features_model,
)
from bert_tf.training import distribution

from absl import logging
from etils import epath


def check_flags():
    """Raises InputError if the flags do not fit together."""
    if _MASTER.value:
        raise InputError(
            "--master belonged to TF1 sessions. Give the address of a TPU as "
            "--tpu_name."
        )
    if _USE_ONE_HOT_EMBEDDINGS.value:
        raise InputError(
            "--use_one_hot_embeddings was for TPUs in TF1. Leave it out: TPUs "
            "gather embeddings fast today."
        )
    if not (_OUTPUT_FILE.value or _EXPORT_DIR.value):
        raise InputError("Give --output_file, --export_dir or both.")
    if bool(_INPUT_FILE.value) != bool(_OUTPUT_FILE.value):
        raise InputError(
            "--input_file and --output_file go together. Received: "
            f"input_file={_INPUT_FILE.value}, output_file={_OUTPUT_FILE.value}"
        )
    if _EXPORT_DIR.value and _UNIT.value == "word":
        raise InputError(
            "A SavedModel gives vectors of tokens or of texts, not of words. "
            "Choose another --unit. Received: unit=word"
        )
    if _INPUT_FILE.value:
        input_files.check(_INPUT_FILE.value, _INPUT_FILE.name)
        check_is_lines(_INPUT_FILE.value)
        find_format()


def check_is_lines(path):
    """Raises InputError for the name of a file of columns."""
    promised = table_formats.of_name(path)
    if promised in ("csv", "jsonl"):
        raise InputError(
            "Lines of text are read, two texts with ' ||| ' between, and each "
            f"line of a file of {promised} would be a text as it is: write the "
            f"texts alone. Received: {_INPUT_FILE.name}={path}"
        )


def find_format():
    """Returns the format of the vectors."""
    path = _OUTPUT_FILE.value
    return _OUTPUT_FORMAT.value or feature_files.format_of(path)


def numbers(flag, kind):
    """Returns the numbers of a flag."""
    try:
        values = tuple(map(kind, flag.value or ()))
    except ValueError:
        values = (math.nan,)
    if not all(map(math.isfinite, values)):
        raise InputError(
            f"--{flag.name} takes {'whole ' * (kind is int)}numbers with "
            f"commas between. Received: {flag.name}={','.join(flag.value)}"
        )
    return values


def find_vectors():
    """Returns how texts get vectors: by the flags, or else the model's folder.

    Flags that are not given say what there is without such a folder.
    """
    own = {
        flag.name: flag
        for flag in (_UNIT, _NORMALIZE, _MAX_SEQ_LENGTH, _FEATURES)
    }
    given = {name: x.value if x.present else None for name, x in own.items()}
    if _LAYERS.present:
        given["features"] = _FEATURES.value
    default = sentence_transformers.Vectors(
        **{name: flag.value for name, flag in own.items()}
    )
    folder = hub.locate(_INIT_CHECKPOINT.value)
    return sentence_transformers.choose(folder, given, default)


def set_up_distribution():
    """Returns the strategy that the flags ask for."""
    strategy = distribution.set_up(
        distribution.asked_for(_DISTRIBUTION_STRATEGY.value, _USE_TPU.value),
        _DTYPE.value,
        tpu_name=_TPU_NAME.value,
    )
    distribution.check_cores(strategy, _NUM_TPU_CORES.value)
    return strategy


def count_lines(path):
    """Returns how many lines a file has, all of them text; None of a pipe."""
    if "://" in path or not os.path.isfile(path):
        return None
    lines = phases.tracked(tables.lines(path), "Counting", "lines")
    return check_count(sum(1 for _ in lines))


def check_count(count):
    """Returns the number of lines; InputError if there are none."""
    if not count:
        raise InputError(
            f"{_INPUT_FILE.value} has no lines. Expected a text on each."
        )
    return count


def write_features(extractor, reader, windows, output, phase):
    """Writes the vectors of all lines, in order; logs how far it is.

    Returns:
        How many lines there are, and how many of them were cut.
    """
    meter = phases.Meter()
    count = cut = tokens = 0
    for texts in windows:
        lines = reader.read(texts, count)
        output.write(lines, extractor.extract(lines, phase.add))
        count += len(lines)
        cut += sum(line.is_cut for line in lines)
        tokens += sum(len(line.ids) for line in lines)
    phase.close()
    check_count(count)
    logging.info(
        "%s, %s: %.1f lines/s, %.0f tokens/s",
        counted(count, "line"),
        counted(tokens, "token"),
        meter.rate(count),
        meter.rate(tokens),
    )
    return count, cut


def warn_of_cut(cut, count, length):
    """Logs how many lines were longer than the model reads, if any were."""
    if cut:
        logging.warning(
            "%d of %d lines were longer than --max_seq_length=%d and were "
            "truncated.",
            cut,
            count,
            length,
        )


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    command_line.unwind_at_signals()
    check_flags()
    vectors = find_vectors()
    choice = feature_layers.Choice(
        vectors.features, numbers(_LAYERS, int), numbers(_LAYER_WEIGHTS, float)
    )
    length = vectors.max_seq_length
    source = formats.open_checkpoint(_INIT_CHECKPOINT.value)
    files = model_files_setup.load(source)
    files.config.check_sequence_length(length)
    files.config.check_gives_sequence("a feature extractor")
    layers = files.config.num_blocks
    if not _LAYERS.present:
        # A small model may have fewer than the last four.
        choice = choice.limited_to(layers)
    choice.check(layers)
    feature_layers.check_unit(vectors.unit, files.vocabulary)
    source_file, path = _INPUT_FILE.value, _OUTPUT_FILE.value
    total = count_lines(source_file) if source_file else None
    strategy = set_up_distribution()
    with strategy.scope():
        model = families.make(files.config)
        restoring.restore_weights(model.variables, source)
    vocabulary, unit = files.vocabulary, vectors.unit
    if _EXPORT_DIR.value:
        made = features_model.extractor(
            model, vocabulary, length, choice, unit, vectors.normalize
        )
        saved_model.save(_EXPORT_DIR.value, made, _OVERWRITE.value)
        logging.info("Wrote the SavedModel %s.", _EXPORT_DIR.value)
    if not source_file:
        return
    extractor = extraction.Extractor(
        strategy,
        model,
        choice,
        unit,
        _BATCH_SIZE.value,
        length,
        vectors.normalize,
    )
    reader = feature_lines.Reader(vocabulary, length, unit == "word")
    texts = (text for _, text in tables.lines(source_file))
    most = extraction.lines_in_memory(
        choice, unit, files.config.hidden_size, length
    )
    window = min(_WINDOW.value, max(most, _BATCH_SIZE.value))
    windows = feature_lines.windows(texts, window)
    phase = phases.Phase("Making vectors", "lines", total)
    epath.Path(path).parent.mkdir(parents=True, exist_ok=True)
    with feature_files.writer(
        path, find_format(), choice, unit, vocabulary.pieces
    ) as output:
        count, cut = write_features(extractor, reader, windows, output, phase)
    warn_of_cut(cut, count, length)
    logging.info("Wrote %s.", path)


if __name__ == "__main__":
    command_line.run(main)
