"""The bodies, messages and files in docs/tensorflow_serving.md are right.

Each body is answered by a tiny model of its head, through the signature and by
TensorFlow Serving's rules; the client connects to a real gRPC server.
"""

import concurrent.futures
import itertools
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from bert_tf.exporting import server_configs, version_labels
from tests import exports
from tests.exporting import test_server_configs as configs

import numpy as np
import pytest
import tensorflow as tf

# Exports are traced elsewhere, those of all heads.
pytestmark = pytest.mark.usefixtures("untraced")

_ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (_ROOT / "docs" / "tensorflow_serving.md").read_text(encoding="utf-8")
# The page's names of heads.
SECTIONS = {
    "Classification": "classification",
    "Classification of one text": "one text",
    "Classification of several labels": "several labels",
    "Regression scores": "regression",
    "Tagging": "tagging",
    "Span": "span",
    "Multiple choice": "multiple_choice",
    "Masked words": "masked_lm",
    "Next sentence": "next_sentence",
    "Next token": "next_piece",
    "Encoder": "encoder",
}


def section(heading):
    """Returns the text of a section."""
    text = re.split(rf"^### {heading}$", PAGE, flags=re.M)[1]
    return re.split(r"^##", text, flags=re.M)[0]


def blocks(language, text=PAGE):
    """Returns the blocks of a language in a section or in the whole page."""
    pattern = rf"^```{language}(?: title=\"\S+\")?\n(.*?)^```$"
    return re.findall(pattern, text, re.M | re.DOTALL)


def answer(name: str, body: str) -> tuple[dict[str, Any], set[str]]:
    """Answers the body of a REST request as TensorFlow Serving does.

    By its rules: tensorflow_serving/util/json_tensor.cc and g3doc/api_rest.md.

    Returns:
        The answer, and the names of the signature's inputs and outputs.
    """
    asked = json.loads(body)
    key = asked.pop("signature_name", "serving_default")
    serve = exports.made(name).signatures[key]
    ((form, values),) = asked.items()
    columns = _columns(values) if form == "instances" else values
    specs = _specs(serve)
    if not isinstance(columns, dict):  # The name of a single input is optional.
        (only,) = specs
        columns = {only: columns}
    # Inputs with a default are optional in gRPC only.
    assert columns.keys() == specs.keys()
    inputs = {
        key: tf.constant(value, specs[key].dtype)
        for key, value in columns.items()
    }
    found = {key: _json(x.numpy()) for key, x in serve(**inputs).items()}
    names = {*specs, *found}
    # The name of a single output is omitted.
    values = next(iter(found.values()))
    if form == "inputs":
        return {"outputs": found if len(found) > 1 else values}, names
    if len(found) > 1:
        rows = zip(*found.values(), strict=True)
        values = [dict(zip(found, x, strict=True)) for x in rows]
    return {"predictions": values}, names


def _specs(serve: Any) -> dict[str, tf.TensorSpec]:
    """Returns the inputs of a signature."""
    parameters = serve.function_type.parameters.items()
    return {name: x.type_constraint for name, x in parameters}


def _columns(rows: list[Any]) -> Any:
    if not isinstance(rows[0], Mapping):
        return rows
    assert all(row.keys() == rows[0].keys() for row in rows)
    return {key: [row[key] for row in rows] for key in rows[0]}


def _json(array: np.ndarray) -> Any:
    if array.dtype == object:
        return np.vectorize(bytes.decode, [object])(array).tolist()
    return array.tolist()


def shape_of(value):
    """Returns keys and types of a JSON value; of lists, the elements' types.

    The length of the lists in an answer depends on the model.
    """
    if isinstance(value, dict):
        return {key: shape_of(each) for key, each in value.items()}
    if isinstance(value, list):
        kinds = [shape_of(each) for each in value]
        return [kinds[0]] if kinds else []
    return type(value).__name__


def test_every_head_has_its_section():
    sections = re.findall(r"^### (.*)$", PAGE, re.M)
    assert sections == [*SECTIONS, "Ids"]
    assert set(SECTIONS.values()) >= set(exports.NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("heading", SECTIONS)
def test_bodies_are_answered_as_the_page_says(heading):
    text = section(heading)
    found = blocks("json", text)
    assert found
    assert len(found) % 2 == 0
    assert any("signature_name" not in x for x in found[::2])
    for body, expected in zip(found[::2], found[1::2], strict=True):
        given, names = answer(SECTIONS[heading], body)
        for name in names:
            assert f"`{name}`" in text or f'"{name}"' in text, name
        expected = json.loads(expected)
        assert given.keys() == expected.keys()
        if heading == "Tagging":  # Random weights may find no entities.
            (row,), (said,) = given["predictions"], expected["predictions"]
            assert row.keys() == said.keys()
            assert row["count"] == len(row["type"])
            continue
        assert shape_of(given) == shape_of(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", exports.NAMES)
def test_ids_of_every_head(name):
    usual, masked, choices = blocks("json", section("Ids"))
    body = {"masked_lm": masked, "multiple_choice": choices}.get(name, usual)
    outputs = answer(name, body)[0]["outputs"]
    rows = 2 if body == usual else 1
    columns = outputs.values() if isinstance(outputs, dict) else [outputs]
    assert [len(column) for column in columns] == [rows] * len(columns)


@pytest.mark.slow
def test_client_of_grpc():
    pytest.importorskip("tensorflow_serving")
    import grpc
    from tensorflow_serving.apis import predict_pb2
    from tensorflow_serving.apis import prediction_service_pb2_grpc as service

    signatures = exports.made("classification").signatures

    class Servicer(service.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802 (as it is there)
            assert request.model_spec.name == "mrpc"
            answer = predict_pb2.PredictResponse()
            inputs = {
                name: tf.constant(tf.make_ndarray(x))
                for name, x in request.inputs.items()
            }
            serve = signatures[request.model_spec.signature_name]
            for name, x in serve(**inputs).items():
                answer.outputs[name].CopyFrom(tf.make_tensor_proto(x.numpy()))
            return answer

    (client,) = blocks("python")
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    service.add_PredictionServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        names: dict[str, Any] = {}
        exec(client.replace("8500", str(port)), names)
        names["channel"].close()
    finally:
        server.stop(None)
    assert names["labels"].shape == (2,)
    assert set(names["labels"]) <= {x.encode() for x in exports.LABELS}


def test_batching_config_is_the_one_that_is_written():
    (text,) = [x for x in blocks("proto") if "max_batch_size" in x]
    assert text == server_configs.BATCHING_TEXT


def test_models_configs_are_what_is_written_and_move_labels_as_allowed(
    tmp_path,
):
    texts = [x for x in blocks("proto") if "model_config_list" in x]
    assert len(texts) == 4
    path = tmp_path / "models.config"
    said = []
    for text in texts:
        path.write_text(text)
        said.append(configs.models(tmp_path))
    path.unlink()
    server_configs.add(str(tmp_path), "/models/mrpc", 1)
    server_configs.add(str(tmp_path), "/models/ner", 1)
    assert configs.models(tmp_path) == said[0]
    server_configs.add(str(tmp_path), "/models/mrpc", 2)
    assert configs.models(tmp_path)["mrpc"] == said[1]["mrpc"]
    version_labels.promote(str(tmp_path), "mrpc", stable=2)
    assert configs.models(tmp_path)["mrpc"] == said[2]["mrpc"]
    version_labels.roll_back(str(tmp_path), "mrpc")
    assert configs.models(tmp_path)["mrpc"] == said[3]["mrpc"]
    for before, after in itertools.pairwise(said):
        loaded = before["mrpc"]["model_version_policy"]["specific"]["versions"]
        labels = before["mrpc"]["version_labels"]
        for label, version in after["mrpc"]["version_labels"].items():
            assert version in loaded or label not in labels
