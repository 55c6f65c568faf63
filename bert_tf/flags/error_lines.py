"""Decides which errors end a script in one line, and formats the line."""

import re
import sys

from bert_tf.errors import InputError

# TensorFlow's file errors have one-line messages, as OSError does. Listed by
# name: scripts that do not import TensorFlow start ten times as fast.
_TENSORFLOWS_FILE_ERRORS = (
    "NotFoundError",
    "PermissionDeniedError",
    "FailedPreconditionError",
    "ResourceExhaustedError",
    "UnimplementedError",  # a path such as s3:// without its plugin
    "UnauthenticatedError",
    "UnavailableError",  # a bucket, or the network connection to it
    "AbortedError",  # the end of all attempts to reach it again
    "DeadlineExceededError",
)

# Messages of TensorFlow and XLA, which come after the names of all functions on
# the stack. The error type is the same as for a full disk.
_OUT_OF_MEMORY = re.compile(
    r"(?:OOM when|(?:Ran )?out of memory|failed to allocate memory)[^\n]*",
    re.IGNORECASE,
)
# Max characters of a line. A message may quote a line of a damaged file.
_LONGEST = 1500
# Parts that TensorFlow adds to a message: where the graph was defined, the
# caller and the op.
_OF_NO_USE = re.compile(
    r"Graph execution error:\n+(?:Detected at .*\n(?: +File .*\n|<.*\n|\n)*)?"
    r"|\[\[\{\{[^}]*\}\}\]\]|\{\{[^}]*\}\}|\s*\[Op:\w+\](?: name: \S*)?"
)
_NO_FILE_SYSTEM = re.compile(
    r"File system scheme '(\w+)' not implemented \(file: '(.*)'\)"
)


def is_foreseen(error: BaseException) -> bool:
    """Whether the user can fix the error, or the file system caused it."""
    return isinstance(error, (InputError, OSError, *_tensorflows_errors()))


def _tensorflows_errors() -> tuple[type, ...]:
    tf = sys.modules.get("tensorflow")
    if tf is None:
        return ()
    return tuple(getattr(tf.errors, name) for name in _TENSORFLOWS_FILE_ERRORS)


def one_line(error: BaseException) -> str:
    """Returns the error message as one line."""
    # TensorFlow's errors are long; this attribute has only the message.
    text = getattr(error, "message", None) or str(error)
    out_of_memory = _OUT_OF_MEMORY.search(text)
    if out_of_memory:
        text = (
            "The device has too little memory. Take smaller batches, --remat, "
            "--dtype=bfloat16 or --gradient_accumulation_steps; pre-training "
            f"has --auto_batch_size. Received: {out_of_memory[0]}"
        )
    scheme = _NO_FILE_SYSTEM.match(text)
    if scheme:
        text = (
            f"TensorFlow has no file system {scheme[1]}:// here. Give a local "
            f"path, or one of gs://. Received: {scheme[2]}"
        )
    text = " ".join(_OF_NO_USE.sub("", text).split())
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]} [...] {text[-half:]}"
    return text or type(error).__name__
