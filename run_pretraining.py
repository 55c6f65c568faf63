r"""Pre-trains BERT, or a model of another family, on TFRecord files.

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

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses
import functools
import os

from bert_tf import options
from bert_tf.errors import InputError, counted
from bert_tf.flags import (
    command_line,
    distillation_flags,
    flag_sections,
    flagfiles,
    help_text,
    optimization_flags,
    run_flags,
    shared_flags,
)

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(distillation_flags)

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
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA,
    None,
    "Tokens per sequence of the records. By default as in their manifest, or "
    "128.",
    min=1,
)
_MAX_PREDICTIONS_PER_SEQ = _DATA.integer(
    "max_predictions_per_seq",
    None,
    "Max masked words per sequence of the records. By default as in their "
    "manifest, or 20.",
    min=1,
)
_VOCAB_FILE = shared_flags.vocab_file(
    _DATA,
    "The vocabulary of the records, which is saved next to the weights. By "
    "default the vocabulary of the run in output_dir or of init_checkpoint, if "
    "it is the same.",
)
_DO_TRAIN = shared_flags.do_train(_WORK)
_DO_EVAL = _WORK.boolean("do_eval", False, "Whether to evaluate.")
_TRAIN_BATCH_SIZE = shared_flags.train_batch_size(
    _TRAINING, "Sequences per step, over all replicas."
)
_TRAINING.integer("num_train_steps", 100000, "Training steps.", min=1)
_TRAINING.integer("num_warmup_steps", 10000, "Steps of linear warm-up.", min=0)
_POLY_POWER = _TRAINING.number(
    "poly_power", 1.0, "ALBERT's name for --lr_power. Must be 1.", rare=True
)
_START_WARMUP_STEP = _TRAINING.integer(
    "start_warmup_step", 0, "A flag of ALBERT. Must be 0.", rare=True
)
_ACCUMULATE = shared_flags.gradient_accumulation_steps(_TRAINING)
_AUTO_BATCH_SIZE = _TRAINING.boolean(
    "auto_batch_size",
    False,
    "Finds the largest micro-batches that fit in memory, by trial. On GPUs and "
    "TPUs only.",
)
_TRAINING.boolean(
    "save_in_background",
    True,
    "Trains while a checkpoint is written. Needs memory on the host for one "
    "more copy of weights and moments.",
    rare=True,
)
_RUNTIME = flag_sections.Section("Devices", only_with="do_train").choice(
    "runtime",
    "tensorflow",
    options.RUNTIMES,
    "What runs the training step: TensorFlow, or JAX's PJRT on all devices of "
    "this host that JAX finds, such as TPUs. pjrt needs the extra jax.",
)
_TRAINING.integer(
    "eval_steps",
    None,
    "Steps between evaluations during training. Their results go to the log, "
    "metrics.jsonl and TensorBoard, the weights with the lowest loss to best/.",
    min=1,
)
_EARLY_STOP = _TRAINING.integer(
    "early_stop_evaluations",
    None,
    "Early stopping: ends training after this number of evaluations without a "
    "lower loss.",
    min=1,
    only_with="eval_steps",
)
_EVAL_FILE = _EVALUATION.input_paths(
    "eval_file",
    "TFRecord files or globs for evaluation. By default input_file.",
)
_EVAL_BATCH_SIZE = shared_flags.eval_batch_size(
    _EVALUATION, "Sequences per evaluation step, over all replicas."
)
_MAX_EVAL_STEPS = _EVALUATION.integer(
    "max_eval_steps",
    100,
    "Max evaluation steps: an evaluation reads the first records.",
    min=1,
)

command_line.start(__name__)

from bert_tf import files, kept_kernels, vocabularies
from bert_tf.checkpoints import best, model_files, original, tf1_files
from bert_tf.records import pipeline
from bert_tf.setup import (
    auxiliary_lm,
    distillation_setup,
    pretraining_setup,
    run_folder,
    run_setup,
    teachers,
)
from bert_tf.training import (
    distillation,
    distribution,
    memory_use,
    pretraining,
    progress,
    run_report,
    scoring,
    session,
    train_examples,
)

from absl import logging

# What a run in progress can't change. Its records may move.
_IDENTITY = (
    "max_seq_length",
    "max_predictions_per_seq",
    "seed",
    *distillation_flags.IDENTITY,
)
# On what rows the best is found.
_CHOSEN_ON = (
    _EVAL_FILE.name,
    _EVAL_BATCH_SIZE.name,
    _MAX_EVAL_STEPS.name,
)


# ---- Train ------------------------------------------------------------------


def train(
    plan, folder, strategy, jax, model, own, records, evaluate, vocab, teacher
):
    """Trains to the last step, from where the run in `folder` stopped.

    `own` is the model's objective. `records` is the result of `find_records`.
    `evaluate` returns results; it is called at intervals. `vocab` is the
    vocabulary to keep, or None, and so are the teacher and `jax`, the runtime.
    """
    data, eval_data = records
    losses = pretraining.loss_names(data.objective)
    objective = own
    if teacher is not None:
        shared = distillation.shared_words(model.bert.config, teacher.config)
        compare = functools.partial(distillation.of_words, shared=shared)
        comparison = distillation.Comparison(losses, compare)
        objective = distillation_setup.objective(
            own, comparison, teacher, strategy, model
        )
    beside = original.contents(model.bert.config, vocab, None)
    trained_on = train_examples.of_records(data)
    taught_by = teacher.digest if teacher else ""
    train_examples.check_same(folder, trained_on, taught_by)
    evaluated_on = train_examples.of_records(eval_data)

    def begin():
        train_examples.write(folder, trained_on, taught_by)
        if vocab:
            original.write_contents(folder, beside)
        else:  # A vocabulary in the folder is the user's.
            config = beside[original.CONFIG]
            files.write_bytes(os.path.join(folder, original.CONFIG), config)
        run_setup.keep_flags()

    def batches(start, step):
        make = functools.partial(
            pipeline.train,
            *(data.files, data.counts, plan.batch_size, plan.seed, start),
        )
        return data.batches(strategy, make, plan.seed, step)

    def restore(state):
        run_setup.restore(state, auxiliary_lm.as_pre_trained)

    evaluation = None
    if plan.eval_steps:
        evaluation = scoring.Evaluation(
            "loss",
            evaluate,
            lowest=True,
            most_without_better=plan.early_stop,
        )
    return session.Session(
        folder=folder,
        strategy=strategy,
        model=model,
        plan=plan,
        schedule=plan.schedule(),
        stop=plan.num_train_steps,
        objective=objective,
        trained=objective.trained
        or pretraining.trained_variables(model, data.objective),
        restore=restore,
        begin=begin,
        batches=batches,
        explained=data.explained,
        predictions=losses[0],
        evaluation=evaluation,
        eval_steps=plan.eval_steps or 1,
        beside=beside,
        data={"training data": trained_on, "evaluation data": evaluated_on},
        padded_inside=data.padded_inside or eval_data.padded_inside,
        runtime=jax,
    ).train()


def find_room(plan, strategy, jax, config, data):
    """Returns the plan, with saves between steps where a copy has no room.

    It raises InputError where a step on CPUs needs more than there is.
    """
    steps = 0.0
    if distribution.is_cpu(strategy) and not jax:
        rows = plan.batch_size // strategy.num_replicas_in_sync
        replicas = distribution.local_replicas(strategy)
        memory = pretraining_setup.memory(
            config,
            (
                rows // plan.accumulate,
                data.lengths["S"],
                data.predictions_per_row,
            ),
            (plan.recipe.dtype, plan.remat, plan.accumulate),
        )
        memory_use.check_room_for_steps(
            memory,
            replicas,
            f"train_batch_size={plan.batch_size}",
            remat_helps=not plan.remat and config.activations is None,
        )
        steps = replicas * memory.total
    # Of no rows there are weights and moments alone.
    copy = pretraining_setup.memory(config, (0, 0, 0), ("float32", False, 1))
    is_beside = plan.save_in_background and memory_use.has_room_for_copy(
        copy.state, steps
    )
    return dataclasses.replace(plan, save_in_background=is_beside)


# ---- Requested actions ------------------------------------------------------


def find_plan():
    """Returns how to train; InputError where flags contradict each other."""
    check_names_of_others()
    accumulate = _ACCUMULATE.value
    if _AUTO_BATCH_SIZE.value and accumulate > 1:
        raise InputError(
            "--auto_batch_size finds the number of micro-batches itself. "
            f"Received: gradient_accumulation_steps={accumulate}"
        )
    return run_setup.make_plan(
        pretraining.Plan,
        batch_size=_TRAIN_BATCH_SIZE.value,
        accumulate=None if _AUTO_BATCH_SIZE.value else accumulate,
        early_stop=_EARLY_STOP.value,
        chosen_on=flagfiles.told(_CHOSEN_ON),
    )


def check_names_of_others():
    """Raises InputError where another script would do what is not here."""
    if _POLY_POWER.value != 1:
        raise InputError(
            "--poly_power=1 is --lr_schedule=linear. Give other powers by "
            "--lr_schedule=polynomial and --lr_power; the rate then falls from "
            "the end of the warm-up on, ALBERT's from step 0. Received: "
            f"poly_power={_POLY_POWER.value}"
        )
    if _START_WARMUP_STEP.value:
        raise InputError(
            "--start_warmup_step: here the warm-up is at the start of a run. "
            "To warm up again, start another --output_dir from the weights by "
            "--init_checkpoint. Received: "
            f"start_warmup_step={_START_WARMUP_STEP.value}"
        )


def check_sizes(plan, strategy, replicas, do_train, do_eval):
    """Raises InputError where steps or batches do not fit the plan."""
    if do_train:
        kept_kernels.check_that_they_change()
        plan.check()
        if plan.accumulate is None and distribution.is_cpu(strategy):
            raise InputError(
                "--auto_batch_size tries what fits into the memory of GPUs and "
                "TPUs; on CPUs, running out of it ends the process. Leave it "
                "out, and give --gradient_accumulation_steps where memory is "
                "short. Received: auto_batch_size=true, and no GPU or TPU was "
                "found"
            )
        distribution.check_batch_size(
            strategy,
            "train_batch_size",
            plan.batch_size,
            plan.accumulate,
            replicas,
        )
    if do_eval or plan.eval_steps:
        distribution.check_batch_size(
            strategy, "eval_batch_size", _EVAL_BATCH_SIZE.value
        )


def find_records(config):
    """Returns the records to train on, and those to evaluate on."""
    lengths = _MAX_SEQ_LENGTH.value, _MAX_PREDICTIONS_PER_SEQ.value
    head = config.pretraining_head
    may_fuse = _DO_TRAIN.value and run_flags.FUSED_ATTENTION.value is not False
    find = functools.partial(pretraining.find, may_fuse=may_fuse)
    data = find(_INPUT_FILE.value, config, *lengths).for_head(head)
    if not _EVAL_FILE.value:
        return data, data
    eval_data = find(_EVAL_FILE.value, config, *lengths)
    eval_data = eval_data.for_head(head)
    pretraining.check_alike(data, eval_data, head)
    return data, eval_data


def find_identity(data):
    """Returns the flags that a run in progress can't change."""
    if train_examples.are_records(run_flags.OUTPUT_DIR.value, data):
        return _IDENTITY
    return (_INPUT_FILE.name, *_IDENTITY)


def check_evaluation(plan, eval_data):
    """Returns the plan with the digest of the evaluation data, if it is known.

    It raises InputError where the best of a run was found on other data.
    """
    evaluated_on = train_examples.records_digest(eval_data)
    run_folder.check_same_evaluation(_CHOSEN_ON, evaluated_on=evaluated_on)
    digest = {best.EVALUATED_ON: evaluated_on} if evaluated_on else {}
    return dataclasses.replace(plan, chosen_on={**plan.chosen_on, **digest})


def find_vocab(config, data):
    """Returns the vocabulary to keep, or None."""
    manifest = data.manifest
    vocab = model_files.find_records_vocab(
        _VOCAB_FILE.value,
        run_setup.find_source(),
        manifest.vocab_sha256 if manifest else None,
    )
    folder = run_flags.OUTPUT_DIR.value
    is_new = _DO_TRAIN.value and not tf1_files.latest(folder)
    there = original.find_vocab(folder) if vocab is None and is_new else None
    if there is not None:
        if manifest is None or there.sha256 != manifest.vocab_sha256:
            raise InputError(
                "There is a vocabulary in --output_dir, which would become the "
                "run's, and nothing says that the records were made with it. "
                "Pass it as --vocab_file, or remove it. Received: "
                f"output_dir={folder}, no vocab_file"
            )
        vocab = there
    if vocab is not None:
        name = _VOCAB_FILE.value or "The vocabulary to be kept"
        vocabulary = vocabularies.read(vocab, False, name)
        config.check_vocabulary(vocabulary, name)
        if manifest:
            manifest.check_kind(vocabulary.kind, vocabulary.settings)
    return vocab


def find_teacher(config, data, vocab):
    """Returns the teacher for distillation, or None."""
    if not distillation_flags.TEACHER.value:
        return None
    manifest = data.manifest
    return teachers.find_for(
        teachers.Student(
            "masked_lm",
            config,
            vocab,
            manifest.do_lower_case if manifest else None,
            data.lengths["S"],
        )
    )


def report(replicas, model, data, lacks_vocab):
    """Says what the run reads, and what it will lack."""
    logging.info(
        "%s in %s, %s.",
        counted(sum(data.counts), "record"),
        counted(len(data.files), "file"),
        counted(replicas, "replica"),
    )
    if lacks_vocab:
        logging.warning(
            "No vocabulary will be saved next to the weights, where later "
            "scripts look for it. Pass --vocab_file to save it there."
        )
    pretraining_setup.report_what_is_learned(model, data)


def report_evaluation(data):
    """Logs how many records an evaluation reads, if it does not read all."""
    rows = _EVAL_BATCH_SIZE.value * _MAX_EVAL_STEPS.value
    if rows < sum(data.counts):
        logging.info(
            "An evaluation reads the first %s of %s. To read more, raise "
            "--max_eval_steps.",
            f"{rows:,}",
            counted(sum(data.counts), "record"),
        )


# ---- Main -------------------------------------------------------------------


@distribution.cluster_watched()
def main(_):
    """The whole run as an outline."""
    do_train, do_eval = _DO_TRAIN.value, _DO_EVAL.value
    if not do_train and not do_eval:
        raise InputError(
            "At least one of --do_train and --do_eval must be true."
        )
    folder = run_flags.OUTPUT_DIR.value
    plan = find_plan()
    jax = None
    if do_train:
        jax = pretraining_setup.find_runtime(_RUNTIME.value, plan)
    strategy = run_setup.set_up_distribution(_INPUT_FILE, _EVAL_FILE)
    replicas = jax.replicas if jax else run_report.replicas_of(strategy)
    check_sizes(plan, strategy, replicas.number, do_train, do_eval)
    config = run_setup.find_config(do_train)
    pretraining_setup.check(config)
    data, eval_data = find_records(config)
    if do_train:
        plan = find_room(plan, strategy, jax, config, data)
    if run_setup.is_remote():
        pretraining.check_no_masking(data, eval_data)
    vocab = find_vocab(config, data)
    teacher = find_teacher(config, data, vocab) if do_train else None
    identity = find_identity(data) if do_train else None
    if do_train and plan.eval_steps:
        plan = check_evaluation(plan, eval_data)
    if plan.check_only:
        run_folder.check_output_dir(identity)
    else:
        run_folder.claim_output_dir(strategy, identity)
    with strategy.scope():
        model = pretraining_setup.make_model(config)
    report(
        *(replicas.number, model, data if do_train else eval_data),
        lacks_vocab=do_train and vocab is None,
    )
    if do_eval or plan.eval_steps:
        report_evaluation(eval_data)
    objective = pretraining_setup.make_objective(model, data)
    evaluate = pretraining.make_evaluation(
        strategy,
        model,
        objective,
        eval_data,
        _EVAL_BATCH_SIZE.value,
        _MAX_EVAL_STEPS.value,
        plan.seed,
    )
    if do_train:
        step = train(
            *(plan, folder, strategy, jax, model, objective),
            *((data, eval_data), evaluate, vocab, teacher),
        )
    else:
        read = model.variables
        if model.generator is None:
            read = pretraining.trained_variables(model, data.objective)
        step = run_setup.restore_trained(model, read)
    if plan.check_only:
        if do_train:
            lengths = data.lengths | {"P": data.predictions_per_row}
            run_setup.report_model(
                replicas, model, plan.batch_size, plan.accumulate, lengths
            )
        run_setup.report_no_problem()
        return
    is_chief = distribution.is_chief(strategy)
    if do_eval:
        results = evaluate()
        if is_chief:
            path = os.path.join(folder, "eval_results.txt")
            progress.write_results(path, results | {"global_step": step})
    if do_train and is_chief:
        script = help_text.command("run_classifier")
        run_setup.report_next(
            f"To fine-tune, for example: {script} --init_checkpoint=%s"
        )


if __name__ == "__main__":
    command_line.run(main)
