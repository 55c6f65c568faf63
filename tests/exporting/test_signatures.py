"""What every head's signatures take and answer, asked as servers ask them."""

import itertools
import json
from typing import Any

from tests import exports, saved_models, serving_session

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import fingerprint_pb2
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

_IDS = {"input_ids", "input_mask", "segment_ids"}
_DEFAULT, _TEXT, _PAIR = {"text_a", "text_b"}, {"text"}, {"text", "text_b"}
_PAIRS = {"serving_default": _DEFAULT, "serve_pairs": _PAIR}
_TEXTS = {"serving_default": _TEXT, "serve_text": _TEXT}
# Each head's signatures and what each takes: a row of REST has all of it.
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
# Alike in every column, so that none of them is there for one head only.
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


# ---- Names ------------------------------------------------------------------


@pytest.mark.slow
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
    # A default is for clients of gRPC; rows of REST must have every input.
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
        ("text", "text_b"),
        [(["a", "b"], ["c"]), (["a"], []), (["a"] * 2, [""])],
    )
    def test_as_many_texts(self, head, text, text_b):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            exports.server(head).ask("serve_pairs", text=text, text_b=text_b)
        assert (
            "[text_b must have as many texts as text ([B]), empty ones for "
            f"none. Received: text {len(text)}, text_b {len(text_b)}]"
        ) in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["tagging", "masked_lm"])
def test_a_text_is_text(head):
    rows = [{"text": text} for text in _ODD]
    expected = exports.server(head).rows("serving_default", rows)
    assert expected["count"].max() > 0
    _same(exports.server(head).rows("serve_text", rows), expected)


@pytest.mark.slow
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
    """What a signature takes, [B] rows of it."""
    taken = _TAKEN[head][name]
    if "input_ids" not in taken:
        columns: dict[str, list[Any]] = dict.fromkeys(taken, _ODD)
        if "choices" in taken:
            columns["choices"] = [[x, b""] for x in _ODD]
        if "inputs" in taken:
            columns["inputs"] = [serving_session.example(text=x) for x in _ODD]
        return columns
    ids = saved_models.some_ids(len(_ODD), 9, 17)
    # One has no token at all.
    ids["input_mask"][0] = 0
    if head == "multiple_choice":
        ids = {name: np.stack([x, x], 1) for name, x in ids.items()}
    if head == "masked_lm":
        ids["masked_lm_positions"] = np.zeros([len(_ODD), 2], np.int32)
    return ids


@pytest.mark.slow
@pytest.mark.parametrize(("head", "name"), _ALL)
def test_numbers_are_those_of_json(head, name):
    some = _odd(head, name)
    outputs = exports.server(head).ask(name, **some)
    assert {len(x) for x in outputs.values()} == {len(_ODD)}
    for values in outputs.values():
        if values.dtype != object:
            # What is no choice has a logit of -1e9; more is not a number
            # that everything that reads JSON can hold.
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


@pytest.mark.parametrize(("head", "name"), _ALL)
def test_dimensions_are_told_by_name(head, name):
    right = _odd(head, name)
    for wrong in right:
        columns = right | {wrong: np.array(right[wrong])[..., np.newaxis]}
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            exports.server(head).ask(name, **columns)
        assert f"Shape of tensor _arg_{name}_{wrong}_0" in str(error.value)


def test_a_row_without_a_token_has_no_vector():
    asked = _odd("encoder", "serve_ids")
    vectors = exports.server("encoder").ask("serve_ids", **asked)["vectors"]
    assert not vectors[0].any()
    assert vectors[1:].any(axis=(1, 2)).all()


@pytest.mark.slow
def test_a_stranger_answers_as_we_do(tmp_path):
    """Also with int8 weights, and where texts are single."""
    names = (*exports.NAMES, "one text")
    paths = {name: exports.exported(name) for name in names}
    paths["int8"] = exports.exported("classification", weights="int8")
    servers = {name: exports.server(name) for name in names}
    servers["int8"] = serving_session.Server(paths["int8"])
    texts = dict.fromkeys(("text_a", "prompt", "question"), exports.TEXTS_A)
    texts |= dict.fromkeys(("text_b", "context"), exports.TEXTS_B)
    texts |= {"text": [f"{text} [MASK]" for text in exports.TEXTS_A]}
    texts |= {"choices": exports.PAIRS}
    asked = {
        name: saved_models.Asked(
            paths[name],
            {x: texts[x] for x in server.signatures["serving_default"].inputs},
        )
        for name, server in servers.items()
    }
    found = saved_models.serve_all_elsewhere(
        tmp_path, asked, (saved_models.WORD_PIECES,)
    )
    for name, server in servers.items():
        outputs = server.ask("serving_default", **asked[name].inputs)
        for output, values in outputs.items():
            if values.dtype == object:
                values = np.vectorize(bytes.decode, [object])(values)
                assert found[name][output] == values.tolist(), (name, output)
            else:
                np.testing.assert_allclose(
                    found[name][output], values, rtol=1e-5, atol=1e-5
                )


# ---- What TensorFlow Serving is told ----------------------------------------


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
    # The fingerprint is that of the graph that is there; each has a number of
    # its own.
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
