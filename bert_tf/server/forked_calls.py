"""Calls functions in forked processes.

json parses and formats a document in one call, and holds Python's lock for all
of it: seconds for a document of millions of values, during which the server
would answer nobody. A process has its own lock.
"""

import contextlib
import gc
import io
import logging
import os
import pathlib
import pickle
import select
import signal
import socket
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from bert_tf.server.refusals import Refusal

_LOG = logging.getLogger("bert_tf.server")


class ForkedCalls:
    """Calls functions in worker processes, one for each call at a time.

    A worker is reused. One that ends, for example because the system is out of
    memory, is replaced. As a process with threads should not fork, a process
    without any is forked at the start, and forks the workers. All end with the
    process that creates this object, even if it is killed.
    """

    def __init__(self):
        """Forks; call it before threads are started."""
        self._parent, ours = socket.socketpair()
        self._lock = threading.Lock()
        # Streams to idle workers, and their descriptors.
        self._idle: list[tuple[io.BufferedRWPair, int]] = []
        # Searches for garbage would write to the memory that processes share.
        gc.freeze()
        with warnings.catch_warnings():
            # Libraries start threads when they are imported. The processes
            # use none of their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            is_child = os.fork() == 0
        if is_child:
            try:
                self._parent.close()
                _fork_workers(ours)
            finally:
                os._exit(1)
        ours.close()

    def call(self, function: Callable, *arguments: Any) -> Any:
        """Calls a function of a module, and returns its result.

        Arguments, result and errors are pickled. This thread releases Python's
        lock after each 64 KiB of them, the size of a frame of pickle.

        Raises:
            Refusal: The process ended.
            Exception: The function's error.
        """
        try:
            stream, number = self._take()
        except OSError as error:
            _LOG.error(
                "No process could be started for a large request (%s): it is "
                "handled in this one, and delays others.",
                error,
            )
            return function(*arguments)
        try:
            _dump((function, arguments), stream)
            has_failed, result = pickle.load(stream)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            _LOG.error("A process that parses large bodies ended: %s", error)
            with contextlib.suppress(OSError):  # close() flushes.
                stream.close()
            raise Refusal(
                "The process that parsed the request, or formatted the answer, "
                "has ended. The server may lack memory: send fewer rows at a "
                "time",
                503,
            ) from None
        with self._lock:
            self._idle.append((stream, number))
        if has_failed:
            raise result
        return result

    def close(self) -> None:
        """Ends the processes."""
        self._parent.close()
        for stream, _ in self._idle:
            stream.close()

    def _take(self) -> tuple[io.BufferedRWPair, int]:
        """Returns a stream to an idle or a new worker, and its descriptor."""
        with self._lock:
            while self._idle:
                stream, number = self._idle.pop()
                if not _is_readable(number):
                    return stream, number
                # An idle worker sends nothing: it has ended.
                with contextlib.suppress(OSError):
                    stream.close()
            ours, theirs = socket.socketpair()
            with ours, theirs:
                socket.send_fds(self._parent, [b"f"], [theirs.fileno()])
                return ours.makefile("rwb"), ours.fileno()


def _is_readable(number: int) -> bool:
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


def _dump(value: Any, stream: io.BufferedRWPair) -> None:
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    # Without the table of all objects, which holds the lock when it grows.
    pickler.fast = True
    pickler.dump(value)
    stream.flush()


def _fork_workers(parent: socket.socket) -> None:
    """Forks a worker for each socket received, until the parent ends."""
    os.setsid()
    # The parent stops its children, also if a service manager signals all.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        # Linux ends these processes first if memory runs out, not the server.
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    while True:
        _, files, _, _ = socket.recv_fds(parent, 1, 1)
        if not files:
            os.killpg(0, signal.SIGKILL)
        # If the system allows no more processes, `call` sees a closed socket.
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                parent.close()
                _work(socket.socket(fileno=files[0]))
        os.close(files[0])


def _work(connection: socket.socket) -> None:
    """Calls functions until the connection is closed."""
    gc.disable()  # It would search millions of values, again and again.
    try:
        with connection, connection.makefile("rwb") as stream:
            while True:
                function, arguments = pickle.load(stream)
                answer: tuple[bool, Any]
                try:
                    answer = (False, function(*arguments))
                except MemoryError:
                    return  # `call` rejects the request.
                except Exception as error:
                    if not isinstance(error, Refusal):
                        error.add_note(traceback.format_exc())
                    answer = (True, error)
                _dump(answer, stream)
                del arguments, answer
                gc.collect()
    finally:
        os._exit(0)
