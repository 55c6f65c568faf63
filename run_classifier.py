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
    "Tokens per example; longer examples are cut, shorter ones padded.",
    least=4,
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
from bert_tf.encoders import families
from bert_tf.exporting import saved_model
from bert_tf.setup import (
    auxiliary_lm,
    baselines_setup,
    classification_setup,
    distillation_setup,
    fine_tuning_setup,
    search_setup,
    teachers,
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
from bert_tf.text import long_documents, text_graph
from bert_tf.training import distribution, fine_tuning, progress, scoring

from absl import logging

# What a run in progress can't change.
_IDENTITY = (
    "task_name",
    "data_dir",
    "xnli_language",
    "train_file",
    "dev_fraction",
    "file_format",
    "has_header",
    "labels",
    "regression",
    "label_column",
    "text_a_column",
    "text_b_column",
    "label_separator",
    "class_weights",
    "double_unordered",
    "auxiliary_lm_weight",
    "long_documents",
    "window_stride",
    "do_lower_case",
    "max_seq_length",
    "train_batch_size",
    "group_by_length",
    "seed",
    *distillation_flags.IDENTITY,
)
# Flags of reading texts: as in training, unless set.
_READING = ("long_documents", "max_seq_length")
# What says which rows of the training file are held out.
_OF_HOLD_OUT = (
    "train_file",
    "file_format",
    "has_header",
    "dev_fraction",
    "seed",
)


# ---- Data -------------------------------------------------------------------

_RECORD_FILES = {
    "train": "train.tf_record",
    "dev": "eval.tf_record",
    "dev_mismatched": "eval_mismatched.tf_record",
    "test": "predict.tf_record",
    "test_mismatched": "predict_mismatched.tf_record",
}


def splits_to_read(task, data_dir, work):
    """Lists the splits that the run reads; InputError if the task has none."""
    splits = []
    if work.train:
        classification_task.check_split(task, "train")
        splits.append("train")
    if work.evaluate:
        splits += classification_task.with_mismatched(task, data_dir, "dev")
    if work.predict:
        splits += classification_task.with_mismatched(task, data_dir, "test")
    return splits


def read_split(task, data_dir, split):
    """Reads one split; --double_unordered doubles the pairs to train on."""
    examples = classification_task.read_split(task, data_dir, split)
    if split == "train" and _DOUBLE_UNORDERED.value and task.is_symmetric:
        logging.info("Training on each pair in both orders.")
        return classification_task.in_both_orders(examples)
    return examples


def write_records(folder, task, data_dir, splits, encoder, seed):
    """Writes the records of each split: all data is checked before training.

    Those to train on are shuffled by `seed`: a table may be sorted by label.

    Returns:
        Split -> its records.
    """
    if task.labels:
        logging.info("Labels: %s.", ", ".join(task.labels))
    return {
        split: encoder.write(
            os.path.join(folder, _RECORD_FILES[split]),
            read_split(task, data_dir, split),
            task.labels,
            task.is_multi_label,
            seed if split == "train" else None,
        )
        for split in splits
    }


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run(fine_tuning.Run):
    """What every part of the run needs."""

    task: classification_task.Task
    data_dir: str | None
    documents: long_documents.LongDocuments


def train(run, plan, class_weights, batch_size, teacher):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if "dev" in run.data:
        evaluation = scoring.Evaluation(
            f"eval_{run.task.metrics[0]}",
            lambda: evaluate(run, "dev", batch_size),
        )
    learned, run = with_teacher(run, plan, class_weights, batch_size, teacher)
    fine_tuning.train(
        run,
        plan,
        auxiliary_lm.of_run(learned, _AUXILIARY_LM_WEIGHT.value, run),
        functools.partial(
            fine_tuning_setup.restore,
            run.files,
            select=auxiliary_lm.select(
                _AUXILIARY_LM_WEIGHT.value, own_head(run.task)
            ),
        ),
        evaluation,
    )


def with_teacher(run, plan, class_weights, batch_size, teacher):
    """Returns what to minimize, and the run, whose records it may add to."""
    of_task = (
        objective.make_objective(run.task, class_weights),
        objective.comparison(run.task, class_weights),
        teacher,
        run,
    )
    by_logits = teacher and teacher.kind == "logits"
    is_asked_once = by_logits and _KEEP_TEACHER_LOGITS.value
    if is_asked_once:
        flag = fine_tuning_flags.EVAL_BATCH_SIZE
        distribution.check_batch_size(run.strategy, flag.name, batch_size)
    if not is_asked_once or plan.check_only:
        return distillation_setup.of_run(*of_task), run
    # Before the teacher, who takes long.
    fine_tuning.check(run, plan)
    steps = plan.steps(run.data["train"].count)
    if steps in tf1_files.numbered(run.folder):
        return distillation_setup.of_run(*of_task), run
    return distillation_setup.with_kept_logits(*of_task, batch_size)


def own_head(task):
    """Returns what takes of a checkpoint what this task can start from."""
    return functools.partial(
        trained_models.without_other_head, labels=task.labels
    )


# ---- Evaluate and predict ---------------------------------------------------


def evaluate(run, split, batch_size):
    """Returns the results on one split."""
    logits, labels = fine_tuning.logits_and_labels(run, split, batch_size)
    return predictions.results(run.task, logits, labels)


def write_evaluation(run, batch_size, step):
    """Writes eval_results.txt, as the original, and where the model errs.

    Returns the results by split, in the process that writes.
    """
    written = {}
    for split in (name for name in run.data if name.startswith("dev")):
        logits, labels = fine_tuning.logits_and_labels(run, split, batch_size)
        if not run.is_chief:
            continue
        results = predictions.results(run.task, logits, labels)
        results |= {"loss": results["eval_loss"], "global_step": step}
        written[split] = results
        path = _path(run, "eval_results{}.txt", split)
        progress.write_results(path, results)
        if run.labels:
            predicted = predictions.predicted(run.task, logits)
            path = _path(run, "eval_report{}.txt", split)
            reports.write(path, run.task, labels, predicted)
            path = _path(run, "confusion_matrix{}.png", split)
            reports.write_picture(path, run.task, labels, predicted)
    return written


def write_baselines(run, results, average):
    """Writes baselines.txt, which compares the results with baselines'."""
    # Slow to import, and only used here.
    from bert_tf.tasks.classification import baselines

    read = functools.partial(
        classification_task.read_split, run.task, run.data_dir
    )
    found = baselines.measure(
        run.task,
        read("train"),
        {split: read(split) for split in results},
        run_flags.SEED.value,
        average,
    )
    for split, rows in found.items():
        path = _path(run, "baselines{}.txt", split)
        baselines.write(path, run.task, results[split], rows)


def write_predictions(run, batch_size, with_texts, glue_server_files):
    """Writes the predictions: as the original, by name, for the server."""
    for split in (name for name in run.data if name.startswith("test")):
        logits, _ = fine_tuning.logits_and_labels(run, split, batch_size)
        if not run.is_chief:
            continue
        path = _path(run, "test_results{}.tsv", split)
        predictions.write_probabilities(path, logits, run.task.is_multi_label)
        logging.info("Wrote %d predictions to %s.", len(logits), path)
        path = _path(run, "predictions{}.jsonl", split)
        read = functools.partial(
            classification_task.read_split, run.task, run.data_dir, split
        )
        keys = (example.guid for example in read())
        texts = read(with_gold=True) if with_texts else None
        predictions.write_named(path, run.task, keys, logits, texts)
        logging.info("Wrote predictions with ids and labels to %s.", path)
        if glue_server_files:
            path = os.path.join(run.folder, run.task.server_files[split])
            predictions.write_server_file(path, run.task, logits)
            logging.info("Wrote the GLUE server's %s.", path)


def _path(run, name, split):
    suffix = "_mismatched" if split.endswith("_mismatched") else ""
    return os.path.join(run.folder, name.format(suffix))


def write_export(run, max_seq_length):
    """Writes the SavedModel."""
    fine_tuning.write_export(
        run,
        saved_model.classifier(
            run.model,
            run.files.config,
            run.files.vocabulary,
            run.labels,
            max_seq_length,
            run.task.takes_pairs,
            run.task.is_multi_label,
            run.documents,
        ),
    )


# ---- Main -------------------------------------------------------------------


def take_flags():
    """Sets the flags of reading texts as in training, unless specified."""
    trained_setup.take_flags(_READING)
    if classification_flags.LONG_DOCUMENTS.value == "windows":
        stride = classification_flags.WINDOW_STRIDE.name
        trained_setup.take_flags([stride])


def check_trained(folder, task, evaluate):
    """Raises InputError unless there is a trained model of these labels."""
    trained_models.check_labels(folder, task.labels)
    holds_out = evaluate and classification_flags.DEV_FRACTION.value
    source = trained_setup.check(
        "classification", _IDENTITY, _OF_HOLD_OUT if holds_out else ()
    )
    trained_models.check_classes(source, task.labels, task.is_multi_label)


def find_class_weights(folder, task, data_dir):
    """Returns how much each class counts, or None; InputError if not ours."""
    if tf1_files.latest(folder):  # The run resumes from it.
        trained_models.check_labels(folder, task.labels)
    examples = classification_task.read_split(task, data_dir, "train")
    return classification_setup.find_class_weights(task, examples)


def make_model(config, labels):
    """Returns a classifier; without labels it has a score alone."""
    return heads.BertClassifier(
        families.make(config), len(labels or ("score",))
    )


def main(_):
    """The whole run as an outline."""
    folder = run_flags.OUTPUT_DIR.value
    work = fine_tuning_setup.work()
    searches = search_setup.is_requested()
    take_flags()
    seed = run_flags.SEED.value
    known_labels = trained_setup.labels()
    task = classification_setup.find_task(known_labels, seed)
    if searches:
        search_setup.run(__file__, f"eval_{task.metrics[0]}")
        return
    data_dir = classification_flags.DATA_DIR.value
    splits = splits_to_read(task, data_dir, work)
    compares = work.evaluate and _BASELINES.value
    if compares:
        baselines_setup.check(task, data_dir, work.train)
    if work.predict and _GLUE_SERVER_FILES.value:
        glue.check_server_files(task)
    documents = classification_setup.find_long_documents(task)
    model_files = fine_tuning_setup.load_files().of_problem(task.is_multi_label)
    length = _MAX_SEQ_LENGTH.value
    model_files.config.check_sequence_length(length)
    if task.takes_pairs:
        model_files.config.check_reads_pairs(
            model_files.vocabulary.template.segments
        )
    else:
        model_files.config.check_reads_single_texts()
    auxiliary_lm.check(_AUXILIARY_LM_WEIGHT.value, model_files.config)
    documents.check(length - 2)
    if work.train:
        if work.evaluate and classification_flags.DEV_FRACTION.value:
            trained_setup.warn_of_hold_out(_OF_HOLD_OUT)
        class_weights = find_class_weights(folder, task, data_dir)
        teacher = teachers.find(
            "classification",
            model_files,
            length,
            task.labels,
            task.is_multi_label,
        )
    else:
        class_weights = None
        check_trained(folder, task, work.evaluate)

    strategy = fine_tuning_setup.set_up_distribution()
    plan = fine_tuning_setup.plan(strategy)
    with strategy.scope():
        model = make_model(model_files.config, task.labels)
    records_folder = fine_tuning_setup.make_folder(strategy, _IDENTITY)
    tokenizer = text_graph.make_tokenizer(model_files.vocabulary)
    encoder = text_records.Encoder(tokenizer, length, documents)
    average = None
    if compares:
        average = baselines_setup.find_average(model_files, tokenizer)
    data = write_records(records_folder, task, data_dir, splits, encoder, seed)
    run = Run(
        folder,
        strategy,
        model,
        model_files,
        task.labels,
        data,
        task,
        data_dir,
        documents,
    )
    if work.train:
        batch_size = fine_tuning_flags.EVAL_BATCH_SIZE.value
        train(run, plan, class_weights, batch_size, teacher)
    if plan.check_only:
        predictions = length if _AUXILIARY_LM_WEIGHT.value else 0
        fine_tuning_setup.report_check(
            run, "classification", length, predictions=predictions
        )
        return
    if not (work.evaluate or work.predict or work.export):
        return
    step = trained_setup.restore(run, "classification")
    if work.evaluate:
        results = write_evaluation(
            run, fine_tuning_flags.EVAL_BATCH_SIZE.value, step
        )
    if work.predict:
        write_predictions(
            run,
            fine_tuning_flags.PREDICT_BATCH_SIZE.value,
            _PREDICTIONS_WITH_TEXTS.value,
            _GLUE_SERVER_FILES.value,
        )
    if work.export and run.is_chief:
        write_export(run, length)
    if compares and run.is_chief:
        write_baselines(run, results, average)


if __name__ == "__main__":
    command_line.run(main)
