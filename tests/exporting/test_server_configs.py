"""Tests of models.config and batching.config, read as TensorFlow Serving does.

Its own messages read the former. The package of its messages lacks those of
batching: their fields stand here as session_bundle_config.proto has them.
"""

import json
import shlex

from bert_tf.errors import InputError
from bert_tf.exporting import server_configs
from tests import processes

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
    text_format,
    wrappers_pb2,
)

model_server_config_pb2 = pytest.importorskip(
    "tensorflow_serving.config.model_server_config_pb2",
    reason="needs the package tensorflow-serving-api",
)

_NUMBERS = {
    "max_batch_size": 1,
    "batch_timeout_micros": 2,
    "max_enqueued_batches": 3,
    "num_batch_threads": 4,
}


def batching(text):
    """Returns a BatchingParameters of a text."""
    whole = {"type": "TYPE_MESSAGE", "typeName": ".google.protobuf.Int64Value"}
    fields = [
        {"name": name, "number": number, **whole}
        for name, number in _NUMBERS.items()
    ]
    sizes = {"type": "TYPE_INT64", "label": "LABEL_REPEATED"}
    fields += [
        {"name": "allowed_batch_sizes", "number": 6, **sizes},
        {"name": "pad_variable_length_inputs", "number": 7, "type": 8},
    ]
    file = {
        "name": "batching.proto",
        "package": "tensorflow.serving",
        "syntax": "proto3",
        "dependency": [wrappers_pb2.DESCRIPTOR.name],
        "messageType": [{"name": "BatchingParameters", "field": fields}],
    }
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(json_format.ParseDict(file, descriptor_pb2.FileDescriptorProto()))
    found = pool.FindMessageTypeByName("tensorflow.serving.BatchingParameters")
    return text_format.Parse(text, message_factory.GetMessageClass(found)())


def models(folder):
    """Returns what models.config says, name -> values."""
    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((folder / "models.config").read_text(), config)
    found = {
        entry.name: json_format.MessageToDict(
            entry, preserving_proto_field_name=True
        )
        for entry in config.model_config_list.config
    }
    assert len(found) == len(config.model_config_list.config)
    return found


def served(folder, name):
    """Returns a model's versions, and its labels."""
    entry = models(folder)[name]
    versions = entry["model_version_policy"]["specific"]["versions"]
    labels = entry["version_labels"]
    return [*map(int, versions)], {x: int(y) for x, y in labels.items()}


def test_batching_keeps_the_rules():
    parameters = batching(server_configs.BATCHING_TEXT)
    sizes = list(parameters.allowed_batch_sizes)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == parameters.max_batch_size.value
    assert not parameters.pad_variable_length_inputs
    assert parameters.num_batch_threads.value >= 1
    assert {field.name for field, _ in parameters.ListFields()} == {
        *_NUMBERS,
        "allowed_batch_sizes",
    }


def test_several_models(tmp_path):
    server_configs.add(str(tmp_path), f"{tmp_path}/mrpc/", 3)
    server_configs.add(str(tmp_path), "gs://b/models/ner", 1)
    assert models(tmp_path) == {
        "mrpc": {
            "name": "mrpc",
            "base_path": f"{tmp_path}/mrpc",
            "model_platform": "tensorflow",
            "model_version_policy": {"specific": {"versions": ["3"]}},
            "version_labels": {"stable": "3"},
        },
        "ner": {
            "name": "ner",
            "base_path": "gs://b/models/ner",
            "model_platform": "tensorflow",
            "model_version_policy": {"specific": {"versions": ["1"]}},
            "version_labels": {"stable": "1"},
        },
    }
    text = (tmp_path / "batching.config").read_text()
    assert text == server_configs.BATCHING_TEXT


def test_labels_in_use_stay(tmp_path):
    # server_core.cc refuses a config that moves one to what is not loaded.
    model, folder = f"{tmp_path}/mrpc", str(tmp_path)
    assert server_configs.add(folder, model, 3) == "stable"
    assert server_configs.add(folder, model, 4) == "canary"
    assert served(tmp_path, "mrpc") == ([3, 4], {"stable": 3, "canary": 4})
    assert server_configs.add(folder, model, 5) == ""
    assert served(tmp_path, "mrpc") == ([3, 4, 5], {"stable": 3, "canary": 4})
    path = tmp_path / "models.config"
    path.write_text(path.read_text().replace("value: 4", "value: 5"))
    assert server_configs.add(folder, model, 6) == ""
    assert served(tmp_path, "mrpc") == ([3, 5, 6], {"stable": 3, "canary": 5})


def test_what_else_is_said_stays(tmp_path):
    (tmp_path / "models.config").write_text(
        "model_config_list { config { name: 'mrpc' "
        f"base_path: '{tmp_path}/mrpc/' model_platform: 'tensorflow' "
        "logging_config { sampling_config { sampling_rate: 0.5 } } "
        "version_labels { key: 'night' value: 2 } } }"
    )
    (tmp_path / "batching.config").write_text("max_batch_size { value: 4 }\n")
    server_configs.add(str(tmp_path), f"{tmp_path}/mrpc", 3)
    assert served(tmp_path, "mrpc") == ([2, 3], {"night": 2, "stable": 3})
    logging = models(tmp_path)["mrpc"]["logging_config"]
    assert logging == {"sampling_config": {"sampling_rate": 0.5}}
    text = (tmp_path / "batching.config").read_text()
    assert text == "max_batch_size { value: 4 }\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_config_list {", "is not a list of models of TensorFlow"),
        ("models { name: 'a' }", "is not a list of models of TensorFlow"),
        ("custom_model_config {}", "has a custom_model_config, and models"),
        (
            "model_config_list { config { name: 'm' base_path: '/x/m' } }",
            "has another model of this name, in /x/m",
        ),
    ],
)
def test_refused(tmp_path, text, message):
    path = tmp_path / "models.config"
    path.write_text(text)
    for act in (
        lambda: server_configs.check(str(tmp_path), "/y/m"),
        lambda: server_configs.add(str(tmp_path), "/y/m", 1),
    ):
        with pytest.raises(InputError, match=message):
            act()
    assert path.read_text() == text
    assert [x.name for x in tmp_path.iterdir()] == ["models.config"]


def test_processes_that_add_at_one_time_lose_nothing(tmp_path):
    script = """
    import sys
    from bert_tf.exporting import server_configs
    for i in range(5):
        model = f"{sys.argv[1]}/{sys.argv[2]}{i}"
        server_configs.add(sys.argv[1], model, 1)
    """
    started = [processes.start(script, tmp_path, name) for name in "ab"]
    ended = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended
    assert models(tmp_path).keys() == {
        f"{name}{i}" for name in "ab" for i in range(5)
    }


@pytest.mark.parametrize(
    ("path", "mounted"),
    [
        ("/x/a b/", "-v|/x/a b:/models/a b|-e|MODEL_NAME=a b"),
        (
            "gs://b/models/mrpc",
            "-e|MODEL_NAME=mrpc|-e|MODEL_BASE_PATH=gs://b/models",
        ),
    ],
)
def test_command_of_a_model(path, mounted):
    start = "docker|run|-t|--rm|-p|8500:8500|-p|8501:8501"
    words = f"{start}|{mounted}|tensorflow/serving".split("|")
    assert shlex.split(server_configs.command(path)) == words


def test_command_of_all(tmp_path):
    for model in (f"{tmp_path}/a", "/elsewhere/b", "gs://bucket/c"):
        server_configs.add(str(tmp_path), model, 1)
    words = shlex.split(server_configs.command("/x/a", str(tmp_path)))
    assert words[8:13] == [
        *("-v", f"{tmp_path}:{tmp_path}", "-v", "/elsewhere/b:/elsewhere/b"),
        "tensorflow/serving",
    ]
    flags = json.dumps(words[13:])
    assert f"--model_config_file={tmp_path}/models.config" in flags
    assert f"--batching_parameters_file={tmp_path}/batching.config" in flags
