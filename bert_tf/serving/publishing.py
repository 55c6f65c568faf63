"""Writes the next version of a model for TensorFlow Serving, with warmup."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.exporting import (
    export_description,
    saved_model,
    server_configs,
    versions,
    warmup,
)
from bert_tf.serving import serving_lines, serving_model
from bert_tf.storage import input_files
from bert_tf.tasks import table_formats, tables
from bert_tf.tasks.masked_words import masked_texts

# ---- Example lines -----------------------------------------------------------

_SENTENCE = "the old river runs to the sea and nobody knows how far it is"
_SHORT, _ROWS, _CHOICES = 6, 8, 4

Texts = dict[str, list[Any]]


def make_texts(
    form: serving_lines.Form, columns: Sequence[str], max_seq_length: int
) -> list[Texts]:
    """Returns a short text, one of max length, and a batch.

    Args:
        form: The head's input form.
        columns: The form's columns that the model takes.
        max_seq_length: Max number of tokens that the model reads at a time.
    """
    step = max(1, (max_seq_length - _SHORT) // (_ROWS - 1))
    mixed = [_SHORT + step * i for i in range(_ROWS)]
    return [
        _columns([_row(form, columns, words) for words in counts])
        for counts in ([_SHORT], [max_seq_length], mixed)
    ]


def _row(
    form: serving_lines.Form, columns: Sequence[str], words: int
) -> dict[str, Any]:
    """Returns a line with `words` words in its last column, few in others."""
    row: dict[str, Any] = {
        name: _text(words if name == columns[-1] else _SHORT)
        for name in columns
    }
    if form.has_masks:
        row["text"] = f"{masked_texts.MASK} {row['text']}"
    if form.has_choices:
        row["choices"] = [row["choices"]] * _CHOICES
    return row


def _text(words: int) -> str:
    return " ".join(itertools.islice(itertools.cycle(_SENTENCE.split()), words))


def read_texts(asked: Iterable[serving_lines.Query]) -> list[Texts]:
    """Returns a request for each line, and the first few as a batch."""
    queries = list(asked)
    alike = [x for x in queries if x.choices == queries[0].choices][:_ROWS]
    batches = [[query] for query in queries]
    if len(alike) > 1:
        batches.append(alike)
    return [_columns([query.columns for query in batch]) for batch in batches]


def _columns(rows: Sequence[Mapping[str, Any]]) -> Texts:
    return {name: [_listed(row[name]) for row in rows] for name in rows[0]}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# ---- Versions ----------------------------------------------------------------


def check(path: str, warmup_file: str | None = None) -> None:
    """Raises an error of `publish` that does not depend on the model."""
    server_configs.check_package()
    if warmup_file:
        input_files.check(warmup_file, "warmup_file")
    versions.numbers(path)


def publish(
    path: str, made: saved_model.Export, warmup_file: str | None = None
) -> int:
    """Writes a SavedModel as the next version, atomically.

    Args:
        path: Folder of the model's versions.
        made: The model.
        warmup_file: Lines to warm up the model with before it is served, in the
            format of run_prediction.py; by default, built-in texts.

    Returns:
        The version number.

    Raises:
        InputError: The path or the lines are invalid.
    """
    model = serving_model.of_export(made)
    form = model.asks
    length = json.loads(made.files[export_description.FILE])["max_seq_length"]
    if warmup_file:
        texts = read_texts(_read(warmup_file, form, model))
    else:
        columns = [name for name in form.columns if name in model.inputs]
        texts = make_texts(form, columns, length)
    with versions.new_version(path) as (number, folder):
        saved_model.write(folder, made)
        warmup.write(folder, texts, length)
    return number


def _read(
    path: str, form: serving_lines.Form, model: serving_model.Model
) -> list[serving_lines.Query]:
    """Parses the lines of a file; InputError if it has none."""
    is_json = table_formats.of_name(path) == "jsonl"
    parser = serving_lines.Parser(
        form,
        "text_b" in model.inputs,
        "jsonl" if is_json else "plain",
        model.top_k,
    )
    asked = [
        parser.parse(text, f"{path}, line {number}")
        for number, text in tables.lines(path)
        if text.strip()
    ]
    if not 0 < len(asked) < warmup.MOST:
        raise InputError(
            f"A warm-up file has 1 to {warmup.MOST - 1} lines, each "
            f"{parser.expected}. Received: warmup_file={path}, "
            f"{len(asked)} lines"
        )
    return asked
