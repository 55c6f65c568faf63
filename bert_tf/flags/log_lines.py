"""How the lines of a script's log look, and which there are."""

import logging as python_logging
import os
import textwrap

from bert_tf import terminals

from absl import flags, logging


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
        width = terminals.columns()
        lines: list[str] = []
        for line in (head + super().format(record)).split("\n"):
            is_long = len(line) > width
            lines += _broken(line, indent, width) if is_long else [line]
        return "\n".join(lines)


def _broken(line: str, indent: str, width: int) -> list[str]:
    """Breaks a line between words, where it can."""
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
