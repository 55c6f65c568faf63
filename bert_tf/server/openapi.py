"""The OpenAPI description of the server: `/openapi.json`.

It is built for each request, from the routes of the application and from the
signatures of the loaded models, so it is always up to date.
"""

import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

import bert_tf
from bert_tf.server import refusals, schemas, servables, served_models
from bert_tf.server.signature_defs import CLASSIFY, PREDICT, REGRESS

Json = dict[str, Any]

METHODS = {"predict": PREDICT, "classify": CLASSIFY, "regress": REGRESS}
_SUMMARIES = {
    "predict": "Answers rows or columns of inputs.",
    "classify": "Scores each class of tf.Examples.",
    "regress": "Computes a score for each tf.Example.",
}
_SERVER = "The server"
_JSON = "application/json"
_TEXT = {"type": "string"}


class Route(NamedTuple):
    """A page or a resource of the server itself.

    Attributes:
        path: Path in the URL.
        summary: One-sentence description.
        media_type: Media type of the response.
        statuses: Statuses other than 200, and their meanings.
    """

    path: str
    summary: str
    media_type: str
    statuses: Mapping[int, str] = {}


# The second path is the one in TensorFlow Serving's monitoring guide.
METRICS = ("/metrics", "/monitoring/prometheus/metrics")
ROUTES = (
    Route("/", "A page to try the models.", "text/html"),
    Route("/docs", "This description as a page.", "text/html"),
    Route("/openapi.json", "This description.", _JSON),
    Route("/healthz", "Whether the server runs.", "text/plain"),
    Route(
        "/readyz",
        "Whether the server can answer.",
        "text/plain",
        {503: "Models are being loaded, or the server stops."},
    ),
    *(Route(x, "Metrics for Prometheus.", "text/plain") for x in METRICS),
)


def describe(served: Mapping[str, served_models.Model], is_ready: bool) -> Json:
    """Returns the description.

    Args:
        served: The models by name.
        is_ready: Whether the server answers requests to models.
    """
    paths: dict[str, Json] = {}
    components: dict[str, Json] = {
        "schemas": {**schemas.COMPONENTS, **_SCHEMAS},
        "responses": _errors(),
    }
    tags = []
    for number, model in enumerate(served.values()):
        tags.append(_tag(model, is_ready))
        key = re.sub(r"[^A-Za-z0-9._-]", "_", model.name)
        if key != model.name:
            key += f"_{number}"
        _add_model(model, key, paths, components["schemas"])
    tags.append({"name": _SERVER})
    paths |= {route.path: _own(route) for route in ROUTES}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bert_tf server",
            "version": bert_tf.__version__,
            "description": "The REST API of TensorFlow Serving.",
        },
        "tags": tags,
        "paths": paths,
        "components": components,
    }


def _own(route: Route) -> Json:
    body = {route.media_type: {"schema": _TEXT}}
    if route.media_type == _JSON:
        body = {_JSON: {"schema": {"type": "object"}}}
    others = {
        str(status): {"description": meaning, "content": body}
        for status, meaning in route.statuses.items()
    }
    return {
        "get": {
            "operationId": route.path,
            "tags": [_SERVER],
            "summary": route.summary,
            "responses": {
                "200": {"description": "The answer.", "content": body},
                **others,
                **_refused(403),
            },
        }
    }


def _tag(model: served_models.Model, is_ready: bool) -> Json:
    """Returns the tag of a model, with the texts that the page displays."""
    newest = model.addresses.get("")
    facts: Json = {
        "state": "ready" if is_ready and newest else "loading",
        "loading": model.loading,
    }
    if newest is None:
        return {"name": model.name, "x-model": facts}
    about = newest.description
    rows = {
        name: about.row(signature)
        for name, signature in newest.signatures.by_name.items()
    }
    facts |= {
        "version": newest.version,
        "head": about.head,
        "labels": about.labels,
        "max_seq_length": about.max_seq_length,
        "examples": {name: row for name, row in rows.items() if row},
    }
    return {"name": model.name, "description": about.does, "x-model": facts}


# ---- Paths of a model -------------------------------------------------------


def _add_model(
    model: served_models.Model,
    key: str,
    paths: dict[str, Json],
    components: dict[str, Json],
) -> None:
    """Adds the paths of a model, and the schemas of its versions."""
    base = f"/v1/models/{urllib.parse.quote(model.name, safe='')}"
    paths[base] = _read(model, base, "Status", "The state of the versions.")
    for end, servable in model.addresses.items():
        path = f"{base}{end}"
        for method, kind in METHODS.items():
            if not schemas.of_method(servable.signatures, kind):
                continue
            prefix = f"{key}.{servable.version}.{method}"
            components[f"{prefix}.request"] = schemas.request(
                servable.signatures, kind
            )
            components[f"{prefix}.response"] = schemas.response(
                servable.signatures, kind
            )
            called = f"{path}:{method}"
            paths[called] = _call(model, servable, method, called, prefix)
        if end:
            summary = "The state of this version."
            paths[path] = _read(model, path, "Status", summary)
        told = f"{path}/metadata"
        paths[told] = _read(model, told, "Metadata", "The signatures.")


def _read(
    model: served_models.Model, path: str, schema: str, summary: str
) -> Json:
    return {
        "get": {
            "operationId": path,
            "tags": [model.name],
            "summary": summary,
            "responses": {"200": _body(schema), **_refused(400, 403, 404, 503)},
        }
    }


def _call(
    model: served_models.Model,
    servable: servables.Servable,
    method: str,
    path: str,
    prefix: str,
) -> Json:
    request: Json = {"schema": _ref(f"{prefix}.request")}
    if examples := _examples(servable, method):
        request["examples"] = examples
    return {
        "post": {
            "operationId": path,
            "tags": [model.name],
            "summary": _SUMMARIES[method],
            "requestBody": {"required": True, "content": {_JSON: request}},
            "responses": {
                "200": _body(f"{prefix}.response"),
                **_refused(*refusals.MEANINGS),
            },
        }
    }


def _examples(servable: servables.Servable, method: str) -> Json:
    """Returns example bodies by name, the default signature's first."""
    about, kind = servable.description, METHODS[method]
    default = schemas.default(servable.signatures, kind)
    found: Json = {}
    signatures = schemas.of_method(servable.signatures, kind)
    for signature in sorted(signatures, key=lambda x: x.name != default):
        name = signature.name
        named = {} if name == default else {"signature_name": name}
        if kind != PREDICT:
            if example := about.example():
                found[name] = {**named, "examples": [example]}
            continue
        row = about.row(signature)
        if row:
            found[name] = {**named, "instances": [row]}
        if row and name == default:
            columns = {key: [value] for key, value in row.items()}
            found["columns"] = {"inputs": columns}
    return {name: {"value": body} for name, body in found.items()}


# ---- Components -------------------------------------------------------------

_SIGNATURES = {"type": "object", "additionalProperties": {"type": "object"}}
_SCHEMAS: dict[str, Json] = {
    "Error": schemas.object_of(error=_TEXT),
    "Status": schemas.object_of(
        model_version_status={
            "type": "array",
            "items": schemas.object_of(
                version=_TEXT,
                state={"enum": list(served_models.STATES)},
                status=schemas.object_of(error_code=_TEXT, error_message=_TEXT),
            ),
        }
    ),
    "Metadata": schemas.object_of(
        model_spec=schemas.object_of(
            name=_TEXT, signature_name=_TEXT, version=_TEXT
        ),
        metadata=schemas.object_of(
            signature_def=schemas.object_of(signature_def=_SIGNATURES)
        ),
    ),
}


def _ref(name: str, kind: str = "schemas") -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _body(schema: str) -> Json:
    return {
        "description": "The answer.",
        "content": {_JSON: {"schema": _ref(schema)}},
    }


def _errors() -> dict[str, Json]:
    """Returns the error responses by status."""
    error = {_JSON: {"schema": _ref("Error")}}
    return {
        str(status): {"description": meaning, "content": error}
        for status, meaning in refusals.MEANINGS.items()
    }


def _refused(*statuses: int) -> dict[str, Json]:
    return {str(status): _ref(str(status), "responses") for status in statuses}
