"""Request handlers: TensorFlow Serving's paths, and the server's own."""

import asyncio
import concurrent.futures
import contextlib
import functools
import importlib.resources
import ipaddress
import json
import logging
import re
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from bert_tf.server import (
    http_bodies,
    json_requests,
    openapi,
    refusals,
    servables,
    served_models,
    server_metrics,
)
from bert_tf.server.refusals import Refusal

import numpy as np
from aiohttp import web

_LOG = logging.getLogger("bert_tf.server")
# TensorFlow Serving's paths, from http_rest_api_util.cc.
_ASKED = re.compile(
    r"(?i)/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?"
    r":(classify|regress|predict)"
)
_TOLD = re.compile(
    r"(?i)/v1/models(?:/([^/:]+))?(?:/versions/(\d+)|/labels/([^/:]+))?"
    r"(?:/(metadata))?/?"
)
# Larger bodies are parsed, and larger answers formatted, by `Call`: 20 ms of
# work at most remain in the loop that answers everybody.
_SMALL_BODY = 1 << 16  # bytes
_SMALL_ANSWER = 1 << 12  # values
_READ_SECONDS = 60  # for a body
_FIRST_SECONDS = 60  # for the first request of a connection
# For the next one: a proxy that keeps connections for an hour closes them
# first, so it never sends a request that is lost.
_NEXT_SECONDS = 3630
_UNREAD_SECONDS = 600  # for a client that reads an answer
_MOST_DIGITS = 18  # of a version
# Path -> file.
_PAGES = {"/": "page.html", "/docs": "docs.html"}
# Forbids pages to load anything from other hosts.
_POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# Calls its first argument with the remaining ones.
Call = Callable[..., Any]


class Application:
    """Answers requests to a set of models."""

    def __init__(
        self,
        served: Mapping[str, served_models.Model],
        counts: server_metrics.Metrics,
        max_request_bytes: int,
        host: str = "0.0.0.0",
        cors_origins: Collection[str] = (),
        allowed_hosts: Collection[str] = (),
        call: Call = lambda function, *arguments: function(*arguments),
    ):
        """Creates `web`, the aiohttp application.

        Args:
            served: Models by name.
            counts: Metrics that requests are counted in.
            max_request_bytes: Max size of a body, also when decompressed;
                larger ones are rejected.
            host: The address to listen on. For a loopback address, requests for
                another host name are rejected: they come from web pages whose
                name was pointed at this machine (DNS rebinding).
            cors_origins: Origins whose pages may read answers; "*" for all.
            allowed_hosts: Other names of this server, such as a proxy's.
            call: Calls what takes long, in a thread; `ForkedCalls.call` leaves
                Python's lock to other requests meanwhile.
        """
        self._models = served
        self._metrics = counts
        self._most = max_request_bytes
        self._is_local = _is_loopback(host)
        # As browsers send them.
        self._origins = frozenset(x.rstrip("/").lower() for x in cors_origins)
        # Also with a port, as the Host that is rejected.
        names = (_host_of(f"//{x}") for x in allowed_hosts)
        self._hosts = frozenset({"", *allowed_hosts, *names})
        # One at a time, so that many large bodies at once take neither all of
        # the memory nor all processors from small requests. Answers do not wait
        # for bodies.
        self._call = call
        self._reading = concurrent.futures.ThreadPoolExecutor(1)
        self._writing = concurrent.futures.ThreadPoolExecutor(1)
        self.is_loading = True
        self.is_stopping = False
        # Connection -> since when it is idle, and the seconds until its next
        # request; None during a request.
        self._idle: dict[Any, tuple[float, int] | None] = {}
        self.web = web.Application(
            client_max_size=max_request_bytes, middlewares=[self._guard]
        )
        handlers = {
            **dict.fromkeys(_PAGES, self._show_page),
            **dict.fromkeys(openapi.METRICS, self._tell_metrics),
            "/openapi.json": self._describe,
            "/healthz": self._tell_health,
            "/readyz": self._tell_readiness,
        }
        for route in openapi.ROUTES:
            self.web.router.add_get(route.path, handlers[route.path])
        self.web.router.add_route("*", r"/v1{rest:.*}", self._serve)

    # ---- Errors -------------------------------------------------------------

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Checks the origin of a request, answers it, and counts it."""
        self._idle[request.protocol] = None
        start, status = time.perf_counter(), 499  # if the client disconnects
        try:
            origin = request.headers.get("Origin")
            refusal = self._foreign(request.headers.get("Host", ""), origin)
            if refusal:
                response: web.StreamResponse = _error(refusal)
            elif request.method == "OPTIONS" and self._is_allowed(origin):
                response = web.Response(status=204)
            else:
                response = await self._as_json(request, handler)
            if self._is_allowed(origin):
                response.headers.update(_cors(origin or ""))
            if self.is_stopping:
                response.force_close()
            status = response.status
            return response
        finally:
            self._idle[request.protocol] = time.monotonic(), _NEXT_SECONDS
            if request.method == "POST":
                self._count(request, status, time.perf_counter() - start)

    def _count(self, request: web.Request, status: int, seconds: float) -> None:
        """Counts a request; names of clients' choice are counted as ""."""
        asked = _ASKED.fullmatch(request.rel_url.raw_path)
        name = urllib.parse.unquote(asked[1]) if asked else ""
        labels = (
            name if name in self._models else "",
            asked[4].lower() if asked else "",
        )
        self._metrics.seconds.labels(*labels).observe(seconds)
        self._metrics.requests.labels(*labels, status).inc()

    def _foreign(self, host: str, origin: str | None) -> Refusal | None:
        """Returns the reason to reject a host or origin, or None."""
        name = _host_of(f"//{host}")
        if self._is_local and not (_is_loopback(name) or name in self._hosts):
            return Refusal(
                "This server listens at a loopback address. Behind a proxy, "
                "name its host by --allowed_hosts. Received: Host: "
                f"{host[:100]}",
                403,
            )
        if origin in (None, "null") or self._is_allowed(origin):
            return None
        with contextlib.suppress(ValueError):
            if urllib.parse.urlsplit(origin).netloc == host:
                return None
        return Refusal(
            "Pages of other origins may not use this server; --cors_origins "
            f"allows them. Received: Origin: {str(origin)[:100]}",
            403,
        )

    def _is_allowed(self, origin: str | None) -> bool:
        return origin is not None and bool(self._origins & {"*", origin})

    def close_idle(
        self, connections: Collection[Any], max_connections: int
    ) -> None:
        """Closes connections that have been idle for too long.

        Clients have a minute for their first request, an hour for the next, and
        ten minutes to read an answer.

        Args:
            connections: All open connections.
            max_connections: If there are more, those that have been idle for
                the longest time are closed at once.
        """
        now = time.monotonic()
        new = now, _FIRST_SECONDS
        self._idle = {x: self._idle.get(x, new) for x in connections}
        idle = [(x, *since) for x, since in self._idle.items() if since]
        idle.sort(key=lambda each: each[1])
        for number, (connection, last, limit) in enumerate(
            idle, max_connections
        ):
            transport = connection.transport
            if transport and transport.get_write_buffer_size():
                limit = _UNREAD_SECONDS
            if now - last > limit or number < len(connections):
                connection.force_close()
                if transport is not None:
                    transport.abort()  # Even if the client reads no answer.

    async def _as_json(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Answers errors as JSON."""
        try:
            return await handler(request)
        except Refusal as refusal:
            return _error(refusal)
        except web.HTTPRequestEntityTooLarge:
            return _error(http_bodies.too_large(self._most))
        except web.HTTPException as error:
            text = f"{error.reason}: {request.method} {request.path}"
            return _error(Refusal(text, error.status), error.headers)
        except web.RequestPayloadError as error:
            return _error(Refusal(f"The body can't be read: {error}"))
        except Exception as error:
            told = refusals.from_error(error)
            if told.status == 500:
                _LOG.exception("%s %s", request.method, request.path)
            return _error(told)

    # ---- Own resources ------------------------------------------------------

    async def _show_page(self, request: web.Request) -> web.Response:
        return web.Response(
            text=_read_page(request.path),
            content_type="text/html",
            headers={"Content-Security-Policy": _POLICY},
        )

    async def _describe(self, _: web.Request) -> web.Response:
        described = openapi.describe(self._models, not self.is_loading)
        return _json(json.dumps(described))

    async def _tell_health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _tell_readiness(self, _: web.Request) -> web.Response:
        for name in ("stopping", "loading"):
            if getattr(self, f"is_{name}"):
                return web.Response(text=f"{name}\n", status=503)
        return web.Response(text="ok\n")

    async def _tell_metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.as_text(),
            headers={"Content-Type": self._metrics.content_type},
        )

    # ---- TensorFlow Serving's paths -----------------------------------------

    async def _serve(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path
        asked = _ASKED.fullmatch(path) if request.method == "POST" else None
        if asked:
            name, version, label, method = asked.groups()
            model = self._find(name)
            if self.is_loading:
                raise _still_loading(model)
            find = functools.partial(_asked_for, model, version, label)
            find()  # Rejects missing versions before the body is read.
            return await self._answer(model, method.lower(), find, request)
        is_read = request.method in ("GET", "HEAD")
        told = _TOLD.fullmatch(path) if is_read else None
        if not told:
            raise Refusal(f"Malformed request: {request.method} {request.path}")
        name, version, label, resource = told.groups()
        if not name:
            raise Refusal(
                "Missing model name in request. There are "
                f"{', '.join(self._models)}."
            )
        model = self._find(name)
        try:
            number = _asked_for(model, version, label)
            found = (
                _metadata(model, number) if resource else model.status(number)
            )
        except Refusal:
            if self.is_loading:
                raise _still_loading(model) from None
            raise
        return _json(json.dumps(found))

    def _find(self, name: str) -> served_models.Model:
        name = urllib.parse.unquote(name)
        if name not in self._models:
            raise Refusal(
                f"Servable not found for request: Latest({name}). There are "
                f"{', '.join(self._models)}.",
                404,
            )
        return self._models[name]

    async def _answer(
        self,
        model: served_models.Model,
        method: str,
        find: Callable[[], int | None],
        request: web.Request,
    ) -> web.Response:
        try:
            body = await asyncio.wait_for(request.read(), _READ_SECONDS)
        except TimeoutError:
            raise Refusal(
                f"The body has not come in {_READ_SECONDS} seconds", 408
            ) from None
        except ConnectionError:
            raise Refusal("The client has gone", 499) from None
        # The label may have moved to another version since the request began.
        with model.using(find()) as servable:
            encoding = request.headers.get("Content-Encoding", "identity")
            asked = await self._read(method, body, encoding.lower(), servable)
            outputs = await servable.answer(asked.signature, asked.inputs)
        text = await self._write(method, outputs, asked.in_rows)
        return _json(text)

    async def _read(
        self,
        method: str,
        body: bytes,
        encoding: str,
        servable: servables.Servable,
    ) -> json_requests.Request:
        """Parses a body; one that is or inflates to a large one by `call`."""
        small = None
        if len(body) <= _SMALL_BODY:
            small = http_bodies.inflate(
                body, encoding, min(_SMALL_BODY, self._most)
            )
        limits = servable.signatures, servable.max_rows
        if small is not None:
            return http_bodies.read(method, small, *limits)
        # A compressed body stays so until its turn.
        function = functools.partial(
            self._call,
            http_bodies.read_large,
            *(method, body, *limits, encoding, self._most),
        )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, function)

    async def _write(
        self, method: str, outputs: Mapping[str, np.ndarray], in_rows: bool
    ) -> bytes:
        """Formats an answer, a large one by `call`."""
        if sum(x.size for x in outputs.values()) <= _SMALL_ANSWER:
            return http_bodies.write(method, outputs, in_rows)
        function = functools.partial(
            self._call, http_bodies.write, method, outputs, in_rows
        )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writing, function)


def _host_of(address: str) -> str:
    """Returns the host of a URL, or "" without one."""
    try:
        return urllib.parse.urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _cors(origin: str) -> dict[str, str]:
    """Returns the headers that let pages of an origin read an answer."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
        "Access-Control-Allow-Headers": "Content-Type",
        "Vary": "Origin",
    }


def _asked_for(
    model: served_models.Model, version: str | None, label: str | None
) -> int | None:
    if label is not None:
        return model.labelled(urllib.parse.unquote(label))
    return _number(version)


def _still_loading(model: served_models.Model) -> Refusal:
    return Refusal(f"The model {model.name} is being loaded", 503)


def _number(version: str | None) -> int | None:
    if version is None:
        return None
    if len(version) > _MOST_DIGITS:
        raise Refusal(f"Failed to convert version: {version[:40]} to numeric.")
    return int(version)


def _metadata(
    model: served_models.Model, version: int | None
) -> dict[str, Any]:
    with model.using(version) as servable:
        return {
            "model_spec": {
                "name": model.name,
                "signature_name": "",
                "version": str(servable.version),
            },
            "metadata": {
                "signature_def": {
                    "signature_def": servable.signatures.as_json()
                }
            },
        }


def _json(text: str | bytes, status: int = 200, **how: Any) -> web.Response:
    if isinstance(text, str):
        text = text.encode("utf-8", errors="replace")
    return web.Response(
        body=text,
        content_type="application/json",
        status=status,
        **how,
    )


def _error(
    refusal: Refusal, headers: Mapping[str, str] | None = None
) -> web.Response:
    kept = {}
    if headers and "Allow" in headers:
        kept["Allow"] = headers["Allow"]
    if refusal.status == 503:
        kept["Retry-After"] = "1"
    text = json.dumps({"error": str(refusal)}, ensure_ascii=False)
    return _json(text, refusal.status, headers=kept)


@functools.cache
def _read_page(path: str) -> str:
    """Returns the HTML of a page, with the shared style and code."""
    folder = importlib.resources.files("bert_tf.server")
    text = (folder / _PAGES[path]).read_text(encoding="utf-8")
    for name in ("shared.css", "shared.js"):
        shared = (folder / name).read_text(encoding="utf-8")
        text = text.replace(f"/* {name} */", shared)
    return text
