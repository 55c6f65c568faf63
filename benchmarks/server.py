"""Times run_server.py with many clients, relative to a single client.

    python -m benchmarks.server --config=configs/models/mini.json
    python -m benchmarks.server --config=configs/models/tiny.json \
        --memory_requests=100000

The model is a classifier with random weights. A request is a text of 1 to 100
words, most of them short. First, one client sends requests one after the other;
then many clients run in parallel, each sending its next request as soon as it
is answered; then the same number of clients send three times the request rate
of the single client in total. Prints requests/s and latencies in milliseconds,
and their ratios to the single client's; then the server's memory during
--memory_requests requests. Clients share the processors with the server, so
they are minimal: sockets that write prepared bytes.
"""

import asyncio
import contextlib
import dataclasses
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence

from benchmarks import commands
from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.vocabularies import word_pieces

import numpy as np
from absl import app, flags

_CONFIG = flags.DEFINE_string(
    "config", "configs/models/mini.json", "A bert_config.json."
)
_REQUESTS = flags.DEFINE_integer(
    "requests", 10_000, "Of all clients; the one asks a tenth of them.", 10
)
_CLIENTS = flags.DEFINE_integer("clients", 64, "At once.", 1)
_MEMORY_REQUESTS = flags.DEFINE_integer(
    "memory_requests", 0, "Then so many more, to look at the memory.", 0
)
_SERVER_FLAGS = flags.DEFINE_multi_string(
    "server_flag", [], "Such as --max_batch_size=64."
)
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_LONGEST, _USUAL = 100, 15  # words
_LENGTH = 128
_RATE = 3  # times the rate of one client
_LOOKS = 10  # memory measurements


@dataclasses.dataclass(frozen=True)
class Load:
    """The measurements of a load: requests/s, and seconds of each request."""

    rate: float
    latencies: list[float]

    @property
    def median(self) -> float:
        """The median latency, in seconds."""
        return statistics.median(self.latencies)

    def __str__(self):
        """Formats a row of the table."""
        p99 = float(np.quantile(self.latencies, 0.99))
        return (
            f"{self.rate:8.1f} per second, median {1000 * self.median:7.1f} "
            f"ms, 99th percentile {1000 * p99:7.1f} ms"
        )


def _export(folder: str) -> None:
    """Exports a classifier with random weights."""
    config = modeling.BertConfig.from_json_file(
        str(commands.ROOT / _CONFIG.value)
    )
    words = [f"w{i}" for i in range(config.vocab_size - len(_SPECIAL))]
    made = saved_model.classifier(
        heads.BertClassifier(modeling.Bert(config), 2),
        config,
        word_pieces.WordPiece((*_SPECIAL, *words), True),
        ["no", "yes"],
        _LENGTH,
        takes_pairs=False,
    )
    saved_model.save(f"{folder}/model/1", made)


@contextlib.contextmanager
def _serve(folder: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """Runs the server; yields its process and its address."""
    command = [
        *(sys.executable, "run_server.py", "--port=0"),
        *(f"--model={folder}/model", *_SERVER_FLAGS.value),
    ]
    process = subprocess.Popen(
        command, cwd=commands.ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in process.stderr or ():
            found = re.search(r"Serving model at (http://\S+)", line)
            if found:
                yield process, found[1]
                break
        else:
            raise RuntimeError("The server has not started.")
    finally:
        process.terminate()
        process.wait()


def _texts(count: int, seed: int) -> list[str]:
    """Returns texts of mixed lengths, most of them short."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.exponential(_USUAL, count), 1, _LONGEST)
    return [
        " ".join(f"w{i}" for i in rng.integers(0, 1000, int(length)))
        for length in lengths
    ]


def _requests(texts: Sequence[str], address: str) -> list[bytes]:
    """Returns a request for each text, as bytes for a socket."""
    host = urllib.parse.urlsplit(address).netloc
    bodies = [json.dumps({"instances": [text]}).encode() for text in texts]
    return [
        f"POST /v1/models/model:predict HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
        for body in bodies
    ]


async def _answer(reader: asyncio.StreamReader) -> None:
    """Reads an answer; RuntimeError if it is not a success."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"(?i)\r\ncontent-length: (\d+)\r\n", head)
    if not head.startswith(b"HTTP/1.1 200 ") or not found:
        raise RuntimeError(f"The server answers: {head.decode()}")
    await reader.readexactly(int(found[1]))


async def _ask(
    address: str, texts: Sequence[str], clients: int, rate: float
) -> Load:
    """Sends requests; each client sends one after the other.

    Args:
        address: Address of the server.
        texts: One text per request.
        clients: Number of parallel clients.
        rate: Requests per second, at random times; 0 for no pauses.
    """
    parts = urllib.parse.urlsplit(address)
    waiting = iter(_requests(texts, address))
    latencies = []
    rng = np.random.default_rng(1)

    async def client() -> None:
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port
        )
        for request in waiting:
            if rate:
                await asyncio.sleep(rng.exponential(clients / rate))
            start = time.perf_counter()
            writer.write(request)
            await _answer(reader)
            latencies.append(time.perf_counter() - start)
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(len(texts) / (time.perf_counter() - start), latencies)


def _memory(process: subprocess.Popen) -> float:
    """Returns the memory of a process, in MB."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else float("nan")


async def _measure(process: subprocess.Popen, address: str) -> None:
    texts = _texts(_REQUESTS.value, seed=0)
    few = texts[: _REQUESTS.value // 10]
    one = await _ask(address, few, 1, 0)
    print(f"1 client:              {one}")
    many = await _ask(address, texts, _CLIENTS.value, 0)
    print(f"{_CLIENTS.value} clients:            {many}")
    paced = await _ask(address, texts, _CLIENTS.value, _RATE * one.rate)
    print(f"{_CLIENTS.value} at {_RATE} times the rate: {paced}")
    print(f"throughput:     {many.rate / one.rate:.2f} times one client's")
    for load, which in ((many, "of these"), (paced, "at three times")):
        print(f"median {which}: {load.median / one.median:.2f} times")
    await _watch_memory(process, address)


async def _watch_memory(process: subprocess.Popen, address: str) -> None:
    """Prints the memory of the server as it answers more requests."""
    part = _MEMORY_REQUESTS.value // _LOOKS
    if not part:
        return
    print(f"memory: {_memory(process):.0f} MB", end="", flush=True)
    for look in range(_LOOKS):
        await _ask(address, _texts(part, look), _CLIENTS.value, 0)
        print(f", {_memory(process):.0f}", end="", flush=True)
    print(f" after {part} requests each")


def main(_):
    """Runs the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        _export(folder)
        with _serve(folder) as (process, address):
            asyncio.run(_measure(process, address))


if __name__ == "__main__":
    app.run(main)
