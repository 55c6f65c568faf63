"""A server in a separate process, and a client of the standard library."""

import contextlib
import http.client
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests import processes, scripts

import tensorflow as tf


class Server:
    """A running server."""

    def __init__(self, run: scripts.Run, address: str):
        """Takes the process, and `host:port`."""
        self.run = run
        self.address = address

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Returns the status and the body of an answer."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def get(self, path: str) -> tuple[int, Any]:
        """Returns the status of an answer, and its JSON value."""
        status, body = self.ask("GET", path)
        return status, json.loads(body)

    def post(self, path: str, asked: Any) -> tuple[int, Any]:
        """Posts bytes, or a value as JSON."""
        body = asked if isinstance(asked, bytes) else json.dumps(asked)
        status, answer = self.ask("POST", path, body)
        return status, json.loads(answer)


def write_model(
    folder: pathlib.Path, serve: Callable[[tf.Tensor], dict[str, tf.Tensor]]
) -> None:
    """Writes a SavedModel that loads at once, for tests of versions.

    Args:
        folder: The folder of the version.
        serve: Maps texts, the input `text_a`, to named outputs.
    """
    module = tf.Module()
    # Its values are in files, as those of any model.
    module.weight = tf.Variable(1.0)
    texts = tf.TensorSpec([None], tf.string, "text_a")
    module.serve = tf.function(serve, [texts])
    tf.saved_model.save(module, str(folder), module.serve)


@contextlib.contextmanager
def start(folder: pathlib.Path, *flags: str) -> Iterator[Server]:
    """Runs a server in this context; it must exit without an error."""
    run = scripts.start(folder, "run_server", "--port=0", *flags)
    try:
        address = _address(run, folder / "stderr")
        yield Server(run, address)
    except BaseException:
        run.kill()
        raise
    if run.poll() is None:
        run.kill(15)
    assert run.wait(60) == 0, run.stderr


def _address(run: scripts.Run, errors: pathlib.Path) -> str:
    def find() -> re.Match[str] | None:
        if not errors.exists():
            return None
        return re.search(r"Serving \S.* at http://(\S+)", run.stderr)

    return processes.wait_for(find, run, 120)[1]
