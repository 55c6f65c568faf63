import math

from bert_tf import compiled, replaced_tokens
from bert_tf.encoders import electra, families
from tests import interop_samples as samples
from tests import reference, tiny_model

import keras
import numpy as np
import pytest
import tensorflow as tf

_CONFIG = electra.ElectraConfig(
    **samples.SMALL, embedding_size=16, generator_hidden_size=0.5
)


def _pretrainer(config=_CONFIG):
    keras.utils.set_random_seed(1)
    encoder = families.make(config)
    generator = electra.Generator(encoder)
    return reference.randomized(
        replaced_tokens.ReplacedTokensPretrainer(encoder, generator)
    )


def _batch(rows=3, length=11, predictions=4):
    """Returns a batch with padding and padded predictions."""
    batch = reference.batch(_CONFIG, rows, length, predictions)
    rng = np.random.default_rng(0)
    counts = np.array([predictions, 2, 0])[:, None]
    weights = (np.arange(predictions) < counts).astype(np.float32)
    places = np.stack(
        [1 + rng.permutation(length // 2 - 1)[:predictions] for _ in counts]
    )
    return batch | {
        "masked_lm_positions": np.int32(places * weights),
        "masked_lm_ids": np.int32(rng.integers(5, 40, places.shape) * weights),
        "masked_lm_weights": weights,
    }


class TestSample:
    @pytest.mark.parametrize("is_compiled", [False, True])
    def test_chi_square(self, is_compiled):
        """Many draws from one distribution of likely and unlikely words.

        Compiled, with the kind of seed that evaluations have.
        """
        V, count = 30, 60_000
        rng = np.random.default_rng(0)
        logits = rng.normal(0, 2, V).astype(np.float32)
        rows = np.broadcast_to(logits, (10, count // 10, V))
        seed = tf.random.fold_in(tf.constant([3, 4]), 5)
        sample = replaced_tokens.sample
        if is_compiled:
            sample = compiled.whole(sample)
        drawn = sample(tf.constant(rows), seed)
        assert drawn.shape == (10, count // 10)
        assert drawn.dtype == tf.int32
        p = np.exp(np.float64(logits))
        expected = count * p / p.sum()
        found = np.bincount(drawn.numpy().ravel(), minlength=V)
        assert 5 < expected.min() < 0.01 * expected.max()
        statistic = ((found - expected) ** 2 / expected).sum()
        # Wilson & Hilferty (1931): the cube root of chi^2 / k is about normal.
        k = V - 1
        spread = 2 / (9 * k)
        normal = ((statistic / k) ** (1 / 3) - 1 + spread) / math.sqrt(spread)
        assert abs(normal) < 4, statistic

    def test_depends_on_the_seed_and_on_the_place(self):
        logits = tf.zeros([4, 50, 1000])
        first, again, other = (
            replaced_tokens.sample(logits, tf.constant(seed)).numpy()
            for seed in ([1, 2], [1, 2], [1, 3])
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).mean() > 0.99
        assert len(np.unique(first)) > 150

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_words_of_logits_that_are_no_numbers(self, number):
        """Samples are valid ids, so that the loss reports the problem."""
        logits = tf.fill([2, 3, 9], number)
        drawn = replaced_tokens.sample(logits, tf.constant([1, 2])).numpy()
        assert ((drawn >= 0) & (drawn < 9)).all()

    def test_a_word_that_is_certain(self):
        logits = tf.one_hot([[3, 0]], 9, on_value=100.0, off_value=-100.0)
        drawn = replaced_tokens.sample(logits, tf.constant([1, 2]))
        assert drawn.numpy().tolist() == [[3, 0]]


@pytest.fixture(scope="module", name="model")
def _model():
    return _pretrainer()


class TestPretrainer:
    @pytest.mark.slow
    def test_what_the_discriminator_sees(self, model, monkeypatch):
        """Each output equals that of the two separate models."""
        batch = _batch()
        given = np.array([[7, 8, 9, 10], [7, 8, 9, 10], [7, 8, 9, 10]])
        given[0, 1] = batch["masked_lm_ids"][0, 1]  # a right guess
        monkeypatch.setattr(
            replaced_tokens, "sample", lambda *_: tf.constant(given, tf.int32)
        )
        found = model(batch)
        text, seen = batch["input_ids"].copy(), batch["input_ids"].copy()
        for row, i in np.argwhere(batch["masked_lm_weights"] > 0):
            place = batch["masked_lm_positions"][row, i]
            text[row, place] = batch["masked_lm_ids"][row, i]
            seen[row, place] = given[row, i]
        assert (seen != text).sum() == 5
        np.testing.assert_array_equal(found.is_replaced, seen != text)
        np.testing.assert_array_equal(found.sampled, given)
        x = model.generator(batch).sequence
        x = tf.gather(x, batch["masked_lm_positions"], batch_dims=1)
        words = model.generator_predictions(
            x, model.bert.embeddings.word_embeddings
        )
        np.testing.assert_allclose(found.words, words, atol=1e-5)
        alone = replaced_tokens.BertReplacedTokens(model.bert)
        values = {v.path: v for v in model.variables}
        for variable in alone.variables:
            variable.assign(values[variable.path])
        wanted = alone(batch | {"input_ids": seen})
        np.testing.assert_allclose(found.tokens, wanted, atol=1e-5)
        assert np.ptp(wanted) > 0.1

    @pytest.mark.slow
    def test_evaluation_is_repeatable(self, model):
        batch = _batch()
        first, again = model(batch), model(batch)
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)
        # TPUs compile evaluations, too.
        assert compiled.whole(model)(batch).sampled.shape == first.sampled.shape
        other = dict(batch)
        other["masked_lm_ids"] = (batch["masked_lm_ids"] + 1) % 40
        # Another batch has other samples.
        assert (model(other).sampled != first.sampled).numpy().any()

    @pytest.mark.slow
    def test_training_draws_by_its_seed(self, model):
        batch = _batch()
        first, again, other = (
            model(batch, tf.constant(seed)) for seed in ([1, 2], [1, 2], [3, 4])
        )
        for one, same in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, same)
        assert (first.sampled != other.sampled).numpy().any()
        # Dropout acts in both.
        assert not np.allclose(first.words, model(batch).words, atol=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_in_half_of_the_bits(self, model, dtype):
        batch = _batch()
        weights = {v.path: v.numpy() for v in model.variables}
        with tiny_model.policy(f"mixed_{dtype}"):
            half = _pretrainer()
        for variable in half.variables:
            assert variable.dtype == "float32"
            variable.assign(weights[variable.path])
        found, wanted = half(batch), model(batch)
        assert found.words.dtype == found.tokens.dtype == tf.float32
        error = np.abs(found.words - wanted.words).max()
        assert 0 < error < 0.1 * np.abs(wanted.words).max()

    def test_embeddings_are_there_once(self, model):
        paths = [v.path for v in model.variables]
        assert len(paths) == len(set(paths))
        assert model.generator.embeddings is model.bert.embeddings
        assert len(model.trained_variables) == len(paths)

    @pytest.mark.slow
    @pytest.mark.parametrize("remat", [False, True])
    def test_packed_rows_see_themselves_only(self, model, remat, monkeypatch):
        for bert in (model.bert, model.generator):
            monkeypatch.setattr(bert.encoder, "remat", remat)
        monkeypatch.setattr(
            replaced_tokens,
            "sample",
            lambda logits, _: tf.zeros(tf.shape(logits)[:2], tf.int32) + 9,
        )
        rng = np.random.default_rng(0)
        ids = rng.integers(10, 40, (1, 10), np.int32)
        numbers = np.array([[1] * 6 + [2] * 4], np.int32)
        packed = {
            "input_ids": ids,
            "input_mask": np.ones_like(ids),
            "segment_ids": np.zeros_like(ids),
            "sequence_ids": numbers,
            "position_ids": np.array([[*range(6), *range(4)]], np.int32),
            "masked_lm_positions": np.array([[2, 8]], np.int32),
            "masked_lm_ids": np.array([[5, 6]], np.int32),
            "masked_lm_weights": np.array([[1, 1]], np.float32),
        }
        found = model(packed)
        alone = model(
            {
                "input_ids": ids[:, 6:],
                "masked_lm_positions": np.array([[2]], np.int32),
                "masked_lm_ids": np.array([[6]], np.int32),
                "masked_lm_weights": np.array([[1]], np.float32),
            }
        )
        np.testing.assert_allclose(found.words[:, 1:], alone.words, atol=1e-5)
        np.testing.assert_allclose(found.tokens[:, 6:], alone.tokens, atol=1e-5)
        np.testing.assert_array_equal(
            found.is_replaced[:, 6:], alone.is_replaced
        )
