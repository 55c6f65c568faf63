"""Requests that are rejected before a model answers, and their counts."""

import asyncio
import json

from bert_tf.exporting import version_labels
from bert_tf.server import application, batching, served_models, server_metrics

import pytest

_PATH = "/v1/models/m"


def _ask(requests, is_loading):
    """Returns the statuses and errors of requests, and the counts by labels.

    Args:
        requests: Method, path and headers of each request.
        is_loading: Whether the server loads its model.
    """
    test_utils = pytest.importorskip("aiohttp.test_utils")
    place = version_labels.Served("m", "/models/m")
    models = {"m": served_models.Model(place, batching.Limits())}

    async def run():
        app = application.Application(models, server_metrics.Metrics(), 1 << 20)
        app.is_loading = is_loading
        answers = []
        server = test_utils.TestServer(app.web)
        async with test_utils.TestClient(server) as client:
            for method, path, headers in requests:
                answer = await client.request(method, path, headers=headers)
                error = json.loads(await answer.text())["error"]
                answers.append((answer.status, error))
            text = await (await client.get("/metrics")).text()
        return answers, text

    answers, text = asyncio.run(run())
    name = "bert_tf_requests_total"
    counts = [x for x in text.splitlines() if x.startswith(f"{name}{{")]
    return answers, {
        line.removeprefix(name).rpartition(" ")[0]: float(line.split()[-1])
        for line in counts
    }


@pytest.mark.parametrize(
    "path", ["", "/versions/7", "/metadata", "/labels/stable"]
)
def test_a_model_that_is_being_loaded_is_not_missing(path):
    headers: dict[str, str] = {}
    asked = [("GET", f"{_PATH}{path}", headers)]
    answers, _ = _ask(asked, is_loading=True)
    assert answers == [(503, "The model m is being loaded")]
    ((status, _),), _ = _ask(asked, is_loading=False)
    assert status == (400 if "labels" in path else 404)


def test_rejected_requests_are_counted():
    """Only by the names of served models, of which there are few."""
    evil = {"Origin": "http://evil.example"}
    requests = [
        ("POST", f"{_PATH}:predict", {}),
        ("POST", f"{_PATH}/versions/7:Classify", {}),
        ("POST", f"{_PATH}/labels/none:regress", {}),
        ("POST", f"{_PATH}:predict", evil),
        ("POST", "/v1/models/none:predict", {}),
        ("POST", "/v1/models/none2:predict", {}),
        ("POST", f"{_PATH}:explain", {}),
        ("GET", f"{_PATH}/versions/7", {}),
    ]
    answers, counts = _ask(requests, is_loading=False)
    statuses = [status for status, _ in answers]
    assert statuses == [404, 404, 400, 403, 404, 404, 400, 404]
    assert counts == {
        '{method="predict",model="m",status="404"}': 1,
        '{method="classify",model="m",status="404"}': 1,
        '{method="regress",model="m",status="400"}': 1,
        '{method="predict",model="m",status="403"}': 1,
        '{method="predict",model="",status="404"}': 2,
        '{method="",model="",status="400"}': 1,
    }
    _, counts = _ask(requests[:1], is_loading=True)
    assert counts == {'{method="predict",model="m",status="503"}': 1}


def test_errors_name_what_is_there():
    """After TensorFlow Serving's own words."""
    requests = [
        ("GET", "/v1/models/", {}),
        ("GET", f"{_PATH}/versions/7", {}),
        ("POST", f"{_PATH}/versions/7:predict", {}),
    ]
    answers, _ = _ask(requests, is_loading=False)
    assert answers == [
        (400, "Missing model name in request. There are m."),
        (404, "Could not find version 7 of model m. Loaded versions: none."),
        (
            404,
            "Servable not found for request: Specific(m, 7). Loaded versions: "
            "none.",
        ),
    ]
