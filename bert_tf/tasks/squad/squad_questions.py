"""SQuAD 1.1 and 2.0: questions about contexts, read from their JSON files.

Every error names the file and the question.
"""

import dataclasses
import random
import re
from collections.abc import Sequence
from typing import Any

from bert_tf.errors import InputError, counted
from bert_tf.storage import input_files, json_files
from bert_tf.tasks import left_out_rows, tables

from absl import logging


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer text and the position of its first character in the context.

    `start` is None if the file lacks it; only training needs it.
    """

    text: str
    start: int | None


@dataclasses.dataclass(frozen=True)
class Question:
    """One question about one context; `key` is its id in the file.

    It may have answers by several annotators. It has no answers if they are
    unknown, or if the context has no answer (`is_impossible`).
    """

    key: str
    text: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False
    file: str = dataclasses.field(default="", compare=False)

    @property
    def where(self) -> str:
        """File and id, for errors."""
        if not self.file:
            return f"Question {self.key}"
        return f"{self.file}, question {self.key}"


# ---- Reading ----------------------------------------------------------------


def read(
    path: str, left_out: left_out_rows.LeftOut | None = None
) -> list[Question]:
    """Reads the questions of a file, in its order.

    Bad questions are added to `left_out`; without it, they are errors.

    Raises:
        FileNotFoundError: The file does not exist.
        InputError: The file is not in SQuAD's format, an id is repeated, or
            there are no questions.
    """
    left_out = left_out or left_out_rows.LeftOut(path, strict=True)
    questions: dict[str, Question] = {}
    for number, article in enumerate(_field(path, _load(path), "data", list)):
        where = f"{path}, article {number + 1}"
        paragraphs = _field(where, article, "paragraphs", list)
        for index, paragraph in enumerate(paragraphs, 1):
            place = f"{where}, paragraph {index}"
            context = _field(place, paragraph, "context", str)
            for qa in _field(place, paragraph, "qas", list):
                try:
                    question = _question(path, place, context, qa)
                    if question.key in questions:
                        raise InputError(
                            f"{question.where}: the id comes twice."
                        )
                except InputError as error:
                    left_out.add(error)
                else:
                    questions[question.key] = question
    if not questions and not left_out.count:
        raise InputError(f"{path} holds no question.")
    return list(questions.values())


def _load(path: str) -> Any:
    """Returns the content of a JSON file."""
    data = input_files.read(path)
    if _ROWS.match(data):
        start = data[:40].decode(errors="replace")
        raise InputError(
            f"{path} has a row for each question, as the library datasets "
            "writes it. Convert each row to a paragraph with one question. "
            f"Expected {_FORM}. Received: {start!r}"
        )
    way_out = f"Expected {_FORM}."
    return json_files.parse(data, path, "JSON", way_out, json_files.unique_keys)


def _question(path: str, place: str, context: str, qa: Any) -> Question:
    tables.check_text([context, qa], place)
    key = _field(place, qa, "id", str)
    where = f"{path}, question {key}"
    answers = []
    # Questions to predict may lack answers.
    for answer in _field(where, qa, "answers", list, []):
        text = _field(where, answer, "text", str)
        start = _field(where, answer, "answer_start", int, None)
        answers.append(Answer(text, start))
    return Question(
        key,
        _field(where, qa, "question", str),
        context,
        tuple(answers),
        _field(where, qa, "is_impossible", bool, False),
        path,
    )


_NEEDED = object()
# A list of rows, lines of rows, or rows under "data", as transformers' scripts
# read them.
_ROWS = re.compile(rb'\s*(?:\{\s*"data"\s*:\s*)?\[?\s*\{[^{}]*"context"')
_FORM = (
    '{"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "...", '
    '"question": "...", "answers": [{"text": "...", "answer_start": 0}], '
    '"is_impossible": false}]}]}]}'
)


def _field(
    where: str, item: Any, key: str, kind: type, default: Any = _NEEDED
) -> Any:
    if not isinstance(item, dict):
        raise InputError(
            f"{where}: expected a JSON object with {key!r}, as in SQuAD's "
            f"files. They have {_FORM}. "
            f"Received: a value of type {type(item).__name__}"
        )
    if key not in item:
        if default is not _NEEDED:
            return default
        raise InputError(
            f"{where}: {key!r} is missing. Expected {_FORM}. Received: keys "
            f"{', '.join(item) or 'none'}"
        )
    value = _converted(item[key], kind)
    # JSON's true and false are integers to Python.
    if type(value) is not kind:
        raise InputError(
            f"{where}: {key!r} must be of type {kind.__name__}. Expected "
            f"{_FORM}. Received: {repr(item[key])[:80]}"
        )
    return value


def _converted(value: Any, kind: type) -> Any:
    """Converts 7 to "7", "4" to 4 and "false" to False if `kind` needs it."""
    if kind is str and type(value) is int:
        return str(value)
    if kind is int and isinstance(value, str):
        return int(value) if re.fullmatch("-?[0-9]{1,18}", value) else value
    if kind is bool and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


# ---- Answers for training ---------------------------------------------------


def with_one_answer(
    path: str,
    questions: Sequence[Question],
    version_2_with_negative: bool,
    verbose: bool = False,
    left_out: left_out_rows.LeftOut | None = None,
) -> list[Question]:
    """Returns the questions with the one answer to train on.

    It is the first one in the file. If it is not at its `answer_start`, as for
    a few in the published files, the nearest occurrence in the context is used,
    ignoring white space, or else case. With `verbose`, warnings name all
    questions. Questions unusable for training are added to `left_out`.

    Raises:
        InputError: Without `left_out`: a question lacks an answer (unless
            `version_2_with_negative`), or the answer is not in the context.
    """
    left_out = left_out or left_out_rows.LeftOut(path, strict=True)
    results = []
    several: list[str] = []
    moved: list[str] = []
    recased: list[str] = []
    farthest = 0  # distance of the moved answers, in characters
    for question in questions:
        is_of_version_2 = question.is_impossible and not question.answers
        if is_of_version_2 and not version_2_with_negative:
            raise InputError(
                f"{question.where}: there is no answer to learn. Files of "
                "SQuAD 2.0 need --version_2_with_negative=true."
            )
        try:
            learned = _learned(question, version_2_with_negative)
        except InputError as error:
            left_out.add(error)
            continue
        results.append(learned)
        if not learned.answers:
            continue
        if len(question.answers) > 1:
            several.append(question.key)
        given, answer = question.answers[0], learned.answers[0]
        if answer.start != given.start:
            moved.append(question.key)
            distance = abs((answer.start or 0) - (given.start or 0))
            farthest = max(farthest, distance)
        if answer.text.split() != given.text.split():
            recased.append(question.key)
    taken = "have several answers; the first is learned"
    _warn_of(path, several, taken, verbose)
    taken = (
        "have an answer that is not at its answer_start; the nearest "
        f"occurrence is taken, up to {farthest} characters away"
    )
    _warn_of(path, moved, taken, verbose)
    taken = "have an answer in another case than the context, whose is taken"
    _warn_of(path, recased, taken, verbose)
    return results


def _learned(question: Question, version_2_with_negative: bool) -> Question:
    """Returns a question with the answer to train on, or none if impossible."""
    if not question.text.strip():
        raise InputError(f"{question.where}: the question is empty. Remove it.")
    if not question.context.strip():
        raise InputError(
            f"{question.where}: the context is empty. Remove its questions."
        )
    if version_2_with_negative and question.is_impossible:
        return dataclasses.replace(question, answers=())
    if not question.answers:
        raise InputError(
            f"{question.where}: there is no answer to learn. If it is meant to "
            'have none, it says "is_impossible": true, and the run '
            "--version_2_with_negative=true."
        )
    answer = _located(question.where, question.context, question.answers[0])
    return dataclasses.replace(question, answers=(answer,), is_impossible=False)


def _warn_of(path: str, keys: list[str], what: str, verbose: bool) -> None:
    """Warns of questions, by the first id, or by all ids if `verbose`."""
    if keys:
        logging.warning(
            "%s: %d questions %s: %s%s.",
            path,
            len(keys),
            what,
            ", ".join(keys if verbose else keys[:1]),
            "" if verbose or len(keys) == 1 else " and others",
        )


_WAY_OUT = "Correct the answer, or remove the question."


def _located(where: str, context: str, answer: Answer) -> Answer:
    """Returns the answer as the exact slice of the context."""
    words = answer.text.split()
    if not words:
        raise InputError(f"{where}: the answer is empty. {_WAY_OUT}")
    if answer.start is None:
        raise InputError(
            f"{where}: the answer has no 'answer_start'. {_WAY_OUT}"
        )
    if not 0 <= answer.start <= len(context):
        raise InputError(
            f"{where}: the answer is out of range; the context has "
            f"{len(context)} characters. Received: "
            f"answer_start={answer.start}, text={answer.text[:80]!r}. "
            f"{_WAY_OUT}"
        )
    there = context[answer.start : answer.start + len(answer.text)]
    if there == answer.text:
        return answer
    if there.lower() == answer.text.lower():
        return Answer(there, answer.start)
    pattern = r"\s+".join(map(re.escape, words))
    places = [match.span() for match in re.finditer(pattern, context)] or [
        match.span() for match in re.finditer(pattern, context, re.IGNORECASE)
    ]
    if not places:
        raise InputError(
            f"{where}: the answer is not in the context. Expected "
            f"{answer.text[:80]!r}. Received: {there[:80]!r} at "
            f"answer_start={answer.start}. {_WAY_OUT}"
        )
    wanted = answer.start
    start, end = min(places, key=lambda place: abs(place[0] - wanted))
    return Answer(context[start:end], start)


def check_scorable(
    path: str, questions: Sequence[Question], version_2_with_negative: bool
) -> bool:
    """Returns whether predictions can be scored, i.e. the file has answers.

    Questions that are impossible count as answered. If no question has an
    answer and some are not impossible, the answers were removed. If only some
    have an answer, SQuAD 1.1's rules cannot score: raises InputError.
    """
    missing = [q.key for q in questions if not q.answers]
    are_hidden = not all(q.is_impossible for q in questions)
    if len(missing) == len(questions) and are_hidden:
        return False
    if missing and not version_2_with_negative:
        raise InputError(
            f"{path}, question {missing[0]}: there is no answer, as for "
            f"{len(missing)} of {len(questions)} questions. Files of SQuAD 2.0 "
            "need --version_2_with_negative=true."
        )
    return True


# ---- Questions of a run -----------------------------------------------------


def read_to_train(
    path: str | None,
    version_2_with_negative: bool,
    verbose: bool,
    seed: int,
    strict: bool = False,
) -> list[Question]:
    """Reads the training questions, shuffled by the seed as in the original.

    A missing path is an error. With `verbose`, warnings name all questions.
    Questions unusable for training are left out, or are errors if `strict`.
    """
    if not path:
        raise InputError(
            "--do_train needs --train_file, such as SQuAD's train-v1.1.json."
        )
    left_out = left_out_rows.LeftOut(path, strict, verbose)
    questions = with_one_answer(
        path, read(path, left_out), version_2_with_negative, verbose, left_out
    )
    left_out.warn(len(questions), "questions")
    number = counted(len(questions), "question")
    logging.info("Data: %s to train on.", number)
    random.Random(seed).shuffle(questions)
    return questions


def read_to_answer(
    path: str | None,
    version_2_with_negative: bool,
    do_eval: bool,
    verbose: bool = False,
) -> tuple[list[Question], bool]:
    """Reads the questions to answer; also returns whether they can be scored.

    A missing path is an error; so is `do_eval` if they cannot be scored.
    """
    if not path:
        raise InputError(
            "--do_eval and --do_predict need --predict_file, such as SQuAD's "
            "dev-v1.1.json."
        )
    questions = read(path)
    try:
        is_scorable = check_scorable(path, questions, version_2_with_negative)
    except InputError as error:
        if do_eval:
            raise
        logging.warning("The predictions are not scored: %s", error)
        is_scorable = False
    if do_eval and not is_scorable:
        raise InputError(
            f"--do_eval needs answers, and {path} has none. Leave out "
            "--do_eval, or give another --predict_file."
        )
    empty = [q.key for q in questions if not q.text.strip()]
    _warn_of(path, empty, "are empty, and answered all the same", verbose)
    _warn_of_lost_answers(path, questions, verbose)
    number = counted(len(questions), "question")
    logging.info("Data: %s to answer.", number)
    return questions, is_scorable


def _warn_of_lost_answers(
    path: str, questions: Sequence[Question], verbose: bool
) -> None:
    """Warns of answers that do not occur in the context.

    The official rules score by the text alone, so these answers still count.
    """
    lost = [
        question.key
        for question in questions
        if any(x.text not in question.context for x in question.answers)
    ]
    what = "have an answer that is not in the context"
    _warn_of(path, lost, what, verbose)
