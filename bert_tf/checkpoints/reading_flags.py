"""The flags that a written checkpoint does not keep, and that reading needs."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints import casing, hub, opened, runs, sentence_transformers
from bert_tf.errors import InputError
from bert_tf.storage import weight_files

_SPAN = {
    "max_seq_length": 384,
    "doc_stride": 128,
    "max_query_length": 64,
    "n_best_size": 20,
    "max_answer_length": 30,
    "version_2_with_negative": False,
    "null_score_diff_threshold": 0.0,
}
# Head -> the flags of its run that texts are read by, with their defaults; None
# where scripts have no common default.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "classification": {
        "max_seq_length": None,
        "long_documents": "head",
        "window_stride": None,
    },
    "multiple_choice": {"max_seq_length": None},
    "tagging": {"max_seq_length": None, "scheme": None, "context": "sentence"},
    "span": _SPAN,
    "joint_span": {**_SPAN, "start_n_top": 5, "end_n_top": 5},
    "seq2seq": {
        "max_seq_length": None,
        "max_target_length": None,
        "beam_size": 4,
        "length_penalty": 0.6,
    },
}
# Flags that only one script takes -> the script.
_SCRIPTS = {
    "context": "run_ner.py",
    "start_n_top": "run_squad.py --answer_head=joint",
    "end_n_top": "run_squad.py --answer_head=joint",
    "max_target_length": "run_seq2seq.py",
    "beam_size": "run_seq2seq.py",
    "length_penalty": "run_seq2seq.py",
}


def notes(
    source: opened.Checkpoint, output_format: str, head: str
) -> list[str]:
    """Returns notes on the flags that scripts need to read texts alike.

    `head` is the head that was written.
    """
    is_own = weight_files.FORMATS[output_format].is_own
    given = _casing(source) if is_own else {}
    given |= _of_run(source, head)
    if not is_own and source.max_seq_length:
        given.pop("max_seq_length", None)  # The tokenizer has it.
    found: list[str] = []
    vectors = _vectors(source, found) if head == "encoder" else {}
    given |= vectors
    documents = given.pop("long_documents", "head")
    if documents != "head":
        stride = given.pop("window_stride", "")
        found.append(
            f"The model was trained with --long_documents={documents}"
            f"{' --window_stride=' * bool(stride)}{stride}: give it to "
            "run_classifier.py, also to predict and to export."
        )
    if given:
        said = " ".join(f"--{name}={text}" for name, text in given.items())
        kind = "A TF1 checkpoint" if output_format == "tf1" else "The folder"
        script = next((_SCRIPTS[x] for x in given if x in _SCRIPTS), "scripts")
        module = sentence_transformers.MODULES
        found.append(
            f"{kind} does not keep how its text is read"
            f"{f', as {module} is left out' * bool(vectors)}: give {script} "
            f"{said}."
        )
    return found


def _casing(source: opened.Checkpoint) -> dict[str, str]:
    if source.vocab is None or source.do_lower_case is None:
        return {}
    told: bool | None = False
    with contextlib.suppress(InputError):
        told = casing.told_by(source.vocab, "The vocabulary")
    # By default, scripts lower-case text.
    if told is None or (told and source.do_lower_case):
        return {}
    return {"do_lower_case": str(source.do_lower_case).lower()}


def _vectors(source: opened.Checkpoint, more: list[str]) -> dict[str, str]:
    """Returns the settings of a sentence-transformers folder, if any.

    If the folder makes vectors that are not supported, adds a note to `more`.
    """
    found = source.vectors
    if found is None:
        found = sentence_transformers.settings(hub.locate(source.path))
    said = {name: str(x).lower() for name, x in found.items() if x is not False}
    if said.pop("problem", None):
        more.append(f"The model makes other vectors. {found['problem']}")
    return said


def _of_run(source: opened.Checkpoint, head: str) -> dict[str, str]:
    """Returns the flags that differ from their defaults, as text."""
    flags: dict[str, str] = {}
    if not source.is_foreign:
        flags |= runs.flags_of(source.path)
    if flags.get("null_score_diff_threshold") == "auto":
        folder = runs.folder_of(source.path)
        path = os.path.join(folder, "null_score_diff_threshold.txt")
        tuned = opened.read_text(path) or "auto"
        flags["null_score_diff_threshold"] = tuned.strip()
    found = {
        name: flags[name]
        for name, default in DEFAULTS.get(head, {}).items()
        if flags.get(name)
        and (default is None or flags[name] != str(default).lower())
    }
    prefixes = {label[:2] for label in source.labels or ()} - {"O"}
    if head == "tagging" and flags and prefixes == {"B-", "I-"}:
        # Of other sources than runs, such labels are read as IOB1.
        found.setdefault("scheme", "BIO")
    if source.max_seq_length:
        found["max_seq_length"] = str(source.max_seq_length)
    return found
