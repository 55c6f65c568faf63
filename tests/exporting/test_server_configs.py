"""Tests of models.config, batching.config and the labels of versions.

TensorFlow Serving's own messages read the first. The package of its messages
lacks those of batching: their fields stand here as session_bundle_config.proto
has them. By its rule, of server_core.cc, a label in use moves to what is there.
"""

import json
import random
import shlex

from bert_tf.errors import InputError
from bert_tf.exporting import server_configs, version_labels

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
    """Returns the BatchingParameters in a text."""
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
    """Returns the content of models.config, name -> values."""
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
    """Returns a model's versions and labels."""
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
    # server_core.cc rejects a label for a version that is not loaded.
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


@pytest.fixture
def folder(tmp_path):
    """Returns a folder of three versions: stable, canary, no label."""
    for number in (1, 2, 3, 4):
        (tmp_path / "mrpc" / str(number)).mkdir(parents=True)
    for number in (1, 2, 3):
        server_configs.add(str(tmp_path), f"{tmp_path}/mrpc", number)
    return tmp_path


def labelled(folder):
    return served(folder, "mrpc")


def test_the_canary_becomes_stable(folder):
    told = version_labels.promote(str(folder), "mrpc", stable=2)
    assert labelled(folder) == ([1, 2, 3], {"previous": 1, "stable": 2})
    assert told == version_labels.find(str(folder), "")
    # Repeating the call changes nothing.
    before = (folder / "models.config").read_bytes()
    version_labels.promote(str(folder), "mrpc", stable=2)
    assert (folder / "models.config").read_bytes() == before
    # The next export becomes the canary.
    assert server_configs.add(str(folder), f"{folder}/mrpc", 4) == "canary"
    expected = {"previous": 1, "stable": 2, "canary": 4}
    assert labelled(folder) == ([1, 2, 4], expected)


def test_back_to_what_was_stable(folder):
    before = labelled(folder)[1]["stable"]
    version_labels.promote(str(folder), "mrpc", stable=2)
    version_labels.roll_back(str(folder), "mrpc")
    # Neither the version rolled back nor a newer one answers.
    assert labelled(folder) == ([1], {"stable": before})
    with pytest.raises(InputError, match="has no previous version to go back"):
        version_labels.roll_back(str(folder), "mrpc")
    assert labelled(folder) == ([1], {"stable": before})


def test_a_canary_stays_over_a_rollback(folder):
    version_labels.promote(str(folder), "mrpc", stable=2, canary=3)
    expected = {"previous": 1, "stable": 2, "canary": 3}
    assert labelled(folder) == ([1, 2, 3], expected)
    version_labels.roll_back(str(folder), "mrpc")
    assert labelled(folder) == ([1, 3], {"stable": 1, "canary": 3})


def test_every_label_moves_to_what_is_served_already(folder):
    """Ten random promotions and rollbacks."""
    draw = random.Random(3)
    for _ in range(10):
        versions, labels = labelled(folder)
        if "previous" in labels and draw.random() < 0.3:
            version_labels.roll_back(str(folder), "mrpc")
        else:
            stable = draw.choice(versions)
            version_labels.promote(str(folder), "mrpc", stable=stable)
        now, moved = labelled(folder)
        assert set(moved.values()) <= set(now) & set(versions)
        newest = max(now)
        server_configs.add(str(folder), f"{folder}/mrpc", newest + 1)
        (folder / "mrpc" / str(newest + 1)).mkdir(exist_ok=True)


def test_the_canary_is_taken_off_and_put_on(folder):
    version_labels.promote(str(folder), "mrpc", canary=0)
    assert labelled(folder) == ([1, 2, 3], {"stable": 1})
    version_labels.promote(str(folder), "mrpc", canary=4)
    assert labelled(folder) == ([1, 4], {"stable": 1, "canary": 4})


def test_what_is_stable_is_not_previous(folder):
    """For a file edited by hand that has both and no `stable`."""
    with server_configs.changing(str(folder)) as config:
        labels = config.model_config_list.config[0].version_labels
        labels.clear()
        labels.update({"previous": 1, "canary": 2})
    version_labels.promote(str(folder), "mrpc", stable=1)
    assert labelled(folder)[1] == {"stable": 1, "canary": 2}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"stable": 9}, "has no version 9: there are 1, 2, 3, 4. Received: s"),
        ({"stable": 4}, r"moves no label .* are: 1, 2, 3. Name it the canary"),
        ({"canary": 4}, r"moves no label .* Take the label off first"),
        ({"stable": 2, "canary": 9}, "has no version 9"),
    ],
)
def test_refused_and_left_as_it_was(folder, asked, message):
    before = (folder / "models.config").read_bytes()
    with pytest.raises(InputError, match=message):
        version_labels.promote(str(folder), "mrpc", **asked)
    assert (folder / "models.config").read_bytes() == before


def test_other_models_and_what_else_is_said_stay(folder):
    server_configs.add(str(folder), "/models/ner", 7)
    path = folder / "models.config"
    path.write_text(
        path.read_text().replace(
            'name: "mrpc"',
            'name: "mrpc" logging_config { sampling_config '
            "{ sampling_rate: 0.5 } }",
        )
    )
    before = models(folder)
    version_labels.promote(str(folder), "mrpc", stable=2)
    after = models(folder)
    assert after["ner"] == before["ner"]
    logging = after["mrpc"]["logging_config"]
    assert logging == before["mrpc"]["logging_config"]
    with pytest.raises(InputError, match=r"lists: mrpc, ner\. Received"):
        version_labels.promote(str(folder), "", stable=2)


def test_nothing_is_made_where_there_is_none(tmp_path):
    for act in (
        lambda: version_labels.read(f"{tmp_path}/none"),
        lambda: version_labels.promote(f"{tmp_path}/none", "", stable=1),
        lambda: version_labels.roll_back(f"{tmp_path}/none", ""),
    ):
        with pytest.raises(InputError, match="lists no model, or is not there"):
            act()
    assert not list(tmp_path.iterdir())


_TWICE = "config { name: 'm' base_path: '/m' } " * 2
_ALL = "config { name: 'm' base_path: '/m' model_version_policy { all {} } }"
_MANY = _ALL.replace("all {}", "latest { num_versions: 2 }")
_FREE = _ALL.replace("all {}", "specific { versions: 1 }").replace(
    "name:", "version_labels { key: 'stable' value: 2 } name:"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_TWICE, "has several models of one name, .* Received: name=m"),
        (_ALL, "versions are served that it lists, .* Received: all"),
        (_MANY, "versions are served that it lists, .* Received: latest"),
        (_FREE, "that is served, and these are 1. Received: stable=2"),
        ("config { name: 'm' }", "needs a name and a base_path"),
        ("config { base_path: '/m' }", "needs a name and a base_path"),
    ],
)
def test_lists_that_are_not_served_here(tmp_path, text, message):
    (tmp_path / "models.config").write_text(f"model_config_list {{ {text} }}")
    with pytest.raises(InputError, match=message):
        version_labels.read(str(tmp_path))


def test_description(folder):
    version_labels.promote(str(folder), "mrpc", stable=2)
    (folder / "mrpc" / "1").rmdir()
    told = version_labels.describe(version_labels.find(str(folder), "mrpc"))
    assert told == [
        f"mrpc  {folder}/mrpc",
        "  1  previous; its folder is missing",
        "  2  stable",
        "  3  no label",
        "  4  not served",
    ]


def test_a_model_that_is_served_by_its_newest_version(folder):
    (folder / "models.config").write_text(
        f"model_config_list {{ config {{ name: 'mrpc' "
        f"base_path: '{folder}/mrpc' }} }}"
    )
    (served,) = version_labels.read(str(folder))
    assert version_labels.describe(served)[-2:] == [
        "  3  not served",
        "  4  no label",
    ]
    for act in (
        lambda: version_labels.promote(str(folder), "mrpc", stable=2),
        lambda: version_labels.promote(str(folder), "mrpc", canary=0),
        lambda: version_labels.roll_back(str(folder), "mrpc"),
    ):
        with pytest.raises(InputError, match="is served by its newest version"):
            act()
