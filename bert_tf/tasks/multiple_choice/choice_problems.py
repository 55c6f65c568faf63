"""Multiple-choice problems, prompts with one correct choice, and predictions.

Files are SWAG's CSV, RACE's objects as JSON lines, or custom JSON lines with
`prompt`, `choices` and `label`. Errors name the file and the line.
"""

import collections
import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf import files
from bert_tf.errors import InputError, shortened
from bert_tf.storage import file_systems, input_files
from bert_tf.tasks import table_formats, table_json, tables

import numpy as np
import scipy.special

_ENDINGS = ("ending0", "ending1", "ending2", "ending3")
# Marks the blank to fill in a RACE question.
_BLANK = re.compile("_+")


@dataclasses.dataclass(frozen=True)
class Problem:
    """A prompt, its choices, and the index of the correct one, if known.

    `key` is its id in the file, or else its line. Problems with the same one,
    such as the questions of an article, are numbered: ID-0, ID-1.
    """

    key: str
    prompt: str
    choices: tuple[str, ...]
    label: int | None


def read(path: str, with_labels: bool | None) -> list[Problem]:
    """Reads the problems of a file: SWAG's CSV by its extension, or JSON lines.

    From a folder, as in RACE, the `.txt` files in it and in its subfolders are
    read, in the order of their numbers.

    If `with_labels` is None, a label is read only if it is one of the choices,
    as a test file may hide it, for example as -1.

    Raises:
        FileNotFoundError: There is no such file.
        InputError: The extension is unknown, the file has no problems, or a row
            lacks a field or has an unknown label.
    """
    problems: list[Problem] = []
    for where, problem in _rows(path, with_labels):
        hidden = problem.label not in range(len(problem.choices))
        if with_labels is None and hidden:
            problem = dataclasses.replace(problem, label=None)
        _check(where, problem)
        problems.append(problem)
    if not problems:
        raise InputError(
            f"{path} holds no problem. Expected one JSON object a line, in the "
            "file or, as in RACE, in the .txt files of the folder."
        )
    counts = collections.Counter(problem.key for problem in problems)
    numbers = {x: itertools.count() for x, count in counts.items() if count > 1}
    return [
        dataclasses.replace(x, key=f"{x.key}-{next(numbers[x.key])}")
        if x.key in numbers
        else x
        for x in problems
    ]


def _rows(path: str, with_labels: bool | None) -> Iterator[tuple[str, Problem]]:
    """Yields the problems at a path and where each is."""
    if file_systems.find_backend(path).isdir(path):
        for file in file_systems.text_files(path):
            yield from _json_rows(file, with_labels)
        return
    input_files.check_can_be_read_again(path)
    file_format = table_formats.find(path)
    if file_format not in _READERS:
        raise InputError(
            "The name of a file of problems must end in .csv (SWAG's), or in "
            ".jsonl (RACE's objects or your own, one a line): rename it. "
            f"Received: {path}"
        )
    yield from _READERS[file_format](path, with_labels)


def _check(where: str, problem: Problem) -> None:
    count = len(problem.choices)
    if count < 2 or not all(choice.strip() for choice in problem.choices):
        texts = [shortened(choice, 20) for choice in problem.choices]
        raise InputError(
            f"{where}: expected two choices or more, none of them empty. "
            f"Received: {count}, {shortened(repr(texts), 400)}"
        )
    if problem.label is not None and not 0 <= problem.label < count:
        raise InputError(
            f"{where}: the label must be from 0 to {count - 1}. "
            f"Received: label={problem.label}"
        )


# ---- SWAG -------------------------------------------------------------------


def _swag_rows(
    path: str, with_labels: bool | None
) -> Iterator[tuple[str, Problem]]:
    """Reads `sent1` as the prompt; `sent2` begins each of the endings."""
    names = ["sent1", "sent2", *_ENDINGS]
    if with_labels is not False:
        names.append("label")
    rows = tables.read_columns(
        path,
        {name: name for name in names},
        file_format="csv",
        optional=() if with_labels else ("label",),
    )
    for line, row in rows:
        where = f"{path}, line {line}"
        _check_not_empty(where, {name: row[name] for name in _ENDINGS})
        choices = (f"{row['sent2']} {row[name]}" for name in _ENDINGS)
        label = None
        if with_labels or row.get("label", "").strip().isdecimal():
            label = _number(where, row["label"])
        yield where, Problem(str(line), row["sent1"], tuple(choices), label)


def _check_not_empty(where: str, texts: Mapping[str, str]) -> None:
    """Raises InputError if a text that is part of a choice is empty."""
    for name, text in texts.items():
        if not text.strip():
            raise InputError(
                f"{where}: {name} is empty. Write the choice, or remove the "
                "problem."
            )


def _number(where: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(
            f"{where}: the label must be the number of the right choice, from "
            f"0. Received: label={shortened(repr(text))}"
        )
    return int(text)


# ---- JSON lines -------------------------------------------------------------


def _json_rows(
    path: str, with_labels: bool | None
) -> Iterator[tuple[str, Problem]]:
    for line, row in tables.json_objects(path):
        where = f"{path}, line {line}"
        for problem in _problems(where, row, with_labels):
            tables.check_text(dataclasses.astuple(problem), where)
            key = problem.key or str(line)
            yield where, dataclasses.replace(problem, key=key)


def _problems(
    where: str, row: dict[str, Any], with_labels: bool | None
) -> list[Problem]:
    if with_labels is None:
        # Errors unrelated to labels also occur without them, below.
        with contextlib.suppress(ValueError):
            return _problems(where, row, True)
    if "article" in row:
        return _race(where, row, bool(with_labels))
    return [_own(where, row, bool(with_labels))]


def _own(where: str, row: dict[str, Any], with_labels: bool) -> Problem:
    return Problem(
        _key(row, "id"),
        _field(where, row, "prompt", str),
        _texts(where, row, "choices"),
        _field(where, row, "label", int) if with_labels else None,
    )


def _key(row: Mapping[str, Any], *names: str) -> str:
    """Returns the first id that an object has, or ""."""
    values = (row.get(name) for name in names)
    return str(next((x for x in values if not table_json.is_missing(x)), ""))


def _race(where: str, row: dict[str, Any], with_labels: bool) -> list[Problem]:
    """Reads one question, or all of an article as in RACE's own files.

    A choice is the question with the option in its blank, or after it.
    """
    article = _field(where, row, "article", str)
    key = _key(row, "id", "example_id")
    if "questions" not in row:
        question = _field(where, row, "question", str)
        answer = _field(where, row, "answer", str) if with_labels else None
        options = _texts(where, row, "options")
        return [_asked(where, key, article, question, options, answer)]
    questions = _texts(where, row, "questions")
    answers: Sequence[str | None] = [None] * len(questions)
    if with_labels:
        answers = _texts(where, row, "answers")
    options = _field(where, row, "options", list)
    if not len(questions) == len(answers) == len(options):
        raise InputError(
            f"{where}: expected as many options and answers as questions. "
            f"Received: {len(questions)} questions, {len(options)} options, "
            f"{len(answers)} answers"
        )
    return [
        _asked(
            where,
            f"{key}-{i}" if key else "",
            article,
            question,
            _texts(where, {"options": options[i]}, "options"),
            answers[i],
        )
        for i, question in enumerate(questions)
    ]


def _asked(
    where: str,
    key: str,
    article: str,
    question: str,
    options: Sequence[str],
    answer: str | None,
) -> Problem:
    _check_not_empty(
        where, {f"option {i}": text for i, text in enumerate(options, 1)}
    )
    parts = _BLANK.split(question)
    if len(parts) > 1:
        choices = [option.join(parts) for option in options]
    else:
        choices = [f"{question} {option}" for option in options]
    label = None
    if answer is not None:
        if len(answer) != 1 or not "A" <= answer <= "Z":
            received = shortened(repr(answer))
            raise InputError(
                f"{where}: the answer must be a letter, A for the first "
                f"option. Received: answer={received}"
            )
        label = ord(answer) - ord("A")
    return Problem(key, article, tuple(choices), label)


def _field(where: str, row: dict[str, Any], key: str, kind: type) -> Any:
    # JSON's true and false are integers in Python.
    if type(row.get(key)) is not kind:
        raise InputError(
            f"{where}: expected {key!r} of type {kind.__name__}. Received: "
            f"{repr(row.get(key))[:80]}, keys {', '.join(row) or 'none'}"
        )
    return row[key]


def _texts(where: str, row: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _field(where, row, key, list)
    for value in values:
        _field(where, {key: value}, key, str)
    return tuple(values)


_READERS = {"csv": _swag_rows, "jsonl": _json_rows}


# ---- Predictions ------------------------------------------------------------


def write_predictions(
    path: str,
    problems: Sequence[Problem],
    logits: np.ndarray,
    with_texts: bool = False,
) -> None:
    """Writes the most likely choices as JSON lines, from logits [B, K].

    With `with_texts`, lines include the prompt and choices and, as `gold`, the
    index of the correct choice if known.
    """

    def line(problem: Problem, row: np.ndarray) -> str:
        found: dict[str, Any] = {"id": problem.key}
        if with_texts:
            found |= {"prompt": problem.prompt, "choices": problem.choices}
        if with_texts and problem.label is not None:
            found["gold"] = problem.label
        row = row[: len(problem.choices)]
        found["choice"] = int(row.argmax())
        found["probabilities"] = scipy.special.softmax(row).tolist()
        return json.dumps(found, ensure_ascii=False)

    rows = zip(problems, logits, strict=True)
    files.write_lines(path, (line(problem, row) for problem, row in rows))
