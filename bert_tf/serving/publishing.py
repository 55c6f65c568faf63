"""Writes the next version of a model for TensorFlow Serving, with warmup."""

import json

from bert_tf.errors import InputError
from bert_tf.exporting import saved_model, server_configs, versions, warmup
from bert_tf.serving import examples, served_heads, serving_lines, serving_model
from bert_tf.storage import input_files
from bert_tf.tasks import table_formats, tables


def check(path: str) -> None:
    """Raises InputError if a model's folder cannot take a new version."""
    server_configs.check_package()
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
    form = served_heads.HEADS[model.head].asks
    length = json.loads(made.files["export.json"])["max_seq_length"]
    if warmup_file:
        texts = examples.of_lines(_read(warmup_file, form, model))
    else:
        columns = [name for name in form.columns if name in model.inputs]
        texts = examples.made(form, columns, length)
    with versions.new_version(path) as (number, folder):
        saved_model.write(folder, made)
        warmup.write(folder, texts, length)
    return number


def _read(
    path: str, form: serving_lines.Form, model: serving_model.Model
) -> list[serving_lines.Query]:
    """Parses the lines of a file; InputError if it has none."""
    input_files.check(path, "warmup_file")
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
