"""Registers the Keras classes of this package without importing them.

Keras looks up the classes of a `.keras` file by their registered names. So
`import bert_tf` registers placeholders, at once or when Keras is imported; a
placeholder imports its class when a file needs it.
"""

import importlib
import importlib.abc
import importlib.util
import sys
from typing import Any

# Class -> its module in bert_tf.
_MODULES = {
    **dict.fromkeys(
        (
            "Bert",
            "BertClassifier",
            "BertMaskedLM",
            "BertMultipleChoice",
            "BertNextSentence",
            "BertPretrainer",
            "BertSpanFinder",
            "BertTagger",
        ),
        "api.models",
    ),
    "KerasOptimizer": "api.keras_optimizer",
    "NamedSchedule": "training.schedules",
    "Tokenizer": "api.tokenizer",
}


class _Placeholder:
    """A class that is imported when Keras makes an object of it."""

    def __init__(self, name: str):
        self.name = name

    def from_config(self, config: dict[str, Any]) -> Any:
        """Makes the object; from here on Keras knows the class itself."""
        module = importlib.import_module(f"bert_tf.{_MODULES[self.name]}")
        return getattr(module, self.name).from_config(config)


def _register(keras: Any) -> None:
    known = keras.saving.get_custom_objects()
    for name in _MODULES:
        known.setdefault(f"bert_tf>{name}", _Placeholder(name))


class _Finder(importlib.abc.MetaPathFinder):
    """Registers the placeholders right after the first import of Keras."""

    def find_spec(self, name, path, target=None):
        if name != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_register(module):
            load(module)
            _register(module)

        # importlib calls it on this object, whose class is not ours to change.
        spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def register_lazily() -> None:
    """Registers the placeholders, now or when Keras is imported."""
    if "keras" in sys.modules:
        _register(sys.modules["keras"])
    else:
        sys.meta_path.insert(0, _Finder())
