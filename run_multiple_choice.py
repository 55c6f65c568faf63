r"""Fine-tunes BERT to choose what follows a prompt: SWAG, RACE and the like.

SWAG, as in the paper (section 4.4):
    python run_multiple_choice.py --flagfile=configs/swag.flags \
        --train_file=$SWAG_DIR/train.csv --dev_file=$SWAG_DIR/val.csv \
        --init_checkpoint=$BERT_BASE_DIR --output_dir=/tmp/swag

A file is SWAG's CSV, or JSON lines: RACE's objects (article, question,
options, answer; or questions, options and answers of an article), or your own
{"prompt": ..., "choices": [...], "label": 0}. The model reads
`[CLS] prompt [SEP] choice [SEP]` for each choice. Long prompts are cut, but
choices are not.

Files in output_dir: eval_results.txt and, with --do_predict,
test_predictions.jsonl and test_results.tsv (a row of probabilities for each
problem, padded with 0 if others have more choices).

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError
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
    _DATA, "Test file, for prediction; its labels are not read."
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
    "Tokens of a prompt with a choice; longer prompts are cut.",
    least=4,
)

command_line.start(__name__)

from bert_tf import heads, losses
from bert_tf.encoders import families
from bert_tf.setup import (
    distillation_setup,
    fine_tuning_setup,
    teachers,
    trained_setup,
)
from bert_tf.tasks.classification import classification_task, predictions
from bert_tf.tasks.multiple_choice import (
    choice_model,
    choice_problems,
    choice_records,
    choice_results,
)
from bert_tf.text import text_graph
from bert_tf.training import (
    distillation,
    fine_tuning,
    loop,
    progress,
    scoring,
)

import tensorflow as tf
from absl import logging

# What a run in progress can't change.
_IDENTITY = (
    "train_file",
    "do_lower_case",
    "max_seq_length",
    "train_batch_size",
    "group_by_length",
    "seed",
    *distillation_flags.IDENTITY,
)
# Flags of reading texts: as in training, unless set.
_READING = ("max_seq_length",)


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


OBJECTIVE = loop.Objective(weights, sums)
COMPARISON = distillation.Comparison.from_loss(
    "choice", lambda batch: batch["row_weights"]
)


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
            raise InputError(f"Give --{flag.name}, the {name} set.")
        with_labels: bool | None = True
        if name == "test":
            # None: where the file has them, to be written as gold.
            with_labels = None if _PREDICTIONS_WITH_TEXTS.value else False
        splits[name] = choice_problems.read(flag.value, with_labels)
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

    splits: Mapping[str, Sequence[choice_problems.Problem]]


def train(run, plan, batch_size, teacher):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if "dev" in run.data:
        evaluation = scoring.Evaluation(
            "eval_accuracy", lambda: evaluate(run, batch_size)
        )
    objective = distillation_setup.of_run(OBJECTIVE, COMPARISON, teacher, run)
    restore = functools.partial(fine_tuning_setup.restore, run.files)
    fine_tuning.train(run, plan, objective, restore, evaluation)


# ---- Evaluate and predict ---------------------------------------------------


def evaluate(run, batch_size):
    """Returns the results on the dev set."""
    logits, labels = fine_tuning.logits_and_labels(run, "dev", batch_size)
    numbers = tuple(map(str, range(logits.shape[1])))
    task = classification_task.Task("choices", numbers, ("accuracy",), {})
    return predictions.results(task, logits, labels)


def write_evaluation(run, batch_size, step):
    """Writes eval_results.txt."""
    results = evaluate(run, batch_size)
    if run.is_chief:
        results |= {"loss": results["eval_loss"], "global_step": step}
        path = os.path.join(run.folder, "eval_results.txt")
        progress.write_results(path, results)


def write_predictions(run, batch_size, with_texts):
    """Writes test_results.tsv and test_predictions.jsonl."""
    logits, _ = fine_tuning.logits_and_labels(run, "test", batch_size)
    if not run.is_chief:
        return
    path = os.path.join(run.folder, "test_results.tsv")
    predictions.write_probabilities(path, logits)
    choice_results.write_predictions(
        os.path.join(run.folder, "test_predictions.jsonl"),
        run.splits["test"],
        logits,
        with_texts,
    )
    logging.info("Wrote %d predictions to %s.", len(logits), run.folder)


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    work = fine_tuning_setup.work()
    trained_setup.take_flags(_READING)
    model_files = fine_tuning_setup.load_files()
    length = _MAX_SEQ_LENGTH.value
    model_files.config.check_sequence_length(length)
    model_files.config.check_reads_pairs(
        model_files.vocabulary.template.segments
    )
    splits = read_splits(work)
    if not work.train:
        trained_setup.check("multiple_choice", _IDENTITY)
    else:
        teacher = teachers.find("multiple_choice", model_files, length)

    strategy = fine_tuning_setup.set_up_distribution()
    plan = fine_tuning_setup.plan(strategy)
    with strategy.scope():
        model = heads.BertMultipleChoice(families.make(model_files.config))
    folder = fine_tuning_setup.make_folder(strategy, _IDENTITY)
    tokenizer = text_graph.make_tokenizer(model_files.vocabulary)
    encoder = choice_records.Encoder(tokenizer, length)
    data = write_records(folder, splits, encoder, run_flags.SEED.value)
    output_dir = run_flags.OUTPUT_DIR.value
    run = Run(output_dir, strategy, model, model_files, None, data, splits)
    if work.train:
        train(run, plan, fine_tuning_flags.EVAL_BATCH_SIZE.value, teacher)
    if plan.check_only:
        rows = max(
            (len(x.choices) for split in splits.values() for x in split),
            default=1,
        )
        fine_tuning_setup.report_check(run, "multiple_choice", length, rows)
        return
    if not (work.evaluate or work.predict or work.export):
        return
    step = trained_setup.restore(run, "multiple_choice")
    if work.evaluate:
        write_evaluation(run, fine_tuning_flags.EVAL_BATCH_SIZE.value, step)
    if work.predict:
        write_predictions(
            run,
            fine_tuning_flags.PREDICT_BATCH_SIZE.value,
            _PREDICTIONS_WITH_TEXTS.value,
        )
    if work.export and run.is_chief:
        made = choice_model.chooser(
            model, model_files.config, model_files.vocabulary, length
        )
        fine_tuning.write_export(run, made)


if __name__ == "__main__":
    command_line.run(main)
