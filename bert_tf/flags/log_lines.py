"""How the lines of a script's log look, and which there are."""

import logging as python_logging
import os
import textwrap

from absl import flags, logging

# Columns of the log.
_WIDTH = 120


def is_worth_a_line(record: python_logging.LogRecord) -> bool:
    """Whether a line is ours, or one of TensorFlow's that was asked for."""
    is_ours = f"{os.sep}tensorflow{os.sep}" not in record.pathname
    if is_ours or record.levelno >= python_logging.ERROR:
        return True
    return flags.FLAGS.is_parsed() and flags.FLAGS.verbosity > logging.INFO


class Formatter(python_logging.Formatter):
    """The time, the level if it is more than a note, and the message.

    Long lines are broken between words, and go on under their beginning.
    """

    def __init__(self):
        super().__init__("%(message)s", "%H:%M:%S")

    def format(self, record):
        head = f"{self.formatTime(record, self.datefmt)} "
        indent = " " * len(head)
        if record.levelno >= python_logging.WARNING:
            head += f"{record.levelname}: "
        lines: list[str] = []
        for line in (head + super().format(record)).split("\n"):
            lines += _broken(line, indent) if len(line) > _WIDTH else [line]
        return "\n".join(lines)


def _broken(line: str, indent: str) -> list[str]:
    """Breaks a line between words, where it can."""
    return textwrap.wrap(
        line,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
