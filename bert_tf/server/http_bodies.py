"""Decompresses and parses the bodies of requests, and formats answers."""

import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.server import batching, json_answers, json_requests, signature_defs
from bert_tf.server.refusals import Refusal

import numpy as np

_ENCODINGS = ("gzip", "deflate")
_GZIP = b"\x1f\x8b"  # The first bytes, whichever encoding a client names.

# Method -> parser of requests and formatter of answers.
FORMATS: dict[str, tuple[Callable[..., Any], Callable[..., str]]] = {
    "predict": (json_requests.to_predict, json_answers.of_predict),
    "classify": (
        lambda body, signatures: json_requests.to_examples(
            body, signatures, signature_defs.CLASSIFY
        ),
        lambda outputs, _: json_answers.of_classify(outputs),
    ),
    "regress": (
        lambda body, signatures: json_requests.to_examples(
            body, signatures, signature_defs.REGRESS
        ),
        lambda outputs, _: json_answers.of_regress(outputs),
    ),
}


def too_large(max_bytes: int) -> Refusal:
    """Returns the answer to a body that is too large."""
    return Refusal(
        f"A request must have at most {max_bytes} bytes. Send fewer rows at a "
        "time, or start the server with a larger --max_request_mb",
        413,
    )


def inflate(body: bytes, encoding: str, max_bytes: int) -> bytes | None:
    """Decompresses a body; None if it exceeds `max_bytes`.

    Raises Refusal if it is damaged, or if the encoding is unknown.
    """
    if encoding == "identity":
        return body if len(body) <= max_bytes else None
    if encoding not in _ENCODINGS:
        raise Refusal(
            f"Content-Encoding must be gzip or deflate. Received: "
            f"{encoding[:100]}",
            415,
        )
    try:
        if body.startswith(_GZIP):  # It may have several members.
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
                text, is_all = file.read(max_bytes + 1), True
        else:
            inflater = zlib.decompressobj()
            text = inflater.decompress(body, max_bytes + 1)
            is_all = inflater.eof
            if inflater.unused_data:
                raise Refusal("The compressed body has bytes after its end")
    except EOFError:
        text, is_all = b"", False
    except (zlib.error, gzip.BadGzipFile) as error:
        raise Refusal(f"The body can't be inflated: {error}") from None
    if len(text) > max_bytes:
        return None
    if not is_all:
        raise Refusal("The compressed body is not all there")
    return text


def read(
    method: str,
    body: bytes,
    signatures: signature_defs.Signatures,
    max_rows: int,
) -> json_requests.Request:
    """Parses a body; raises Refusal if it is invalid or has too many rows."""
    request = FORMATS[method][0](body, signatures)
    # Before the inputs are copied from the process that parses.
    batching.check_rows(request.inputs, max_rows)
    return request


def read_large(
    method: str,
    body: bytes,
    signatures: signature_defs.Signatures,
    max_rows: int,
    encoding: str,
    max_bytes: int,
) -> json_requests.Request:
    """Decompresses and parses a body; raises Refusal as `read`."""
    text = inflate(body, encoding, max_bytes)
    if text is None:
        raise too_large(max_bytes)
    return read(method, text, signatures, max_rows)


def write(
    method: str, outputs: Mapping[str, np.ndarray], in_rows: bool
) -> bytes:
    """Formats an answer."""
    text = FORMATS[method][1](outputs, in_rows)
    return text.encode("utf-8", errors="replace")
