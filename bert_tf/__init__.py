"""BERT for TensorFlow 2: the original's files, flags and numbers.

Importing this package, before TensorFlow is imported, sets three environment
variables unless the user has set them:

- ``TF_ENABLE_ONEDNN_OPTS=1``: on AMD and older Intel processors TensorFlow
  leaves its oneDNN kernels off; with them a training step takes three
  quarters of the time.
- ``KERAS_BACKEND=tensorflow``: the code computes with TensorFlow only.
- ``TF_CPP_MIN_LOG_LEVEL=1``: TensorFlow's notes stay off the user's screen,
  its warnings and errors do not. (TensorFlow 2.21 prints the notes of its
  first second whatever this says; the scripts keep those back.)
"""

import importlib.util
import os
import sys

__version__ = "0.1.0"

if "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")


def _check_python():
    """Ends a script of ours with one line where it can't run."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.dirname(os.path.abspath(main)) != root:
        return  # Python tells a library's user itself.
    names = ("absl", "numpy", "etils")
    missing = [x for x in names if importlib.util.find_spec(x) is None]
    if sys.version_info < (3, 11):  # noqa: UP036 (before pip could say it)
        problem = "Python 3.11 or newer is needed."
    elif missing:
        problem = "The packages of this project are not installed."
    else:
        return
    sys.exit(
        f"error: {problem} In a clone: make venv, then .venv/bin/python in the "
        f"place of python; elsewhere: pip install . Received: {sys.executable}"
        f", Python {sys.version.split()[0]}"
    )


_check_python()
