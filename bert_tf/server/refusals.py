"""Errors of requests, and their HTTP statuses."""

import json
import re
from typing import Any

import tensorflow as tf

# As in http_server.cc of TensorFlow Serving's model_servers.
_STATUSES: dict[int, int] = {
    tf.errors.CANCELLED: 499,
    tf.errors.INVALID_ARGUMENT: 400,
    tf.errors.DEADLINE_EXCEEDED: 504,
    tf.errors.NOT_FOUND: 404,
    tf.errors.RESOURCE_EXHAUSTED: 429,
    tf.errors.FAILED_PRECONDITION: 400,
    tf.errors.OUT_OF_RANGE: 400,
    tf.errors.UNIMPLEMENTED: 501,
    tf.errors.UNAVAILABLE: 503,
}
# The error statuses of requests to a model, with their meanings.
MEANINGS = {
    400: "The request is invalid.",
    403: "The Host or the Origin of the request is not allowed.",
    404: "The server has no such model, or no such version of it.",
    408: "The body has not arrived in time.",
    413: "The body is too large, or has too many rows.",
    415: "The Content-Encoding is neither gzip nor deflate.",
    500: "The server has failed.",
    503: "The queue is full, the model is being loaded, or memory is lacking.",
}
# Lines that TensorFlow adds to a message: the location in the graph.
_HEAD_LINES = re.compile(
    r"Graph execution error|Detected at node|<stack traces|\s*$"
    r"|\d+ root error"
)
_OF_NO_USE = re.compile(
    r"\[\[\{\{.*?\}\}\]\]|\[Op:\w+\](?: name: \S*)?|^\s*\(\d+\) [A-Z_ ]+: "
)
_ASSERTION = re.compile(r"^assertion failed: \[(.*)\]$")
_LONGEST = 600  # characters per message


class Refusal(Exception):  # noqa: N818 (it is also an answer)
    """An error that is sent as the response to a request.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


def from_error(error: BaseException) -> Refusal:
    """Converts an error of TensorFlow, or a bug, to an answer for clients."""
    if isinstance(error, Refusal):
        return error
    if not isinstance(error, tf.errors.OpError):
        return Refusal("The server has failed; its log tells more.", 500)
    return Refusal(line(error), _STATUSES.get(error.error_code, 500))


def line(error: BaseException) -> str:
    """Returns an error's message in one line, without names of nodes."""
    lines = (getattr(error, "message", None) or str(error)).split("\n")
    told = next((x for x in lines if not _HEAD_LINES.match(x)), "")
    text = _ASSERTION.sub(r"\1", _OF_NO_USE.sub("", told).strip())
    return text[:_LONGEST] or type(error).__name__


def shown(value: Any) -> str:
    """Formats a value of a request for a message, truncated if long."""
    if isinstance(value, (list, dict)) and len(value) > 20:
        return f"{type(value).__name__} of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
