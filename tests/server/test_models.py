"""The paths and the names of models."""

import asyncio
import dataclasses

from bert_tf.errors import InputError
from bert_tf.exporting import version_labels
from bert_tf.server import batching, servables, served_models
from bert_tf.server.refusals import Refusal
from bert_tf.serving import serving_model
from tests.server import served

import pytest
import tensorflow as tf


def _version(folder):
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/models/mrpc", ("mrpc", "/models/mrpc")),
        ("/models/mrpc/", ("mrpc", "/models/mrpc")),
        ("/models/mrpc/12", ("mrpc", "/models/mrpc/12")),
        ("film=/models/a=b", ("film", "/models/a=b")),
        ("x=gs://bucket/mrpc/", ("x", "gs://bucket/mrpc")),
    ],
)
def test_names(given, expected):
    (place,) = served_models.parse_places([given])
    assert (place.name, place.path) == expected


@pytest.mark.parametrize("given", ["a:b=/m", "a/b=/m", "a=", "a?=/m"])
def test_names_that_no_url_has(given):
    with pytest.raises(InputError, match="--model must be paths"):
        served_models.parse_places([given])


def test_a_damaged_graph_is_an_error_of_one_line(tmp_path):
    served.write_model(
        tmp_path, lambda texts: {"length": tf.strings.length(texts)}
    )
    path = tmp_path / "saved_model.pb"
    data = path.read_bytes()
    assert b"AssignVariableOp" in data
    # TensorFlow raises a RuntimeError.
    path.write_bytes(data.replace(b"AssignVariableOp", b"AssignVariableOP"))
    for load in (
        lambda: servables.Servable(str(tmp_path), 1, batching.Limits()),
        lambda: serving_model._load(str(tmp_path)),
    ):
        with pytest.raises(InputError, match="damaged, or not") as error:
            load()
        assert "\n" not in str(error.value)


def test_a_name_twice():
    with pytest.raises(InputError, match="2 models are called mrpc"):
        served_models.parse_places(["/a/mrpc", "/b/mrpc/3"])


def test_versions_are_numbers_with_a_model_newest_first(tmp_path):
    for name in ("1", "10", "9", "new.tmp", "x1"):
        _version(tmp_path / name)
    (tmp_path / "11").mkdir()
    (tmp_path / "12").write_text("a file")
    found = served_models.find_versions(str(tmp_path))
    assert list(found) == [10, 9, 1]
    assert found[9] == str(tmp_path / "9")


def test_a_saved_model_is_its_own_version(tmp_path):
    _version(tmp_path / "7")
    _version(tmp_path / "export")
    seven, export = str(tmp_path / "7"), str(tmp_path / "export")
    assert served_models.find_versions(seven) == {7: seven}
    assert served_models.find_versions(export) == {1: export}


@pytest.mark.parametrize("name", ["none", "file", "empty", "broken"])
def test_what_is_no_model(tmp_path, name):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    _version(tmp_path / "broken" / "1")
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"\xff\xff")
    place = version_labels.Served("m", str(tmp_path / name))
    with pytest.raises(InputError) as error:
        asyncio.run(served_models.Model(place, batching.Limits()).update())
    assert str(tmp_path / name) in str(error.value)


def test_loading_is_logged_before_the_model_answers(tmp_path, caplog):
    _version(tmp_path / "7")
    place = version_labels.Served("m", str(tmp_path))
    with caplog.at_level("INFO", "bert_tf.server"), pytest.raises(InputError):
        asyncio.run(served_models.Model(place, batching.Limits()).update())
    assert caplog.messages == ["Loading version 7 of m."]


class _Servable:
    """A version that loads at once, and is never queried."""

    def __init__(self, path, version, limits, on_batch):
        del path, limits, on_batch
        self.version, self.users = version, 0

    def close(self, seconds=None):
        """Has nothing to release."""


@pytest.fixture(name="film")
def _film(monkeypatch, tmp_path):
    """Versions 1 and 2 answer, 2 by a label; 3 does not exist yet."""
    monkeypatch.setattr(served_models.servables, "Servable", _Servable)
    monkeypatch.setattr(
        served_models.constant_kernels, "check", lambda path: None
    )
    monkeypatch.setattr(served_models.unsafe_ops, "check", lambda *_: None)
    for number in (1, 2):
        _version(tmp_path / str(number))
    place = version_labels.Served(
        "film", str(tmp_path), (1, 2), {"stable": 1, "canary": 2}
    )
    return served_models.Model(place, batching.Limits())


def _answering(model, *places):
    """Returns the version that answers last, after each state in turn."""

    async def follow():
        for place in places:
            model.place = place
            await model.update()
        found = {}
        for version in (1, 2, 3):
            try:
                with model.using(version):
                    found[version] = True
            except Refusal:
                found[version] = False
        with model.using(None) as newest:
            unlabelled = newest.version
        await model.close()
        return [version for version in found if found[version]], unlabelled

    return asyncio.run(follow())


def test_a_version_that_was_rolled_back_does_not_wait_for_a_new_one(film):
    after = dataclasses.replace(
        film.place, versions=(1, 3), labels={"stable": 1, "new": 3}
    )
    assert _answering(film, film.place, after) == ([1], 1)


def test_a_label_stays_until_its_new_version_is_there(film):
    after = dataclasses.replace(
        film.place, versions=(1, 3), labels={"stable": 1, "canary": 3}
    )
    assert _answering(film, film.place, after) == ([1, 2], 2)
    assert film.labelled("canary") == 2


def test_all_stay_where_no_listed_version_can_be_loaded(film):
    after = dataclasses.replace(film.place, versions=(3,), labels={"new": 3})
    assert _answering(film, film.place, after) == ([1, 2], 2)
