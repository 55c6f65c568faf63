"""Speeds up the import of TensorFlow and Keras in scripts.

They import JAX, Matplotlib and scikit-learn wherever these are installed, for
functions that no script calls: TensorFlow Lite's `from_jax`, Keras' plots and
its estimators. That takes almost as long as TensorFlow itself.
"""

import importlib.abc
import sys

_LIBRARIES = ("jax", "matplotlib", "sklearn")
_IMPORTERS = ("tensorflow", "keras")


class _Hidden(importlib.abc.MetaPathFinder):
    """Hides the libraries while TensorFlow or Keras is imported."""

    def find_spec(self, fullname, path, target=None):
        if fullname in _LIBRARIES and any(map(_is_initializing, _IMPORTERS)):
            raise ModuleNotFoundError(
                f"{fullname} is not needed by {' or '.join(_IMPORTERS)} here",
                name=fullname,
            )
        return None


def _is_initializing(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False)


def skip() -> None:
    """Hides the libraries from TensorFlow and Keras only."""
    if not any(isinstance(finder, _Hidden) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hidden())
