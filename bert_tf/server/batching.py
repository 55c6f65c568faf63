"""Batches across requests: waiting requests are answered together.

Each thread (one by default) runs one batch at a time. Requests take turns: the
next rows of the current request start a batch, and the requests most similar in
length fill it. This keeps padding low, starves no request, and a request of a
million rows delays others by one batch at a time.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert_tf.server import joining
from bert_tf.server.refusals import Refusal
from bert_tf.server.signature_defs import Signature

import numpy as np

Outputs = dict[str, np.ndarray]
Run = Callable[[Signature, Mapping[str, np.ndarray]], Outputs]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of batches and of the queue.

    Attributes:
        max_batch_size: Max rows of a batch. A larger request is split if its
            rows are independent; otherwise it is one batch.
        batch_timeout: Seconds that a request waits for others when the model is
            idle.
        max_queue: Max number of waiting requests.
        max_queued_rows: Max rows of all waiting requests.
        threads: Number of parallel batches.
    """

    max_batch_size: int = 32
    batch_timeout: float = 0.0
    max_queue: int = 256
    max_queued_rows: int = 65_536
    threads: int = 1


@dataclasses.dataclass(eq=False)
class _Item:
    """Rows of one request that run in the same batch."""

    signature: Signature
    inputs: Mapping[str, np.ndarray]
    rows: int
    length: int
    key: Any  # Items with equal keys may be joined; None is never joined.
    future: concurrent.futures.Future = dataclasses.field(
        default_factory=concurrent.futures.Future
    )


class _Request:
    """The waiting items of a request, and the number of unanswered ones."""

    def __init__(self, items: Sequence[_Item]):
        self.items = collections.deque(items)
        self.rows = sum(item.rows for item in items)
        self.unanswered = len(items)
        self.came = time.monotonic()


class Batcher:
    """Runs submitted requests in batches, in its own threads."""

    def __init__(
        self,
        run: Run,
        limits: Limits,
        on_batch: Callable[[int], None] = lambda rows: None,
    ):
        """Starts the threads.

        Args:
            run: Runs a batch and returns its outputs; may raise.
            limits: Limits of batches and of the queue.
            on_batch: Called with the number of rows of each batch.
        """
        self._run = run
        self._limits = limits
        self._on_batch = on_batch
        # In order of turns; a dict, for removal from its middle.
        self._queue: dict[int, _Request] = {}
        self._rows = 0  # Rows of all items in the queue.
        self._requests = 0  # Submitted, but unanswered.
        self._is_closed = False
        self._changed = threading.Condition()
        # Signatures whose outputs could not be split.
        self._alone: set[str] = set()
        self._threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(limits.threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting and running requests."""
        return self._requests

    def submit(
        self, signature: Signature, inputs: Mapping[str, np.ndarray]
    ) -> list[concurrent.futures.Future]:
        """Queues a request; returns the futures of its parts, in order.

        Cancelling one of them withdraws the request. Raises Refusal if the
        request has too many rows, or if the queue is full.
        """
        items = self._items(signature, inputs)
        request = _Request(items)
        most = self._limits.max_queued_rows
        if request.rows > most:
            raise Refusal(
                f"A request must have at most {most} rows. Send fewer rows at "
                "a time, or start the server with a larger --max_queued_rows. "
                f"Received: {request.rows} rows",
                413,
            )
        with self._changed:
            if self._is_closed:
                raise Refusal("The model is being unloaded", 503)
            if self._requests >= self._limits.max_queue:
                raise Refusal(
                    "The batch scheduling queue to which this task was "
                    f"submitted is full; {self._requests} requests wait",
                    503,
                )
            if self._queue and self._rows + request.rows > most:
                raise Refusal(
                    "The batch scheduling queue to which this task was "
                    f"submitted is full; {self._rows} rows wait",
                    503,
                )
            self._requests += 1
            self._rows += request.rows
            self._queue[id(request)] = request
            self._changed.notify()
        for item in items:
            item.future.add_done_callback(
                functools.partial(self._done, request)
            )
        return [item.future for item in items]

    def close(self, seconds: float | None = None) -> None:
        """Stops the threads once all submitted requests are answered.

        Args:
            seconds: Timeout; requests still waiting then are rejected, and a
                running batch is abandoned. None for no timeout.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        until = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            thread.join(until and max(0, until - time.monotonic()))
        with self._changed:
            waiting = list(self._queue.values())
            items = [item for request in waiting for item in request.items]
            for request in waiting:
                self._withdraw(request)
        for item in items:
            if item.future.set_running_or_notify_cancel():
                item.future.set_exception(
                    Refusal("The server is stopping", 503)
                )

    def _done(
        self, request: _Request, future: concurrent.futures.Future
    ) -> None:
        """Counts an answered item; withdraws the request if it is cancelled."""
        with self._changed:
            request.unanswered -= 1
            if not request.unanswered:
                self._requests -= 1
            if not future.cancelled():
                return
            items = list(request.items)
            self._withdraw(request)
        for item in items:
            item.future.cancel()

    def _withdraw(self, request: _Request) -> None:
        """Removes the waiting items of a request from the queue."""
        self._rows -= sum(item.rows for item in request.items)
        request.items.clear()
        self._queue.pop(id(request), None)

    def _items(
        self, signature: Signature, inputs: Mapping[str, np.ndarray]
    ) -> list[_Item]:
        rows = joining.rows_of(inputs)
        if not rows or not signature.has_rows:
            return [_Item(signature, inputs, rows or 1, 0, None)]
        key = (
            signature.name,
            *sorted((name, x.shape[1:]) for name, x in inputs.items()),
        )
        size = self._limits.max_batch_size
        if not signature.has_fixed_widths:
            size = rows
        parts = [
            {name: x[start : start + size] for name, x in inputs.items()}
            for start in range(0, rows, size)
        ]
        return [
            _Item(
                signature,
                part,
                len(next(iter(part.values()))),
                _length(part),
                key,
            )
            for part in parts
        ]

    # ---- Threads ------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_closed)
                if not self._queue:
                    return
                self._wait_for_more()
                # Another thread may have emptied the queue meanwhile.
                batch = self._take() if self._queue else []
            # Disconnected clients get no answer.
            batch = [
                item
                for item in batch
                if item.future.set_running_or_notify_cancel()
            ]
            if batch:
                self._answer(batch)
                del batch

    def _wait_for_more(self) -> None:
        """Waits until a batch is full or the first request times out."""
        until = next(iter(self._queue.values())).came
        until += self._limits.batch_timeout
        while (
            self._rows < self._limits.max_batch_size
            and not self._is_closed
            and (seconds := until - time.monotonic()) > 0
        ):
            self._changed.wait(seconds)

    def _take(self) -> list[_Item]:
        """Takes the next item of the current request, and items that fit."""
        request = next(iter(self._queue.values()))
        first = self._next_item(request)
        if request.items:  # Moves the request to the end of the queue.
            self._queue[id(request)] = request
        batch = [first]
        room = self._limits.max_batch_size - first.rows
        if not room or not self._may_join(first):
            return batch
        others = [
            other
            for other in self._queue.values()
            if other is not request and other.items[0].key == first.key
        ]
        # The sort is stable, so the oldest of equally similar requests is
        # first.
        others.sort(key=lambda other: abs(other.items[0].length - first.length))
        for other in others:
            if other.items[0].rows <= room:
                batch.append(self._next_item(other, keep=True))
                room -= batch[-1].rows
        return batch

    def _next_item(self, request: _Request, keep: bool = False) -> _Item:
        """Takes an item; with `keep`, an unfinished request keeps its turn."""
        item = request.items.popleft()
        self._rows -= item.rows
        if not (keep and request.items):
            del self._queue[id(request)]
        return item

    def _may_join(self, item: _Item) -> bool:
        return item.key is not None and item.signature.name not in self._alone

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answers items; if they fail together, retries halves of the batch."""
        sizes = [item.rows for item in batch]
        try:
            inputs = joining.join([item.inputs for item in batch])
            outputs = self._run(batch[0].signature, inputs)
            self._on_batch(sum(sizes))
            parts: Iterable[Outputs] | None = [outputs]
            if len(batch) > 1:
                parts = joining.split(
                    batch[0].signature, inputs, outputs, sizes
                )
        except Exception as error:
            if len(batch) == 1:
                batch[0].future.set_exception(error)
                return
            middle = len(batch) // 2
            self._answer(batch[:middle])
            self._answer(batch[middle:])
            return
        if parts is None:
            self._alone.add(batch[0].signature.name)
            for item in batch:
                self._answer([item])
            return
        for item, part in zip(batch, parts, strict=True):
            item.future.set_result(part)


def _length(inputs: Mapping[str, np.ndarray]) -> int:
    """Returns the size in bytes of the longest row's texts."""
    texts = [x for x in inputs.values() if x.dtype == object]
    if not texts:
        return 0
    lengths = [
        [len(value) for value in x.reshape(-1)] for x in texts if x.ndim == 1
    ]
    if not lengths:
        return max(max(map(len, x.reshape(-1)), default=0) for x in texts)
    return max(map(sum, zip(*lengths, strict=True)), default=0)
