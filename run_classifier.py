r"""Fine-tunes BERT to classify texts or pairs of texts, or to score them.

A task of GLUE, or XNLI, from its files:
    python run_classifier.py --task_name=MRPC \
        --do_train=true --do_eval=true --data_dir=$GLUE_DIR/MRPC \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 \
        --num_train_epochs=3.0 --output_dir=/tmp/mrpc_output/
Without --data_dir, GLUE tasks come from TensorFlow Datasets.

Your own table of texts, as TSV, CSV or JSON lines:
    python run_classifier.py --train_file=train.csv --dev_file=dev.csv \
        --text_a_column=review --label_column=stars --do_train --do_eval ...

Files in output_dir: eval_results.txt, and for classes eval_report.txt and
confusion_matrix.png (which needs matplotlib). With --baselines also
baselines.txt. With --do_predict also test_results.tsv, as in the original, and
predictions.jsonl with ids, labels and probabilities by name.

To search for the best learning rate, batch size and number of epochs:
    python run_classifier.py --search=10 --do_train --do_eval ...

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses
import functools
import os

from bert_tf.flags import (
    classification_flags,
    command_line,
    distillation_flags,
    fine_tuning_flags,
    flag_sections,
    optimization_flags,
    run_flags,
    search_flags,
    shared_flags,
)

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(classification_flags)
flags.adopt_module_key_flags(distillation_flags)
flags.adopt_module_key_flags(search_flags)

# ---- Flags ------------------------------------------------------------------

_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    flag_sections.Section("Data"),
    128,
    "Max length of an example, in tokens; longer examples are truncated.",
    min=4,
)
_TRAINING = flag_sections.Section("Training", only_with="do_train")
_AUXILIARY_LM_WEIGHT = _TRAINING.number(
    "auxiliary_lm_weight",
    None,
    "Weight of the auxiliary language-model loss, for left-to-right models. "
    "GPT used 0.5.",
    above=0,
)
_DOUBLE_UNORDERED = shared_flags.double_unordered(
    _TRAINING, only_with="task_name", harmless=True
)
_BASELINES = flag_sections.Section("Evaluation", only_with="do_eval").boolean(
    "baselines",
    False,
    "Also trains and evaluates simple baselines: the majority class, TF-IDF "
    "with logistic regression and, with --word_vectors, averaged word vectors. "
    "Without --do_train, the training data is needed as well.",
    only_with="!search",
)
_PREDICTION = flag_sections.Section("Prediction", only_with="do_predict")
_PREDICTIONS_WITH_TEXTS = _PREDICTION.boolean(
    "predictions_with_texts",
    False,
    "Adds the texts to predictions.jsonl and, if the test file has labels, the "
    "labels as gold.",
)
_GLUE_SERVER_FILES = _PREDICTION.boolean(
    "glue_server_files",
    False,
    "Also writes predictions for the GLUE server, such as MRPC.tsv.",
    only_with="task_name",
)

_KEEP_TEACHER_LOGITS = flag_sections.Section(
    "Distillation", only_with="teacher"
).boolean(
    "keep_teacher_logits",
    True,
    "Computes the teacher's logits of all examples once, before the first "
    "step, and stores them with the records.",
    only_with=distillation_flags.BY_LOGITS,
)

command_line.start(__name__, later=("long_documents",))

from bert_tf import heads
from bert_tf.checkpoints import tf1_files, trained_models
from bert_tf.errors import counted, listed
from bert_tf.exporting import saved_model
from bert_tf.setup import (
    auxiliary_lm,
    classification_setup,
    distillation_setup,
    fine_tune,
    search_setup,
    trained_setup,
)
from bert_tf.tasks.classification import (
    classification_task,
    glue,
    objective,
    predictions,
    reports,
    text_records,
)
from bert_tf.text import text_graph
from bert_tf.training import distribution, fine_tuning

from absl import logging

# Flags that determine which rows of the training file are held out, together
# with the columns, as rows that lack one are left out before.
_HOLD_OUT = (
    "train_file",
    "file_format",
    "has_header",
    "dev_fraction",
    "seed",
)
_COLUMNS = ("label_column", "text_a_column", "text_b_column", "label_separator")


def find_task():
    """Returns the task that the flags describe."""
    return classification_setup.find_task(
        trained_setup.labels(), run_flags.SEED.value
    )


class Classification(fine_tune.Task):
    """Classifies texts or pairs of texts, or scores them."""

    head = "classification"
    identity = (
        *("task_name", "data_dir", "xnli_language", "dev_fraction"),
        *("file_format", "has_header", "labels", "regression"),
        *_COLUMNS,
        *("class_weights", "double_unordered", "auxiliary_lm_weight"),
        *("long_documents", "window_stride"),
    )
    reading = (
        "long_documents",
        "max_seq_length",
        "regression",
        "label_separator",
    )
    more_reading = ("do_lower_case", "window_stride", "text_b_column")

    def prepare(self):
        """Finds the task and its splits."""
        if classification_flags.LONG_DOCUMENTS.value == "windows":
            stride = classification_flags.WINDOW_STRIDE.name
            trained_setup.take_flags([stride])
        self.task = task = find_task()
        self.metric = f"eval_{task.metrics[0]}"
        self.labels, self.takes_pairs = task.labels, task.takes_pairs
        self.is_multi_label = task.is_multi_label
        self.data_dir = classification_flags.DATA_DIR.value
        if self.data_dir and "dev" in task.splits:
            dev_file = task.splits["dev"].file
            self.published = (os.path.join(self.data_dir, dev_file),)
        if self.work.evaluate and classification_flags.DEV_FRACTION.value:
            self.hold_out = _HOLD_OUT
        find = functools.partial(
            classification_task.with_mismatched, task, self.data_dir
        )
        self.splits = [x for split in self.work.splits for x in find(split)]
        self.has_baselines = self.work.evaluate and _BASELINES.value
        if self.has_baselines:
            classification_setup.check_baselines(
                task, self.data_dir, self.work.train
            )
        if self.work.predict and _GLUE_SERVER_FILES.value:
            glue.check_server_files(task)
        self.documents = classification_setup.find_long_documents(task)

    def load_files(self):
        """Reads the config, with the kind of labels, and the vocabulary."""
        return super().load_files().of_problem(self.is_multi_label)

    def check_trained(self):
        """Returns the trained weights; InputError if their labels differ."""
        self.check_labels()
        source = super().check_trained()
        trained_models.check_classes(source, self.labels, self.is_multi_label)
        return source

    def check_labels(self):
        """Raises InputError if the model in output_dir has other labels."""
        task_name = classification_flags.TASK_NAME.value
        folder = run_flags.OUTPUT_DIR.value
        trained_models.check_labels(folder, self.labels, task_name)

    def read(self):
        """Checks the settings, and finds the weights of the classes."""
        weight = _AUXILIARY_LM_WEIGHT.value
        if weight:
            auxiliary_lm.check(weight, self.files.config)
        self.predicted_tokens = self.length if weight else 0
        special = self.files.vocabulary.template.special(1)
        self.documents.check(self.length - special)
        if not self.work.train:
            return
        if self.hold_out:
            trained_setup.warn_of_hold_out((*self.hold_out, *_COLUMNS))
        if tf1_files.latest(run_flags.OUTPUT_DIR.value):  # The run resumes.
            self.check_labels()
        class_weights = classification_setup.find_class_weights(
            self.task, self.examples("train")
        )
        self.objective = objective.make_objective(self.task, class_weights)
        self.comparison = objective.comparison(self.task, class_weights)

    def examples(self, split, **keywords):
        """Reads the examples of a split."""
        return classification_task.read_split(
            self.task, self.data_dir, split, **keywords
        )

    def record_file(self, split):
        name = super().record_file(split)
        return name.replace("dev", "eval").replace("test", "predict")

    def writer(self):
        tokenizer = text_graph.make_tokenizer(self.files.vocabulary)
        encoder = text_records.Encoder(tokenizer, self.length, self.documents)
        if self.has_baselines:
            self.average = classification_setup.find_average(
                fine_tuning_flags.WORD_VECTORS.value, self.files, tokenizer
            )
        if self.labels:
            logging.info("Labels: %s.", listed(self.labels))
        return lambda split, path, seed: encoder.write(
            path,
            self.examples_to_write(split),
            self.labels,
            self.is_multi_label,
            seed,
        )

    def examples_to_write(self, split):
        """Reads a split; --double_unordered doubles the pairs to train on."""
        has_gold = self.task.splits[split].gold is not None
        if has_gold and _PREDICTIONS_WITH_TEXTS.value:
            # Errors in labels that are only shown come before the work, too.
            examples = self.examples(split, with_gold=True)
            return (dataclasses.replace(x, label=None) for x in examples)
        examples = self.examples(split)
        is_doubled = _DOUBLE_UNORDERED.value and self.task.is_symmetric
        if split == "train" and is_doubled:
            logging.info("Training on each pair in both orders.")
            return classification_task.in_both_orders(examples)
        return examples

    def make_model(self, encoder):
        """Adds the head to the encoder; without labels it has one score."""
        return heads.BertClassifier(encoder, len(self.labels or ("score",)))

    def make_objective(self, run, plan, teacher):
        if self.keeps_logits(run, plan, teacher):
            learned, run = distillation_setup.with_kept_logits(
                *(self.objective, self.comparison, teacher, run),
                fine_tuning_flags.EVAL_BATCH_SIZE.value,
            )
        else:
            learned, run = super().make_objective(run, plan, teacher)
        weight = _AUXILIARY_LM_WEIGHT.value
        if weight:
            learned = auxiliary_lm.of_run(learned, weight, run)
        return learned, run

    def keeps_logits(self, run, plan, teacher):
        """Whether to compute the teacher's logits before the first step."""
        by_logits = teacher and teacher.kind == "logits"
        if not (by_logits and _KEEP_TEACHER_LOGITS.value):
            return False
        flag = fine_tuning_flags.EVAL_BATCH_SIZE
        distribution.check_batch_size(run.strategy, flag.name, flag.value)
        if plan.check_only:
            return False
        # Checked before the teacher's logits, which take long.
        fine_tuning.check(run, plan)
        steps = plan.steps(run.data["train"].count)
        return steps not in tf1_files.numbered(run.folder)

    def select(self, source):
        """Selects the weights of a checkpoint that the task can start from."""
        source = trained_models.without_other_head(source, self.labels)
        if _AUXILIARY_LM_WEIGHT.value:
            return auxiliary_lm.without_head(source)
        return source

    def evaluate(self, run, batch_size):
        logits, labels = fine_tuning.logits_and_labels(run, "dev", batch_size)
        return predictions.results(self.task, logits, labels)

    def write_evaluation(self, run, batch_size, step):
        """Writes eval_results.txt and, for classes, a report and a picture."""
        self.results = {}
        for split in (name for name in run.data if name.startswith("dev")):
            logits, labels = fine_tuning.logits_and_labels(
                run, split, batch_size
            )
            if not run.is_chief:
                continue
            results = predictions.results(self.task, logits, labels)
            self.results[split] = results
            path = _path(run, "eval_results{}.txt", split)
            fine_tune.write_results(path, results, step)
            if self.labels:
                predicted = predictions.predicted(self.task, logits)
                path = _path(run, "eval_report{}.txt", split)
                reports.write(path, self.task, labels, predicted)
                path = _path(run, "confusion_matrix{}.png", split)
                reports.write_picture(path, self.task, labels, predicted)

    def write_predictions(self, run, batch_size, step):
        """Writes the probabilities, the labels and the GLUE server's files."""
        for split in (name for name in run.data if name.startswith("test")):
            logits, _ = fine_tuning.logits_and_labels(run, split, batch_size)
            if not run.is_chief:
                continue
            path = _path(run, "test_results{}.tsv", split)
            predictions.write_probabilities(path, logits, self.is_multi_label)
            number = counted(len(logits), "prediction")
            logging.info("Wrote %s to %s.", number, path)
            path = _path(run, "predictions{}.jsonl", split)
            keys = (example.guid for example in self.examples(split))
            texts = None
            if _PREDICTIONS_WITH_TEXTS.value:
                texts = self.examples(split, with_gold=True)
            predictions.write_named(path, self.task, keys, logits, texts)
            logging.info("Wrote predictions with ids and labels to %s.", path)
            if _GLUE_SERVER_FILES.value:
                path = run.path(self.task.server_files[split])
                predictions.write_server_file(path, self.task, logits)
                logging.info("Wrote the GLUE server's %s.", path)

    def export(self, run):
        return saved_model.classifier(
            run.model,
            run.files.config,
            run.files.vocabulary,
            self.labels,
            self.length,
            self.takes_pairs,
            self.is_multi_label,
            self.documents,
        )

    def finish(self, run):
        """With --baselines, writes baselines.txt."""
        if not (self.has_baselines and run.is_chief):
            return
        # Slow to import, and only used here.
        from bert_tf.tasks.classification import baselines

        found = baselines.measure(
            self.task,
            self.examples("train"),
            {split: self.examples(split) for split in self.results},
            run_flags.SEED.value,
            self.average,
        )
        for split, rows in found.items():
            path = _path(run, "baselines{}.txt", split)
            baselines.write(path, self.task, self.results[split], rows)


def _path(run, name, split):
    suffix = "_mismatched" if split.endswith("_mismatched") else ""
    return run.path(name.format(suffix))


def main(_):
    """Runs the task, or a search for its best settings."""
    if search_flags.SEARCH.value:
        search_setup.check()
        if not run_flags.CHECK_ONLY.value:
            search_setup.run(__file__, f"eval_{find_task().metrics[0]}")
            return
    else:
        search_setup.check_single_run()
    fine_tune.run_task(Classification())


if __name__ == "__main__":
    command_line.run(main)
