import dataclasses
import shutil
from contextlib import nullcontext
from typing import Any

from bert_tf import heads, losses, modeling
from bert_tf.checkpoints import tf1_files, trained_models
from bert_tf.errors import NotFiniteError
from bert_tf.records import record_types, tfrecord
from bert_tf.training import fine_tuning, loop
from tests import interop_samples as samples
from tests import tiny_model

import keras
import numpy as np
import pytest
import tensorflow as tf

_CONFIG = samples.TINY

_FILES = trained_models.ModelFiles(_CONFIG, samples.vocab_files([]), True)


def _plan(batch_size, epochs, warmup_proportion=0.1, rate=1.0, **more):
    return fine_tuning.Plan(
        batch_size=batch_size,
        learning_rate=rate,
        num_train_epochs=epochs,
        warmup_proportion=warmup_proportion,
        accumulate=1,
        seed=0,
        iterations_per_loop=10,
        save_checkpoints_steps=10,
        keep_checkpoint_max=1,
        log_steps=10,
        group_by_length=False,
        **more,
    )


def _write(path, ids, labels, lengths=(8,) * 100):
    """Writes rows of tokens, each with a label and a length."""
    values: dict[str, Any] = {"segment_ids": [0] * 8, "is_real_example": 1}
    with tfrecord.Writer(path) as writer:
        for row, label, length in zip(ids, labels, lengths, strict=False):
            own = values | {"input_ids": row, "label_ids": label}
            own["input_mask"] = [1] * length + [0] * (8 - length)
            writer.write(record_types.CLASSIFICATION.encode(own))
    count = len(labels)
    return record_types.RecordFile(path, count, record_types.CLASSIFICATION, 8)


def test_steps_are_the_originals():
    # As in the original: int(3668 / 32 * 3.0) steps, int(343 * 0.1) of warmup.
    plan = _plan(32, 3.0)
    assert plan.steps(3668) == 343
    schedule = plan.schedule(3668)
    rates = [float(schedule(tf.constant(i))) for i in (0, 17, 33, 34, 343)]
    expected = [0, 17 / 34, 33 / 34, 1 - 34 / 343, 0]
    assert rates == pytest.approx(expected, abs=1e-6)
    # Evaluated after 115, 230 and 343 steps.
    assert plan.steps_per_epoch(3668) == 115
    with pytest.raises(ValueError, match=r"too few examples.*: 3 examples"):
        _plan(4, 1.0).steps(3)


@pytest.mark.slow
def test_logits_and_labels_without_the_filling(tmp_path, two_replicas):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 11, (7, 8))
    data = _write(str(tmp_path / "x.tf_record"), ids, range(7))
    found = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = heads.BertClassifier(modeling.Bert(_CONFIG), 3)
        for i, variable in enumerate(model.variables):
            variable.assign(
                np.random.default_rng(i).normal(size=variable.shape)
            )
        run = fine_tuning.Run(
            *(str(tmp_path), strategy, model, _FILES, ("a", "b", "c")),
            {"dev": data},
        )
        logits, labels = fine_tuning.logits_and_labels(run, "dev", 4)
        assert labels.tolist() == list(range(7))
        found.append(logits)
    one = model({"input_ids": tf.constant(ids, tf.int32)})
    for logits in found:
        np.testing.assert_allclose(logits, one, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"multiple of.*batch_size=3"):
        fine_tuning.logits_and_labels(run, "dev", 3)
    model.output_bias.assign([0, np.nan, 0])
    with pytest.raises(NotFiniteError, match="in the model's logits for dev"):
        fine_tuning.logits_and_labels(run, "dev", 4)


_POOLER = ("bert/pooler/dense/bias", "bert/pooler/dense/kernel")


def _of_first_piece(model, batch, dropout_seed):
    logits = model(batch, dropout_seed)[:, 0]
    labels, weights = batch["label_ids"], batch["row_weights"]
    return {"label": losses.classification(logits, labels, weights)}


_OBJECTIVE = loop.Objective(
    lambda batch: {"label": tf.reduce_sum(batch["row_weights"])},
    _of_first_piece,
)


def _tag(folder, epochs, config=_CONFIG, lengths=(8,) * 8, **plan):
    """Trains a tagger; returns its initial weights and its checkpoint."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 11, (8, 8))
    labels = rng.integers(0, 3, 8)
    data = _write(f"{folder}/train.tf_record", ids, labels, lengths)
    model = heads.BertTagger(modeling.Bert(config), 3)
    # As in a released checkpoint, where the bias is not 0.
    model.bert.pooler.dense.bias.assign(rng.normal(size=4))
    run = fine_tuning.Run(
        *(str(folder), tf.distribute.get_strategy(), model),
        *(_FILES, None, {"train": data}),
    )
    before = {v.path: v.numpy() for v in model.variables}

    def restore(state):
        state.resume(str(folder))

    fine_tuning.train(run, _plan(4, epochs, **plan), _OBJECTIVE, restore)
    return before, tf1_files.latest(str(folder))


@pytest.mark.slow
def test_compiled_steps_make_the_same_updates(tmp_path):
    """For batches of several lengths; a trimmed one has half of the rows."""
    config = dataclasses.replace(
        _CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    found = []
    for use_xla in (False, True):
        keras.utils.set_random_seed(1)
        folder = tmp_path / str(use_xla)
        folder.mkdir()
        with nullcontext() if use_xla else tiny_model.untraced():
            _, prefix = _tag(
                *(folder, 2.0, config, (3, 2, 4, 1, 8, 5, 2, 3)),
                rate=0.01,
                use_xla=use_xla,
            )
        found.append(tf1_files.read(prefix, list(tf1_files.shapes(prefix))))
    expected, compiled = found
    assert compiled.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            compiled[name], value, rtol=1e-5, atol=1e-6, err_msg=name
        )


@pytest.mark.parametrize(
    ("compiles", "length", "multiple"),
    [(False, 128, 8), (True, 128, 32), (True, 384, 96), (True, 10, 3)],
)
def test_lengths_of_batches(compiles, length, multiple):
    strategy = tf.distribute.get_strategy()
    run = fine_tuning.Run("", strategy, None, _FILES, None, {})
    assert run.trim(compiles, length) == multiple


def _add_moments(prefix):
    """Adds zero moments of the pooler, as runs that trained it have."""
    stored = tf1_files.shapes(prefix)
    values = tf1_files.read(prefix, list(stored))
    for name in _POOLER:
        for slot in ("adam_m", "adam_v"):
            values[f"{name}/{slot}"] = np.zeros(stored[name], np.float32)
    tf1_files.write(prefix, values)


@pytest.fixture(scope="module", name="once")
@tiny_model.untraced()
def _once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("once")
    before, prefix = _tag(folder, 1.0)
    assert prefix == f"{folder}/model.ckpt-2"
    return before, folder


@pytest.fixture(name="prefix")
def _prefix(once, tmp_path):
    shutil.copytree(once[1], tmp_path, dirs_exist_ok=True)
    return f"{tmp_path}/model.ckpt-2"


@pytest.mark.slow
@tiny_model.untraced()
def test_what_nothing_reads_stays_as_it_is(once, tmp_path, prefix):
    before, _ = once
    stored = tf1_files.shapes(prefix)
    values = tf1_files.read(prefix, list(before))
    for name, value in before.items():
        assert np.array_equal(values[name], value) == (name in _POOLER), name
        has_moments = [f"{name}/adam_{x}" in stored for x in "mv"]
        assert has_moments == [name not in _POOLER] * 2, name
    after, prefix = _tag(tmp_path, 2.0)
    assert prefix == f"{tmp_path}/model.ckpt-4"
    values = tf1_files.read(prefix, list(after))
    for name in _POOLER:
        np.testing.assert_array_equal(values[name], before[name])


@pytest.mark.slow
@tiny_model.untraced()
def test_goes_on_where_a_run_trained_what_nothing_reads(
    tmp_path, prefix, caplog
):
    _add_moments(prefix)
    before = tf1_files.read(prefix, list(_POOLER))
    caplog.clear()
    caplog.set_level("INFO", logger="absl")
    _, prefix = _tag(tmp_path, 2.0)
    said = f"not trained here; they are ignored: {', '.join(_POOLER)}."
    assert caplog.text.count(said) == 1
    assert prefix == f"{tmp_path}/model.ckpt-4"
    assert not any(
        name.startswith(_POOLER) and "adam" in name
        for name in tf1_files.shapes(prefix)
    )
    for name, value in tf1_files.read(prefix, list(_POOLER)).items():
        np.testing.assert_array_equal(value, before[name])
