"""Tiny trained models in folders, as runs leave them, right and wrong."""

import pathlib
import shutil
from collections.abc import Mapping, Sequence

from bert_tf import checkpoints, heads
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged

import keras
import numpy as np

_PREFIX = "model.ckpt-7"
_DATA = f"{_PREFIX}.data-00000-of-00001"
_INDEX = f"{_PREFIX}.index"


def _write(
    folder: pathlib.Path,
    model: keras.Model,
    flags: Sequence[str],
    labels: Sequence[str] = (),
) -> None:
    """Writes what a run leaves."""
    tiny_files.write_model(folder, model, _PREFIX)
    checkpoints.write_state(str(folder), [str(folder / _PREFIX)])
    known = ("--max_seq_length=16", "--do_lower_case=true", *flags)
    (folder / "flags.txt").write_text("".join(f"{x}\n" for x in known))
    if labels:
        (folder / "labels.txt").write_text("".join(f"{x}\n" for x in labels))


def _flags(*more: str) -> damaged.Change:
    """Returns what adds flags to those of a run."""

    def change(folder):
        with (folder / "flags.txt").open("a") as file:
            file.writelines(f"--{x}\n" for x in more)

    return change


def _untrained(folder: pathlib.Path) -> None:
    """Leaves all of a run but its weights."""
    for path in folder.glob("model.ckpt*"):
        path.unlink()
    (folder / "checkpoint").unlink()


def _nan(folder: pathlib.Path) -> None:
    prefix = str(folder / _PREFIX)
    values = checkpoints.read(prefix, list(checkpoints.shapes(prefix)))
    values["output_bias"] = np.full([2], np.nan, np.float32)
    checkpoints.write(prefix, values)


def _best(text: bytes) -> damaged.Change:
    """Returns what adds a folder of best weights, which says `text`."""

    def change(folder):
        (folder / "best").mkdir()
        (folder / "best" / "best_eval_results.json").write_bytes(text)

    return change


_DAMAGES: Mapping[str, damaged.Change] = {
    "untrained": _untrained,
    "index_only": damaged.without(_DATA),
    "cut_index": lambda folder: bad_models.cut(folder / _INDEX),
    "cut_data": lambda folder: bad_models.cut(folder / _DATA),
    "flipped_data": lambda folder: bad_models.flip(folder / _DATA),
    "lfs_index": damaged.bytes_in(_INDEX, bad_models.LFS),
    "lfs_data": damaged.bytes_in(_DATA, bad_models.LFS),
    "nan": _nan,
    "state_gone": lambda folder: (folder / "checkpoint").unlink(),
    "best_binary": _best(damaged.BINARY),
    "best_gone": _best(b'{"global_step": 5}'),
    "no_labels": damaged.without("labels.txt"),
    "labels_empty": damaged.bytes_in("labels.txt", b""),
    "labels_three": damaged.bytes_in("labels.txt", b"no\nyes\nor\n"),
    "labels_twice": damaged.bytes_in("labels.txt", b"no\nno\n"),
    "labels_blank": damaged.bytes_in("labels.txt", b"no\n\n"),
    "labels_binary": damaged.bytes_in("labels.txt", damaged.BINARY),
    "labels_lfs": damaged.bytes_in("labels.txt", bad_models.LFS),
    "flags_binary": damaged.bytes_in("flags.txt", damaged.BINARY),
    "flags_length": _flags("max_seq_length=long"),
    "flags_nothing": _flags("max_seq_length="),
    "flags_long": _flags("max_seq_length=64"),
    "flags_case": _flags("do_lower_case=false"),
    "flags_task": _flags("task_name=NOPE"),
    "flags_window": _flags("long_documents=windows", "window_stride=x"),
    "flags_documents": _flags("long_documents=middle"),
}


def write(folder: pathlib.Path) -> None:
    """Writes folders: of each head, and of what is wrong with a classifier."""
    config = tiny_files.CONFIG
    pairs = folder / "run"
    _write(
        pairs,
        heads.BertClassifier(config, 2),
        ["text_a_column=a", "text_b_column=b"][:0]
        + ["--text_a_column=a", "--text_b_column=b"],
        ["no", "yes"],
    )
    _write(
        folder / "single",
        heads.BertClassifier(config, 2),
        ["--text_a_column=a"],
        ["no", "yes"],
    )
    _write(
        folder / "span",
        heads.BertSpanFinder(config),
        ["--doc_stride=4", "--max_query_length=4"],
    )
    _write(folder / "tagger", heads.BertTagger(config, 2), [], ["O", "B-X"])
    _write(folder / "choices", heads.BertMultipleChoice(config), [])
    # Behind it nothing of the classifier's is left to be asked for.
    damaged.write_changed(
        pairs, folder / "runs", damaged.CONFIGS | damaged.VOCABS | _DAMAGES
    )
    (folder / "empty").mkdir()
    shutil.copytree(folder / "span", folder / "span_auto")
    _flags(
        "version_2_with_negative=true", "null_score_diff_threshold=auto"
    )(folder / "span_auto")
