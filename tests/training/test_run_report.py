"""The log of a run before its first step and after its last."""

from bert_tf import heads, modeling
from bert_tf.training import run_report
from tests import interop_samples as samples

import pytest
import tensorflow as tf


def test_model_and_devices(caplog):
    model = heads.BertClassifier(modeling.Bert(samples.TINY), 2)
    with caplog.at_level("INFO", "absl"):
        replicas = run_report.replicas_of(tf.distribute.get_strategy())
        run_report.log_model(replicas, model, 32)
    first, second = caplog.messages
    assert first == f"Model: {model.count_params():,} parameters."
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    assert second == (
        f"Devices: 1 {kind} replica, 32 sequences at a time per replica, "
        "float32."
    )


@pytest.mark.parametrize(
    ("examples", "start", "expected"),
    [
        (540, 0, "51 steps, batch size 32, 540 examples, 3.02 epochs."),
        (1_632, 0, "51 steps, batch size 32, 1,632 examples, 1 epoch."),
        (1, 50, "1 step from step 50 to 51, batch size 32, 1 example, "),
        (None, 0, "51 steps, batch size 32."),
    ],
)
def test_plan(caplog, examples, start, expected):
    with caplog.at_level("INFO", "absl"):
        run_report.log_plan(examples, start, 51, 32, "runs/my x")
    assert caplog.messages[0].startswith(f"Training: {expected}")
    assert caplog.messages[1:] == [
        "Output: runs/my x",
        "Curves: tensorboard --logdir='runs/my x' (needs the extra "
        "tensorboard)",
    ]


def test_end(caplog):
    with caplog.at_level("INFO", "absl"):
        run_report.log_end(1, 123.4, "runs/x")
    assert caplog.messages == [
        "Trained 1 step in 2:03. The weights are in runs/x."
    ]
