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

import functools
import itertools

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
from bert_tf.tasks.squad import squad_options

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
_DATA.define(squad_options.Layout)
_DATA.define(squad_options.Search, "version_2_with_negative")
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
_ANSWERS.define(squad_options.Search, "n_best_size", "max_answer_length")
_ANSWER_HEAD = _MODEL.choice(
    "answer_head",
    "independent",
    options.ANSWER_HEADS,
    "independent predicts the start and the end of an answer separately, as "
    "in BERT. joint predicts the end from the start, and a score that there "
    "is no answer, as in ALBERT, ELECTRA and XLNet.",
)
_MODEL.define(squad_options.JointSearch, "start_n_top", "end_n_top")
_VERBOSE_LOGGING = _DATA.boolean(
    "verbose_logging",
    False,
    "Whether warnings about the data name every affected question.",
)
_STRICT = shared_flags.strict(
    _DATA, "question", "that cannot be learned", only_with="do_train"
)

command_line.start(__name__, later=("version_2_with_negative", "answer_head"))

from bert_tf import heads, joint_answers, losses
from bert_tf.errors import InputError, counted
from bert_tf.setup import fine_tune, trained_setup
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
)

import numpy as np
import tensorflow as tf
from absl import logging

# ---- Objective: sums, to be divided by weights summed over all replicas -----


def mask_padding(logits, batch):
    """Masks the logits of padding, [B, S], so that it is never chosen."""
    # Unlike in the original, a loss does not depend on the length of its batch.
    return tf.where(batch["input_mask"] > 0, logits, -1e9)


def sums(model, batch, dropout_seed):
    """Returns the loss and accuracy sums of one replica's batch."""
    rows = batch["row_weights"]  # [B]
    loss, metrics = 0.0, {}
    for name, logits in zip(
        ("start", "end"), model(batch, dropout_seed), strict=True
    ):
        logits = mask_padding(logits, batch)
        labels = batch[f"{name}_positions"]  # [B]
        entropy, best = losses.cross_entropy(logits, labels)
        loss += tf.reduce_sum(rows * entropy) / 2
        metrics[f"{name}_accuracy"] = tf.reduce_sum(
            rows * tf.cast(best == labels, tf.float32)
        )
    return {"span": {"loss": loss, **metrics}}


def compare(logits, teacher, batch, temperature):
    """Returns the loss of starts and ends on a teacher's logits."""
    loss = 0.0
    for ours, theirs in zip(logits, teacher, strict=True):
        loss += distillation_losses.classes(
            mask_padding(ours, batch),
            mask_padding(theirs, batch),
            batch["row_weights"],
            temperature,
        )
    return loss / 2


OBJECTIVE = loop.Objective(squad_joint.weights, sums)


# ---- Answers ----------------------------------------------------------------


def threshold_of_run():
    """Returns --null_score_diff_threshold, or the value tuned in training."""
    given = _NULL_SCORE_DIFF_THRESHOLD
    folder = trained_setup.folder()
    if given.present or not folder:
        return given.value
    return squad_threshold.of_run(trained_setup.said(), folder) or given.value


def find_search():
    """Returns the settings of the search for answers, from the flags."""
    if _ANSWER_HEAD.value == "independent":
        return flag_sections.read(squad_options.Search)
    if distillation_flags.TEACHER.value:
        raise InputError(
            "A teacher's answers are compared by independent starts and ends: "
            "leave out --teacher, or --answer_head. "
            f"Received: teacher={distillation_flags.TEACHER.value}, "
            f"answer_head={_ANSWER_HEAD.value}"
        )
    return flag_sections.read(squad_options.JointSearch)


@functools.lru_cache(maxsize=1)
def padded_outputs(model, max_seq_length, search):
    """Returns a function that pads outputs; it is traced once per model."""

    def outputs(batch):
        if isinstance(search, squad_options.JointSearch):
            return squad_joint.padded(model(batch), search)
        starts, ends = model(batch)
        # Workers trim to different lengths, and gather equal ones only.
        padding = [[0, 0], [0, max_seq_length - tf.shape(starts)[1]]]
        return {
            "starts": tf.pad(starts, padding),
            "ends": tf.pad(ends, padding),
        }

    return outputs


# ---- The task ---------------------------------------------------------------


class Answering(fine_tune.Task):
    """Answers questions from a text."""

    identity = (
        *("doc_stride", "max_query_length"),
        *("version_2_with_negative", "answer_head"),
    )
    reading = (
        *options.names(squad_options.Layout),
        *options.names(squad_options.JointSearch),
        "answer_head",
    )
    more_reading = ("do_lower_case", "version_2_with_negative")
    chosen_on = (
        *("predict_file", "null_score_diff_threshold"),
        *(
            name
            for name in options.names(squad_options.JointSearch)
            if name != "version_2_with_negative"  # in `identity`
        ),
    )
    metric = "f1"
    comparison = distillation.Comparison(("span",), compare)

    def prepare(self):
        """Finds the settings of windows and of the search for answers."""
        self.head = options.ANSWER_HEADS[_ANSWER_HEAD.value]
        self.version_2 = flags.FLAGS.version_2_with_negative
        self.layout = flag_sections.read(squad_options.Layout)

    def read(self):
        """Reads the questions to train on and the questions to answer."""
        self.layout.check_room(self.files.vocabulary.template)
        self.search = find_search()
        self.is_joint = isinstance(self.search, squad_options.JointSearch)
        self.objective = squad_joint.OBJECTIVE if self.is_joint else OBJECTIVE
        self.threshold = squad_threshold.find(
            threshold_of_run(), self.version_2, run_flags.OUTPUT_DIR.value
        )
        self.splits, self.is_scorable = {}, False
        if self.work.train:
            self.splits["train"] = squad_questions.read_to_train(
                _TRAIN_FILE.value,
                self.version_2,
                _VERBOSE_LOGGING.value,
                run_flags.SEED.value,
                _STRICT.value,
            )
        if self.work.evaluate or self.work.predict:
            self.splits["predict"], self.is_scorable = (
                squad_questions.read_to_answer(
                    _PREDICT_FILE.value,
                    self.version_2,
                    self.work.evaluate,
                    _VERBOSE_LOGGING.value,
                )
            )
        if (self.work.predict or self.work.export) and not self.is_scorable:
            self.threshold.known()  # An error before the work, not after it.

    def make_model(self, encoder):
        if not self.is_joint:
            return heads.BertSpanFinder(encoder)
        return joint_answers.BertJointSpanFinder(
            encoder, self.search.start_n_top, self.search.end_n_top
        )

    def record_file(self, split):
        return {"train": "train.tf_record", "predict": "eval.tf_record"}[split]

    def writer(self):
        cutter = squad_windows.Cutter(self.files.vocabulary, self.layout)

        def write(split, path, _):  # `read` has shuffled the questions
            questions = self.splits[split]
            if split == "train":
                return squad_records.write_to_train(
                    path, cutter, questions, _STRICT.value
                )
            data, self.windows = squad_records.write_to_predict(
                path, cutter, questions
            )
            return data

        return write

    def outputs_of_windows(self, run, batch_size):
        """Yields the outputs of the model for each window, by name."""
        outputs = padded_outputs(run.model, self.length, self.search)
        for part in fine_tuning.predict(run, "predict", outputs, batch_size):
            for row in zip(*part.values(), strict=True):
                yield dict(zip(part, row, strict=True))

    def answer(self, run, batch_size):
        """Answers the questions of the predict file: id -> answer."""
        outputs = self.outputs_of_windows(run, batch_size)
        answers = {}
        for windows in self.windows:
            own = list(itertools.islice(outputs, len(windows.starts)))
            found = {name: np.stack([x[name] for x in own]) for name in own[0]}
            key = windows.question.key
            if windows.is_empty:
                answers[key] = squad_answers.of_empty_context(self.version_2)
            elif self.is_joint:
                answers[key] = squad_joint.find(windows, found, self.search)
            else:
                answers[key] = squad_answers.find(
                    windows, found["starts"], found["ends"], self.search
                )
        next(outputs, None)  # Ends the loop, so that all workers leave it.
        return answers

    def score(self, answers):
        """Returns the results by the official rules, and the threshold used."""
        questions = [windows.question for windows in self.windows]
        return squad_answers.score(
            questions, answers, self.version_2, self.threshold.given
        )

    def evaluate(self, run, batch_size):
        return self.score(self.answer(run, batch_size))[0]

    def write_evaluation(self, run, batch_size, step):
        """Writes eval_results.txt, unless `write_predictions` does."""
        if not self.work.predict:
            self.write_predictions(run, batch_size, step)

    def write_predictions(self, run, batch_size, step):
        """Answers all questions, scores the answers if it can, writes both."""
        answers = self.answer(run, batch_size)
        if not run.is_chief:
            return
        if self.is_scorable:
            results, threshold = self.score(answers)
            path = run.path("eval_results.txt")
            progress.write_results(path, results | {"global_step": step})
            self.threshold.note(threshold)
        else:
            threshold = self.threshold.known()
        if self.work.predict:
            squad_answers.write(run.folder, answers, threshold)
            logging.info(
                "Wrote %s to %s.",
                counted(len(answers), "prediction"),
                run.folder,
            )

    def export(self, run):
        export = (
            squad_joint_export.joint_span_finder
            if self.is_joint
            else squad_model.span_finder
        )
        return export(
            run.model,
            run.files.config,
            run.files.vocabulary,
            self.layout,
            self.search,
            self.threshold.known(),
        )


def main(_):
    """Runs the task."""
    fine_tune.run_task(Answering())


if __name__ == "__main__":
    command_line.run(main)
