r"""Writes a trained model as a SavedModel that takes raw text.

What a run left in its folder, with whatever head it trained:
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --export_dir=/models/mrpc/1

Any checkpoint, of the original's run_classifier.py too:
    python export_saved_model.py --export_dir=/models/mrpc/1 \
        --init_checkpoint=/tmp/mrpc/model.ckpt-343 --task_name=MRPC \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --vocab_file=$BERT_BASE_DIR/vocab.txt --max_seq_length=128

For LiteRT or ONNX Runtime, and a quarter of the size (docs/formats.md):
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --export_dir=/models/mrpc_litert --format=litert --weights=int8

A pre-trained model fills masked words, or with --head=next_sentence tells next
sentences; --head=encoder makes vectors of any. How to call the SavedModel is
described in docs/serving.md and, for each head, where it is made: in
bert_tf/tasks/*/saved_model.py, bert_tf/tasks/next_sentence.py and, for
classifiers, bert_tf/exporting/saved_model.py.
"""

from bert_tf import options
from bert_tf.flags import command_line, written_files
from bert_tf.flags import model as model_flags
from bert_tf.flags import sections as flag_sections

from absl import flags

flags.adopt_module_key_flags(model_flags)

# ---- Flags ------------------------------------------------------------------

_OUTPUT = flag_sections.Section("Output")

_EXPORT_DIR = _OUTPUT.output_path(
    "export_dir",
    "The new folder to write.",
    required=True,
    holds=flag_sections.NEW_FOLDER,
    own=written_files.EXPORT,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace a model in export_dir."
)
_FORMAT = _OUTPUT.choice(
    "format",
    "saved_model",
    options.EXPORT_FORMATS,
    "What runs it: TensorFlow, which takes raw text; LiteRT or ONNX Runtime, "
    "which take ids.",
)
_WEIGHTS = _OUTPUT.choice(
    "weights",
    "float32",
    options.EXPORT_WEIGHTS,
    "How weights are kept; int8 is a quarter of the size, but not of onnx.",
)

command_line.start(__name__, later=("head",))

from bert_tf.exporting import runtimes
from bert_tf.setup import model as model_setup

from absl import logging


def main(_):
    """The whole export as an outline."""
    runtimes.check(_FORMAT.value, _WEIGHTS.value)
    made = model_setup.load()
    runtimes.save(
        _EXPORT_DIR.value,
        made,
        _FORMAT.value,
        _WEIGHTS.value,
        _OVERWRITE.value,
    )
    logging.info("Wrote %s.", _EXPORT_DIR.value)


if __name__ == "__main__":
    command_line.run(main)
