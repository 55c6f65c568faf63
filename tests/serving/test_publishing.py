"""Tests of versions as TensorFlow Serving loads and warms them up.

A stranger, which has not this package, loads each head's version into a
session, and replays the requests, read by TensorFlow Serving's own messages.
"""

import json
import pathlib
import re

from bert_tf.errors import InputError
from bert_tf.exporting import saved_model, warmup
from bert_tf.serving import publishing
from tests import processes, served_models

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip(
    "tensorflow_serving", reason="needs the package tensorflow-serving-api"
)

# As saved_model_warmup_util.cc and predict_util.cc do it.
_REPLAY = """
import json, sys
import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow_serving.apis import prediction_log_pb2

assert "bert_tf" not in sys.modules
found = {}
for path in sys.argv[1:]:
    rows = []
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        name = path + "/assets.extra/tf_serving_warmup_requests"
        for record in tf.compat.v1.io.tf_record_iterator(name):
            log = prediction_log_pb2.PredictionLog.FromString(record)
            kind = log.WhichOneof("log_type")
            asked = getattr(log, kind).request
            signature = graph.signature_def[asked.model_spec.signature_name]
            inputs = signature.inputs
            if kind == "predict_log":
                tensors = {
                    x: tf.make_ndarray(y) for x, y in asked.inputs.items()
                }
                assert tensors.keys() <= inputs.keys()
                assert {x: y.dtype for x, y in asked.inputs.items()} == {
                    x: inputs[x].dtype for x in tensors
                }
            else:
                (name,) = inputs
                examples = asked.input.example_list.examples
                rows_in = [x.SerializeToString() for x in examples]
                tensors = {name: np.array(rows_in, object)}
                assert "/" + kind.removesuffix("_log") in signature.method_name
            feeds = {inputs[x].name: y for x, y in tensors.items()}
            fetches = {x: y.name for x, y in signature.outputs.items()}
            answers = session.run(fetches, feeds)
            rows.append([
                asked.model_spec.signature_name,
                {x: y.shape for x, y in tensors.items()},
                sorted({len(x) for x in answers.values()}),
            ])
    found[path] = rows
print(json.dumps(found))
"""


# The others are like these.
_FIRST = ("classification", "masked_lm")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            name,
            marks=getattr(
                pytest.mark, "slow" if name in _FIRST else "exhaustive"
            ),
        )
        for name in served_models.HEADS
    ],
)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def export(name):
    return served_models.export(name)


@pytest.fixture(scope="module")
def published(export, tmp_path_factory):
    """The folder of its first version."""
    path = tmp_path_factory.mktemp("served") / "model"
    assert publishing.publish(str(path), export) == 1
    return path / "1"


@pytest.fixture(scope="module")
def replayed(published):
    """[signature, shapes of inputs, rows of the answers] of each request."""
    code, output, errors = processes.run(_REPLAY, published)
    assert code == 0, errors
    return json.loads(output.splitlines()[-1])[str(published)]


def test_every_signature_is_warmed_up_in_shapes_that_matter(export, replayed):
    asked: dict[str, list[dict[str, list[int]]]] = {}
    for signature, shapes, answers in replayed:
        asked.setdefault(signature, []).append(shapes)
        (rows,) = {shape[0] for shape in shapes.values()}
        assert answers == [rows]
    assert asked.keys() == export.signatures.keys()
    for signature, requests in asked.items():
        rows = [next(iter(shapes.values()))[0] for shapes in requests]
        assert rows == [1, 1, 8], signature
    lengths = [shapes["input_ids"][-1] for shapes in asked["serve_ids"]]
    assert lengths == [8, served_models.LENGTH, served_models.LENGTH]


def test_texts_are_a_short_one_and_one_of_all_pieces(published, name):
    requests = [
        request.inputs
        for request in warmup.read(str(published))
        if request.signature == "serving_default"
    ]
    short, full, mixed = (
        # Of each row those of its longest text.
        np.max([_words(x.reshape(len(x), -1)) for x in each.values()], axis=0)
        for each in requests
    )
    assert len(short) == len(full) == 1
    assert short[0] < served_models.LENGTH // 2
    assert full[0] >= served_models.LENGTH
    assert len(set(mixed)) == len(mixed) == 8
    if name == "masked_lm":
        for request in requests:
            assert all(b"[MASK]" in text for text in request["text"])


def _words(texts):
    """Of texts [B, any]: [B]."""
    return [max(len(text.split()) for text in row) for row in texts]


# ---- The user's own lines ---------------------------------------------------


def texts(version):
    return [
        {x: y.tolist() for x, y in request.inputs.items()}
        for request in warmup.read(str(version))
        if request.signature == "serving_default"
    ]


@pytest.mark.slow
def test_lines_of_a_file(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("He said so.\tHe did.\n\nOne text, é\n")
    made = served_models.export("classification")
    publishing.publish(f"{tmp_path}/m", made, str(file))
    first, second = "He said so.", "One text, é"
    assert texts(tmp_path / "m" / "1") == [
        {"text_a": [first.encode()], "text_b": [b"He did."]},
        {"text_a": [second.encode()], "text_b": [b""]},
        {
            "text_a": [first.encode(), second.encode()],
            "text_b": [b"He did.", b""],
        },
    ]


@pytest.mark.slow
def test_json_lines_with_choices(tmp_path):
    file = tmp_path / "lines.jsonl"
    lines = [
        ("He", ["ran", "sat"]),
        ("She", ["1", "2", "3"]),
        ("It", ["a", "b"]),
    ]
    rows = [{"prompt": x, "choices": y} for x, y in lines]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = served_models.export("multiple_choice")
    publishing.publish(f"{tmp_path}/m", made, str(file))
    shapes = [
        tf.constant(request["choices"]).shape.as_list()
        for request in texts(tmp_path / "m" / "1")
    ]
    # Those with as many choices are asked together too.
    assert shapes == [[1, 2], [1, 3], [1, 2], [2, 2]]


@pytest.mark.slow
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
    made = served_models.export("classification of one text")
    with pytest.raises(InputError, match=re.escape(message)):
        publishing.publish(f"{tmp_path}/m", made, str(file))
    left = [*pathlib.Path(tmp_path, "m").glob("*")]
    assert left == []


# ---- Signatures of other kinds ----------------------------------------------


class Classify(tf.Module):
    """What takes serialized tf.Example, and what nobody knows to ask."""

    def __init__(self):
        super().__init__()
        spec = tf.TensorSpec([None], tf.string)
        feature = {"text_a": tf.io.FixedLenFeature([], tf.string)}

        def classify(inputs):
            found = tf.io.parse_example(inputs, feature)["text_a"]
            return {"classes": found[:, tf.newaxis]}

        self.classify = tf.function(classify, [spec])
        self.others = tf.function(
            lambda image: {"x": image}, [tf.TensorSpec([None], tf.float32)]
        )


def test_serialized_examples_and_what_is_not_known(tmp_path, caplog):
    made = served_models.export("classification of one text")
    module = Classify()
    made = saved_model.Export(
        module,
        {"serve_examples": module.classify, "serve_images": module.others},
        made.files,
    )
    saved_model.write(str(tmp_path), made)
    assert warmup.write(str(tmp_path), [{"text_a": ["é", "b"]}], 24) == 1
    assert "no warm-up request for the signature serve_images" in caplog.text
    (request,) = warmup.read(str(tmp_path))
    assert request.signature == "serve_examples"
    rows = [tf.train.Example.FromString(x) for x in request.inputs["inputs"]]
    values = [x.features.feature["text_a"].bytes_list.value[0] for x in rows]
    assert values == ["é".encode(), b"b"]


def test_the_first_text_goes_by_either_name(tmp_path):
    spec = tf.TensorSpec([None], tf.string)
    module = tf.Module()
    module.serve = tf.function(lambda text: {"x": text + "!"}, [spec])
    made = served_models.export("classification of one text")
    made = saved_model.Export(module, {"serve": module.serve}, made.files)
    saved_model.write(str(tmp_path), made)
    assert warmup.write(str(tmp_path), [{"text_a": ["a", "b"]}], 24) == 1
    (request,) = warmup.read(str(tmp_path))
    assert {x: y.tolist() for x, y in request.inputs.items()} == {
        "text": [b"a", b"b"]
    }


@pytest.mark.parametrize("method", ["classify", "regress"])
def test_methods_of_classify_and_regress(tmp_path, method):
    from tensorflow.core.protobuf import saved_model_pb2
    from tensorflow_serving.apis import prediction_log_pb2

    made = served_models.export("classification of one text")
    module = Classify()
    made = saved_model.Export(module, {"c": module.classify}, made.files)
    saved_model.write(str(tmp_path), made)
    path = tmp_path / "saved_model.pb"
    message = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    signature = message.meta_graphs[0].signature_def["c"]
    signature.method_name = f"tensorflow/serving/{method}"
    path.write_bytes(message.SerializeToString())
    warmup.write(str(tmp_path), [{"text_a": ["a", "b"]}], 24)
    (record,) = tf.data.TFRecordDataset(
        f"{tmp_path}/assets.extra/tf_serving_warmup_requests"
    ).as_numpy_iterator()
    log = prediction_log_pb2.PredictionLog.FromString(record)
    assert log.WhichOneof("log_type") == f"{method}_log"
    asked = getattr(log, f"{method}_log").request
    assert asked.model_spec.signature_name == "c"
    found = [
        x.features.feature["text_a"].bytes_list.value[0]
        for x in asked.input.example_list.examples
    ]
    assert found == [b"a", b"b"]
    (request,) = warmup.read(str(tmp_path))
    assert [*request.inputs] == ["inputs"]


def test_a_request_that_fails_is_not_written(tmp_path):
    class Refuses(tf.Module):
        def __init__(self):
            super().__init__()
            spec = tf.TensorSpec([None], tf.string)

            def serve(text_a):
                with tf.control_dependencies(
                    [tf.debugging.assert_none_equal(text_a, "bad")]
                ):
                    return {"x": tf.identity(text_a)}

            self.serve = tf.function(serve, [spec])

    made = served_models.export("classification of one text")
    module = Refuses()
    made = saved_model.Export(
        module, {"serving_default": module.serve}, made.files
    )
    saved_model.write(str(tmp_path), made)
    with pytest.raises(tf.errors.InvalidArgumentError):
        warmup.write(str(tmp_path), [{"text_a": ["bad"]}], 24)
    assert not (tmp_path / "assets.extra").exists()
