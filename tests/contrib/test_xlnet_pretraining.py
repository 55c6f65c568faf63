"""Pre-training of XLNet, compared with transformers and with the paper."""

import dataclasses
import itertools

from bert_tf import errors
from bert_tf.checkpoints import formats, names, restoring
from bert_tf.contrib import xlnet_config, xlnet_pretraining
from bert_tf.encoders import families
from bert_tf.records import record_types
from bert_tf.training import pretraining
from tests import pretraining_runs
from tests.contrib import test_xlnet

import numpy as np
import pytest
import tensorflow as tf

_B, _S, _P = 3, 12, 4
_HEAD = "permuted_words"


def _batch():
    """Returns rows with fewer and fewer tokens and predictions."""
    rng = np.random.default_rng(0)
    ids = rng.integers(7, 40, [_B, _S])
    mask = np.arange(_S) < _S - 2 * np.arange(_B)[:, np.newaxis]
    for row, length in zip(ids, mask.sum(1), strict=True):
        row[length - 2 : length] = 4, 3  # <sep> <cls>
    weights = np.arange(_P) < _P - np.arange(_B)[:, np.newaxis]
    drawn = [np.sort(rng.choice(6, _P, replace=False)) for _ in range(_B)]
    places = np.where(weights, drawn, 0)
    labels = np.take_along_axis(ids, places, 1)
    hidden = ids.copy()
    # As in records with masks: <mask> replaces all tokens but the last.
    for row, place, is_real in zip(hidden, places, weights, strict=True):
        row[place[:-1][is_real[:-1]]] = 6
    arrays = {
        "input_ids": np.where(mask, hidden, 5),
        "input_mask": mask,
        "segment_ids": (np.arange(_S) > 4) & mask,
        "masked_lm_positions": places,
        "masked_lm_ids": labels * weights,
    }
    batch = {name: tf.constant(x, tf.int32) for name, x in arrays.items()}
    floats = {"masked_lm_weights": weights, "row_weights": np.ones(_B)}
    batch |= {name: tf.constant(x, tf.float32) for name, x in floats.items()}
    return batch, np.where(mask, ids, 5)


def _model(**changes):
    tf.keras.utils.set_random_seed(1)
    sizes = {"hidden_size": 16, "intermediate_size": 24}
    config = xlnet_config.XlnetConfig(
        vocab_size=40,
        num_hidden_layers=2,
        num_attention_heads=2,
        **sizes | {"initializer_range": 0.3} | changes,
    )
    return xlnet_pretraining.PermutedWords(families.make(config))


# ---- Values -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("remat", [False, True])
def test_loss_and_gradients_are_those_of_transformers(tmp_path, remat):
    theirs = test_xlnet.make("XLNetLMHeadModel")
    theirs.save_pretrained(tmp_path)
    source = formats.open_checkpoint(str(tmp_path))
    assert source.config is not None
    ours = xlnet_pretraining.PermutedWords(families.make(source.config))
    variables = ours.trained_variables
    restoring.restore_weights(variables, source)
    ours.bert.encoder.remat = remat
    batch, ids = _batch()
    seed = tf.constant([3, 4])
    objective = pretraining.objective(_HEAD)
    with tf.GradientTape() as tape:
        sums = objective.sums(ours, batch, seed)[_HEAD]
        loss = sums["loss"] / objective.weights(batch)[_HEAD]
    gradients = tape.gradient(loss, [x.value for x in variables])

    # The order in which it predicted.
    own, _ = tf.unstack(tf.random.split(seed, 2))
    order = xlnet_pretraining.draw_order(batch, own).numpy()
    is_real = batch["masked_lm_weights"].numpy() > 0
    places = batch["masked_lm_positions"].numpy()
    mapping = np.eye(_S)[places] * is_real[:, :, np.newaxis]
    is_ordered = np.isin(ids, (3, 4)) | mapping.any(1)
    np.testing.assert_array_equal(order > 0, is_ordered)
    # There 1 hides a key, and the content stream sees itself nevertheless.
    is_later = order[:, np.newaxis] >= order[:, :, np.newaxis]
    perm_mask = is_later & is_ordered[:, np.newaxis]
    labels = np.where(is_real, batch["masked_lm_ids"].numpy(), -100)
    segments = np.where(ids == 3, 2, batch["segment_ids"].numpy())
    torch = test_xlnet.torch
    expected = theirs(
        torch.tensor(ids),
        attention_mask=torch.tensor(batch["input_mask"].numpy()),
        token_type_ids=torch.tensor(segments),
        perm_mask=torch.tensor(perm_mask, dtype=torch.float32),
        target_mapping=torch.tensor(mapping, dtype=torch.float32),
        labels=torch.tensor(labels).long(),
    )
    expected.loss.backward()
    assert loss.numpy() == pytest.approx(expected.loss.item(), rel=1e-5)
    logits = expected.logits.detach().numpy()
    found = ours.predict_in(order, batch)
    np.testing.assert_allclose(found[is_real], logits[is_real], atol=1e-4)
    paths = [x.path for x in variables]
    found = dict(zip(paths, gradients, strict=True))
    assert all(np.any(x) for x in found.values())
    shapes = {x.path: tuple(x.shape) for x in ours.variables}
    assert shapes == names.shapes(source.config, _HEAD)
    others = {x.path for x in ours.bert.pooler.variables}
    assert shapes.keys() - found.keys() == others
    test_xlnet.assert_same_gradients(found, theirs, source.config, _HEAD)


# ---- Permutations -----------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [
        [0, 0.5, 0.2, 0, 0, 0.9, 0.3, 0.4, 0.7],
        # Without context, one prediction depends on no token.
        [0.6, 0.5, 0.2, 0.8, 1, 0.9, 0.3, 0.4, 0.7],
    ],
)
def test_a_prediction_depends_on_context_and_earlier_tokens_alone(order):
    """By changing each token: x_z_t is predicted from x_z_<t (equation 3)."""
    model = _model()
    length, places = 9, [1, 2, 5, 6]
    ids = np.random.default_rng(0).integers(7, 40, length)
    ids[-2:] = 4, 3  # <sep> <cls>
    order = np.array(order)
    rows = np.tile([*ids, 5, 5], [length + 1, 1])
    for place in range(length):
        rows[place + 1, place] += 1 if place < length - 2 else 2
    tiled = np.tile(places, [len(rows), 1])
    batch = {
        "input_ids": rows,
        "input_mask": np.tile([1] * length + [0, 0], [len(rows), 1]),
        "masked_lm_positions": tiled,
        "masked_lm_ids": np.take_along_axis(rows, tiled, 1),
        "masked_lm_weights": np.ones(tiled.shape),
    }
    orders = tf.constant(np.tile([*order, 0, 0], [len(rows), 1]), tf.float32)
    logits = model.predict_in(orders, batch).numpy()  # [1 + S, P, V]
    changes = np.abs(logits[1:] - logits[0]).max(-1)  # [S, P]
    expected = order[:, np.newaxis] < order[places]
    # The last row of a batch is rounded differently, by up to 1e-6.
    np.testing.assert_array_equal(changes > 1e-5, expected)


def test_orders_are_random_and_a_function_of_the_seed():
    batch = {
        "input_ids": np.tile([7, 8, 4, 3], [6000, 1]),
        "masked_lm_positions": np.ones([6000, 1], int),
        "masked_lm_weights": np.ones([6000, 1]),
    }
    one, same, other = (
        xlnet_pretraining.draw_order(batch, tf.constant(x)).numpy()
        for x in ([0, 1], [0, 1], [0, 2])
    )
    np.testing.assert_array_equal(one, same)
    assert np.mean(one == other) < 0.3
    assert (one[:, 0] == 0).all()
    real = one[:, 1:]
    assert (real > 0).all() and (real <= 1).all()
    # All six orders are equally likely: within 4 standard deviations.
    for order in itertools.permutations(range(3)):
        count = (np.argsort(real, axis=1) == order).all(axis=1).sum()
        assert abs(count - 1000) < 4 * 6000**0.5 * (5 / 36) ** 0.5


@pytest.mark.slow
def test_dropout_and_order_follow_the_seed():
    batch, _ = _batch()
    model = _model()
    one, same = (model(batch, tf.constant([0, 1])) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    order = tf.tile([tf.range(1.0, _S + 1)], [_B, 1])
    without, dropped = (
        model.predict_in(order, batch, seed)
        for seed in (None, tf.constant([0, 1]))
    )
    assert np.abs(without - dropped).max() > 0.01
    # Evaluations draw the order from the batch.
    np.testing.assert_array_equal(model(batch), model(batch))
    assert np.abs(model(batch) - without).max() > 0.01


# ---- Runs -------------------------------------------------------------------


def test_records_for_it():
    lengths = {"S": 16, "P": 4}
    data = pretraining.Data(
        ["x"], [1], record_types.PRETRAINING, lengths, "nsp", masking=None
    )
    found = data.for_head(_HEAD)
    assert found == dataclasses.replace(data, objective=_HEAD)
    assert found.predictions_per_row == 4
    assert pretraining.loss_names(_HEAD) == (_HEAD,)
    assert not pretraining.has_pairs(_HEAD)
    with pytest.raises(errors.InputError, match="several sequences in a row"):
        _model().bert.config.check_reads_packed("x.tfrecord")


_CONFIG = {"model_type": "xlnet", "type_vocab_size": 0, "num_hidden_layers": 2}


@pytest.mark.exhaustive
def test_a_kill_changes_nothing(tmp_path):
    setting = pretraining_runs.Setting.make(tmp_path, **_CONFIG)
    stored = setting.check_that_a_kill_changes_nothing()
    assert "model/transformer/mask_emb/mask_emb/adam_m" in stored
    assert "model/lm_loss/bias/adam_m" in stored
    assert "model/sequnece_summary/summary/kernel/adam_m" not in stored
