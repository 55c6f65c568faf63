"""Opening and writing any format: round trips and bad input."""

import dataclasses
import hashlib
import json
import pathlib

from bert_tf import checkpoints, heads, modeling, serving
from bert_tf.interop import formats, huggingface, model_files, names, opened
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf
from safetensors import numpy as safetensors_numpy

_CONFIG = modeling.BertConfig(**samples.SMALL)


@pytest.fixture(name="tf1")
def _tf1(tmp_path):
    """A released checkpoint: both heads of pre-training, vocabulary."""
    model = samples.random_model("pretraining", _CONFIG)
    return samples.write_tf1(tmp_path / "tf1", model)


def convert(path, output_format, target, head=None):
    source = formats.open_checkpoint(str(path))
    if head:
        source = formats.with_head(source, head)
    return formats.write(str(target), output_format, source)


def huggingface_folder(tmp_path, tf1):
    convert(tf1, "hf", tmp_path / "hf")
    return tmp_path / "hf"


def set_config(folder, **changes):
    """Changes values of a config.json."""
    values = opened.read_json(str(folder), huggingface.CONFIG)
    (folder / "config.json").write_text(json.dumps(values | changes))


class TestRoundTrip:
    def test_through_all_formats(self, tmp_path, tf1):
        # KerasHub has no head of next sentences; all else comes back.
        steps = ("hf", "tf1", "keras_hub", "tf1")
        paths = [tf1, *(str(tmp_path / f"{i}") for i in range(len(steps)))]
        left_out = [
            convert(before, output_format, path).left_out
            for output_format, before, path in zip(
                steps, paths[:-1], paths[1:], strict=True
            )
        ]
        sentences = tuple(sorted(names.HEADS["next_sentence"]))
        assert left_out == [(), (), sentences, ()]
        samples.assert_equal(tf1, paths[2])
        convert(tf1, "tf1", tmp_path / "words", head="masked_lm")
        samples.assert_equal(str(tmp_path / "words"), paths[-1])
        vocab = (tmp_path / "tf1" / "vocab.txt").read_bytes()
        for path in (paths[2], paths[4]):
            assert pathlib.Path(path, "vocab.txt").read_bytes() == vocab

    @pytest.mark.parametrize("head", names.HEADS)
    def test_every_head_through_huggingface(self, tmp_path, head):
        model = samples.random_model(head, _CONFIG)
        tf1 = samples.write_tf1(tmp_path / "tf1", model)
        convert(tf1, "hf", tmp_path / "hf")
        left_over = convert(tmp_path / "hf", "tf1", tmp_path / "again").left_out
        assert left_over == ()
        again = formats.open_checkpoint(str(tmp_path / "again"))
        before = formats.open_checkpoint(tf1)
        # transformers has no pooler under some heads.
        assert before.shapes.keys() - again.shapes.keys() in (
            set(),
            names.POOLER.keys(),
        )
        wanted = list(again.shapes)
        ours, theirs = before.read(wanted), again.read(wanted)
        for name in wanted:
            np.testing.assert_array_equal(ours[name], theirs[name], name)
        assert again.config == before.config

    def test_the_originals_checkpoint(self, tmp_path, shared_data):
        original = shared_data / "tf1_checkpoint"
        source = formats.open_checkpoint(str(original))
        assert source.config is not None
        # Nothing but weights, their moments and the step.
        moments = {f"{n}/adam_{x}" for n in source.shapes for x in "mv"}
        assert set(source.state) == moments | {"global_step"}
        assert source.shapes == names.shapes(source.config, "pretraining")
        assert convert(original, "hf", tmp_path / "hf").left_out == ()
        convert(tmp_path / "hf", "tf1", tmp_path / "tf1")
        samples.assert_equal(str(original), str(tmp_path / "tf1"))
        # With the state of training, too.
        convert(original, "tf1", tmp_path / "all")
        folders = (original, tmp_path / "all")
        prefixes = [str(folder / "bert_model.ckpt") for folder in folders]
        stored = [checkpoints.shapes(prefix) for prefix in prefixes]
        assert stored[0] == stored[1]
        both = [checkpoints.read(p, list(stored[0])) for p in prefixes]
        for name, value in both[0].items():
            np.testing.assert_array_equal(value, both[1][name], name)

    def test_chinese_vocabulary_stays_as_it_is(self, tmp_path, shared_data):
        # One of its pieces is U+2028, which is a line end to some.
        path = shared_data / "vocab" / "bert_chinese.txt"
        pieces = opened.pieces(path.read_text(encoding="utf-8"))
        config = dataclasses.replace(_CONFIG, vocab_size=len(pieces))
        model = samples.random_model("masked_lm", config)
        tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=pieces)
        convert(tf1, "hf", tmp_path / "hf")
        (tmp_path / "hf" / "vocab.txt").unlink()  # tokenizer.json has it, too
        convert(tmp_path / "hf", "tf1", tmp_path / "again")
        text = (tmp_path / "again" / "vocab.txt").read_text(encoding="utf-8")
        assert opened.pieces(text) == pieces


class TestTf1:
    def test_any_file_name_and_any_scope(self, tmp_path):
        model = samples.random_model("encoder", _CONFIG)
        tensors = {f"module/{v.path}": v.value for v in model.variables}
        tensors["module/bert/pooler/dense/bias/adam_m"] = tf.zeros([32])
        tensors["global_step"] = tf.constant(7, tf.int64)
        checkpoints.write(str(tmp_path / "variables"), tensors)
        source = formats.open_checkpoint(str(tmp_path))
        assert source.shapes == names.shapes(_CONFIG, "encoder")
        assert source.state == ("bert/pooler/dense/bias/adam_m", "global_step")
        other = modeling.Bert(_CONFIG)
        report = checkpoints.restore_weights(other.variables, source)
        assert (report.fresh, report.unused) == ((), ())
        for left, right in zip(other.variables, model.variables, strict=True):
            np.testing.assert_array_equal(left, right)

    def test_several_are_ambiguous(self, tmp_path):
        for name in ("a", "b"):
            checkpoints.write(str(tmp_path / name), {"x": [1.0]})
        with pytest.raises(ValueError, match=r"several .*: .*/a, .*/b\."):
            formats.open_checkpoint(str(tmp_path))

    def test_a_config_of_another_model(self, tf1):
        path = pathlib.Path(tf1, "bert_config.json")
        config = dataclasses.replace(_CONFIG, intermediate_size=65)
        path.write_text(config.to_json())
        with pytest.raises(
            ValueError, match=r"intermediate/dense/kernel is \[32, 64\] there"
        ):
            formats.open_checkpoint(tf1)


class TestNoCheckpoint:
    def test_an_empty_folder(self, tmp_path):
        with pytest.raises(ValueError) as error:
            formats.open_checkpoint(str(tmp_path))
        for looked_for in (
            "bert_model.ckpt.index",
            "config.json with model.safetensors",
            "pytorch_model.bin",
            "model.weights.h5",
        ):
            assert looked_for in str(error.value)

    @pytest.mark.parametrize(
        "path, message",
        [
            ("none/model.ckpt-3", "none/model.ckpt-3.index does not exist"),
            ("no_such_preset", "neither the file no_such_preset.index, nor"),
        ],
    )
    def test_nothing_there(self, path, message):
        message = f"There is no checkpoint {path}: {message}"
        with pytest.raises(ValueError, match=message):
            formats.open_checkpoint(path)

    def test_only_a_config(self, tmp_path):
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
        message = r"config.json: There are no weights .*none of model.safet"
        with pytest.raises(ValueError, match=message):
            formats.open_checkpoint(str(tmp_path))

    @pytest.mark.parametrize("text", ["{", "[]"])
    def test_a_broken_config(self, tmp_path, text):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match=r"config.json (is not|must hold)"):
            formats.open_checkpoint(str(tmp_path))


class TestHuggingFace:
    """Files as they come, without transformers."""

    @pytest.mark.parametrize("cut", [1, 1000, -20])
    def test_half_downloaded(self, tmp_path, tf1, cut):
        path = huggingface_folder(tmp_path, tf1) / "model.safetensors"
        data = path.read_bytes()[:cut]
        path.write_bytes(data)
        message = r"safetensors can't be read, it is truncated.*Received: "
        with pytest.raises(ValueError, match=f"{message}{len(data)} bytes"):
            formats.open_checkpoint(str(path.parent))

    @pytest.mark.parametrize(
        "changes, message",
        [
            ({"vocab_size": 39}, r"word_embeddings is \[40, 32\] there"),
            (
                {"num_hidden_layers": 2},
                "num_hidden_layers=2, and there is bert",
            ),
            ({"num_hidden_layers": 4}, "layer_3/.* is not there"),
            (
                {"model_type": "roberta", "architectures": ["RobertaModel"]},
                "config.json: Only BERT .*architectures=RobertaModel",
            ),
        ],
    )
    def test_a_config_that_does_not_fit(self, tmp_path, tf1, changes, message):
        folder = huggingface_folder(tmp_path, tf1)
        set_config(folder, **changes)
        with pytest.raises(ValueError, match=message):
            formats.open_checkpoint(str(folder))

    def test_the_file_of_weights_means_its_folder(self, tmp_path, tf1):
        folder = huggingface_folder(tmp_path, tf1)
        samples.assert_equal(f"{folder}/model.safetensors", tf1)

    @pytest.mark.parametrize(
        "model",
        [
            {"type": "Unigram", "vocab": [["<unk>", 0.0], ["cat", -1.5]]},
            {"type": "BPE", "vocab": {"c": 0, "at": 1}, "merges": []},
        ],
    )
    def test_a_vocabulary_of_another_kind(self, tmp_path, tf1, model, caplog):
        folder = huggingface_folder(tmp_path, tf1)
        (folder / "vocab.txt").unlink()
        (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
        caplog.set_level("INFO")
        assert formats.open_checkpoint(str(folder)).vocab is None
        assert f"no WordPiece. Received: type={model['type']}" in caplog.text

    @pytest.mark.parametrize(
        "name, changes, message",
        [
            ("tokenizer_config", {"strip_accents": None}, None),
            ("tokenizer_config", {"do_lower_case": True}, None),
            (
                "tokenizer_config",
                {"do_lower_case": True, "strip_accents": False},
                "has strip_accents=False, which",
            ),
            (
                "tokenizer_config",
                {"strip_accents": True, "tokenize_chinese_chars": False},
                "strip_accents=True, tokenize_chinese_chars=False, which",
            ),
            (
                "config",
                {"tokenizer_class": "BertJapaneseTokenizer"},
                "tokenizer_class=BertJapaneseTokenizer, which",
            ),
        ],
    )
    def test_a_tokenizer_that_splits_otherwise(
        self, tmp_path, tf1, caplog, name, changes, message
    ):
        folder = huggingface_folder(tmp_path, tf1)
        path = folder / "tokenizer_config.json"
        values = json.loads(path.read_text())
        if name == "config":
            del values["tokenizer_class"]
            set_config(folder, **changes)
        else:
            values |= changes
        path.write_text(json.dumps(values))
        formats.open_checkpoint(str(folder))
        found = "other pieces than in its training" in caplog.text
        assert found == (message is not None)
        assert (message or "") in caplog.text

    def test_normalizers_of_tokenizer_json(self, tmp_path, tf1, caplog):
        folder = huggingface_folder(tmp_path, tf1)
        (folder / "tokenizer_config.json").unlink()
        path = folder / "tokenizer.json"
        values = json.loads(path.read_text())
        values["normalizer"]["handle_chinese_chars"] = False
        path.write_text(json.dumps(values))
        formats.open_checkpoint(str(folder))
        assert "has tokenize_chinese_chars=False, which" in caplog.text

    def test_a_vocabulary_that_does_not_name_its_kind(self, tmp_path, tf1):
        folder = huggingface_folder(tmp_path, tf1)
        vocab = (folder / "vocab.txt").read_text()
        (folder / "vocab.txt").unlink()
        values = opened.read_json(str(folder), "tokenizer.json")
        del values["model"]["type"]
        (folder / "tokenizer.json").write_text(json.dumps(values))
        assert formats.open_checkpoint(str(folder)).vocab == vocab

    @pytest.mark.parametrize(
        "head, problem_type, kept",
        [
            ("classification", None, False),
            ("classification", "regression", False),
            ("classification", "multi_label_classification", True),
            ("tagging", None, True),
        ],
    )
    def test_the_name_of_a_score(self, tmp_path, head, problem_type, kept):
        kinds = {
            "classification": heads.BertClassifier,
            "tagging": heads.BertTagger,
        }
        tf1 = samples.write_tf1(tmp_path / "tf1", kinds[head](_CONFIG, 1))
        folder = huggingface_folder(tmp_path, tf1)
        set_config(folder, id2label={"0": "score"}, problem_type=problem_type)
        source = formats.open_checkpoint(str(folder))
        assert source.labels == (("score",) if kept else None)
        formats.write(str(tmp_path / "again"), "hf", source)
        values = opened.read_json(str(tmp_path / "again"), huggingface.CONFIG)
        if head == "classification":
            assert values["problem_type"] == (
                problem_type if kept else "regression"
            )

    @pytest.mark.parametrize("labels", [{"no": "0"}, ["no"], [["no"]]])
    def test_classes_without_numbers(self, tmp_path, tf1, labels):
        folder = huggingface_folder(tmp_path, tf1)
        set_config(folder, id2label=labels)
        with pytest.raises(ValueError, match=r"config.json: `id2label` must"):
            formats.open_checkpoint(str(folder))

    def test_a_vocabulary_without_the_ends_of_rows(self, tmp_path):
        vocab = [piece for piece in samples.VOCAB if piece != "[SEP]"] + ["x"]
        model = samples.random_model("encoder", _CONFIG)
        tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=vocab)
        message = r"Received: a vocabulary without \[SEP\]$"
        with pytest.raises(ValueError, match=message):
            convert(tf1, "hf", tmp_path / "hf")
        assert not (tmp_path / "hf").exists()

    @pytest.mark.parametrize(
        "architecture", ["BertForMaskedLM", "BertForNextSentencePrediction"]
    )
    def test_both_heads_under_the_name_of_one(
        self, tmp_path, tf1, architecture
    ):
        # As bert-base-uncased.
        folder = huggingface_folder(tmp_path, tf1)
        set_config(folder, architectures=[architecture])
        source = formats.open_checkpoint(str(folder))
        assert source.left_over == ()
        assert serving.find_head(source, None) == "masked_lm"
        samples.assert_equal(str(folder), tf1)

    def test_what_is_left_over_is_named(self, tmp_path, tf1):
        path = huggingface_folder(tmp_path, tf1) / "model.safetensors"
        left = ("cls.mine.bias", "cls.mine.weight")
        tensors = safetensors_numpy.load_file(path)
        tensors |= {name: np.zeros(2, np.float32) for name in left}
        safetensors_numpy.save_file(tensors, path)
        source = formats.open_checkpoint(str(path.parent))
        assert source.left_over == left
        assert source.config is not None
        model = heads.BertPretrainer(source.config)
        report = checkpoints.restore_weights(model.variables, source, "")
        assert report.unused == left
        assert f"not used by this model: {', '.join(left)}" in str(report)


class TestWrite:
    def test_not_over_something(self, tmp_path, tf1):
        (tmp_path / "mine").write_text("")
        for path in (tmp_path, tmp_path / "mine"):
            with pytest.raises(ValueError, match=f"Received: path={path}"):
                convert(tf1, "hf", path)
        assert (tmp_path / "mine").exists()

    @pytest.mark.parametrize("output_format", formats.FORMATS)
    def test_nothing_half_written(self, tmp_path, tf1, output_format):
        source = formats.open_checkpoint(tf1)

        def fail(wanted):
            raise OSError("the disk is gone")

        broken = dataclasses.replace(source, read=fail)
        with pytest.raises(OSError, match="the disk is gone"):
            formats.write(str(tmp_path / "out"), output_format, broken)
        assert [path.name for path in tmp_path.iterdir()] == ["tf1"]

    def test_without_a_config(self, tmp_path, tf1):
        pathlib.Path(tf1, "bert_config.json").unlink()
        with pytest.raises(ValueError, match="give --bert_config_file"):
            convert(tf1, "hf", tmp_path / "out")

    def test_a_head_that_is_not_there(self, tmp_path, tf1):
        with pytest.raises(ValueError, match="has no span head: cls/squad/out"):
            convert(tf1, "tf1", tmp_path / "out", head="span")

    def test_only_the_encoder(self, tmp_path, tf1):
        written = convert(tf1, "tf1", tmp_path / "out", head="encoder")
        assert written.left_out == tuple(sorted(names.HEADS["pretraining"]))
        source = formats.open_checkpoint(str(tmp_path / "out"))
        assert source.shapes == names.shapes(_CONFIG, "encoder")

    def test_what_belongs_to_another_head_goes_too(self, tmp_path):
        model = samples.random_model("classification", _CONFIG)
        tensors = {v.path: v.value for v in model.variables}
        moments = ("bert/pooler/dense/bias/adam_m", "output_bias/adam_m")
        tensors |= dict.fromkeys(moments, tf.zeros([3]))
        tensors["global_step"] = tf.constant(7, tf.int64)
        tf1 = samples.write_tf1(tmp_path / "tf1", model, ("no", "yes", "so"))
        checkpoints.write(f"{tf1}/bert_model.ckpt", tensors)
        for head, state, labels in (
            ("classification", moments, ("no", "yes", "so")),
            ("encoder", moments[:1], None),
        ):
            convert(tf1, "tf1", tmp_path / head, head)
            source = formats.open_checkpoint(str(tmp_path / head))
            assert set(source.state) == {*state, "global_step"}
            assert source.labels == labels

    @pytest.mark.parametrize("output_format", formats.FORMATS)
    def test_without_a_vocabulary(self, tmp_path, tf1, output_format):
        pathlib.Path(tf1, "vocab.txt").unlink()
        source = formats.with_head(formats.open_checkpoint(tf1), "encoder")
        written = formats.write(str(tmp_path / "x"), output_format, source)
        (note,) = written.notes
        assert "there is no tokenizer in the folder" in note


class TestModelFiles:
    def test_brought_by_the_checkpoint(self, tf1):
        source = formats.open_checkpoint(tf1)
        assert model_files.find_config(None, source) == _CONFIG
        assert model_files.find_vocab(None, source) == source.vocab

    def test_known_to_nobody(self):
        with pytest.raises(ValueError, match="give --bert_config_file"):
            model_files.find_config(None, None)
        with pytest.raises(ValueError, match="give --vocab_file"):
            model_files.find_vocab(None, None)

    def test_given_and_of_the_same_model(self, tmp_path, tf1):
        # Dropout is the run's choice, not the model's.
        given = dataclasses.replace(_CONFIG, hidden_dropout_prob=0.3)
        path = tmp_path / "config.json"
        path.write_text(given.to_json())
        source = formats.open_checkpoint(tf1)
        assert model_files.find_config(str(path), source) == given
        assert model_files.find_config(str(path), None) == given

    def test_given_and_of_another_model(self, tmp_path, tf1):
        given = dataclasses.replace(_CONFIG, hidden_act="gelu_erf")
        path = tmp_path / "config.json"
        path.write_text(given.to_json())
        message = "hidden_act is gelu_erf there and gelu in the checkpoint's"
        with pytest.raises(ValueError, match=message):
            model_files.find_config(str(path), formats.open_checkpoint(tf1))

    def test_vocabulary(self, tmp_path, tf1):
        brought = [*samples.VOCAB[:-1], "[unused0]"]
        source = dataclasses.replace(
            formats.open_checkpoint(tf1),
            vocab="".join(f"{x}\n" for x in brought),
        )
        path = tmp_path / "vocab.txt"
        # A word of the user's own in an unused place.
        given = "".join(f"{x}\n" for x in [*brought[:-1], "mine"])
        path.write_text(given)
        assert model_files.find_vocab(str(path), source) == given
        for pieces, message in (
            ([*brought[:-2], "mine", "w"], "line 39 is 'mine', and .* 'w23'"),
            (brought[:-1], "it has 39 pieces, and the checkpoint's has 40"),
        ):
            path.write_text("".join(f"{x}\n" for x in pieces))
            with pytest.raises(ValueError, match=message):
                model_files.find_vocab(str(path), source)

    def test_vocabulary_of_records(self, tmp_path, tf1, caplog):
        find = model_files.find_records_vocab
        brought = _text([*samples.VOCAB[:-1], "[unused0]"])
        source = dataclasses.replace(
            formats.open_checkpoint(tf1), vocab=brought
        )
        assert find(None, source, _sha256(brought)) == brought
        # An extended one has to be given, to be compared.
        path = tmp_path / "vocab.txt"
        path.write_text(_text([*samples.VOCAB[:-1], "mine"]))
        given = path.read_text()
        assert not caplog.records
        assert find(None, source, _sha256(given)) is None
        assert "made with another vocabulary than that of" in caplog.text
        assert find(str(path), source, _sha256(given)) == given
        assert find(str(path), None, None) == given
        with pytest.raises(ValueError, match=r"not made with the vocabulary"):
            find(str(path), source, _sha256(brought))
        path.write_text(_text(["mine", *samples.VOCAB[1:]]))
        with pytest.raises(ValueError, match="line 1 is 'mine'"):
            find(str(path), source, _sha256(path.read_text()))
        # Records of the original have no manifest.
        assert find(None, source, None) is None
        assert find(None, None, _sha256(given)) is None


def _text(pieces):
    return "".join(f"{piece}\n" for piece in pieces)


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
