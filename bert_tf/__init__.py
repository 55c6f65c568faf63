"""BERT for TensorFlow 2: the original's files, flags and numbers.

    import bert_tf
    model = bert_tf.load("/tmp/sst2_output")  # any run, checkpoint, SavedModel
    model(["what a film"])
    classifier = bert_tf.BertClassifier.from_checkpoint(path, labels=labels)

The public names are those of `__all__`; docs/python_api.md describes them.
Each is imported when it is first used: until then no TensorFlow is.

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

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bert_tf.api.exports import export
    from bert_tf.api.models import (
        Bert,
        BertClassifier,
        BertMaskedLM,
        BertMultipleChoice,
        BertNextSentence,
        BertPretrainer,
        BertSpanFinder,
        BertTagger,
    )
    from bert_tf.api.predictor import Predictor, load
    from bert_tf.api.tokenizer import Tokenizer
    from bert_tf.errors import InputError

__all__ = [
    "Bert",
    "BertClassifier",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertNextSentence",
    "BertPretrainer",
    "BertSpanFinder",
    "BertTagger",
    "InputError",
    "Predictor",
    "Tokenizer",
    "export",
    "load",
]

__version__ = "0.1.0"

if "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")


def _is_a_script() -> bool:
    """Whether a script of ours is run; Python tells a library's user itself."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.dirname(os.path.abspath(main)) == root


def check_python():
    """Ends the process with one line where our scripts can't run."""
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


if _is_a_script():
    check_python()


# ---- The public names --------------------------------------------------------

# Where those are that do not stand with the Keras models.
_PLACES = {
    "InputError": "errors",
    "Predictor": "api.predictor",
    "Tokenizer": "api.tokenizer",
    "export": "api.exports",
    "load": "api.predictor",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _PLACES.get(name, "api.models")
    value = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names, those not yet imported as well."""
    return sorted({*globals(), *__all__})
