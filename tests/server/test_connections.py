"""How many connections the server keeps open."""

import asyncio
import resource
import types
from typing import Any

from bert_tf.server import running

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
