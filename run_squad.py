r"""Fine-tunes BERT to answer questions from a text: SQuAD 1.1 and 2.0.

SQuAD 1.1:
    python run_squad.py --do_train=true --do_predict=true \
        --train_file=$SQUAD_DIR/train-v1.1.json \
        --predict_file=$SQUAD_DIR/dev-v1.1.json \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --train_batch_size=12 --learning_rate=3e-5 --num_train_epochs=2.0 \
        --max_seq_length=384 --doc_stride=128 --output_dir=/tmp/squad_base/
SQuAD 2.0, in which some questions have no answer, also needs
--version_2_with_negative=true and --null_score_diff_threshold=auto.

Files in output_dir: predictions.json, nbest_predictions.json and, for SQuAD
2.0, null_odds.json, as in the original; and, if --predict_file has answers,
eval_results.txt with exact match and F1 by the official rules.

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Sequence

from bert_tf import options
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
_MODEL = flag_sections.Section("Head")
_ANSWERS = flag_sections.Section(
    "Prediction", only_with=("do_eval", "do_predict", "do_export")
)

_TRAIN_FILE = shared_flags.train_file(
    _DATA, "Training file, such as SQuAD's train-v1.1.json."
)
_PREDICT_FILE = _DATA.input_path(
    "predict_file",
    "Questions to answer, such as SQuAD's dev-v1.1.json; answers may be left "
    "out. --do_eval and --do_predict both read it.",
    only_with=("do_eval", "do_predict"),
    harmless=True,
)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA,
    384,
    "Tokens per window: the question and a part of the context.",
    least=1,
)
_DOC_STRIDE = _DATA.integer(
    "doc_stride",
    128,
    "Tokens from the start of one window to the start of the next.",
    least=1,
)
_MAX_QUERY_LENGTH = _DATA.integer(
    "max_query_length",
    64,
    "Max number of tokens in a question; longer questions are cut.",
    least=1,
)
_VERSION_2_WITH_NEGATIVE = _DATA.boolean(
    "version_2_with_negative",
    False,
    "Whether some questions have no answer, as in SQuAD 2.0.",
)
_NULL_SCORE_DIFF_THRESHOLD = _ANSWERS.number_or(
    "null_score_diff_threshold",
    "0.0",
    "auto",
    "Predicts that there is no answer if its score exceeds the best answer's "
    "by more than this. auto finds the threshold with the best F1 on "
    "--predict_file; for a file without answers, it takes the threshold of "
    "the last file with answers in output_dir.",
    only_with="version_2_with_negative",
)
_N_BEST_SIZE = _ANSWERS.integer(
    "n_best_size",
    20,
    "Number of answers in nbest_predictions.json, and of starts and ends to "
    "try in each window.",
    least=1,
)
_MAX_ANSWER_LENGTH = _ANSWERS.integer(
    "max_answer_length", 30, "Max number of tokens in an answer.", least=1
)
_ANSWER_HEAD = _MODEL.choice(
    "answer_head",
    "independent",
    options.ANSWER_HEADS,
    "independent predicts the start and the end of an answer separately, as "
    "in BERT. joint predicts the end from the start, and a score that there "
    "is no answer, as in ALBERT, ELECTRA and XLNet.",
)
_START_N_TOP = _MODEL.integer(
    "start_n_top",
    5,
    "Number of starts to consider per window.",
    least=1,
    only_with="answer_head=joint",
)
_END_N_TOP = _MODEL.integer(
    "end_n_top",
    5,
    "Number of ends to consider per start.",
    least=1,
    only_with="answer_head=joint",
)
_VERBOSE_LOGGING = _DATA.boolean(
    "verbose_logging",
    False,
    "Whether warnings about the data name every affected question.",
)
_STRICT = shared_flags.strict(_DATA, "question", only_with="do_train")

command_line.start(__name__, later=("version_2_with_negative",))

from bert_tf import heads, joint_answers, losses
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.setup import (
    distillation_setup,
    fine_tuning_setup,
    teachers,
    trained_setup,
)
from bert_tf.tasks.squad import (
    squad_answers,
    squad_joint,
    squad_joint_export,
    squad_model,
    squad_questions,
    squad_records,
    squad_threshold,
    squad_windows,
)
from bert_tf.training import (
    distillation,
    distillation_losses,
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
    "do_lower_case",
    "max_seq_length",
    "doc_stride",
    "max_query_length",
    "version_2_with_negative",
    "answer_head",
    "train_batch_size",
    "group_by_length",
    "seed",
    *distillation_flags.IDENTITY,
)
# Flags of reading questions: as in training, unless set.
_READING = (
    "max_seq_length",
    "doc_stride",
    "max_query_length",
    "version_2_with_negative",
    "n_best_size",
    "max_answer_length",
    "answer_head",
    "start_n_top",
    "end_n_top",
)


# ---- Objective: sums, to be divided by weights summed over all replicas -----


def weights(batch):
    """What the loss is divided by: the number of windows."""
    return {"span": tf.reduce_sum(batch["row_weights"])}


def of_tokens(logits, batch):
    """Masks the logits of positions, [B, S], so padding is never chosen."""
    # The original leaves the padding in; without it a loss does not depend on
    # how far its batch is padded.
    return tf.where(batch["input_mask"] > 0, logits, -1e9)


def sums(model, batch, dropout_seed):
    """Loss and accuracy sums of one replica's batch."""
    rows = batch["row_weights"]  # [B]
    loss, metrics = 0.0, {}
    for name, logits in zip(
        ("start", "end"), model(batch, dropout_seed), strict=True
    ):
        logits = of_tokens(logits, batch)
        labels = batch[f"{name}_positions"]  # [B]
        entropy, best = losses.cross_entropy(logits, labels)
        loss += tf.reduce_sum(rows * entropy) / 2
        metrics[f"{name}_accuracy"] = tf.reduce_sum(
            rows * tf.cast(best == labels, tf.float32)
        )
    return {"span": {"loss": loss, **metrics}}


def compare(logits, teacher, batch, temperature):
    """How far starts and ends are from a teacher's."""
    loss = 0.0
    for ours, theirs in zip(logits, teacher, strict=True):
        loss += distillation_losses.classes(
            of_tokens(ours, batch),
            of_tokens(theirs, batch),
            batch["row_weights"],
            temperature,
        )
    return loss / 2


OBJECTIVE = loop.Objective(weights, sums)
COMPARISON = distillation.Comparison(("span",), compare)


# ---- Data -------------------------------------------------------------------


def read_files(work, version_2_with_negative):
    """Returns questions to train on, to answer, and if those are scorable."""
    to_train: list[squad_questions.Question] = []
    to_answer: list[squad_questions.Question] = []
    is_scorable = False
    if work.train:
        to_train = squad_questions.read_to_train(
            _TRAIN_FILE.value,
            version_2_with_negative,
            _VERBOSE_LOGGING.value,
            run_flags.SEED.value,
            _STRICT.value,
        )
    if work.evaluate or work.predict:
        to_answer, is_scorable = squad_questions.read_to_answer(
            _PREDICT_FILE.value,
            version_2_with_negative,
            work.evaluate,
            _VERBOSE_LOGGING.value,
        )
    return to_train, to_answer, is_scorable


def write_records(folder, cutter, to_train, to_answer):
    """Writes the windows of all questions: all is checked before training.

    Returns:
        "train" and "predict" -> their records, and the windows to predict.
    """
    data = {}
    windows: list[squad_windows.Windows] = []
    if to_train:
        path = os.path.join(folder, "train.tf_record")
        data["train"] = squad_records.write_to_train(
            path, cutter, to_train, _STRICT.value
        )
    if to_answer:
        path = os.path.join(folder, "eval.tf_record")
        data["predict"], windows = squad_records.write_to_predict(
            path, cutter, to_answer
        )
    return data, windows


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run(fine_tuning.Run):
    """What every part of the run needs."""

    windows: Sequence[squad_windows.Windows]  # of the questions to answer
    is_scorable: bool
    layout: squad_windows.Layout
    search: squad_answers.Search
    threshold: squad_threshold.Threshold

    @property
    def is_joint(self):
        """Whether ends are found given the start."""
        return isinstance(self.search, squad_joint.Search)


def train(run, plan, do_eval, batch_size, teacher):
    """Trains; with --do_eval, evaluates each epoch and keeps the best."""
    evaluation = None
    if do_eval:
        evaluation = scoring.Evaluation(
            "f1", lambda: score(run, answer(run, batch_size))[0]
        )
    own = squad_joint.OBJECTIVE if run.is_joint else OBJECTIVE
    objective = distillation_setup.of_run(own, COMPARISON, teacher, run)
    restore = functools.partial(fine_tuning_setup.restore, run.files)
    fine_tuning.train(run, plan, objective, restore, evaluation)


# ---- Evaluate and predict ---------------------------------------------------


@functools.lru_cache(maxsize=1)
def padded_outputs(model, max_seq_length, search):
    """Returns one function for one model, which is traced but once."""

    def outputs(batch):
        if isinstance(search, squad_joint.Search):
            return squad_joint.padded(model(batch), search)
        starts, ends = model(batch)
        # Workers trim to different lengths, and gather equal ones only.
        padding = [[0, 0], [0, max_seq_length - tf.shape(starts)[1]]]
        return {
            "starts": tf.pad(starts, padding),
            "ends": tf.pad(ends, padding),
        }

    return outputs


def outputs_of_windows(run, batch_size):
    """Yields the outputs of the model for each window, by name."""
    length = run.data["predict"].max_seq_length
    outputs = padded_outputs(run.model, length, run.search)
    for part in fine_tuning.predict(run, "predict", outputs, batch_size):
        for row in zip(*part.values(), strict=True):
            yield dict(zip(part, row, strict=True))


def answer(run, batch_size):
    """Answers the questions of the predict file: id -> answer."""
    outputs = outputs_of_windows(run, batch_size)
    answers = {}
    for windows in run.windows:
        own = list(itertools.islice(outputs, len(windows.starts)))
        found = {name: np.stack([x[name] for x in own]) for name in own[0]}
        key = windows.question.key
        if run.is_joint:
            answers[key] = squad_joint.find(windows, found, run.search)
        else:
            answers[key] = squad_answers.find(
                windows, found["starts"], found["ends"], run.search
            )
    next(outputs, None)  # Workers leave at the end of it.
    return answers


def score(run, answers):
    """Returns the results by the official rules, and the threshold used."""
    return squad_answers.score(
        [windows.question for windows in run.windows],
        answers,
        run.search.version_2_with_negative,
        run.threshold.given,
    )


def write_answers(run, batch_size, do_predict, step):
    """Answers all questions, scores the answers if it can, writes both."""
    answers = answer(run, batch_size)
    if not run.is_chief:
        return
    if run.is_scorable:
        results, threshold = score(run, answers)
        path = os.path.join(run.folder, "eval_results.txt")
        progress.write_results(path, results | {"global_step": step})
        run.threshold.note(threshold)
    else:
        threshold = run.threshold.known()
    if do_predict:
        squad_answers.write(run.folder, answers, threshold)
        logging.info("Wrote %d predictions to %s.", len(answers), run.folder)


def write_export(run):
    """Writes the SavedModel."""
    threshold = run.threshold.known()
    export = (
        squad_joint_export.joint_span_finder
        if run.is_joint
        else squad_model.span_finder
    )
    fine_tuning.write_export(
        run,
        export(
            run.model,
            run.files.config,
            run.files.vocabulary,
            run.layout,
            run.search,
            threshold,
        ),
    )


# ---- Main -------------------------------------------------------------------


def threshold_of_run():
    """Returns --null_score_diff_threshold, or what the training tuned it to."""
    given = _NULL_SCORE_DIFF_THRESHOLD
    folder = trained_setup.folder()
    if given.present or not folder:
        return given.value
    return squad_threshold.of_run(trained_setup.said(), folder) or given.value


def find_search(version_2):
    """Returns the settings of the search for answers, from the flags."""
    own = (_N_BEST_SIZE.value, _MAX_ANSWER_LENGTH.value, version_2)
    if _ANSWER_HEAD.value == "independent":
        return squad_answers.Search(*own)
    if distillation_flags.TEACHER.value:
        raise InputError(
            "A teacher's answers are compared by independent starts and ends: "
            "leave out --teacher, or --answer_head. "
            f"Received: teacher={distillation_flags.TEACHER.value}, "
            f"answer_head={_ANSWER_HEAD.value}"
        )
    return squad_joint.Search(*own, _START_N_TOP.value, _END_N_TOP.value)


def make_model(config, search):
    """Returns an encoder with the head of --answer_head."""
    bert = families.make(config)
    if not isinstance(search, squad_joint.Search):
        return heads.BertSpanFinder(bert)
    return joint_answers.BertJointSpanFinder(
        bert, search.start_n_top, search.end_n_top
    )


def main(_):
    """The whole run as an outline."""
    work = fine_tuning_setup.work()
    trained_setup.take_flags(_READING)
    folder = run_flags.OUTPUT_DIR.value
    version_2 = _VERSION_2_WITH_NEGATIVE.value
    model_files = fine_tuning_setup.load_files()
    layout = squad_windows.Layout(
        _MAX_SEQ_LENGTH.value, _DOC_STRIDE.value, _MAX_QUERY_LENGTH.value
    )
    layout.check_room(model_files.vocabulary.template)
    model_files.config.check_sequence_length(layout.max_seq_length)
    model_files.config.check_reads_pairs(
        model_files.vocabulary.template.segments
    )
    search = find_search(version_2)
    head = options.ANSWER_HEADS[_ANSWER_HEAD.value]
    threshold = squad_threshold.find(threshold_of_run(), version_2, folder)
    to_train, to_answer, is_scorable = read_files(work, version_2)
    if (work.predict or work.export) and not is_scorable:
        threshold.known()  # An error before the work, not after it.
    if work.train:
        teacher = teachers.find(head, model_files, layout.max_seq_length)
    else:
        trained_setup.check(head, _IDENTITY)

    strategy = fine_tuning_setup.set_up_distribution()
    plan = fine_tuning_setup.plan(strategy)
    with strategy.scope():
        model = make_model(model_files.config, search)
    records_folder = fine_tuning_setup.make_folder(strategy, _IDENTITY)
    cutter = squad_windows.Cutter(model_files.vocabulary, layout)
    data, windows = write_records(records_folder, cutter, to_train, to_answer)
    run = Run(
        folder,
        strategy,
        model,
        model_files,
        None,
        data,
        windows,
        is_scorable,
        layout,
        search,
        threshold,
    )
    if work.train:
        batch_size = fine_tuning_flags.EVAL_BATCH_SIZE.value
        train(run, plan, work.evaluate, batch_size, teacher)
    if plan.check_only:
        fine_tuning_setup.report_check(run, head, layout.max_seq_length)
        return
    if not (work.evaluate or work.predict or work.export):
        return
    step = trained_setup.restore(run, head)
    if work.evaluate or work.predict:
        batch_size = fine_tuning_flags.EVAL_BATCH_SIZE.value
        if work.predict:
            batch_size = fine_tuning_flags.PREDICT_BATCH_SIZE.value
        write_answers(run, batch_size, work.predict, step)
    if work.export and run.is_chief:
        write_export(run)


if __name__ == "__main__":
    command_line.run(main)
