"""What students learn of a teacher's outputs."""

import types
from typing import Any

from bert_tf.setup import distillation_setup

import numpy as np
import pytest
import tensorflow as tf


@pytest.mark.parametrize("act", ["linear", "sigmoid"])
def test_a_score_is_what_the_teacher_predicts(act):
    """As a CrossEncoder of sentence-transformers, whose sigmoid is a score."""
    logits = np.array([[-2.0], [0.5]])
    teacher: Any = types.SimpleNamespace(
        head="classification",
        order=None,
        config=types.SimpleNamespace(score_act=act),
    )
    model = type("Model", (), {"num_labels": 1, "__call__": lambda _, x: x})()
    found = distillation_setup._outputs(teacher, model)(tf.constant(logits))
    expected = 1 / (1 + np.exp(-logits)) if act == "sigmoid" else logits
    np.testing.assert_allclose(found, expected, rtol=1e-6)
