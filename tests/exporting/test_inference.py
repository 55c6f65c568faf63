"""Tests of the serving form of BERT, compared with the training form."""

import dataclasses

from bert_tf import heads, modeling
from bert_tf.encoders import distilbert, families, ops, roberta
from bert_tf.exporting import inference, inference_layers

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow
_EAGER = pytest.mark.usefixtures("untraced")

CONFIG = modeling.BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=64,
    # Larger than in released models, so that differences show.
    initializer_range=0.3,
)
# Batches by their rows' lengths: one row, one position, few positions, no
# padding, too little to remove it, enough, a row without tokens, no rows.
BATCHES: list[list[int]] = [
    *([9], [1], [2, 1], [12] * 3, [12, 11, 12], [40, 3, 17, 1, 5]),
    *([40, 0, 17, 1, 5], []),
]


def batch(lengths, seed=0):
    generator = np.random.default_rng(seed)
    size = (len(lengths), max(lengths, default=4))
    mask = np.arange(size[1]) < np.array(lengths, int)[:, np.newaxis]
    return {
        "input_ids": tf.constant(generator.integers(0, 50, size), tf.int32),
        "input_mask": tf.constant(mask, tf.int32),
        "segment_ids": tf.constant(generator.integers(0, 2, size), tf.int32),
    }


def encoder(kind=modeling.BertConfig, **changes):
    tf.keras.utils.set_random_seed(1)
    bert = families.make(kind(**dataclasses.asdict(CONFIG) | changes))
    for variable in bert.variables:  # So that no bias is 0, no norm 1.
        if len(variable.shape) == 1:
            noise = tf.random.stateless_normal(variable.shape, [2, 3])
            variable.assign_add(0.3 * noise)
    return bert


@pytest.fixture(scope="module")
def bert():
    return encoder()


def graphs(*functions, like):
    """Traces functions like a server, for any number of rows."""
    specs = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None] * len(x.shape), x.dtype), like
    )

    def traced(function):
        graph = tf.function(function, specs, autograph=False)
        return lambda *x: tf.nest.map_structure(np.asarray, graph(*x))

    return map(traced, functions)


def at_tokens(x, inputs):
    return x[inputs["input_mask"].numpy() > 0]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_all_layers(bert):
    served = inference.Encoder(bert, every_layer=True)
    trained, ours = graphs(
        *(lambda x: tuple(bert(x)), lambda x: tuple(served(x))),
        like=[batch([1])],
    )
    for lengths in BATCHES:
        inputs = batch(lengths)
        expected, found = trained(inputs), ours(inputs)
        for a, b in zip(
            [found[2], *found[3]], [expected[2], *expected[3]], strict=True
        ):
            assert a.shape == b.shape
            close(at_tokens(a, inputs), at_tokens(b, inputs))
        has_tokens = np.array(lengths, int) > 0
        close(found[1][has_tokens], expected[1][has_tokens])


def test_places_that_are_read(bert):
    served = inference.Encoder(bert, reads_all=False)
    trained, ours = graphs(
        lambda x, p: bert(x, None, p).sequence,
        lambda x, p: served(x, None, p).sequence,
        like=[batch([1]), tf.constant([[1]])],
    )
    for lengths in filter(None, BATCHES):
        drawn = np.random.default_rng(3).random([len(lengths), 3])
        places = drawn * np.maximum(lengths, 1)[:, np.newaxis]
        given = batch(lengths), tf.constant(places, tf.int32)
        rows = np.array(lengths) > 0
        close(ours(*given)[rows], trained(*given)[rows])


def test_activations():
    x = tf.linspace(-9.0, 9.0, 99)
    assert inference_layers._ACTIVATIONS.keys() == ops.ACTIVATIONS.keys()
    for name, activation in ops.ACTIVATIONS.items():
        close(inference_layers._ACTIVATIONS[name](x), activation(x))


@_EAGER
@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "relu", "pooler_act": "linear"},
        {"num_hidden_layers": 1},
        {"layer_norm_eps": 0.1},
    ],
    ids=str,
)
def test_architectures(changes):
    bert = encoder(**changes)
    inputs = batch([40, 3, 17])
    close(inference.Encoder(bert)(inputs).pooled, bert(inputs).pooled)


@_EAGER
def test_a_row_is_answered_alike_in_any_batch(bert):
    """A row of padding only is read by itself, if others have more tokens."""
    served = inference.Encoder(bert)
    many = batch([40, 0, 17, 1, 5])
    together = served(many).pooled.numpy()
    for row, length in enumerate([40, 0, 17, 1, 5]):
        # A row without tokens attends to all its positions equally.
        if length:
            alone = {n: x[row : row + 1, :length] for n, x in many.items()}
            close(together[row], served(alone).pooled[0])
    assert np.isfinite(together).all()


def check_head(head, *batches, served=inference.Model):
    trained, ours = graphs(head, served(head), like=batches[:1])
    for inputs in batches:
        for a, b in zip(
            tf.nest.flatten(ours(inputs)),
            tf.nest.flatten(trained(inputs)),
            strict=True,
        ):
            if head.reads_all:
                a, b = at_tokens(a, inputs), at_tokens(b, inputs)
            close(a, b)


@_EAGER
@pytest.mark.parametrize(
    "make",
    [
        lambda bert: heads.BertClassifier(bert, 3),
        lambda bert: heads.BertTagger(bert, 3),
        heads.BertSpanFinder,
        pytest.param(heads.BertNextSentence, marks=pytest.mark.exhaustive),
    ],
)
def test_heads(bert, make):
    check_head(make(bert), *map(batch, ([9], [12, 11, 12], [40, 3, 17, 1, 5])))


@_EAGER
def test_masked_words_and_multiple_choice(bert):
    inputs = batch([40, 3, 17])
    inputs["masked_lm_positions"] = tf.constant([[39, 0], [2, 1], [0, 16]])
    check_head(heads.BertMaskedLM(bert), inputs)
    flat = batch([40, 3, 17, 0])
    inputs = {name: tf.reshape(x, [2, 2, 40]) for name, x in flat.items()}
    check_head(heads.BertMultipleChoice(bert), inputs)


@_EAGER
@pytest.mark.parametrize(
    "kind, head, changes",
    [
        (roberta.RobertaConfig, heads.BertTagger, {"type_vocab_size": 1}),
        (
            *(distilbert.DistilBertConfig, heads.BertClassifier),
            {"type_vocab_size": 0, "pooler_act": "relu"},
        ),
    ],
)
def test_encoders_that_compute_as_bert(kind, head, changes):
    bert = encoder(kind, hidden_act="gelu_erf", **changes)
    inputs = batch([40, 3, 17])
    if changes["type_vocab_size"]:
        inputs["segment_ids"] = tf.zeros_like(inputs["input_ids"])
    made = head(bert, 3)
    assert isinstance(inference.make_inference_model(made), inference.Model)
    check_head(made, inputs, served=inference.make_inference_model)


def test_padding_is_not_computed(bert):
    """Rows of 3 tokens and one of 40 take products of 46 rows, not 160."""
    served = inference.Encoder(bert)
    inputs = batch([40, 3, 2, 1])
    layout = inference_layers.Tokens(inputs["input_mask"])
    assert served.embeddings(inputs, layout).shape == [46, 32]
    # Each weight is stored once.
    sizes = [tf.size(variable).numpy() for variable in served.variables]
    assert sum(sizes) == bert.count_params()
