r"""Writes a trained model as a SavedModel that takes raw text.

What a run left in its folder, with whatever head it trained:
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --export_dir=/models/mrpc/1

Any checkpoint, of the original's run_classifier.py too:
    python export_saved_model.py --export_dir=/models/mrpc/1 \
        --init_checkpoint=/tmp/mrpc/model.ckpt-343 --task_name=MRPC \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --vocab_file=$BERT_BASE_DIR/vocab.txt --max_seq_length=128

A pre-trained model fills masked words, or with --head=next_sentence tells next
sentences; --head=encoder makes vectors of any. How to call the SavedModel is
described in bert_tf/export.py and, for each head, in bert_tf/export_*.py.
"""

from bert_tf import (
    command_line,
    flag_sections,
    output_paths,
    serving_flags,
)

from absl import flags

flags.adopt_module_key_flags(serving_flags)

# ---- Flags ------------------------------------------------------------------

_OUTPUT = flag_sections.Section("Output")

_EXPORT_DIR = _OUTPUT.output_path(
    "export_dir",
    "The new folder to write.",
    required=True,
    holds=flag_sections.NEW_FOLDER,
    own=output_paths.SAVED_MODEL,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace a SavedModel in export_dir."
)

command_line.start(__name__, later=("head",))

from bert_tf import export, serving_setup

from absl import logging


def main(_):
    """The whole export as an outline."""
    made = serving_setup.load()
    export.save(_EXPORT_DIR.value, made, _OVERWRITE.value)
    logging.info("Wrote %s.", _EXPORT_DIR.value)


if __name__ == "__main__":
    command_line.run(main)
