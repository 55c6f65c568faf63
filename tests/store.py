"""Trained and exported models that several tests need, each made once.

They are cached on disk for all workers and later runs, in pytest's cache, under
a hash of the code and of everything that the model is made from. Tests copy
what they change.
"""

import fcntl
import functools
import hashlib
import inspect
import os
import pathlib
import shutil
import time
from collections.abc import Callable

import keras
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_DAY = 24 * 60 * 60  # seconds
_FOLDER = _ROOT / ".pytest_cache" / "d" / "models"

# Whether TensorFlow optimizes graphs, which changes the last bits of weights.
uses_grappler = False


def made(
    name: str, make: Callable[[pathlib.Path], None], *parts: object
) -> pathlib.Path:
    """Returns a folder that `make` has filled, now or in an earlier run.

    Args:
        name: Name in the path, for readers.
        make: Writes into an empty folder, at the path that tests will see.
        *parts: Everything that the content depends on besides the code of the
            package, of tests/*.py and of the file of `make`.
    """
    source = pathlib.Path(str(inspect.getsourcefile(make))).read_text("utf-8")
    key = repr((_code(), source, name, parts)).encode()
    digest = hashlib.sha256(key).hexdigest()
    folder = _FOLDER / _code()[:12] / f"{name}-{digest[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One worker makes it, while others wait for it.
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / ".done"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@functools.cache
def _code() -> str:
    """Returns a hash of the code that trains and exports."""
    digest = hashlib.sha256(f"{tf.__version__} {keras.__version__}".encode())
    files = [
        *sorted((_ROOT / "bert_tf").rglob("*.py")),
        *sorted(_ROOT.glob("*.py")),
        *sorted((_ROOT / "tests").glob("*.py")),
    ]
    for path in (x for x in files if not x.name.startswith("test_")):
        digest.update(str(path.relative_to(_ROOT)).encode())
        digest.update(path.read_bytes())
    # Other CPU instructions change the last bits of weights.
    digest.update(f"{_processor()} {uses_grappler}".encode())
    return digest.hexdigest()


def _processor() -> str:
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((x for x in lines if x.startswith("flags")), os.uname().machine)


def forget_old() -> None:
    """Removes models made by other code, unless they were used today.

    Another run may still need them, as the code may change while tests run.
    """
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for folder in _FOLDER.glob("*"):
        if time.time() - folder.stat().st_mtime > _DAY:
            shutil.rmtree(folder, ignore_errors=True)
