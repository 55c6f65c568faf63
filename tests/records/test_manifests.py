import dataclasses
import json
import os
import pathlib
from typing import Any

from bert_tf import vocabularies
from bert_tf.records import manifests
from bert_tf.storage import paths

import pytest

_VALUES: dict[str, Any] = {
    "record_type": "pretraining",
    "max_seq_length": 8,
    "max_predictions_per_seq": 3,
    "vocab_sha256": "ab" * 32,
    "vocab_size": 30_522,
    "do_lower_case": True,
    "masking": {"masked_lm_prob": 0.15},
    "seed": 12345,
    "shards": (manifests.Shard("a.tfrecord", 5),),
    "statistics": {"instances": 5},
}


def manifest(**changes):
    return manifests.Manifest(**_VALUES | changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "manifest.json"


@pytest.mark.parametrize("lower", [True, None])
def test_read_is_the_inverse_of_write(path, lower):
    manifest(do_lower_case=lower).write(path)
    assert manifests.Manifest.read(path) == manifest(do_lower_case=lower)
    assert [p.name for p in path.parent.iterdir()] == ["manifest.json"]
    assert json.loads(path.read_text())["do_lower_case"] is lower


@pytest.mark.parametrize(
    "kind, made", [("symbols", True), ("word_pieces", None)]
)
def test_vocabularies_of_the_same_bytes_by_another_name(kind, made):
    path = {"symbols": "symbols.txt", "word_pieces": "vocab.txt"}
    right = {True: "word_pieces", None: "symbols"}[made]
    contents = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"

    def settings(kind):
        files = vocabularies.Files(kind, {path[kind]: contents})
        return vocabularies.read(files, False, "x").settings

    records = manifest(do_lower_case=made)
    records.check_kind(right, settings(right))
    with pytest.raises(ValueError, match=f"name such as {path[right]}"):
        records.check_kind(kind, settings(kind))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"version": 3}, "newer format.*Received: version=3"),
        ({"colour": 1}, "Unknown keys: colour; missing keys: none"),
        ({"max_seq_length": "8"}, "'max_seq_length' must be of type int"),
        ({"seed": True}, "'seed' must be of type int.*Received: seed=True"),
        ({"do_lower_case": 1}, "'do_lower_case' must be of type bool or null"),
        ({"shards": [{"file": "a"}]}, "missing keys: records"),
        ({"shards": ["a"]}, "not a manifest.*received: 'a'"),
        ({"max_seq_length": 0}, "is damaged.*with max_seq_length=0"),
        ({"objective": "a"}, "is damaged.*with objective='a'"),
        ({"shards": [{"file": "a", "records": -1}]}, "with records=-1"),
    ],
)
def test_read_refuses(path, changes, message):
    path.write_text(json.dumps(dataclasses.asdict(manifest()) | changes))
    with pytest.raises(ValueError, match=f"{path}.*{message}"):
        manifests.Manifest.read(path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", "", "[" * 100_000])
def test_read_refuses_what_is_no_manifest(path, text):
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path} is not"):
        manifests.Manifest.read(path)


def test_find_merges_in_the_order_of_the_files(tmp_path):
    b, c = manifests.Shard("b", 2), manifests.Shard("c", 3)
    manifest(shards=(b, c)).write(tmp_path / "manifest.json")
    a = manifests.Shard("a", 1)
    manifest(shards=(a,)).write(tmp_path / "a.manifest.json")
    files = [f"{tmp_path}/{name}" for name in "cab"]
    found = manifests.find(files)
    assert found == manifest(shards=(c, a, b))


def test_find_in_the_current_folder_and_in_one_with_brackets(
    tmp_path, monkeypatch
):
    folder = tmp_path / "data[1]"
    folder.mkdir()
    manifest().write(folder / "manifest.json")
    assert manifests.find([f"{folder}/a.tfrecord"]) == manifest()
    monkeypatch.chdir(tmp_path)
    manifest().write("a.tfrecord.manifest.json")
    assert manifests.find(["a.tfrecord"]) == manifest()


def test_find_refuses_a_file_that_is_in_none(tmp_path, path):
    manifest().write(path)
    # Without any manifest the result is None.
    assert manifests.find([f"{tmp_path}/{name}" for name in "bc"]) is None
    files = [f"{tmp_path}/{name}" for name in ("a.tfrecord", "b")]
    message = (
        "/b is in no manifest, and other files are: .*/manifest.json lists "
        "a.tfrecord.* Received: 1 of 2 files without"
    )
    for given in (files, files[::-1]):
        with pytest.raises(ValueError, match=message):
            manifests.find(given)


@pytest.mark.parametrize("name", ["manifest.json", "a.manifest.json"])
def test_find_refuses_a_manifest(name, tmp_path):
    manifest().write(tmp_path / name)
    message = f"{name} is no record file but a manifest, .* Give the files "
    with pytest.raises(ValueError, match=message):
        manifests.find([f"{tmp_path}/a.tfrecord", f"{tmp_path}/{name}"])


def test_a_glob_leaves_manifests_out(tmp_path):
    """With the names of the original's README, it matches those, too."""
    files = [f"{tmp_path}/tf_examples.tf_record_0{i}" for i in range(2)]
    for file in files:
        pathlib.Path(file).write_text("x")
    path = tmp_path / "tf_examples.tf_record_00.manifest.json"
    names = [os.path.basename(file) for file in files]
    shards = tuple(manifests.Shard(name, 1) for name in names)
    manifest(shards=shards).write(path)
    found = paths.expand([f"{tmp_path}/*record*"], manifests.is_manifest)
    assert found == files
    assert manifests.find(found) == manifest(shards=shards)


_MASKING = ({"masked_lm_prob": 0.15}, {"masked_lm_prob": 0.05})


@pytest.mark.parametrize(
    ("name", "values", "more", "message"),
    [
        ("do_lower_case", (True, False), {}, "=True, .*b.{}=False"),
        # Masks that are drawn while reading.
        ("masking", _MASKING, {"dynamic_masking": True}, r"=.*0\.15.*b.{}"),
        ("masking", _MASKING, {}, ""),
    ],
)
def test_find_compares_records(name, values, more, message, tmp_path):
    for file, value in zip("ab", values, strict=True):
        shards = (manifests.Shard(file, 1),)
        found = manifest(**{name: value}, shards=shards, **more)
        found.write(tmp_path / f"{file}.manifest.json")
    files = [f"{tmp_path}/a", f"{tmp_path}/b"]
    if not message:
        merged = manifests.find(files)
        assert merged is not None
        assert merged.masking == values[0]
        return
    says = f"manifest.json says {name}"
    with pytest.raises(ValueError, match=f"a.{says}{message.format(says)}"):
        manifests.find(files)


def test_find_refuses_two_manifests_of_one_file(tmp_path):
    manifest().write(tmp_path / "manifest.json")
    manifest().write(tmp_path / "old.manifest.json")
    message = "listed by both .*/manifest.json and .*/old.manifest.json"
    with pytest.raises(ValueError, match=message):
        manifests.find([f"{tmp_path}/a.tfrecord"])


def test_read_knows_the_first_format_only_by_its_version(path):
    # The manifest that version 0.1 of this project wrote.
    first = _VALUES | {"shards": [{"file": "a.tfrecord", "records": 5}]}
    path.write_text(json.dumps(first | {"version": 1}))
    expected = manifest(created_by="0.1")
    assert manifests.Manifest.read(path) == expected
    assert (expected.objective, expected.dynamic_masking) == ("nsp", False)
    assert expected.sequences_per_row == 1
    values = dataclasses.asdict(manifest())
    del values["objective"]
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"missing keys: objective"):
        manifests.Manifest.read(path)
