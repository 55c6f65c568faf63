"""Caches programs compiled by XLA for GPUs, to start later runs faster."""

import os
import pathlib
import shutil

_FLAGS = "TF_XLA_FLAGS"
# A program of BERT-Large takes some tens of megabytes. A failed write would end
# the run.
_ROOM = 2**30
# NVIDIA, AMD, and either of them under WSL2.
_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def use() -> None:
    """Lets XLA store compiled programs in the user's cache folder.

    TensorFlow reads the setting when it starts. A setting of the user is kept.
    Programs for CPUs are not cached: XLA does not trust them even on the same
    machine.
    """
    given = os.environ.get(_FLAGS, "")
    if "persistent_cache" in given or not any(map(os.path.exists, _GPUS)):
        return
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(cache, "bert_tf", "xla")
    if not _has_room(folder):
        return
    os.environ[_FLAGS] = (
        f"{given} --tf_xla_persistent_cache_directory='{folder}' "
        "--tf_xla_persistent_cache_device_types=GPU"
    ).strip()


def _has_room(folder: pathlib.Path) -> bool:
    """Creates the folder, and returns whether it has room for programs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError:
        return False
    is_ours = os.access(folder, os.W_OK) and "'" not in str(folder)
    return is_ours and free > _ROOM
