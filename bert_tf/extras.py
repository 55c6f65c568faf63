"""Packages that only some uses need: extras of the installation.

They are imported where they are used, after a call of `check`.
"""

import importlib.util

from bert_tf.errors import InputError


def check(package: str, extra: str, purpose: str) -> None:
    """Raises InputError that names the extra where a package is missing.

    The purpose begins the sentence that goes on with "need".
    """
    if importlib.util.find_spec(package) is None:
        raise InputError(
            f"{purpose} need the package {package}, of the extra {extra}: in "
            f"a clone of this project pip install '.[{extra}]', or make venv."
        )
