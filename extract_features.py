"""Turns texts into vectors: BERT's layers as features.

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
"""

import time

from bert_tf import (
    checkpoints,
    command_line,
    distribution,
    export,
    export_features,
    feature_files,
    features,
    fine_tuned,
    modeling,
    tokenization,
)
from bert_tf.interop import formats
from bert_tf.tasks import common

from absl import flags, logging
from etils import epath

# ---- Flags: the original's --------------------------------------------------

_INPUT_FILE = flags.DEFINE_string("input_file", None, "A text on each line.")
_OUTPUT_FILE = flags.DEFINE_string("output_file", None, "What to write.")
_LAYERS = flags.DEFINE_list(
    "layers",
    "-1,-2,-3,-4",
    "Of --features=layers: numbers from 0, negative from the last.",
)
_BERT_CONFIG_FILE = flags.DEFINE_string(
    "bert_config_file",
    None,
    "The bert_config.json of the model. By default what comes with "
    "init_checkpoint.",
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length", 128, "Pieces of a line; longer ones are cut.", 4
)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint",
    None,
    "Checkpoint of the model, of any format.",
    required=True,
)
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file",
    None,
    "The model's vocabulary. By default what comes with init_checkpoint.",
)
_DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", True, "True for uncased models, False for cased ones."
)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Lines at a time.", 1)
_USE_TPU = flags.DEFINE_bool(
    "use_tpu", False, "The same as --distribution_strategy=tpu."
)
_NUM_TPU_CORES = flags.DEFINE_integer(
    "num_tpu_cores",
    None,
    "If given, the run stops unless the TPU has so many cores.",
    lower_bound=1,
)
_MASTER = flags.DEFINE_string(
    "master", None, "Of TF1. Refused; see --tpu_name."
)
_USE_ONE_HOT_EMBEDDINGS = flags.DEFINE_bool(
    "use_one_hot_embeddings", False, "Of TF1. Refused; see --use_tpu."
)

# ---- Flags: which features, and where they go -------------------------------

_FEATURES = flags.DEFINE_enum(
    "features",
    "layers",
    list(features.CHOICES),
    "What makes a vector: --layers, one each; or a choice of the paper's "
    "table 7.",
)
_LAYER_WEIGHTS = flags.DEFINE_list(
    "layer_weights",
    "",
    "Of --features=weighted_sum_last_four, from the last layer down. By "
    "default 0.25 each.",
)
_UNIT = flags.DEFINE_enum(
    "unit",
    "token",
    features.UNITS,
    "What has a vector: each token, as in the original; each word between "
    "white space, the mean of its pieces; the line, that of [CLS] or the mean "
    "of all tokens.",
)
_OUTPUT_FORMAT = flags.DEFINE_enum(
    "output_format",
    None,
    feature_files.FORMATS,
    "By default by the name's ending: .npy, .parquet, .tfrecord, or JSON "
    "lines.",
)
_EXPORT_DIR = flags.DEFINE_string(
    "export_dir", None, "New folder for a SavedModel of these features."
)
_WINDOW = flags.DEFINE_integer(
    "sort_window",
    4096,
    "Lines that are sorted by length together, and kept in memory.",
    lower_bound=1,
)

# ---- Flags: on what ---------------------------------------------------------

_DISTRIBUTION_STRATEGY = flags.DEFINE_enum(
    "distribution_strategy",
    None,
    ("default", "mirrored", "tpu"),
    "One device, all local GPUs, or a TPU. By default one device.",
)
_DTYPE = flags.DEFINE_enum(
    "dtype", "float32", distribution.DTYPES, "Number format of activations."
)
_TPU_NAME = flags.DEFINE_string(
    "tpu_name", None, "Name or grpc:// address of the TPU; none on its host."
)

# Seconds between lines of progress.
_LOG_SECONDS = 30


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
    if _LAYERS.present and _FEATURES.value != "layers":
        raise ValueError(
            "--layers goes with --features=layers. Received: "
            f"layers={','.join(_LAYERS.value)}, features={_FEATURES.value}"
        )
    if _EXPORT_DIR.value:
        export.check_target(_EXPORT_DIR.value)
    if _INPUT_FILE.value and not epath.Path(_INPUT_FILE.value).exists():
        raise FileNotFoundError(
            f"There is no such file. Received: {_INPUT_FILE.value}"
        )


def numbers(flag, kind):
    """Returns the numbers of a flag."""
    try:
        return tuple(map(kind, filter(None, flag.value)))
    except ValueError as error:
        raise ValueError(
            f"--{flag.name} takes numbers with commas between. "
            f"Received: {','.join(flag.value)}"
        ) from error


def set_up_distribution():
    """Returns the strategy that the flags ask for."""
    name = "tpu" if _USE_TPU.value else _DISTRIBUTION_STRATEGY.value
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


def write_features(extractor, reader, texts, output, window):
    """Writes the vectors of all lines, in order; logs how far it is."""
    began = logged = time.monotonic()
    count = cut = tokens = 0
    for part in features.windows(texts, window):
        lines = reader.read(part, count)
        output.write(lines, extractor.extract(lines))
        count += len(lines)
        cut += sum(line.is_cut for line in lines)
        tokens += sum(len(line.ids) for line in lines)
        now = time.monotonic()
        if now - logged > _LOG_SECONDS:
            logged = now
            logging.info("%s", rate(count, tokens, now - began))
    if not count:
        raise ValueError(f"{_INPUT_FILE.value} has no lines.")
    logging.info("%s", rate(count, tokens, time.monotonic() - began))
    if cut:
        logging.warning(
            "%d of %d lines were longer than --max_seq_length=%d and were cut.",
            *(cut, count, _MAX_SEQ_LENGTH.value),
        )


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
    choice = features.Choice(
        _FEATURES.value, numbers(_LAYERS, int), numbers(_LAYER_WEIGHTS, float)
    )
    lower, length = _DO_LOWER_CASE.value, _MAX_SEQ_LENGTH.value
    tokenization.validate_case_matches_checkpoint(lower, _INIT_CHECKPOINT.value)
    source = formats.open_checkpoint(_INIT_CHECKPOINT.value)
    files = fine_tuned.ModelFiles.load(
        _BERT_CONFIG_FILE.value, _VOCAB_FILE.value, lower, source
    )
    files.config.check_sequence_length(length)
    choice.check(files.config.num_hidden_layers)
    strategy = set_up_distribution()
    with strategy.scope():
        model = modeling.Bert(files.config)
        checkpoints.restore_weights(model.variables, source)
    vocab, unit = files.pieces(), _UNIT.value
    if _EXPORT_DIR.value:
        made = export_features.extractor(
            model, vocab, lower, length, choice, unit
        )
        export.save(_EXPORT_DIR.value, made)
        logging.info("Wrote the SavedModel %s.", _EXPORT_DIR.value)
    source_file, path = _INPUT_FILE.value, _OUTPUT_FILE.value
    if not (source_file and path):
        return
    extractor = features.Extractor(
        strategy, model, choice, unit, _BATCH_SIZE.value, length
    )
    reader = features.Reader(vocab, lower, length, unit == "word")
    texts = (text for _, text in common.lines(source_file))
    most = features.lines_in_memory(
        choice, unit, files.config.hidden_size, length
    )
    window = min(_WINDOW.value, max(most, _BATCH_SIZE.value))
    file_format = _OUTPUT_FORMAT.value or feature_files.format_of(path)
    with feature_files.writer(path, file_format, choice, unit, vocab) as output:
        write_features(extractor, reader, texts, output, window)
    logging.info("Wrote %s.", path)


if __name__ == "__main__":
    command_line.run(main)
