"""Rows and questions that training leaves out, named in one warning."""

from bert_tf.errors import InputError

from absl import logging

_NAMED = 3


class LeftOut:
    """What can't be used of one file to train on.

    Attributes:
        path: The file, with which each reason begins.
        strict: Whether the first reason is raised.
        count: How many are left out.
    """

    def __init__(
        self,
        path: str,
        strict: bool,
        verbose: bool = False,
        max_share: float = 1.0,
    ):
        """Starts with none.

        Args:
            path: The file.
            strict: Whether the first reason is raised.
            verbose: Whether the warning has all reasons, not the first ones.
            max_share: How much of the file can be left out.
        """
        self.path, self.strict, self.count = path, strict, 0
        self._verbose, self._max_share = verbose, max_share
        self._first = InputError(f"{path} holds nothing to train on.")
        self._reasons: list[str] = []

    def add(self, error: InputError) -> None:
        """Counts a row, or raises its reason if strict."""
        if self.strict:
            raise error
        if not self.count:
            self._first = error.with_traceback(None)
        self.count += 1
        if self._verbose or len(self._reasons) < _NAMED:
            # The first sentence says what is wrong.
            reason = str(error).removeprefix(f"{self.path}, ").split(". ")[0]
            self._reasons.append(reason.rstrip("."))

    def check(self, used: int) -> None:
        """Raises the first reason if too many are left out, or all."""
        total = self.count + used
        if self.count and (not used or self.count > self._max_share * total):
            raise self._first

    def warn(self, used: int, noun: str) -> None:
        """Logs how many are left out and why; raises as `check`."""
        self.check(used)
        if self.count:
            logging.warning(
                "%s: left out %d of %d %s: %s%s. --strict stops at the first.",
                self.path,
                self.count,
                self.count + used,
                noun,
                "; ".join(self._reasons),
                "; and others" * (len(self._reasons) < self.count),
            )
