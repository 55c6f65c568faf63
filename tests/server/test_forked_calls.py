"""Calls in other processes: their results, errors and deaths."""

import asyncio
import contextlib
import functools
import gzip
import json
import os
import select
import signal
import types
import zlib
from typing import Any

from bert_tf.server import (
    application,
    forked_calls,
    http_bodies,
    server_metrics,
    signature_defs,
)
from bert_tf.server.refusals import Refusal

import numpy as np
import pytest
import tensorflow as tf

# Without the time: names of tests and bodies must be the same a second later.
_gzip = functools.partial(gzip.compress, mtime=0)
_SIGNATURES = signature_defs.Signatures({})
_SIGNATURES.by_name["serving_default"] = signature_defs.Signature(
    "serving_default",
    signature_defs.PREDICT,
    {"text": signature_defs.Tensor(tf.string, (None,))},
    {},
    {},
)


@pytest.fixture(scope="module")
def calls():
    calls = forked_calls.ForkedCalls()
    yield calls
    calls.close()


def _read(calls, body, max_rows=100_000):
    read = http_bodies.read_large
    limits = max_rows, "gzip", 1 << 20
    return calls.call(read, "predict", body, _SIGNATURES, *limits)


@contextlib.contextmanager
def _ending(number):
    """Waits at the end until a process has ended."""
    process = os.pidfd_open(number)
    yield
    assert select.select([process], [], [], 60)[0]
    os.close(process)


def test_a_request_and_its_answer(calls):
    texts = ["a\0b\0", "", "é"] * 10_000
    body = json.dumps({"instances": texts}).encode()
    request = _read(calls, _gzip(body))
    assert request.inputs["text"].tolist() == [x.encode() for x in texts]
    assert request.signature == _SIGNATURES.find(None)
    outputs = {"label": request.inputs["text"], "x": np.arange(30_000)}
    answer = calls.call(http_bodies.write, "predict", outputs, True)
    assert answer == http_bodies.write("predict", outputs, True)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (_gzip(b"ab") + _gzip(b"cd") + b"\0\0", None),
        (zlib.compress(b"abcd"), None),
        (_gzip(b"ab") + _gzip(b"cd")[:-1], "not all there"),
        (_gzip(b"abcd") + b"more", "can't be inflated: Not a gzip"),
        (zlib.compress(b"abcd")[:-1], "not all there"),
        (zlib.compress(b"abcd") + b"more", "has bytes after its end"),
        (zlib.compress(b"ab") + zlib.compress(b"cd"), "bytes after its end"),
        (b"", "not all there"),
        (b"abcd", "can't be inflated: Error -3"),
    ],
)
def test_compressed_bodies(body, problem):
    for encoding in ("gzip", "deflate"):
        if problem is None:
            assert http_bodies.inflate(body, encoding, 4) == b"abcd"
            assert http_bodies.inflate(body, encoding, 3) is None
        else:
            with pytest.raises(Refusal, match=problem):
                http_bodies.inflate(body, encoding, 4)


def test_errors(calls):
    body = _gzip(b'{"instances": ["a", "b", "c"]}')
    with pytest.raises(Refusal, match=r"at most 2 rows.*Received: 3") as error:
        _read(calls, body, max_rows=2)
    assert error.value.status == 413
    with pytest.raises(TypeError) as other:
        calls.call(http_bodies.write)
    assert "forked_calls.py" in other.value.__notes__[0]  # Its traceback.


def test_processes_that_end():
    calls = forked_calls.ForkedCalls()
    first = calls.call(os.getpid)
    parent = calls.call(os.getppid)
    assert os.getpid() not in (first, parent)
    # A service manager signals all processes; the server ends them itself.
    for number in (signal.SIGTERM, signal.SIGINT):
        calls.call(os.kill, parent, number)
        calls.call(os.kill, first, number)
    assert calls.call(os.getpid) == first
    with pytest.raises(Refusal, match="has ended") as error:
        calls.call(os._exit, 1)
    assert error.value.status == 503
    second = calls.call(os.getpid)
    assert second not in (first, os.getpid())
    assert calls.call(os.getppid) == parent
    with _ending(second):
        calls._parent.close()  # As if this process ended.
    calls.close()


def test_an_idle_process_that_ends_is_replaced():
    calls = forked_calls.ForkedCalls()
    first = calls.call(os.getpid)
    with _ending(first):
        os.kill(first, signal.SIGKILL)
    assert calls.call(os.getpid) not in (first, os.getpid())
    calls.close()


def test_a_call_without_memory_is_refused():
    calls = forked_calls.ForkedCalls()
    first = calls.call(os.getpid)
    with pytest.raises(Refusal, match="may lack memory"):
        calls.call(bytearray, 1 << 60)
    assert calls.call(os.getpid) not in (first, os.getpid())
    calls.close()


def test_without_processes_calls_are_made_here():
    calls = forked_calls.ForkedCalls()
    parent = calls.call(os.getppid)
    with _ending(parent):
        os.kill(parent, signal.SIGKILL)
    with pytest.raises(Refusal):
        calls.call(os._exit, 1)
    assert calls.call(os.getpid) == os.getpid()
    calls.close()


def test_only_large_bodies_and_answers_are_passed_on_and_stay_compressed():
    passed = []

    def call(function, *arguments):
        passed.append((function, arguments[1]))
        return function(*arguments)

    app = application.Application(
        {}, server_metrics.Metrics(), 1 << 20, call=call
    )
    servable: Any = types.SimpleNamespace(signatures=_SIGNATURES, max_rows=9)

    def read(body, encoding):
        found = app._read("predict", body, encoding, servable)
        return asyncio.run(found).inputs["text"].tolist()

    small, large = (b'{"instances": ["%s"]}' % (b"a" * n) for n in (9, 70_000))
    assert read(small, "identity") == [b"a" * 9]
    assert read(_gzip(small), "gzip") == [b"a" * 9]
    assert not passed
    assert read(large, "identity") == [b"a" * 70_000]
    assert read(_gzip(large), "gzip") == [b"a" * 70_000]
    assert passed == [
        (http_bodies.read_large, large),
        (http_bodies.read_large, _gzip(large)),
    ]
    passed.clear()
    for size in (10, 5_000):
        outputs = {"x": np.zeros(size, np.int32)}
        answer = asyncio.run(app._write("predict", outputs, False))
        assert answer == b'{"outputs": [%s]}' % b", ".join([b"0"] * size)
    assert passed == [(http_bodies.write, outputs)]
