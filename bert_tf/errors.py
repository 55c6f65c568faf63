"""The errors that users see, apart from bugs, and parts of their messages."""

import collections
from collections.abc import Iterable, Sequence


class InputError(ValueError):
    """Invalid input: a file, a flag, or an argument.

    The message has what is wrong, what was expected, what was received and the
    way out. Scripts print it as one line and exit with code 1. Any other error,
    except file system errors, is a bug and keeps its traceback.
    """

    # With this, TensorFlow's AutoGraph recognizes that it can recreate the
    # error from its message alone. Otherwise, errors raised while tracing a
    # graph would become TensorFlow errors.
    __init__ = Exception.__init__


class NotFiniteError(InputError, FloatingPointError):
    """A model has produced numbers that are infinite or NaN."""


# ---- Texts of messages ------------------------------------------------------

_MOST_LISTED = 20


def shortened(text: str, length: int = 80) -> str:
    """Returns a text for a message, truncated to `length`."""
    return text if len(text) <= length else text[:length] + "…"


def quoted(name: str) -> str:
    """Returns a name of a list, in quotes as in CSV where it needs them.

    A name needs them if it has commas or quotes, or spaces at its ends.
    """
    if name and name == name.strip() and not {",", '"'} & {*name}:
        return name
    return '"' + name.replace('"', '""') + '"'


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """Returns names for a message: the first ones and the count."""
    parts = (quoted(shortened(name)) for name in names[:_MOST_LISTED])
    text = separator.join(parts)
    if len(names) > _MOST_LISTED:
        text += f" and others, {len(names)} in all"
    return text


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, as in 1 step or 1,000 steps."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def repeated(names: Iterable[str]) -> list[str]:
    """Returns the names that occur more than once, each once, in order."""
    counts = collections.Counter(names)
    return [name for name, count in counts.items() if count > 1]
