"""The server as clients see it, in a separate process."""

import base64
import collections
import concurrent.futures
import functools
import gzip
import json
import shutil
import socket
import threading
import urllib.request
import zlib

from tests import exports, processes
from tests.server import bad_requests, served, test_openapi

import numpy as np
import openapi_spec_validator
import pytest
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def signatures(pairs):
    """Returns the same model without the server."""
    loaded = tf.saved_model.load(str(pairs / "1"))
    yield loaded.signatures


def expected(signatures, text_a, text_b):
    """Returns rows of answers without the server."""
    outputs = signatures["serving_default"](
        text_a=tf.constant(text_a), text_b=tf.constant(text_b)
    )
    arrays = {name: x.numpy().tolist() for name, x in outputs.items()}
    arrays["label"] = [label.decode() for label in arrays["label"]]
    return [
        {name: values[i] for name, values in arrays.items()}
        for i in range(len(text_a))
    ]


def assert_rows(found, rows):
    assert len(found) == len(rows)
    for mine, theirs in zip(found, rows, strict=True):
        assert mine.keys() == theirs.keys()
        assert mine["label"] == theirs["label"]
        for name in ("probabilities", "logits"):
            np.testing.assert_allclose(mine[name], theirs[name], atol=1e-5)


def predict_all(server, asked):
    """Sends requests from 16 clients at once."""
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        post = functools.partial(server.post, bad_requests.PREDICT)
        return list(clients.map(post, asked))


class TestAnswers:
    def test_classes_of_examples(self, server, signatures):
        a, b = ["a good film", "bad"], ["what", ""]
        asked = [{"text": x, "text_b": y} for x, y in zip(a, b, strict=True)]
        path = bad_requests.PREDICT.replace(":predict", ":classify")
        status, found = server.post(path, {"examples": asked})
        assert status == 200
        rows = expected(signatures, a, b)
        for pairs, row in zip(found["results"], rows, strict=True):
            labels, scores = zip(*pairs, strict=True)
            np.testing.assert_allclose(scores, row["probabilities"], atol=1e-5)
            assert labels[int(np.argmax(scores))] == row["label"]

    def test_rows_columns_and_ids(self, server, signatures):
        a, b = ["a good film", "bad", ""], ["what", "", "a film"]
        rows = expected(signatures, a, b)
        asked = [
            {
                "text_a": x,
                "text_b": {"b64": base64.b64encode(y.encode()).decode()},
            }
            for x, y in zip(a, b, strict=True)
        ]
        status, found = server.post(bad_requests.PREDICT, {"instances": asked})
        assert status == 200
        assert_rows(found["predictions"], rows)
        status, found = server.post(
            f"{bad_requests.PATH}/versions/1:predict",
            {"inputs": {"text_a": a, "text_b": b}},
        )
        assert status == 200
        outputs = found["outputs"]
        columns = [
            dict(zip(outputs, x, strict=True))
            for x in zip(*outputs.values(), strict=True)
        ]
        assert_rows(columns, rows)

    def test_second_texts_may_be_left_out(self, server, signatures):
        rows = expected(signatures, ["a", "bad film"], [""])
        for asked in (
            {"instances": ["a", "bad film"]},
            {"instances": [{"text_a": "a"}, {"text_a": "bad film"}]},
            {"inputs": {"text_a": ["a", "bad film"], "text_b": [""]}},
        ):
            status, found = server.post(bad_requests.PREDICT, asked)
            assert status == 200, found
            if "predictions" in found:
                assert_rows(found["predictions"], rows)

    def test_ids(self, server, signatures):
        ids = {name: [[1, 0]] for name in bad_requests.IDS}
        status, found = server.post(
            bad_requests.PREDICT, {"signature_name": "serve_ids", "inputs": ids}
        )
        assert status == 200
        outputs = signatures["serve_ids"](
            **{name: tf.constant(x) for name, x in ids.items()}
        )
        np.testing.assert_allclose(
            found["outputs"]["logits"], outputs["logits"], atol=1e-5
        )

    def test_many_clients_at_once_get_what_each_gets_alone(
        self, server, signatures
    ):
        words = ["a", "film", "what", "good", "bad"]
        rng = np.random.default_rng(3)
        texts = [
            " ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(96)
        ]
        before = _metrics(server)
        ask = [{"instances": [{"text_a": x, "text_b": "bad"}]} for x in texts]
        found = predict_all(server, ask)
        assert {status for status, _ in found} == {200}
        rows = [answer["predictions"][0] for _, answer in found]
        assert_rows(rows, expected(signatures, texts, ["bad"] * len(texts)))
        added = _metrics(server)
        added.subtract(before)
        assert added['bert_tf_batch_rows_sum{model="pairs"}'] == 96
        batches = added['bert_tf_batch_rows_count{model="pairs"}']
        assert 0 < batches < 96, "no requests were joined"
        counted = 'method="predict",model="pairs",status="200"'
        assert added[f"bert_tf_requests_total{{{counted}}}"] == 96


def _metrics(server):
    """Returns the numbers of /metrics by name."""
    _, text = server.ask("GET", "/metrics")
    lines = (x for x in text.decode().splitlines() if not x.startswith("#"))
    pairs = (line.rsplit(" ", 1) for line in lines)
    return collections.Counter({name: float(value) for name, value in pairs})


class TestWhatIsThere:
    def test_status_and_metadata_are_those_protos(self, server, pairs):
        apis = "tensorflow_serving.apis"
        status_pb2 = pytest.importorskip(f"{apis}.get_model_status_pb2")
        metadata_pb2 = pytest.importorskip(f"{apis}.get_model_metadata_pb2")
        for path in (bad_requests.PATH, f"{bad_requests.PATH}/versions/1"):
            code, found = server.get(path)
            assert code == 200
            assert server.ask("HEAD", path) == (200, b"")
            status = json_format.ParseDict(
                found, status_pb2.GetModelStatusResponse()
            )
            (version,) = status.model_version_status
            assert version.version == 1
            assert version.state == version.AVAILABLE
            assert version.status.error_code == 0
        code, found = server.get(f"{bad_requests.PATH}/metadata")
        assert code == 200
        assert found["model_spec"]["name"] == "pairs"
        assert found["model_spec"]["version"] == "1"
        told = json_format.ParseDict(
            found["metadata"]["signature_def"], metadata_pb2.SignatureDefMap()
        )
        model = saved_model_pb2.SavedModel.FromString(
            (pairs / "1" / "saved_model.pb").read_bytes()
        )
        definitions = dict(model.meta_graphs[0].signature_def)
        definitions.pop("__saved_model_init_op", None)
        assert dict(told.signature_def) == definitions

    def test_health(self, server):
        assert server.ask("GET", "/healthz") == (200, b"ok\n")
        assert server.ask("GET", "/readyz") == (200, b"ok\n")


class TestBadRequests:
    @pytest.mark.parametrize("case", range(len(bad_requests.BAD)))
    def test_is_refused_as_json(self, server, case):
        method, path, body, status = bad_requests.BAD[case]
        found, answer = server.ask(method, path, body)
        assert found == status, answer
        (message,) = json.loads(answer).values()
        assert json.loads(answer).keys() == {"error"}
        assert 0 < len(message) < 1000
        assert "\n" not in message
        assert "{{node" not in message

    @pytest.mark.parametrize("name", bad_requests.UNUSUAL)
    def test_unusual_texts_are_answered(self, server, signatures, name):
        text = bad_requests.UNUSUAL[name]
        status, found = server.post(
            bad_requests.PREDICT,
            {"instances": [{"text_a": text, "text_b": "a"}]},
        )
        assert status == 200, found
        rows = expected(signatures, [text], ["a"])
        assert_rows(found["predictions"], rows)

    def test_bad_ones_harm_no_others(self, server, signatures):
        good = {"instances": [bad_requests.ROW]}
        (row,) = expected(signatures, ["a good film"], ["what"])
        bad = json.loads(bad_requests.of_ids(input_ids=[[1, 10**6]])[2])
        fine = json.loads(bad_requests.of_ids()[2])
        asked = [good, bad, fine] * 20
        found = predict_all(server, asked)
        assert [status for status, _ in found] == [200, 400, 200] * 20
        for _, answer in found[::3]:
            assert_rows(answer["predictions"], [row])

    def test_clients_that_go_harm_nobody(self, server):
        body = json.dumps({"instances": [bad_requests.ROW] * 500}).encode()
        head = (
            f"POST {bad_requests.PREDICT} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        host, port = server.address.split(":")
        for sent in (b"", body[:100], body):
            for _ in range(10):
                with socket.create_connection((host, int(port))) as client:
                    client.sendall(head.encode() + sent)
                    # Closed immediately, as by a killed process.
                    client.setsockopt(
                        socket.SOL_SOCKET,
                        socket.SO_LINGER,
                        b"\x01\x00\x00\x00\x00\x00\x00\x00",
                    )
        status, _ = server.post(
            bad_requests.PREDICT, {"instances": [bad_requests.ROW]}
        )
        assert status == 200
        assert server.run.poll() is None
        assert "Traceback" not in server.run.stderr


def _label(text_a):
    """Labels texts [B], and computes for some milliseconds."""
    x = tf.fill([512, 512], tf.cast(tf.size(text_a), tf.float32))
    score = tf.reduce_mean(tf.linalg.matmul(x, x))
    return {"label": text_a, "score": tf.fill(tf.shape(text_a), score)}


def _vector(text_a):
    return {"vectors": tf.zeros([tf.size(text_a), 2])}


class TestVersions:
    def test_a_new_one_takes_over_under_load(self, tmp_path):
        """A broken version does not; no request is lost, even at the end."""
        base = tmp_path / "models" / "film"
        served.write_model(base / "1", _label)
        is_done = threading.Event()
        answers: list[tuple[int, dict]] = []

        def ask(server):
            while not is_done.wait(0.01):
                answers.append(
                    server.post("/v1/models/film:predict", {"instances": ["a"]})
                )

        with (
            served.start(
                tmp_path, f"--model={base}", "--poll_seconds=0.2"
            ) as server,
            concurrent.futures.ThreadPoolExecutor(2) as clients,
        ):
            asking = [clients.submit(ask, server) for _ in range(2)]
            try:
                # Incomplete files.
                shutil.copytree(base / "1", tmp_path / "broken")
                for path in (tmp_path / "broken" / "variables").iterdir():
                    path.write_bytes(b"x")
                (tmp_path / "broken").rename(base / "2")
                self._wait_for(server, "2", "END")
                self._wait_for(server, "1", "AVAILABLE")
                served.write_model(tmp_path / "new", _vector)
                (tmp_path / "new").rename(base / "3")
                self._wait_for(server, "3", "AVAILABLE")
                self._wait_for(server, "1", "END")
                self._wait_for_answers(answers)
                # Back to the previous version.
                shutil.rmtree(base / "3")
                shutil.rmtree(base / "2")
                self._wait_for(server, "3", "END")
                self._wait_for(server, "1", "AVAILABLE")
                self._wait_for_answers(answers)
            finally:
                is_done.set()
            for client in asking:
                client.result()
            self._end(server, clients)
        assert {status for status, _ in answers} == {200}
        # A label and a score of one model, a vector of the other.
        kinds = {type(answer["predictions"][0]) for _, answer in answers}
        assert kinds == {dict, list}

    def _end(self, server, clients):
        """Stops the server, which answers the requests in progress."""
        # Takes a while: 4,000 rows in consecutive batches.
        asked = {"instances": ["a good film " * 3] * 4_000}
        path = "/v1/models/film:predict"
        under_way = [clients.submit(server.post, path, asked) for _ in range(2)]
        waiting = b'waiting_requests{model="film"} 2.0'
        processes.wait_for(
            lambda: waiting in server.ask("GET", "/metrics")[1], server.run
        )
        assert not any(answer.done() for answer in under_way)
        server.run.kill(15)
        for answer in under_way:
            status, found = answer.result()
            assert status == 200
            assert len(found["predictions"]) == 4_000
        assert server.run.wait(60) == 0
        with pytest.raises(ConnectionError):
            server.ask("GET", "/readyz")
        # The log has lines for models, start and end, but not for requests.
        assert "predict" not in server.run.stderr

    def _wait_for_answers(self, answers):
        """Waits until the clients have another 20 answers."""
        count = len(answers)
        processes.wait_for(lambda: len(answers) >= count + 20)

    def _wait_for(self, server, version, state):
        """Waits until a version is in a state."""

        def is_there():
            _, found = server.get("/v1/models/film")
            return (version, state) in [
                (x["version"], x["state"])
                for x in found["model_version_status"]
            ]

        processes.wait_for(is_there, server.run)


# ---- Other clients' requests ------------------------------------------------

_ASKED = json.dumps(
    {"instances": [{"text_a": "the cat", "text_b": "a dog"}]}
).encode()


def _predict(server, body=_ASKED, **headers):
    named = {name.replace("_", "-"): x for name, x in headers.items()}
    status, answer = server.ask("POST", "/v1/models/pairs:predict", body, named)
    return status, json.loads(answer)


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("deflate", zlib.compress)],
)
def test_compressed_bodies(server, encoding, compress):
    plain = _predict(server)
    assert plain[0] == 200
    compressed = compress(_ASKED)
    assert _predict(server, compressed, Content_Encoding=encoding) == plain
    bomb = compress(b" " * (64 << 20))
    status, answer = _predict(server, bomb, Content_Encoding=encoding)
    assert status == 413
    assert "at most 2097152 bytes" in answer["error"]
    cut = compressed[:-4]
    assert _predict(server, cut, Content_Encoding=encoding)[0] == 400
    assert _predict(server, b"no", Content_Encoding=encoding)[0] == 400


def test_other_encodings_are_refused(server):
    assert _predict(server, Content_Encoding="br") == (
        415,
        {"error": "Content-Encoding must be gzip or deflate. Received: br"},
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8501"}, 200),
        ({"Host": "[::1]"}, 200),
        ({"Host": "proxy.example"}, 200),
        ({"Host": "proxy.example:8080"}, 200),
        # A host name that was redirected to this machine.
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost", "Origin": "http://localhost"}, 200),
        ({"Origin": "https://ours.example"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://["}, 403),
    ],
)
def test_hosts_and_origins(server, headers, status):
    assert _predict(server, **headers)[0] == status


def test_pages_of_a_named_origin_may_read_answers(server):
    with socket.create_connection(server.address.split(":")) as connection:
        connection.sendall(
            b"OPTIONS /v1/models/pairs:predict HTTP/1.1\r\nHost: localhost\r\n"
            b"Origin: https://ours.example\r\nConnection: close\r\n\r\n"
        )
        answer = b""
        while received := connection.recv(4096):
            answer += received
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert b"Access-Control-Allow-Origin: https://ours.example\r\n" in answer


def test_metrics_where_tensorflow_serving_has_them(server):
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        status, body = server.ask("GET", path)
        assert status == 200
        assert b"# TYPE" in body


# ---- The description --------------------------------------------------------


@pytest.fixture(scope="module")
def described(server):
    status, found = server.get("/openapi.json")
    assert status == 200
    return found


def test_the_description_is_valid(described):
    openapi_spec_validator.validate(described)
    assert described["info"]["version"]
    tags = {x["name"]: x for x in described["tags"] if "x-model" in x}
    assert [*tags] == ["pairs", "chooser", "ein {span}ä", "scores"]
    for tag in tags.values():
        assert tag["description"].endswith(".")
        assert tag["x-model"]["head"] in exports.NAMES
    facts = tags["pairs"]["x-model"]
    assert facts["state"] == "ready"
    assert facts["labels"] == exports.LABELS
    assert facts["max_seq_length"] == exports.LENGTH
    assert facts["examples"].keys() == {
        *("serving_default", "serve_text", "serve_pairs", "serve_ids")
    }


def test_examples_are_answered_as_described(server, described):
    counts = test_openapi.check_examples(server, described)
    assert {
        f"/v1/models/{name}{version}:{method}": count
        for name, method, count in (
            ("pairs", "predict", 5),
            ("pairs", "classify", 1),
            ("chooser", "predict", 3),
        )
        for version in ("", "/versions/1")
    }.items() <= counts.items()
    assert all(counts.values())
    assert any(path.endswith(":regress") for path in counts)


def test_reading_is_answered_as_described(server, described):
    paths = [x for x, found in described["paths"].items() if "get" in found]
    assert {"/", "/docs", f"{bad_requests.PATH}/metadata"} <= {*paths}
    for path in paths:
        responses = described["paths"][path]["get"]["responses"]
        url = f"http://{server.address}{path}"
        with urllib.request.urlopen(url) as found:
            ((kind, content),) = responses["200"]["content"].items()
            assert found.headers.get_content_type() == kind
            body = found.read().decode()
        value = json.loads(body) if kind == test_openapi.JSON else body
        test_openapi.of_schema(content["schema"], described).validate(value)


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json"])
def test_other_hosts_may_not_read_it(server, path):
    headers = {"Host": "evil.example"}
    assert server.ask("GET", path, headers=headers)[0] == 403


def test_errors_are_described(server, described):
    predict = described["paths"][bad_requests.PREDICT]["post"]
    for method, path, _, status in bad_requests.BAD:
        if (method, path) == ("POST", bad_requests.PREDICT):
            assert str(status) in predict["responses"]
    for body in (b"{", b'{"instances": ["' + b"a" * (3 << 20) + b'"]}'):
        status, found = server.post(bad_requests.PREDICT, body)
        error = test_openapi.media(predict["responses"][str(status)], described)
        test_openapi.of_schema(error["schema"], described).validate(found)
