"""Writes a fine-tuned classifier as a SavedModel that takes raw text.

What run_classifier.py left in its folder:
    python export_saved_model.py --model_dir=/tmp/mrpc_output \
        --export_dir=/models/mrpc/1

Any checkpoint of a classifier, of the original's run_classifier.py too:
    python export_saved_model.py --export_dir=/models/mrpc/1 \
        --init_checkpoint=/tmp/mrpc/model.ckpt-343 --task_name=MRPC \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --vocab_file=$BERT_BASE_DIR/vocab.txt --max_seq_length=128

How to call the SavedModel is described in bert_tf/export.py.
"""

import os
from collections.abc import Mapping

from bert_tf import (
    command_line,
    export,
    fine_tuned,
    heads,
    tokenization,
)
from bert_tf.interop import opened
from bert_tf.tasks import classification, glue

import tensorflow as tf
from absl import flags, logging

# ---- Flags ------------------------------------------------------------------

_EXPORT_DIR = flags.DEFINE_string(
    "export_dir", None, "The new folder to write.", required=True
)
_MODEL_DIR = flags.DEFINE_string(
    "model_dir",
    None,
    "The output_dir of run_classifier.py. All that the flags below say is "
    "found there.",
)
_USE_CHECKPOINT = flags.DEFINE_enum(
    "use_checkpoint",
    "best",
    ("best", "last"),
    "Which checkpoint of --model_dir: that with the best dev score, if there "
    "is one, or the last.",
)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "The fine-tuned checkpoint; or --model_dir."
)
_BERT_CONFIG_FILE = flags.DEFINE_string(
    "bert_config_file",
    None,
    "The model's bert_config.json; by default what comes with the checkpoint.",
)
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file",
    None,
    "Its vocabulary; by default what comes with the checkpoint.",
)
_DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", None, "As in training; by default true."
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Longer texts are cut to so many pieces; by default 128, as in training.",
    lower_bound=4,
)
_TASK_NAME = flags.DEFINE_string(
    "task_name", None, f"Gives the labels. One of {', '.join(glue.NAMES)}."
)
_LABELS = flags.DEFINE_list(
    "labels", None, "Or the labels themselves, in the order of training."
)
_REGRESSION = flags.DEFINE_bool(
    "regression", False, "Whether the model predicts a score, not a label."
)
_PAIRS = flags.DEFINE_bool(
    "pairs",
    None,
    "Whether the model takes a second text, text_b. By default as the task "
    "does; true where that is not known.",
)


# ---- What a run tells of its model ------------------------------------------


def read_run(model_dir: str) -> Mapping[str, str]:
    """Returns the flags of the run as text, none if there are none."""
    path = os.path.join(model_dir, "flags.txt")
    if not model_dir or not tf.io.gfile.exists(path):
        return {}
    return command_line.read_flagfile(path)


def own_file(model_dir: str, name: str) -> str | None:
    """Returns a file of a run; None if there is no run."""
    return os.path.join(model_dir, name) if model_dir else None


def check_sources(model_dir: str, init_checkpoint: str) -> None:
    """Raises ValueError unless there is one source of weights."""
    if bool(model_dir) == bool(init_checkpoint):
        raise ValueError(
            "Give either --model_dir, the folder of a run, or "
            f"--init_checkpoint. Received: model_dir={model_dir}, "
            f"init_checkpoint={init_checkpoint}"
        )


def find_labels(
    labels: list[str] | None,
    is_regression: bool,
    task: classification.Task | None,
    model_dir: str,
) -> tuple[str, ...] | None:
    """Returns the labels; None for a regression."""
    if labels and is_regression:
        raise ValueError(
            "--labels and --regression contradict each other. "
            f"Received: labels={','.join(labels)}, regression=True"
        )
    if labels or is_regression:
        return tuple(labels) if labels else None
    if task:
        return task.labels
    if model_dir:
        return fine_tuned.read_labels(model_dir)
    raise ValueError(
        "The labels are not known. Give --labels, --task_name or --regression."
    )


def takes_pairs(
    task: classification.Task | None, run: Mapping[str, str]
) -> bool:
    """Says whether there is a second text."""
    if task:
        return task.takes_pairs
    return bool(run.get("text_b_column")) or not run


def check_head(
    source: opened.Checkpoint, labels: tuple[str, ...] | None
) -> None:
    """Raises ValueError unless the checkpoint has one class per label."""
    shape = source.shapes["output_weights"]
    if shape[0] != len(labels or ("",)):
        raise ValueError(
            f"{source.path} has {shape[0]} classes. Give as many --labels, or "
            "--regression for a score. Received: "
            f"labels={','.join(labels) if labels else None}"
        )


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole export as an outline."""
    model_dir = _MODEL_DIR.value or ""
    init_checkpoint = _INIT_CHECKPOINT.value or ""
    export.check_target(_EXPORT_DIR.value)
    check_sources(model_dir, init_checkpoint)
    run = read_run(model_dir)
    do_lower_case = _DO_LOWER_CASE.value
    if do_lower_case is None:
        do_lower_case = run.get("do_lower_case", "true") == "true"
    max_seq_length = _MAX_SEQ_LENGTH.value or int(
        run.get("max_seq_length", 128)
    )
    task_name = _TASK_NAME.value or run.get("task_name")
    task = glue.find(task_name) if task_name else None
    labels = find_labels(_LABELS.value, _REGRESSION.value, task, model_dir)
    pairs = _PAIRS.value
    if pairs is None:
        pairs = takes_pairs(task, run)

    tokenization.validate_case_matches_checkpoint(
        do_lower_case, init_checkpoint
    )
    source = fine_tuned.trained_checkpoint(
        model_dir, init_checkpoint, _USE_CHECKPOINT.value == "best"
    )
    files = fine_tuned.ModelFiles.load(
        _BERT_CONFIG_FILE.value or own_file(model_dir, "bert_config.json"),
        _VOCAB_FILE.value or own_file(model_dir, "vocab.txt"),
        do_lower_case,
        source,
    )
    config, vocab = files.config, files.pieces()
    check_head(source, labels)
    model = heads.BertClassifier(config, len(labels or ("",)))
    fine_tuned.restore(model, source)
    export.save_classifier(
        _EXPORT_DIR.value,
        model,
        config,
        vocab,
        do_lower_case,
        labels,
        max_seq_length,
        pairs,
    )
    logging.info("Wrote %s.", _EXPORT_DIR.value)


if __name__ == "__main__":
    command_line.run(main)
