"""Requests that are rejected, and unusual texts that are answered."""

import json

PATH = "/v1/models/pairs"
PREDICT = f"{PATH}:predict"
ROW = {"text_a": "a good film", "text_b": "what"}
IDS = ("input_ids", "input_mask", "segment_ids")


def _post(body, path=PREDICT, status=400):
    return ("POST", path, body, status)


def _asked(**asked):
    return _post(json.dumps(asked).encode())


def of_ids(**changes):
    ids = {name: [[1, 1]] for name in IDS} | changes
    return _asked(signature_name="serve_ids", inputs=ids)


_DEEP = b"[" * 100_000
BAD = [
    # ---- Not JSON, or not an object
    *map(_post, (b"", b" ", b"{", b"{}", b"[]", b"null", b"1")),
    *map(_post, (b'"instances"', b"{'instances': []}", b"text_a=a&text_b=b")),
    *map(_post, (b'{"instances": ["a"],}', b'{"instances": ["a"]} x')),
    *map(_post, (b'{"instances": ["a]}', b'{"instances": ["\xff\xfe"]}')),
    *map(_post, (b"\x00", b"\xff\xfe{\x00}\x00", _DEEP)),
    _post(b'{"instances": ["\xed\xa0\x80"]}'),
    _post(b'{"instances": ["a"], "instances": ["b"]}'),
    _post(b'{"instances": [{"text_a": "a", "text_a": "b"}]}'),
    _post(b'{"instances": ["\\ud800"]}'),
    _post(b'{"instances": ["\\u12"]}'),
    _post(b'{"instances": ["a\nb"]}'),
    _post(b'{"instances": ' + _DEEP),
    _post(b'{"instances": ' + b"[" * 100 + b"]" * 100 + b"}"),
    _post(b'{"instances": [' + b"9" * 5000 + b"]}"),
    # ---- Neither rows nor columns
    _asked(instances=[]),
    _asked(instances={}),
    _asked(instances=None),
    _asked(instances="a"),
    _asked(instances=[ROW], inputs=ROW),
    _asked(Instances=[ROW]),
    _asked(examples=[ROW]),
    # ---- Names
    _asked(instances=[{}]),
    _asked(instances=[{"text": "a"}]),
    _asked(instances=[{"text_b": "a"}]),
    _asked(instances=[{**ROW, "text_c": "a"}]),
    _asked(instances=[ROW, {"text_a": "a"}]),
    _asked(instances=[ROW, "a"]),
    _asked(instances=["a", ROW]),
    _asked(inputs={}),
    _asked(inputs={"text_b": ["a"]}),
    _asked(signature_name="none", instances=[ROW]),
    _asked(signature_name=1, instances=[ROW]),
    _asked(signature_name=None, instances=[ROW]),
    _asked(signature_name="serve_ids", instances=["a"]),
    # ---- Types and shapes
    _asked(instances=[{"text_a": 1, "text_b": "a"}]),
    _asked(instances=[{"text_a": None, "text_b": "a"}]),
    _asked(instances=[{"text_a": True, "text_b": "a"}]),
    _asked(instances=[{"text_a": ["a"], "text_b": ["b"]}]),
    _asked(instances=[{"text_a": {"b64": "?"}, "text_b": "a"}]),
    _asked(instances=[{"text_a": {"b64": 1}, "text_b": "a"}]),
    _asked(instances=[{"text_a": {"b64": "YQ==", "x": 1}}]),
    _asked(instances=[["a"], "a"]),
    _asked(inputs="a"),
    _asked(inputs={"text_a": "a", "text_b": "b"}),
    _asked(inputs={"text_a": ["a", "b"], "text_b": ["c", "d", "e"]}),
    _asked(inputs={"text_a": ["a", ["b"]]}),
    of_ids(input_ids=[[1.5, 1]]),
    of_ids(input_ids=[["1", 1]]),
    of_ids(input_ids=[[True, 1]]),
    of_ids(input_ids=[[2**40, 1]]),
    of_ids(input_ids=[[1, 1], [1]]),
    of_ids(input_ids=[1, 1]),
    of_ids(input_ids=[]),
    of_ids(input_ids=[[1, 1, 1]]),
    of_ids(segment_ids=[[1, 1], [1, 1]]),
    # ---- Ids without an embedding
    of_ids(input_ids=[[1, 10**6]]),
    of_ids(input_ids=[[1, -1]]),
    of_ids(**{name: [[1] * 500] for name in IDS}),
    # ---- Paths and methods
    _post(b'{"examples": [{"x": 1}]}', f"{PATH}:classify"),
    _post(b'{"examples": [{"x": 1}]}', f"{PATH}:regress"),
    _post(b"{}", f"{PATH}/labels/stable:predict"),
    _post(b"{}", f"{PATH}:explain"),
    _post(b"{}", PATH),
    _post(b"{}", "/v1/models/none:predict", 404),
    _post(b"{}", f"{PATH}/versions/2:predict", 404),
    _post(b"{}", f"{PATH}/versions/x:predict"),
    _post(b"{}", f"{PATH}/versions/{'9' * 30}:predict"),
    _post(b"{}", "/v1/models/%ff%00:predict", 404),
    _post(b"{}", "/v2", 404),
    _post(b"{}", "/metrics", 405),
    ("GET", PREDICT, None, 400),
    ("PUT", PREDICT, b"{}", 400),
    ("DELETE", PATH, None, 400),
    *(("GET", f"/v1/models{x}", None, 400) for x in ("", "/")),
    ("GET", "/v1/models/none", None, 404),
    ("GET", f"{PATH}/versions/7", None, 404),
    ("GET", f"{PATH}/versions/7/metadata", None, 404),
    ("GET", "/nothing", None, 404),
    # ---- Too large
    _post(b'{"instances": ["' + b"a" * (3 << 20) + b'"]}', status=413),
]
# Unusual values that are answered.
UNUSUAL = {
    "NUL": "a\x00b",
    "nothing": "",
    "blank": " \t\n",
    "a megabyte": "a film " * (1 << 17),
    "a word of a megabyte": "a" * (1 << 20),
    "a private character": "\ue000\ufffe\U0010ffff",
    "combining": "e\u0301" * 1000,
    "right to left": "\u202eabc",
}
