"""Runs shrink_model.py on tables made here, and what comes after it."""

import dataclasses
import json
import re

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, restoring
from tests import classifier_runs, reference, scripts, tiny_model
from tests import huggingface_models as hf
from tests import interop_samples as samples

import numpy as np
import pytest

pytestmark = pytest.mark.slow

_DATA = ("--text_a_column=t", "--label_column=y")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    classifier_runs.write_model(folder)
    config = dataclasses.replace(classifier_runs.MODEL, num_hidden_layers=2)
    model = heads.BertClassifier(modeling.Bert(config), 2)
    reference.random_weights(model.variables)
    vocab = (folder / "vocab.txt").read_text().splitlines()
    samples.write_tf1(folder / "run", model, ("no", "yes"), vocab)
    (folder / "run" / "flags.txt").write_text("--max_seq_length=12\n")
    rng = np.random.default_rng(0)
    rows = [
        {"t": classifier_runs.sentence(rng), "y": ("no", "yes")[i % 2]}
        for i in range(24)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "train.jsonl").write_text(text)
    return folder


def _run(output, *flags):
    """Returns the log, and what importance.json holds."""
    done = scripts.run_checked(
        *(output.parent / "log", "shrink_model", *flags),
        f"--output_path={output}",
    )
    return done.stderr, json.loads((output / "importance.json").read_text())


def _shrink(trained, output, *more):
    return _run(
        *(output, f"--train_file={trained}/train.jsonl", *_DATA),
        *(f"--init_checkpoint={trained}/run", *more),
    )


def test_what_is_left_is_an_ordinary_model(trained, tmp_path):
    small = tmp_path / "small"
    log, said = _shrink(
        *(trained, small, "--num_hidden_layers=1", "--keep_intermediate=0.25")
    )
    assert "--max_seq_length=12, as in training." in log
    assert said["measured_on"] == {"split": "train", "examples": 24}
    (kept,) = said["layers"]["kept"]
    assert kept == np.argmax(said["layers"]["importance"])
    # Nothing is said of the units of a layer that is removed.
    assert re.search(rf"Layer {1 - kept}: importance \S+, removed\.\n", log)
    assert re.search(rf"Layer {kept}: .*, kept, with \d+ of \d+ units: ", log)
    assert log.count(" units: ") == 1
    whole = formats.open_checkpoint(f"{trained}/run")
    source = formats.open_checkpoint(str(small))
    assert source.config is not None
    assert source.labels == ("no", "yes")
    assert source.vocab == whole.vocab
    assert not source.state
    # Its weights are those of what was kept.
    units = said["units"][kept]["kept"]
    order = np.argsort(said["units"][kept]["importance"])
    assert set(units) == set(order[-4:])
    before, after = "bert/encoder/layer_{}/output/dense/kernel".format, 0
    (theirs,) = whole.read([before(kept)]).values()
    (ours,) = source.read([before(after)]).values()
    np.testing.assert_array_equal(ours, theirs[units])
    # transformers gives the same logits.
    formats.write(str(tmp_path / "hf"), "hf", source)
    model = heads.BertClassifier(modeling.Bert(source.config), 2)
    restoring.restore_weights(model.variables, source)
    loaded = hf.transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "hf"
    ).eval()
    assert loaded.config.intermediate_size == 4
    assert loaded.config.num_hidden_layers == 1
    hf.compare(model, "classification", loaded, samples.batch(source.config))
    # It can be fine-tuned.
    again = tmp_path / "again"
    with tiny_model.untraced():
        classifier_runs.run(
            *(tmp_path, "--do_train", f"--train_file={trained}/train.jsonl"),
            *(*_DATA, f"--init_checkpoint={small}", f"--output_dir={again}"),
            *("--num_train_epochs=1", "--train_batch_size=4"),
            "--max_seq_length=12",
        )
    config = formats.open_checkpoint(str(again)).config
    assert config is not None
    assert (config.intermediate_size, config.num_hidden_layers) == (4, 1)


@pytest.mark.usefixtures("untraced")
def test_classes_weigh_as_in_training_and_a_few_examples(trained, tmp_path):
    rows = (trained / "train.jsonl").read_text().splitlines()
    table = tmp_path / "train.jsonl"
    # 12 of one class, 6 of the other.
    table.write_text("\n".join(rows[:12] + rows[12::2]) + "\n")
    log, said = _shrink(
        *(trained, tmp_path / "small", f"--train_file={table}"),
        *("--class_weights=balanced", "--max_examples=3", "--seed=3"),
        "--intermediate_size=8",
    )
    assert "Weights of the classes: no 0.75, yes 1.5." in log
    assert said["measured_on"]["examples"] == 3


@pytest.mark.usefixtures("untraced")
def test_a_task_of_glue(tmp_path, trained):
    folder = tmp_path / "SST-2"
    folder.mkdir()
    rng = np.random.default_rng(1)
    rows = [f"{classifier_runs.sentence(rng)}\t{i % 2}" for i in range(6)]
    table = "sentence\tlabel\n" + "".join(f"{row}\n" for row in rows)
    (folder / "dev.tsv").write_text(table)
    copy = tmp_path / "model"
    source = formats.open_checkpoint(f"{trained}/run")
    source = dataclasses.replace(source, labels=("0", "1"))
    # Its tokenizer has the length of the model: 32.
    formats.write(str(copy), "hf", source)
    log, said = _run(
        *(tmp_path / "small", "--task_name=SST-2", f"--data_dir={folder}"),
        *("--measure_on=dev", f"--init_checkpoint={copy}"),
        *("--intermediate_size=8", "--max_seq_length=12"),
    )
    assert said["measured_on"] == {"split": "dev", "examples": 6}
    assert "how its text is read: give scripts --max_seq_length=12.\n" in log
