"""The errors that users see, apart from bugs."""


class InputError(ValueError):
    """Invalid input: a file, a flag, or an argument.

    The message has what is wrong, what was expected, what was received and the
    way out. Scripts print it as one line and exit with code 1. Any other error,
    except file system errors, is a bug and keeps its traceback.
    """

    # With this, TensorFlow's AutoGraph recognizes that it can recreate the
    # error from its message alone. Otherwise, errors raised while tracing a
    # graph would become TensorFlow errors.
    __init__ = Exception.__init__


class NotFiniteError(InputError, FloatingPointError):
    """Training has produced numbers that are infinite or NaN."""
