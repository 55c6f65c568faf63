"""Finding a checkpoint, and loading weights from it."""

import dataclasses
import pathlib
import re

from bert_tf import heads, modeling
from bert_tf.checkpoints import best, huggingface, tf1_files
from bert_tf.errors import InputError
from tests.checkpoints.test_tf1_files import (
    CONFIG,
    array,
    make_state,
    restore,
    save,
    values,
)

import numpy as np
import pytest


class TestRestoreWeights:
    def test_report(self, tmp_path):
        state = make_state()
        prefix = save(state, tmp_path, 1)
        classifier = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        report = restore(classifier.variables, prefix)
        assert report.path == prefix
        weights = {n for n in values(state) if "/adam_" not in n}
        encoder = {n for n in weights if n.startswith("bert/")}
        assert set(report.restored) == encoder
        assert report.fresh == ("output_bias", "output_weights")
        # Moments, step and data position are not weights.
        assert set(report.unused) == weights - encoder
        for variable in classifier.bert.variables:
            np.testing.assert_array_equal(
                variable, state.variables[variable.path]
            )
        first, second, third = str(report).splitlines()
        assert first == f"Restored {len(encoder)} variables of {prefix}."
        assert second == (
            "Not in the checkpoint, as expected for a new head, start from "
            "random values: output_bias, output_weights"
        )
        assert third.startswith("In the checkpoint, not used by this model: ")

    def test_missing_encoder_names_both_lists(self, tmp_path):
        prefix = str(tmp_path / "model.ckpt-1")
        weights = {
            v.path.replace("bert/encoder", "roberta/encoder"): v.value
            for v in make_state().model.variables
        }
        tf1_files.write(prefix, weights)
        classifier = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        before = array(classifier.bert.embeddings.word_embeddings)
        with pytest.raises(ValueError) as error:
            restore(classifier.variables, prefix)
        ours, theirs = str(error.value).split("In the checkpoint only: ")
        assert "only: bert/encoder/layer_0/attention/output/" in ours
        assert "output_weights" not in ours
        assert "roberta/encoder/layer_0/attention/output/" in theirs
        np.testing.assert_array_equal(
            classifier.bert.embeddings.word_embeddings, before
        )

    def test_required_is_the_callers_choice(self, tmp_path):
        prefix = save(make_state(), tmp_path, 1)
        classifier = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        with pytest.raises(ValueError, match="model only: output_bias, outp"):
            restore(classifier.variables, prefix, "")

    def test_another_shape(self, tmp_path):
        prefix = save(make_state(), tmp_path, 1)
        config = dataclasses.replace(CONFIG, vocab_size=50)
        model = heads.BertPretrainer(modeling.Bert(config))
        message = (
            r"other shapes.*: bert/embeddings/word_embeddings is \[40, 8\] "
            r"there and \[50, 8\] in the model; cls/predictions/output_bias "
            r"is \[40\] there and \[50\]"
        )
        with pytest.raises(ValueError, match=message):
            restore(model.variables, prefix)


class TestFind:
    @pytest.fixture(name="prefix")
    def _prefix(self, tmp_path):
        prefix = str(tmp_path / "bert_model.ckpt")
        tf1_files.write(prefix, {"a": np.arange(3)})
        return prefix

    def test_a_prefix_or_one_of_its_files(self, prefix):
        for ending in ("", ".index", ".data-00000-of-00001"):
            assert tf1_files.find(prefix + ending) == prefix

    def test_a_folder(self, tmp_path, prefix):
        assert tf1_files.find(str(tmp_path)) == prefix
        # A run's own checkpoints take precedence over its initial checkpoint.
        for step in (9, 10):
            path = str(tmp_path / f"model.ckpt-{step}")
            tf1_files.write(path, {"a": np.arange(3)})
        assert tf1_files.find(str(tmp_path)) == path

    def test_what_is_not_there(self, tmp_path, prefix):
        (tmp_path / "empty").mkdir()
        pathlib.Path(f"{prefix}.data-00000-of-00001").unlink()
        for path, message in [
            (tmp_path / "empty", "empty holds no checkpoint: neither"),
            (tmp_path / "none", "none.index does not exist. A checkpoint is"),
            (tmp_path / "no" / "folder", "folder.index does not exist"),
            (prefix, "has an index but no data: .*data-00000-of-00001 does"),
            ("", "There is no checkpoint"),
        ]:
            with pytest.raises(ValueError, match=message):
                tf1_files.find(str(path))

    def test_numbers_are_numbers(self, tmp_path):
        for step in (100, 20, 3):
            tf1_files.write(str(tmp_path / f"model.ckpt-{step}"), {"a": 1})
        for name in ("model.ckpt-x.index", "model.ckpt-4.tmp.index"):
            (tmp_path / name).write_text("")
        found = tf1_files.numbered(str(tmp_path))
        assert list(found) == [3, 20, 100]
        assert re.fullmatch(r".*/model\.ckpt-20", found[20])


def _write(path):
    tf1_files.write(str(path), {"global_step": np.array(1, np.int64)})


def test_the_only_checkpoint_beside_what_a_killed_process_left(tmp_path):
    _write(tmp_path / "some.ckpt")
    for end in ("index", "data-00000-of-00001"):
        data = (tmp_path / f"some.ckpt.{end}").read_bytes()
        (tmp_path / f"other.ckpt.tmp.{end}").write_bytes(data)
    assert tf1_files.find(str(tmp_path)) == str(tmp_path / "some.ckpt")


def test_the_best_of_another_run_is_removed(tmp_path, caplog):
    folder = tmp_path / best.FOLDER
    folder.mkdir()
    _write(folder / "model.ckpt-1")
    best.clear(str(tmp_path))
    assert not folder.exists()
    assert f"Removing {folder}" in caplog.text
    best.clear(str(tmp_path))  # There is nothing left.


def test_weights_without_a_config(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"but no config\.json"):
        huggingface.open_checkpoint(str(tmp_path))
