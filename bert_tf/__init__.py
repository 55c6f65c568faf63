"""BERT for TensorFlow 2: the original's files, flags and numbers.

    import bert_tf
    model = bert_tf.load("/tmp/sst2_output")  # any run, checkpoint, SavedModel
    model(["what a film"])
    classifier = bert_tf.BertClassifier.from_checkpoint(path, labels=labels)

`__all__` lists the public names, and docs/python_api.md describes them. Each is
imported on first use, so importing the package does not import TensorFlow.

Importing this package, before TensorFlow is imported, sets three environment
variables unless the user has set them:

- ``TF_ENABLE_ONEDNN_OPTS=1``: on AMD and older Intel processors TensorFlow
  leaves its oneDNN kernels off; with them a training step takes three
  quarters of the time.
- ``KERAS_BACKEND=tensorflow``: the code computes with TensorFlow only.
- ``TF_CPP_MIN_LOG_LEVEL=1``: TensorFlow logs warnings and errors only.
  TensorFlow 2.21 ignores this while it starts. The scripts and the public
  names hide those messages; to see them, set the variable to 0.
"""

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from bert_tf import keras_classes

if TYPE_CHECKING:
    from bert_tf.api.exports import export
    from bert_tf.api.keras_optimizer import KerasOptimizer
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
    from bert_tf.checkpoints.formats import open_checkpoint
    from bert_tf.configuration import BertConfig
    from bert_tf.errors import InputError
    from bert_tf.optimization import (
        AdamWeightDecay,
        BiasCorrectedAdamW,
        Lamb,
        UncorrectedLamb,
    )
    from bert_tf.tokenization import FullTokenizer
    from bert_tf.training import schedules
    from bert_tf.training.loop import Objective, make_train_steps

__all__ = [
    "AdamWeightDecay",
    "Bert",
    "BertClassifier",
    "BertConfig",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertNextSentence",
    "BertPretrainer",
    "BertSpanFinder",
    "BertTagger",
    "BiasCorrectedAdamW",
    "FullTokenizer",
    "InputError",
    "KerasOptimizer",
    "Lamb",
    "Objective",
    "Predictor",
    "Tokenizer",
    "UncorrectedLamb",
    "export",
    "load",
    "make_train_steps",
    "open_checkpoint",
    "schedules",
]

__version__ = "0.1.0"

if "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")


def _is_a_script() -> bool:
    """Whether one of our scripts runs, rather than a user's program."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Scripts have absolute paths. The working folder may have been deleted.
    folder = os.path.dirname(os.path.normpath(main))
    return os.path.isabs(main) and folder == root


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


# Classes in `.keras` files: known once Keras is imported, imported on use.
keras_classes.register_lazily()


# ---- The public names --------------------------------------------------------

# Where those are that do not stand with the Keras models.
_PLACES = {
    **dict.fromkeys(
        ("AdamWeightDecay", "BiasCorrectedAdamW", "Lamb", "UncorrectedLamb"),
        "optimization",
    ),
    "BertConfig": "configuration",
    "FullTokenizer": "tokenization",
    "InputError": "errors",
    "KerasOptimizer": "api.keras_optimizer",
    "Objective": "training.loop",
    "Predictor": "api.predictor",
    "Tokenizer": "api.tokenizer",
    "export": "api.exports",
    "load": "api.predictor",
    "make_train_steps": "training.loop",
    "open_checkpoint": "checkpoints.formats",
    "schedules": "training",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = f"{__name__}.{_PLACES.get(name, 'api.models')}"
    module = _import_quietly(place)
    # A module of a package becomes an attribute of it once it is imported.
    if not hasattr(module, name):
        _import_quietly(f"{place}.{name}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def _import_quietly(name: str) -> Any:
    """Imports a module without the messages of TensorFlow's start."""
    is_verbose = os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0"
    if is_verbose or "tensorflow" in sys.modules:
        return importlib.import_module(name)
    from bert_tf import quiet

    with quiet.kept_back():
        module = importlib.import_module(name)
        # TensorFlow logs more when it looks for devices.
        if "tensorflow" in sys.modules:
            sys.modules["tensorflow"].config.list_physical_devices()
    return module


def __dir__() -> list[str]:
    """Lists the public names, those not yet imported as well."""
    return sorted({*globals(), *__all__})
