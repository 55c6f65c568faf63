"""Which checkpoint a folder means, and what is refused there."""

from bert_tf.checkpoints import best, huggingface, tf1_files
from bert_tf.errors import InputError

import numpy as np
import pytest


def _write(path):
    tf1_files.write(str(path), {"global_step": np.array(1, np.int64)})


def test_the_newest_checkpoint_that_the_folder_names(tmp_path):
    for step in (1, 2):
        _write(tmp_path / f"model.ckpt-{step}")
    paths = [str(tmp_path / f"model.ckpt-{step}") for step in (1, 2)]
    tf1_files.write_state(str(tmp_path), paths)
    # Of two, and not refused as ambiguous.
    assert tf1_files.find(str(tmp_path)) == paths[1]


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
    best.clear(str(tmp_path))  # Nothing is there any more.


def test_weights_without_a_config(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"but no config\.json"):
        huggingface.open_checkpoint(str(tmp_path))
