"""Runs run_classifier.py with a teacher."""

import dataclasses
import hashlib
import json
import shutil

import bert_tf
from bert_tf.checkpoints import formats, tf1_files
from tests import (
    classifier_runs,
    exports,
    tiny_files,
    tiny_model,
    trained_weights,
)

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_LABELS = ("bad", "good", "so")


@pytest.fixture(scope="module", name="model")
def _model(tmp_path_factory):
    """Flags of a student, and of texts whose labels depend on one word."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    rows = ["text\tlabel"]
    for i in range(24):
        text = classifier_runs.sentence(rng)
        rows.append(f"{classifier_runs.WORDS[i % 3]} {text}\t{_LABELS[i % 3]}")
    (folder / "train.tsv").write_text("\n".join(rows) + "\n")
    flags = classifier_runs.write_model(folder)
    return [*flags, f"--train_file={folder}/train.tsv"]


@pytest.fixture(scope="module", name="train")
def _train(model):
    """Trains; returns the output folder, or what was run."""

    def run(output, *more, code=0):
        done = classifier_runs.run(
            *(output.parent, "--do_train", *model, "--num_train_epochs=1"),
            *(f"--output_dir={output}", "--log_steps=1", *more),
            code=code,
        )
        return done if code or "--check_only" in more else output

    return run


@pytest.fixture(scope="module", name="teacher")
def _teacher(tmp_path_factory):
    return _write_teacher(tmp_path_factory.mktemp("teacher"))


def _write_teacher(folder, **changes):
    """Returns the folder of a run with two layers, of random weights."""
    config = dataclasses.replace(
        tiny_files.CONFIG,
        num_hidden_layers=2,
        hidden_size=16,
        initializer_range=0.5,
        **changes,
    )
    return exports.write_run(
        *(folder, "one text"),
        config=config,
        vocab=tiny_files.VOCAB,
        labels=_LABELS,
    )


@pytest.mark.usefixtures("untraced")
def test_a_resumed_run_knows_its_teacher(taught, teacher, train, tmp_path):
    weights = hashlib.sha256()
    for name, value in sorted(trained_weights.read(teacher).items()):
        weights.update(name.encode() + value.tobytes())
    output = shutil.copytree(taught, tmp_path / "run")
    path = output / "train_examples.json"
    kept = json.loads(path.read_text())
    assert kept.pop("teacher") == weights.hexdigest()
    flags = (f"--teacher={teacher}", "--check_only")
    path.write_text(json.dumps(kept | {"teacher": "0"}))
    done = train(output, *flags, code=1)
    problem = f"The teacher of the run in {output} had other weights. Bring"
    assert problem in done.lines[-1]
    # As earlier versions wrote it.
    path.write_text(json.dumps(kept))
    train(output, *flags)


def _losses(folder):
    return classifier_runs.rows(folder / "metrics.jsonl")


@pytest.fixture(scope="module", name="taught")
def _taught(train, teacher, tmp_path_factory):
    output = tmp_path_factory.mktemp("taught") / "run"
    with tiny_model.untraced():
        return train(output, f"--teacher={teacher}")


@pytest.mark.usefixtures("untraced")
def test_logits_and_labels(taught, train, tmp_path):
    for line in _losses(taught):
        assert line["loss"] == pytest.approx(
            (line["label_loss"] + line["teacher_loss"]) / 2, rel=1e-6
        )
        assert line["teacher_loss"] > 0
    ours = trained_weights.read(taught)
    plain = trained_weights.read(train(tmp_path / "without"))
    # Nothing of the teacher, and no more than without one.
    assert {n: x.shape for n, x in ours.items()} == {
        n: x.shape for n, x in plain.items()
    }
    name = "bert/embeddings/word_embeddings"
    assert np.abs(ours[name] - plain[name]).max() > 1e-4


@pytest.mark.exhaustive
def test_the_labels_alone_are_as_without_a_teacher(teacher, train, tmp_path):
    without = train(tmp_path / "without")
    alone = train(
        tmp_path / "alone", f"--teacher={teacher}", "--hard_label_weight=1"
    )
    trained_weights.assert_same(alone, without)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--long_documents=windows", "--window_stride=2"),
    ],
)
def test_logits_that_are_kept_are_those_of_each_step(
    more, teacher, train, tmp_path
):
    flags = [f"--teacher={teacher}", "--max_seq_length=6", *more]
    flags.append("--num_train_epochs=2")
    kept = train(tmp_path / "kept", *flags)
    computed = train(
        tmp_path / "computed", *flags, "--keep_teacher_logits=false"
    )
    path = "train_with_logits.tf_record"
    assert not (computed / path).exists()
    record = next(iter(tf.data.TFRecordDataset(str(kept / path))))
    stored = tf.train.Example.FromString(record.numpy()).features.feature
    assert len(stored["teacher_logits"].float_list.value) == len(_LABELS)
    assert len(stored["input_ids"].int64_list.value) == 6
    for ours, theirs in zip(_losses(kept), _losses(computed), strict=True):
        assert ours["teacher_loss"] == pytest.approx(
            theirs["teacher_loss"], rel=1e-5
        )
    trained_weights.assert_same(kept, computed, 1e-5)


@pytest.mark.usefixtures("untraced")
def test_labels_in_another_order_are_found_by_name(
    taught, teacher, train, tmp_path
):
    other = shutil.copytree(teacher, tmp_path / "teacher")
    order = [2, 0, 1]
    values = trained_weights.read(other)
    for name in values:
        if name.startswith("output_"):
            values[name] = values[name][order]
    tf1_files.write(tf1_files.find(str(other)), values)
    names = "".join(f"{_LABELS[i]}\n" for i in order)
    (other / "labels.txt").write_text(names)
    found = train(tmp_path / "run", f"--teacher={other}")
    trained_weights.assert_same(found, taught)


@pytest.mark.usefixtures("untraced")
def test_a_teacher_of_transformers_without_names(teacher, train, tmp_path):
    source = formats.open_checkpoint(str(teacher))
    source = dataclasses.replace(source, do_lower_case=True)
    formats.write(str(tmp_path / "hf"), "hf", source)
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text())
    del values["id2label"], values["label2id"]
    path.write_text(json.dumps(values | {"num_labels": 3}))
    flags = (f"--teacher={tmp_path}/hf", "--check_only")
    done = train(tmp_path / "run", *flags)
    assert "does not name its classes: assuming bad," in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab_size": 9}, "does not belong to this BERT config"),
        ({"type_vocab_size": 1}, "no token type for the second text of a pair"),
    ],
)
def test_a_teacher_that_can_not_read_pairs(change, message, train, tmp_path):
    other = _write_teacher(tmp_path / "teacher", **change)
    rows = "".join(f"cat\tdog\t{label}\n" for label in _LABELS)
    (tmp_path / "pairs.tsv").write_text(f"text\tsecond\tlabel\n{rows}")
    done = train(
        *(tmp_path / "run", f"--teacher={other}", "--check_only"),
        *(f"--train_file={tmp_path}/pairs.tsv", "--text_b_column=second"),
        code=1,
    )
    assert f"teacher {other}/model.ckpt-7" in done.lines[-1]
    assert message in done.lines[-1]


_FIT = "objective/fit_dense/kernel"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "kind",
    ["tinybert_layers", "minilm"],
)
def test_layers_and_then_the_head(kind, teacher, model, train, tmp_path):
    flags = [f"--teacher={teacher}", f"--distillation={kind}"]
    flags += ["--save_checkpoints_steps=3", "--num_train_epochs=3"]
    first = train(tmp_path / "first", *flags)
    losses = [line["loss"] for line in _losses(first)]
    assert losses[-1] < 0.8 * losses[0]
    whole = shutil.copytree(first, tmp_path / "whole") / "model.ckpt-18"
    values = trained_weights.read(whole)
    assert (_FIT in values) == (kind == "tinybert_layers")
    assert (f"{_FIT}/adam_m" in values) == (kind == "tinybert_layers")
    # The head is as it was, and has no moments.
    assert "output_weights/adam_m" not in values
    assert not values["output_bias"].any()
    trained_weights.drop_last(first, 2)
    train(first, *flags)
    trained_weights.assert_same(first, whole)
    # It can only be started from.
    evaluates = ["--do_eval", model[-1].replace("train_file", "dev_file")]
    for more in (
        [f"--output_dir={first}"],
        [f"--output_dir={tmp_path}/other", f"--init_checkpoint={first}"],
    ):
        done = classifier_runs.run(
            tmp_path, *model[:-1], *evaluates, *more, code=1
        )
        said = "has a classification head that its run did not train"
        assert said in done.lines[-1]
    with pytest.raises(bert_tf.InputError, match="its run did not train"):
        bert_tf.load(str(first))
    # What only training needs is left out elsewhere.
    shapes = formats.open_checkpoint(str(first)).shapes
    assert not [name for name in shapes if "objective" in name]
    second = train(
        *(tmp_path / "second", f"--teacher={teacher}", *evaluates),
        f"--init_checkpoint={first}",
    )
    for folder in (second, second / "best"):
        names = trained_weights.read(folder)
        assert not [name for name in names if "objective" in name]
