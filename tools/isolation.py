"""Runs several programs that define flags in the same process."""

import contextlib
import sys
from collections.abc import Iterable, Iterator

from absl.flags import _helpers as flags_helpers
from absl.testing import flagsaver


@contextlib.contextmanager
def isolated(*packages: str) -> Iterator[None]:
    """Removes the flags that a program defines in this context.

    absl defines each flag once. Modules of the packages that the program
    imports are removed as well, so that the next program imports them again.
    """
    modules, argv = set(sys.modules), sys.argv
    disclaimed = set(flags_helpers.disclaim_module_ids)
    try:
        with flagsaver.flagsaver():
            yield
    finally:
        sys.argv = argv
        # These are addresses, which other modules may have later.
        flags_helpers.disclaim_module_ids.intersection_update(disclaimed)
        new = sys.modules.keys() - modules
        forget(x for x in new if x.partition(".")[0] in packages)


def forget(modules: Iterable[str]) -> None:
    """Removes modules, so that they are imported again when needed."""
    for name in modules:
        del sys.modules[name]
        package, _, leaf = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(leaf, None)
