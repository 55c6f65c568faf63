"""Counts training rows and questions that are skipped, for one warning."""

from bert_tf import terminals
from bert_tf.errors import InputError

_NAMED = 3


class LeftOut:
    """The rows of one training file that are skipped.

    Attributes:
        path: The file, which each reason begins with.
        strict: Whether the first bad row raises an error.
        count: Number of skipped rows.
    """

    def __init__(
        self,
        path: str,
        strict: bool,
        verbose: bool = False,
        max_share: float = 1.0,
    ):
        """Starts with no skipped rows.

        Args:
            path: The file.
            strict: Whether the first bad row raises an error.
            verbose: Whether the warning lists all reasons, not only the first
                ones.
            max_share: Max fraction of the file that may be skipped.
        """
        self.path, self.strict, self.count = path, strict, 0
        self._verbose, self._max_share = verbose, max_share
        self._first = InputError(f"{path} holds nothing to train on.")
        self._reasons: list[str] = []

    def add(self, error: InputError) -> None:
        """Counts a row, or raises its error if strict."""
        if self.strict:
            raise error
        if not self.count:
            self._first = error.with_traceback(None)
        self.count += 1
        if self._verbose or len(self._reasons) < _NAMED:
            # The first sentence states the problem.
            reason = str(error).removeprefix(f"{self.path}, ").split(". ")[0]
            self._reasons.append(reason.rstrip("."))

    def check(self, used: int) -> None:
        """Raises the first error if too many rows, or all, are skipped."""
        total = self.count + used
        if self.count and (not used or self.count > self._max_share * total):
            raise self._first

    def warn(self, used: int, noun: str) -> None:
        """Logs how many rows are skipped and why; raises as `check`."""
        self.check(used)
        if self.count:
            more = "; and others" * (len(self._reasons) < self.count)
            terminals.warn_once(
                f"{self.path}: left out {self.count} of {self.count + used} "
                f"{noun}: {'; '.join(self._reasons)}{more}. --strict stops at "
                "the first."
            )
