"""What a run says of problems: the likeliest choices."""

import json
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.tasks.multiple_choice import problems as choice_problems

import numpy as np
import scipy.special


def write_predictions(
    path: str,
    problems: Sequence[choice_problems.Problem],
    logits: np.ndarray,
    with_texts: bool = False,
) -> None:
    """Writes the likeliest choices as JSON lines, by logits [B, K].

    With `with_texts` they have prompt and choices, and the right one's number,
    as `gold`, where it is known.
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
