"""Stand-ins for slow packages, so that benchmarks can define their flags."""

import importlib.abc
import importlib.machinery
import sys
from typing import Any

_PACKAGES = (
    *("keras", "keras_hub", "matplotlib", "scipy", "sklearn", "tensorflow"),
    *("tensorflow_serving", "tensorflow_text", "torch", "transformers"),
)


class _Anything:
    """An object with every attribute, to be called, subclassed or combined."""

    def __init__(self, *_: Any, **__: Any):
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return _Anything()

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_Anything,) if bases[0] is self else ()

    def __or__(self, other: object) -> Any:
        return self

    __ror__ = __getitem__ = __or__


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a stand-in for each of the packages and their modules."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the spec of a stand-in; None for other modules."""
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        """Returns the stand-in."""
        return _Anything()

    def exec_module(self, module):
        """Does nothing: there is no code."""


def install() -> None:
    """Replaces the packages in this process."""
    sys.meta_path.insert(0, _Finder())
