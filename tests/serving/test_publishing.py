"""Tests of versions as TensorFlow Serving loads and warms them up.

A stranger, which has not this package, loads each head's version into a
session, and replays the requests, read by TensorFlow Serving's own messages.
"""

import dataclasses
import json
import pathlib
import re
import shutil

from bert_tf.errors import InputError
from bert_tf.exporting import saved_model, warmup
from bert_tf.serving import examples, heads, publishing
from bert_tf.serving import model as serving_model
from tests import exports, processes

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


_NAMES = ("classification", "multiple_choice", "span", "encoder")
# With all kinds of inputs: texts, lists of them, ids, messages.
_REPLAYED = _NAMES[:2]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Head -> the folder of its first version."""
    folder = tmp_path_factory.mktemp("served")
    for name in _NAMES:
        shutil.copytree(exports.exported(name), folder / name)
        made = exports.made(name)
        model = serving_model.of_export(made)
        form = heads.HEADS[model.head].asks
        columns = [x for x in form.columns if x in model.inputs]
        texts = examples.made(form, columns, exports.LENGTH)
        warmup.write(str(folder / name), texts, exports.LENGTH)
    return {name: folder / name for name in _NAMES}


@pytest.fixture(scope="module")
def replayed(published):
    """Head -> [signature, shapes of inputs, rows of answers] of requests."""
    paths = {name: str(published[name]) for name in _REPLAYED}
    code, output, errors = processes.run(_REPLAY, *paths.values())
    assert code == 0, errors
    found = json.loads(output.splitlines()[-1])
    return {name: found[path] for name, path in paths.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", _REPLAYED)
def test_every_signature_is_warmed_up_in_shapes_that_matter(name, replayed):
    asked: dict[str, list[dict[str, list[int]]]] = {}
    for signature, shapes, answers in replayed[name]:
        asked.setdefault(signature, []).append(shapes)
        (rows,) = {shape[0] for shape in shapes.values()}
        assert answers == [rows]
    assert asked.keys() == exports.made(name).signatures.keys()
    for signature, requests in asked.items():
        rows = [next(iter(shapes.values()))[0] for shapes in requests]
        assert rows == [1, 1, 8], signature
    lengths = [shapes["input_ids"][-1] for shapes in asked["serve_ids"]]
    assert lengths == [8, exports.LENGTH, exports.LENGTH]


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_texts_are_a_short_one_and_one_of_all_pieces(published, name):
    requests = [
        request.inputs
        for request in warmup.read(str(published[name]))
        if request.signature == "serving_default"
    ]
    short, full, mixed = (
        # Of each row those of its longest text.
        np.max([_words(x.reshape(len(x), -1)) for x in each.values()], axis=0)
        for each in requests
    )
    assert len(short) == len(full) == 1
    assert short[0] < exports.LENGTH
    assert full[0] >= exports.LENGTH
    assert len(set(mixed)) == len(mixed) == 8


def _words(texts):
    """Of texts [B, any]: [B]."""
    return [max(len(text.split()) for text in row) for row in texts]


# ---- The user's own lines ---------------------------------------------------


_TEXTS = tf.TensorSpec([None], tf.string)


def small(
    serve=lambda text_a: {"x": tf.strings.length(text_a)},
    specs=(_TEXTS,),
    head="classification",
    name="serving_default",
    **others,
):
    """An export that takes no time to be written; others: signatures."""
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
    # Those with as many choices are asked together too.
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


def test_the_first_text_goes_by_either_name(tmp_path):
    made = small(lambda text: {"x": text + "!"}, name="serve")
    saved_model.write(str(tmp_path), made)
    assert warmup.write(str(tmp_path), [{"text_a": ["a", "b"]}], 24) == 1
    (request,) = warmup.read(str(tmp_path))
    assert {x: y.tolist() for x, y in request.inputs.items()} == {
        "text": [b"a", b"b"]
    }


@pytest.mark.parametrize("method", ["classify", "regress"])
def test_methods_of_classify_and_regress(tmp_path, method):
    from tensorflow_serving.apis import prediction_log_pb2

    made = dataclasses.replace(
        small(classify, name="c"),
        methods={"c": f"tensorflow/serving/{method}"},
    )
    saved_model.write(str(tmp_path), made)
    warmup.write(str(tmp_path), [{"text_a": ["a", "b"]}], 24)
    (record,) = tf.data.TFRecordDataset(
        f"{tmp_path}/assets.extra/tf_serving_warmup_requests"
    ).as_numpy_iterator()
    log = prediction_log_pb2.PredictionLog.FromString(record)
    assert log.WhichOneof("log_type") == f"{method}_log"
    asked = getattr(log, f"{method}_log").request
    assert asked.model_spec.signature_name == "c"
    assert values(asked.input.example_list.examples) == [b"a", b"b"]
    (request,) = warmup.read(str(tmp_path))
    assert [*request.inputs] == ["inputs"]


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
