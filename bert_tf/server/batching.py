"""Batches over requests: those that wait are answered together.

Each of the threads, of which there is one by default, runs one batch after the
other. It takes the request that has waited longest, and of those behind it the
ones that are nearest to it in length: so little is padded, and nobody waits for
ever.
"""

import collections
import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert_tf.server import joining
from bert_tf.server.refusals import Refusal
from bert_tf.server.signatures import Signature

import numpy as np

Outputs = dict[str, np.ndarray]
Run = Callable[[Signature, Mapping[str, np.ndarray]], Outputs]


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much is answered together, and how much waits.

    Attributes:
        max_batch_size: Rows of a batch; a request of more is cut where its
            rows can be, and else is one batch.
        batch_timeout: Seconds that a request waits for others when there is
            nothing else to do.
        max_queue: Requests that wait.
        threads: Batches at once.
    """

    max_batch_size: int = 32
    batch_timeout: float = 0.0
    max_queue: int = 256
    threads: int = 1


@dataclasses.dataclass(eq=False)
class _Item:
    """Rows of one request, in a batch as a whole."""

    signature: Signature
    inputs: Mapping[str, np.ndarray]
    rows: int
    length: int
    key: Any  # Items of the same may be joined; None if with none.
    came: float = dataclasses.field(default_factory=time.monotonic)
    future: concurrent.futures.Future = dataclasses.field(
        default_factory=concurrent.futures.Future
    )


class Batcher:
    """Runs what is submitted, in batches, in threads of its own."""

    def __init__(
        self,
        run: Run,
        limits: Limits,
        on_batch: Callable[[int], None] = lambda rows: None,
    ):
        """Starts the threads.

        Args:
            run: Runs a batch, and returns its outputs; it may raise.
            limits: Of a batch and of the queue.
            on_batch: Gets the rows of each batch.
        """
        self._run = run
        self._limits = limits
        self._on_batch = on_batch
        self._waiting: collections.deque[_Item] = collections.deque()
        self._requests = 0  # Submitted, and not answered.
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
        """Requests that wait or are under way."""
        return self._requests

    def submit(
        self, signature: Signature, inputs: Mapping[str, np.ndarray]
    ) -> list[concurrent.futures.Future]:
        """Takes a request; returns the outputs to come of its parts, in order.

        It raises Refusal if too many wait.
        """
        items = self._items(signature, inputs)
        with self._changed:
            if self._is_closed:
                raise Refusal("The model is being unloaded", 503)
            if self._requests >= self._limits.max_queue:
                raise Refusal(
                    "The batch scheduling queue to which this task was "
                    f"submitted is full; {self._requests} requests wait",
                    503,
                )
            self._requests += 1
            items[-1].future.add_done_callback(self._answered)
            self._waiting.extend(items)
            self._changed.notify()
        return [item.future for item in items]

    def close(self) -> None:
        """Ends the threads when all that was submitted is answered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _answered(self, _: concurrent.futures.Future) -> None:
        with self._changed:
            self._requests -= 1

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

    # ---- A thread -----------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                self._wait_for_more()
                # Another thread may have taken all meanwhile.
                batch = self._take() if self._waiting else []
            # A client that has gone is not answered.
            batch = [
                item
                for item in batch
                if item.future.set_running_or_notify_cancel()
            ]
            if batch:
                self._answer(batch)
                del batch

    def _wait_for_more(self) -> None:
        """Waits until a batch is full or the oldest request has waited."""
        until = self._waiting[0].came + self._limits.batch_timeout
        while (
            sum(item.rows for item in self._waiting)
            < self._limits.max_batch_size
            and not self._is_closed
            and (seconds := until - time.monotonic()) > 0
        ):
            self._changed.wait(seconds)

    def _take(self) -> list[_Item]:
        """Takes the oldest item from the queue, and those that fit to it."""
        first = self._waiting[0]
        room = self._limits.max_batch_size - first.rows
        batch = [first]
        if self._may_join(first):
            others = [
                item
                for item in list(self._waiting)[1:]
                if item.key == first.key
            ]
            # Sorted is stable: of equally near ones the oldest.
            others.sort(key=lambda item: abs(item.length - first.length))
            for item in others:
                if item.rows <= room:
                    batch.append(item)
                    room -= item.rows
        taken = set(map(id, batch))
        self._waiting = collections.deque(
            item for item in self._waiting if id(item) not in taken
        )
        return batch

    def _may_join(self, item: _Item) -> bool:
        return item.key is not None and item.signature.name not in self._alone

    def _answer(self, batch: Sequence[_Item]) -> None:
        """Answers items; where they fail together, half of them at a time."""
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
    """Returns the bytes of the longest row's texts."""
    texts = [x for x in inputs.values() if x.dtype == object]
    if not texts:
        return 0
    lengths = [
        [len(value) for value in x.reshape(-1)] for x in texts if x.ndim == 1
    ]
    if not lengths:
        return max(max(map(len, x.reshape(-1)), default=0) for x in texts)
    return max(map(sum, zip(*lengths, strict=True)), default=0)
