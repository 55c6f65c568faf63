"""Makes the model that the flags of `serving_flags` describe.

Called from the `main` of the scripts that export and predict only.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
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
    classification,
    glue,
    squad_answers,
    squad_threshold,
    squad_windows,
    tagging,
)
from bert_tf.tasks import labels as label_column

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
    lower = _choose(serving_flags.DO_LOWER_CASE, run, source.do_lower_case)
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
    length = _choose(serving_flags.MAX_SEQ_LENGTH, run, default)
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
            "model of another kind is given by --init_checkpoint"
            f"{_or_saved_model()}. Received: model_dir={model_dir}"
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


@dataclasses.dataclass(frozen=True)
class _Run:
    """What the flags of a run were.

    Attributes:
        path: Of its flags.txt; "" where no run is given.
        texts: The flags as text; none where there is no such file.
    """

    path: str
    texts: Mapping[str, str]

    def get(self, name: str, read: Callable[[str], Any], default: Any) -> Any:
        """Returns what `read` makes of a flag's text; the default of none."""
        if name not in self.texts:
            return default
        try:
            return read(self.texts[name])
        except ValueError as error:
            way_out = f", or give --{name}" * (name in flags.FLAGS)
            raise ValueError(
                f"{self.path}, which keeps the flags of the run, is wrong: "
                f"{error}. Bring it back as it was{way_out}."
            ) from error


def _read_run(model_dir: str) -> _Run:
    """Returns the flags of the run, none if there are none."""
    if not model_dir:
        return _Run("", {})
    path = os.path.join(model_dir, "flags.txt")
    return _Run(path, flagfiles.read_if_there(path))


def _own_file(model_dir: str, name: str) -> str | None:
    """Returns a file that a run left; None if there is none."""
    path = os.path.join(model_dir, name)
    return path if model_dir and tf.io.gfile.exists(path) else None


def _choose(flag: flags.FlagHolder, run: _Run, default: Any) -> Any:
    """Returns what the flag says, or else the run, or else the default."""
    if flag.value is not None:
        return flag.value
    return run.get(flag.name, flags.FLAGS[flag.name].parser.parse, default)


# ---- What each head needs ---------------------------------------------------

# Each: the folder of the run, its flags, the checkpoint, and the length ->
# what serving.Settings has besides.


def _encoder(
    _: str, run: _Run, source: opened.Checkpoint, length: int
) -> dict[str, Any]:
    own = (
        serving_flags.UNIT,
        serving_flags.NORMALIZE,
        serving_flags.FEATURES,
    )
    given = {flag.name: flag.value if flag.present else None for flag in own}
    longest = _choose(serving_flags.MAX_SEQ_LENGTH, run, None)
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
    model_dir: str, run: _Run, source: opened.Checkpoint, _: int
) -> dict[str, Any]:
    if serving_flags.TASK_NAME.value is not None:
        task = _find_task(serving_flags.TASK_NAME.value)
    else:
        task = run.get(
            "task_name", lambda x: _find_task(x) if x else None, None
        )
    given = serving_flags.LABELS.value
    if given and serving_flags.REGRESSION.value:
        raise ValueError(
            "--labels and --regression contradict each other: leave one out. "
            f"Received: labels={','.join(given)}, regression=True"
        )
    if given:
        label_column.check(given)
    _check_task(task, given)
    if given or serving_flags.REGRESSION.value:
        labels = tuple(given) if given else None
        labels_from = "--labels" if given else "--regression"
    elif task:
        labels, labels_from = task.labels, f"the task {task.name}"
    elif model_dir:
        labels_from = os.path.join(model_dir, tf1.LABELS)
        labels = fine_tuned.read_labels(model_dir)
        (count,) = source.shapes["output_bias"]
        if labels is None and count > 1:
            raise ValueError(
                f"There is no {labels_from}, which names the {count} classes. "
                "Bring it back, or give --labels in the order of training."
            )
    elif source.labels or source.shapes["output_bias"] == (1,):
        labels = source.labels if source.shapes["output_bias"][0] > 1 else None
        labels_from = "the checkpoint"
    else:
        raise ValueError(
            "The labels are not known. Give --labels, --task_name or "
            "--regression."
        )
    pairs = serving_flags.PAIRS.value
    if pairs is None:
        pairs = bool(run.texts.get("text_b_column")) or not run.texts
        pairs = task.takes_pairs if task else pairs
    stride = run.get("window_stride", _read_stride, None)
    documents = run.get(
        "long_documents",
        lambda method: long_documents.LongDocuments(method, stride),
        long_documents.LongDocuments(),
    )
    return {
        "labels": labels,
        "labels_from": labels_from,
        "takes_pairs": pairs,
        "is_multi_label": fine_tuned.is_multi_label(source),
        "documents": documents,
    }


def _check_task(
    task: classification.Task | None, given: Sequence[str] | None
) -> None:
    """Raises ValueError if --task_name has others than the labels given."""
    name, is_score = serving_flags.TASK_NAME.value, not given
    if name is None or (is_score and not serving_flags.REGRESSION.value):
        return
    labels = None if is_score else tuple(given or ())
    if task and task.labels != labels:
        flag = "--regression" if is_score else "--labels"
        has = label_column.listed(task.labels) if task.labels else "a score"
        wanted = label_column.listed(labels, ",") if labels else "a score"
        raise ValueError(
            f"--task_name and {flag} contradict each other, as {task.name} has "
            f"{has}: leave one out. Received: task_name={name}, "
            f"labels={wanted}"
        )


def _read_stride(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(
            "--window_stride must be a whole number. "
            f"Received: window_stride={text}"
        )
    return int(text)


def _find_task(name: str) -> classification.Task:
    try:
        return glue.find(name)
    except ValueError:
        raise ValueError(
            f"--task_name must be one of {', '.join(glue.NAMES)}. For a task "
            "of your own leave it out, and give --labels. "
            f"Received: task_name={name}"
        ) from None


def _tagging(
    model_dir: str, run: _Run, source: opened.Checkpoint, _: int
) -> dict[str, Any]:
    if serving_flags.LABELS.value:
        label_column.check(serving_flags.LABELS.value)
    labels = tuple(serving_flags.LABELS.value or ()) or source.labels
    if not labels and model_dir:
        labels = fine_tuned.read_labels(model_dir)
    if not labels:
        raise ValueError(
            "The labels are not known. Give --labels in the order of training."
        )
    scheme = _choose(serving_flags.SCHEME, run, None)
    if not scheme:
        scheme = tagging.detect_scheme(labels)
        logging.info(
            "The labels look like %s; --scheme names another, such as IOB1.",
            scheme,
        )
    return {"labels": labels, "scheme": scheme}


def _span(
    model_dir: str, run: _Run, _: opened.Checkpoint, length: int
) -> dict[str, Any]:
    negative = _choose(serving_flags.VERSION_2_WITH_NEGATIVE, run, False)
    threshold = None
    given = serving_flags.NULL_SCORE_DIFF_THRESHOLD.value
    if given is not None and not negative:
        raise ValueError(
            "--null_score_diff_threshold goes with --version_2_with_negative, "
            "of questions without an answer. Received: "
            f"null_score_diff_threshold={given}, version_2_with_negative=False"
        )
    if negative:
        text = _choose(serving_flags.NULL_SCORE_DIFF_THRESHOLD, run, "0.0")
        threshold = squad_threshold.find(text, True, model_dir).known()
    return {
        "layout": squad_windows.Layout(
            length,
            _choose(serving_flags.DOC_STRIDE, run, 128),
            _choose(serving_flags.MAX_QUERY_LENGTH, run, 64),
        ),
        "search": squad_answers.Search(
            _choose(serving_flags.N_BEST_SIZE, run, 20),
            _choose(serving_flags.MAX_ANSWER_LENGTH, run, 30),
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
