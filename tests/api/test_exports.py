"""Keras models as SavedModels of raw text."""

import subprocess
import sys

import bert_tf
from bert_tf.api import arguments, models
from bert_tf.tasks.classification import glue
from tests import reference
from tests.api import keras_models as tiny
from tests.api import models as runs
from tests.exporting import test_saved_model as classifier

import keras
import numpy as np
import pytest

_TEXTS = ["What a film.", "bad", "good " * 30, "博 Café, whatever", "a o"]

# Without this package.
_SERVE = """
import sys
import numpy as np, tensorflow as tf, tensorflow_text
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
texts = np.load(sys.argv[2])
found = serve(**{name: tf.constant(x) for name, x in texts.items()})
assert not any(name.startswith("bert_tf") for name in sys.modules)
found = {name: np.array(x.numpy().tolist()) for name, x in found.items()}
np.savez(sys.argv[3], **found)
"""


def served(tmp_path, export, **texts):
    """What another process gets of a SavedModel."""
    np.savez(tmp_path / "texts.npz", **texts)
    files = (tmp_path / "texts.npz", tmp_path / "found.npz")
    subprocess.run([sys.executable, "-c", _SERVE, export, *files], check=True)
    with np.load(files[1]) as found:
        return dict(found)


def trained(run, kind="BertClassifier", **kwargs):
    """A model that is no longer what its checkpoint holds."""
    model = getattr(models, kind).from_checkpoint(run, **kwargs)
    reference.random_weights(model.variables, seed=5)
    return model


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return runs.classifier_run(tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture(scope="module")
def config_file(run):
    return str(run / "bert_config.json")


# ---- Values -----------------------------------------------------------------


@pytest.mark.slow
def test_logits_in_a_fresh_process(tmp_path, run):
    model = trained(run)
    bert_tf.export(model, tmp_path / "export")
    found = served(tmp_path, tmp_path / "export", text_a=_TEXTS)
    # The length and the casing are those of the run.
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    expected = tiny.logits(
        model, {k: v.numpy() for k, v in tokenizer(_TEXTS).items()}
    )
    tiny.close(found["logits"], model(tokenizer(_TEXTS)))
    tiny.close(found["logits"], expected)
    labels = np.array([b"negative", b"positive"])
    assert (found["label"] == labels[expected.argmax(axis=1)]).all()
    loaded = bert_tf.load(tmp_path / "export")
    assert loaded.labels == ("negative", "positive")
    assert (loaded.max_seq_length, loaded.do_lower_case) == (12, True)
    assert loaded.description["takes_pairs"] is False


@pytest.mark.slow
def test_a_keras_file_keeps_what_is_known(tmp_path, run):
    model = trained(run)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    bert_tf.export(loaded, tmp_path / "export")
    found = served(tmp_path, tmp_path / "export", text_a=_TEXTS)
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    tiny.close(found["logits"], model(tokenizer(_TEXTS)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "head", "write", "inputs"),
    [
        ("Bert", "encoder", runs.classifier_run, _TEXTS),
        ("BertClassifier", "classification", runs.classifier_run, _TEXTS),
        ("BertTagger", "tagging", runs.tagger_run, ["Berlin film", "a"]),
        ("BertSpanFinder", "span", runs.span_run, [("what", "a film what")]),
        (
            *("BertMultipleChoice", "multiple_choice", runs.choice_run),
            [("what", ["a", "film"])],
        ),
        ("BertMaskedLM", "masked_lm", runs.pretrained, ["a [MASK]."]),
        (
            *("BertNextSentence", "next_sentence", runs.pretrained),
            [("a film", "what a film")],
        ),
        ("BertPretrainer", "masked_lm", runs.pretrained, ["a [MASK]."]),
    ],
)
def test_each_kind_answers_as_its_run(tmp_path, kind, head, write, inputs):
    """The checkpoint's export is tested against Python, head by head."""
    run = write(tmp_path / "run")
    model = getattr(models, kind).from_checkpoint(run)
    bert_tf.export(model, tmp_path / "export")
    found = bert_tf.load(tmp_path / "export")
    assert found.head == head
    expected = bert_tf.load(run, head=head)
    assert found.description == expected.description
    assert found.labels == expected.labels
    assert found(inputs) == expected(inputs)


def test_another_head_does_not_take_the_labels_of_a_run(tmp_path):
    run = runs.classifier_run(tmp_path / "run")
    flags = run / "flags.txt"
    flags.write_text(flags.read_text() + "--task_name=CoLA\n")
    bert = models.Bert.from_checkpoint(run)
    model = models.BertClassifier(bert, 2)
    reference.random_weights(model.variables, seed=5)
    with pytest.raises(bert_tf.InputError, match="The labels are not known"):
        bert_tf.export(model, tmp_path / "export")
    bert_tf.export(model, tmp_path / "export", labels=["bad", "good"])
    loaded = bert_tf.load(tmp_path / "export")
    assert loaded.labels == ("bad", "good")
    # What is of the encoder's texts holds; that texts are single does not.
    assert (loaded.max_seq_length, loaded.do_lower_case) == (12, True)
    assert loaded.description["takes_pairs"] is True


@pytest.mark.slow
def test_names_of_classes_with_odd_characters(tmp_path, run):
    labels = ["a\u2028b", "c\x0cd"]
    model = trained(run, labels=labels)
    bert_tf.export(model, tmp_path / "export")
    loaded = bert_tf.load(tmp_path / "export")
    assert loaded.labels == tuple(labels)
    assert loaded("a film")["label"] in labels


@pytest.mark.slow
def test_next_sentences_of_a_pre_trained_model(tmp_path):
    model = models.BertPretrainer.from_checkpoint(
        runs.pretrained(tmp_path / "run")
    )
    bert_tf.export(model, tmp_path / "export", head="next_sentence")
    found = bert_tf.load(tmp_path / "export")(("a film", "what"))
    assert found.keys() == {"is_next"}


@pytest.mark.slow
def test_pairs_of_a_run_of_pairs(tmp_path):
    model = trained(runs.classifier_run(tmp_path / "run", pairs=True))
    bert_tf.export(model, tmp_path / "export")
    second = ["bad", "", "a film", "good", "what"]
    found = served(tmp_path, tmp_path / "export", text_a=_TEXTS, text_b=second)
    tokenizer = bert_tf.Tokenizer(tmp_path / "run", max_seq_length=12)
    tiny.close(found["logits"], model(tokenizer(_TEXTS, second)))


# ---- What is known and what is given ----------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", ["tokenizer", "path", "folder", "pieces"])
def test_a_vocabulary_that_is_given(tmp_path, run, config_file, way):
    model = models.BertClassifier.from_config_file(config_file, ["bad", "good"])
    reference.random_weights(model.variables)
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=9)
    given = {
        "tokenizer": tokenizer,
        "path": run / "vocab.txt",
        "folder": run,
        "pieces": list(classifier.VOCAB),
    }[way]
    options: arguments.Options = {"max_seq_length": 9}
    if way == "tokenizer":
        options = {}
    bert_tf.export(model, tmp_path / "export", vocab=given, **options)
    found = bert_tf.load(tmp_path / "export")
    assert found.max_seq_length == 9
    assert found.labels == ("bad", "good")
    logits = np.asarray(model(tokenizer(_TEXTS)))
    probabilities = np.exp(reference.log_softmax(logits))
    tiny.close(
        [list(x["probabilities"].values()) for x in found(_TEXTS)],
        probabilities,
    )


@pytest.mark.slow
def test_new_labels_of_a_run_of_others(tmp_path, run):
    names = ["one", "two", "three"]
    model = trained(run, labels=names)
    bert_tf.export(model, tmp_path / "export")
    assert bert_tf.load(tmp_path / "export").labels == tuple(names)
    score = trained(run, labels=1)
    bert_tf.export(score, tmp_path / "score")
    (answer,) = bert_tf.load(tmp_path / "score")(["a film"])
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    tiny.close(answer["score"], score(tokenizer(["a film"]))[0, 0])


@pytest.mark.slow
def test_several_labels_of_a_text(tmp_path, run):
    model = trained(run)
    bert_tf.export(model, tmp_path / "export", multi_label=True)
    (answer,) = bert_tf.load(tmp_path / "export")(["a film"])
    tokenizer = bert_tf.Tokenizer(run, max_seq_length=12)
    logits = np.asarray(model(tokenizer(["a film"])))[0]
    tiny.close(
        list(answer["probabilities"].values()), 1 / (1 + np.exp(-logits))
    )


@pytest.mark.slow
def test_weights_in_bfloat16(tmp_path, run):
    model = models.BertClassifier.from_checkpoint(run, dtype="bfloat16")
    bert_tf.export(model, tmp_path / "export")
    assert bert_tf.load(tmp_path / "export")(["a film"])


@pytest.mark.slow
def test_labels_of_a_task(tmp_path, config_file, run):
    model = models.BertClassifier.from_config_file(config_file, 2)
    bert_tf.export(model, tmp_path / "export", vocab=run, task_name="SST-2")
    found = bert_tf.load(tmp_path / "export")
    assert found.labels == glue.find("SST-2").labels
    assert found.description["takes_pairs"] is False


@pytest.mark.slow
def test_a_casing_is_kept_with_a_vocabulary(tmp_path, run):
    model = trained(run)
    pieces = [x.replace("film", "Film") for x in classifier.VOCAB]
    cased = bert_tf.Tokenizer(pieces, do_lower_case=False)
    bert_tf.export(model, tmp_path / "export", vocab=cased, max_seq_length=12)
    found = bert_tf.load(tmp_path / "export")
    assert (found.do_lower_case, found.max_seq_length) == (False, 12)


# ---- What is wrong ----------------------------------------------------------


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
    assert "has 2 classes, and labels names 3" in error(
        model, new, labels=[*"abc"]
    )
    assert "no keyword lower" in error(model, new, lower=True)
    assert "its vocabulary is given as vocab" in error(
        model, new, vocab_file=run / "vocab.txt"
    )
    assert "top_k goes with head=masked_lm" in error(model, new, top_k=3)
    assert "BertClassifier 'classifier' has no span head" in error(
        model, new, head="span"
    )
    bert = models.Bert.from_checkpoint(run)
    assert "multi_label goes with" in error(bert, new, multi_label=True)
    assert "has positions for" in error(model, new, max_seq_length=1000)
    loaded = bert_tf.load(run)
    assert "vocab can't be given of a model of bert_tf.load" in error(
        loaded, new, vocab=run
    )
    assert "new folder" in error(model, run)


@pytest.mark.slow
def test_other_models(tmp_path, run):
    class Other(models.BertClassifier):
        """One that computes something else."""

        def call(self, inputs, dropout_seed=None, training=None):
            return -super().call(inputs, dropout_seed, training)

    class Same(models.BertClassifier):
        """One that trains otherwise."""

        def train_step(self, data):
            return super().train_step(data)

    inputs = keras.Input([2])
    plain = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    with pytest.raises(
        bert_tf.InputError, match=r"Keras models Bert, BertClassifier.*Functio"
    ):
        bert_tf.export(plain, tmp_path / "plain")
    with pytest.raises(bert_tf.InputError, match=r"Other has a `call` of its"):
        bert_tf.export(Other.from_checkpoint(run), tmp_path / "other")
    bert_tf.export(Same.from_checkpoint(run), tmp_path / "same")
