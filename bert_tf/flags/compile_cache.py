"""Settings of XLA for GPUs: what it compiles and tunes is cached."""

import os
import pathlib
import shutil

_TENSORFLOW_FLAGS = "TF_XLA_FLAGS"
_XLA_FLAGS = "XLA_FLAGS"
# What XLA replays as CUDA graphs. By default that includes cuDNN's calls, whose
# dropout would then be the same in each step.
_COMMANDS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL"
# A program of BERT-Large takes some tens of megabytes. A failed write would
# end the run.
_ROOM = 2**30
# NVIDIA, AMD, and either of them under WSL2.
_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def use() -> None:
    """Sets the flags of XLA, if this machine has a GPU.

    Compiled programs and the fastest kernels that XLA finds by timing are kept
    in the user's cache folder. Flags that are already set stay. TensorFlow
    reads them when it starts. Programs for CPUs are not cached: XLA does not
    trust them even on the same machine.
    """
    if not any(map(os.path.exists, _GPUS)):
        return
    _add(_XLA_FLAGS, _COMMANDS)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(cache, "bert_tf", "xla")
    kernels = folder / "kernels"
    if not _has_room(kernels):
        return
    _add(_XLA_FLAGS, f"--xla_gpu_per_fusion_autotune_cache_dir='{kernels}'")
    _add(
        _TENSORFLOW_FLAGS,
        f"--tf_xla_persistent_cache_directory='{folder}'",
        "--tf_xla_persistent_cache_device_types=GPU",
    )


def _add(variable: str, flag: str, *others: str) -> None:
    """Adds flags to an environment variable, unless it has the first one."""
    given = os.environ.get(variable, "")
    if flag.partition("=")[0] not in given:
        os.environ[variable] = " ".join([given, flag, *others]).strip()


def _has_room(folder: pathlib.Path) -> bool:
    """Creates the folder, and returns whether it has room for programs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError:
        return False
    is_ours = os.access(folder, os.W_OK) and "'" not in str(folder)
    return is_ours and free > _ROOM
