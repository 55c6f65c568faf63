"""Pre-trains BERT on masked words and next sentences.

    python run_pretraining.py \
        --input_file=/data/wiki/*.tfrecord \
        --output_dir=/runs/base \
        --bert_config_file=configs/models/base.json \
        --do_train=true --do_eval=true \
        --train_batch_size=256 --max_seq_length=128 \
        --max_predictions_per_seq=20 \
        --num_train_steps=900000 --num_warmup_steps=10000 \
        --learning_rate=1e-4

The same command again, after a crash or a kill, goes on where the newest
checkpoint stands and ends with the same weights.
"""

import os

from bert_tf import (
    checkpoints,
    command_line,
    common_flags,
    distribution,
    heads,
    input_pipeline,
    losses,
    modeling,
    optimization,
    progress,
    records,
    training,
)

import tensorflow as tf
from absl import flags, logging

flags.adopt_module_key_flags(common_flags)

# ---- Flags ------------------------------------------------------------------

_INPUT_FILE = flags.DEFINE_list(
    "input_file",
    None,
    "TFRecord files or globs, comma separated.",
    required=True,
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Tokens per sequence, as the data was made. By default what the "
    "manifest says, or 128.",
    lower_bound=1,
)
_MAX_PREDICTIONS_PER_SEQ = flags.DEFINE_integer(
    "max_predictions_per_seq",
    None,
    "Masked words per sequence at most, as the data was made. By default "
    "what the manifest says, or 20.",
    lower_bound=1,
)
_DO_TRAIN = flags.DEFINE_bool("do_train", False, "Whether to train.")
_DO_EVAL = flags.DEFINE_bool("do_eval", False, "Whether to evaluate.")
_TRAIN_BATCH_SIZE = flags.DEFINE_integer(
    "train_batch_size",
    32,
    "Sequences per step, over all replicas.",
    lower_bound=1,
)
_EVAL_BATCH_SIZE = flags.DEFINE_integer(
    "eval_batch_size",
    8,
    "Sequences per evaluation step, over all replicas.",
    lower_bound=1,
)
_LEARNING_RATE = flags.DEFINE_float(
    "learning_rate", 5e-5, "Peak learning rate of Adam.", lower_bound=0
)
_NUM_TRAIN_STEPS = flags.DEFINE_integer(
    "num_train_steps", 100000, "Training steps.", lower_bound=1
)
_NUM_WARMUP_STEPS = flags.DEFINE_integer(
    "num_warmup_steps", 10000, "Steps of linear warm-up.", lower_bound=0
)
_ACCUMULATE = flags.DEFINE_integer(
    "gradient_accumulation_steps",
    1,
    "Micro-batches per step: less memory, the same update.",
    lower_bound=1,
)
_MAX_EVAL_STEPS = flags.DEFINE_integer(
    "max_eval_steps", 100, "Evaluation steps at most.", lower_bound=1
)

# What a run in progress can't change.
_IDENTITY = (
    "input_file",
    "max_seq_length",
    "max_predictions_per_seq",
    "seed",
)


# ---- Objective: sums, to be divided by weights summed over all replicas -----


def _mask_weights(batch):
    """1 for real predictions of real rows, else 0, [B, P]."""
    return batch["masked_lm_weights"] * batch["row_weights"][:, tf.newaxis]


def weights(batch):
    """What each loss is divided by."""
    return {
        "masked_lm": tf.reduce_sum(_mask_weights(batch)),
        "next_sentence": tf.reduce_sum(batch["row_weights"]),
    }


def sums(model, batch, dropout_seed):
    """Loss and accuracy sums of one replica's batch."""
    words, next_sentence = model(batch, dropout_seed)  # [B, P, V], [B, 2]
    return {
        "masked_lm": losses.classification(
            words, batch["masked_lm_ids"], _mask_weights(batch)
        ),
        "next_sentence": losses.classification(
            next_sentence,
            batch["next_sentence_labels"][:, 0],
            batch["row_weights"],
        ),
    }


OBJECTIVE = training.Objective(weights, sums)


# ---- Data -------------------------------------------------------------------


def check_data(files, config, max_seq_length, max_predictions_per_seq):
    """Compares data, flags and model before any work.

    Returns:
        The sizes of the records, and the records in each file.
    """
    manifest = records.find_manifest(files)
    if manifest is None:
        logging.info("The records have no manifest; counting them.")
        lengths = {
            "S": max_seq_length or 128,
            "P": max_predictions_per_seq or 20,
        }
        counts = None
    else:
        lengths = {
            "S": max_seq_length or manifest.max_seq_length,
            "P": max_predictions_per_seq or manifest.max_predictions_per_seq,
        }
        config.check_vocab_size(
            manifest.vocab_size, "The vocabulary of the data"
        )
        counts = [shard.records for shard in manifest.shards]
    config.check_sequence_length(lengths["S"])
    records.PRETRAINING.check(files, lengths)
    return lengths, counts or records.count(files)


# ---- Train and evaluate -----------------------------------------------------


def train(strategy, state, optimizer, files, counts, lengths):
    """Trains from `state.step` to the last step."""
    stop = _NUM_TRAIN_STEPS.value
    if state.step >= stop:
        logging.info("The run in output_dir has made all %d steps.", stop)
        return
    folder, batch_size = common_flags.OUTPUT_DIR.value, _TRAIN_BATCH_SIZE.value
    batches = input_pipeline.train(
        files, counts, batch_size, common_flags.SEED.value, state.records
    )
    steps = training.make_train_steps(
        strategy,
        state.model,
        optimizer,
        OBJECTIVE,
        input_pipeline.distribute(
            strategy, batches, records.PRETRAINING, lengths
        ),
        common_flags.SEED.value,
        _ACCUMULATE.value,
    )
    first_step, first_record = state.step, state.records

    def save(step, _):
        state.step = step
        state.records = first_record + (step - first_step) * batch_size
        state.save(folder)

    hooks = []
    if distribution.is_chief(strategy):
        meter = progress.Progress(folder, state.step, stop)
        hooks.append((common_flags.log_steps(), meter))
    with input_pipeline.explained(files):
        training.run(
            steps,
            state.step,
            stop,
            common_flags.ITERATIONS_PER_LOOP.value,
            save=(common_flags.SAVE_CHECKPOINTS_STEPS.value, save),
            hooks=hooks,
        )


def evaluate(strategy, state, files, lengths):
    """Evaluates the model and writes eval_results.txt, as the original."""
    batches = input_pipeline.evaluate(
        files, _EVAL_BATCH_SIZE.value, _MAX_EVAL_STEPS.value
    )
    dataset = input_pipeline.distribute(
        strategy, batches, records.PRETRAINING, lengths
    )
    with input_pipeline.explained(files):
        results = training.evaluate(strategy, state.model, OBJECTIVE, dataset)
    results["global_step"] = state.step
    if distribution.is_chief(strategy):
        path = os.path.join(common_flags.OUTPUT_DIR.value, "eval_results.txt")
        progress.write_results(path, results)


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    if not _DO_TRAIN.value and not _DO_EVAL.value:
        raise ValueError(
            "At least one of --do_train and --do_eval must be true."
        )
    strategy = common_flags.set_up_distribution()
    config = modeling.BertConfig.from_json_file(
        common_flags.BERT_CONFIG_FILE.value
    )
    files = records.expand(_INPUT_FILE.value)
    lengths, counts = check_data(
        files, config, _MAX_SEQ_LENGTH.value, _MAX_PREDICTIONS_PER_SEQ.value
    )
    schedule = optimization.linear_warmup_decay(
        _LEARNING_RATE.value, _NUM_WARMUP_STEPS.value, _NUM_TRAIN_STEPS.value
    )
    if _DO_TRAIN.value:
        common_flags.prepare_output_dir(strategy, _IDENTITY)
    logging.info(
        "%d records in %d files, %d replicas.",
        sum(counts),
        len(files),
        strategy.num_replicas_in_sync,
    )
    with strategy.scope():
        model = heads.BertPretrainer(config)
        optimizer = optimization.AdamWeightDecay(schedule)
        optimizer.build(model.trainable_variables)
        state = checkpoints.TrainState(
            model,
            optimizer,
            common_flags.SEED.value,
            common_flags.KEEP_CHECKPOINT_MAX.value,
            distribution.is_chief(strategy),
        )
        common_flags.restore(state)
    if _DO_TRAIN.value:
        train(strategy, state, optimizer, files, counts, lengths)
    if _DO_EVAL.value:
        evaluate(strategy, state, files, lengths)


if __name__ == "__main__":
    command_line.run(main)
