"""Tests of versions as TensorFlow Serving loads and warms them up.

The requests are parsed with TensorFlow Serving's own messages, and replayed in
a session of each head's version.
"""

import dataclasses
import functools
import json
import pathlib
import re
import shutil
from typing import Any

from bert_tf.errors import InputError
from bert_tf.exporting import saved_model, serving_inputs, warmup
from bert_tf.server import batching, servables
from bert_tf.serving import publishing, served_heads
from tests import combinations, exports

import numpy as np
import pytest
import tensorflow as tf

prediction_log_pb2 = pytest.importorskip(
    "tensorflow_serving.apis.prediction_log_pb2",
    reason="needs the package tensorflow-serving-api",
)

# With all kinds of inputs: texts, lists of them, ids, messages.
_NAMES = ("classification", "multiple_choice", "span")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Returns a function: head -> the folder of its first version."""
    folder = tmp_path_factory.mktemp("served")

    @functools.cache
    def write(name):
        shutil.copytree(exports.exported(name), folder / name)
        form = served_heads.HEADS[name].asks
        taken = exports.server(name).signatures["serving_default"].inputs
        columns = [x for x in form.columns if x in taken]
        lines = publishing.make_texts(form, columns, exports.LENGTH)
        warmup.write(str(folder / name), lines, exports.LENGTH)
        return folder / name

    return write


def _logged(folder):
    """Returns the requests that TensorFlow Serving reads, by their kinds."""
    path = f"{folder}/assets.extra/tf_serving_warmup_requests"
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        kind = log.WhichOneof("log_type")
        yield kind, getattr(log, kind).request


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", combinations.some(["classification"], _NAMES[:2])
)
def test_every_signature_is_warmed_up_in_shapes_that_matter(name, published):
    """Replayed as in saved_model_warmup_util.cc and predict_util.cc."""
    server = exports.server(name)
    asked: dict[str, list[dict[str, Any]]] = {}
    for kind, request in _logged(published(name)):
        key = request.model_spec.signature_name
        signature = server.signatures[key]
        if kind == "predict_log":
            tensors = {x: tf.make_ndarray(y) for x, y in request.inputs.items()}
            assert {x: y.dtype for x, y in request.inputs.items()} == {
                x: signature.inputs[x].dtype for x in tensors
            }
        else:
            rows = request.input.example_list.examples
            (only,) = signature.inputs
            tensors = {only: np.array([x.SerializeToString() for x in rows])}
            assert "/" + kind.removesuffix("_log") in signature.method_name
        answers = server.ask(key, **tensors)
        assert len({len(x) for x in (*tensors.values(), *answers.values())}) < 2
        asked.setdefault(key, []).append(tensors)
    assert {*asked, "__saved_model_init_op"} == set(server.signatures)
    for key, requests in asked.items():
        counts = [len(next(iter(tensors.values()))) for tensors in requests]
        assert counts == [1, 1, 8], key
    lengths = [tensors["input_ids"].shape[-1] for tensors in asked["serve_ids"]]
    assert lengths == [8, exports.LENGTH, exports.LENGTH]


@pytest.mark.slow
@pytest.mark.parametrize("name", combinations.some(_NAMES[:2], _NAMES))
def test_texts_are_a_short_one_and_one_of_all_pieces(published, name):
    requests = [
        request.inputs
        for request in warmup.read(str(published(name)))
        if request.signature == "serving_default"
    ]
    short, full, mixed = (
        # The longest text of each row counts.
        np.max([_words(x.reshape(len(x), -1)) for x in each.values()], axis=0)
        for each in requests
    )
    assert len(short) == len(full) == 1
    assert short[0] < exports.LENGTH
    assert full[0] >= exports.LENGTH
    assert len(set(mixed)) == len(mixed) == 8


def _words(texts):
    """Returns the numbers of words, [B], of texts [B, any]."""
    return [max(len(text.split()) for text in row) for row in texts]


# ---- The user's lines --------------------------------------------------------


_TEXTS = tf.TensorSpec([None], tf.string)


def small(
    serve=lambda text_a: {"x": tf.strings.length(text_a)},
    specs=(_TEXTS,),
    head="classification",
    name="serving_default",
    **others,
):
    """Returns an export that is written quickly; others: signatures."""
    module = tf.Module()
    module.serve = tf.function(serve, specs, autograph=False)
    module.others = {
        key: tf.function(other, [spec]) for key, (other, spec) in others.items()
    }
    description = {"head": head, "max_seq_length": 24}
    return saved_model.Export(
        module,
        {name: module.serve, **module.others},
        {
            "bert_config.json": exports.CONFIG.to_json().encode(),
            "export.json": json.dumps(description).encode(),
        },
    )


def texts(version):
    return [
        {x: y.tolist() for x, y in request.inputs.items()}
        for request in warmup.read(str(version))
        if request.signature == "serving_default"
    ]


def test_lines_of_a_file(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("He said so.\tHe did.\n\nOne text, é\n")
    made = small(lambda text_a, text_b: {"x": text_a + text_b}, [_TEXTS] * 2)
    assert publishing.publish(f"{tmp_path}/m", made, str(file)) == 1
    first, second = b"He said so.", "One text, é".encode()
    assert texts(tmp_path / "m" / "1") == [
        {"text_a": [first], "text_b": [b"He did."]},
        {"text_a": [second], "text_b": [b""]},
        {"text_a": [first, second], "text_b": [b"He did.", b""]},
    ]


def test_json_lines_with_choices(tmp_path):
    file = tmp_path / "lines.jsonl"
    rows = [
        {"prompt": "He", "choices": ["ran", "sat"]},
        {"prompt": "She", "choices": ["1", "2", "3"]},
        {"prompt": "It", "choices": ["a", "b"]},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = small(
        lambda prompt, choices: {"x": prompt, "y": choices},
        [_TEXTS, tf.TensorSpec([None, None], tf.string)],
        "multiple_choice",
    )
    publishing.publish(f"{tmp_path}/m", made, str(file))
    shapes = [
        tf.constant(request["choices"]).shape.as_list()
        for request in texts(tmp_path / "m" / "1")
    ]
    # Problems with the same number of choices are also sent together.
    assert shapes == [[1, 2], [1, 3], [1, 2], [2, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "A warm-up file has 1 to 999 lines, each a text. Received:"),
        ("a\n" * 1000, "A warm-up file has 1 to 999 lines"),
        ("a\n" * 999, "TensorFlow Serving reads at most 1000 warm-up requests"),
        ("ok\na\tb\n", "lines.txt, line 2: 2 columns with tabs between"),
    ],
)
def test_lines_that_are_refused_leave_nothing(tmp_path, text, message):
    file = tmp_path / "lines.txt"
    file.write_text(text)
    made = small(serve_text=(lambda text: {"x": text + "!"}, _TEXTS))
    with pytest.raises(InputError, match=re.escape(message)):
        publishing.publish(f"{tmp_path}/m", made, str(file))
    assert [*pathlib.Path(tmp_path, "m").glob("*")] == []


# ---- Signatures of other kinds ----------------------------------------------


def classify(inputs):
    """Takes serialized tf.Examples."""
    feature = {"text_a": tf.io.FixedLenFeature([], tf.string)}
    found = tf.io.parse_example(inputs, feature)["text_a"]
    return {"classes": found[:, tf.newaxis]}


def values(rows):
    return [x.features.feature["text_a"].bytes_list.value[0] for x in rows]


def test_serialized_examples_and_what_is_not_known(tmp_path, caplog):
    images = lambda image: {"x": image}, tf.TensorSpec([None], tf.float32)
    made = small(classify, name="serve_examples", serve_images=images)
    saved_model.write(str(tmp_path), made)
    assert warmup.write(str(tmp_path), [{"text_a": ["é", "b"]}], 24) == 1
    assert "no warm-up request for the signature serve_images" in caplog.text
    (request,) = warmup.read(str(tmp_path))
    assert request.signature == "serve_examples"
    rows = [tf.train.Example.FromString(x) for x in request.inputs["inputs"]]
    assert values(rows) == ["é".encode(), b"b"]


def test_ids_of_a_model_with_one_segment(tmp_path, caplog, monkeypatch):
    """Such as RoBERTa: of the file, and of servers without one."""
    config = dataclasses.replace(
        exports.CONFIG, type_vocab_size=1, max_position_embeddings=24
    )

    def serve(input_ids, input_mask, segment_ids):
        return serving_inputs.as_batch(
            input_ids, input_mask, segment_ids, config
        )

    made = small(serve, [serving_inputs.IDS] * 3, name="serve_ids")
    saved_model.write(str(tmp_path), made)
    assert warmup.write(str(tmp_path), [], 24) == 3
    (tmp_path / warmup.FILE).unlink()
    monkeypatch.setattr(servables, "_freeze", lambda: None)
    with caplog.at_level("DEBUG", "bert_tf.server"):
        servables.Servable(str(tmp_path), 1, batching.Limits()).close(0)
    assert "Warm-up" not in caplog.text


def test_the_first_text_goes_by_either_name(tmp_path):
    made = small(lambda text: {"x": text + "!"}, name="serve")
    saved_model.write(str(tmp_path), made)
    assert warmup.write(str(tmp_path), [{"text_a": ["a", "b"]}], 24) == 1
    (request,) = warmup.read(str(tmp_path))
    assert {x: y.tolist() for x, y in request.inputs.items()} == {
        "text": [b"a", b"b"]
    }


@pytest.mark.parametrize("method", ["classify", "regress"])
def test_methods_of_classify_and_regress(tmp_path, method, monkeypatch):
    made = dataclasses.replace(
        small(classify, name="c"),
        methods={"c": f"tensorflow/serving/{method}"},
    )
    saved_model.write(str(tmp_path), made)
    warmup.write(str(tmp_path), [{"text_a": ["a", "b"]}], 24)
    ((kind, asked),) = _logged(tmp_path)
    assert kind == f"{method}_log"
    assert asked.model_spec.signature_name == "c"
    assert values(asked.input.example_list.examples) == [b"a", b"b"]
    # Servers run it, and skip what is not known to this project.
    other = prediction_log_pb2.PredictionLog()
    other.session_run_log.SetInParent()
    path = str(tmp_path / warmup.FILE)
    records = [*tf.data.TFRecordDataset(path).as_numpy_iterator()]
    with tf.io.TFRecordWriter(path) as writer:
        for record in (other.SerializeToString(), *records):
            writer.write(record)
    ran = []
    monkeypatch.setattr(
        servables.Servable,
        "run",
        lambda _, signature, inputs: ran.append((signature.name, inputs)),
    )
    monkeypatch.setattr(servables, "_freeze", lambda: None)
    servables.Servable(str(tmp_path), 1, batching.Limits()).close(0)
    ((name, inputs),) = ran
    assert name == "c"
    rows = map(tf.train.Example.FromString, inputs["inputs"])
    assert values(rows) == [b"a", b"b"]


@pytest.mark.slow
def test_a_request_that_fails_is_not_written(tmp_path):
    def refuses(text_a):
        with tf.control_dependencies(
            [tf.debugging.assert_none_equal(text_a, "bad")]
        ):
            return {"x": tf.identity(text_a)}

    saved_model.write(str(tmp_path), small(refuses))
    with pytest.raises(tf.errors.InvalidArgumentError):
        warmup.write(str(tmp_path), [{"text_a": ["bad"]}], 24)
    assert not (tmp_path / "assets.extra").exists()
