"""Which connections the server keeps open, and its answers until its end."""

import asyncio
import contextlib
import http.client
import os
import resource
import signal
import socket
import time
import types
from typing import Any

from bert_tf.exporting import version_labels
from bert_tf.server import application, running, served_models, server_metrics

import pytest

_UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        # 640 files are reserved, but a third is always for connections.
        (1024, 1024, 384),
        (300, 300, 100),
        # A quarter of 65,536 files, the most the server opens, is reserved.
        (1024, _UNLIMITED, 49_152),
        (_UNLIMITED, _UNLIMITED, 49_152),
        (1024, 4096, 3072),
    ],
)
def test_their_number_depends_on_open_files(monkeypatch, soft, hard, expected):
    limits = [soft, hard]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(
        resource, "setrlimit", lambda _, new: limits.__setitem__(0, new[0])
    )
    assert running._max_connections() == expected


def test_many_new_ones_are_counted_at_once(monkeypatch):
    """Not after a second, when they have used up all files."""
    monkeypatch.setattr(running, "_max_connections", lambda: 384)
    made: list[int] = []
    closed = []
    server = types.SimpleNamespace(
        connections=made, connection_made=lambda new, _: made.append(new)
    )
    runner: Any = types.SimpleNamespace(server=server)
    app: Any = types.SimpleNamespace(
        close_idle=lambda given, most: closed.append((len(given), most))
    )

    async def connect():
        task = asyncio.create_task(running._close_idle(runner, app))
        await asyncio.sleep(0)
        for number in range(130):
            server.connection_made(number, None)
        task.cancel()

    asyncio.run(connect())
    assert made == list(range(130))
    assert closed == [(64, 384), (128, 384)]


class _Connection:
    """A connection of a client; `unread` bytes of an answer wait for it."""

    def __init__(self, unread: int = 0):
        self.is_open = True
        self.transport = types.SimpleNamespace(
            get_write_buffer_size=lambda: unread, abort=self.force_close
        )

    def force_close(self) -> None:
        self.is_open = False


def test_idle_connections_are_closed(monkeypatch):
    """Also those whose header comes a byte at a time."""
    clock = types.SimpleNamespace()
    monkeypatch.setattr(application, "time", clock)
    app = application.Application({}, server_metrics.Metrics(), 1 << 20)
    new, asking, reading = _Connection(), _Connection(), _Connection(unread=9)
    app._idle[asking] = None
    found = []
    for seconds in (0.0, 59.0, 61.0, 599.0, 601.0):
        clock.monotonic = lambda now=seconds: now
        app.close_idle([new, asking, reading], max_connections=3)
        found.append([x.is_open for x in (new, asking, reading)])
    assert found == [
        *[[True, True, True]] * 2,
        *[[False, True, True]] * 2,
        [False, True, False],
    ]


def test_connections_are_kept_for_an_hour_after_an_answer(monkeypatch):
    """Proxies close theirs first; a first request has only a minute."""
    test_utils = pytest.importorskip("aiohttp.test_utils")
    clock = types.SimpleNamespace(monotonic=lambda: 0, perf_counter=lambda: 0)
    monkeypatch.setattr(application, "time", clock)
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def run() -> list[list[bool]]:
        app = application.Application({}, server_metrics.Metrics(), 1 << 20)
        found = []
        async with test_utils.TestServer(app.web) as server:
            writers = []
            for sent in (b"", asked[:-2], asked):
                reader, writer = await asyncio.open_connection(
                    server.host, server.port
                )
                writer.write(sent)
                writers.append(writer)
            await reader.readuntil(b"ok\n")
            connections = server.runner.server.connections
            for seconds in (0, 59, 61, 3629, 3631):
                clock.monotonic = lambda now=seconds: now
                app.close_idle(connections, max_connections=3)
                found.append([x.transport is not None for x in connections])
            for writer in writers:
                writer.close()
        return found

    assert asyncio.run(run()) == [
        *[[True, True, True]] * 2,
        *[[False, False, True]] * 2,
        [False, False, False],
    ]


def test_from_the_start_to_an_end_in_time(monkeypatch):
    """The port is open while models load, and at the end nothing is awaited."""

    class Model:
        """A model that neither loads nor closes."""

        name, path = "m", "x"

        def __init__(self, *_: object):
            pass

        async def update(self) -> None:
            await asyncio.Event().wait()

        async def close(self, seconds: float) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(served_models, "Model", Model)
    ends: list[int] = []
    monkeypatch.setattr(running.os, "_exit", ends.append)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answers = {}

    def ask() -> None:
        for method, path in (
            ("GET", "/healthz"),
            ("GET", "/readyz"),
            ("POST", "/v1/models/m:predict"),
        ):
            client = http.client.HTTPConnection(f"127.0.0.1:{port}")
            with contextlib.closing(client):
                client.request(method, path)
                answer = client.getresponse()
                answers[path] = answer.status, answer.read().decode()

    async def run() -> float:
        settings = running.Settings(port=port, stop_seconds=0.5)
        started: list[str] = []
        serving = asyncio.create_task(
            running._run(
                [version_labels.Served("m", "x")],
                settings,
                started.append,
                None,
                lambda function, *arguments: function(*arguments),
            )
        )
        while not serving.done():
            try:
                await asyncio.to_thread(ask)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
        begin = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(serving, 60)
        assert not started
        return time.monotonic() - begin

    assert asyncio.run(run()) < 20
    assert ends == [0]
    assert answers == {
        "/healthz": (200, "ok\n"),
        "/readyz": (503, "loading\n"),
        "/v1/models/m:predict": (
            503,
            '{"error": "The model m is being loaded"}',
        ),
    }


def test_connections_end_while_the_server_stops():
    """Their next request goes to another server."""
    test_utils = pytest.importorskip("aiohttp.test_utils")

    async def run() -> list[tuple[int, str | None]]:
        app = application.Application({}, server_metrics.Metrics(), 1 << 20)
        app.is_loading = False
        found = []
        server = test_utils.TestServer(app.web)
        async with test_utils.TestClient(server) as client:
            for app.is_stopping in (False, True):
                answer = await client.get("/readyz")
                found.append((answer.status, answer.headers.get("Connection")))
        return found

    assert asyncio.run(run()) == [(200, None), (503, "close")]
