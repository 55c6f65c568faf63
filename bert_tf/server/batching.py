"""Batches across requests: waiting requests are answered together.

Each thread (one by default) runs one batch at a time. Requests take turns: the
next rows of the current request start a batch, and the requests most similar in
length fill it. This keeps padding low, starves no request, and a request of a
million rows delays others by one batch at a time.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

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
        max_batch_size: Max rows of a batch. A larger request is split if the
            outputs can be joined; otherwise it is one batch.
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


class _Item(NamedTuple):
    """Rows of one request that run in the same batch.

    Attributes:
        request: The request.
        start: The number of its first row.
        inputs: The rows.
        rows: Their number.
        length: Size in bytes of the longest row's texts.
    """

    request: "_Request"
    start: int
    inputs: Mapping[str, np.ndarray]
    rows: int
    length: int


class _Request:
    """A request, which is cut into items only as they are taken.

    To cut a million rows beforehand would take seconds, during which no other
    request is answered.

    Attributes:
        signature: The signature to run.
        key: Requests with equal keys may be joined; None is never joined.
        rows: The number of its rows.
        waiting: The number of rows that are not taken.
        came: When it was submitted.
        future: Its outputs.
    """

    def __init__(
        self,
        signature: Signature,
        inputs: Mapping[str, np.ndarray],
        most: int | None,
    ):
        """Cuts items of at most `most` rows if their outputs can be joined."""
        rows = joining.rows_of(inputs)
        self.signature = signature
        self.key: tuple | None = None
        self.rows = self.waiting = self._size = joining.max_rows_of(inputs)
        if rows and signature.has_rows:
            shapes = sorted((name, x.shape[1:]) for name, x in inputs.items())
            self.key = (signature.name, *shapes)
            if most and joining.runs_in_parts(signature):
                self._size = most
        self.came = time.monotonic()
        self.future: concurrent.futures.Future = concurrent.futures.Future()
        self._inputs = inputs
        self._next: _Item | None = None
        self._parts: dict[int, Outputs] = {}  # By the number of the first row.
        self._missing = self.rows
        self._lock = threading.Lock()

    @property
    def next(self) -> _Item:
        """The next item."""
        if self._next is None:
            start, length = self.rows - self.waiting, 0
            rows, part = min(self._size, self.waiting), self._inputs
            if self.key is not None:
                end = start + rows
                part = {name: x[start:end] for name, x in part.items()}
                length = _length(part)
            self._next = _Item(self, start, part, rows, length)
        return self._next

    def take(self) -> _Item:
        """Returns the next item, and proceeds to the one after it."""
        item, self._next = self.next, None
        self.waiting -= item.rows
        return item

    def answer(self, item: _Item, outputs: Outputs) -> _Item | None:
        """Adds the outputs of an item; the last item completes the future.

        If the outputs of the items can't be joined, returns the whole request
        as one item, to run it instead.
        """
        if item.rows == self.rows:
            self._complete(outputs)
            return None
        with self._lock:
            self._parts[item.start] = outputs
            self._missing -= item.rows
            if self._missing:
                return None
        starts = sorted(self._parts)
        sizes = np.diff([*starts, self.rows]).tolist()
        parts = [self._parts.pop(start) for start in starts]
        try:
            found = joining.join_parts(self.signature, sizes, parts)
        except Exception as error:  # The thread must survive.
            self.fail(error)
            return None
        if found is None:
            return _Item(self, 0, self._inputs, self.rows, 0)
        self._complete(found)
        return None

    def _complete(self, outputs: Outputs) -> None:
        # It may have been cancelled.
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_result(outputs)

    def fail(self, error: Exception) -> None:
        """Ends the request with an error, unless it has ended."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_exception(error)


def check_rows(inputs: Mapping[str, np.ndarray], max_rows: int) -> None:
    """Raises Refusal if a request has too many rows."""
    rows = joining.max_rows_of(inputs)
    if rows > max_rows:
        raise Refusal(
            f"A request must have at most {max_rows} rows. Send fewer rows at "
            "a time, or start the server with a larger --max_queued_rows. "
            f"Received: {rows} rows",
            413,
        )


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
        self._rows = 0  # Waiting rows of all requests in the queue.
        self._requests = 0  # Submitted, but unanswered.
        self._is_closed = False
        self._changed = threading.Condition()
        # Signatures whose outputs could not be split or joined.
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
    ) -> concurrent.futures.Future:
        """Queues a request; returns the future of its outputs.

        Cancelling the future withdraws the request. Raises Refusal if the
        request has too many rows, or if the queue is full.
        """
        is_alone = signature.name in self._alone
        size = None if is_alone else self._limits.max_batch_size
        request = _Request(signature, inputs, size)
        most = self._limits.max_queued_rows
        check_rows(inputs, most)
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
        # Not the request itself: future and request would refer to each other,
        # and arrays would stay in memory until the garbage collector runs.
        done = functools.partial(self._done, id(request))
        request.future.add_done_callback(done)
        return request.future

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
        for request in waiting:
            request.fail(Refusal("The server is stopping", 503))

    def _done(self, number: int, _: concurrent.futures.Future) -> None:
        """Withdraws the rest of a request that failed or was cancelled."""
        with self._changed:
            self._requests -= 1
            request = self._queue.pop(number, None)
            if request:
                self._rows -= request.waiting

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
                if self._queue:
                    self._changed.notify()  # for the rest of a large request
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
        if request.waiting:  # Moves the request to the end of the queue.
            self._queue[id(request)] = request
        batch = [first]
        room = self._limits.max_batch_size - first.rows
        name = request.signature.name
        if not room or request.key is None or name in self._alone:
            return batch
        others = [
            other
            for other in self._queue.values()
            if other is not request and other.key == request.key
        ]
        # The sort is stable, so the oldest of equally similar requests is
        # first.
        others.sort(key=lambda other: abs(other.next.length - first.length))
        for other in others:
            if other.next.rows <= room:
                batch.append(self._next_item(other, keep=True))
                room -= batch[-1].rows
        return batch

    def _next_item(self, request: _Request, keep: bool = False) -> _Item:
        """Takes an item; with `keep`, an unfinished request keeps its turn."""
        item = request.take()
        self._rows -= item.rows
        if not (keep and request.waiting):
            del self._queue[id(request)]
        return item

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answers items; if they fail together, retries halves of the batch."""
        sizes = [item.rows for item in batch]
        signature = batch[0].request.signature
        try:
            inputs = joining.join([item.inputs for item in batch])
            outputs = self._run(signature, inputs)
            self._on_batch(sum(sizes))
            parts: Iterable[Outputs] | None = [outputs]
            if len(batch) > 1:
                parts = joining.split(signature, inputs, outputs, sizes)
        except Exception as error:
            if len(batch) == 1:
                batch[0].request.fail(error)
                return
            middle = len(batch) // 2
            self._answer(batch[:middle])
            self._answer(batch[middle:])
            return
        if parts is None:
            self._alone.add(signature.name)
            for item in batch:
                self._answer([item])
            return
        for item, part in zip(batch, parts, strict=True):
            whole = item.request.answer(item, part)
            if whole is not None:
                self._alone.add(signature.name)
                self._answer([whole])


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
