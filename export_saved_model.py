r"""Writes a trained model as a SavedModel that takes raw text.

The model of a run, with its trained head:
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --export_dir=/models/mrpc/1

Any checkpoint, including those from the original's run_classifier.py:
    python export_saved_model.py --export_dir=/models/mrpc/1 \
        --init_checkpoint=/tmp/mrpc/model.ckpt-343 --task_name=MRPC \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --vocab_file=$BERT_BASE_DIR/vocab.txt --max_seq_length=128

For LiteRT or ONNX Runtime, with a quarter of the size (docs/formats.md):
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --export_dir=/models/mrpc_litert --format=litert --weights=int8
The next version of a model for TensorFlow Serving, with warm-up requests:
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --serving_dir=/models/mrpc

A pre-trained model predicts masked words or, with --head=next_sentence, next
sentences. With --head=encoder, any model returns vectors. docs/serving.md and
docs/tensorflow_serving.md describe how to call a SavedModel. The signatures of
each head are in bert_tf/tasks/*/*_model.py,
bert_tf/tasks/next_sentence_model.py and, for classifiers,
bert_tf/exporting/saved_model.py.
"""

from bert_tf import options
from bert_tf.flags import command_line, flag_sections, model_flags
from bert_tf.storage import written_files

from absl import flags

flags.adopt_module_key_flags(model_flags)

# ---- Flags ------------------------------------------------------------------

_OUTPUT = flag_sections.Section("Output")
_SERVING = flag_sections.Section("TensorFlow Serving")

_EXPORT_DIR = _OUTPUT.output_path(
    "export_dir",
    "The new folder to write.",
    holds=flag_sections.NEW_FOLDER,
    own=written_files.EXPORT,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite",
    False,
    "Whether to replace a model in export_dir.",
    only_with="export_dir",
)
_FORMAT = _OUTPUT.choice(
    "format",
    "saved_model",
    options.EXPORT_FORMATS,
    "Format for TensorFlow, which takes raw text, or for LiteRT or ONNX "
    "Runtime, which take input_ids.",
    only_with="export_dir",
)
_WEIGHTS = _OUTPUT.choice(
    "weights",
    "float32",
    options.EXPORT_WEIGHTS,
    "Data type of the weights; int8 is a quarter of the size.",
)
_SERVING_DIR = _SERVING.output_path(
    "serving_dir",
    "Folder of a served model; writes its next version. Replaces --export_dir.",
    holds=flag_sections.FOLDER,
    only_with="!export_dir",
)
_WARMUP_FILE = _SERVING.input_path(
    "warmup_file",
    "File of warm-up requests for the new version, in run_prediction.py's "
    "input format. By default, texts of all relevant lengths.",
    only_with="serving_dir",
)
_CONFIG_DIR = _SERVING.output_path(
    "config_dir",
    "Folder of the models.config to which the new version is added, and of "
    "batching.config.",
    holds=flag_sections.FOLDER,
    own=written_files.SERVER_CONFIGS,
    only_with="serving_dir",
)
command_line.start(__name__, later=("head",))

from bert_tf.errors import InputError
from bert_tf.exporting import runtimes, server_configs
from bert_tf.serving import publishing
from bert_tf.setup import model_setup

from absl import logging


def save_version(path, config_dir):
    """Writes the next version of a model, and says how to serve it."""
    publishing.check(path, _WARMUP_FILE.value)
    if config_dir:
        server_configs.check(config_dir, path)
    made = runtimes.with_weights(model_setup.load(), _WEIGHTS.value)
    number = publishing.publish(path, made, _WARMUP_FILE.value)
    logging.info("Wrote version %d, %s/%d.", number, path.rstrip("/"), number)
    if config_dir:
        label = server_configs.add(config_dir, path, number)
        logging.info(
            "%s/%s lists it%s.",
            config_dir.rstrip("/"),
            server_configs.MODELS,
            f", as {label}" * bool(label),
        )
    logging.info("To serve it: %s", server_configs.command(path, config_dir))


def main(_):
    """The whole export as an outline."""
    if _SERVING_DIR.value:
        save_version(_SERVING_DIR.value, _CONFIG_DIR.value)
        return
    if not _EXPORT_DIR.value:
        raise InputError(
            "Give --export_dir, a new folder to write, or --serving_dir, that "
            "of the versions of a model."
        )
    runtimes.check(_FORMAT.value, _WEIGHTS.value)
    runtimes.save(
        _EXPORT_DIR.value,
        model_setup.load(),
        _FORMAT.value,
        _WEIGHTS.value,
        _OVERWRITE.value,
    )
    logging.info("Wrote %s.", _EXPORT_DIR.value)


if __name__ == "__main__":
    command_line.run(main)
