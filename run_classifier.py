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
import tempfile
from collections.abc import Mapping

from bert_tf import (
    checkpoints,
    command_line,
    common_flags,
    distribution,
    export,
    fine_tuning,
    heads,
    losses,
    optimization_flags,
    progress,
    task_flags,
    text_ops,
    text_records,
    tokenization,
    training,
)
from bert_tf.tasks import classification, glue, predictions

import tensorflow as tf
from absl import flags, logging

flags.adopt_module_key_flags(common_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(task_flags)

# ---- Flags: the model -------------------------------------------------------

_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file",
    None,
    "The model's vocabulary. By default what comes with init_checkpoint, or "
    "that of the run in output_dir.",
)
_DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", True, "True for uncased models, False for cased ones."
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    128,
    "Pieces per example; longer ones are cut, shorter ones padded.",
    lower_bound=4,
)

# ---- Flags: the run ---------------------------------------------------------

_DO_TRAIN = flags.DEFINE_bool("do_train", False, "Whether to train.")
_DO_EVAL = flags.DEFINE_bool(
    "do_eval",
    False,
    "Whether to evaluate on the dev set; with --do_train after each epoch.",
)
_DO_PREDICT = flags.DEFINE_bool(
    "do_predict", False, "Whether to predict the test set."
)
_DO_EXPORT = flags.DEFINE_bool(
    "do_export", False, "Whether to write a SavedModel to output_dir/export."
)
_TRAIN_BATCH_SIZE = flags.DEFINE_integer(
    "train_batch_size", 32, "Examples per step, over all replicas.", 1
)
_EVAL_BATCH_SIZE = flags.DEFINE_integer(
    "eval_batch_size", 8, "Examples per step, over all replicas.", 1
)
_PREDICT_BATCH_SIZE = flags.DEFINE_integer(
    "predict_batch_size", 8, "Examples per step, over all replicas.", 1
)
_ACCUMULATE = flags.DEFINE_integer(
    "gradient_accumulation_steps",
    1,
    "Micro-batches per step: less memory, the same update.",
    1,
)
_NUM_TRAIN_EPOCHS = flags.DEFINE_float(
    "num_train_epochs", 3.0, "Passes over the training set.", 0
)
_WARMUP_PROPORTION = flags.DEFINE_float(
    "warmup_proportion", 0.1, "Share of the steps that warm up.", 0, 1
)
_GROUP_BY_LENGTH = flags.DEFINE_bool(
    "group_by_length",
    None,
    "Whether examples of about one length share a batch, which leaves little "
    "padding to compute. By default yes, but on TPUs, which need one shape.",
)
_USE_CHECKPOINT = flags.DEFINE_enum(
    "use_checkpoint",
    "best",
    ("best", "last"),
    "What to evaluate, predict and export with after training: the epoch "
    "with the best dev score (ties to the earlier), or the last.",
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


def splits_to_read(task, data_dir, do_train, do_eval, do_predict):
    """Lists the splits that the run reads; ValueError if the task has none."""
    splits = []
    if do_train:
        classification.check_split(task, "train")
        splits.append("train")
    if do_eval:
        splits += classification.with_mismatched(task, data_dir, "dev")
    if do_predict:
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


def write_records(strategy, folder, task, data_dir, splits, encoder):
    """Writes the records of each split: all data is checked before training.

    Returns:
        Split -> its records.
    """
    if distribution.is_chief(strategy):
        common_flags.make_output_dir()
    else:  # Each worker reads records of its own.
        folder = tempfile.mkdtemp()
    data = {}
    for split in splits:
        examples = read_examples(task, data_dir, split)
        path = os.path.join(folder, _RECORD_FILES[split])
        data[split] = encoder.write(path, examples, task.labels)
    return data


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run:
    """What every part of the run needs."""

    folder: str
    strategy: tf.distribute.Strategy
    task: classification.Task
    data: Mapping[str, text_records.TextRecords]
    model: heads.BertClassifier
    files: fine_tuning.ModelFiles

    @property
    def is_chief(self):
        """Whether this process writes the run's files."""
        return distribution.is_chief(self.strategy)


def train(run, plan, eval_batch_size):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    examples = run.data["train"].count
    with run.strategy.scope():
        optimizer = plan.make_optimizer(examples, run.model.bert.config)
        optimizer.build(run.model.trainable_variables)
        state = checkpoints.TrainState(
            run.model,
            optimizer,
            plan.seed,
            plan.keep_checkpoint_max,
            run.is_chief,
        )
        common_flags.restore(state)
    if run.is_chief:
        run.files.write(run.folder, run.task.labels)
    hooks = []
    if "dev" in run.data:
        best = fine_tuning.Best(run.folder, f"eval_{run.task.metrics[0]}")
        if not state.step and run.is_chief:
            best.clear()

        def after_epoch(step, _):
            results = evaluate(run, "dev", eval_batch_size)
            epoch = min(
                step * plan.batch_size / examples, plan.num_train_epochs
            )
            logging.info(
                "epoch %.2f  step %d  %s",
                epoch,
                step,
                "  ".join(
                    f"{key} {value:.4f}" for key, value in results.items()
                ),
            )
            if run.is_chief:
                best.offer(step, results, run.model)

        hooks.append((plan.steps_per_epoch(examples), after_epoch))
    objective = CLASSES if run.task.labels else SCORES
    fine_tuning.train(
        plan,
        run.folder,
        run.strategy,
        state,
        optimizer,
        objective,
        run.data["train"],
        hooks,
    )


def restore_trained(run, init_checkpoint, use_best):
    """Sets the model to fine-tuned weights, and returns their step."""
    source = fine_tuning.trained_checkpoint(
        run.folder, init_checkpoint, use_best
    )
    with run.strategy.scope():
        return fine_tuning.restore(run.model, source)


# ---- Evaluate and predict ---------------------------------------------------


def evaluate(run, split, batch_size):
    """Returns the results on one split."""
    logits, labels = fine_tuning.logits_and_labels(
        run.strategy, run.model, run.data[split], batch_size
    )
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
        logits, _ = fine_tuning.logits_and_labels(
            run.strategy, run.model, run.data[split], batch_size
        )
        if not run.is_chief:
            continue
        path = os.path.join(run.folder, f"test_results{_suffix(split)}.tsv")
        predictions.write_probabilities(path, logits)
        logging.info("Wrote %d predictions to %s.", len(logits), path)
        if glue_server_files:
            path = os.path.join(run.folder, run.task.server_files[split])
            predictions.write_server_file(path, run.task, logits)
            logging.info("Wrote the GLUE server's %s.", path)


def write_export(run, config, vocab, max_seq_length):
    """Writes the SavedModel, in the place of an earlier one of this run."""
    path = os.path.join(run.folder, "export")
    if tf.io.gfile.exists(path):
        tf.io.gfile.rmtree(path)
    export.save_classifier(
        path,
        run.model,
        config,
        vocab,
        run.files.do_lower_case,
        run.task.labels,
        max_seq_length,
        run.task.takes_pairs,
    )
    logging.info("Wrote the SavedModel %s.", path)


def _suffix(split: str) -> str:
    return "_mismatched" if split.endswith("_mismatched") else ""


def group_by_length(strategy):
    """Returns what --group_by_length says, or what suits the device."""
    is_tpu = distribution.is_tpu(strategy)
    if is_tpu and _GROUP_BY_LENGTH.value:
        raise ValueError(
            "--group_by_length gives batches of many shapes, and a TPU would "
            "compile each: leave it out."
        )
    if _GROUP_BY_LENGTH.value is None:
        return not is_tpu
    return _GROUP_BY_LENGTH.value


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    folder = common_flags.OUTPUT_DIR.value
    init_checkpoint = common_flags.INIT_CHECKPOINT.value
    do_train, do_eval = _DO_TRAIN.value, _DO_EVAL.value
    do_predict, do_export = _DO_PREDICT.value, _DO_EXPORT.value
    if not (do_train or do_eval or do_predict or do_export):
        raise ValueError(
            "At least one of --do_train, --do_eval, --do_predict and "
            "--do_export must be true."
        )
    recipe = optimization_flags.recipe()
    lower, length = _DO_LOWER_CASE.value, _MAX_SEQ_LENGTH.value
    tokenization.validate_case_matches_checkpoint(lower, init_checkpoint)
    task = task_flags.find_task(fine_tuning.read_labels(folder))
    data_dir = task_flags.DATA_DIR.value
    splits = splits_to_read(task, data_dir, do_train, do_eval, do_predict)
    if _GLUE_SERVER_FILES.value:
        glue.check_server_files(task)
    if not do_train:
        fine_tuning.check_labels(folder, task.labels)
    files = fine_tuning.ModelFiles.load(
        common_flags.model_file(
            common_flags.BERT_CONFIG_FILE.value, "bert_config.json"
        ),
        common_flags.model_file(_VOCAB_FILE.value, "vocab.txt"),
        lower,
        common_flags.open_init_checkpoint(),
    )
    config, vocab = files.config, files.pieces()
    config.check_sequence_length(length)

    strategy = common_flags.set_up_distribution()
    distribution.check_batch_size(
        strategy,
        "train_batch_size",
        _TRAIN_BATCH_SIZE.value,
        _ACCUMULATE.value,
    )
    for flag in (_EVAL_BATCH_SIZE, _PREDICT_BATCH_SIZE):
        distribution.check_batch_size(strategy, flag.name, flag.value)
    if common_flags.CHECK_ONLY.value:
        check_data(task, data_dir, splits)
        with strategy.scope():
            model = heads.BertClassifier(config, len(task.labels or ("score",)))
        common_flags.check_only(
            strategy,
            model,
            _IDENTITY,
            _TRAIN_BATCH_SIZE.value,
            _ACCUMULATE.value,
            {"S": length},
        )
        return
    if do_train:
        common_flags.prepare_output_dir(strategy, _IDENTITY)
    encoder = text_records.Encoder(text_ops.BertTokenizer(vocab, lower), length)
    data = write_records(strategy, folder, task, data_dir, splits, encoder)
    with strategy.scope():
        model = heads.BertClassifier(config, len(task.labels or ("score",)))
    run = Run(folder, strategy, task, data, model, files)
    if do_train:
        plan = fine_tuning.Plan(
            batch_size=_TRAIN_BATCH_SIZE.value,
            learning_rate=optimization_flags.LEARNING_RATE.value,
            num_train_epochs=_NUM_TRAIN_EPOCHS.value,
            warmup_proportion=_WARMUP_PROPORTION.value,
            accumulate=_ACCUMULATE.value,
            seed=common_flags.SEED.value,
            iterations_per_loop=common_flags.ITERATIONS_PER_LOOP.value,
            save_checkpoints_steps=common_flags.SAVE_CHECKPOINTS_STEPS.value,
            keep_checkpoint_max=common_flags.KEEP_CHECKPOINT_MAX.value,
            log_steps=common_flags.log_steps(),
            group_by_length=group_by_length(strategy),
            recipe=recipe,
            peak_flops=common_flags.PEAK_FLOPS.value,
            profile_steps=common_flags.profile_steps(),
            remat=common_flags.REMAT.value,
        )
        train(run, plan, _EVAL_BATCH_SIZE.value)
    if not (do_eval or do_predict or do_export):
        return
    use_best = _USE_CHECKPOINT.value == "best"
    step = restore_trained(run, init_checkpoint, use_best)
    if do_eval:
        write_evaluation(run, _EVAL_BATCH_SIZE.value, step)
    if do_predict:
        write_predictions(
            run, _PREDICT_BATCH_SIZE.value, _GLUE_SERVER_FILES.value
        )
    if do_export and run.is_chief:
        write_export(run, config, vocab, length)


if __name__ == "__main__":
    command_line.run(main)
