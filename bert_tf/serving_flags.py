"""Flags that say which model is to be served, and what it was trained with.

A script adopts them with `flags.adopt_module_key_flags(serving_flags)`. They
are read by `load`, which is called from `main`. What a run's folder tells need
not be said again.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import (
    command_line,
    export,
    features,
    fine_tuned,
    long_documents,
    serving,
    tokenization,
)
from bert_tf.interop import opened, tf1
from bert_tf.tasks import (
    glue,
    squad_answers,
    squad_threshold,
    squad_windows,
    tagging,
)

import tensorflow as tf
from absl import flags, logging

# ---- Which model ------------------------------------------------------------

MODEL_DIR = flags.DEFINE_string(
    "model_dir",
    None,
    "The output_dir of a run. What the flags below say is found there.",
)
USE_CHECKPOINT = flags.DEFINE_enum(
    "use_checkpoint",
    "best",
    ("best", "last"),
    "Which checkpoint of --model_dir: that with the best dev score, if there "
    "is one, or the last.",
)
INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint",
    None,
    "A trained checkpoint of any format; or --model_dir.",
)
HEAD = flags.DEFINE_enum(
    "head",
    None,
    serving.HEADS,
    "Which head of the checkpoint. By default the one it has; of a "
    "pre-trained one masked_lm.",
)
BERT_CONFIG_FILE = flags.DEFINE_string(
    "bert_config_file",
    None,
    "The model's bert_config.json; by default what comes with the checkpoint.",
)
VOCAB_FILE = flags.DEFINE_string(
    "vocab_file",
    None,
    "Its vocabulary; by default what comes with the checkpoint.",
)
DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", None, "As in training; by default true."
)
MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Pieces that the model reads at a time; by default as in training, or "
    "128, and 384 to find answers.",
    lower_bound=4,
)

# ---- What its head needs ----------------------------------------------------

TASK_NAME = flags.DEFINE_string(
    "task_name", None, f"Gives the labels. One of {', '.join(glue.NAMES)}."
)
LABELS = flags.DEFINE_list(
    "labels", None, "Or the labels themselves, in the order of training."
)
REGRESSION = flags.DEFINE_bool(
    "regression", False, "Whether a classifier predicts a score, not a label."
)
PAIRS = flags.DEFINE_bool(
    "pairs",
    None,
    "Whether a classifier takes a second text, text_b. By default as the task "
    "does; true where that is not known.",
)
SCHEME = flags.DEFINE_enum(
    "scheme",
    None,
    (*tagging.SCHEMES, tagging.NO_SCHEME),
    "How a tagger's labels spell entities. By default what they look like.",
)
DOC_STRIDE = flags.DEFINE_integer(
    "doc_stride", None, "As in run_squad.py; by default 128."
)
MAX_QUERY_LENGTH = flags.DEFINE_integer(
    "max_query_length", None, "As in run_squad.py; by default 64."
)
N_BEST_SIZE = flags.DEFINE_integer(
    "n_best_size", None, "As in run_squad.py; by default 20.", lower_bound=1
)
MAX_ANSWER_LENGTH = flags.DEFINE_integer(
    "max_answer_length",
    None,
    "As in run_squad.py; by default 30.",
    lower_bound=1,
)
VERSION_2_WITH_NEGATIVE = flags.DEFINE_bool(
    "version_2_with_negative", None, "As in run_squad.py; by default false."
)
NULL_SCORE_DIFF_THRESHOLD = flags.DEFINE_string(
    "null_score_diff_threshold",
    None,
    "As in run_squad.py: a number, or auto for what was tuned in --model_dir.",
)
TOP_K = flags.DEFINE_integer(
    "top_k", 5, "Pieces to list for a masked word.", lower_bound=1
)
FEATURES = flags.DEFINE_enum(
    "features",
    "last",
    [name for name in features.CHOICES if name != "layers"],
    "Which layers of an encoder make a vector.",
)
UNIT = flags.DEFINE_enum(
    "unit",
    "mean",
    ("mean", "cls"),
    "Which vector of an encoder a text has: the mean of its pieces', or that "
    "of [CLS].",
)


# ---- Reading them -----------------------------------------------------------


def given() -> list[str]:
    """Returns which of these flags the command line has, as --name."""
    own = flags.FLAGS.flags_by_module_dict()[__name__]
    return [f"--{flag.name}" for flag in own if flag.present]


def load() -> export.Export:
    """Returns the model that the flags describe, as one of raw text."""
    model_dir = MODEL_DIR.value or ""
    if bool(model_dir) == bool(INIT_CHECKPOINT.value):
        raise ValueError(
            "Give either --model_dir, the folder of a run, or "
            f"--init_checkpoint. Received: model_dir={MODEL_DIR.value}, "
            f"init_checkpoint={INIT_CHECKPOINT.value}"
        )
    run = _read_run(model_dir)
    source = fine_tuned.open_trained(
        model_dir, INIT_CHECKPOINT.value, USE_CHECKPOINT.value == "best"
    )
    head = serving.find_head(source, HEAD.value)
    _check_given(head)
    lower = _choose(DO_LOWER_CASE, run, _bool, source.do_lower_case)
    lower = True if lower is None else lower
    tokenization.validate_case_matches_checkpoint(lower, INIT_CHECKPOINT.value)
    files = fine_tuned.ModelFiles.load(
        BERT_CONFIG_FILE.value or _own_file(model_dir, tf1.CONFIG),
        VOCAB_FILE.value or _own_file(model_dir, tf1.VOCAB),
        lower,
        source,
    )
    longest = files.config.max_position_embeddings
    default = min(384 if head == "span" else 128, longest)
    length = _choose(MAX_SEQ_LENGTH, run, int, default)
    own = _OWN[head](model_dir, run, source, length) if head in _OWN else {}
    return serving.make(
        head, source, files, serving.Settings(lower, length, **own)
    )


def _check_given(head: str) -> None:
    """Raises ValueError if a flag is given that only other heads read."""
    misplaced: dict[str, list[str]] = {}
    for name in given():
        owners = [
            own
            for own, holders in _FLAGS_OF.items()
            if name in {f"--{holder.name}" for holder in holders}
        ]
        if owners and head not in owners:
            misplaced.setdefault(" or ".join(owners), []).append(name)
    if misplaced:
        said = [
            f"{', '.join(names)} {'belongs' if len(names) == 1 else 'belong'} "
            f"to --head={owners}"
            for owners, names in misplaced.items()
        ]
        raise ValueError(f"{'; '.join(said)}. Received: head={head}")


def _read_run(model_dir: str) -> Mapping[str, str]:
    """Returns the flags of the run as text, none if there are none."""
    path = os.path.join(model_dir, "flags.txt")
    if not model_dir or not tf.io.gfile.exists(path):
        return {}
    return command_line.read_flagfile(path)


def _own_file(model_dir: str, name: str) -> str | None:
    """Returns a file that a run left; None if there is none."""
    path = os.path.join(model_dir, name)
    return path if model_dir and tf.io.gfile.exists(path) else None


def _choose(
    flag: flags.FlagHolder,
    run: Mapping[str, str],
    kind: Callable[[str], Any],
    default: Any,
) -> Any:
    """Returns what the flag says, or else the run, or else the default."""
    if flag.value is not None:
        return flag.value
    return kind(run[flag.name]) if flag.name in run else default


def _bool(text: str) -> bool:
    return text == "true"


# ---- What each head needs ---------------------------------------------------

# Each: the folder of the run, its flags, the checkpoint, and the length ->
# what serving.Settings has besides.


def _encoder(*_: Any) -> dict[str, Any]:
    return {"choice": features.Choice(FEATURES.value), "unit": UNIT.value}


def _masked_lm(*_: Any) -> dict[str, Any]:
    return {"top_k": TOP_K.value}


def _classification(
    model_dir: str, run: Mapping[str, str], source: opened.Checkpoint, _: int
) -> dict[str, Any]:
    task_name = _choose(TASK_NAME, run, str, None)
    task = glue.find(task_name) if task_name else None
    if LABELS.value and REGRESSION.value:
        raise ValueError(
            "--labels and --regression contradict each other. "
            f"Received: labels={','.join(LABELS.value)}, regression=True"
        )
    if LABELS.value or REGRESSION.value:
        labels = tuple(LABELS.value) if LABELS.value else None
    elif task:
        labels = task.labels
    elif model_dir:
        labels = fine_tuned.read_labels(model_dir)
    elif source.labels or source.shapes["output_bias"] == (1,):
        labels = source.labels if source.shapes["output_bias"][0] > 1 else None
    else:
        raise ValueError(
            "The labels are not known. Give --labels, --task_name or "
            "--regression."
        )
    pairs = PAIRS.value
    if pairs is None:
        pairs = bool(run.get("text_b_column")) or not run
        pairs = task.takes_pairs if task else pairs
    stride = run.get("window_stride")
    documents = long_documents.LongDocuments(
        run.get("long_documents", "head"), int(stride) if stride else None
    )
    return {
        "labels": labels,
        "takes_pairs": pairs,
        "is_multi_label": fine_tuned.is_multi_label(source),
        "documents": documents,
    }


def _tagging(
    model_dir: str, run: Mapping[str, str], source: opened.Checkpoint, _: int
) -> dict[str, Any]:
    labels = tuple(LABELS.value or ()) or source.labels
    if not labels and model_dir:
        labels = fine_tuned.read_labels(model_dir)
    if not labels:
        raise ValueError(
            "The labels are not known. Give --labels in the order of training."
        )
    scheme = _choose(SCHEME, run, str, None)
    if not scheme:
        scheme = tagging.detect_scheme(labels)
        logging.info(
            "The labels look like %s; --scheme names another, such as IOB1.",
            scheme,
        )
    return {"labels": labels, "scheme": scheme}


def _span(
    model_dir: str, run: Mapping[str, str], _: opened.Checkpoint, length: int
) -> dict[str, Any]:
    negative = _choose(VERSION_2_WITH_NEGATIVE, run, _bool, False)
    threshold = None
    if NULL_SCORE_DIFF_THRESHOLD.value is not None and not negative:
        raise ValueError(
            "--null_score_diff_threshold goes with --version_2_with_negative, "
            "of questions without an answer. Received: "
            f"null_score_diff_threshold={NULL_SCORE_DIFF_THRESHOLD.value}, "
            "version_2_with_negative=False"
        )
    if negative:
        text = _choose(NULL_SCORE_DIFF_THRESHOLD, run, str, "0.0")
        threshold = squad_threshold.find(text, True, model_dir).known()
    return {
        "layout": squad_windows.Layout(
            length,
            _choose(DOC_STRIDE, run, int, 128),
            _choose(MAX_QUERY_LENGTH, run, int, 64),
        ),
        "search": squad_answers.Search(
            _choose(N_BEST_SIZE, run, int, 20),
            _choose(MAX_ANSWER_LENGTH, run, int, 30),
            negative,
        ),
        "threshold": threshold,
    }


_OWN: Mapping[str, Callable[..., dict[str, Any]]] = {
    "encoder": _encoder,
    "masked_lm": _masked_lm,
    "classification": _classification,
    "tagging": _tagging,
    "span": _span,
}

# Head -> the flags that it reads; every head reads those that no line has.
_FLAGS_OF: Mapping[str, tuple[flags.FlagHolder, ...]] = {
    "encoder": (FEATURES, UNIT),
    "masked_lm": (TOP_K,),
    "classification": (TASK_NAME, LABELS, REGRESSION, PAIRS),
    "tagging": (LABELS, SCHEME),
    "span": (
        *(DOC_STRIDE, MAX_QUERY_LENGTH, N_BEST_SIZE, MAX_ANSWER_LENGTH),
        *(VERSION_2_WITH_NEGATIVE, NULL_SCORE_DIFF_THRESHOLD),
    ),
}
