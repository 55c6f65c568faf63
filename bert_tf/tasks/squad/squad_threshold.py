"""The threshold of SQuAD 2.0 above which a question has no answer."""

import contextlib
import dataclasses
import math
import os
from collections.abc import Mapping

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.storage import input_files

from etils import epath


@dataclasses.dataclass(frozen=True)
class Threshold:
    """The threshold of a run, passed or tuned on questions with answers.

    `given` is None if it is tuned, and for SQuAD 1.1, which uses none. `folder`
    stores the tuned threshold, unless it is "".
    """

    given: float | None
    is_used: bool
    folder: str

    @property
    def _path(self) -> str:
        return os.path.join(self.folder, "null_score_diff_threshold.txt")

    def known(self) -> float | None:
        """Returns the passed or tuned threshold; None for SQuAD 1.1."""
        if not self.is_used or self.given is not None:
            return self.given
        if not self.folder or not epath.Path(self._path).exists():
            raise InputError(
                "--null_score_diff_threshold=auto needs questions with "
                "answers: run run_squad.py --do_eval on such a --predict_file "
                "first, or give a number."
            )
        input_files.check_can_be_read_again(self._path)
        text = epath.Path(self._path).read_bytes().decode(errors="replace")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InputError(
                f"{self._path} must hold the threshold that was tuned. Remove "
                "it and tune again with --do_eval, or give a number by "
                "--null_score_diff_threshold. "
                f"Received: {text.strip()[:40]!r}"
            )
        return value

    def note(self, tuned: float | None) -> None:
        """Stores a tuned threshold, unless it is the one passed."""
        if tuned != self.given:
            files.write_lines(self._path, [repr(tuned)])


def of_run(texts: Mapping[str, str], folder: str) -> str | None:
    """Returns the threshold of a run, as text; the tuned one if there is one.

    Args:
        texts: The run's flags.
        folder: Folder that stores the tuned threshold.
    """
    text = texts.get("null_score_diff_threshold")
    if text == "auto":
        with contextlib.suppress(InputError):
            return str(find("auto", True, folder).known())
    return text


def find(text: str, version_2_with_negative: bool, folder: str) -> Threshold:
    """Returns the user's threshold: a number, or "auto" to tune it."""
    if text == "auto" or not version_2_with_negative:
        return Threshold(None, version_2_with_negative, folder)
    try:
        return Threshold(float(text), True, folder)
    except ValueError:
        raise InputError(
            "--null_score_diff_threshold must be a number or auto. "
            f"Received: null_score_diff_threshold={text}"
        ) from None
