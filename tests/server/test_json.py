"""JSON exactly as on TensorFlow Serving's page about its REST API."""

import json

from bert_tf.server import json_answers, json_requests, signature_defs
from bert_tf.server.refusals import Refusal
from bert_tf.server.signature_defs import CLASSIFY, PREDICT, REGRESS, Signature

import numpy as np
import pytest
import tensorflow as tf


def _signatures(inputs, method=PREDICT, defaults=None):
    found = signature_defs.Signatures({})
    found.by_name["serving_default"] = Signature(
        "serving_default", method, inputs, {}, defaults or {}
    )
    return found


def _tensor(dtype, *shape):
    return signature_defs.Tensor(dtype, shape)


_TEXT = _signatures({"text": _tensor(tf.string, None)})
_SEVERAL = _signatures(
    {
        "tag": _tensor(tf.string, None),
        "signal": _tensor(tf.int32, None, None),
        "sensor": _tensor(tf.float32, None, 2, 2),
    }
)
_PAIR = _signatures(
    {"a": _tensor(tf.string, None), "b": _tensor(tf.string, None)},
    defaults={"b": np.array([b""], object)},
)
_TAGS = [b"foo", b"bar"]
_SIGNALS = [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]]
_SENSORS = [[[1, 2], [3, 4]], [[4, 5], [6, 8]]]


class TestRequests:
    def test_rows_of_one_input(self):
        body = b'{"instances": ["foo", "bar", {"b64": "YmF6/w=="}]}'
        request = json_requests.to_predict(body, _TEXT)
        assert request.in_rows
        assert request.inputs["text"].tolist() == [b"foo", b"bar", b"baz\xff"]

    @pytest.mark.parametrize("in_rows", [True, False])
    def test_several_inputs(self, in_rows):
        columns: dict[str, list] = {
            "tag": ["foo", "bar"],
            "signal": _SIGNALS,
            "sensor": _SENSORS,
        }
        rows = [{name: x[i] for name, x in columns.items()} for i in range(2)]
        asked = {"instances": rows} if in_rows else {"inputs": columns}
        request = json_requests.to_predict(json.dumps(asked).encode(), _SEVERAL)
        assert request.in_rows == in_rows
        assert request.inputs["tag"].tolist() == _TAGS
        assert request.inputs["signal"].dtype == np.int32
        assert request.inputs["signal"].tolist() == _SIGNALS
        assert request.inputs["sensor"].dtype == np.float32
        assert request.inputs["sensor"].tolist() == _SENSORS

    def test_a_key_given_twice_among_many(self):
        # Comparing each with all others would take minutes.
        pairs = ", ".join(f'"{min(i, 99_998)}": 0' for i in range(100_000))
        with pytest.raises(Refusal, match='key given twice: "99998"'):
            json_requests.parse(f"{{{pairs}}}".encode())

    def test_numbers_that_are_none(self):
        found = json_requests.to_predict(
            b'{"inputs": [1, -3.5, NaN, Infinity, -Infinity, 1e300]}',
            _signatures({"x": _tensor(tf.float32, None)}),
        )
        np.testing.assert_array_equal(
            found.inputs["x"], [1, -3.5, np.nan, np.inf, -np.inf, np.inf]
        )

    def test_inputs_with_defaults_may_be_left_out(self):
        for body in (
            b'{"instances": [{"a": "x"}]}',
            b'{"instances": ["x"]}',
            b'{"inputs": {"a": ["x"]}}',
        ):
            found = json_requests.to_predict(body, _PAIR).inputs
            assert {k: x.tolist() for k, x in found.items()} == {"a": [b"x"]}

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ({"a": ["x", "y"], "b": [""]}, ["a"]),
            ({"a": ["x"], "b": [""]}, ["a", "b"]),
            ({"a": ["x", "y"], "b": ["z"]}, ["a", "b"]),
        ],
    )
    def test_a_default_for_all_rows_is_no_row(self, given, kept):
        """Requests with it have as many rows as texts, and are split."""
        body = json.dumps({"inputs": given}).encode()
        assert [*json_requests.to_predict(body, _PAIR).inputs] == kept

    def test_zero_rows_in_columns(self):
        found = json_requests.to_predict(b'{"inputs": []}', _TEXT)
        assert found.inputs["text"].shape == (0,)

    def test_examples(self):
        body = {
            "context": {"n": [1, 2]},
            "examples": [{"x": 1.5, "s": "a"}, {"x": 2, "s": {"b64": "YQ=="}}],
        }
        found = json_requests.to_examples(
            json.dumps(body).encode(),
            _signatures({"inputs": _tensor(tf.string, None)}, CLASSIFY),
            CLASSIFY,
        )
        first, second = map(tf.train.Example.FromString, found.inputs["inputs"])
        for example in (first, second):
            feature = example.features.feature
            assert feature["n"].int64_list.value == [1, 2]
            assert feature["s"].bytes_list.value == [b"a"]
        assert first.features.feature["x"].float_list.value == [1.5]
        assert second.features.feature["x"].int64_list.value == [2]

    def test_methods_are_those_of_the_signature(self):
        examples = b'{"examples": [{"x": 1}]}'
        with pytest.raises(Refusal, match="Expected regression signature"):
            json_requests.to_examples(examples, _TEXT, REGRESS)


class TestAnswers:
    def test_rows_and_columns(self):
        one = {"score": np.array([3.5, 4.0, 5.5], np.float32)}
        assert json.loads(json_answers.of_predict(one, True)) == {
            "predictions": [3.5, 4.0, 5.5]
        }
        assert json.loads(json_answers.of_predict(one, False)) == {
            "outputs": [3.5, 4.0, 5.5]
        }
        two = {**one, "label": np.array([b"a", b"\xc3\xa9", b"\xff"], object)}
        labels, scores = ["a", "é", "\ufffd"], [3.5, 4, 5.5]
        assert json.loads(json_answers.of_predict(two, True)) == {
            "predictions": [
                {"label": x, "score": y}
                for x, y in zip(labels, scores, strict=True)
            ]
        }
        assert json.loads(json_answers.of_predict(two, False)) == {
            "outputs": {"label": labels, "score": scores}
        }

    def test_numbers(self):
        values = [0.1, 1e-8, 3e38, 16777216, np.nan, np.inf, -np.inf]
        floats = {"x": np.array(values, np.float32)}
        assert json_answers.of_predict(floats, False) == (
            '{"outputs": [0.1, 1e-08, 3e+38, 16777216.0, NaN, Infinity, '
            "-Infinity]}"
        )
        random = np.random.default_rng(1).normal(size=1000).astype(np.float32)
        found = json.loads(json_answers.of_predict({"x": random}, False))
        np.testing.assert_array_equal(np.float32(found["outputs"]), random)
        integers = {"x": np.array([[1], [-2]]), "y": np.array([True, False])}
        assert json_answers.of_predict(integers, True) == (
            '{"predictions": [{"x": [1], "y": true}, {"x": [-2], "y": false}]}'
        )

    def test_bytes(self):
        found = json_answers.of_predict(
            {"image_bytes": np.array([b"\xff"], object)}, False
        )
        assert json.loads(found) == {"outputs": [{"b64": "/w=="}]}

    def test_what_has_no_rows(self):
        scalar = {"x": np.array(1, np.float32)}
        assert json_answers.of_predict(scalar, False) == '{"outputs": 1.0}'
        uneven = {"x": np.zeros(2), "y": np.zeros(3)}
        for outputs in (scalar, uneven):
            with pytest.raises(Refusal):
                json_answers.of_predict(outputs, True)

    def test_classes_and_values(self):
        outputs = {
            "classes": np.array([[b"no", b"yes"]], object),
            "scores": np.array([[0.25, 0.75]], np.float32),
        }
        assert json.loads(json_answers.of_classify(outputs)) == {
            "results": [[["no", 0.25], ["yes", 0.75]]]
        }
        for shape in ([2], [2, 1]):
            values = np.array([1.5, 2], np.float32).reshape(shape)
            assert json.loads(json_answers.of_regress({"outputs": values})) == {
                "results": [1.5, 2]
            }
