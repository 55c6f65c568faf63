import dataclasses
import functools
import pathlib
import re

from bert_tf import modeling
from bert_tf.errors import InputError
from bert_tf.records import (
    manifests,
    masking,
    pipeline,
    reading,
    record_types,
)
from bert_tf.storage import paths
from bert_tf.training import pretraining, record_values
from tests import pretraining_records

import numpy as np
import pytest
import tensorflow as tf


def test_masks_that_only_the_host_of_the_script_can_draw():
    plain = pretraining.Data(
        *(["a"], [1], record_types.PRETRAINING, {"S": 8, "P": 2}, "nsp", None)
    )
    pretraining.check_no_masking(plain, plain)
    settings = masking.Masking(
        *("token", 0.15, 2, 0.8, 0.1, 0.2, 3, 9, 1, 2, 3)
    )
    masked = dataclasses.replace(plain, files=["b"], masking=settings)
    message = "without --dynamic_masking. Received: records=b"
    with pytest.raises(ValueError, match=message):
        pretraining.check_no_masking(plain, masked)


def test_sizes_of_rows_of_several_sequences():
    batch = {
        "input_mask": tf.constant([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]),
        "sequence_ids": tf.constant([[1, 1, 1, 2, 0], [1, 1, 0, 0, 0]]),
        "cls_positions": tf.constant([[0, 3], [0, 0]]),
        "row_weights": tf.constant([1.0, 1.0]),
    }
    expected = {"sequences": 3, "tokens": 6, "pairs": 9 + 1 + 4}
    assert pretraining.sizes(batch) == expected


def test_records_of_albert_are_of_the_order_of_sentences(tmp_path):
    """Its script writes a feature that BERT's does not."""
    files = pretraining_records.write(tmp_path, [3])
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    lengths = pretraining_records.LENGTHS
    found = functools.partial(
        pretraining.find, files, config, lengths["S"], lengths["P"]
    )
    assert found().objective == "nsp"
    example = tf.train.Example.FromString(reading.first(files[0])[0])
    starts = example.features.feature["token_boundary"].int64_list
    starts.value.extend([1] * lengths["S"])
    with tf.io.TFRecordWriter(files[0]) as writer:
        writer.write(example.SerializeToString())
    assert found().objective == "sop"


def test_padding_before_tokens_is_found(tmp_path):
    files = pretraining_records.write(tmp_path, [3, 3, 3])
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    lengths = pretraining_records.LENGTHS
    find = functools.partial(
        pretraining.find, files, config, lengths["S"], lengths["P"]
    )
    assert not find().padded_inside
    values = pretraining_records.values(np.random.default_rng(1))
    values["input_mask"] = [1] * 9 + [0, 1] + [0] * 5
    with tf.io.TFRecordWriter(files[1]) as writer:
        writer.write(reading.first(files[0])[0])
        writer.write(record_types.PRETRAINING.encode(values))
    assert find().padded_inside == files[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [300, pytest.param(900, marks=pytest.mark.exhaustive)]
)
def test_of_many_files_some_are_looked_into(tmp_path, count):
    (tmp_path / "one").mkdir()
    file = pathlib.Path(pretraining_records.write(tmp_path / "one", [3])[0])
    files = [tmp_path / f"records-{i:03d}.tfrecord" for i in range(count)]
    looked_into = set(paths.spread(range(count), 256))
    assert len(looked_into) == 256
    assert {0, count - 1} < looked_into
    for number, each in enumerate(files):
        # Opening one of the other files would raise an error.
        is_read = number in looked_into
        each.write_bytes(file.read_bytes() if is_read else b"no records " * 9)
    names = [str(each) for each in files]
    shards = [manifests.Shard(each.name, 3) for each in files]
    pretraining_records.write_manifest([str(file)])
    manifest = manifests.Manifest.read(tmp_path / "one" / "manifest.json")
    dataclasses.replace(manifest, shards=tuple(shards)).write(
        tmp_path / "manifest.json"
    )
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    data = pretraining.find([f"{tmp_path}/*.tfrecord"], config, None, None)
    assert (data.files, data.counts) == (names, [3] * count)
    # Those files are reported once they are read.
    wrong = min(set(range(count)) - looked_into)
    message = f"^{re.escape(names[wrong])}, record 1: truncated, corrupt"
    with pytest.raises(InputError, match=message), data.explained():
        for _ in pipeline.evaluate(data.files, 8):
            pass


@pytest.mark.slow
def test_a_file_of_another_kind_is_named_when_it_is_read(tmp_path):
    files = pretraining_records.write(tmp_path, [3, 3])
    pretraining_records.write_manifest(files)
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    data = pretraining.find(files, config, None, None)
    (tmp_path / "other").mkdir()
    other = pretraining_records.write(
        tmp_path / "other", [3], sequence=12, predictions=4
    )
    pathlib.Path(files[1]).write_bytes(pathlib.Path(other[0]).read_bytes())
    batches = data.batches(
        tf.distribute.get_strategy(), lambda: pipeline.evaluate(files, 2), 1
    )
    message = (
        f"^{re.escape(files[1])} holds sequences of 12 tokens .*, expected 16 "
        "as its manifest says"
    )
    with pytest.raises(InputError, match=message), data.explained():
        for _ in batches:
            pass


def test_records_of_two_sentence_tasks_are_not_mixed(tmp_path):
    files = pretraining_records.write(tmp_path, [1, 1])
    example = tf.train.Example.FromString(reading.first(files[1])[0])
    example.features.feature["token_boundary"].int64_list.value.append(1)
    with tf.io.TFRecordWriter(files[1]) as writer:
        writer.write(example.SerializeToString())
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    message = f"{files[0]} of BERT's .* and {files[1]} of ALBERT's"
    with pytest.raises(InputError, match=message):
        pretraining.find(files, config, 16, 4)


@pytest.mark.slow
@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_later_record_of_another_kind_is_named(tmp_path, has_manifest):
    files = pretraining_records.write(tmp_path, [3, 3])
    if has_manifest:
        pretraining_records.write_manifest(files)
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    data = pretraining.find(files, config, 16, 4)
    (tmp_path / "other").mkdir()
    other = pretraining_records.write(tmp_path / "other", [1], sequence=12)
    with open(files[1], "ab") as file:
        file.write(pathlib.Path(other[0]).read_bytes())
    batches = data.batches(
        tf.distribute.get_strategy(), lambda: pipeline.evaluate(files, 2), 1
    )
    message = (
        f"^{re.escape(files[1])}, record 4, holds sequences of 12 tokens .*, "
        f"expected 16{' as its manifest says' * has_manifest}[.]"
    )
    with pytest.raises(InputError, match=message), data.explained():
        for _ in batches:
            pass


def test_all_records_without_a_manifest_are_checked(tmp_path, monkeypatch):
    """On GPUs, whose fused attention needs to know each row's padding."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    monkeypatch.setattr(record_values, "_LOOKING", 0.0)
    files = pretraining_records.write(tmp_path, [3, 3, 3])
    values = pretraining_records.values(np.random.default_rng(1))
    values["input_mask"] = [1] * 9 + [0, 1] + [0] * 5
    with tf.io.TFRecordWriter(files[2]) as writer:
        writer.write(reading.first(files[0])[0])
        writer.write(record_types.PRETRAINING.encode(values))
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    assert pretraining.find(files, config, 16, 4).padded_inside == files[2]


@pytest.mark.parametrize("label", [0, 1])
def test_records_of_one_sentence_class_are_reported(tmp_path, caplog, label):
    """As of scripts that write RoBERTa's records with BERT's features."""
    files = pretraining_records.write(tmp_path, [40])
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    pretraining.find(files, config, 16, 4)
    assert "teaches nothing" not in caplog.text
    rng = np.random.default_rng(1)
    with tf.io.TFRecordWriter(files[0]) as writer:
        for _ in range(40):
            values = pretraining_records.values(rng)
            values["next_sentence_labels"] = [label]
            writer.write(record_types.PRETRAINING.encode(values))
    pretraining.find(files, config, 16, 4)
    assert f"All 40 records that were checked have {label} as" in caplog.text
    assert "teaches nothing" in caplog.text
    caplog.clear()
    pretraining_records.write_manifest(files, objective="none")
    pretraining.find(files, config, None, None)
    assert "teaches nothing" not in caplog.text
