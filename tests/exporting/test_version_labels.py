"""Tests of labels of versions, by the messages of TensorFlow Serving.

Its rule, of server_core.cc: a label that is in use moves to what is loaded.
"""

import random

from bert_tf.errors import InputError
from bert_tf.exporting import server_configs, version_labels
from tests.exporting import test_server_configs as configs

import pytest


@pytest.fixture
def folder(tmp_path):
    """A folder of three versions: stable, canary, and one without a label."""
    for number in (1, 2, 3, 4):
        (tmp_path / "mrpc" / str(number)).mkdir(parents=True)
    for number in (1, 2, 3):
        server_configs.add(str(tmp_path), f"{tmp_path}/mrpc", number)
    return tmp_path


def served(folder):
    return configs.served(folder, "mrpc")


def test_the_canary_becomes_stable(folder):
    told = version_labels.promote(str(folder), "mrpc", stable=2)
    assert served(folder) == ([1, 2, 3], {"previous": 1, "stable": 2})
    assert told == version_labels.find(str(folder), "")
    # The same again changes nothing.
    before = (folder / "models.config").read_bytes()
    version_labels.promote(str(folder), "mrpc", stable=2)
    assert (folder / "models.config").read_bytes() == before
    # The next export is the canary.
    assert server_configs.add(str(folder), f"{folder}/mrpc", 4) == "canary"
    expected = {"previous": 1, "stable": 2, "canary": 4}
    assert served(folder) == ([1, 2, 4], expected)


def test_back_to_what_was_stable(folder):
    before = served(folder)[1]["stable"]
    version_labels.promote(str(folder), "mrpc", stable=2)
    version_labels.roll_back(str(folder), "mrpc")
    # Nobody is answered by what was rolled back, nor by anything newer.
    assert served(folder) == ([1], {"stable": before})
    with pytest.raises(InputError, match="has no previous version to go back"):
        version_labels.roll_back(str(folder), "mrpc")
    assert served(folder) == ([1], {"stable": before})


def test_a_canary_stays_over_a_rollback(folder):
    version_labels.promote(str(folder), "mrpc", stable=2, canary=3)
    expected = {"previous": 1, "stable": 2, "canary": 3}
    assert served(folder) == ([1, 2, 3], expected)
    version_labels.roll_back(str(folder), "mrpc")
    assert served(folder) == ([1, 3], {"stable": 1, "canary": 3})


def test_every_label_moves_to_what_is_served_already(folder):
    """Through ten promotions and rollbacks, at random."""
    draw = random.Random(3)
    for _ in range(10):
        versions, labels = served(folder)
        if "previous" in labels and draw.random() < 0.3:
            version_labels.roll_back(str(folder), "mrpc")
        else:
            stable = draw.choice(versions)
            version_labels.promote(str(folder), "mrpc", stable=stable)
        now, moved = served(folder)
        assert set(moved.values()) <= set(now) & set(versions)
        newest = max(now)
        server_configs.add(str(folder), f"{folder}/mrpc", newest + 1)
        (folder / "mrpc" / str(newest + 1)).mkdir(exist_ok=True)


def test_the_canary_is_taken_off_and_put_on(folder):
    version_labels.promote(str(folder), "mrpc", canary=0)
    assert served(folder) == ([1, 2, 3], {"stable": 1})
    version_labels.promote(str(folder), "mrpc", canary=4)
    assert served(folder) == ([1, 4], {"stable": 1, "canary": 4})


def test_what_is_stable_is_not_previous(folder):
    """Of a file by hand that has both and no `stable`."""
    with server_configs.changing(str(folder)) as config:
        labels = config.model_config_list.config[0].version_labels
        labels.clear()
        labels.update({"previous": 1, "canary": 2})
    version_labels.promote(str(folder), "mrpc", stable=1)
    assert served(folder)[1] == {"stable": 1, "canary": 2}


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
    before = configs.models(folder)
    version_labels.promote(str(folder), "mrpc", stable=2)
    after = configs.models(folder)
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
