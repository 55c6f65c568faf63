"""Starts the server, and stops it when it is told to."""

import asyncio
import dataclasses
import functools
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.server import application, batching, metrics, models

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

_LOG = logging.getLogger("bert_tf.server")
# What aiohttp tells of connections: each client that goes, or sends what is no
# HTTP, would be a traceback. Errors of ours are logged where they are met.
_OF_CONNECTIONS = logging.getLogger("bert_tf.server.connections")
_OF_CONNECTIONS.setLevel(logging.CRITICAL)
_GRACE_SECONDS = 1.0  # to end threads once nobody waits for their answers


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to serve.

    Attributes:
        port: 0 for any that is free.
        max_request_bytes: Of a body.
        poll_seconds: Between two looks for new versions; 0 for none.
        stop_seconds: Longest time to answer what is under way at the stop.
        access_log: Whether each request is logged.
        cors_origins: Origins whose pages may read answers; "*" for all.
        allowed_hosts: Names of a server at a loopback address besides its own.
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


def run(
    places: Sequence[models.Place],
    settings: Settings,
    started: Callable[[str], None],
    reread: Callable[[], Sequence[models.Place]] | None = None,
) -> None:
    """Serves models until SIGTERM or SIGINT; then answers what is under way.

    Args:
        places: The models.
        settings: How.
        started: Gets the server's address when it answers.
        reread: Returns the places as they are said to be now, if that may
            change: other versions and labels are served then.

    Raises:
        InputError: a model can't be loaded, or the port is taken.
    """
    asyncio.run(_run(places, settings, started, reread))


async def _run(
    places: Sequence[models.Place],
    settings: Settings,
    started: Callable[[str], None],
    reread: Callable[[], Sequence[models.Place]] | None,
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    counts = metrics.Metrics()
    served = {
        place.name: models.Model(place, settings.limits, counts.on_batch)
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
        auto_decompress=False,  # By the application, up to a limit.
    )
    await runner.setup()
    tasks = []
    try:
        await _listen(runner, settings)
        tasks = [asyncio.create_task(_close_idle(runner, app))]
        # Clients see that models are being loaded, and what fails.
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
    runner: web.AppRunner, served: Mapping[str, models.Model], seconds: float
) -> None:
    """Answers what is under way, and ends the process if that takes longer."""
    until = time.monotonic() + seconds
    await runner.cleanup()
    left = max(0, until - time.monotonic()) + _GRACE_SECONDS
    closing = asyncio.gather(*(x.close(left) for x in served.values()))
    done, _ = await asyncio.wait([closing], timeout=left + _GRACE_SECONDS)
    if done:
        closing.result()
        return
    # A batch that runs in TensorFlow can't be interrupted, and would keep the
    # process from ending.
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
    """Waits for work or the signal to stop; returns whether that was first."""
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


async def _poll(model: models.Model, seconds: float) -> None:
    """Looks for new versions again and again."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await model.update()
        except Exception:
            # Such as a bucket that can't be reached now.
            _LOG.exception("Looking for versions of %s failed", model.name)


async def _follow(
    reread: Callable[[], Sequence[models.Place]],
    served: Mapping[str, models.Model],
    seconds: float,
) -> None:
    """Lets models serve what is said now; which models there are stays."""
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
