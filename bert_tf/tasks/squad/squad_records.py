"""Writes questions as TFRecords of windows, with the original's features."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bert_tf import phases
from bert_tf.errors import InputError, counted
from bert_tf.records import record_types, tfrecord
from bert_tf.tasks import left_out_rows
from bert_tf.tasks.squad import squad_answers, squad_questions, squad_windows

import numpy as np
from absl import logging

# First unique id, as in the original.
_FIRST_UNIQUE_ID = 1_000_000_000
# Windows that are serialized at once.
_BATCH_SIZE = 1024

Columns = Mapping[str, np.ndarray]


def write_to_train(
    path: str,
    cutter: squad_windows.Cutter,
    questions: Sequence[squad_questions.Question],
    strict: bool = True,
) -> record_types.RecordFile:
    """Writes a training file; each question has one answer or is impossible.

    A context or answer without words is an error; if not `strict`, its question
    is left out.
    """
    left_out = left_out_rows.LeftOut(questions[0].file, strict)

    def features() -> Iterator[Columns]:
        for question in phases.tracked(
            questions, "Cutting contexts", "questions", len(questions)
        ):
            try:
                windows = cutter.cut(question)
                columns = cutter.features(windows) | cutter.labels(windows)
            except InputError as error:
                left_out.add(error)
            else:
                yield columns

    records = _write(path, cutter, record_types.SPAN, features())
    left_out.warn(len(questions) - left_out.count, "questions")
    return records


def write_to_predict(
    path: str,
    cutter: squad_windows.Cutter,
    questions: Sequence[squad_questions.Question],
) -> tuple[record_types.RecordFile, list[squad_windows.Windows]]:
    """Writes a prediction file; also returns the windows of each question."""
    asked = phases.tracked(
        questions, "Cutting contexts", "questions", len(questions)
    )
    all_windows = [cutter.cut(question) for question in asked]
    empty = [x.question for x in all_windows if x.is_empty]
    if empty:
        logging.warning(
            "%s: %d questions have a context without words, so their answer is "
            "%r or none: the first is %s.",
            *(empty[0].file, len(empty), squad_answers.EMPTY, empty[0].key),
        )
    features = map(cutter.features, all_windows)
    return _write(
        path, cutter, record_types.SPAN_QUESTION, features
    ), all_windows


def _write(
    path: str,
    cutter: squad_windows.Cutter,
    record_type: record_types.RecordType,
    features: Iterable[Columns],
) -> record_types.RecordFile:
    questions = 0
    with tfrecord.Writer(path) as writer:

        def write(waiting: Sequence[Columns]) -> None:
            columns = {
                name: np.concatenate([part[name] for part in waiting])
                for name in waiting[0]
            }
            first = _FIRST_UNIQUE_ID + writer.records
            columns["unique_ids"] = first + np.arange(len(columns["input_ids"]))
            writer.write_all(record_type.encode_batch(columns))

        waiting: list[Columns] = []
        rows = 0
        for part in features:
            questions += 1
            waiting.append(part)
            rows += len(part["input_ids"])
            if rows >= _BATCH_SIZE:
                write(waiting)
                waiting, rows = [], 0
        if waiting:
            write(waiting)
    logging.info(
        "Read %s of %s for %s.",
        counted(writer.records, "window"),
        counted(questions, "question"),
        os.path.basename(path),
    )
    return record_types.RecordFile(
        path, writer.records, record_type, cutter.layout.max_seq_length
    )
