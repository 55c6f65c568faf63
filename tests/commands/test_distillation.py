"""Scripts that learn from a teacher, each tiny, in this process."""

import dataclasses
import json
import logging
import shutil

import bert_tf
from bert_tf.checkpoints import formats, tf1_files
from tests import classifier_runs

import numpy as np
import pytest
import tensorflow as tf

_LABELS = ("bad", "good", "so")


@pytest.fixture(scope="module", name="model")
def _model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", name="table")
def _table(tmp_path_factory):
    """A table of texts whose labels hang on their first word."""
    path = tmp_path_factory.mktemp("table") / "train.tsv"
    rng = np.random.default_rng(0)
    rows = ["text\tlabel"]
    for i in range(24):
        text = classifier_runs.sentence(rng)
        rows.append(f"{classifier_runs.WORDS[i % 3]} {text}\t{_LABELS[i % 3]}")
    path.write_text("\n".join(rows) + "\n")
    return path


def _train(model, table, output, *more):
    """Trains on the table, in this process, with the labels' own order."""
    code = classifier_runs.run_here(
        *("--do_train", f"--train_file={table}", *model),
        *("--num_train_epochs=1", f"--output_dir={output}", *more),
    )
    assert not code
    return output


@pytest.fixture(scope="module", name="teacher")
def _teacher(model, table, tmp_path_factory):
    """The folder of a run with four layers."""
    folder = tmp_path_factory.mktemp("teacher")
    config = folder / "config.json"
    values = classifier_runs.CONFIG | {
        "num_hidden_layers": 4,
        "hidden_size": 16,
    }
    config.write_text(json.dumps(values))
    flags = [*model, f"--bert_config_file={config}", "--seed=3"]
    return _train(flags, table, folder / "run", "--num_train_epochs=2")


def _weights(folder):
    prefix = tf1_files.latest(str(folder))
    assert prefix is not None
    return tf1_files.read(prefix, list(tf1_files.shapes(prefix)))


def _losses(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _assert_same(found, expected, tolerance=0.0):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name], value, rtol=0, atol=tolerance, err_msg=name
        )


# ---- Logits ------------------------------------------------------------------


@pytest.fixture(scope="module", name="taught")
def _taught(model, table, teacher, tmp_path_factory):
    output = tmp_path_factory.mktemp("taught") / "run"
    return _train(model, table, output, f"--teacher={teacher}", "--log_steps=1")


@pytest.mark.slow
def test_logits_beside_the_labels(taught, teacher, model, table, tmp_path):
    for line in _losses(taught):
        assert line["loss"] == pytest.approx(
            (line["label_loss"] + line["teacher_loss"]) / 2, rel=1e-6
        )
        assert line["teacher_loss"] > 0
    plain = _train(model, table, tmp_path / "plain")
    ours, theirs = _weights(taught), _weights(plain)
    # Nothing of the teacher, and no more than without one.
    assert {n: x.shape for n, x in ours.items()} == {
        n: x.shape for n, x in theirs.items()
    }
    name = "bert/embeddings/word_embeddings"
    assert np.abs(ours[name] - theirs[name]).max() > 1e-4
    # The labels alone: the same as without a teacher.
    alone = _train(
        *(model, table, tmp_path / "alone", f"--teacher={teacher}"),
        "--hard_label_weight=1",
    )
    _assert_same(_weights(alone), theirs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [(), ("--long_documents=windows", "--window_stride=2")]
)
def test_logits_that_are_kept_are_those_of_each_step(
    more, teacher, model, table, tmp_path
):
    flags = [f"--teacher={teacher}", "--log_steps=1", "--num_train_epochs=2"]
    flags += ["--max_seq_length=6", *more]
    kept = _train(model, table, tmp_path / "kept", *flags)
    flags.append("--keep_teacher_logits=false")
    asked = _train(model, table, tmp_path / "asked", *flags)
    assert not (asked / "train_with_logits.tf_record").exists()
    record = next(
        tf.data.TFRecordDataset(
            str(kept / "train_with_logits.tf_record")
        ).as_numpy_iterator()
    )
    stored = tf.train.Example.FromString(record).features.feature
    assert len(stored["teacher_logits"].float_list.value) == len(_LABELS)
    assert len(stored["input_ids"].int64_list.value) == 6
    for ours, theirs in zip(_losses(kept), _losses(asked), strict=True):
        assert ours["teacher_loss"] == pytest.approx(
            theirs["teacher_loss"], rel=1e-5
        )
    _assert_same(_weights(kept), _weights(asked), 1e-5)


@pytest.mark.slow
def test_labels_in_another_order_are_found_by_name(
    taught, teacher, model, table, tmp_path
):
    other = tmp_path / "teacher"
    shutil.copytree(teacher, other)
    order = (2, 0, 1)
    prefix = tf1_files.find(str(other))
    values = _weights(other)
    for name in values:
        if name.startswith("output_"):
            values[name] = values[name][list(order)]
    tf1_files.write(prefix, values)
    names = "".join(f"{_LABELS[i]}\n" for i in order)
    (other / "labels.txt").write_text(names)
    found = _train(model, table, tmp_path / "run", f"--teacher={other}")
    _assert_same(_weights(found), _weights(taught))


@pytest.mark.exhaustive
def test_goes_on_bit_for_bit_and_only_so(
    taught, teacher, model, table, tmp_path, capsys
):
    output = tmp_path / "run"
    flags = [f"--teacher={teacher}", "--save_checkpoints_steps=3"]
    _train(model, table, output, *flags)
    for path in output.glob("model.ckpt-6*"):
        path.unlink()
    shutil.rmtree(output / "events", ignore_errors=True)
    _train(model, table, output, *flags)
    _assert_same(_weights(output), _weights(taught))
    code = classifier_runs.run_here(
        *("--do_train", f"--train_file={table}", *model, *flags),
        *("--num_train_epochs=1", f"--output_dir={output}", "--temperature=4"),
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "holds another run: temperature was None and is 4.0" in error


@pytest.mark.slow
def test_a_teacher_of_transformers_without_names(
    teacher, model, table, tmp_path, caplog
):
    source = formats.open_checkpoint(str(teacher))
    source = dataclasses.replace(source, do_lower_case=True)
    formats.write(str(tmp_path / "hf"), "hf", source)
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text())
    del values["id2label"], values["label2id"]
    path.write_text(json.dumps(values | {"num_labels": 3}))
    with caplog.at_level(logging.WARNING):
        _train(model, table, tmp_path / "run", f"--teacher={tmp_path}/hf")
    assert "does not name its classes: they are taken for bad," in caplog.text


# ---- Layers ------------------------------------------------------------------


_FIT = "objective/fit_dense/kernel"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param("tinybert_layers", marks=pytest.mark.exhaustive), "minilm"],
)
def test_layers_and_then_the_head(
    kind, teacher, model, table, tmp_path, capsys
):
    flags = [f"--teacher={teacher}", f"--distillation={kind}", "--log_steps=1"]
    first = tmp_path / "first"
    stages = "--save_checkpoints_steps=3"
    _train(model, table, first, *flags, stages, "--num_train_epochs=3")
    losses = [line["loss"] for line in _losses(first)]
    assert losses[-1] < 0.8 * losses[0]
    whole = _weights(first)
    assert (_FIT in whole) == (kind == "tinybert_layers")
    assert (f"{_FIT}/adam_m" in whole) == (kind == "tinybert_layers")
    # The head is as it was, and has no moments.
    assert "output_weights/adam_m" not in whole
    assert not whole["output_bias"].any()
    for name in ("model.ckpt-15", "model.ckpt-18"):
        for path in first.glob(f"{name}.*"):
            path.unlink()
    _train(model, table, first, *flags, stages, "--num_train_epochs=3")
    _assert_same(_weights(first), whole)
    # So nothing is asked of it, but to start from.
    for flags in (
        [f"--output_dir={first}"],
        [f"--output_dir={tmp_path}/elsewhere", f"--init_checkpoint={first}"],
    ):
        code = classifier_runs.run_here(
            *("--do_eval", f"--dev_file={table}", *model, *flags)
        )
        assert code == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert "has a classification head that its run did not train" in error
    with pytest.raises(bert_tf.InputError, match="its run did not train"):
        bert_tf.load(str(first))
    # What only training needs is nobody else's.
    assert not [
        x for x in formats.open_checkpoint(str(first)).shapes if "obj" in x
    ]
    second = _train(
        *(model, table, tmp_path / "second", f"--teacher={teacher}"),
        *("--do_eval", f"--dev_file={table}", f"--init_checkpoint={first}"),
    )
    for folder in (second, second / "best"):
        assert not [name for name in _weights(folder) if "objective" in name]
