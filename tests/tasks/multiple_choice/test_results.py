import json

from bert_tf.tasks.multiple_choice import choice_problems

import numpy as np
import pytest


def test_choices(tmp_path):
    path = tmp_path / "test_predictions.jsonl"
    problems = [
        choice_problems.Problem("1", "Él", ("a", "b", "c"), 2),
        choice_problems.Problem("2", "p", ("a", "b"), None),
    ]
    logits = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, -1e9]])
    exponentials = np.exp(logits)
    shares = exponentials / exponentials.sum(axis=1, keepdims=True)
    for with_texts in (False, True):
        choice_problems.write_predictions(
            str(path), problems, logits, with_texts
        )
        first, second = map(json.loads, path.read_text().splitlines())
        assert first.pop("probabilities") == pytest.approx(shares[0])
        assert second.pop("probabilities") == pytest.approx(shares[1, :2])
        more: list[dict] = [{}, {}]
        if with_texts:
            more = [
                {"prompt": "Él", "choices": ["a", "b", "c"], "gold": 2},
                {"prompt": "p", "choices": ["a", "b"]},
            ]
        assert first == {"id": "1", "choice": 0, **more[0]}
        assert second == {"id": "2", "choice": 1, **more[1]}
