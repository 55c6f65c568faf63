"""Rows and questions that training leaves out, named in one warning."""

from bert_tf.errors import InputError

from absl import logging

_NAMED = 3


class LeftOut:
    """What can't be used of one file to train on.

    Attributes:
        errors: The reason of each.
    """

    def __init__(self, path: str, strict: bool, verbose: bool = False):
        """Names the file.

        Args:
            path: The file, with which each reason begins.
            strict: Whether the first reason is raised.
            verbose: Whether the warning has all reasons, not the first ones.
        """
        self._path, self._strict, self._verbose = path, strict, verbose
        self.errors: list[InputError] = []

    def add(self, error: InputError) -> None:
        """Counts a row, or raises its reason if strict."""
        if self._strict:
            raise error
        self.errors.append(error)

    def warn(self, used: int, noun: str) -> None:
        """Logs how many are left out and why; raises if none is used."""
        if not self.errors:
            return
        if not used:
            raise self.errors[0]
        named = self.errors if self._verbose else self.errors[:_NAMED]
        # The first sentence says what is wrong.
        reasons = [
            str(error).removeprefix(f"{self._path}, ").split(". ")[0]
            for error in named
        ]
        logging.warning(
            "%s: left out %d of %d %s: %s%s. --strict stops at the first.",
            self._path,
            len(self.errors),
            len(self.errors) + used,
            noun,
            "; ".join(reason.rstrip(".") for reason in reasons),
            "; and others" * (len(named) < len(self.errors)),
        )
