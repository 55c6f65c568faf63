"""What web pages of others, compressed bodies and slow clients may do."""

import gzip
import json
import socket
import zlib

from tests.server import served

import pytest

_ASKED = json.dumps(
    {"instances": [{"text_a": "the cat", "text_b": "a dog"}]}
).encode()


@pytest.fixture(scope="module")
def server(pairs, tmp_path_factory):
    with served.start(
        tmp_path_factory.mktemp("log"),
        *(f"--model={pairs}", "--max_request_mb=1", "--poll_seconds=0"),
        *("--cors_origins=https://ours.example", "--max_queued_rows=1000"),
        "--allowed_hosts=proxy.example",
    ) as server:
        yield server


def _predict(server, body=_ASKED, **headers):
    named = {name.replace("_", "-"): x for name, x in headers.items()}
    status, answer = server.ask(
        "POST", "/v1/models/pairs:predict", body, named
    )
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
    assert "at most 1048576 bytes" in answer["error"]
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
        # A name that was pointed at this machine.
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost", "Origin": "http://localhost"}, 200),
        ({"Origin": "https://ours.example"}, 200),
        ({"Origin": "https://evil.example"}, 403),
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


def test_too_many_rows(server):
    rows = json.dumps({"instances": [{"text_a": "", "text_b": ""}] * 1001})
    status, answer = _predict(server, rows.encode())
    assert status == 413
    assert "at most 1000 rows" in answer["error"]


def test_metrics_where_tensorflow_serving_has_them(server):
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        status, body = server.ask("GET", path)
        assert status == 200
        assert b"# TYPE" in body
