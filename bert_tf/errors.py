"""The errors that users meet, apart from bugs."""


class InputError(ValueError):
    """What was given can't be used: a file, a flag, an argument.

    Its message says what is wrong, what was expected, what was received and
    the way out. Scripts print it as one line and end with exit code 1. Any
    other error but one of the file system is a bug, and keeps its traceback.
    """

    # By this TensorFlow's AutoGraph knows that it can make the error anew from
    # its message alone; else what is raised while a graph is traced would
    # become an error of TensorFlow's.
    __init__ = Exception.__init__


class NotFiniteError(InputError, FloatingPointError):
    """A training has met numbers that are infinite or not numbers."""
