r"""Fine-tunes BERT to label words: entities, parts of speech, chunks.

Files are in CoNLL format: a word and its label on each line, an empty line
after each sentence. Named entity recognition on WNUT-17:
    python run_ner.py --do_train=true --do_eval=true --do_predict=true \
        --train_file=wnut17train.conll --dev_file=emerging.dev.conll \
        --test_file=emerging.test.annotated \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --max_seq_length=128 --train_batch_size=32 --learning_rate=5e-5 \
        --num_train_epochs=3.0 --output_dir=/tmp/wnut_output/

Each word's label is predicted at its first token (paper, section 5.3). Texts
longer than --max_seq_length are read in windows that overlap by half, and each
word's label comes from the window with the most context on both of its sides.

Files in output_dir: eval_results.txt and eval_report.txt (with a line for each
type). With --do_predict also test_predictions.conll (the test file with a
column of predictions), test_entities.jsonl (with the character offsets of
entities), test_results.txt and test_report.txt.

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping

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
from bert_tf.tasks.tagging import conll, schemes

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(distillation_flags)

# ---- Flags ------------------------------------------------------------------

_DATA = flag_sections.Section("Data")
_FILES = flag_sections.Section(
    "Data", only_with=("do_train", "do_eval", "do_predict")
)

_TRAIN_FILE = shared_flags.train_file(_DATA, "Training file.")
_DEV_FILE = shared_flags.dev_file(_DATA, "Dev file, for evaluation.")
_TEST_FILE = shared_flags.test_file(_DATA, "Test file, for prediction.")
_TEST_HAS_LABELS = _DATA.boolean(
    "test_has_labels",
    True,
    "Whether the test file has labels, against which predictions are scored.",
    only_with="do_predict",
    harmless=True,
)
_TOKEN_COLUMN = _FILES.integer(
    "token_column", 0, "Column of the words, from 0; -1 is the last."
)
_LABEL_COLUMN = _FILES.integer(
    "label_column", -1, "Column of the labels, from 0; -1 is the last."
)
_SEPARATOR = _FILES.choice(
    "separator",
    None,
    conll.SEPARATORS,
    "Separator of columns. By default, tab if the first line with a word "
    "contains one, otherwise space.",
)
_SCHEME = _DATA.choice(
    "scheme",
    None,
    (*schemes.SCHEMES, schemes.NO_SCHEME),
    "How labels mark entities; none if each word has an independent label. By "
    "default, the scheme of the run in output_dir, or else detected from the "
    "labels; IOB1 is never detected.",
)
_LABELS = _DATA.words(
    "labels",
    None,
    "All labels, comma separated. By default the sorted labels of "
    "--train_file, or the labels of the model in output_dir or "
    "init_checkpoint.",
)
_CONTEXT = _FILES.choice(
    "context",
    "sentence",
    conll.CONTEXTS,
    "Text that the model reads at a time. Documents start at -DOCSTART- lines.",
)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Tokens per window.", least=4
)

command_line.start(__name__)

from bert_tf import heads, losses
from bert_tf.checkpoints import tf1_files, trained_models
from bert_tf.encoders import families
from bert_tf.setup import (
    distillation_setup,
    fine_tuning_setup,
    run_setup,
    teachers,
    trained_setup,
)
from bert_tf.storage import input_files
from bert_tf.tasks.tagging import (
    predicting,
    tagging_model,
    tagging_records,
    tagging_results,
    tagging_splits,
    tagging_words,
)
from bert_tf.training import (
    distillation,
    fine_tuning,
    loop,
    progress,
    scoring,
)

import numpy as np
import tensorflow as tf
from absl import logging

# What a run in progress can't change.
_IDENTITY = (
    "train_file",
    "token_column",
    "label_column",
    "separator",
    "scheme",
    "labels",
    "context",
    "do_lower_case",
    "max_seq_length",
    "train_batch_size",
    "group_by_length",
    "seed",
    *distillation_flags.IDENTITY,
)
# Flags of reading texts: as in training, unless set.
_READING = ("context", "max_seq_length")


# ---- Objective: sums, to be divided by weights summed over all replicas -----


def word_weights(batch):
    """1 at the first token of each word, [B, S]."""
    return batch["label_weights"] * batch["row_weights"][:, tf.newaxis]


def weights(batch):
    """What the loss is divided by: the number of words."""
    return {"label": tf.reduce_sum(word_weights(batch))}


def sums(model, batch, dropout_seed):
    """Loss and accuracy sums of one replica's batch."""
    logits = model(batch, dropout_seed)  # [B, S, C]
    return {
        "label": losses.classification(
            logits, batch["label_ids"], word_weights(batch)
        )
    }


OBJECTIVE = loop.Objective(weights, sums)
COMPARISON = distillation.Comparison.from_loss("label", word_weights)


# ---- Data -------------------------------------------------------------------


def read_splits(work):
    """Reads the files that the run needs: split -> what is in it."""
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
        if name == "test":
            # Once more when a column of predictions is added.
            input_files.check_can_be_read_again(flag.value)
        has_labels = name != "test" or _TEST_HAS_LABELS.value
        columns = conll.Columns(
            _TOKEN_COLUMN.value,
            _LABEL_COLUMN.value if has_labels else None,
            _SEPARATOR.value,
        )
        splits[name] = tagging_splits.read(name, flag.value, columns)
    return splits


def find_scheme():
    """Returns the specified scheme, or else the scheme of training."""
    given = _SCHEME.value
    trained = trained_setup.said().get(_SCHEME.name)
    if given and trained and given != trained:
        raise InputError(
            f"The model of {trained_setup.folder()} was trained "
            f"with --scheme={trained}: give the same, or leave it out. "
            f"Received: scheme={given}"
        )
    return given or trained


def check_labels(folder, source, labels, do_train):
    """Raises InputError if the model to start from has other labels."""
    # A training that ended before its first checkpoint left no model.
    if not do_train or tf1_files.latest(folder):
        trained_models.check_labels(folder, labels)
    shape = source.shapes.get("cls/tagging/output_bias") if source else None
    if shape is None:
        return
    trained = source.labels or ()
    if trained != labels and (trained or shape != (len(labels),)):
        raise InputError(
            f"{source.path} was trained with {shape[0]} labels"
            f"{': ' * bool(trained)}{', '.join(trained)}. Give the same by "
            "--labels, in this order, or start from a model without a tagging "
            "head. "
            f"Received: labels={','.join(labels)}"
        )


def write_records(folder, splits, labels, encoder, seed):
    """Writes the records of each split: all data is checked before training.

    Those to train on are shuffled by `seed`.

    Returns:
        Split -> its records.
    """
    return {
        name: encoder.write(
            os.path.join(folder, f"{name}.tf_record"),
            tagging_words.group(split.sentences, _CONTEXT.value),
            labels,
            seed if name == "train" else None,
        )
        for name, split in splits.items()
    }


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run(fine_tuning.Run):
    """What every part of the run needs."""

    splits: Mapping[str, tagging_splits.Split]
    scheme: str


def train(run, plan, batch_size, teacher):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if "dev" in run.data:
        evaluation = scoring.Evaluation(
            tagging_results.metric(run.scheme),
            lambda: evaluate(run, "dev", batch_size)[0],
        )
    objective = distillation_setup.of_run(OBJECTIVE, COMPARISON, teacher, run)
    restore = functools.partial(fine_tuning_setup.restore, run.files)
    fine_tuning.train(run, plan, objective, restore, evaluation)


# ---- Evaluate and predict ---------------------------------------------------


def predict(run, split, batch_size):
    """Labels the words of one split.

    Returns:
        The label of each word, in the order of the file, and the mean loss.
    """
    length = run.data[split].max_seq_length
    outputs = predicting.best_labels(run.model, len(run.labels), length)
    parts = list(fine_tuning.predict(run, split, outputs, batch_size))
    labels = np.concatenate([part["labels"] for part in parts])
    labels = labels[labels >= 0]
    total = sum(part["losses"].sum(dtype=np.float64) for part in parts)
    return [run.labels[i] for i in labels], float(total / len(labels))


def evaluate(run, split, batch_size):
    """Returns the results on one split, and the label of each word."""
    predicted, loss = predict(run, split, batch_size)
    sentences = run.splits[split].sentences
    if run.splits[split].columns.label is None:
        return {}, predicted
    results = tagging_results.results(sentences, predicted, run.scheme)
    return results | {"eval_loss": loss}, predicted


def write_results(run, split, name, results, predicted, step):
    """Writes the results of one split, and the report of its types."""
    results |= {"loss": results["eval_loss"], "global_step": step}
    path = os.path.join(run.folder, f"{name}_results.txt")
    progress.write_results(path, results)
    path = os.path.join(run.folder, f"{name}_report.txt")
    sentences = run.splits[split].sentences
    tagging_results.write_report(path, sentences, predicted, run.scheme)


def write_evaluation(run, batch_size, step):
    """Writes eval_results.txt and eval_report.txt."""
    results, predicted = evaluate(run, "dev", batch_size)
    if run.is_chief:
        write_results(run, "dev", "eval", results, predicted, step)


def write_predictions(run, batch_size, step):
    """Writes the labels of the test set, and scores them if it can."""
    results, predicted = evaluate(run, "test", batch_size)
    if not run.is_chief:
        return
    split = run.splits["test"]
    path = os.path.join(run.folder, "test_predictions.conll")
    tagging_results.write_columns(
        path, split.path, split.columns, split.sentences, predicted
    )
    logging.info("Wrote %d predictions to %s.", len(predicted), path)
    path = os.path.join(run.folder, "test_entities.jsonl")
    tagging_results.write_entities(path, split.sentences, predicted, run.scheme)
    if results:
        write_results(run, "test", "test", results, predicted, step)


def write_export(run, max_seq_length):
    """Writes the SavedModel."""
    fine_tuning.write_export(
        run,
        tagging_model.tagger(
            run.model,
            run.files.config,
            run.files.vocabulary,
            run.labels,
            run.scheme,
            max_seq_length,
        ),
    )


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    folder = run_flags.OUTPUT_DIR.value
    work = fine_tuning_setup.work()
    trained_setup.take_flags(_READING)
    model_files = fine_tuning_setup.load_files()
    length = _MAX_SEQ_LENGTH.value
    model_files.config.check_sequence_length(length)
    if not work.train:
        trained_setup.check("tagging", _IDENTITY)
    source = run_setup.open_init_checkpoint()
    if _LABELS.value:
        check_labels(folder, source, tuple(_LABELS.value), work.train)
    splits = read_splits(work)
    known = trained_setup.labels()
    labels, scheme = tagging_splits.find_labels(
        _LABELS.value, find_scheme(), splits, known
    )
    check_labels(folder, source, labels, work.train)
    if work.train:
        teacher = teachers.find("tagging", model_files, length, labels)

    strategy = fine_tuning_setup.set_up_distribution()
    plan = fine_tuning_setup.plan(strategy)
    with strategy.scope():
        model = heads.BertTagger(families.make(model_files.config), len(labels))
    records_folder = fine_tuning_setup.make_folder(strategy, _IDENTITY)
    word_pieces = tagging_words.WordPieces(model_files.vocabulary)
    encoder = tagging_records.Encoder(word_pieces, length)
    seed = run_flags.SEED.value
    data = write_records(records_folder, splits, labels, encoder, seed)
    run = Run(
        folder, strategy, model, model_files, labels, data, splits, scheme
    )
    if work.train:
        train(run, plan, fine_tuning_flags.EVAL_BATCH_SIZE.value, teacher)
    if plan.check_only:
        fine_tuning_setup.report_check(run, "tagging", length)
        return
    if not (work.evaluate or work.predict or work.export):
        return
    step = trained_setup.restore(run, "tagging")
    if work.evaluate:
        write_evaluation(run, fine_tuning_flags.EVAL_BATCH_SIZE.value, step)
    if work.predict:
        write_predictions(run, fine_tuning_flags.PREDICT_BATCH_SIZE.value, step)
    if work.export and run.is_chief:
        write_export(run, length)


if __name__ == "__main__":
    command_line.run(main)
