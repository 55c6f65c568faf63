"""The cache of the code that XLA compiles for GPUs."""

import os

from bert_tf.flags import compile_cache

import pytest

_FLAGS = "TF_XLA_FLAGS"


@pytest.fixture(autouse=True)
def _a_gpu(monkeypatch, tmp_path):
    gpu = tmp_path / "nvidiactl"
    gpu.touch()
    monkeypatch.setattr(compile_cache, "_GPUS", (str(gpu),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.setenv(_FLAGS, "")


def _used():
    compile_cache.use()
    return os.environ[_FLAGS]


def test_kept_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(_FLAGS, "--tf_xla_clustering_debug")
    folder = tmp_path / "a cache" / "bert_tf" / "xla"
    assert _used() == (
        "--tf_xla_clustering_debug "
        f"--tf_xla_persistent_cache_directory='{folder}' "
        "--tf_xla_persistent_cache_device_types=GPU"
    )
    assert folder.is_dir()


def test_not_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_cache, "_GPUS", (str(tmp_path / "none"),))
    assert not _used()
    assert not (tmp_path / "a cache").exists()


def test_a_folder_of_the_users_own_stays(monkeypatch):
    own = "--tf_xla_persistent_cache_directory=/mine"
    monkeypatch.setenv(_FLAGS, own)
    assert _used() == own


def test_not_where_nothing_can_be_written(monkeypatch, tmp_path):
    (tmp_path / "a cache").touch()
    assert not _used()


def test_not_on_a_full_disk(monkeypatch):
    monkeypatch.setattr(compile_cache, "_ROOM", 2**62)
    assert not _used()
