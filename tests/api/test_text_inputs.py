"""Keras models that are trained and asked on texts."""

import collections
import dataclasses
import json
from typing import Any

import bert_tf
from bert_tf.checkpoints import formats
from bert_tf.errors import InputError
from tests import exports, reference
from tests.api.test_exports import answering, logits

import keras
import numpy as np
import pytest
import tensorflow as tf

_TEXTS = ["a film", "bad", "what film", "good, good", "", "cafe " * 20]
_OTHERS = ["good", "", "a bad film", "whatever", "bad", "film"]
_LABELS = [1, 0, 2, 1, 0, 2]
_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

# Texts are tokenized before the step: tracing it does not matter.
pytestmark = pytest.mark.usefixtures("untraced")


@pytest.fixture(scope="module")
def tokenizer():
    return bert_tf.Tokenizer(exports.VOCAB, max_seq_length=exports.LENGTH)


@pytest.fixture(scope="module", name="model")
def _model():
    """A classifier of a run that read 12 tokens; do not train it."""
    path = str(exports.run("one text"))
    return bert_tf.BertClassifier.from_checkpoint(path)


@pytest.fixture
def own(model):
    """A model of the same config, whose tokenizer a test may replace."""
    return type(model).from_config(model.get_config())


def _close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def _compiled(model):
    model.compile(keras.optimizers.SGD(0.1), _ENTROPY, run_eagerly=True)
    return model


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        lambda texts: texts,
        np.array,
        lambda texts: np.array(texts, object),
        tf.constant,
        lambda texts: {"text": texts},
    ],
)
def test_call_of_texts(model, tokenizer, given):
    _close(model(given(_TEXTS)), model(tokenizer(_TEXTS)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "pairs",
    [
        (_TEXTS, _OTHERS),
        {"text_a": np.array(_TEXTS), "text_b": tf.constant(_OTHERS)},
        list(zip(_TEXTS, _OTHERS, strict=True)),
    ],
)
def test_call_of_pairs(model, tokenizer, pairs):
    expected = model(tokenizer(_TEXTS, _OTHERS))
    _close(model(pairs), expected)
    _close(_compiled(model).predict(pairs, verbose=0), expected)


@pytest.mark.slow
def test_one_text_is_a_batch_of_one(model):
    _close(model("a film"), model(["a film"]))
    for text in (tf.constant("a film"), np.array("a film")):
        _close(model(text), model(["a film"]))
    _close(model(("a film", "bad")), model((["a film"], ["bad"])))


def test_texts_with_other_columns_and_ids(model, tokenizer):
    """A row of a data set keeps its text next to its ids."""
    rows = tokenizer(_TEXTS) | {"text": tf.constant(_OTHERS)}
    _close(model(rows), model(tokenizer(_TEXTS)))


def test_pandas(model):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    texts = pandas.Series(_TEXTS, index=range(10, 16))
    _close(model(texts), model(_TEXTS))
    texts[12] = None
    with pytest.raises(InputError, match=r"text_a\[2\]: expected a text"):
        model(texts)
    texts[12] = float("nan")
    with pytest.raises(InputError, match=r"Received: text_a\[2\]=nan"):
        model.predict(texts)


@pytest.mark.slow
def test_a_functional_model_of_texts(model, tmp_path):
    texts = keras.Input([], dtype="string")
    whole = keras.Model(texts, model(texts))
    expected = model(_TEXTS)
    _close(whole(tf.constant(_TEXTS)), expected)
    whole.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    _close(again(tf.constant(_TEXTS)), expected)


# ---- Keras' loops -----------------------------------------------------------


def _plain(tokenizer):
    """A compiled model without dropout; only its head is trained."""
    config = dataclasses.replace(
        exports.CONFIG, hidden_dropout_prob=0, attention_probs_dropout_prob=0
    )
    model = bert_tf.BertClassifier(bert_tf.Bert(config), 3)
    reference.random_weights(model.variables)
    model.tokenizer = tokenizer
    model.bert.trainable = False
    return _compiled(model)


def _losses(tokenizer, x, y, **kwargs):
    model = _plain(tokenizer)
    history = model.fit(
        x, y, epochs=2, shuffle=False, verbose=0, **kwargs
    ).history
    return [*history["loss"], *history.get("val_loss", ())]


def _dataset(*columns):
    return tf.data.Dataset.from_tensor_slices(columns).batch(2)


@pytest.mark.slow
def test_fit_of_texts_is_that_of_their_ids(tokenizer):
    ids = {name: x.numpy() for name, x in tokenizer(_TEXTS).items()}
    labels = np.array(_LABELS)
    expected = _losses(
        tokenizer,
        {name: x[:4] for name, x in ids.items()},
        labels[:4],
        batch_size=2,
        validation_data=({n: x[4:] for n, x in ids.items()}, labels[4:]),
    )
    assert len(expected) == 4
    split = _losses(
        tokenizer, _TEXTS, _LABELS, batch_size=2, validation_split=1 / 3
    )
    _close(split, expected)
    given = _losses(
        tokenizer,
        _TEXTS[:4],
        _LABELS[:4],
        batch_size=2,
        validation_data=(_TEXTS[4:], _LABELS[4:]),
    )
    _close(given, expected)
    read = _losses(
        tokenizer,
        _dataset(_TEXTS[:4], _LABELS[:4]),
        None,
        validation_data=_dataset(_TEXTS[4:], _LABELS[4:]),
    )
    _close(read, expected)


@pytest.mark.slow
def test_evaluate_and_predict(tokenizer):
    model = _plain(tokenizer)
    logits = model(tokenizer(_TEXTS))
    loss = float(_ENTROPY(np.array(_LABELS), logits))
    _close(model.evaluate(_TEXTS, _LABELS, verbose=0), loss)
    _close(model.evaluate(_dataset(_TEXTS, _LABELS), verbose=0), loss)
    _close(model.test_on_batch(_TEXTS, _LABELS), loss)
    _close(model.predict_on_batch(_TEXTS), logits)
    texts = tf.data.Dataset.from_tensor_slices(_TEXTS).batch(4)
    _close(model.predict(texts, verbose=0), logits)
    pairs = tf.data.Dataset.from_tensor_slices(((_TEXTS, _OTHERS),)).batch(4)
    _close(model.predict(pairs, verbose=0), model((_TEXTS, _OTHERS)))
    _close(model.train_on_batch(_TEXTS, _LABELS), loss)


@pytest.mark.slow
def test_texts_under_a_strategy(tokenizer, two_replicas):
    texts, labels = _TEXTS[:4], _LABELS[:4]
    expected = _losses(tokenizer, tokenizer(texts), np.array(labels))
    data = _dataset(texts, labels).unbatch().batch(4)
    with two_replicas.scope():
        found = _losses(tokenizer, data, None)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_multiple_choice(tokenizer):
    path = str(exports.run("multiple_choice"))
    model = bert_tf.BertMultipleChoice.from_checkpoint(path)
    model.tokenizer = tokenizer
    choices = [["bad", "good film"], ["a", "what"]]
    rows = tokenizer(
        ["a film", "a film", "cafe", "cafe"], [*choices[0], *choices[1]]
    )
    rows = {name: tf.reshape(x, [2, 2, -1]) for name, x in rows.items()}
    _close(model((["a film", "cafe"], choices)), model(rows))
    given = {"prompt": ["a film", "cafe"], "choices": choices}
    _close(model(given), model(rows))
    with pytest.raises(InputError, match=r"as many for each prompt"):
        model((["a", "b"], [["a"], ["b", "c"]]))
    with pytest.raises(InputError, match=r"as many for each prompt"):
        model.predict((["a", "b"], tf.ragged.constant([["a"], ["b", "c"]])))


# ---- The tokenizer ----------------------------------------------------------


def test_the_tokenizer_of_a_run(model):
    assert model.tokenizer.max_seq_length == exports.LENGTH
    assert model.tokenizer is model.bert.tokenizer
    # It is no layer of the model.
    assert [x.name for x in model.layers] == [model.bert.name]


@pytest.mark.slow
def test_the_length_that_a_checkpoint_says(tmp_path):
    """As `bert_tf.load` reads it; other heads on its encoder do not."""
    folder = str(tmp_path / "model")
    source = formats.open_checkpoint(str(exports.run("one text")))
    formats.write(folder, "hf", source)
    path = tmp_path / "model" / "tokenizer_config.json"
    said = json.loads(path.read_text()) | {"model_max_length": 9}
    path.write_text(json.dumps(said))
    assert bert_tf.load(folder).max_seq_length == 9
    model = bert_tf.BertClassifier.from_checkpoint(folder)
    for made in (model, type(model).from_config(model.get_config())):
        assert made.tokenizer is not None
        assert made.tokenizer.max_seq_length == 9
        assert answering(made).max_seq_length == 9
    tagger = bert_tf.BertTagger.from_checkpoint(folder, labels=["O", "B-X"])
    assert tagger.tokenizer is not None
    assert tagger.tokenizer.max_seq_length == 16  # The model's positions.
    assert answering(tagger).max_seq_length == 16


@pytest.mark.slow
def test_another_tokenizer_is_kept(own, tmp_path):
    own.tokenizer = bert_tf.Tokenizer(exports.VOCAB, max_seq_length=6)
    expected = own(_TEXTS)
    _close(own(own.tokenizer(_TEXTS)), expected)
    own.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.tokenizer.max_seq_length == 6
    _close(again(_TEXTS), expected)
    with pytest.raises(InputError, match=r"a bert_tf\.Tokenizer\. Received"):
        own.tokenizer = exports.VOCAB


@pytest.mark.parametrize("x", [["a film"], _dataset(["a film"])])
def test_without_a_vocabulary(x):
    model = _compiled(bert_tf.BertClassifier(bert_tf.Bert(exports.CONFIG), 2))
    for method in (model.fit, model.evaluate, model.predict):
        with pytest.raises(InputError, match=r"set model\.tokenizer = bert_tf"):
            method(x)


def test_a_vocabulary_of_another_model(model):
    pieces = [*exports.VOCAB, "more"]
    with pytest.raises(InputError, match=r"The vocabulary does not belong"):
        model.tokenizer = bert_tf.Tokenizer(pieces)
    assert model.tokenizer.vocabulary == tuple(exports.VOCAB)


def test_how_a_tokenizer_pads_and_masks_is_kept(own):
    own.tokenizer = bert_tf.Tokenizer(
        exports.VOCAB, max_seq_length=9, pad_to_max=False, masks=True
    )
    again = type(own).from_config(own.get_config())
    ids = again.tokenizer(["a [MASK]"])["input_ids"]
    mask = exports.VOCAB.index("[MASK]")
    np.testing.assert_array_equal(ids, [[2, 5, mask, 3]])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"text": ["a"], "text_pair": ["b"]}, "text_pair"),
        ({"question": ["a"], "passage": tf.constant(["b"])}, "passage"),
        ({"text": ["a"], "text_a": ["b"]}, "'text'"),
    ],
)
def test_texts_that_would_not_be_read(model, given, named):
    with pytest.raises(InputError, match=f"Rename or remove .*{named}"):
        model(given)
    with pytest.raises(InputError, match=f"Rename or remove .*{named}"):
        model.predict(given)


def test_columns_that_are_no_texts(model):
    columns = {"text": ["a"], "id": ["x1"], "label": np.array([1])}
    _close(model(columns), model(["a"]))


def test_mappings_and_lists_of_ids(model):
    """As `BatchEncoding` of transformers, which is a UserDict."""
    expected = model({"input_ids": np.array([[2, 5, 3]])})
    given = {"input_ids": [[2, 5, 3]], "attention_mask": None}
    _close(model(given), expected)
    _close(model(collections.UserDict(given)), expected)
    _close(
        model.call({"input_ids": tf.constant([[2, 5, 3]])} | given), expected
    )
    with pytest.raises(InputError, match="`input_ids` must have rows of one"):
        model({"input_ids": [[2, 5, 3], [2, 3]]})


@pytest.mark.slow
def test_weights_and_tuples_of_numbers(tokenizer):
    """Keras itself takes no lists; the values are those of its arrays."""
    ids = {name: x.numpy() for name, x in tokenizer(_TEXTS[:2]).items()}
    weights, labels = np.array([1.0, 3.0]), np.array([1, 0])
    expected = _plain(tokenizer).evaluate(
        ids, labels, sample_weight=weights, verbose=0
    )
    model = _plain(tokenizer)
    texts = _TEXTS[:2]
    for y, w in (([1, 0], [1.0, 3.0]), ((1, 0), (1.0, 3.0))):
        found = model.evaluate(texts, y, sample_weight=w, verbose=0)
        _close(found, expected)
        _close(model.test_on_batch(texts, y, w), expected)
    lists = {name: x.tolist() for name, x in ids.items()}
    _close(
        model.evaluate(lists, [1, 0], sample_weight=[1.0, 3.0], verbose=0),
        expected,
    )
    found = _losses(
        *(tokenizer, texts, (1, 0)),
        sample_weight=[1.0, 3.0],
        validation_data=(texts, [1, 0], [1.0, 3.0]),
    )
    wanted = _losses(
        *(tokenizer, ids, labels),
        sample_weight=weights,
        validation_data=(ids, labels, weights),
    )
    _close(found, wanted)


@pytest.mark.parametrize(
    "names",
    [
        ["bad", "good"],
        np.array(["bad", "good"]),
        np.array(["bad", "good"], object),
        tf.constant(["bad", "good"]),
    ],
)
def test_targets_are_numbers(model, names):
    message = r"model\.labels\.index\(x\) for x in y\], here of \{0: "
    texts = ["a film", "bad"]
    data = tf.data.Dataset.from_tensor_slices((texts, names)).batch(2)
    _compiled(model)
    for given in ((texts, names), (data,)):
        for method in (model.fit, model.evaluate):
            with pytest.raises(InputError, match=message):
                method(*given, verbose=0)
    with pytest.raises(InputError, match=message):
        model.fit(texts, [0, 1], validation_data=(texts, names), verbose=0)
    # Only `predict` reads no targets.
    _close(model.predict(data, verbose=0), model(texts))


def test_hdf5_is_for_weights_alone(model, tmp_path):
    with pytest.raises(InputError, match=r"ends in \.keras.*filepath=.*m\.h5"):
        model.save(tmp_path / "m.h5")
    assert not (tmp_path / "m.h5").exists()


def test_what_is_wrong(model):
    for method in (model, model.predict, model.predict_on_batch):
        with pytest.raises(InputError, match=r"at least one.*Received: \[\]"):
            method([])
    with pytest.raises(InputError, match=r"text_a\[1027\]=None"):
        model.predict(["a"] * 1027 + [None])
    with pytest.raises(InputError, match=r"texts\[1\]: expected a pair"):
        model([("a", "b"), "c"])
    with pytest.raises(InputError, match=r"must be a pair.*3 elements"):
        model(("a", "b", "c"))
    with pytest.raises(InputError, match=r"text_b to be a text.*Ragged"):
        model.predict((["a"], tf.ragged.constant([["b"]])))
    with pytest.raises(InputError, match="Received: 1024 and 1025 texts"):
        model.predict((["a"] * 1024, ["b"] * 1025), verbose=0)
    words = bert_tf.BertMaskedLM(bert_tf.Bert(exports.CONFIG))
    with pytest.raises(InputError, match="needs masked_lm_positions"):
        words(["a film"])


# ---- As scripts and exports read texts --------------------------------------


@pytest.mark.slow
def test_choices_that_are_long_or_missing():
    run = exports.run("multiple_choice")
    prompts = ["a film " * 9, "bad " * 9, "cafe"]
    choices = [
        ["good film what a bad film", "bad"],
        ["what " * 9 + "good", "a " * 9 + "bad"],
        ["good", ""],
    ]
    serve = exports.made("multiple_choice").signatures["serving_default"]
    expected = serve(prompt=tf.constant(prompts), choices=tf.constant(choices))
    model = _compiled(bert_tf.BertMultipleChoice.from_checkpoint(str(run)))
    _close(model((prompts, choices)), expected["logits"])
    _close(model.predict((prompts, choices), verbose=0), expected["logits"])
    assert expected["probabilities"][2, 1] == 0
    dataset = tf.data.Dataset.from_tensor_slices(((["a"], ["b"]),)).batch(1)
    for method, given in (
        (model, (["a"], [["c"], ["d"]])),
        (model.predict, dataset),
    ):
        with pytest.raises(
            InputError, match=r"^Multiple choice.*pad them with"
        ):
            method(given)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tail", "head_tail"])
def test_long_documents_of_a_run(method, tmp_path):
    run = exports.write_run(
        tmp_path / "run", "one text", f"--long_documents={method}"
    )
    text = "a film , what a bad film . good cafe , bad cafe"
    expected = logits(bert_tf.load(run), [text])
    model = _compiled(bert_tf.BertClassifier.from_checkpoint(str(run)))
    _close(model.predict([text], verbose=0), expected)
    texts = keras.Input([], dtype="string")
    whole = keras.Model(texts, model(texts))
    whole.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    _close(again(tf.constant([text])), expected)
    # Another head was not trained on these parts.
    tagger: Any = bert_tf.BertTagger.from_checkpoint(
        str(run), labels=["O", "B-X"]
    )
    _close(tagger([text]), tagger(tagger.tokenizer([text])))


def test_windows_of_a_run(tmp_path):
    flags = ("--long_documents=windows", "--window_stride=2")
    run = exports.write_run(tmp_path / "run", "one text", *flags)
    model = _compiled(bert_tf.BertClassifier.from_checkpoint(str(run)))
    for texts in (["a film"], tf.data.Dataset.from_tensors(["a film"])):
        with pytest.raises(InputError, match=r"^A Keras .* bert_tf\.load or"):
            model.predict(texts)


def test_lengths_of_heads_on_one_encoder():
    bert: Any = bert_tf.Bert.from_checkpoint(str(exports.run("one text")))
    bert.reading = dataclasses.replace(
        bert.reading, flags={}, head="classification", max_seq_length=9
    )
    heads: list[Any] = [bert, bert_tf.BertClassifier(bert, 2)]
    for _ in range(2):
        assert [x.tokenizer.max_seq_length for x in heads] == [16, 9]
    heads[1].tokenizer = bert_tf.Tokenizer(exports.VOCAB, max_seq_length=7)
    assert {x.tokenizer for x in heads} == {heads[1].tokenizer}


@pytest.mark.slow
def test_pairs_that_are_taken_for_targets(model, caplog):
    with caplog.at_level("WARNING"):
        _compiled(model).predict(_dataset(_TEXTS, _LABELS), verbose=0)
        assert not caplog.text
        model.predict(_dataset(_TEXTS, _OTHERS), verbose=0)
    assert caplog.text.count("make the data set of ((first, second),)") == 1


@pytest.mark.parametrize("texts", [["a", "bad"], ["a", "bad", "film"]])
def test_targets_of_several_outputs(texts, model):
    """A list as long as the texts has rows, but for a head of two outputs."""
    rows = [np.array([1, 0]), np.array([0, 1]), np.array([1, 1])][: len(texts)]
    _, found = model._tokenize_data(texts, rows)
    np.testing.assert_array_equal(found, np.stack(rows))
    starts, ends = np.ones(len(texts)), np.ones([len(texts), 1])
    finder: Any = bert_tf.BertSpanFinder(model.bert)
    _, outputs = finder._tokenize_data((texts, texts), [starts, ends])
    assert outputs[0] is starts
    assert outputs[1] is ends
