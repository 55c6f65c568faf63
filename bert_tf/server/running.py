"""Starts the server, and stops it on a signal."""

import asyncio
import dataclasses
import functools
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.server import application, batching, served_models, server_metrics

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

_LOG = logging.getLogger("bert_tf.server")
# aiohttp logs a traceback for each client that disconnects or does not speak
# HTTP. Our own errors are logged where they are caught.
_OF_CONNECTIONS = logging.getLogger("bert_tf.server.connections")
_OF_CONNECTIONS.setLevel(logging.CRITICAL)
_GRACE_SECONDS = 1.0  # to end threads when nobody waits for answers


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the server.

    Attributes:
        port: The port; 0 for any free one.
        max_request_bytes: Max size of a body.
        poll_seconds: Interval between checks for new versions; 0 for none.
        stop_seconds: Timeout for requests in progress when stopping.
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
    places: Sequence[served_models.Place],
    settings: Settings,
    started: Callable[[str], None],
    reread: Callable[[], Sequence[served_models.Place]] | None = None,
) -> None:
    """Serves models until SIGTERM or SIGINT, then answers pending requests.

    `places` are the models. `started` is called with the server's address once
    it accepts requests. If the models' versions and labels can change, `reread`
    returns the current `places`.

    Raises:
        InputError: A model can't be loaded, or the port is taken.
    """
    asyncio.run(_run(places, settings, started, reread))


async def _run(
    places: Sequence[served_models.Place],
    settings: Settings,
    started: Callable[[str], None],
    reread: Callable[[], Sequence[served_models.Place]] | None,
) -> None:
    stop = asyncio.Event()
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
        _LOG.info("Stopping: requests under way are answered first.")
    finally:
        app.is_stopping = True
        for task in tasks:
            task.cancel()
        await _stop(runner, served, settings.stop_seconds)


async def _stop(
    runner: web.AppRunner,
    served: Mapping[str, served_models.Model],
    seconds: float,
) -> None:
    """Answers pending requests; ends the process after a timeout."""
    until = time.monotonic() + seconds
    await runner.cleanup()
    left = max(0, until - time.monotonic()) + _GRACE_SECONDS
    closing = asyncio.gather(*(x.close(left) for x in served.values()))
    done, _ = await asyncio.wait([closing], timeout=left + _GRACE_SECONDS)
    if done:
        closing.result()
        return
    # A batch that runs in TensorFlow can't be interrupted, and would keep the
    # process alive.
    _LOG.warning("Stopping without the answer of a batch that still runs.")
    logging.shutdown()
    os._exit(0)


async def _close_idle(
    runner: web.AppRunner, app: application.Application
) -> None:
    while True:
        await asyncio.sleep(1)
        if runner.server:
            app.close_idle(runner.server.connections)


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
    reread: Callable[[], Sequence[served_models.Place]],
    served: Mapping[str, served_models.Model],
    seconds: float,
) -> None:
    """Updates the `Place` of each model; the set of models cannot change."""
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
