"""Optional packages, installed as extras.

They are imported where they are used, after a call of `check`. Extras are
spelled with hyphens: pip before 23.3 does not find them with underscores.
"""

import importlib.util

from bert_tf.errors import InputError


def check(package: str, extra: str, purpose: str) -> None:
    """Raises InputError with the extra to install if a package is missing.

    Args:
        package: The name that is imported.
        extra: The extra in setup.cfg that installs the package.
        purpose: The plural subject of "... need the package".
    """
    if importlib.util.find_spec(package) is None:
        raise InputError(
            f"{purpose} need the package {package}, of the extra {extra}: in "
            f"a clone of this project pip install '.[{extra}]', or make venv."
        )
