"""Left-to-right models see nothing after a position; the rest is BERT.

Reference for the hidden states are transformers' decoder, which computes BERT
with a causal mask, and the same weights.
"""

import dataclasses
from unittest import mock

from bert_tf import errors, heads, modeling
from bert_tf.checkpoints import formats, names
from bert_tf.contrib import left_to_right
from bert_tf.encoders import families, watching
from bert_tf.exporting import inference
from tests import interop_samples as samples

import keras
import numpy as np
import pytest
import tensorflow as tf

B, S = 3, 12
BERT = modeling.BertConfig(**samples.SMALL)
# Every position of a batch has a different token: the gradient of the word
# embeddings then shows which positions it depends on.
CONFIG = left_to_right.LeftToRightConfig(
    vocab_size=B * S,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=S,
    type_vocab_size=2,
)
IDS = np.arange(B * S, dtype=np.int32).reshape(B, S)
# The first row is full, others are padded at the end, or on both sides.
MASK = np.ones([B, S], np.int32)
MASK[1, 7:] = 0
MASK[2, :3] = MASK[2, 9:] = 0


def _random(model):
    rng = np.random.default_rng(0)
    for variable in model.variables:
        spread = 0.5 if len(variable.shape) > 1 else 0.1
        value = rng.normal(0, spread, variable.shape)
        if variable.path.endswith("gamma"):
            value += 1
        variable.assign(value)
    return model


def _assign(model, other):
    for variable, value in zip(model.variables, other.variables, strict=True):
        variable.assign(value)


@pytest.fixture(scope="module", name="model")
def _model():
    return _random(families.make(CONFIG))


def _inputs(**more):
    inputs = {"input_ids": IDS, "input_mask": MASK, **more}
    return {name: tf.constant(x) for name, x in inputs.items()}


def _packed():
    """Returns rows of two sequences, and padding."""
    numbers = np.zeros([B, S], np.int32)
    numbers[:, :5], numbers[:, 5:11] = 1, 2
    positions = np.concatenate([range(5), range(6), [0]]).astype(np.int32)
    return {
        "input_mask": (numbers > 0).astype(np.int32),
        "sequence_ids": numbers,
        "position_ids": np.tile(positions, [B, 1]),
    }


def _seen(model, inputs, compute):
    """Returns the positions of its row each output depends on: [R, B, S] bool.

    Asserts that no output depends on another row.

    `compute` returns outputs [B, R, D]. A gradient of exactly 0 is not seen.
    """
    table = model.embeddings.word_embeddings.value
    direction = tf.random.stateless_normal([CONFIG.hidden_size], [1, 2])
    with tf.GradientTape(persistent=True) as tape:
        outputs = compute(inputs)
        sums = tf.reduce_sum(outputs * direction, axis=-1)  # [B, R]
        rows, columns = (tf.unstack(tf.reduce_sum(sums, x)) for x in (1, 0))

    def seen(parts):
        found = [tape.gradient(x, table).numpy() != 0 for x in parts]
        return np.array(found).any(-1).reshape([-1, B, S])

    for row, found in enumerate(seen(rows)):
        assert not np.delete(found, row, axis=0).any(), row
    return seen(columns)


def _check(seen, places, is_token, same):
    """Asserts that outputs see exactly the positions that they may see.

    `places` [B, R] are the outputs' positions, `is_token` is [B, S] bool, and
    `same` [B, S, S] bool marks positions of the same sequence.
    """
    for row in range(B):
        for number, place in enumerate(places[row]):
            found = seen[number, row]
            assert not found[place + 1 :].any(), (row, place)
            if is_token[row, place]:
                wanted = is_token[row] & same[row, place]
                wanted[place + 1 :] = False
                np.testing.assert_array_equal(found, wanted)


ALL = np.tile(np.arange(S), [B, 1])
ONE = np.ones([B, S, S], bool)


def _same():
    """Returns which positions of packed rows are of the same sequence."""
    numbers = _packed()["sequence_ids"]
    return numbers[:, :, np.newaxis] == numbers[:, np.newaxis]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "seed", "same"),
    [({}, None, ONE), ({}, (1, 2), ONE), (_packed(), None, _same())],
    ids=["plain", "dropout", "packed"],
)
def test_no_later_token_is_seen(model, more, seed, same):
    inputs = _inputs(**more)
    seen = _seen(model, inputs, lambda x: model(x, dropout_seed=seed).sequence)
    _check(seen, ALL, inputs["input_mask"].numpy() > 0, same)


def _forms(model):
    """Returns other ways to compute the last hidden states."""
    at = tf.constant([[0, 4, 5], [6, 2, 1], [3, 8, 5]])

    def remat(inputs):
        with mock.patch.object(model.encoder, "remat", True):
            return model(inputs).sequence

    def without_padding(inputs, positions=None):
        with mock.patch.object(model, "skips_padding", True):
            return model(inputs, positions=positions).sequence

    def kept(inputs):
        with watching.keeping_sequence(model) as found:
            model(inputs, positions=at[:, :1])
        return found[0]

    def compiled(inputs):
        function = tf.function(
            lambda x: model(x).sequence, autograph=False, jit_compile=True
        )
        return function(inputs)

    served = inference.make_inference_model(model)
    return {
        "remat": (remat, ALL),
        "read": (lambda x: model(x, positions=at).sequence, at.numpy()),
        "tokens": (without_padding, ALL),
        "tokens read": (lambda x: without_padding(x, at), at.numpy()),
        "kept": (kept, ALL),
        "xla": (compiled, ALL),
        "served": (lambda x: served(x).sequence, ALL),
        "served, read": (
            lambda x: served(x, positions=at).sequence,
            at.numpy(),
        ),
    }


@pytest.mark.parametrize("more", [{}, _packed()], ids=["plain", "packed"])
@pytest.mark.parametrize(
    "form",
    [
        *("remat", "read", "tokens", "tokens read", "kept"),
        *("served", "served, read"),
        pytest.param("xla", marks=pytest.mark.exhaustive),
    ],
)
def test_all_forms_are_the_same(model, form, more):
    inputs = _inputs(**more)
    compute, places = _forms(model)[form]
    # Outputs at padding have no meaning where it is not computed.
    is_token = inputs["input_mask"].numpy() > 0
    compared = np.take_along_axis(is_token, places, 1)
    wanted = model(inputs).sequence.numpy()
    wanted = np.take_along_axis(wanted, places[..., np.newaxis], 1)
    found = compute(inputs).numpy()
    np.testing.assert_allclose(
        found[compared], wanted[compared], rtol=0, atol=5e-6
    )


def test_the_last_token_is_pooled(model):
    outputs = model(_inputs())
    last = [S - 1, 6, 8]
    wanted = model.pooler(
        tf.stack([outputs.sequence[i, x] for i, x in enumerate(last)])
    )
    np.testing.assert_allclose(outputs.pooled, wanted, rtol=0, atol=5e-6)
    at = tf.constant([[0, 1]] * B)
    read = model(_inputs(), positions=at)
    np.testing.assert_allclose(read.pooled, wanted, rtol=0, atol=5e-6)
    np.testing.assert_allclose(
        read.sequence, outputs.sequence[:, :2], rtol=0, atol=5e-6
    )
    assert len(read.layers) == len(outputs.layers) == CONFIG.num_hidden_layers
    np.testing.assert_array_equal(read.layers[-1], read.sequence)
    with watching.keeping_sequence(model) as kept:
        found = model(_inputs(), positions=at)
    assert model.keep is None
    np.testing.assert_allclose(kept[0], outputs.sequence, atol=1e-6)
    np.testing.assert_allclose(found.sequence, read.sequence, atol=1e-6)
    np.testing.assert_allclose(found.pooled, wanted, atol=1e-6)


def test_a_row_without_tokens_has_numbers(model):
    inputs = _inputs() | {"input_mask": tf.zeros([B, S], tf.int32)}
    assert np.isfinite(model(inputs).pooled).all()


def test_a_classifier_reads_all_of_a_row(model):
    classifier = _random(heads.BertClassifier(model, 2))
    seen = _seen(model, _inputs(), lambda x: model(x).pooled[:, tf.newaxis])
    for row in range(B):
        np.testing.assert_array_equal(seen[0, row], MASK[row] > 0)
    assert classifier(_inputs()).shape == [B, 2]


# ---- The family --------------------------------------------------------------


def test_the_config_says_it(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(CONFIG.to_json())
    assert '"model_type": "left_to_right"' in CONFIG.to_json()
    found = families.read_config(str(path))
    assert found == CONFIG
    assert isinstance(families.make(found), left_to_right.LeftToRight)
    model = heads.BertNextPiece(families.make(CONFIG))
    shapes = {v.path: tuple(v.shape) for v in model.variables}
    assert shapes == names.shapes(CONFIG, "next_piece")
    assert names.find_head(shapes, "x") == "next_piece"


def test_next_pieces_need_it():
    with pytest.raises(errors.InputError, match=r"left_to_right\. Receiv"):
        heads.BertNextPiece(families.make(BERT))


def test_keras_hub_has_none(tmp_path):
    config = left_to_right.LeftToRightConfig(**samples.SMALL)
    model = samples.random_model("next_piece", config)
    source = samples.source(tmp_path / "x", model)
    assert source.config == config
    with pytest.raises(errors.InputError, match=r"no such (model|encoder)"):
        formats.write(str(tmp_path / "y"), "keras_hub", source)
    formats.write(str(tmp_path / "again"), "tf1", source)
    samples.assert_equal(str(tmp_path / "x"), str(tmp_path / "again"))


@pytest.mark.slow
def test_bfloat16(model):
    low = left_to_right.LeftToRight(CONFIG, dtype="mixed_bfloat16")
    _assign(low, model)
    seen = _seen(low, _inputs(), lambda x: tf.cast(low(x).sequence, tf.float32))
    for place in range(S):
        assert not seen[place, :, place + 1 :].any()


# ---- Comparison with transformers --------------------------------------------


@pytest.fixture(scope="module", name="beside")
def _beside(tmp_path_factory):
    """Returns our model, and transformers' decoder with its weights."""
    pytest.importorskip("torch", reason="needs the extra `parity`")
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    folder = tmp_path_factory.mktemp("beside")
    bert = samples.random_model("encoder", BERT)
    source = samples.source(folder / "tf1", bert)
    formats.write(str(folder / "hf"), "hf", source)
    theirs = transformers.BertModel.from_pretrained(
        folder / "hf", is_decoder=True
    )
    ours = families.make(left_to_right.LeftToRightConfig(**samples.SMALL))
    _assign(ours, bert)
    return ours, theirs.eval()


@pytest.mark.slow
def test_hidden_states_are_transformers(beside):
    torch = pytest.importorskip("torch", reason="needs the extra `parity`")
    from tests import huggingface_models as hf

    ours, theirs = beside
    inputs = samples.batch(ours.config)
    with torch.no_grad():
        wanted = theirs(**hf.their_inputs(inputs), output_hidden_states=True)
    found = ours({name: tf.constant(x) for name, x in inputs.items()})
    is_token = inputs["input_mask"] > 0
    assert not is_token.all()
    pairs = zip(
        [found.embeddings, *found.layers], wanted.hidden_states, strict=True
    )
    for x, y in pairs:
        difference = np.abs(x.numpy() - y.numpy())[is_token]
        assert difference.max() <= samples.TOLERANCE
    plain = families.make(BERT)
    _assign(plain, ours)
    other = plain({name: tf.constant(x) for name, x in inputs.items()})
    difference = np.abs(other.sequence - wanted.last_hidden_state.numpy())
    assert difference[is_token].max() > 0.1, "the mask would not show"


@pytest.mark.slow
def test_it_is_trained_by_keras(model):
    """Dropout is drawn in training only, as in BERT."""
    keras.utils.set_random_seed(1)
    fresh = families.make(CONFIG)
    first = fresh(_inputs(), training=True).sequence
    assert np.abs(first - fresh(_inputs()).sequence).max() > 1e-3
    assert dataclasses.asdict(fresh.config) == dataclasses.asdict(CONFIG)
