"""Which errors end a script in one line, and what the line says."""

import re
import sys

from bert_tf.errors import InputError

# TensorFlow's own file errors say all in one line, as OSError does. By name:
# scripts that do without TensorFlow start in a tenth of the time.
_TENSORFLOWS_FILE_ERRORS = (
    "NotFoundError",
    "PermissionDeniedError",
    "FailedPreconditionError",
    "ResourceExhaustedError",
    "UnimplementedError",  # a path such as s3://, without its plugin
    "UnauthenticatedError",
    "UnavailableError",  # a bucket, or the network to it
)

# TensorFlow's message has it behind the names of all functions on the way. An
# error of the same kind as that of a full disk.
_OUT_OF_MEMORY = re.compile(
    r"OOM when allocating[^\n]*|failed to allocate memory[^\n]*", re.IGNORECASE
)
# What TensorFlow puts around a message: who called, on what.
_OF_NO_USE = re.compile(r"\{\{[^}]*\}\}|\s*\[Op:\w+\](?: name: \S*)?")
_NO_FILE_SYSTEM = re.compile(
    r"File system scheme '(\w+)' not implemented \(file: '(.*)'\)"
)


def is_foreseen(error: BaseException) -> bool:
    """Whether the error is the user's to mend, or of the file system."""
    return isinstance(error, (InputError, OSError, *_tensorflows_errors()))


def _tensorflows_errors() -> tuple[type, ...]:
    tf = sys.modules.get("tensorflow")
    if tf is None:
        return ()
    return tuple(getattr(tf.errors, name) for name in _TENSORFLOWS_FILE_ERRORS)


def of(error: BaseException) -> str:
    """Returns the line for an error."""
    # TensorFlow's errors are long; they have the message by itself.
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
    text = _OF_NO_USE.sub("", text)
    return " ".join(text.split()) or type(error).__name__
