"""Fine-tunes BERT to choose what follows a prompt: SWAG, RACE and the like.

SWAG, as in the paper (section 4.4):
    python run_multiple_choice.py --flagfile=configs/swag.flags \
        --train_file=$SWAG_DIR/train.csv --dev_file=$SWAG_DIR/val.csv \
        --init_checkpoint=$BERT_BASE_DIR --output_dir=/tmp/swag

A file is SWAG's CSV, or JSON lines: RACE's objects (article, question,
options, answer; or questions, options and answers of an article), or your own
{"prompt": ..., "choices": [...], "label": 0}. The model reads
`[CLS] prompt [SEP] choice [SEP]` of each choice; a long prompt is cut, its
choice is not.

Written to output_dir are eval_results.txt and, of --do_predict,
test_results.tsv (a row of probabilities for each problem, 0 where it has fewer
choices than others) and test_predictions.jsonl.

The same command again, after a crash or a kill, goes on where the newest
checkpoint stands and ends with the same weights.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence

from bert_tf import (
    choice_records,
    command_line,
    common_flags,
    export_multiple_choice,
    fine_tuning,
    fine_tuning_flags,
    heads,
    losses,
    optimization_flags,
    progress,
    text_ops,
    training,
)
from bert_tf.tasks import choices, classification, common, predictions

import scipy.special
import tensorflow as tf
from absl import flags, logging

flags.adopt_module_key_flags(common_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)

# ---- Flags ------------------------------------------------------------------

_TRAIN_FILE = flags.DEFINE_string("train_file", None, "To train on.")
_DEV_FILE = flags.DEFINE_string("dev_file", None, "To evaluate on.")
_TEST_FILE = flags.DEFINE_string(
    "test_file", None, "To predict; its labels are not read."
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    128,
    "Pieces of a prompt with a choice; longer prompts are cut.",
    lower_bound=4,
)

# What a run in progress can't change.
_IDENTITY = (
    *("train_file", "do_lower_case", "max_seq_length", "train_batch_size"),
    *("group_by_length", "seed"),
)


# ---- Objective: sums, to be divided by weights summed over all replicas -----


def weights(batch):
    """What the loss is divided by: the number of problems."""
    return {"choice": tf.reduce_sum(batch["row_weights"])}


def sums(model, batch, dropout_seed):
    """Loss and accuracy sums of one replica's batch."""
    logits = model(batch, dropout_seed)  # [B, K]
    return {
        "choice": losses.classification(
            logits, batch["label_ids"], batch["row_weights"]
        )
    }


OBJECTIVE = training.Objective(weights, sums)


# ---- Data -------------------------------------------------------------------


def read_splits(work):
    """Reads the files that the run needs: split -> problems."""
    splits = {}
    for name, wanted, flag in (
        ("train", work.train, _TRAIN_FILE),
        ("dev", work.evaluate, _DEV_FILE),
        ("test", work.predict, _TEST_FILE),
    ):
        if not wanted:
            continue
        if not flag.value:
            raise ValueError(f"Give --{flag.name}, the {name} set.")
        splits[name] = choices.read(flag.value, with_labels=name != "test")
        logging.info("Data: %d %s problems.", len(splits[name]), name)
    return splits


def write_records(folder, splits, encoder, seed):
    """Writes the records of each split: split -> its records.

    Those to train on are shuffled by `seed`.
    """
    return {
        name: encoder.write(
            os.path.join(folder, f"{name}.tf_record"),
            problems,
            seed if name == "train" else None,
        )
        for name, problems in splits.items()
    }


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run(fine_tuning.Run):
    """What every part of the run needs."""

    splits: Mapping[str, Sequence[choices.Problem]]


def train(run, plan, batch_size):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if "dev" in run.data:
        evaluation = fine_tuning.Evaluation(
            "eval_accuracy", lambda: evaluate(run, batch_size)
        )
    fine_tuning.train(run, plan, OBJECTIVE, common_flags.restore, evaluation)


# ---- Evaluate and predict ---------------------------------------------------


def evaluate(run, batch_size):
    """Returns the results on the dev set."""
    logits, labels = fine_tuning.logits_and_labels(run, "dev", batch_size)
    numbers = tuple(map(str, range(logits.shape[1])))
    task = classification.Task("choices", numbers, ("accuracy",), {})
    return predictions.results(task, logits, labels)


def write_evaluation(run, batch_size, step):
    """Writes eval_results.txt."""
    results = evaluate(run, batch_size)
    if run.is_chief:
        results |= {"loss": results["eval_loss"], "global_step": step}
        path = os.path.join(run.folder, "eval_results.txt")
        progress.write_results(path, results)


def write_predictions(run, batch_size):
    """Writes test_results.tsv and test_predictions.jsonl."""
    logits, _ = fine_tuning.logits_and_labels(run, "test", batch_size)
    if not run.is_chief:
        return
    path = os.path.join(run.folder, "test_results.tsv")
    predictions.write_probabilities(path, logits)
    rows = (
        (problem, row[: len(problem.choices)])
        for problem, row in zip(run.splits["test"], logits, strict=True)
    )
    common.write_lines(
        os.path.join(run.folder, "test_predictions.jsonl"),
        (
            json.dumps(
                {
                    "id": problem.key,
                    "choice": int(row.argmax()),
                    "probabilities": scipy.special.softmax(row).tolist(),
                }
            )
            for problem, row in rows
        ),
    )
    logging.info("Wrote %d predictions to %s.", len(logits), run.folder)


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    work = fine_tuning_flags.work()
    files = fine_tuning_flags.load_files()
    length = _MAX_SEQ_LENGTH.value
    files.config.check_sequence_length(length)
    splits = read_splits(work)
    if not work.train:
        fine_tuning_flags.check_trained("multiple_choice", _IDENTITY)

    strategy = fine_tuning_flags.set_up_distribution()
    plan = fine_tuning_flags.plan(strategy)
    with strategy.scope():
        model = heads.BertMultipleChoice(files.config)
    if common_flags.CHECK_ONLY.value:
        rows = max(
            (len(x.choices) for split in splits.values() for x in split),
            default=1,
        )
        fine_tuning_flags.check_only(strategy, model, _IDENTITY, length, rows)
        return
    folder = fine_tuning_flags.make_folder(strategy, _IDENTITY)
    vocab, lower = files.pieces(), files.do_lower_case
    encoder = choice_records.Encoder(
        text_ops.BertTokenizer(vocab, lower), length
    )
    data = write_records(folder, splits, encoder, common_flags.SEED.value)
    output_dir = common_flags.OUTPUT_DIR.value
    run = Run(output_dir, strategy, model, files, None, data, splits)
    if work.train:
        train(run, plan, fine_tuning_flags.EVAL_BATCH_SIZE.value)
    if not (work.evaluate or work.predict or work.export):
        return
    step = fine_tuning_flags.restore_trained(run, "multiple_choice")
    if work.evaluate:
        write_evaluation(run, fine_tuning_flags.EVAL_BATCH_SIZE.value, step)
    if work.predict:
        write_predictions(run, fine_tuning_flags.PREDICT_BATCH_SIZE.value)
    if work.export and run.is_chief:
        made = export_multiple_choice.chooser(
            model, files.config, vocab, lower, length
        )
        fine_tuning.write_export(run, made)


if __name__ == "__main__":
    command_line.run(main)
