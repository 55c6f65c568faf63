"""Makes the model that the flags of `serving_flags` describe.

Called from the `main` of the scripts that export and predict only.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import (
    export,
    features,
    fine_tuned,
    flag_sections,
    flagfiles,
    long_documents,
    serving,
    serving_flags,
    tokenization,
)
from bert_tf.interop import formats, opened, sentence_transformers, tf1
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


def load() -> export.Export:
    """Returns the model that the flags describe, as one of raw text."""
    ways = (serving_flags.MODEL_DIR, serving_flags.INIT_CHECKPOINT)
    given = [f"{flag.name}={flag.value}" for flag in ways if flag.value]
    if len(given) != 1:
        raise ValueError(
            "Give one model: --model_dir, the folder of a run, or "
            f"--init_checkpoint{_or_saved_model()}. "
            f"Received: {', '.join(given) or 'none'}"
        )
    model_dir = serving_flags.MODEL_DIR.value or ""
    source = formats.open_checkpoint(
        _find_trained(model_dir)
        if model_dir
        else serving_flags.INIT_CHECKPOINT.value
    )
    run = _read_run(model_dir)
    head = serving.find_head(source, serving_flags.HEAD.value)
    # What is given and belongs to another head is refused.
    flag_sections.check_used(flags.FLAGS, found={"head": head})
    lower = _choose(
        serving_flags.DO_LOWER_CASE, run, _bool, source.do_lower_case
    )
    lower = True if lower is None else lower
    tokenization.validate_case_matches_checkpoint(
        lower, serving_flags.INIT_CHECKPOINT.value
    )
    files = fine_tuned.ModelFiles.load(
        serving_flags.BERT_CONFIG_FILE.value
        or _own_file(model_dir, tf1.CONFIG),
        serving_flags.VOCAB_FILE.value or _own_file(model_dir, tf1.VOCAB),
        lower,
        source,
    )
    longest = files.config.max_position_embeddings
    default = min(384 if head == "span" else 128, longest)
    length = _choose(serving_flags.MAX_SEQ_LENGTH, run, int, default)
    own = _OWN[head](model_dir, run, source, length) if head in _OWN else {}
    common = {"do_lower_case": lower, "max_seq_length": length}
    return serving.make(head, source, files, serving.Settings(**common | own))


def _find_trained(model_dir: str) -> str:
    """Returns the checkpoint of a run; ValueError if there is none."""
    use_best = serving_flags.USE_CHECKPOINT.value == "best"
    found = fine_tuned.own_checkpoint(model_dir, use_best)
    if found:
        return found
    if not tf.io.gfile.isdir(model_dir):
        problem = "There is no such folder."
        if tf.io.gfile.exists(model_dir):
            problem = "This is a file."
        raise ValueError(
            f"{problem} --model_dir is the --output_dir of a training; a "
            "checkpoint by itself is given by --init_checkpoint. "
            f"Received: model_dir={model_dir}"
        )
    raise ValueError(
        "This folder holds no trained weights (model.ckpt-STEP.index): it is "
        "not the --output_dir of a training, or that has not saved yet. A "
        "model of another kind is given by --init_checkpoint"
        f"{_or_saved_model()}. Received: model_dir={model_dir}"
    )


def _or_saved_model() -> str:
    """Names the flag that only predict.py has."""
    return " or --saved_model" * ("saved_model" in flags.FLAGS)


def _read_run(model_dir: str) -> Mapping[str, str]:
    """Returns the flags of the run as text, none if there are none."""
    if not model_dir:
        return {}
    return flagfiles.read_if_there(os.path.join(model_dir, "flags.txt"))


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


def _encoder(
    _: str, run: Mapping[str, str], source: opened.Checkpoint, length: int
) -> dict[str, Any]:
    own = (
        serving_flags.UNIT,
        serving_flags.NORMALIZE,
        serving_flags.FEATURES,
    )
    given = {flag.name: flag.value if flag.present else None for flag in own}
    longest = _choose(serving_flags.MAX_SEQ_LENGTH, run, int, None)
    vectors = sentence_transformers.choose(
        source.path,
        given | {"max_seq_length": longest},
        sentence_transformers.Vectors(
            max_seq_length=length, **{flag.name: flag.value for flag in own}
        ),
    )
    return {
        "choice": features.Choice(vectors.features),
        "unit": vectors.unit,
        "normalize": vectors.normalize,
        "max_seq_length": vectors.max_seq_length,
    }


def _masked_lm(*_: Any) -> dict[str, Any]:
    return {"top_k": serving_flags.TOP_K.value}


def _classification(
    model_dir: str, run: Mapping[str, str], source: opened.Checkpoint, _: int
) -> dict[str, Any]:
    task_name = _choose(serving_flags.TASK_NAME, run, str, None)
    task = glue.find(task_name) if task_name else None
    given = serving_flags.LABELS.value
    if given and serving_flags.REGRESSION.value:
        raise ValueError(
            "--labels and --regression contradict each other. "
            f"Received: labels={','.join(given)}, regression=True"
        )
    if given or serving_flags.REGRESSION.value:
        labels = tuple(given) if given else None
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
    pairs = serving_flags.PAIRS.value
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
    labels = tuple(serving_flags.LABELS.value or ()) or source.labels
    if not labels and model_dir:
        labels = fine_tuned.read_labels(model_dir)
    if not labels:
        raise ValueError(
            "The labels are not known. Give --labels in the order of training."
        )
    scheme = _choose(serving_flags.SCHEME, run, str, None)
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
    negative = _choose(serving_flags.VERSION_2_WITH_NEGATIVE, run, _bool, False)
    threshold = None
    given = serving_flags.NULL_SCORE_DIFF_THRESHOLD.value
    if given is not None and not negative:
        raise ValueError(
            "--null_score_diff_threshold goes with --version_2_with_negative, "
            "of questions without an answer. Received: "
            f"null_score_diff_threshold={given}, version_2_with_negative=False"
        )
    if negative:
        text = _choose(serving_flags.NULL_SCORE_DIFF_THRESHOLD, run, str, "0.0")
        threshold = squad_threshold.find(text, True, model_dir).known()
    return {
        "layout": squad_windows.Layout(
            length,
            _choose(serving_flags.DOC_STRIDE, run, int, 128),
            _choose(serving_flags.MAX_QUERY_LENGTH, run, int, 64),
        ),
        "search": squad_answers.Search(
            _choose(serving_flags.N_BEST_SIZE, run, int, 20),
            _choose(serving_flags.MAX_ANSWER_LENGTH, run, int, 30),
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
