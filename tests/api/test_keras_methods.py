"""What the Keras classes offer besides training."""

import bert_tf
from bert_tf.api import models
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests import reference
from tests.api import keras_models as tiny

import keras
import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def huggingface():
    return pytest.importorskip(
        "tests.huggingface_models", reason="needs the extra `parity`"
    )


def _pair(huggingface, folder, architecture):
    """A model of transformers, and ours of its folder."""
    theirs = huggingface.make(architecture)
    huggingface.save(theirs, folder)
    return theirs, bert_tf.Bert.from_checkpoint(folder)


# ---- Attention maps and vectors ---------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["BertModel", "RobertaModel"])
def test_attention_maps(huggingface, tmp_path, architecture):
    theirs, ours = _pair(huggingface, tmp_path, architecture)
    theirs.set_attn_implementation("eager")
    inputs = samples.batch(ours.config)
    expected = theirs(
        **huggingface.their_inputs(inputs), output_attentions=True
    ).attentions
    found = ours.attention_maps(inputs)
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        tiny.close(x, y.detach().numpy())
    # It leaves nothing behind.
    before = ours(inputs).sequence
    tiny.close(ours(inputs).sequence, before)


@pytest.mark.parametrize("architecture", ["BertModel", "RobertaModel"])
def test_vectors_in_place_of_ids(huggingface, tmp_path, architecture):
    theirs, ours = _pair(huggingface, tmp_path, architecture)
    inputs = samples.batch(ours.config)
    their_inputs = huggingface.their_inputs(inputs)
    shape = (*inputs["input_ids"].shape, ours.config.hidden_size)
    vectors = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    del inputs["input_ids"], their_inputs["input_ids"]
    expected = theirs(
        inputs_embeds=huggingface.torch.tensor(vectors), **their_inputs
    )
    found = ours(inputs | {"inputs_embeds": vectors})
    tiny.close(found.sequence, expected.last_hidden_state.detach().numpy())
    tiny.close(found.pooled, expected.pooler_output.detach().numpy())


@pytest.mark.parametrize("kind", ["BertClassifier", "BertMultipleChoice"])
def test_vectors_of_ids_are_the_ids(kind):
    model, inputs = tiny.of_kind(kind), dict(tiny.inputs_of(kind))
    expected = model(inputs)
    table = model.bert.embeddings.word_embeddings.numpy()
    inputs["inputs_embeds"] = table[inputs.pop("input_ids")]
    tiny.close(model(inputs), expected)


@pytest.mark.parametrize(
    ("vectors", "named"),
    [
        (np.ones([6, 9, 8], int), "inputs_embeds of int64"),
        (np.ones([6, 9], np.float32), r"floats of 3 dimensions.*\(6, 9\)"),
        (np.ones([6, 8, 8], np.float32), r"a vector for each of `input_ids`"),
    ],
)
def test_other_vectors_are_refused(vectors, named):
    with pytest.raises(InputError, match=named):
        tiny.classifier()(tiny.INPUTS | {"inputs_embeds": vectors})


# ---- Ids --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segments", "named"),
    [
        (2, r"from 0 to 1.*2 token types\. Received: segment_ids from 0 to 2"),
        (-1, "from -1 to 0"),
    ],
)
def test_segments_beyond_the_table_are_refused(segments, named):
    ids = np.zeros_like(tiny.INPUTS["segment_ids"])
    ids[0, 1] = segments
    with pytest.raises(InputError, match=named):
        tiny.classifier()(tiny.INPUTS | {"segment_ids": ids})


def test_padding_of_roberta_may_be_anywhere(huggingface, tmp_path):
    """On the left, with a mask; and inside of a text, without one."""
    theirs, ours = _pair(huggingface, tmp_path, "RobertaModel")
    ids = samples.batch(ours.config)["input_ids"].copy()
    ids[ids == 1] = 5
    ids[0, :3] = ids[1, 4] = 1
    mask = np.ones_like(ids)
    mask[0, :3] = 0
    given = {
        "input_ids": huggingface.torch.tensor(np.int64(ids)),
        "attention_mask": huggingface.torch.tensor(np.int64(mask)),
    }
    expected = theirs(**given).last_hidden_state.detach().numpy()
    found = ours({"input_ids": ids, "attention_mask": mask}).sequence
    tiny.close(found, expected)


# ---- Models of models -------------------------------------------------------


@pytest.mark.slow
def test_symbolic_input_and_output():
    model = tiny.classifier()
    whole = keras.Model(model.input, model.output)
    inputs = {name: tiny.INPUTS[name] for name in model.input}
    tiny.close(whole(inputs), model(inputs))
    bert = model.bert
    second = keras.Model(bert.input, bert.output.layers[0])
    tiny.close(second(inputs), bert(inputs).layers[0])


@pytest.mark.slow
def test_two_encoders_without_names(tmp_path):
    columns = {
        name: keras.Input([None], dtype="int32", name=name)
        for name in ("input_ids", "input_mask")
    }
    pooled = [models.Bert(tiny.ONE_LAYER)(columns).pooled for _ in range(2)]
    model = keras.Model(columns, keras.layers.Dot(1)(pooled))
    reference.random_weights(model.variables)
    inputs = {name: tiny.INPUTS[name] for name in columns}
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    tiny.close(again(inputs), expected)


def test_quantize_is_refused_in_one_line():
    with pytest.raises(InputError, match=r'weights="int8"\)') as error:
        tiny.classifier().quantize("int8")
    assert str(error.value).endswith("Received: mode='int8'")
    assert "\n" not in str(error.value)


def test_gradients_reach_the_vectors():
    """As for saliency maps: a slope is the difference of two outputs."""
    model, inputs = tiny.classifier(), dict(tiny.INPUTS)
    table = model.bert.embeddings.word_embeddings.numpy()
    vectors = tf.constant(table[inputs.pop("input_ids")])

    def score(x):
        return model(inputs | {"inputs_embeds": x})[0, 1]

    with tf.GradientTape() as tape:
        tape.watch(vectors)
        y = score(vectors)
    slopes = tape.gradient(y, vectors).numpy()
    step = np.zeros_like(slopes)
    step[0, 2, 3] = 1e-2
    difference = score(vectors + step) - score(vectors - step)
    np.testing.assert_allclose(difference / 2e-2, slopes[0, 2, 3], rtol=1e-2)
    # Rows of other texts don't count.
    assert not slopes[1:].any()
