"""The OpenAPI description; of a running server: test_server.py."""

import json

from bert_tf.server import (
    descriptions,
    http_bodies,
    json_requests,
    openapi,
    refusals,
    schemas,
    signature_defs,
)
from bert_tf.serving import served_heads
from tests import combinations, exports
from tests.server import bad_requests, served

import numpy as np
import pytest
import tensorflow as tf
from jsonschema import Draft202012Validator

pytestmark = pytest.mark.slow

JSON = "application/json"
# Bodies that the schema allows and the server rejects: the content of a string,
# keys and lists that must match others.
NOT_IN_SCHEMAS = [
    b'{"instances": ["\\ud800"]}',
    *(
        json.dumps(body).encode()
        for body in (
            {"instances": [bad_requests.ROW, {"text_a": "a"}]},
            {"instances": [{"text_a": {"b64": "?"}, "text_b": "a"}]},
        )
    ),
    *(bad_requests.of_ids(input_ids=x)[2] for x in ([[1, 1], [1]], [])),
]


def of_schema(schema, described=None):
    """Returns a validator of a schema, which may refer to components."""
    components = (described or {}).get("components") or {
        "schemas": schemas.COMPONENTS
    }
    return Draft202012Validator({**schema, "components": components})


def media(body, described):
    """Returns the JSON content of a body."""
    if "$ref" in body:
        *_, kind, name = body["$ref"].split("/")
        body = described["components"][kind][name]
    return body["content"][JSON]


def check_examples(server, described):
    """Sends all examples; returns the number of examples for each path."""
    counts = {}
    for path, operations in described["paths"].items():
        if "post" not in operations:
            continue
        request = media(operations["post"]["requestBody"], described)
        response = media(operations["post"]["responses"]["200"], described)
        examples = request.get("examples", {})
        for name, example in examples.items():
            body = example["value"]
            of_schema(request["schema"], described).validate(body)
            status, found = server.post(path, body)
            assert status == 200, (path, name, found)
            of_schema(response["schema"], described).validate(found)
        counts[path] = len(examples)
    return counts


def _is_accepted(body, known):
    try:
        json_requests.to_predict(body, known)
    except refusals.Refusal:
        return False
    return True


def test_schemas_refuse_what_the_server_refuses(pairs):
    known = signature_defs.read(str(pairs / "1"))
    schema = schemas.request(known, signature_defs.PREDICT)
    bodies = [x for _, path, x, _ in bad_requests.BAD if x and ":pre" in path]
    checked = 0
    for body in bodies:
        try:
            value = json_requests.parse(body)
        except refusals.Refusal:
            continue
        is_valid = of_schema(schema).is_valid(value)
        is_accepted = _is_accepted(body, known)
        assert is_valid == (is_accepted or body in NOT_IN_SCHEMAS), body
        checked += 1
    assert checked > 30


def _tensor(dtype, *shape):
    return signature_defs.Tensor(dtype, shape)


@pytest.mark.parametrize(
    ("inputs", "defaults", "good", "bad"),
    [
        (
            {"x": _tensor(tf.float32, None, 2)},
            {},
            [{"instances": [[1, 2.5]]}, {"inputs": {"x": [[1, 2], [3, 4]]}}],
            [{"instances": [[1]]}, {"inputs": [1, 2]}, {"instances": []}],
        ),
        (
            {"x": _tensor(tf.bool, None), "y": _tensor(tf.int8, None)},
            {"y": np.array([1])},
            [{"instances": [True]}, {"instances": [{"x": True, "y": 127}]}],
            [{"instances": [1]}, {"instances": [{"x": True, "y": 128}]}],
        ),
        (
            {"x": _tensor(tf.int64)},
            {},
            [{"inputs": 3}, {"inputs": {"x": 3}}],
            [{"inputs": [3]}, {"inputs": "3"}],
        ),
        (
            {"x": signature_defs.Tensor(tf.string, None)},
            {},
            [{"inputs": "a"}, {"inputs": [["a"], [{"b64": "YQ=="}]]}],
            [{"signature_name": "other", "inputs": "a"}],
        ),
        (
            {"x": _tensor(tf.complex64, None)},
            {},
            [],
            [{"instances": [1]}, {"inputs": [1]}],
        ),
    ],
)
def test_schemas_of_other_signatures(inputs, defaults, good, bad):
    known = signature_defs.Signatures({})
    known.by_name["serving_default"] = signature_defs.Signature(
        "serving_default", signature_defs.PREDICT, inputs, {}, defaults
    )
    schema = schemas.request(known, signature_defs.PREDICT)
    Draft202012Validator.check_schema(schema)
    for bodies, is_right in ((good, True), (bad, False)):
        for body in bodies:
            assert of_schema(schema).is_valid(body) == is_right, body
            assert _is_accepted(json.dumps(body).encode(), known) == is_right


def test_all_methods_are_described():
    assert openapi.METHODS.keys() == http_bodies.FORMATS.keys()


def test_each_head_has_a_description():
    assert descriptions._TASKS.keys() == served_heads.HEADS.keys()


# Each head that is served, and variants of two.
_HEADS = (
    *exports.NAMES,
    *("one text", "several labels", "regression", "tokens"),
)


@pytest.mark.parametrize(
    "head", combinations.some({*_HEADS} - {"several labels"}, _HEADS)
)
def test_examples_of_each_head_are_accepted(head):
    path = str(exports.exported(head))
    known, about = signature_defs.read(path), descriptions.read(path)
    assert about.head in exports.NAMES
    assert about.does.endswith(".")
    schema = schemas.request(known, signature_defs.PREDICT)
    for name, signature in known.by_name.items():
        row = about.row(signature)
        assert bool(row) == (signature.method == signature_defs.PREDICT)
        if row:
            body = {"signature_name": name, "instances": [row]}
            of_schema(schema).validate(body)
            assert _is_accepted(json.dumps(body).encode(), known)


@pytest.mark.exhaustive
def test_examples_of_all_heads_are_answered_as_described(tmp_path):
    models = {head.replace(" ", "_"): exports.exported(head) for head in _HEADS}
    given = ",".join(f"{name}={path}" for name, path in models.items())
    with served.start(tmp_path, f"--model={given}") as server:
        _, described = server.get("/openapi.json")
        assert all(check_examples(server, described).values())


def test_other_models_have_no_description(tmp_path):
    found = descriptions.read(str(tmp_path))
    assert (found.head, found.does, found.labels) == ("", "", ())
    assert found.max_seq_length is None
    for text in ("[]", "{"):
        (tmp_path / "assets").mkdir(exist_ok=True)
        (tmp_path / "assets" / "export.json").write_text(text)
        assert descriptions.read(str(tmp_path)) == found
