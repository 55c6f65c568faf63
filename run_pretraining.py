r"""Pre-trains BERT on masked words and next sentences.

    python run_pretraining.py \
        --input_file=/data/wiki/*.tfrecord \
        --output_dir=/runs/base \
        --bert_config_file=configs/models/base.json \
        --vocab_file=/data/vocab.txt \
        --do_train=true --do_eval=true \
        --train_batch_size=256 --max_seq_length=128 \
        --max_predictions_per_seq=20 \
        --num_train_steps=900000 --num_warmup_steps=10000 \
        --learning_rate=1e-4

The same command again, after a crash or a kill, goes on where the newest
checkpoint stands and ends with the same weights.
"""

import dataclasses
import os

from bert_tf import (
    command_line,
    common_flags,
    flag_sections,
    optimization_flags,
)

from absl import flags

flags.adopt_module_key_flags(common_flags)
flags.adopt_module_key_flags(optimization_flags)

# ---- Flags ------------------------------------------------------------------

_DATA = flag_sections.Section("Data")
_WORK = flag_sections.Section("What to do")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
_EVALUATION = flag_sections.Section(
    "Evaluation", only_with=("do_eval", "eval_steps")
)

_INPUT_FILE = _DATA.input_paths(
    "input_file",
    "TFRecord files or globs, comma separated.",
    required=True,
)
_MAX_SEQ_LENGTH = _DATA.integer(
    "max_seq_length",
    None,
    "Tokens per sequence, as the data was made. By default what the "
    "manifest says, or 128.",
    least=1,
)
_MAX_PREDICTIONS_PER_SEQ = _DATA.integer(
    "max_predictions_per_seq",
    None,
    "Masked words per sequence at most, as the data was made. By default "
    "what the manifest says, or 20.",
    least=1,
)
_VOCAB_FILE = _DATA.input_path(
    "vocab_file",
    "The vocabulary that the records were made with, to be kept beside the "
    "weights. By default that of the run in output_dir, or that of "
    "init_checkpoint, where it is the same.",
    holds=flag_sections.MODEL,
)
_DO_TRAIN = _WORK.boolean("do_train", False, "Whether to train.")
_DO_EVAL = _WORK.boolean("do_eval", False, "Whether to evaluate.")
_TRAIN_BATCH_SIZE = _TRAINING.integer(
    "train_batch_size", 32, "Sequences per step, over all replicas.", least=1
)
_NUM_TRAIN_STEPS = _TRAINING.integer(
    "num_train_steps", 100000, "Training steps.", least=1
)
_NUM_WARMUP_STEPS = _TRAINING.integer(
    "num_warmup_steps", 10000, "Steps of linear warm-up.", least=0
)
_ACCUMULATE = _TRAINING.integer(
    "gradient_accumulation_steps",
    1,
    "Micro-batches per step: less memory, the same update.",
    least=1,
)
_AUTO_BATCH_SIZE = _TRAINING.boolean(
    "auto_batch_size",
    False,
    "Sets --gradient_accumulation_steps so that micro-batches are as large as "
    "memory allows: by trial on GPUs and TPUs, by an estimate on CPUs.",
)
_USE_XLA = _TRAINING.boolean(
    "use_xla",
    False,
    "Whether XLA compiles the forward and backward pass of training: may be "
    "faster on GPUs, is slower on CPUs. Draws other dropout masks. TPUs always "
    "compile.",
    rare=True,
)
_EVAL_STEPS = _TRAINING.integer(
    "eval_steps",
    None,
    "Evaluates after so many training steps too; the results go to the log, "
    "metrics.jsonl and TensorBoard, the weights with the lowest loss to best/.",
    least=1,
)
_EARLY_STOP = _TRAINING.integer(
    "early_stop_evaluations",
    None,
    "Ends training when so many evaluations in turn brought no lower loss.",
    least=1,
    only_with="eval_steps",
)
_EVAL_FILE = _EVALUATION.input_paths(
    "eval_file",
    "TFRecord files or globs to evaluate on. By default those of input_file.",
)
_EVAL_BATCH_SIZE = _EVALUATION.integer(
    "eval_batch_size",
    8,
    "Sequences per evaluation step, over all replicas.",
    least=1,
)
_MAX_EVAL_STEPS = _EVALUATION.integer(
    "max_eval_steps", 100, "Evaluation steps at most.", least=1
)

command_line.start(__name__)

from bert_tf import (
    best,
    checkpoints,
    common_setup,
    devices,
    disk_space,
    distribution,
    files,
    heads,
    inference,
    input_pipeline,
    manifests,
    micro_batches,
    pretraining,
    pretraining_input,
    progress,
    recipes,
    training,
)
from bert_tf.interop import model_files, opened, tf1

from absl import logging

# What a run in progress can't change.
_IDENTITY = (
    "input_file",
    "max_seq_length",
    "max_predictions_per_seq",
    "seed",
)


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to train; the flags of the same names."""

    batch_size: int
    learning_rate: float
    num_warmup_steps: int
    num_train_steps: int
    accumulate: int | None  # None to find what fits into memory
    seed: int
    iterations_per_loop: int
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    log_steps: int
    recipe: recipes.Recipe
    peak_flops: float | None
    profile_steps: tuple[int, int] | None
    eval_steps: int | None  # between evaluations while training
    early_stop: int | None  # evaluations without a lower loss
    use_xla: bool
    check_only: bool  # stop before the first step, writing nothing

    def schedule(self):
        """The learning rate at each step."""
        return self.recipe.schedule(
            self.learning_rate, self.num_warmup_steps, self.num_train_steps
        )

    def check(self):
        """Raises ValueError where numbers contradict each other."""
        self.schedule()
        progress.check_profile(self.profile_steps, self.num_train_steps)

    def is_over(self, step, kept):
        """Whether too many evaluations brought nothing better than `kept`.

        A run that goes on knows it from the step of its best.
        """
        if not self.early_stop or not self.eval_steps or not kept.results:
            return False
        best_step = int(kept.results[checkpoints.GLOBAL_STEP])
        over = step - best_step >= self.early_stop * self.eval_steps
        if over:
            logging.info(
                "No lower loss since step %d: ending at step %d.",
                best_step,
                step,
            )
        return over


def train(plan, folder, strategy, model, data, evaluate, vocab):
    """Trains to the last step, from where the run in `folder` stopped.

    `evaluate` returns results; it is called at intervals. `vocab` is the
    text of a vocabulary to keep, or None.
    """
    is_chief = distribution.is_chief(strategy)
    writes = is_chief and not plan.check_only
    with strategy.scope():
        optimizer = plan.recipe.make_optimizer(
            plan.schedule(), model.bert.config.num_hidden_layers
        )
        optimizer.build(pretraining.trained_variables(model, data.objective))
        state = checkpoints.TrainState(
            model,
            optimizer,
            plan.seed,
            plan.keep_checkpoint_max,
            writes,
            plan.batch_size,
        )
        common_setup.restore(state)
    agree = distribution.agreement(strategy)
    distribution.check_same_step(agree, state.step)
    if is_chief:
        left = plan.num_train_steps - state.step
        disk_space.check_checkpoints(
            folder, state, left // plan.save_checkpoints_steps + 1
        )
    if plan.check_only:
        logging.info(
            "Would train from step %d to %d.", state.step, plan.num_train_steps
        )
        return state.step
    if is_chief and vocab is not None:
        files.write_text(os.path.join(folder, tf1.VOCAB), vocab)
    if state.step >= plan.num_train_steps:
        logging.info("The run has made all %d steps.", plan.num_train_steps)
        return state.step
    texts = {tf1.CONFIG: model.bert.config.to_json()}
    if vocab is not None:
        texts[tf1.VOCAB] = vocab
    kept = best.Best(folder, "loss", texts, lowest=True, write=is_chief)
    if not state.step:
        kept.clear()
    if plan.is_over(state.step, kept):
        return state.step
    batches = input_pipeline.train(
        data.files, data.counts, plan.batch_size, plan.seed, state.records
    )
    dataset = data.batches(strategy, batches, plan.seed, state.step)
    objective = pretraining.objective(data.objective)
    accumulate = plan.accumulate or find_accumulate(
        plan, folder, strategy, model, optimizer, data, dataset, state.step
    )
    steps = training.make_train_steps(
        strategy,
        model,
        optimizer,
        objective,
        dataset,
        plan.seed,
        accumulate,
        plan.use_xla,
    )
    first_step, first_record = state.step, state.records

    def save(step, _):
        state.step = step
        state.records = first_record + (step - first_step) * plan.batch_size
        state.save(folder)

    meter = devices.meter(
        strategy,
        model.bert.config,
        plan.recipe.dtype,
        plan.peak_flops,
        predictions="masked_lm",
    )
    report = progress.Progress(
        folder, state.step, plan.num_train_steps, is_chief, meter
    )
    hooks: list[tuple[training.Due, training.Hook]]
    hooks = [(plan.log_steps, report)]
    if plan.profile_steps:
        profile = progress.Profile(
            folder, plan.profile_steps, plan.num_train_steps
        )
        hooks.append((plan.profile_steps, profile))
    if plan.eval_steps:
        hook = evaluation_hook(plan, model, evaluate, kept, report)
        hooks.append((plan.eval_steps, hook))
    with input_pipeline.explained(data.files):
        return training.run(
            steps,
            state.step,
            plan.num_train_steps,
            plan.iterations_per_loop,
            save=(plan.save_checkpoints_steps, save),
            hooks=hooks,
            agree=agree,
        )


def evaluation_hook(plan, model, evaluate, kept, report):
    """Keeps the best weights, and ends a run that gets no better."""

    def hook(step, _):
        results = evaluate()
        kept.offer(step, results, model)
        best_step = int(kept.results[checkpoints.GLOBAL_STEP])
        report.evaluation(step, results, best_step)
        return plan.is_over(step, kept)

    return hook


def check_memory(plan, strategy, config, lengths):
    """Raises ValueError where a step on CPUs needs more than there is."""
    if not distribution.is_cpu(strategy):
        return
    rows = plan.batch_size // strategy.num_replicas_in_sync
    parts = plan.accumulate or rows  # --auto_batch_size may take single rows
    memory = devices.training_memory(
        *(config, rows // parts, lengths["S"], lengths["P"]),
        *(plan.recipe.dtype, common_flags.REMAT.value, parts),
    )
    devices.check_room_for_steps(
        memory,
        distribution.local_replicas(strategy),
        f"train_batch_size={plan.batch_size}",
    )


def find_accumulate(
    plan, folder, strategy, model, optimizer, data, dataset, start
):
    """Returns into how many micro-batches memory makes us cut a batch.

    A run that goes on keeps to what it found when it began: each micro-batch
    draws dropout of its own.
    """
    replicas = strategy.num_replicas_in_sync
    rows = plan.batch_size // replicas
    path = os.path.join(folder, "micro_batches.txt")
    found = micro_batches.noted(path, rows) if start else None
    if found:
        return found
    if distribution.is_cpu(strategy):
        fits = micro_batches.estimated(
            model.bert.config,
            rows,
            data.lengths["S"],
            data.lengths["P"],
            distribution.local_replicas(strategy),
            plan.recipe.dtype,
            model.bert.encoder.remat,
        )
    else:
        objective = pretraining.objective(data.objective)
        fits = micro_batches.tried(
            *(strategy, model, optimizer, objective, dataset),
            use_xla=plan.use_xla,
        )
    agree = distribution.agreement(strategy)
    found = micro_batches.most(rows, micro_batches.choose(rows, fits), agree)
    if distribution.is_chief(strategy):
        files.write_text(path, f"{found}\n")
    return found


# ---- Evaluate ---------------------------------------------------------------


def make_evaluation(strategy, model, data, batch_size, max_steps, seed):
    """Returns a function: the means over the first `max_steps` batches."""
    objective = pretraining.objective(data.objective)
    means = inference.make_evaluate(strategy, model, objective)

    # What there are, evenly over the replicas: the rest would be filling.
    replicas = strategy.num_replicas_in_sync
    batch_size = min(batch_size, -(-sum(data.counts) // replicas) * replicas)
    number = min(max_steps, -(-sum(data.counts) // batch_size))

    def evaluate():
        batches = input_pipeline.evaluate(data.files, batch_size, max_steps)
        with input_pipeline.explained(data.files):
            return means(data.batches(strategy, batches, seed), number)

    return evaluate


def micro_batches_per_step(accumulate):
    """Micro-batches per step; None to find what fits into memory."""
    if not _AUTO_BATCH_SIZE.value:
        return accumulate
    if accumulate > 1:
        raise ValueError(
            "--auto_batch_size finds the number of micro-batches itself. "
            f"Received: gradient_accumulation_steps={accumulate}"
        )
    return None


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    do_train, do_eval = _DO_TRAIN.value, _DO_EVAL.value
    if not do_train and not do_eval:
        raise ValueError(
            "At least one of --do_train and --do_eval must be true."
        )
    folder = common_flags.OUTPUT_DIR.value
    accumulate = micro_batches_per_step(_ACCUMULATE.value)
    plan = Plan(
        _TRAIN_BATCH_SIZE.value,
        optimization_flags.LEARNING_RATE.value,
        _NUM_WARMUP_STEPS.value,
        _NUM_TRAIN_STEPS.value,
        accumulate,
        common_flags.SEED.value,
        common_flags.ITERATIONS_PER_LOOP.value,
        common_flags.SAVE_CHECKPOINTS_STEPS.value,
        common_flags.KEEP_CHECKPOINT_MAX.value,
        common_setup.log_steps(),
        common_setup.recipe(),
        common_flags.PEAK_FLOPS.value,
        common_setup.profile_steps(),
        _EVAL_STEPS.value,
        _EARLY_STOP.value,
        _USE_XLA.value,
        common_flags.CHECK_ONLY.value,
    )
    strategy = common_setup.set_up_distribution(_INPUT_FILE, _EVAL_FILE)
    if do_train:
        plan.check()
        distribution.check_batch_size(
            strategy, "train_batch_size", plan.batch_size, accumulate or 1
        )
    if do_eval or plan.eval_steps:
        distribution.check_batch_size(
            strategy, "eval_batch_size", _EVAL_BATCH_SIZE.value
        )
    config = common_setup.find_config()
    data = pretraining_input.find(
        _INPUT_FILE.value,
        config,
        _MAX_SEQ_LENGTH.value,
        _MAX_PREDICTIONS_PER_SEQ.value,
    )
    eval_data = data
    if _EVAL_FILE.value:
        eval_data = pretraining_input.find(
            _EVAL_FILE.value,
            config,
            _MAX_SEQ_LENGTH.value,
            _MAX_PREDICTIONS_PER_SEQ.value,
        )
        pretraining_input.check_alike(data.files, eval_data.files)
    if do_train:
        check_memory(plan, strategy, config, data.lengths)
    if common_setup.is_remote():
        pretraining_input.check_no_masking(data, eval_data)
    manifest = manifests.find(data.files)
    vocab = model_files.find_records_vocab(
        _VOCAB_FILE.value,
        common_setup.find_source(),
        manifest.vocab_sha256 if manifest else None,
    )
    if vocab is not None:
        config.check_vocab_size(
            len(opened.pieces(vocab)),
            _VOCAB_FILE.value or "The vocabulary to be kept",
        )
    identity = _IDENTITY if do_train else None
    if plan.check_only:
        common_setup.check_output_dir(identity)
    else:
        common_setup.claim_output_dir(strategy, identity)
    logging.info(
        "%d records in %d files, %d replicas.",
        sum(data.counts),
        len(data.files),
        strategy.num_replicas_in_sync,
    )
    if do_train and vocab is None:
        logging.warning(
            "No vocabulary will lie beside the weights, where later scripts "
            "look for it. --vocab_file puts it there."
        )
    if data.objective == "none":
        logging.info(
            "The data has no task of two segments: bert/pooler and "
            "cls/seq_relationship are saved with the rest, but not trained."
        )
    with strategy.scope():
        model = heads.BertPretrainer(config)
    model.bert.encoder.remat = common_flags.REMAT.value
    evaluate = make_evaluation(
        strategy,
        model,
        eval_data,
        _EVAL_BATCH_SIZE.value,
        _MAX_EVAL_STEPS.value,
        plan.seed,
    )
    if do_train:
        step = train(plan, folder, strategy, model, data, evaluate, vocab)
    else:
        step = common_setup.restore_trained(model)
    if plan.check_only:
        if do_train:
            common_setup.report_model(
                *(strategy, model, plan.batch_size, accumulate, data.lengths)
            )
        common_setup.report_no_problem()
        return
    if not do_eval:
        return
    results = evaluate()
    if distribution.is_chief(strategy):
        path = os.path.join(folder, "eval_results.txt")
        progress.write_results(path, results | {"global_step": step})


if __name__ == "__main__":
    command_line.run(main)
