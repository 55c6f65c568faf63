"""Fine-tunes BERT to classify texts or pairs of texts, or to score them.

A task of GLUE, or XNLI, from its files:
    python run_classifier.py --task_name=MRPC \
        --do_train=true --do_eval=true --data_dir=$GLUE_DIR/MRPC \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 \
        --num_train_epochs=3.0 --output_dir=/tmp/mrpc_output/
Without --data_dir the task comes from TensorFlow Datasets.

Your own table of texts, as TSV, CSV or JSON lines:
    python run_classifier.py --train_file=train.csv --dev_file=dev.csv \
        --text_a_column=review --label_column=stars --do_train --do_eval ...

The same command again, after a crash or a kill, goes on where the newest
checkpoint stands and ends with the same weights.
"""

import dataclasses
import os

from bert_tf import (
    command_line,
    common_flags,
    export,
    fine_tuned,
    fine_tuning,
    fine_tuning_flags,
    heads,
    losses,
    optimization_flags,
    progress,
    task_flags,
    text_ops,
    text_records,
    training,
)
from bert_tf.tasks import classification, glue, predictions

import tensorflow as tf
from absl import flags, logging

flags.adopt_module_key_flags(common_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(task_flags)

# ---- Flags ------------------------------------------------------------------

_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    128,
    "Pieces per example; longer ones are cut, shorter ones padded.",
    lower_bound=4,
)
_GLUE_SERVER_FILES = flags.DEFINE_bool(
    "glue_server_files",
    False,
    "Whether to write predictions for the GLUE server too, such as MRPC.tsv.",
)

# What a run in progress can't change.
_IDENTITY = (
    *("task_name", "data_dir", "xnli_language", "train_file", "dev_fraction"),
    *("file_format", "has_header", "labels", "regression", "label_column"),
    *("text_a_column", "text_b_column", "do_lower_case", "max_seq_length"),
    *("train_batch_size", "group_by_length", "seed"),
)


# ---- Objective: sums, to be divided by weights summed over all replicas -----


def rows(batch):
    """1 for real examples, 0 for filling, [B]."""
    return batch["row_weights"] * tf.cast(batch["is_real_example"], tf.float32)


def weights(batch):
    """What the loss is divided by."""
    return {"label": tf.reduce_sum(rows(batch))}


def class_sums(model, batch, dropout_seed):
    """Loss and accuracy sums of one replica's batch."""
    logits = model(batch, dropout_seed)  # [B, C]
    return {
        "label": losses.classification(logits, batch["label_ids"], rows(batch))
    }


def score_sums(model, batch, dropout_seed):
    """Loss sum of one replica's batch of scores."""
    scores = model(batch, dropout_seed)[:, 0]  # [B]
    return {"label": losses.regression(scores, batch["label_ids"], rows(batch))}


CLASSES = training.Objective(weights, class_sums)
SCORES = training.Objective(weights, score_sums)


# ---- Data -------------------------------------------------------------------

_RECORD_FILES = {
    "train": "train.tf_record",
    "dev": "eval.tf_record",
    "dev_mismatched": "eval_mismatched.tf_record",
    "test": "predict.tf_record",
    "test_mismatched": "predict_mismatched.tf_record",
}


def splits_to_read(task, data_dir, work):
    """Lists the splits that the run reads; ValueError if the task has none."""
    splits = []
    if work.train:
        classification.check_split(task, "train")
        splits.append("train")
    if work.evaluate:
        splits += classification.with_mismatched(task, data_dir, "dev")
    if work.predict:
        splits += classification.with_mismatched(task, data_dir, "test")
    return splits


def read_examples(task, data_dir, split):
    """Reads one split, from files or from TensorFlow Datasets."""
    if data_dir or task.name == classification.CUSTOM:
        return classification.read(task, data_dir or "", split)
    return classification.read_tfds(task, split)


def check_data(task, data_dir, splits):
    """Reads all examples, and so finds labels and columns that don't fit."""
    if task.labels:
        logging.info("Labels: %s.", ", ".join(task.labels))
    for split in splits:
        count = sum(1 for _ in read_examples(task, data_dir, split))
        logging.info("Data: %d %s examples.", count, split)


def write_records(folder, task, data_dir, splits, encoder):
    """Writes the records of each split: all data is checked before training.

    Returns:
        Split -> its records.
    """
    return {
        split: encoder.write(
            os.path.join(folder, _RECORD_FILES[split]),
            read_examples(task, data_dir, split),
            task.labels,
        )
        for split in splits
    }


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run(fine_tuning.Run):
    """What every part of the run needs."""

    task: classification.Task


def train(run, plan, batch_size):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if "dev" in run.data:
        evaluation = fine_tuning.Evaluation(
            f"eval_{run.task.metrics[0]}",
            lambda: evaluate(run, "dev", batch_size),
        )
    objective = CLASSES if run.labels else SCORES
    fine_tuning.train(run, plan, objective, common_flags.restore, evaluation)


# ---- Evaluate and predict ---------------------------------------------------


def evaluate(run, split, batch_size):
    """Returns the results on one split."""
    logits, labels = fine_tuning.logits_and_labels(run, split, batch_size)
    return predictions.results(run.task, logits, labels)


def write_evaluation(run, batch_size, step):
    """Writes eval_results.txt, as the original."""
    for split in (name for name in run.data if name.startswith("dev")):
        results = evaluate(run, split, batch_size)
        results |= {"loss": results["eval_loss"], "global_step": step}
        if run.is_chief:
            name = f"eval_results{_suffix(split)}.txt"
            progress.write_results(os.path.join(run.folder, name), results)


def write_predictions(run, batch_size, glue_server_files):
    """Writes test_results.tsv, as the original, and the server's file."""
    for split in (name for name in run.data if name.startswith("test")):
        logits, _ = fine_tuning.logits_and_labels(run, split, batch_size)
        if not run.is_chief:
            continue
        path = os.path.join(run.folder, f"test_results{_suffix(split)}.tsv")
        predictions.write_probabilities(path, logits)
        logging.info("Wrote %d predictions to %s.", len(logits), path)
        if glue_server_files:
            path = os.path.join(run.folder, run.task.server_files[split])
            predictions.write_server_file(path, run.task, logits)
            logging.info("Wrote the GLUE server's %s.", path)


def write_export(run, max_seq_length):
    """Writes the SavedModel."""
    fine_tuning.write_export(
        run,
        export.classifier(
            run.model,
            run.files.config,
            run.files.pieces(),
            run.files.do_lower_case,
            run.labels,
            max_seq_length,
            run.task.takes_pairs,
        ),
    )


def _suffix(split: str) -> str:
    return "_mismatched" if split.endswith("_mismatched") else ""


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    folder = common_flags.OUTPUT_DIR.value
    work = fine_tuning_flags.work()
    task = task_flags.find_task(fine_tuned.read_labels(folder))
    data_dir = task_flags.DATA_DIR.value
    splits = splits_to_read(task, data_dir, work)
    if _GLUE_SERVER_FILES.value:
        glue.check_server_files(task)
    if not work.train:
        fine_tuned.check_labels(folder, task.labels)
    files = fine_tuning_flags.load_files()
    length = _MAX_SEQ_LENGTH.value
    files.config.check_sequence_length(length)

    strategy = fine_tuning_flags.set_up_distribution()
    plan = fine_tuning_flags.plan(strategy)
    with strategy.scope():
        model = heads.BertClassifier(
            files.config, len(task.labels or ("score",))
        )
    if common_flags.CHECK_ONLY.value:
        check_data(task, data_dir, splits)
        fine_tuning_flags.check_only(strategy, model, _IDENTITY, length)
        return
    records_folder = fine_tuning_flags.make_folder(strategy, _IDENTITY)
    tokenizer = text_ops.BertTokenizer(files.pieces(), files.do_lower_case)
    encoder = text_records.Encoder(tokenizer, length)
    data = write_records(records_folder, task, data_dir, splits, encoder)
    run = Run(folder, strategy, model, files, task.labels, data, task)
    if work.train:
        train(run, plan, fine_tuning_flags.EVAL_BATCH_SIZE.value)
    if not (work.evaluate or work.predict or work.export):
        return
    step = fine_tuning_flags.restore_trained(run, "classification")
    if work.evaluate:
        write_evaluation(run, fine_tuning_flags.EVAL_BATCH_SIZE.value, step)
    if work.predict:
        write_predictions(
            run,
            fine_tuning_flags.PREDICT_BATCH_SIZE.value,
            _GLUE_SERVER_FILES.value,
        )
    if work.export and run.is_chief:
        write_export(run, length)


if __name__ == "__main__":
    command_line.run(main)
