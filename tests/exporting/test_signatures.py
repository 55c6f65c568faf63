"""Inputs and outputs of every head's signatures, called like servers do."""

import functools
import itertools
import json
from typing import Any

from tests import combinations, exports, saved_models, serving_session

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import fingerprint_pb2
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

pytestmark = pytest.mark.slow

_NAMES = ("input_ids", "input_mask", "segment_ids")
_IDS = set(_NAMES)
_DEFAULT, _TEXT, _PAIR = {"text_a", "text_b"}, {"text"}, {"text", "text_b"}
_PAIRS = {"serving_default": _DEFAULT, "serve_pairs": _PAIR}
_TEXTS = {"serving_default": _TEXT, "serve_text": _TEXT}
# Each head's signatures and their inputs: a REST row has all of them.
_TAKEN = {
    "classification": _PAIRS
    | {"serve_text": _TEXT, "serve_ids": _IDS, "serve_examples": {"inputs"}},
    "encoder": _PAIRS | {"serve_text": _TEXT, "serve_ids": _IDS},
    "next_sentence": _PAIRS | {"serve_ids": _IDS},
    "tagging": _TEXTS | {"serve_words": _TEXT, "serve_ids": _IDS},
    "masked_lm": _TEXTS | {"serve_ids": _IDS | {"masked_lm_positions"}},
    "span": {"serving_default": {"question", "context"}, "serve_ids": _IDS},
    "multiple_choice": {
        "serving_default": {"prompt", "choices"},
        "serve_ids": _IDS,
    },
    "next_piece": _TEXTS | {"serve_scores": _TEXT, "serve_ids": _IDS},
}
_ALL = [(head, name) for head, taken in _TAKEN.items() for name in taken]
# The same in every column, so that no input is for one head only.
_ODD = [
    b"what a film",
    b"",
    b" \t\n",
    b"\x00",
    b"\xff\xfe good",
    b"[MASK] [MASK]bad[MASK]",
    "博 ".encode() * 40,
]


def _same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def _error(head, name, **inputs):
    """Returns the error message of the model."""
    return _message(exports.server(head), name, **inputs)


def _message(server, name, **inputs):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        server.ask(name, **inputs)
    return str(error.value)


# ---- Names ------------------------------------------------------------------


@pytest.mark.parametrize("head", exports.NAMES)
def test_what_is_taken(head):
    signatures = dict(exports.server(head).signatures)
    del signatures["__saved_model_init_op"]
    found = {name: set(x.inputs) for name, x in signatures.items()}
    assert found == _TAKEN[head]
    for signature in signatures.values():
        for name, info in signature.inputs.items():
            is_number = name in _IDS or name == "masked_lm_positions"
            dtype = tf.int32 if is_number else tf.string
            assert info.dtype == dtype.as_datatype_enum
            assert {x.size for x in info.tensor_shape.dim} == {-1}
    # Defaults are for gRPC clients; REST rows must have every input.
    for name, signature in signatures.items():
        has_default = "text_a" in _TAKEN[head][name]
        assert set(signature.defaults) == ({"text_b"} if has_default else set())


@pytest.mark.parametrize("head", ["classification", "encoder", "next_sentence"])
class TestPairs:
    def test_both_names(self, head):
        pairs = list(itertools.product(_ODD[:2] + _ODD[4:], _ODD))
        rows = [{"text_a": a, "text_b": b} for a, b in pairs]
        expected = exports.server(head).rows("serving_default", rows)
        rows = [{"text": a, "text_b": b} for a, b in pairs]
        _same(exports.server(head).rows("serve_pairs", rows), expected)

    def test_none_has_two_names(self, head):
        expected = exports.server(head).ask("serving_default", text_a=_ODD)
        alone = [{"text": text, "text_b": b""} for text in _ODD]
        _same(exports.server(head).rows("serve_pairs", alone), expected)
        if head != "next_sentence":
            rows = [{"text": text} for text in _ODD]
            _same(exports.server(head).rows("serve_text", rows), expected)

    @pytest.mark.parametrize(
        ("texts", "text_b"),
        [
            (["a", "film"], ["bad"]),
            (["a"], ["bad", "good"]),
            (["a", "film", "good"], ["bad", ""]),
            (["a", "film"], ["", "", ""]),
            (["a", "film"], np.zeros(0, str)),
        ],
    )
    @pytest.mark.parametrize(
        ("name", "first", "rest"),
        [
            ("serving_default", "text_a", "or be left out."),
            ("serve_pairs", "text", "empty ones for none."),
        ],
    )
    def test_as_many_texts(self, head, name, first, rest, texts, text_b):
        assert (
            f"[text_b must have as many texts as {first} ([B]), {rest} "
            f"Received: {first} {len(texts)}, text_b {len(text_b)}]"
        ) in _error(head, name, **{first: texts, "text_b": text_b})

    def test_one_empty_text_is_none_for_all(self, head):
        texts = ["a", "film", "good bad"]
        ask = functools.partial(exports.server(head).ask, "serving_default")
        expected = ask(text_a=texts, text_b=["", "", ""])
        for found in (ask(text_a=texts, text_b=[""]), ask(text_a=texts)):
            _same(found, expected)
        for found in (ask(text_a=[]), ask(text_a=[], text_b=[])):
            assert {len(x) for x in found.values()} == {0}


@pytest.mark.parametrize("head", ["tagging", "masked_lm"])
def test_a_text_is_text(head):
    rows = [{"text": text} for text in _ODD]
    expected = exports.server(head).rows("serving_default", rows)
    assert expected["count"].max() > 0
    _same(exports.server(head).rows("serve_text", rows), expected)


def test_a_single_text():
    server = exports.server("one text")
    assert {x: set(y.inputs) for x, y in server.signatures.items()} == {
        "serving_default": {"text_a"},
        "serve_text": {"text"},
        "serve_ids": _IDS,
        "serve_examples": {"inputs"},
        "__saved_model_init_op": set(),
    }
    expected = server.rows("serving_default", [{"text_a": x} for x in _ODD])
    _same(server.rows("serve_text", [{"text": x} for x in _ODD]), expected)


# ---- Answers ----------------------------------------------------------------


def _odd(head, name):
    """Returns inputs of a signature, [B] rows."""
    taken = _TAKEN[head][name]
    if "input_ids" not in taken:
        columns: dict[str, list[Any]] = dict.fromkeys(taken, _ODD)
        if "choices" in taken:
            columns["choices"] = [[x, b""] for x in _ODD]
        if "inputs" in taken:
            columns["inputs"] = [serving_session.example(text=x) for x in _ODD]
        return columns
    ids = saved_models.some_ids(len(_ODD), 9, 17)
    # One row has no token at all.
    ids["input_mask"][0] = 0
    if head == "multiple_choice":
        ids = {name: np.stack([x, x], 1) for name, x in ids.items()}
    if head == "masked_lm":
        ids["masked_lm_positions"] = np.zeros([len(_ODD), 2], np.int32)
    return ids


@pytest.mark.parametrize(("head", "name"), _ALL)
def test_numbers_are_those_of_json(head, name):
    some = _odd(head, name)
    outputs = exports.server(head).ask(name, **some)
    assert {len(x) for x in outputs.values()} == {len(_ODD)}
    for values in outputs.values():
        if values.dtype != object:
            # Positions that are not choices have a logit of -1e9; not every
            # JSON reader accepts larger numbers.
            assert np.all(np.abs(values.astype(np.float64)) <= 1e9)
            json.dumps(values.tolist(), allow_nan=False)


@pytest.mark.parametrize(("head", "name"), _ALL)
def test_no_rows_give_none(head, name):
    some = _odd(head, name)
    none = {x: np.array(y)[:0] for x, y in some.items()}
    outputs = exports.server(head).ask(name, **none)
    assert {len(x) for x in outputs.values()} == {0}
    if "input_ids" in none or "choices" in none:
        flat = {x: np.zeros([0] * y.ndim, np.int32) for x, y in none.items()}
        if "prompt" in none:
            flat = {x: y.astype(object) for x, y in flat.items()}
        outputs = exports.server(head).ask(name, **flat)
        assert {len(x) for x in outputs.values()} == {0}


@pytest.mark.parametrize(
    ("head", "name"),
    combinations.some(
        {
            ("span", "serve_ids"),
            ("multiple_choice", "serving_default"),
        },
        _ALL,
    ),
)
def test_dimensions_are_told_by_name(head, name):
    """The name is in the message of graphs that are optimized, as usual."""
    server = serving_session.Server(exports.exported(head), is_optimized=True)
    right = _odd(head, name)
    for wrong in right:
        columns = right | {wrong: np.array(right[wrong])[..., np.newaxis]}
        said = _message(server, name, **columns)
        assert f"Shape of tensor _arg_{name}_{wrong}_0" in said


def test_a_row_without_a_token_has_no_vector():
    asked = _odd("encoder", "serve_ids")
    vectors = exports.server("encoder").ask("serve_ids", **asked)["vectors"]
    assert not vectors[0].any()
    assert vectors[1:].any(axis=(1, 2)).all()


def test_a_stranger_answers_as_we_do(tmp_path):
    """It has the ops of all heads, and answers one, with int8 weights."""
    int8 = exports.exported("masked_lm", weights="int8")
    texts = [f"{text} [MASK]" for text in exports.TEXTS_A]
    asked = {
        name: saved_models.Asked(exports.exported(name), {})
        for name in (*exports.NAMES, "one text")
    }
    asked["int8"] = saved_models.Asked(int8, {"text": texts})
    found = saved_models.serve_all_elsewhere(
        tmp_path, asked, (saved_models.WORD_PIECES,)
    )["int8"]
    outputs = serving_session.Server(int8).ask("serving_default", text=texts)
    assert found.keys() == outputs.keys()
    for output, values in outputs.items():
        if values.dtype == object:
            values = np.vectorize(bytes.decode, [object])(values)
            assert found[output] == values.tolist(), output
        else:
            np.testing.assert_allclose(
                found[output], values, rtol=1e-5, atol=1e-5
            )


# ---- Files for TensorFlow Serving --------------------------------------------


@pytest.mark.parametrize("head", exports.NAMES)
def test_methods(head):
    for name, signature in exports.server(head).signatures.items():
        if name.startswith("serve_examples"):
            expected = "tensorflow/serving/classify"
        elif name.startswith("serv"):
            expected = "tensorflow/serving/predict"
        else:
            expected = ""
        assert signature.method_name == expected
    # The fingerprint belongs to the existing graph; each export has a separate
    # number.
    path = exports.exported(head)
    fresh, kept = map(
        fingerprint_pb2.FingerprintDef.FromString,
        (
            fingerprinting.CreateFingerprintDef(str(path)),
            (path / "fingerprint.pb").read_bytes(),
        ),
    )
    for one in (fresh, kept):
        one.ClearField("uuid")
    assert kept == fresh
    assert kept.signature_def_hash


# ---- Inconsistent inputs -----------------------------------------------------


@pytest.mark.parametrize(
    ("question", "context"),
    [(["a", "b"], ["a film"]), (["a"], ["a film", "good"]), (["a", "b"], [""])],
)
def test_as_many_contexts_as_questions(question, context):
    assert (
        "[context must have as many texts as question ([B]). Received: "
        f"question {len(question)}, context {len(context)}]"
    ) in _error("span", "serving_default", question=question, context=context)


@pytest.mark.parametrize(
    ("prompt", "choices"),
    [
        (["a"], [["a", "b", "bad"], ["good", "film", ""]]),
        (["a", "b", "c"], [["a", "b", "bad"], ["good", "film", ""]]),
        (["a", "b"], np.zeros([2, 0], str)),
    ],
)
def test_choices_of_each_prompt(prompt, choices):
    assert (
        "[choices must have a row for each prompt, [B] and [B, K], and a "
        "choice in each. Received: "
        f"prompt {len(prompt)}, choices [2 {len(choices[0])}]]"
    ) in _error(
        "multiple_choice", "serving_default", prompt=prompt, choices=choices
    )


def _ids(head, length=4):
    """Returns ids that are valid for every model."""
    shape = [2, 2, length] if head == "multiple_choice" else [2, length]
    inputs = {name: np.ones(shape, np.int32) for name in _NAMES}
    if head == "masked_lm":
        inputs["masked_lm_positions"] = np.zeros([2, 1], np.int32)
    return inputs


@pytest.mark.parametrize("head", exports.NAMES)
def test_ids_of_one_shape_and_of_lengths_that_the_model_knows(head):
    fails = functools.partial(_error, head, "serve_ids")
    for other in ("input_mask", "segment_ids"):
        inputs = _ids(head)
        # A single row would be broadcast.
        inputs[other] = inputs[other][:1]
        received = ", ".join(
            f"{x} [{' '.join(map(str, inputs[x].shape))}]" for x in _NAMES
        )
        assert (
            "[input_ids, input_mask and segment_ids must have the same shape. "
            f"Received: {received}]"
        ) in fails(**inputs)
    for length in (4, 16):
        known = _ids(head, length)
        assert exports.server(head).ask("serve_ids", **known)
    rows = "2 2" if head == "multiple_choice" else "2"
    for length in (0, 17):
        received = ", ".join(f"{x} [{rows} {length}]" for x in _NAMES)
        assert (
            "[input_ids must have 1 to 16 pieces in a row, the last axis. "
            f"Received: {received}]"
        ) in fails(**_ids(head, length))


@pytest.mark.parametrize("head", exports.NAMES)
@pytest.mark.parametrize(
    ("name", "wrong", "least", "most"),
    [
        ("input_ids", 17, 1, 17),
        ("input_ids", -1, -1, 1),
        ("input_mask", 2, 1, 2),
        ("segment_ids", 2, 1, 2),
        ("segment_ids", -1, -1, 1),
    ],
)
def test_ids_that_the_model_knows(head, name, wrong, least, most):
    inputs = _ids(head)
    inputs[name].flat[5] = wrong
    ends = dict.fromkeys(_NAMES, (1, 1)) | {name: (least, most)}
    received = ", ".join(f"{x} from {a} to {b}" for x, (a, b) in ends.items())
    assert (
        "[input_ids must be from 0 to 16, input_mask 0 or 1, and segment_ids "
        f"from 0 to 1. Received: {received}]"
    ) in _error(head, "serve_ids", **inputs)


def test_some_choices_of_ids():
    none = {x: y[:, :0] for x, y in _ids("multiple_choice").items()}
    assert (
        "[input_ids must have a choice for each prompt, [B, K, S]. Received: "
        "input_ids [2 0 4]"
    ) in _error("multiple_choice", "serve_ids", **none)


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        (
            [[0], [4]],
            "be from 0 to below the length of input_ids. "
            "Received: masked_lm_positions from 0 to 4]",
        ),
        (
            [[0], [-1]],
            "be from 0 to below the length of input_ids. "
            "Received: masked_lm_positions from -1 to 0]",
        ),
        (
            [[1, 1]],
            "have a row for each of input_ids. Received: "
            "masked_lm_positions [1 2], input_ids [2 4]]",
        ),
    ],
)
def test_places_in_each_row(places, problem):
    inputs = _ids("masked_lm") | {"masked_lm_positions": np.int32(places)}
    found = _error("masked_lm", "serve_ids", **inputs)
    assert f"[masked_lm_positions must {problem}" in found
