"""A small pre-training run, for other implementations to repeat.

Records, initial weights and the order of the data are determined by seeds.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files
from bert_tf.records import pipeline
from tests import pretraining_records, reference, scripts

import numpy as np
import tensorflow as tf

CONFIG = pretraining_records.WITHOUT_DROPOUT | {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
# Three steps per epoch, so the model can memorize the data.
COUNTS = (7, 12, 5)
BATCH = 8  # B
STEPS, WARMUP, LEARNING_RATE = 100, 10, 5e-4
SEED = 7

FLAGS = (
    "--do_train=true",
    f"--train_batch_size={BATCH}",
    f"--num_train_steps={STEPS}",
    f"--num_warmup_steps={WARMUP}",
    f"--learning_rate={LEARNING_RATE}",
    f"--seed={SEED}",
    "--max_seq_length=16",
    "--max_predictions_per_seq=4",
    "--log_steps=1",
)


def run(folder: pathlib.Path, *flags: str) -> list[dict[str, float]]:
    """Runs run_pretraining.py; returns the metrics of each step."""
    done = scripts.run(
        folder / "log", "run_pretraining", f"--output_dir={folder}/out", *flags
    )
    assert done.wait() == 0, done.stderr
    lines = (folder / "out" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def assert_same_steps(
    found: list[dict[str, float]], expected: list[dict[str, float]]
) -> None:
    """Asserts that all steps are equal, and that the run is meaningful.

    It must learn, and gradients must be clipped.
    """
    for name in expected[0]:
        ours, theirs = ([line[name] for line in x] for x in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, err_msg=name)
    losses = [line["loss"] for line in expected]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert max(line["gradient_norm"] for line in expected) > 1


def assert_same_weights(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> None:
    """Asserts that weights with significant gradients are equal.

    The softmax does not change if a constant is added to all keys.
    """
    for name, value in expected.items():
        if not name.endswith("/key/bias"):
            np.testing.assert_allclose(
                found[name], value, rtol=0, atol=1e-4, err_msg=name
            )


def write(folder: pathlib.Path) -> list[str]:
    """Writes config.json, bert_model.ckpt and records; returns the records."""
    pretraining_records.write_config(folder / "config.json", **CONFIG)
    config = modeling.BertConfig.from_dict(CONFIG)
    variables = heads.BertPretrainer(modeling.Bert(config)).trainable_variables
    reference.random_weights(variables, seed=SEED)
    tensors = {variable.path: variable.value for variable in variables}
    tf1_files.write(str(folder / "bert_model.ckpt"), tensors)
    return pretraining_records.write(folder, COUNTS, seed=SEED)


def batches(
    files: Sequence[str],
    counts: Sequence[int] = COUNTS,
    batch_size: int = BATCH,
    steps: int = STEPS,
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the decoded records of each step: [B, S], [B, P] or [B, 1]."""
    dataset = pipeline.train(files, counts, batch_size, SEED).take(steps)
    for serialized, _ in dataset.as_numpy_iterator():
        rows = [
            tf.train.Example.FromString(record).features.feature
            for record in serialized
        ]
        yield {
            name: np.array(
                [
                    row[name].int64_list.value or row[name].float_list.value
                    for row in rows
                ]
            )
            for name in rows[0]
        }
