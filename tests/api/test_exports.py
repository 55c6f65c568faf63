"""Keras models exported as models of raw text."""

import dataclasses
import json
import shutil
from typing import Any

import bert_tf
from bert_tf.api import arguments, models, predictor
from bert_tf.api import exports as api_exports
from bert_tf.checkpoints import formats
from bert_tf.serving import serving_model
from bert_tf.tasks.classification import glue
from tests import combinations, exports, reference
from tests.api import keras_models as tiny

import keras
import numpy as np
import pytest
import tensorflow as tf

_TEXTS = ["What a film.", "bad", "good " * 30, "博 Café, whatever", "a o"]


def trained(run, kind="BertClassifier", **kwargs):
    """Returns a model whose weights differ from its checkpoint's."""
    model = getattr(models, kind).from_checkpoint(run, **kwargs)
    reference.random_weights(model.variables, seed=5)
    return model


def answering(model, vocab=None, multi_label=None, **options):
    """Returns the model to export; writing it is tested in tests/exporting."""
    said = arguments.check(options)
    with arguments.in_words_of_python():
        made = api_exports._make(model, vocab, multi_label, said)
    function = serving_model.of_export(made)
    return predictor.Predictor("", function, made.files, 32, made)


def logits(found, texts, others=None):
    serve = found._made.signatures["serving_default"]
    texts = {"text_a": texts} | ({"text_b": others} if others else {})
    return serve(**{k: tf.constant(x) for k, x in texts.items()})["logits"]


@pytest.fixture(scope="module")
def run():
    return exports.run("one text")


@pytest.fixture(scope="module")
def config_file(run):
    return str(run / "bert_config.json")


# Class -> its head, a run that has the head, and inputs.
_KINDS: dict[str, Any] = {
    "Bert": ("encoder", "one text", _TEXTS),
    "BertClassifier": ("classification", "one text", _TEXTS),
    "BertTagger": ("tagging", "tagging", ["Berlin film", "a"]),
    "BertSpanFinder": ("span", "span", [("what", "a film what")]),
    "BertMultipleChoice": (
        *("multiple_choice", "multiple_choice"),
        [("what", ["a", "film"])],
    ),
    "BertMaskedLM": ("masked_lm", "pretraining", ["a [MASK]."]),
    "BertNextSentence": ("next_sentence", "pretraining", [("a", "what a")]),
    "BertPretrainer": ("masked_lm", "pretraining", ["a [MASK]."]),
}


# Written models are traced: here, one is.
_EAGER = pytest.mark.usefixtures("untraced")


# ---- Values -----------------------------------------------------------------


@pytest.mark.slow
def test_logits_of_the_written_model(tmp_path, run):
    """Also for a model that was saved in a Keras file."""
    model = trained(run)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    bert_tf.export(loaded, tmp_path / "export")
    served = tf.saved_model.load(str(tmp_path / "export"))
    found = served.signatures["serving_default"](text_a=tf.constant(_TEXTS))
    # Length and casing are the run's.
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    expected = tiny.logits(
        model, {k: v.numpy() for k, v in tokenizer(_TEXTS).items()}
    )
    tiny.close(found["logits"], model(tokenizer(_TEXTS)))
    tiny.close(found["logits"], expected)
    labels = np.array([x.encode() for x in exports.LABELS])
    assert (found["label"].numpy() == labels[expected.argmax(axis=1)]).all()
    loaded = bert_tf.load(tmp_path / "export")
    assert loaded.labels == tuple(exports.LABELS)
    assert (loaded.max_seq_length, loaded.do_lower_case) == (12, True)
    assert loaded.description["takes_pairs"] is False


@pytest.mark.slow
@_EAGER
@pytest.mark.parametrize("kind", combinations.some(["BertTagger"], _KINDS))
def test_each_kind_answers_as_its_run(kind):
    """Each head of the checkpoint is compared with Python elsewhere."""
    head, name, inputs = _KINDS[kind]
    run = exports.run(name)
    found = answering(getattr(models, kind).from_checkpoint(run))
    assert found.head == head
    expected = bert_tf.load(run, head=head)
    assert found.description == expected.description
    assert found.labels == expected.labels
    assert found(inputs) == expected(inputs)


def test_another_head_does_not_take_the_labels_of_a_run(tmp_path, run):
    shutil.copytree(run, tmp_path / "run")
    with (tmp_path / "run" / "flags.txt").open("a") as flags:
        flags.write("--task_name=CoLA\n")
    bert = models.Bert.from_checkpoint(tmp_path / "run")
    model = models.BertClassifier(bert, 2)
    with pytest.raises(bert_tf.InputError, match="The labels are not known"):
        bert_tf.export(model, tmp_path / "export")
    found = answering(model, labels=["bad", "good"])
    assert found.labels == ("bad", "good")
    # Settings of the encoder's texts are kept, except that texts are single.
    assert (found.max_seq_length, found.do_lower_case) == (12, True)
    assert found.description["takes_pairs"] is True


@pytest.mark.slow
@_EAGER
def test_pairs_of_a_run_of_pairs():
    run = exports.run("classification")
    model = trained(run)
    second = ["bad", "", "a film", "good", "what"]
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    found = logits(answering(model), _TEXTS, second)
    tiny.close(found, model(tokenizer(_TEXTS, second)))


@pytest.mark.slow
@_EAGER
def test_vectors_without_the_folder_that_says_how(tmp_path, run):
    """The mean over tokens is the default; the folder says [CLS]."""
    folder = tmp_path / "model"
    formats.write(str(folder), "hf", formats.open_checkpoint(str(run)))
    types = {"": "Transformer", "1_Pooling": "Pooling", "2": "Normalize"}
    modules = [{"path": x, "type": y} for x, y in types.items()]
    pooling = {"pooling_mode_cls_token": True}
    (folder / "1_Pooling").mkdir()
    for name, values in (
        ("modules.json", modules),
        ("1_Pooling/config.json", pooling),
        ("sentence_bert_config.json", {"max_seq_length": 9}),
    ):
        (folder / name).write_text(json.dumps(values))
    model = models.Bert.from_checkpoint(folder)
    shutil.rmtree(folder)
    again = models.Bert.from_config(json.loads(json.dumps(model.get_config())))
    again.set_weights(model.get_weights())
    found = answering(again)
    assert found.max_seq_length == 9
    ids = bert_tf.Tokenizer(exports.VOCAB, max_seq_length=9)(_TEXTS)
    vectors = np.asarray(model(ids).sequence[:, 0])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    tiny.close([x["vector"] for x in found(_TEXTS)], vectors)
    mean = answering(again, unit="mean")(_TEXTS[0])["vector"]
    assert np.abs(mean - vectors[0]).max() > 0.01


# ---- Known and passed values ------------------------------------------------


@pytest.mark.slow
@_EAGER
@pytest.mark.parametrize(
    "way",
    combinations.some(
        ["tokenizer", "folder"], ["tokenizer", "path", "folder", "pieces"]
    ),
)
def test_a_vocabulary_that_is_given(run, config_file, way):
    names = ["bad", "good"]
    model = models.BertClassifier.from_config_file(config_file, names)
    reference.random_weights(model.variables)
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=9)
    given = {
        "tokenizer": tokenizer,
        "path": run / "vocab.txt",
        "folder": run,
        "pieces": list(exports.VOCAB),
    }[way]
    options: arguments.Options = {"max_seq_length": 9}
    found = answering(
        model, given, False, **({} if way == "tokenizer" else options)
    )
    assert found.max_seq_length == 9
    assert found.labels == ("bad", "good")
    probabilities = np.exp(
        reference.log_softmax(np.asarray(model(tokenizer(_TEXTS))))
    )
    tiny.close(
        [list(x["probabilities"].values()) for x in found(_TEXTS)],
        probabilities,
    )


@pytest.mark.slow
@_EAGER
def test_new_labels_of_a_run_of_others(run):
    names = ["a\u2028b", "c\x0cd"]
    found = answering(trained(run, labels=names))
    assert found.labels == tuple(names)
    assert found("a film")["label"] in names
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    score = trained(run, labels=1)
    answer = answering(score)("a film")
    tiny.close(answer["score"], score(tokenizer(["a film"]))[0, 0])
    several = trained(run)
    answer = answering(several, multi_label=True)("a film")
    row = np.asarray(several(tokenizer(["a film"])))[0]
    found = list(answer["probabilities"].values())
    tiny.close(found, 1 / (1 + np.exp(-row)))


@pytest.mark.slow
@_EAGER
def test_what_else_is_given(config_file, run):
    model = models.BertClassifier.from_checkpoint(run, dtype="bfloat16")
    assert answering(model)("a film")["label"] in exports.LABELS
    model = models.BertPretrainer.from_checkpoint(
        str(exports.run("pretraining"))
    )
    assert answering(model).head == "masked_lm"
    found = answering(model, head="next_sentence")(("a film", "what"))
    assert found.keys() == {"is_next"}
    model = models.BertClassifier.from_config_file(config_file, 2)
    found = answering(model, run, False, task_name="SST-2")
    assert found.labels == glue.find("SST-2").labels
    assert found.description["takes_pairs"] is False
    pieces = [x.replace("film", "Film") for x in exports.VOCAB]
    cased = bert_tf.Tokenizer(pieces, do_lower_case=False)
    found = answering(trained(run), cased, max_seq_length=12)
    assert (found.do_lower_case, found.max_seq_length) == (False, 12)


# ---- Errors -----------------------------------------------------------------


def test_errors(tmp_path, run, config_file):
    model = trained(run)
    new = tmp_path / "new"

    def error(*arguments, **options):
        with pytest.raises(bert_tf.InputError) as raised:
            bert_tf.export(*arguments, **options)
        assert not new.exists()
        assert "--" not in str(raised.value)
        return str(raised.value)

    unknown = models.BertClassifier.from_config_file(config_file, ["a", "b"])
    assert "give vocab, the bert_tf.Tokenizer that" in error(unknown, new)
    unnamed = models.BertClassifier.from_config_file(config_file, 2)
    assert "labels are not known. Give labels" in error(unnamed, new, vocab=run)
    bert = models.Bert.from_checkpoint(run)
    loaded = bert_tf.load(run)
    for given, options, problem in (
        (model, {"labels": [*"ab"]}, "has 3 classes, and labels names 2"),
        (model, {"lower": True}, "no keyword lower"),
        (
            *(model, {"vocab_file": run / "vocab.txt"}),
            "its vocabulary is given as vocab",
        ),
        (model, {"top_k": 3}, "top_k goes with head=masked_lm"),
        (
            *(model, {"head": "span"}),
            "has no span head",
        ),
        (bert, {"multi_label": True}, "multi_label goes with"),
        (model, {"max_seq_length": 1000}, "has positions for"),
        (loaded, {"vocab": run}, "vocab can't be given of a model of bert_tf."),
    ):
        assert problem in error(given, new, **options)
    assert "new folder" in error(model, run)


class Other(models.BertClassifier):
    """A subclass that computes something else."""

    def call(self, inputs, dropout_seed=None, training=None):
        return -super().call(inputs, dropout_seed, training)


class Same(models.BertClassifier):
    """A subclass that only trains differently."""

    def train_step(self, data):
        return super().train_step(data)


def test_other_models(tmp_path, run):
    inputs = keras.Input([2])
    plain = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    with pytest.raises(
        bert_tf.InputError, match=r"Keras models Bert, BertClassifier.*Functio"
    ):
        bert_tf.export(plain, tmp_path / "plain")
    with pytest.raises(bert_tf.InputError, match=r"Other has a `call` of its"):
        bert_tf.export(Other.from_checkpoint(run), tmp_path / "other")
    api_exports._check_kind(Same.from_checkpoint(run))


@pytest.mark.slow
@_EAGER
def test_a_score_that_was_trained_without_its_sigmoid(tmp_path, caplog):
    config = dataclasses.replace(exports.CONFIG, score_act="sigmoid")
    run = exports.write_run(tmp_path / "run", "score", config=config)
    with caplog.at_level("WARNING"):
        model = trained(run)
        expected = np.asarray(model(_TEXTS))[:, 0]
        message = "BinaryCrossentropy(from_logits=True)"
        assert message not in caplog.text
        model.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
        model.make_train_function()
        assert message not in caplog.text
        model.compile("sgd", "mse")
        for _ in range(2):
            model.make_train_function()
    assert caplog.text.count(message) == 1
    sigmoid = [x["score"] for x in answering(model)(_TEXTS)]
    tiny.close(sigmoid, 1 / (1 + np.exp(-expected)))
    found = [x["score"] for x in answering(model, regression=True)(_TEXTS)]
    tiny.close(found, expected)
