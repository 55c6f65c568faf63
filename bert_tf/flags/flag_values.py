"""Parsers of flag values, with errors that state the expected value."""

import csv
import math
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import options
from bert_tf.errors import InputError

from absl import flags

# The max of int32, which TensorFlow counts with.
_MOST = 2**31 - 1


class Parser(flags.ArgumentParser):
    """Parses one value; errors state the expected value."""

    def __init__(self, name: str, expected: str):
        self._name = name
        self._expected = expected

    def _read(self, text: Any) -> Any:
        raise NotImplementedError

    def parse(self, argument: Any) -> Any:
        try:
            return self._read(argument)
        except ValueError as error:
            more = str(error) if isinstance(error, _RangeError) else ""
            raise InputError(
                f"--{self._name} must be {self._expected}{more}. "
                f"Received: {self._name}={argument}"
            ) from None


class _RangeError(InputError):
    """A number is too large, or too close to 0, for TensorFlow's types."""


class Number(Parser):
    """Parses a finite number."""

    _kind: Callable[[Any], Any] = float
    _called = "a number"

    def __init__(self, name: str, bounds: options.Bounds):
        more = f", {bounds}" * bool(str(bounds))
        super().__init__(name, self._called + more)
        self._bounds = bounds

    def _read(self, text: Any) -> Any:
        value = type(self)._kind(text)
        if not self._bounds.allow(value):
            raise InputError
        self._check_range(value)
        return value

    def _check_range(self, value: Any) -> None:
        """Raises _RangeError unless TensorFlow can represent the number."""
        # The range of float32; smaller values would become 0.
        if abs(value) > 3.4e38:
            raise _RangeError(", at most 3.4e+38")
        if 0 < abs(value) < 1.2e-38:
            raise _RangeError(", at least 1.2e-38 unless it is 0")


class Whole(Number):
    """Parses an integer."""

    _kind = int
    _called = "a whole number"

    def _check_range(self, value: Any) -> None:
        if abs(value) > _MOST:
            raise _RangeError(f", at most {_MOST}")


class NumberOr(Parser):
    """Parses a finite number, kept as a number's text, or a special word."""

    def __init__(self, name: str, word: str):
        super().__init__(name, f"a number or {word}")
        self._word = word

    def _read(self, text: Any) -> Any:
        if text == self._word:
            return text
        if not math.isfinite(float(text)):
            raise InputError
        return str(float(text))


class OneOf(Parser):
    """Parses one of several words."""

    def __init__(self, name: str, allowed: Sequence[str]):
        super().__init__(name, f"one of {', '.join(allowed)}")
        self._allowed = allowed

    def _read(self, text: Any) -> Any:
        if text not in self._allowed:
            raise InputError
        return text


def _empty(name: str) -> InputError:
    return InputError(
        f"--{name} must be given or left out, and it is empty. Is a variable "
        "of the shell not set?"
    )


class Text(flags.ArgumentParser):
    """Parses a non-empty text in one line, as flags.txt has a flag a line."""

    def __init__(self, name: str):
        self._name = name

    def parse(self, argument: Any) -> Any:
        if argument == "":
            raise _empty(self._name)
        if "\n" in argument or "\r" in argument:
            raise InputError(
                f"--{self._name} must be in one line. "
                f"Received: {self._name}={argument!r}"
            )
        return argument


class Spaced(Text):
    """Parses parts with blanks between, which may be on several lines."""

    def parse(self, argument: Any) -> Any:
        return super().parse(" ".join(argument.split()) or argument)


class Words(flags.ListParser):
    """Parses a comma-separated list of texts."""

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def parse(self, argument: Any) -> Any:
        if not isinstance(argument, str):
            return super().parse(argument)
        if not argument.strip():
            raise _empty(self._name)
        try:
            # Quotes may follow a space, as in the lists of messages.
            (words,) = csv.reader(
                [argument], skipinitialspace=True, strict=True
            )
            return [word.strip() for word in words]
        except (csv.Error, ValueError):  # Such as a quote that is not closed.
            raise InputError(
                f"--{self._name} must be texts with commas between, in one "
                "line; one with a comma in double quotes. "
                f"Received: {self._name}={argument}"
            ) from None


class Paths(Words):
    """Parses a comma-separated list; `output_paths` rejects empty paths."""

    def parse(self, argument: Any) -> Any:
        if isinstance(argument, str) and not argument.strip():
            return []
        return super().parse(argument)
