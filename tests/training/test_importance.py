"""The importance of layers and units, compared with differences in PyTorch.

Shapes as in modeling.py. A gate in PyTorch is a hook that multiplies.
"""

import contextlib

from bert_tf import heads, losses, modeling
from bert_tf.checkpoints import formats, smaller
from bert_tf.encoders import families, layers
from bert_tf.errors import InputError
from bert_tf.training import importance
from tests import huggingface_models as hf
from tests import interop_samples as samples
from tests import tiny_model
from tests.huggingface_models import torch

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_ROWS = 6
_LABELS = np.arange(_ROWS, dtype=np.int32) % samples.NUM_LABELS
_STEP = 1e-4
_ONE = tf.distribute.get_strategy()


def _batch(config):
    three = samples.batch(config)
    three.pop("masked_lm_positions")
    rows = {n: np.concatenate([x, x[::-1]]) for n, x in three.items()}
    rows["input_ids"][3:] = (rows["input_ids"][3:] + 7) % config.vocab_size
    return rows | {"label_ids": _LABELS}


def _loss(model, batch):
    logits = model(batch)
    return losses.classification(
        logits, batch["label_ids"], batch["row_weights"]
    )["loss"]


def _dataset(strategy, rows, batch_size):
    """Returns batches of the rows, the last padded with rows of weight 0."""
    missing = -_ROWS % batch_size
    weights = np.array([1] * _ROWS + [0] * missing, np.float32)
    filled = {n: np.concatenate([x, x[:missing]]) for n, x in rows.items()}
    dataset = tf.data.Dataset.from_tensor_slices(
        filled | {"row_weights": weights}
    ).batch(batch_size, drop_remainder=True)
    return strategy.experimental_distribute_dataset(dataset)


def _measured(model, rows, batch_size=_ROWS, strategy=_ONE):
    dataset = _dataset(strategy, rows, batch_size)
    return importance.measure(strategy, model, _loss, dataset, _ROWS)


def _their_losses(theirs, rows):
    with torch.no_grad():
        logits = theirs(**hf.their_inputs(rows)).logits
    labels = torch.tensor(np.int64(_LABELS))
    return torch.nn.functional.cross_entropy(
        logits, labels, reduction="none"
    ).numpy()


@contextlib.contextmanager
def _hooked(handle):
    try:
        yield
    finally:
        handle.remove()


def _layer_gate(layer, gate):
    def hook(_, inputs, output):
        x, y = inputs[0], output[0] if isinstance(output, tuple) else output
        gated = x + gate * (y - x)
        return (gated, *output[1:]) if isinstance(output, tuple) else gated

    return _hooked(layer.register_forward_hook(hook))


def _unit_gate(dense, unit, gate):
    """Multiplies one input of the layer after the activation."""

    def hook(_, inputs):
        factors = torch.ones(inputs[0].shape[-1], dtype=inputs[0].dtype)
        factors[unit] = gate
        return (inputs[0] * factors, *inputs[1:])

    return _hooked(dense.register_forward_pre_hook(hook))


def _difference(theirs, rows, gated):
    """Returns the mean over rows of the absolute slope at gate 1."""
    found = []
    for gate in (1 + _STEP, 1 - _STEP):
        with gated(gate):
            found.append(_their_losses(theirs, rows))
    return np.abs((found[0] - found[1]) / (2 * _STEP)).mean()


def _of_units(theirs, rows, denses):
    def difference(dense, unit):
        return _difference(theirs, rows, lambda g: _unit_gate(dense, unit, g))

    return np.array(
        [[difference(d, u) for u in range(d.in_features)] for d in denses]
    )


def _ours(theirs, folder):
    model, _ = samples.load(hf.save(theirs.float(), folder))
    theirs.double()
    return model, _batch(model.bert.config)


def test_equals_finite_differences(tmp_path):
    theirs = hf.make("BertForSequenceClassification", intermediate_size=12)
    model, rows = _ours(theirs, tmp_path)
    found = _measured(model, rows)
    stack = theirs.bert.encoder.layer
    of_layers = [
        _difference(theirs, rows, lambda g, x=x: _layer_gate(x, g))
        for x in stack
    ]
    assert found.layers.dtype == found.units.dtype == np.float64
    np.testing.assert_allclose(found.layers, of_layers, rtol=1e-4)
    of_units = _of_units(theirs, rows, [x.output.dense for x in stack])
    assert of_units.shape == (3, 12)
    np.testing.assert_allclose(found.units, of_units, rtol=1e-3, atol=1e-6)


@tiny_model.untraced()
def test_units_of_shared_layers_go_everywhere(tmp_path):
    theirs = hf.make(
        "AlbertForSequenceClassification",
        intermediate_size=8,
        embedding_size=8,
        num_hidden_groups=2,
        num_hidden_layers=4,
        classifier_dropout_prob=0.0,
    )
    model, rows = _ours(theirs, tmp_path)
    groups = theirs.albert.encoder.albert_layer_groups
    denses = [group.albert_layers[0].ffn_output for group in groups]
    found = _measured(model, rows)
    assert found.layers.shape == (4,)
    of_units = _of_units(theirs, rows, denses)
    assert of_units.shape == (2, 8)
    np.testing.assert_allclose(found.units, of_units, rtol=1e-3, atol=1e-6)


@pytest.fixture(scope="module", name="ours")
def _fixture():
    config = modeling.BertConfig(**samples.SMALL)
    return samples.random_model("classification", config), _batch(config)


@pytest.fixture(scope="module", name="measured")
@tiny_model.untraced()
def _measured_fixture(ours):
    return _measured(*ours)


def _assert_close(found, expected):
    for name in ("layers", "units"):
        values = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(found, name), values, rtol=1e-4, atol=1e-7
        )


@tiny_model.untraced()
def test_batches_of_another_size_and_the_model_stays_as_it_was(ours, measured):
    """With 4 rows per batch, two of the last are padding."""
    model, rows = ours
    before, logits = list(model.bert.encoder.layers), model(rows).numpy()
    _assert_close(_measured(model, rows, 4), measured)
    assert list(model.bert.encoder.layers) == before
    np.testing.assert_array_equal(model(rows), logits)


def test_several_replicas(two_replicas):
    config = modeling.BertConfig(**samples.SMALL | {"num_hidden_layers": 1})
    rows = _batch(config)
    model = samples.random_model("classification", config)
    with two_replicas.scope():
        mirrored = samples.random_model("classification", config)
    found = _measured(mirrored, rows, 4, two_replicas)
    _assert_close(found, _measured(model, rows))


def _small(model, folder, kept_layers=None, kept_units=None):
    source = samples.source(folder, model)
    if kept_units is not None:
        source = smaller.keep_units(source, kept_units)
    if kept_layers is not None:
        source = smaller.keep_layers(source, kept_layers)
    formats.write(f"{folder}/small", "tf1", source)
    return samples.load(f"{folder}/small")[0]


def _logits(model, rows, whole, units):
    gates = tf.constant(whole, tf.float32), tf.constant(units, tf.float32)
    with importance._gated(model.bert.encoder, *gates):
        return model(rows).numpy()


def test_gates_of_zero_are_what_is_taken_out(ours, tmp_path):
    model, rows = ours
    units = np.ones([3, _ROWS, 64])
    whole = np.ones([3, _ROWS])
    whole[1] = 0
    np.testing.assert_allclose(
        _logits(model, rows, whole, units),
        _small(model, tmp_path / "layers", [0, 2])(rows),
        atol=1e-6,
    )
    kept = [range(32), range(16, 48), range(32, 64)]
    for gates, own in zip(units, kept, strict=True):
        gates[:] = 0
        gates[:, list(own)] = 1
    np.testing.assert_allclose(
        _logits(model, rows, np.ones([3, _ROWS]), units),
        _small(model, tmp_path / "units", kept_units=kept)(rows),
        atol=1e-6,
    )


@tiny_model.untraced()
def test_what_is_zero_changes_no_logits(ours, tmp_path):
    """Units without an effect measure 0, and can be removed."""
    before, rows = ours
    model = samples.random_model("classification", before.bert.config)
    rng = np.random.default_rng(1)
    kept = [np.sort(rng.permutation(64)[:32]) for _ in range(3)]
    for layer, own in zip(model.bert.encoder.layers, kept, strict=True):
        kernel = layer.residual.dense.kernel.numpy()
        kernel[np.setdiff1d(np.arange(64), own)] = 0
        layer.residual.dense.kernel.assign(kernel)
    found = _measured(model, rows)
    chosen = [importance.most_important(x, 32) for x in found.units]
    np.testing.assert_array_equal(chosen, kept)
    assert (np.sort(found.units)[:, :32] == 0).all()
    small = _small(model, tmp_path, kept_units=chosen)
    np.testing.assert_allclose(small(rows), model(rows), atol=1e-6)


class _OfItsOwn(layers.TransformerLayer):
    def call(self, x, dropout_seed, layout):
        return super().call(x, dropout_seed, layout) * 2


def test_layers_of_a_class_of_their_own():
    config = modeling.BertConfig(**samples.SMALL)
    model = heads.BertClassifier(families.make(config), 2)
    strange = _OfItsOwn(config, name="layer_1")
    object.__setattr__(model.bert.encoder, "layers", [strange])
    with pytest.raises(InputError, match="Received: _OfItsOwn"):
        _measured(model, _batch(config))


def test_the_most_important():
    values = np.array([2.0, 5.0, 2.0, 7.0, 2.0])
    assert importance.most_important(values, 2) == (1, 3)
    # Ties go to the first.
    assert importance.most_important(values, 3) == (0, 1, 3)
    assert importance.most_important(values, 5) == (0, 1, 2, 3, 4)
