"""Opening and writing any format: round trips and bad input."""

import dataclasses
import hashlib
import pathlib
import re

from bert_tf import modeling
from bert_tf.checkpoints import (
    formats,
    names,
    opened,
    restoring,
    tf1_files,
)
from bert_tf.errors import InputError
from bert_tf.serving import serving_model
from bert_tf.storage import weight_files
from tests import interop_samples as samples
from tests import reference

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = modeling.BertConfig(**samples.SMALL)


convert = samples.convert


class TestRoundTrip:
    @pytest.mark.slow
    def test_through_all_formats(self, tmp_path, tf1):
        # KerasHub has no next-sentence head; everything else is restored.
        steps = ("hf", "tf1", "keras_hub", "tf1")
        paths = [tf1, *(str(tmp_path / f"{i}") for i in range(len(steps)))]
        left_out = [
            convert(before, output_format, path).left_out
            for output_format, before, path in zip(
                steps, paths[:-1], paths[1:], strict=True
            )
        ]
        sentences = tuple(sorted(names.HEADS["next_sentence"].variables))
        assert left_out == [(), (), sentences, ()]
        samples.assert_equal(tf1, paths[2])
        convert(tf1, "tf1", tmp_path / "words", head="masked_lm")
        samples.assert_equal(str(tmp_path / "words"), paths[-1])
        vocab = (tmp_path / "tf1" / "vocab.txt").read_bytes()
        for path in (paths[2], paths[4]):
            assert pathlib.Path(path, "vocab.txt").read_bytes() == vocab

    @pytest.mark.slow
    def test_the_originals_checkpoint(self, tmp_path, shared_data):
        original = shared_data / "tf1_checkpoint"
        source = formats.open_checkpoint(str(original))
        assert source.config is not None
        # Only weights, their moments and the step.
        moments = {f"{n}/adam_{x}" for n in source.shapes for x in "mv"}
        assert set(source.state) == moments | {"global_step"}
        assert source.shapes == names.shapes(source.config, "pretraining")
        assert convert(original, "hf", tmp_path / "hf").left_out == ()
        convert(tmp_path / "hf", "tf1", tmp_path / "tf1")
        samples.assert_equal(str(original), str(tmp_path / "tf1"))
        # With the training state, too.
        convert(original, "tf1", tmp_path / "all")
        folders = (original, tmp_path / "all")
        prefixes = [str(folder / "bert_model.ckpt") for folder in folders]
        reference.assert_same(
            *(tf1_files.read(x, list(tf1_files.shapes(x))) for x in prefixes)
        )

    @pytest.mark.slow
    def test_chinese_vocabulary_stays_as_it_is(self, tmp_path, shared_data):
        # One of its tokens is U+2028, which some programs read as a line end.
        path = shared_data / "vocab" / "bert_chinese.txt"
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        config = dataclasses.replace(_CONFIG, vocab_size=len(pieces))
        model = samples.random_model("masked_lm", config)
        tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=pieces)
        convert(tf1, "hf", tmp_path / "hf")
        (tmp_path / "hf" / "vocab.txt").unlink()  # tokenizer.json has it, too
        convert(tmp_path / "hf", "tf1", tmp_path / "again")
        text = (tmp_path / "again" / "vocab.txt").read_text(encoding="utf-8")
        assert text == "".join(f"{piece}\n" for piece in pieces)

    def test_files_with_a_byte_order_mark(self, tmp_path, tf1):
        """As from an editor of Windows."""
        convert(tf1, "hf", tmp_path / "hf")
        for name in ("config.json", "tokenizer_config.json"):
            path = tmp_path / "hf" / name
            path.write_text(path.read_text(), encoding="utf-8-sig")
        samples.assert_equal(str(tmp_path / "hf"), tf1)


class TestTf1:
    @pytest.mark.slow
    def test_any_file_name_and_any_scope(self, tmp_path):
        model = samples.random_model("encoder", _CONFIG)
        tensors = {f"module/{v.path}": v.value for v in model.variables}
        tensors["module/bert/pooler/dense/bias/adam_m"] = tf.zeros([32])
        tensors["global_step"] = tf.constant(7, tf.int64)
        tf1_files.write(str(tmp_path / "variables"), tensors)
        source = formats.open_checkpoint(str(tmp_path))
        assert source.shapes == names.shapes(_CONFIG, "encoder")
        assert source.state == ("bert/pooler/dense/bias/adam_m", "global_step")
        other = modeling.Bert(_CONFIG)
        report = restoring.restore_weights(other.variables, source)
        assert (report.fresh, report.unused) == ((), ())
        weights = ({v.path: v for v in x.variables} for x in (other, model))
        reference.assert_same(*weights)

    def test_moving_averages_are_not_weights(self, tf1, caplog):
        """As of TF1's ExponentialMovingAverage, next to the weights."""
        prefix = f"{tf1}/bert_model.ckpt"
        there = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
        before = formats.open_checkpoint(tf1).shapes
        averaged = [name for name in before if name.startswith("bert/")]
        for name in averaged:
            there[f"{name}/ExponentialMovingAverage"] = there[name] + 1
        tf1_files.write(prefix, there)
        source = formats.open_checkpoint(tf1)
        assert source.shapes == before
        assert f"{averaged[0]}/ExponentialMovingAverage" in source.state
        reference.assert_same(
            source.read(averaged), {name: there[name] for name in averaged}
        )
        formats.open_checkpoint(tf1)
        (line,) = [x for x in caplog.messages if "moving averages" in x]
        assert f"averages of {len(averaged)} weights" in line

    def test_a_run_from_inside_its_folder(self, tf1, monkeypatch):
        flags = pathlib.Path(tf1, "flags.txt")
        flags.write_text("--do_lower_case=false\n")
        monkeypatch.chdir(tf1)
        samples.assert_equal("bert_model.ckpt", tf1)
        for path in (tf1, "bert_model.ckpt"):
            assert formats.open_checkpoint(path).do_lower_case is False

    def test_next_to_a_config_of_transformers(self, tf1):
        """As in a model on the Hub that has no other weights."""
        config = pathlib.Path(tf1, "config.json")
        config.write_text('{"model_type": "bert"}')
        source = formats.open_checkpoint(tf1)
        assert source.path == f"{tf1}/bert_model.ckpt"
        assert source.config == _CONFIG


class TestNoCheckpoint:
    def test_a_file_that_is_named_as_a_preset(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "junk.h5").touch()
        with pytest.raises(ValueError, match=r"^The file junk\.h5 is no check"):
            formats.open_checkpoint("junk.h5")

    @pytest.mark.parametrize(
        "name", ["vocab.txt", "bert_config.json", "weights.h5"]
    )
    def test_a_file_of_another_kind(self, tf1, name):
        path = pathlib.Path(tf1, name)
        path.touch()
        with pytest.raises(ValueError) as error:
            formats.open_checkpoint(str(path))
        said = str(error.value)
        assert said.startswith(f"The file {path} is no checkpoint. Give the ")
        assert said.endswith(f"(here probably {tf1}).")
        path.rename(path.parent.parent / name)
        with pytest.raises(ValueError, match=r"\.\.\./bert_model\.ckpt\.$"):
            formats.open_checkpoint(str(path.parent.parent / name))

    @pytest.mark.parametrize("ending", ["index", "meta", "data-00000-of-00001"])
    def test_a_file_of_a_checkpoint_means_all(self, tf1, ending):
        path = pathlib.Path(tf1, f"bert_model.ckpt.{ending}")
        path.touch()
        samples.assert_equal(str(path), tf1)

    def test_versions_of_a_saved_model(self, tmp_path):
        for version in "12":
            (tmp_path / version).mkdir()
            (tmp_path / version / "saved_model.pb").touch()
        message = r"Give one of them. Received: .*/1, .*/2$"
        with pytest.raises(ValueError, match=message):
            formats.open_checkpoint(str(tmp_path))
        message = r"such as .*/2. Received: saved_model=.*, with 1, 2$"
        with pytest.raises(ValueError, match=message):
            serving_model.load(str(tmp_path))

    @pytest.mark.parametrize(
        ("files", "said"),
        [
            (["a.gguf", "b.txt"], "a.gguf can't be read: write the model with"),
            (["epoch=1.ckpt"], "save_pretrained of transformers, or give the"),
            (["model.h5"], " model.h5 can't be read"),
            (["model.weights.h5"], "(ELMo). Received: model.weights.h5"),
            (["vocab.txt", "data.tsv"], "Received: data.tsv, vocab.txt"),
            ([], "Received: no files"),
            (["../pytorch_model.bin"], "Give its parent folder ({parent}),"),
            (["in/model.safetensors"], "one of them. Received: {folder}/in"),
            (["in/x.txt"], "Received: in"),
        ],
    )
    def test_a_folder_of_another_kind(self, tmp_path, files, said):
        folder = tmp_path / "folder"
        folder.mkdir()
        for name in files:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()
        with pytest.raises(ValueError) as error:
            formats.open_checkpoint(f"{folder}/")
        said = said.format(folder=folder, parent=tmp_path)
        assert said in str(error.value)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("model.onnx", "model.onnx can't be read. Download one of them"),
            (
                "model-00002-of-00002.safetensors",
                "Download model.safetensors.index.json, which names the files",
            ),
        ],
    )
    def test_a_config_without_weights(self, tmp_path, name, said):
        config = '{"model_type": "bert", "vocab_size": 40}'
        (tmp_path / "config.json").write_text(config)
        (tmp_path / name).touch()
        with pytest.raises(ValueError) as error:
            formats.open_checkpoint(str(tmp_path))
        assert said in str(error.value)
        assert str(error.value).endswith(f"Received: config.json, {name}")

    def test_a_file_of_weights_that_is_not_there(self, tmp_path):
        path = tmp_path / "none" / "model.safetensors"
        with pytest.raises(ValueError, match=f"^There is no file {path}"):
            formats.open_checkpoint(str(path))


_POINTER = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 440473133
"""
_DATA = "bert_model.ckpt.data-00000-of-00001"


class TestDamaged:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "output_format, name",
        [
            ("tf1", _DATA),
            ("hf", "model.safetensors.index.json"),
            ("hf", "pytorch_model.bin"),
            ("keras_hub", "task.weights.h5"),
        ],
    )
    def test_nothing_is_in_a_file(self, tmp_path, tf1, output_format, name):
        if name == "pytorch_model.bin":
            pytest.importorskip("torch", reason="needs the extra `parity`")
        folder = tmp_path / "there"
        head = "masked_lm" if output_format == "keras_hub" else None
        convert(tf1, output_format, folder, head)
        if not (folder / name).exists():
            (folder / "model.safetensors").unlink()
        is_json = name.endswith(".json")
        problem = "is not whole JSON" if is_json else "can't be read"
        start = re.escape(f"{folder / name} {problem}: ")
        for content, said in (
            (b"", "it is empty. Copy or download it again."),
            (_POINTER, "it is a pointer of git-lfs, .*Run `git lfs pull` in"),
        ):
            (folder / name).write_bytes(content)
            with pytest.raises(tf1_files.UnreadableError) as error:
                source = formats.open_checkpoint(str(folder))
                source.read(list(source.shapes))
            assert re.match(start + said, str(error.value))
            assert "\n" not in str(error.value)

    def test_one_of_several_files_of_data_is_missing(self, tf1):
        path = pathlib.Path(tf1, _DATA)
        path.rename(path.with_name("bert_model.ckpt.data-00001-of-00002"))
        message = r"not all of its data: .*data-00000-of-00002 does not exist"
        with pytest.raises(ValueError, match=message):
            formats.open_checkpoint(tf1)

    def test_the_index_is_missing(self, tf1):
        pathlib.Path(tf1, "bert_model.ckpt.index").unlink()
        with pytest.raises(ValueError, match="Its data is there: copy the ind"):
            formats.open_checkpoint(f"{tf1}/bert_model.ckpt")

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"<html>not found</html>", ": it is a web page"),
            (b"PK\x03\x04 is how each begins", ", it is truncated, corr"),
        ],
    )
    def test_a_file_of_torch_that_is_none(self, tmp_path, tf1, content, said):
        pytest.importorskip("torch", reason="needs the extra `parity`")
        convert(tf1, "hf", tmp_path / "hf")
        (tmp_path / "hf" / "model.safetensors").unlink()
        path = tmp_path / "hf" / "pytorch_model.bin"
        path.write_bytes(content)
        with pytest.raises(tf1_files.UnreadableError) as error:
            formats.open_checkpoint(str(tmp_path / "hf"))
        assert str(error.value).startswith(f"{path} can't be read{said}")
        assert "\n" not in str(error.value)
        # PyTorch's own message suggests running code from the file.
        for advice in ("weights_only", "safe_globals", "trust"):
            assert advice not in str(error.value)


class TestWrite:
    def test_not_over_something(self, tmp_path, tf1):
        (tmp_path / "mine").write_text("")
        for path in (tmp_path, tmp_path / "mine"):
            with pytest.raises(ValueError, match=f"Received: path={path}"):
                convert(tf1, "hf", path)
        assert (tmp_path / "mine").exists()

    def test_over_something_where_that_is_said(self, tmp_path, tf1):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("")
        source = formats.open_checkpoint(tf1)
        formats.write(str(tmp_path / "out"), "hf", source, overwrite=True)
        samples.assert_equal(str(tmp_path / "out"), tf1)
        assert not (tmp_path / "out" / "mine").exists()

    @pytest.mark.parametrize("output_format", weight_files.FORMATS)
    def test_nothing_half_written(self, tmp_path, tf1, output_format):
        source = formats.open_checkpoint(tf1)

        def fail(wanted):
            raise OSError("the disk is gone")

        broken = dataclasses.replace(source, read=fail)
        with pytest.raises(OSError, match="the disk is gone"):
            formats.write(str(tmp_path / "out"), output_format, broken)
        assert [path.name for path in tmp_path.iterdir()] == ["tf1"]

    def test_only_the_encoder(self, tmp_path, tf1):
        written = convert(tf1, "tf1", tmp_path / "out", head="encoder")
        assert written.left_out == tuple(
            sorted(names.HEADS["pretraining"].variables)
        )
        source = formats.open_checkpoint(str(tmp_path / "out"))
        assert source.shapes == names.shapes(_CONFIG, "encoder")

    @pytest.mark.slow
    def test_what_belongs_to_another_head_goes_too(self, tmp_path):
        model = samples.random_model("classification", _CONFIG)
        tensors = {v.path: v.value for v in model.variables}
        moments = ("bert/pooler/dense/bias/adam_m", "output_bias/adam_m")
        tensors |= dict.fromkeys(moments, tf.zeros([3]))
        tensors["global_step"] = tf.constant(7, tf.int64)
        tf1 = samples.write_tf1(tmp_path / "tf1", model, ("no", "yes", "so"))
        tf1_files.write(f"{tf1}/bert_model.ckpt", tensors)
        for head, state, labels in (
            ("classification", moments, ("no", "yes", "so")),
            ("encoder", moments[:1], None),
        ):
            convert(tf1, "tf1", tmp_path / head, head)
            source = formats.open_checkpoint(str(tmp_path / head))
            assert set(source.state) == {*state, "global_step"}
            assert source.labels == labels

    @pytest.mark.parametrize("output_format", weight_files.FORMATS)
    def test_without_a_vocabulary(self, tmp_path, tf1, output_format):
        pathlib.Path(tf1, "vocab.txt").unlink()
        source = formats.with_head(formats.open_checkpoint(tf1), "encoder")
        written = formats.write(str(tmp_path / "x"), output_format, source)
        (note,) = written.notes
        assert "there is no tokenizer in the folder" in note


@pytest.mark.parametrize(
    ("name", "file"),
    [("hf", "model.npz"), ("npz", "tf_model.h5"), ("npz", "tf_*")],
)
def test_a_format_whose_name_or_file_is_taken(monkeypatch, name, file):
    monkeypatch.setattr(weight_files, "FORMATS", {**weight_files.FORMATS})
    known = weight_files.FORMATS["hf"]
    weight_files.register("hf", known)
    row = weight_files.Format("mine", (weight_files.Weights(file),), (file,))
    with pytest.raises(InputError, match=f"^The format hf has .*files={file}"):
        weight_files.register(name, row)
    assert weight_files.FORMATS["hf"] is known
    assert "npz" not in weight_files.FORMATS


def test_a_digest_reads_many_tensors_at_once(monkeypatch):
    """Each read opens the files of the checkpoint."""
    values = {
        name: np.full(count, count, np.float32)
        for name, count in (("d", 9), ("a", 3), ("c", 4), ("b", 3))
    }
    reads: list[list[str]] = []

    def read(names):
        reads.append(list(names))
        return {name: values[name] for name in reversed(names)}

    shapes = {name: value.shape for name, value in values.items()}
    source = opened.Checkpoint("here", "tf1", shapes, read)
    text = b"part" + b"".join(x.encode() + values[x].tobytes() for x in "abcd")
    expected = hashlib.sha256(text).hexdigest()
    assert opened.digest(source, [b"part"]) == expected
    assert reads == [["a", "b", "c", "d"]]
    reads.clear()
    monkeypatch.setattr(opened, "_AT_ONCE", 8)
    assert opened.digest(source, [b"part"]) == expected
    assert reads == [["a", "b"], ["c"], ["d"]]
