"""The heads, compared with NumPy."""

import dataclasses

from bert_tf import (
    both_directions,
    compiled,
    heads,
    joint_answers,
    modeling,
    replaced_tokens,
)
from bert_tf.checkpoints import names
from bert_tf.contrib import bilstm_lm, left_to_right
from bert_tf.encoders import families, layers
from tests import reference, tiny_model
from tests.api.keras_models import DROPS as _TINY

import keras
import numpy as np
import pytest
import tensorflow as tf

_INPUTS = reference.batch(_TINY)


@pytest.fixture(scope="module")
def pretrainer():
    model = reference.randomized(heads.BertPretrainer(modeling.Bert(_TINY)))
    return model


@pytest.fixture
def bfloat16():
    with tiny_model.policy("mixed_bfloat16"):
        yield


def _classifier(num_labels, config=_TINY):
    model = reference.randomized(
        heads.BertClassifier(modeling.Bert(config), num_labels)
    )
    return model


def _gradients(model, loss):
    """Returns gradients of a loss by variable name."""
    with tf.GradientTape() as tape:
        value = loss(model)
    values = tape.gradient(value, [v.value for v in model.variables])
    paths = [v.path for v in model.variables]
    return dict(zip(paths, values, strict=True))


def _assert_gradients_are_slopes(model, loss, reference_loss):
    """Compares with differences of the float64 reference, in a random
    direction for each variable."""
    weights = reference.weights_of(model.variables)
    rng = np.random.default_rng(1)
    step = 1e-6
    for path, gradient in _gradients(model, loss).items():
        assert gradient is not None, path
        direction = rng.standard_normal(weights[path].shape)
        up, down = (
            reference_loss(weights | {path: weights[path] + move})
            for move in (step * direction, -step * direction)
        )
        np.testing.assert_allclose(
            np.sum(gradient * direction),
            (up - down) / (2 * step),
            rtol=1e-4,
            atol=1e-4,
            err_msg=path,
        )


class TestBertPretrainer:
    @pytest.mark.slow
    def test_logits(self, pretrainer):
        expected = reference.pretrain(
            _TINY, reference.weights_of(pretrainer.variables), _INPUTS
        )
        logits = pretrainer(_INPUTS)
        assert [tuple(each.shape) for each in logits] == [(3, 4, 40), (3, 2)]
        for got, values in zip(logits, expected, strict=True):
            assert got.dtype == tf.float32
            np.testing.assert_allclose(got, values, rtol=1e-5, atol=2e-5)

    @pytest.mark.slow
    def test_gradients_of_all_variables(self, pretrainer):
        rng = np.random.default_rng(0)
        weights = [
            rng.standard_normal(shape).astype(np.float32)
            for shape in ((3, 4, 40), (3, 2))
        ]

        def loss(model):
            logits = model(_INPUTS)
            return sum(
                tf.reduce_sum(tf.nn.log_softmax(x) * w)
                for x, w in zip(logits, weights, strict=True)
            )

        def reference_loss(values):
            logits = reference.pretrain(_TINY, values, _INPUTS)
            return sum(
                np.sum(reference.log_softmax(x) * w)
                for x, w in zip(logits, weights, strict=True)
            )

        _assert_gradients_are_slopes(pretrainer, loss, reference_loss)

    def test_bfloat16(self, pretrainer, bfloat16):
        model = reference.randomized(heads.BertPretrainer(modeling.Bert(_TINY)))
        assert {v.dtype for v in model.variables} == {"float32"}
        for got, exact in zip(model(_INPUTS), pretrainer(_INPUTS), strict=True):
            assert got.dtype == tf.float32
            # The value has 8 bits: it really was bfloat16.
            rounded = tf.cast(tf.cast(got, tf.bfloat16), tf.float32)
            np.testing.assert_array_equal(got, rounded)
            error = np.linalg.norm(got - exact) / np.linalg.norm(exact)
            assert 0 < error < 0.03


class TestBertClassifier:
    @pytest.mark.parametrize("num_labels", [1, 2, 5])
    def test_logits(self, num_labels):
        model = _classifier(num_labels)
        logits = model(_INPUTS)
        assert tuple(logits.shape) == (3, num_labels)
        assert logits.dtype == tf.float32
        weights = reference.weights_of(model.variables)
        expected = reference.classify(_TINY, weights, _INPUTS)
        np.testing.assert_allclose(logits, expected, atol=1e-5)

    def test_initial_values(self):
        model = heads.BertClassifier(modeling.Bert(_TINY), 200)
        weights = model.output_weights.numpy()
        assert abs(weights.std() - 0.8796 * 0.02) < 0.001
        assert np.abs(weights).max() <= 0.04
        assert not model.output_bias.numpy().any()

    def test_pooled_output_is_dropped_too(self):
        # Without dropout inside the encoder, only the pooled output has it:
        # each logit is a sum over the kept half, doubled.
        config = dataclasses.replace(_TINY, attention_probs_dropout_prob=0)
        model = _classifier(2, config)
        model.rate = 0.5
        for layer in model.bert._flatten_layers():
            if isinstance(layer, layers.Residual):
                layer.rate = 0
        encoder = dataclasses.replace(config, hidden_dropout_prob=0)
        model.bert.embeddings.config = encoder
        pooled = model.bert(_INPUTS).pooled.numpy()  # [B, D]
        weights = model.output_weights.numpy()
        bias = model.output_bias.numpy()
        logits = model(_INPUTS, tf.constant([1, 2])).numpy()
        # All 2^8 masks of a row; exactly one mask gives its two logits.
        masks = (np.arange(256)[:, None] >> np.arange(8)) & 1
        for row, got in zip(pooled, logits, strict=True):
            possible = (masks * row * 2) @ weights.T + bias
            hits = np.abs(possible - got).max(axis=1) < 1e-5
            assert hits.sum() == 1
            assert 0 < masks[hits].sum() < 8

    def test_bfloat16(self, bfloat16):
        exact = reference.classify(
            _TINY, reference.weights_of(_classifier(3).variables), _INPUTS
        )
        model = _classifier(3)
        assert {v.dtype for v in model.variables} == {"float32"}
        logits = model(_INPUTS)
        assert logits.dtype == tf.float32
        error = np.linalg.norm(logits - exact) / np.linalg.norm(exact)
        assert 0 < error < 0.03

    @pytest.mark.parametrize("num_labels", [0, -1])
    def test_no_labels(self, num_labels):
        with pytest.raises(ValueError, match=f"num_labels={num_labels}"):
            heads.BertClassifier(modeling.Bert(_TINY), num_labels)


class TestFurtherHeads:
    """Each compared with the linear layer on the encoder's outputs."""

    @staticmethod
    def _parts(model):
        """Returns weights, sequence output and pooled output, in float64."""
        reference.random_weights(model.variables)
        weights = reference.weights_of(model.variables)
        _, layers, pooled = reference.encode(_TINY, weights, _INPUTS)
        return weights, layers[-1], pooled

    def test_tagger(self):
        model = heads.BertTagger(modeling.Bert(_TINY), 5)
        weights, sequence, _ = self._parts(model)
        logits = model(_INPUTS)
        assert tuple(logits.shape) == (3, 9, 5)
        expected = sequence @ weights["cls/tagging/output_weights"].T
        expected += weights["cls/tagging/output_bias"]
        np.testing.assert_allclose(logits, expected, atol=1e-5)

    def test_span_finder(self):
        model = heads.BertSpanFinder(modeling.Bert(_TINY))
        weights, sequence, _ = self._parts(model)
        logits = sequence @ weights["cls/squad/output_weights"].T
        logits += weights["cls/squad/output_bias"]
        starts, ends = model(_INPUTS)
        np.testing.assert_allclose(starts, logits[..., 0], atol=1e-5)
        np.testing.assert_allclose(ends, logits[..., 1], atol=1e-5)

    @pytest.mark.slow
    def test_multiple_choice(self):
        model = heads.BertMultipleChoice(modeling.Bert(_TINY))
        weights, _, pooled = self._parts(model)
        scores = pooled @ weights["cls/multiple_choice/output_weights"].T
        scores += weights["cls/multiple_choice/output_bias"]
        # The rows of the batch as three choices of one question, then one
        # choice of three questions.
        names = ("input_ids", "input_mask", "segment_ids")
        for shape in ((1, 3), (3, 1)):
            inputs = {n: _INPUTS[n].reshape([*shape, 9]) for n in names}
            np.testing.assert_allclose(
                model(inputs), scores.reshape(shape), atol=1e-5
            )
            # Next to a row without tokens, which is not a choice.
            filled = {
                n: np.pad(x, [(0, 0), (0, 1), (0, 0)])
                for n, x in inputs.items()
            }
            logits = model(filled)
            np.testing.assert_allclose(
                logits[:, :-1], scores.reshape(shape), atol=1e-5
            )
            assert not tf.nn.softmax(logits)[:, -1].numpy().any()

    def test_choices_have_their_positions(self):
        model = heads.BertMultipleChoice(modeling.Bert(_TINY))
        reference.random_weights(model.variables)
        # As many positions as there are, in another order.
        positions = np.tile(np.arange(9, dtype=np.int32)[::-1], (3, 1))
        inputs = _INPUTS | {"position_ids": positions}
        pooled = model.bert(inputs).pooled
        expected = model.multiple_choice(pooled)[:, 0]
        found = model({n: x[None] for n, x in inputs.items()})
        np.testing.assert_allclose(found[0], expected, atol=1e-5)
        plain = model({n: x[None] for n, x in _INPUTS.items()})
        assert np.abs(plain - found).max() > 1e-3

    def test_each_head_of_pretraining_alone(self, pretrainer):
        values = {v.path: v for v in pretrainer.variables}
        expected = reference.pretrain(
            _TINY, reference.weights_of(pretrainer.variables), _INPUTS
        )
        models: list[keras.Model] = [
            heads.BertMaskedLM(modeling.Bert(_TINY)),
            heads.BertNextSentence(modeling.Bert(_TINY)),
        ]
        for model, logits in zip(models, expected, strict=True):
            # The combined model has the same names.
            for variable in model.variables:
                variable.assign(values[variable.path])
            np.testing.assert_allclose(
                model(_INPUTS), logits, rtol=1e-5, atol=2e-5
            )

    @pytest.mark.parametrize("kind", ["tagger", "choice"])
    def test_dropout_comes_before_the_head(self, kind):
        config = dataclasses.replace(
            _TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        if kind == "tagger":
            model, inputs = heads.BertTagger(modeling.Bert(config), 2), _INPUTS
        else:
            model = heads.BertMultipleChoice(modeling.Bert(config))
            inputs = {n: x[:, None] for n, x in _INPUTS.items()}
        reference.random_weights(model.variables)
        same, seed = model(inputs), tf.constant([1, 2])
        np.testing.assert_allclose(model(inputs, seed), same, atol=1e-6)
        model.rate = 0.5
        assert np.abs(model(inputs, seed) - same).max() > 0.1

    def test_transform_may_differ_from_the_encoder(self):
        config = dataclasses.replace(
            _TINY, transform_act="relu", transform_layer_norm_eps=1e-2
        )
        model = heads.BertMaskedLM(modeling.Bert(config))
        weights, sequence, _ = self._parts(model)
        x = sequence[np.arange(3)[:, None], _INPUTS["masked_lm_positions"]]
        name = "cls/predictions/transform"
        x = np.maximum(reference.dense(x, weights, f"{name}/dense"), 0)
        x = reference.normalize(x, weights, f"{name}/LayerNorm", 1e-2)
        logits = x @ weights["bert/embeddings/word_embeddings"].T
        logits += weights["cls/predictions/output_bias"]
        np.testing.assert_allclose(model(_INPUTS), logits, atol=2e-5)


def _of_four_choices(inputs):
    """Returns a batch's sequences, each as a problem of four equal choices."""
    return {
        name: np.stack([values] * 4, axis=1)
        for name, values in inputs.items()
        if values.ndim == 2
    }


def _both_ends():
    return families.make(
        bilstm_lm.BiLstmLmConfig(
            vocab_size=_TINY.vocab_size, embedding_size=4, hidden_size=8
        )
    )


def _left_to_right():
    config = left_to_right.LeftToRightConfig(**dataclasses.asdict(_TINY))
    return left_to_right.LeftToRight(config)


_HEADS = {
    "pretraining": heads.BertPretrainer,
    "masked_lm": heads.BertMaskedLM,
    "next_sentence": heads.BertNextSentence,
    "replaced_tokens": replaced_tokens.BertReplacedTokens,
    "classification": lambda bert: heads.BertClassifier(bert, 3),
    "tagging": lambda bert: heads.BertTagger(bert, 3),
    "span": heads.BertSpanFinder,
    "multiple_choice": heads.BertMultipleChoice,
    "next_piece": lambda _: heads.BertNextPiece(_left_to_right()),
    "both_directions": lambda _: both_directions.BothDirections(_both_ends()),
}


_MODULES = (heads, replaced_tokens, both_directions, joint_answers)


@pytest.mark.slow
@pytest.mark.parametrize("head", _HEADS)
def test_trains_what_has_a_gradient(head):
    """Compiled steps have the same gradients."""
    model = _HEADS[head](modeling.Bert(_TINY))
    inputs = _INPUTS
    if head == "multiple_choice":
        inputs = _of_four_choices(inputs)

    def loss(model):
        return sum(map(tf.reduce_sum, tf.nest.flatten(model(inputs))))

    found = {v.path for v in model.trained_variables}
    gradients = _gradients(model, loss)
    assert found == {n for n, x in gradients.items() if x is not None}
    without = {v.path for v in model.bert.pooler.variables}
    assert len(without) == 2
    assert gradients.keys() - found == set() if model.reads_pooled else without
    assert model.reads_pooled == names.HEADS[head].reads_pooled
    for dialect in ("XLA", "TPU"):
        own = compiled.marked(lambda: _gradients(model, loss), dialect)()
        for path in found:
            expected = tf.convert_to_tensor(gradients[path]).numpy()
            np.testing.assert_allclose(
                tf.convert_to_tensor(own[path]),
                expected,
                rtol=0,
                atol=1e-5 * max(np.abs(expected).max(), 0.1),
                err_msg=path,
            )


@pytest.mark.slow
def test_each_head_is_looked_at():
    # tests/tasks/squad/test_joint.py looks at the head that takes the starts.
    joint = joint_answers.BertJointSpanFinder
    models = {type(make(modeling.Bert(_TINY))) for make in _HEADS.values()}
    # Other tests may have defined custom heads in this process.
    ours = {
        c
        for c in heads.Model.__subclasses__()
        if c.__module__ in {x.__name__ for x in _MODULES}
    }
    assert models | {joint} == ours
    # tests/contrib/test_xlnet_pretraining.py looks at permuted words, and
    # tests/seq2seq at encoder-decoders.
    others = {"encoder", "joint_span", "permuted_words", "seq2seq"}
    assert _HEADS.keys() == names.HEADS.keys() - others
