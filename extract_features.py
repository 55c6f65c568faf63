r"""Turns texts into vectors: BERT's layers as features.

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

A line is a text, or two with ` ||| ` between them. With --export_dir the same
features come as a SavedModel that takes raw text (bert_tf/export_features.py).

Of a folder of sentence-transformers its own vectors are made: what --unit,
--features, --normalize and --max_seq_length don't say stands in it.
"""

import math
import os
import time

from bert_tf import command_line, flag_sections, options, output_paths

# ---- Flags: the original's --------------------------------------------------

_MODEL = flag_sections.Section("Model")
_DATA = flag_sections.Section("Data")
_FILES = flag_sections.Section("Data", only_with="output_file")
_OUTPUT = flag_sections.Section("Output")
_VECTORS = flag_sections.Section("Vectors")
_DEVICES = flag_sections.Section("Devices")
_ORIGINAL = flag_sections.Section("Of the original")

_INPUT_FILE = _DATA.input_path("input_file", "A text on each line.")
_OUTPUT_FILE = _OUTPUT.output_path(
    "output_file",
    "What to write.",
    holds=flag_sections.FILE,
    beside=(".offsets.npy",),
)
_LAYERS = _VECTORS.words(
    "layers",
    "-1,-2,-3,-4",
    "Of --features=layers: numbers from 0, negative from the last.",
    only_with="features=layers",
)
_BERT_CONFIG_FILE = _MODEL.input_path(
    "bert_config_file",
    "The bert_config.json of the model. By default what comes with "
    "init_checkpoint.",
    holds=flag_sections.MODEL,
)
_MAX_SEQ_LENGTH = _DATA.integer(
    "max_seq_length", 128, "Pieces of a line; longer ones are cut.", least=4
)
_INIT_CHECKPOINT = _MODEL.input_path(
    "init_checkpoint",
    "Checkpoint of the model, of any format.",
    required=True,
    holds=flag_sections.MODEL,
)
_VOCAB_FILE = _MODEL.input_path(
    "vocab_file",
    "The model's vocabulary. By default what comes with init_checkpoint.",
    holds=flag_sections.MODEL,
)
_DO_LOWER_CASE = _MODEL.boolean(
    "do_lower_case", True, "True for uncased models, False for cased ones."
)
_BATCH_SIZE = _FILES.integer("batch_size", 32, "Lines at a time.", least=1)
_USE_TPU = _DEVICES.boolean(
    "use_tpu", False, "The same as --distribution_strategy=tpu."
)
_MASTER = _ORIGINAL.string("master", None, "Of TF1. Refused; see --tpu_name.")
_USE_ONE_HOT_EMBEDDINGS = _ORIGINAL.boolean(
    "use_one_hot_embeddings", False, "Of TF1. Refused; see --use_tpu."
)

# ---- Flags: which features, and where they go -------------------------------

_FEATURES = _VECTORS.choice(
    "features",
    "layers",
    options.FEATURES,
    "What makes a vector: --layers, one each; or a choice of the paper's "
    "table 7.",
)
_LAYER_WEIGHTS = _VECTORS.words(
    "layer_weights",
    None,
    "Of --features=weighted_sum_last_four, from the last layer down. By "
    "default 0.25 each.",
    only_with="features=weighted_sum_last_four",
)
_UNIT = _VECTORS.choice(
    "unit",
    "token",
    options.UNITS,
    "What has a vector: each token, as in the original; each word between "
    "white space, the mean of its pieces; the line, that of [CLS] or the mean "
    "of all tokens.",
)
_NORMALIZE = _VECTORS.boolean(
    "normalize",
    False,
    "Whether each vector gets the length 1, so that dot products are cosines.",
)
_OUTPUT_FORMAT = _OUTPUT.choice(
    "output_format",
    None,
    options.FEATURE_FORMATS,
    "By default by the name's ending: .npy, .parquet, .tfrecord, or JSON "
    "lines.",
    only_with="output_file",
)
_EXPORT_DIR = _OUTPUT.output_path(
    "export_dir",
    "New folder for a SavedModel of these features.",
    holds=flag_sections.NEW_FOLDER,
    own=output_paths.SAVED_MODEL,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace what is there of these."
)
_WINDOW = _FILES.integer(
    "sort_window",
    4096,
    "Lines that are sorted by length together, and kept in memory.",
    least=1,
    rare=True,
)

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
_DTYPE = _DEVICES.choice(
    "dtype", "float32", options.DTYPES, "Number format of activations."
)
_TPU_NAME = _TPU.string(
    "tpu_name", None, "Name or grpc:// address of the TPU; none on its host."
)
_NUM_TPU_CORES = _TPU.integer(
    "num_tpu_cores",
    None,
    "If given, the run stops unless the TPU has so many cores.",
    least=1,
    rare=True,
)

command_line.start(__name__)

from bert_tf import (
    checkpoints,
    distribution,
    export,
    export_features,
    feature_files,
    features,
    fine_tuned,
    input_files,
    modeling,
    phases,
    tokenization,
)
from bert_tf.interop import formats, sentence_transformers
from bert_tf.tasks import common

from absl import logging
from etils import epath


def check_flags():
    """Raises ValueError if the flags do not fit together."""
    if _MASTER.value:
        raise ValueError(
            "--master belonged to TF1 sessions. Give the address of a TPU as "
            "--tpu_name."
        )
    if _USE_ONE_HOT_EMBEDDINGS.value:
        raise ValueError(
            "--use_one_hot_embeddings was for TPUs in TF1. Leave it out: TPUs "
            "gather embeddings fast today."
        )
    if not (_OUTPUT_FILE.value or _EXPORT_DIR.value):
        raise ValueError("Give --output_file, --export_dir or both.")
    if bool(_INPUT_FILE.value) != bool(_OUTPUT_FILE.value):
        raise ValueError(
            "--input_file and --output_file go together. Received: "
            f"input_file={_INPUT_FILE.value}, output_file={_OUTPUT_FILE.value}"
        )
    if _EXPORT_DIR.value and _UNIT.value == "word":
        raise ValueError(
            "A SavedModel gives vectors of tokens or of texts, not of words. "
            "Choose another --unit. Received: unit=word"
        )
    if _INPUT_FILE.value:
        input_files.check(_INPUT_FILE.value, _INPUT_FILE.name)


def numbers(flag, kind):
    """Returns the numbers of a flag."""
    try:
        values = tuple(map(kind, flag.value or ()))
    except ValueError:
        values = (math.nan,)
    if not all(map(math.isfinite, values)):
        raise ValueError(
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
    return sentence_transformers.choose(_INIT_CHECKPOINT.value, given, default)


def set_up_distribution():
    """Returns the strategy that the flags ask for."""
    name = _DISTRIBUTION_STRATEGY.value
    if _USE_TPU.value and name not in (None, "tpu"):
        raise ValueError(
            "--use_tpu means --distribution_strategy=tpu. "
            f"Received: distribution_strategy={name}"
        )
    name = "tpu" if _USE_TPU.value else name
    strategy = distribution.set_up(
        name or "default", _DTYPE.value, tpu_name=_TPU_NAME.value
    )
    cores = strategy.num_replicas_in_sync
    wanted = _NUM_TPU_CORES.value
    if distribution.is_tpu(strategy) and wanted not in (None, cores):
        raise ValueError(
            f"The TPU has another number of cores. Received: "
            f"num_tpu_cores={wanted}, the TPU has {cores}"
        )
    return strategy


def count_lines(path):
    """Returns how many lines a file has, all of them text; None of a pipe."""
    if "://" in path or not os.path.isfile(path):
        return None
    lines = phases.tracked(common.lines(path), "Counting", "lines")
    return check_count(sum(1 for _ in lines))


def check_count(count):
    """Returns the number of lines; ValueError if there are none."""
    if not count:
        raise ValueError(
            f"{_INPUT_FILE.value} has no lines. Expected a text on each."
        )
    return count


def write_features(extractor, reader, windows, output, phase):
    """Writes the vectors of all lines, in order; logs how far it is.

    Returns:
        How many lines there are, and how many of them were cut.
    """
    began = time.monotonic()
    count = cut = tokens = 0
    for texts in windows:
        lines = reader.read(texts, count)
        output.write(lines, extractor.extract(lines, phase.add))
        count += len(lines)
        cut += sum(line.is_cut for line in lines)
        tokens += sum(len(line.ids) for line in lines)
    check_count(count)
    logging.info("%s", rate(count, tokens, time.monotonic() - began))
    return count, cut


def rate(lines, tokens, seconds):
    """Says how much is done, and how fast."""
    return (
        f"{lines} lines, {tokens} tokens: {lines / seconds:.1f} lines/s, "
        f"{tokens / seconds:.0f} tokens/s"
    )


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    command_line.unwind_at_sigterm()
    check_flags()
    vectors = find_vectors()
    choice = features.Choice(
        vectors.features, numbers(_LAYERS, int), numbers(_LAYER_WEIGHTS, float)
    )
    lower, length = _DO_LOWER_CASE.value, vectors.max_seq_length
    tokenization.validate_case_matches_checkpoint(lower, _INIT_CHECKPOINT.value)
    source = formats.open_checkpoint(_INIT_CHECKPOINT.value)
    files = fine_tuned.ModelFiles.load(
        _BERT_CONFIG_FILE.value, _VOCAB_FILE.value, lower, source
    )
    files.config.check_sequence_length(length)
    choice.check(files.config.num_hidden_layers)
    source_file, path = _INPUT_FILE.value, _OUTPUT_FILE.value
    total = count_lines(source_file) if source_file else None
    strategy = set_up_distribution()
    with strategy.scope():
        model = modeling.Bert(files.config)
        checkpoints.restore_weights(model.variables, source)
    vocab, unit = files.pieces(), vectors.unit
    if _EXPORT_DIR.value:
        made = export_features.extractor(
            model, vocab, lower, length, choice, unit, vectors.normalize
        )
        export.save(_EXPORT_DIR.value, made, _OVERWRITE.value)
        logging.info("Wrote the SavedModel %s.", _EXPORT_DIR.value)
    if not source_file:
        return
    extractor = features.Extractor(
        strategy,
        model,
        choice,
        unit,
        _BATCH_SIZE.value,
        length,
        vectors.normalize,
    )
    reader = features.Reader(vocab, lower, length, unit == "word")
    texts = (text for _, text in common.lines(source_file))
    most = features.lines_in_memory(
        choice, unit, files.config.hidden_size, length
    )
    window = min(_WINDOW.value, max(most, _BATCH_SIZE.value))
    windows = features.windows(texts, window)
    phase = phases.Phase("Making vectors", "lines", total)
    file_format = _OUTPUT_FORMAT.value or feature_files.format_of(path)
    epath.Path(path).parent.mkdir(parents=True, exist_ok=True)
    with feature_files.writer(path, file_format, choice, unit, vocab) as output:
        count, cut = write_features(extractor, reader, windows, output, phase)
    if cut:
        logging.warning(
            "%d of %d lines were longer than --max_seq_length=%d and were cut.",
            *(cut, count, length),
        )
    logging.info("Wrote %s.", path)


if __name__ == "__main__":
    command_line.run(main)
