"""Formats and filters the log lines of scripts."""

import logging as python_logging
import os
import textwrap

from bert_tf import terminals

from absl import flags, logging


def is_worth_a_line(record: python_logging.LogRecord) -> bool:
    """Whether a line is ours, or from TensorFlow at the requested level."""
    is_ours = f"{os.sep}tensorflow{os.sep}" not in record.pathname
    if is_ours or record.levelno >= python_logging.ERROR:
        return True
    return flags.FLAGS.is_parsed() and flags.FLAGS.verbosity > logging.INFO


class Formatter(python_logging.Formatter):
    """Formats lines as time, level (if above info) and message.

    Long lines are wrapped at spaces and indented.
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
    """Wraps a line at spaces."""
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
