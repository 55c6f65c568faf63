"""Opening and writing any format: round trips and bad input."""

import dataclasses
import pathlib

from bert_tf import checkpoints, modeling
from bert_tf.interop import formats, names, opened
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

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
