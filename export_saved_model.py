"""Writes a trained model as a SavedModel that takes raw text.

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

from bert_tf import command_line, export, serving_flags

from absl import flags, logging

flags.adopt_module_key_flags(serving_flags)

_EXPORT_DIR = flags.DEFINE_string(
    "export_dir", None, "The new folder to write.", required=True
)


def main(_):
    """The whole export as an outline."""
    export.check_target(_EXPORT_DIR.value)
    made = serving_flags.load()
    export.save(_EXPORT_DIR.value, made)
    logging.info("Wrote %s.", _EXPORT_DIR.value)


if __name__ == "__main__":
    command_line.run(main)
