"""Starts the server, and stops it on a signal."""

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.exporting import version_labels
from bert_tf.server import (
    application,
    batching,
    forked_calls,
    served_models,
    server_metrics,
)

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

_LOG = logging.getLogger("bert_tf.server")
# aiohttp logs a traceback for each client that disconnects or does not speak
# HTTP. Our own errors are logged where they are caught.
_OF_CONNECTIONS = logging.getLogger("bert_tf.server.connections")
_OF_CONNECTIONS.setLevel(logging.CRITICAL)
# Max open files of the process, if the system allows it. Some are reserved for
# other uses, and for the connections that asyncio accepts (128 at a time)
# before surplus ones are closed: if no file can be opened, it accepts nothing
# for a second.
_MAX_FILES, _OTHER_FILES = 65_536, 128 + 4 * 128
_MIN_NEW_CONNECTIONS = 64  # between checks of their number
_GRACE_SECONDS = 1.0  # to reject requests and to end threads
_EXIT_SECONDS = 0.5  # for the system to free the memory of the process


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the server.

    Attributes:
        port: The port; 0 for any free one.
        max_request_bytes: Max size of a body.
        poll_seconds: Interval between checks for new versions; 0 for none.
        stop_seconds: Timeout to end, which includes the last 1.5 seconds, to
            end threads and the process when nobody waits for answers.
        access_log: Whether to log each request.
        cors_origins: Origins whose pages may read answers; "*" for all.
        allowed_hosts: Other host names of a server at a loopback address.
        allow_unsafe_ops: Whether models may touch files and the host.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    limits: batching.Limits = batching.Limits()  # noqa: RUF009 (frozen)
    max_request_bytes: int = 8 << 20
    poll_seconds: float = 2.0
    stop_seconds: float = 60.0
    access_log: bool = False
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allow_unsafe_ops: bool = False


def run(
    places: Sequence[version_labels.Served],
    settings: Settings,
    started: Callable[[str], None],
    reread: Callable[[], Sequence[version_labels.Served]] | None = None,
) -> None:
    """Serves models until SIGTERM or SIGINT, which ends the process.

    Pending requests are answered first.

    `places` are the models. `started` is called with the server's address once
    it accepts requests. If the models' versions and labels can change, `reread`
    returns the current `places`.

    Raises:
        InputError: A model can't be loaded, or the port is taken.
    """
    call = forked_calls.ForkedCalls().call  # Before any thread is started.
    asyncio.run(_run(places, settings, started, reread, call))


async def _run(
    places: Sequence[version_labels.Served],
    settings: Settings,
    started: Callable[[str], None],
    reread: Callable[[], Sequence[version_labels.Served]] | None,
    call: application.Call,
) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(_log_loop_error)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    counts = server_metrics.Metrics()
    served = {
        place.name: served_models.Model(
            place, settings.limits, counts.on_batch, settings.allow_unsafe_ops
        )
        for place in places
    }
    app = application.Application(
        served,
        counts,
        settings.max_request_bytes,
        settings.host,
        settings.cors_origins,
        settings.allowed_hosts,
        call,
    )
    runner = web.AppRunner(
        app.web,
        handler_cancellation=True,
        access_log_class=_AccessLog,
        access_log=_LOG if settings.access_log else None,
        logger=_OF_CONNECTIONS,
        shutdown_timeout=settings.stop_seconds,
        auto_decompress=False,  # The application does it, up to a limit.
    )
    await runner.setup()
    tasks = []
    try:
        await _listen(runner, settings)
        tasks = [asyncio.create_task(_close_idle(runner, app))]
        # Clients can already see that models are loading, and errors.
        loading = asyncio.gather(*(x.update() for x in served.values()))
        if await _comes_first(stop, loading):
            return
        app.is_loading = False
        for name, model in served.items():
            counts.watch(name, functools.partial(getattr, model, "waiting"))
        host, port = runner.addresses[0][:2]
        started(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        if settings.poll_seconds:
            tasks += [
                asyncio.create_task(_poll(model, settings.poll_seconds))
                for model in served.values()
            ]
        if settings.poll_seconds and reread:
            following = _follow(reread, served, settings.poll_seconds)
            tasks.append(asyncio.create_task(following))
        await stop.wait()
        _LOG.info("Stopping: finishing open requests first.")
    finally:
        app.is_stopping = True
        for task in tasks:
            task.cancel()
        await _stop(runner, served, settings.stop_seconds)
        if stop.is_set() and sys.exception() is None:
            # Python would take seconds to unload TensorFlow, and would wait for
            # a batch that runs or a model that is being loaded.
            logging.shutdown()
            os._exit(0)


async def _stop(
    runner: web.AppRunner,
    served: Mapping[str, served_models.Model],
    seconds: float,
) -> None:
    """Answers pending requests, and rejects those left after a timeout.

    aiohttp waits for as long again after its timeout, for handlers to end; so
    their requests are rejected.
    """
    total = max(seconds, _GRACE_SECONDS)
    total -= min(_EXIT_SECONDS, total / 2)
    until = time.monotonic() + total
    grace = min(_GRACE_SECONDS, total / 2)
    cleaning = asyncio.create_task(runner.cleanup())
    all_answered, _ = await asyncio.wait(
        [cleaning], timeout=min(seconds, total - grace)
    )
    closing = asyncio.gather(*(x.close(grace / 2) for x in served.values()))
    works: list[asyncio.Future[Any]] = [closing, cleaning]
    left = max(0, until - time.monotonic())
    _, pending = await asyncio.wait(works, timeout=left)
    if pending or not all_answered:
        _LOG.warning("Stopping: some requests may not have been answered.")
    for work in works:
        if work not in pending:
            work.result()


async def _close_idle(
    runner: web.AppRunner, app: application.Application
) -> None:
    """Closes idle connections, before they use up the files of the process."""
    max_connections = _max_connections()
    server = runner.server
    if server is None:
        return

    def close_idle() -> None:
        app.close_idle(server.connections, max_connections)

    step = max(_MIN_NEW_CONNECTIONS, max_connections // 8)
    numbers = itertools.count(1)
    on_connection = server.connection_made

    def connection_made(handler: Any, transport: Any) -> None:
        on_connection(handler, transport)
        if next(numbers) % step == 0:
            close_idle()

    # aiohttp has no hook for new connections, and a loop that looks once a
    # second sees them too late. mypy allows no new method of an object.
    server.connection_made = connection_made  # type: ignore[method-assign]
    while True:
        await asyncio.sleep(1)
        close_idle()


def _max_connections() -> int:
    """Raises the limit of open files; returns the number of connections."""
    limit = resource.RLIMIT_NOFILE
    soft, hard = resource.getrlimit(limit)
    bounded = [x for x in (hard, _MAX_FILES) if x != resource.RLIM_INFINITY]
    if soft not in (resource.RLIM_INFINITY, hard):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (max(soft, min(bounded)), hard))
        soft, _ = resource.getrlimit(limit)
    if soft == resource.RLIM_INFINITY:
        soft = _MAX_FILES
    return max(min(soft - _OTHER_FILES, soft * 3 // 4), soft // 3)


async def _comes_first(stop: asyncio.Event, work: asyncio.Future) -> bool:
    """Waits for work or the stop signal; returns whether work was first."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait([stopped, work], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not work.done():
        work.cancel()
        return True
    work.result()
    return False


async def _listen(runner: web.AppRunner, settings: Settings) -> None:
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"The server can't listen: {error}. Choose another --port or "
            f"--host. Received: host={settings.host}, port={settings.port}"
        ) from None


async def _poll(model: served_models.Model, seconds: float) -> None:
    """Checks for new versions periodically."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await model.update()
        except Exception:
            # For example a bucket that is unreachable at the moment.
            _LOG.exception("Looking for versions of %s failed", model.name)


async def _follow(
    reread: Callable[[], Sequence[version_labels.Served]],
    served: Mapping[str, served_models.Model],
    seconds: float,
) -> None:
    """Updates the `place` of each model; the set of models cannot change."""
    told = ""
    while True:
        await asyncio.sleep(seconds)
        problem = ""
        try:
            places = {x.name: x for x in await asyncio.to_thread(reread)}
        except Exception as error:
            is_foreseen = isinstance(error, InputError)
            _log_once(told, str(error), None if is_foreseen else error)
            told = str(error)
            continue
        known = {name: model.path for name, model in served.items()}
        if {name: place.path for name, place in places.items()} != known:
            problem = (
                "Other models, or folders of models, are listed than are "
                "served: that needs a start of the server."
            )
        _log_once(told, problem)
        told = problem
        for name, place in places.items():
            if known.get(name) == place.path:
                served[name].place = place


def _log_loop_error(
    loop: asyncio.AbstractEventLoop, context: dict[str, Any]
) -> None:
    """Logs that no file can be opened in a line, other errors as usual."""
    error = context.get("exception")
    if not isinstance(error, OSError):
        loop.default_exception_handler(context)
        return
    _LOG.error("%s: %s", context["message"], error)


def _log_once(
    told: str, problem: str, error: BaseException | None = None
) -> None:
    if problem and problem != told:
        _LOG.error("models.config is not followed: %s", problem, exc_info=error)


class _AccessLog(AbstractAccessLogger):
    """Logs a line for each request."""

    def log(self, request, response, time):
        self.logger.info(
            "%s %s %s %d %.1f ms",
            request.remote,
            request.method,
            request.path,
            response.status,
            1000 * time,
        )
