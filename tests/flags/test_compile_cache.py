"""The flags of XLA for GPUs: where it keeps what it compiles."""

import multiprocessing
import os

from bert_tf.flags import command_line

import pytest
import tensorflow as tf

_FLAGS, _XLA_FLAGS = "TF_XLA_FLAGS", "XLA_FLAGS"
_NO_CUDNN = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL"


@pytest.fixture(autouse=True)
def _a_gpu(monkeypatch, tmp_path):
    gpu = tmp_path / "nvidiactl"
    gpu.touch()
    monkeypatch.setattr(command_line, "_GPUS", (str(gpu),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.setenv(_FLAGS, "")
    monkeypatch.setenv(_XLA_FLAGS, "")


def _used(variable=_FLAGS):
    command_line.cache_compiled()
    return os.environ[variable]


def test_kept_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(_FLAGS, "--tf_xla_clustering_debug")
    folder = tmp_path / "a cache" / "bert_tf" / "xla"
    assert _used() == (
        "--tf_xla_clustering_debug "
        f"--tf_xla_persistent_cache_directory='{folder}' "
        "--tf_xla_persistent_cache_device_types=GPU"
    )
    assert folder.is_dir()


def test_timed_kernels_are_kept_too(monkeypatch, tmp_path):
    monkeypatch.setenv(_XLA_FLAGS, "--xla_dump_to=/mine")
    folder = tmp_path / "a cache" / "bert_tf" / "xla" / "kernels"
    assert _used(_XLA_FLAGS) == (
        f"--xla_dump_to=/mine {_NO_CUDNN} "
        f"--xla_gpu_per_fusion_autotune_cache_dir='{folder}'"
    )
    assert folder.is_dir()


def _add(flags):
    os.environ[_XLA_FLAGS] = flags
    assert tf.function(lambda x: x + 1, jit_compile=True)(1).numpy() == 2


@pytest.mark.slow
def test_tensorflow_knows_the_flags():
    """XLA aborts the process where a flag is unknown."""
    # Forked from one that has imported TensorFlow; see `tests.scripts`.
    processes = multiprocessing.get_context("forkserver")
    for flags, is_known in (
        (_used(_XLA_FLAGS), True),
        ("--xla_nothing", False),
    ):
        process = processes.Process(target=_add, args=(flags,))
        process.start()
        process.join()
        assert (process.exitcode == 0) == is_known


def test_not_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(command_line, "_GPUS", (str(tmp_path / "none"),))
    assert not _used()
    assert not os.environ[_XLA_FLAGS]
    assert not (tmp_path / "a cache").exists()


def test_a_folder_of_the_users_own_stays(monkeypatch):
    own = "--tf_xla_persistent_cache_directory=/mine"
    monkeypatch.setenv(_FLAGS, own)
    assert _used() == own


def test_not_where_nothing_can_be_written(monkeypatch, tmp_path):
    (tmp_path / "a cache").touch()
    assert not _used()
    assert os.environ[_XLA_FLAGS] == _NO_CUDNN


def test_not_on_a_full_disk(monkeypatch):
    monkeypatch.setattr(command_line, "_ROOM", 2**62)
    assert not _used()
