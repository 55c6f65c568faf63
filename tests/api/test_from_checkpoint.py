"""Keras models from checkpoints of every format."""

import json
import pathlib
import shutil
from typing import Any

from bert_tf import heads, modeling, vocabularies
from bert_tf.api import models
from bert_tf.checkpoints import best, formats, tf1_files
from bert_tf.errors import InputError
from tests import exports, reference
from tests import interop_samples as samples
from tests.api import keras_models as tiny

import numpy as np
import pytest


def _write(folder, model, labels=()):
    """Writes a checkpoint of the original with its files."""
    samples.write_tf1(folder, model, labels, vocab=())
    return folder


class TestFromCheckpoint:
    def test_new_head_over_an_encoder(self, tmp_path, caplog):
        source = models.Bert(tiny.PLAIN)
        path = _write(tmp_path / "base", source)
        with pytest.raises(
            InputError, match=r"no classification head.*labels="
        ):
            models.BertClassifier.from_checkpoint(path)
        model = models.BertClassifier.from_checkpoint(path, labels=["a", "b"])
        assert model.labels == ("a", "b")
        assert "output_bias, output_weights" in caplog.text
        np.testing.assert_array_equal(
            model.bert.embeddings.word_embeddings,
            source.embeddings.word_embeddings,
        )

    @pytest.mark.slow
    def test_own_head_and_labels(self, tmp_path):
        source = tiny.classifier()
        path = _write(tmp_path / "tuned", source, source.labels)
        for labels in (None, ["bad", "good"], 2):
            model = models.BertClassifier.from_checkpoint(path, labels)
            tiny.close(model(tiny.INPUTS), tiny.logits(source))
        model = models.BertClassifier.from_checkpoint(path)
        assert model.labels == ("bad", "good")

    def test_head_of_other_labels_is_not_used(self, tmp_path, caplog):
        source = tiny.classifier()
        path = _write(tmp_path / "tuned", source, source.labels)
        model = models.BertClassifier.from_checkpoint(path, ["good", "bad"])
        assert "for other classes (bad, good): it is not used" in caplog.text
        assert (model.output_weights != source.output_weights).numpy().all()

    def test_config_file(self, tmp_path):
        path = tmp_path / "bert_config.json"
        path.write_text(tiny.PLAIN.to_json())
        model = models.BertTagger.from_config_file(path, ["O", "B"])
        assert (model.bert.config, model.labels) == (tiny.PLAIN, ("O", "B"))
        assert models.Bert.from_config_file(str(path)).config == tiny.PLAIN
        assert modeling.BertConfig.from_json_file(path) == tiny.PLAIN

    def test_paths_as_objects(self, tmp_path):
        source = models.Bert(tiny.PLAIN)
        folder = _write(tmp_path / "base", source)
        config = (tmp_path / "base" / "bert_config.json").rename(
            tmp_path / "moved.json"
        )
        opened = formats.open_checkpoint(pathlib.Path(folder))
        assert opened.shapes.keys() == {v.path for v in source.variables}
        model = models.Bert.from_checkpoint(folder, bert_config_file=config)
        assert model.config == tiny.PLAIN

    @pytest.mark.parametrize(
        "labels", ["bad,good", {"a", "b"}, ["a", "a"], [], [1, 2], True, 0, 2.0]
    )
    def test_labels_that_are_none(self, tmp_path, labels):
        with pytest.raises(
            InputError, match=r"labels must be a list or array of the na"
        ):
            models.BertTagger(models.Bert(tiny.PLAIN), labels)
        with pytest.raises(
            InputError, match=r"labels must be a list or array of the na"
        ):
            models.BertClassifier.from_checkpoint(tmp_path, labels)

    def test_a_number_of_labels_of_numpy(self):
        labels: Any = np.int64(2)
        model = models.BertTagger(models.Bert(tiny.PLAIN), labels)
        assert json.loads(json.dumps(model.get_config()["labels"])) == 2
        names: Any = np.array(["O", "B-X"])
        model = models.BertTagger(models.Bert(tiny.PLAIN), names)
        assert model.labels == ("O", "B-X")


# ---- Other encoders ---------------------------------------------------------

_GROUPS = {"embedding_size": 16, "num_hidden_groups": 2, "num_hidden_layers": 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "changes", "layers"),
    [
        ("AlbertModel", _GROUPS, 2),
        ("ElectraModel", {"embedding_size": 16}, 3),
    ],
)
def test_other_encoders(tmp_path, architecture, changes, layers):
    """Compared with transformers; frozen layers are kept in a config, too."""
    from tests import huggingface_models as hf

    theirs = hf.make(architecture, **changes)
    model = models.Bert.from_checkpoint(hf.save(theirs, tmp_path))
    inputs = samples.batch(model.config)
    hf.compare(model, "encoder", theirs, inputs)
    assert model.mapping is not None
    model.mapping.trainable = False
    model.encoder.layers[-1].trainable = False
    again = models.Bert.from_config(model.get_config())
    paths = [v.path for v in model.trainable_variables]
    assert [v.path for v in again.trainable_variables] == paths
    assert not any("project" in x or "mapping" in x for x in paths)
    assert len({id(x) for x in again.encoder.layers}) == layers
    for old, new in zip(model.variables, again.variables, strict=True):
        new.assign(old)
    hf.compare(again, "encoder", theirs, inputs)
    classifier = models.BertClassifier(again, labels=["bad", "good"])
    classifier.compile("sgd", "mse", run_eagerly=True)
    ids = {x: inputs[x] for x in ("input_ids", "input_mask")}
    before = classifier.predict(ids, verbose=0)
    classifier.fit(ids, np.ones([3, 2]), verbose=0)
    assert not np.array_equal(classifier.predict(ids, verbose=0), before)


# ---- Values, by the program that wrote the folder ---------------------------

_SMALL = modeling.BertConfig(**samples.SMALL)


class TestOriginal:
    """Compared with NumPy."""

    @pytest.mark.slow
    def test_hidden_states(self, tmp_path):
        source = models.Bert(_SMALL)
        reference.random_weights(source.variables)
        folder = _write(tmp_path / "base", source)
        inputs = reference.batch(_SMALL)
        expected = reference.encode(
            _SMALL, reference.weights_of(source.variables), inputs
        )
        for path in (folder, str(folder / tf1_files.PREFIX)):
            model = models.Bert.from_checkpoint(path, name="other")
            paths = [x.path for x in model.variables]
            assert paths == [x.path for x in source.variables]
            found = model(inputs)
            tiny.close(found.embeddings, expected[0])
            for layer, wanted in zip(found.layers, expected[1], strict=True):
                tiny.close(layer, wanted)
            tiny.close(found.pooled, expected[2])


def _run_with_best(run):
    """Writes a run whose best weights are not its newest."""
    shutil.copytree(exports.run("one text"), run)
    kept = best.Best(
        str(run),
        "eval_accuracy",
        {
            name: (run / name).read_bytes()
            for name in ("vocab.txt", "bert_config.json", "labels.txt")
        },
    )
    config = modeling.BertConfig.from_json_file(str(run / "bert_config.json"))
    model = heads.BertClassifier(modeling.Bert(config), 3)
    reference.random_weights(model.variables, seed=3)
    kept.offer(5, {"eval_accuracy": 0.9}, model)
    return model


class TestRun:
    """Compared with NumPy."""

    def test_best_weights_of_a_run(self, tmp_path):
        run = tmp_path / "run"
        source = _run_with_best(run)
        inputs = reference.batch(source.bert.config)
        expected = tiny.logits(source, inputs)
        for path in (run, run / "best"):
            model = models.BertClassifier.from_checkpoint(path)
            assert model.labels == tuple(exports.LABELS)
            tiny.close(model(inputs), expected)
            known = model.bert.reading
            assert known.flags["max_seq_length"] == "12"
            assert known.vocab == vocabularies.find(run)
        newest = models.BertClassifier.from_checkpoint(run / "model.ckpt-7")
        assert np.abs(newest(inputs) - expected).max() > 1e-3


class TestHuggingFace:
    """Compared with transformers."""

    @pytest.mark.slow
    def test_masked_words_at_every_place(self, tmp_path):
        theirs = pytest.importorskip(
            "tests.huggingface_models", reason="needs the extra `parity`"
        )
        made = theirs.make("BertForPreTraining")
        theirs.save(made, tmp_path)
        inputs = samples.batch(_SMALL)
        words, sentences = theirs.their_logits(made, inputs)
        both = models.BertPretrainer.from_checkpoint(tmp_path)(inputs)
        tiny.close(both[0], words)
        tiny.close(both[1], sentences)
        one = models.BertMaskedLM.from_checkpoint(tmp_path)(inputs)
        tiny.close(one, words)
