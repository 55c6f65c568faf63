"""Tests the outline of fine-tuning scripts."""

from bert_tf.errors import InputError
from bert_tf.setup import fine_tune, fine_tuning_setup

import pytest


class _OnlyEvaluates(fine_tune.Task):
    def evaluate(self, run, batch_size):
        return {}


@pytest.mark.parametrize(
    ("action", "flag"), [("predict", "--do_predict"), ("export", "--do_export")]
)
def test_a_task_without_a_method_has_no_such_action(action, flag):
    task = _OnlyEvaluates()
    actions = dict.fromkeys(("train", "evaluate", "predict", "export"), False)
    task.work = fine_tuning_setup.Work(**actions | {"evaluate": True})
    fine_tune.check_actions(task)
    task.work = fine_tuning_setup.Work(**actions | {action: True})
    with pytest.raises(InputError, match=f"does not support {flag}"):
        fine_tune.check_actions(task)
