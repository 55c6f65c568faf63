"""Writes predictions for multiple-choice problems."""

import json
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.tasks.multiple_choice import choice_problems

import numpy as np
import scipy.special


def write_predictions(
    path: str,
    problems: Sequence[choice_problems.Problem],
    logits: np.ndarray,
    with_texts: bool = False,
) -> None:
    """Writes the most likely choices as JSON lines, from logits [B, K].

    With `with_texts`, lines include the prompt and choices and, as `gold`, the
    index of the correct choice if known.
    """

    def line(problem: choice_problems.Problem, row: np.ndarray) -> str:
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
