r"""Fine-tunes BERT to choose what follows a prompt: SWAG, RACE and the like.

SWAG, as in the paper (section 4.4):
    python run_multiple_choice.py --flagfile=configs/swag.flags \
        --train_file=$SWAG_DIR/train.csv --dev_file=$SWAG_DIR/val.csv \
        --init_checkpoint=$BERT_BASE_DIR --output_dir=/tmp/swag

A file is SWAG's CSV, or JSON lines: RACE's objects (article, question,
options, answer; or questions, options and answers of an article), or your own
{"prompt": ..., "choices": [...], "label": 0}. The model reads
`[CLS] prompt [SEP] choice [SEP]` for each choice. Long prompts are truncated. A
choice is truncated only if it is too long by itself.

Files in output_dir: eval_results.txt and, with --do_predict,
test_predictions.jsonl and test_results.tsv (a row of probabilities for each
problem, padded with 0 if others have more choices).

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

from bert_tf.flags import (
    command_line,
    distillation_flags,
    fine_tuning_flags,
    flag_sections,
    optimization_flags,
    run_flags,
    shared_flags,
)

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(distillation_flags)

# ---- Flags ------------------------------------------------------------------

_DATA = flag_sections.Section("Data")

_TRAIN_FILE = shared_flags.train_file(_DATA, "Training file.")
_DEV_FILE = shared_flags.dev_file(_DATA, "Dev file, for evaluation.")
_TEST_FILE = shared_flags.test_file(
    _DATA, "Test file, for prediction. Labels are optional."
)
_PREDICTIONS_WITH_TEXTS = flag_sections.Section(
    "Prediction", only_with="do_predict"
).boolean(
    "predictions_with_texts",
    False,
    "Adds the prompts and choices to test_predictions.jsonl and, if the test "
    "file has labels, the labels as gold.",
)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA,
    128,
    "Max length of a prompt with a choice, in tokens; longer prompts are "
    "truncated.",
    min=4,
)

command_line.start(__name__)

from bert_tf import heads
from bert_tf.errors import counted
from bert_tf.setup import fine_tune
from bert_tf.tasks.classification import classification_task, predictions
from bert_tf.tasks.multiple_choice import (
    choice_model,
    choice_problems,
    choice_records,
)
from bert_tf.text import text_graph
from bert_tf.training import distillation, fine_tuning

from absl import logging

# The objective's loss, and the weights of a batch's problems.
_LOSS = "choice", lambda batch: batch["row_weights"]


class MultipleChoice(fine_tune.Task):
    """Chooses what follows a prompt."""

    head = "multiple_choice"
    objective = fine_tuning.classification_objective(*_LOSS)
    comparison = distillation.Comparison.from_loss(*_LOSS)

    def read(self):
        self.splits = {}
        paths = (_TRAIN_FILE, _DEV_FILE, _TEST_FILE)
        for name, path in self.files_of_splits(*paths):
            with_labels: bool | None = True
            if name == "test":
                # None: where the file has them, to be written as gold.
                with_labels = None if _PREDICTIONS_WITH_TEXTS.value else False
            self.splits[name] = choice_problems.read(path, with_labels)
            logging.info("Data: %d %s problems.", len(self.splits[name]), name)
        self.rows = max(
            (len(x.choices) for split in self.splits.values() for x in split),
            default=1,
        )

    def make_model(self, encoder):
        return heads.BertMultipleChoice(encoder)

    def writer(self):
        tokenizer = text_graph.make_tokenizer(self.files.vocabulary)
        encoder = choice_records.Encoder(tokenizer, self.length)
        return lambda split, path, seed: encoder.write(
            path, self.splits[split], seed
        )

    def evaluate(self, run, batch_size):
        logits, labels = fine_tuning.logits_and_labels(run, "dev", batch_size)
        numbers = tuple(map(str, range(logits.shape[1])))
        task = classification_task.Task("choices", numbers, ("accuracy",), {})
        return predictions.results(task, logits, labels)

    def write_predictions(self, run, batch_size, step):
        """Writes test_results.tsv and test_predictions.jsonl."""
        logits, _ = fine_tuning.logits_and_labels(run, "test", batch_size)
        if not run.is_chief:
            return
        predictions.write_probabilities(run.path("test_results.tsv"), logits)
        choice_problems.write_predictions(
            run.path("test_predictions.jsonl"),
            self.splits["test"],
            logits,
            _PREDICTIONS_WITH_TEXTS.value,
        )
        number = counted(len(logits), "prediction")
        logging.info("Wrote %s to %s.", number, run.folder)

    def export(self, run):
        return choice_model.chooser(
            run.model, run.files.config, run.files.vocabulary, self.length
        )


def main(_):
    """Runs the task."""
    fine_tune.run_task(MultipleChoice())


if __name__ == "__main__":
    command_line.run(main)
