"""The tokenizer layer, compared with FullTokenizer, in data sets and models."""

import shutil

import bert_tf
from bert_tf import tokenization
from tests import exports

import keras
import numpy as np
import pytest
import tensorflow as tf

_VOCAB = exports.VOCAB
_TEXTS = ["What a film.", "", "good Café 博", "good " * 30]
_OTHERS = ["bad", "whatever", "", "a o o"]


def rows(vocab_file, texts, others, length):
    """Returns Python's padded rows of pairs of texts."""
    tokenizer = tokenization.FullTokenizer(str(vocab_file))
    found = np.zeros([3, len(texts), length], np.int32)
    for i, pair in enumerate(zip(texts, others, strict=True)):
        ids, segments = exports.python_row(*pair, length, tokenizer)
        found[:, i, : len(ids)] = ids, np.ones(len(ids)), segments
    names = ("input_ids", "input_mask", "segment_ids")
    return dict(zip(names, found, strict=True))


def check(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == "int32"
        np.testing.assert_array_equal(found[name], values)


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(_VOCAB) + "\n")
    return path


@pytest.fixture(scope="module")
def layer(vocab_file):
    return bert_tf.Tokenizer(vocab_file, max_seq_length=12)


@pytest.mark.slow
def test_texts_and_pairs_in_data_sets(vocab_file, layer):
    pairs = rows(vocab_file, _TEXTS, _OTHERS, 12)
    single = rows(vocab_file, _TEXTS, [""] * 4, 12)
    check(layer(_TEXTS), single)
    check(layer(_TEXTS, _OTHERS), pairs)
    check(layer(np.array(_TEXTS)), single)
    check(layer(_TEXTS[0]), {n: x[0] for n, x in single.items()})
    dataset = tf.data.Dataset.from_tensor_slices((_TEXTS, _OTHERS))
    (batch,) = dataset.batch(4).map(layer)
    check(batch, pairs)
    (batch,) = dataset.map(layer).batch(4)
    check(batch, pairs)
    # TPUs need static shapes.
    batches = dataset.batch(4, drop_remainder=True).map(layer)
    assert {x.shape for x in batches.element_spec.values()} == {(4, 12)}
    short = bert_tf.Tokenizer(_VOCAB, max_seq_length=12, pad_to_max=False)
    assert short(["a film", "a"])["input_ids"].shape == (2, 4)


@pytest.mark.usefixtures("untraced")
def test_where_its_vocabulary_may_lie(tmp_path, vocab_file):
    run = tmp_path / "run"
    shutil.copytree(exports.run("one text"), run)
    expected = rows(vocab_file, ["a film"], [""], 128)
    saved = [str(run / "model.ckpt-7"), run / "model.ckpt-7.index"]
    places = [str(vocab_file), run, *saved, _VOCAB]
    # A folder that has only a tokenizer.
    for place in (*places, vocab_file.parent):
        check(bert_tf.Tokenizer(place)(["a film"]), expected)
    # Of a model without its weights, which an index names.
    partial = tmp_path / "partial"
    partial.mkdir()
    shutil.copy(vocab_file, partial / "vocab.txt")
    (partial / "model.safetensors.index.json").write_text("{}")
    check(bert_tf.Tokenizer(partial)(["a film"]), expected)
    path = exports.exported("one text")
    check(bert_tf.Tokenizer(path)(["a film"]), expected)
    flags = run / "flags.txt"
    flags.write_text("--do_lower_case=false\n")
    with pytest.raises(bert_tf.InputError, match="is uncased"):
        bert_tf.Tokenizer(run)
    assert bert_tf.Tokenizer(run, do_lower_case=True).do_lower_case


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_settings_of_a_run(tmp_path):
    """A vocabulary that keeps accents makes a tokenizer that keeps them."""
    run = tmp_path / "run"
    shutil.copytree(exports.run("one text"), run)
    ids = bert_tf.Tokenizer(run)(["fílm"])["input_ids"]
    assert ids[0, 1] == _VOCAB.index("film")
    (run / "tokenizer_config.json").write_text('{"strip_accents": false}')
    layer = bert_tf.Tokenizer(run)
    again = bert_tf.Tokenizer.from_config(layer.get_config())
    for made in (layer, again):
        ids = made(["fílm"])["input_ids"]
        assert ids[0, 1] == _VOCAB.index("[UNK]")


def test_settings_of_an_export_do_not_change(tmp_path):
    export = tmp_path / "export"
    shutil.copytree(exports.exported("one text"), export)
    file = export / "assets" / "tokenizer_config.json"
    file.write_text('{"strip_accents": false}')
    with pytest.raises(ValueError, match=r"tokenizer_config\.json changed"):
        bert_tf.Tokenizer(export)


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_masks_on_request(vocab_file):
    text, mask = "a [MASK].", _VOCAB.index("[MASK]")
    assert mask not in bert_tf.Tokenizer(vocab_file)(text)["input_ids"]
    layer = bert_tf.Tokenizer(vocab_file, max_seq_length=8, masks=True)
    words = ["[CLS]", "a", "[MASK]", ".", "[SEP]", *["[PAD]"] * 3]
    for made in (layer, bert_tf.Tokenizer.from_config(layer.get_config())):
        ids = made(text)["input_ids"].numpy()
        assert [_VOCAB[i] for i in ids] == words


# ---- In models --------------------------------------------------------------


@pytest.mark.slow
def test_model_of_texts_is_exported(tmp_path, layer):
    keras.utils.set_random_seed(1)
    texts = keras.Input([], dtype="string")
    words = keras.layers.Embedding(len(_VOCAB), 3)
    vectors = words(layer(texts)["input_ids"])
    model = keras.Model(texts, keras.layers.Flatten()(vectors))
    expected = words(layer(_TEXTS)["input_ids"]).numpy().reshape(4, -1)
    np.testing.assert_array_equal(model(tf.constant(_TEXTS)), expected)
    model.export(str(tmp_path / "export"), verbose=False)
    served = tf.saved_model.load(str(tmp_path / "export"))
    np.testing.assert_allclose(
        served.serve(tf.constant(_TEXTS)), expected, atol=1e-6
    )
    # It trains, even when Keras would compile it with XLA.
    model.compile("sgd", "mse", jit_compile="auto")
    before = float(model.evaluate(tf.constant(_TEXTS), expected * 2, verbose=0))
    model.fit(tf.constant(_TEXTS), expected * 2, epochs=3, verbose=0)
    after = float(model.evaluate(tf.constant(_TEXTS), expected * 2, verbose=0))
    assert after < before


# ---- Errors -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "must be the path of a vocab.txt"),
        (([],), "a list of word pieces"),
        (([1],), r"Received: vocabulary=\[1\]"),
        ((["[UNK]", "[CLS]", "a"],), r"lacks the token '\[SEP\]'"),
        ((_VOCAB, "no"), "Received: do_lower_case='no'"),
        ((_VOCAB, False), "is uncased"),
        ((_VOCAB, True, 2), "at least 3"),
        ((_VOCAB, True, 8.0), "Received: max_seq_length=8.0"),
        (
            (["[UNK]", "[CLS]", "[SEP]", "a"], True, 8, True, True),
            r"masks=True needs .* Received: one without \[MASK\]",
        ),
    ],
)
def test_wrong_arguments_say_what_is_expected(arguments, message):
    with pytest.raises(bert_tf.InputError, match=message) as error:
        bert_tf.Tokenizer(*arguments)
    assert "--" not in str(error.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (([1, 2],), "Expected text_a to be a text or texts"),
        (([["a", "b"]],), r"string of shape \(1, 2\)"),
        ((["a", "b"], ["c"]), "text_b must have as many texts"),
        ((["a", None],), r"text_a\[1\]: expected a text.*text_a\[1\]=None"),
        ((["a"], np.array([float("nan")], object)), r"text_b\[0\]=nan"),
    ],
)
def test_wrong_texts_say_what_is_expected(layer, texts, message):
    with pytest.raises(bert_tf.InputError, match=message):
        layer(*texts)
