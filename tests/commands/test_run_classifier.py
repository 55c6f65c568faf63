"""Runs run_classifier.py on tasks of GLUE, made here."""

import dataclasses
import json

from bert_tf import modeling
from bert_tf.checkpoints import formats, tf1_files
from tests import classifier_runs, fine_tuned, trained_weights
from tests.tasks.classification import test_glue as test_tasks_glue

import numpy as np
import pytest
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def trained():
    """The README's MRPC command, with everything that follows training."""
    return fine_tuned.trained("classifier")


def test_from_a_checkpoint_of_another_format(trained, tmp_path):
    """Neither config nor vocabulary are given: they come with the model."""
    path = str(tmp_path / "hf")
    own = formats.open_checkpoint(str(trained.output))
    source = formats.open_checkpoint(str(trained.output / "best"))
    source = dataclasses.replace(
        source, config=own.config, vocab=own.vocab, do_lower_case=True
    )
    formats.write(path, "hf", source)
    classifier_runs.run(
        *(tmp_path, "--task_name=MRPC", "--do_predict=true"),
        *(f"--data_dir={trained.files}", *classifier_runs.QUICK),
        *(f"--init_checkpoint={path}", f"--output_dir={tmp_path}/output"),
    )
    np.testing.assert_allclose(
        classifier_runs.table(tmp_path / "output" / "test_results.tsv"),
        classifier_runs.table(trained.output / "test_results.tsv"),
        atol=1e-6,
    )


def test_evaluations_are_in_the_metrics(trained):
    lines = classifier_runs.rows(trained.output / "metrics.jsonl")
    scores = {x["step"]: x["eval_f1"] for x in lines if "eval_f1" in x}
    assert list(scores) == [3, 6, 9]
    text = (trained.output / "best" / "results.json").read_text()
    best = json.loads(text)
    assert scores[best["global_step"]] == best["eval_f1"]
    assert max(scores.values()) == best["eval_f1"]
    assert sorted(tf1_files.numbered(str(trained.output))) == [2, 4, 6, 8, 9]


def test_evaluation_agrees_with_the_predictions(trained):
    # The dev set and the test set hold the same 7 texts, in batches of 4:
    # had the padding counted, the two would differ.
    folder = trained.output
    labels = np.array(fine_tuned.mrpc()[1][12:])
    probabilities = classifier_runs.table(folder / "test_results.tsv")
    assert probabilities.shape == (7, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    found = probabilities.argmax(axis=1)
    tp = (found * labels).sum()
    results = classifier_runs.results(folder / "eval_results.txt")
    loss = -np.log(probabilities[np.arange(7), labels]).mean()
    assert results == pytest.approx(
        {
            "eval_accuracy": (found == labels).mean(),
            "eval_f1": 2 * tp / max(found.sum() + labels.sum(), 1),
            "eval_loss": loss,
            "loss": loss,
            "global_step": results["global_step"],
        },
        abs=1e-6,
    )
    named = classifier_runs.rows(folder / "predictions.jsonl")
    assert [row["id"] for row in named] == [f"test-{i}" for i in range(2, 9)]
    assert [int(row["label"]) for row in named] == found.tolist()
    report = (folder / "eval_report.txt").read_text().splitlines()
    counts = np.zeros([2, 2], int)
    np.add.at(counts, (labels, found), 1)
    assert [line.split() for line in report[-2:]] == [
        [str(i), *map(str, row)] for i, row in enumerate(counts)
    ]
    assert (folder / "labels.txt").read_text() == "0\n1\n"
    server = (folder / "MRPC.tsv").read_text().splitlines()
    assert server == [
        "index\tprediction",
        *(f"{i}\t{label}" for i, label in enumerate(found)),
    ]


def test_baselines_of_a_finished_run(trained, tmp_path):
    """On its dev set, with word vectors of another size than the model's."""
    words = classifier_runs.WORDS
    vectors = np.random.default_rng(0).normal(size=[len(words), 3])
    path = tmp_path / "vectors.txt"
    np.savetxt(path, np.c_[words, vectors.astype(str)], "%s")
    output = trained.copy(tmp_path)
    done = classifier_runs.run(
        *(tmp_path, "--task_name=MRPC", f"--data_dir={trained.files}"),
        *(*trained.flags, "--do_eval", "--baselines"),
        *(f"--word_vectors={path}", f"--output_dir={output}"),
    )
    lines = (output / "baselines.txt").read_text().splitlines()
    assert all(line in done.stderr for line in lines)
    assert lines[0].split() == ["baseline", "f1", "accuracy", "seconds"]
    found = {
        name: [float(x) for x in scores[:2]]
        for name, *scores in (line.rsplit(maxsplit=3) for line in lines[1:])
    }
    results = classifier_runs.results(output / "eval_results.txt")
    own = [results["eval_f1"], results["eval_accuracy"]]
    labels = np.array(fine_tuned.mrpc()[1])
    is_most = labels[:12].mean() > 0.5
    share = labels[12:].mean()
    assert found.pop("this model") == pytest.approx(own, abs=1e-4)
    assert found.pop("majority class") == pytest.approx(
        [2 * share / (1 + share), share] if is_most else [0, 1 - share],
        abs=1e-4,
    )
    assert list(found) == [
        "TF-IDF, logistic regression",
        "word vectors, logistic regression",
    ]


def test_predicting_alone_with_the_last_checkpoint(trained, tmp_path):
    # The weights of another folder, as the original's README predicts.
    copy = trained.copy(tmp_path)
    flags = ["--task_name=mrpc", f"--data_dir={trained.files}", *trained.flags]
    tables = []
    for output, more in (
        (tmp_path / "output", f"--init_checkpoint={trained.output}"),
        (copy, "--use_checkpoint=last"),
    ):
        classifier_runs.run(
            *(tmp_path, *flags, "--do_predict=true", more),
            f"--output_dir={output}",
        )
        tables.append(classifier_runs.table(output / "test_results.tsv"))
    np.testing.assert_array_equal(tables[0], tables[1])
    best = classifier_runs.table(trained.output / "test_results.tsv")
    assert np.abs(tables[0] - best).max() > 1e-4


def _write_tf1_checkpoint(prefix):
    """Writes what the original's pre-training would, by TF1's own Saver."""
    rng = np.random.default_rng(2)
    bert = modeling.Bert(classifier_runs.MODEL)
    shapes = {v.path: v.shape for v in bert.variables}
    shapes["cls/predictions/output_bias"] = (bert.config.vocab_size,)
    shapes["bert/pooler/dense/kernel/adam_m"] = (8, 8)
    values = {n: rng.normal(size=s, scale=0.1) for n, s in shapes.items()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in values.items():
            tf.compat.v1.get_variable(
                name, initializer=value.astype(np.float32), use_resource=False
            )
        tf.compat.v1.train.get_or_create_global_step()
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, prefix)
    return values


def _encoder(folder):
    return {
        name: value
        for name, value in trained_weights.read(folder).items()
        if name.startswith("bert/") and "adam" not in name
    }


def test_init_checkpoint_of_the_original(trained, tmp_path):
    """In a folder that only the best weights of another run are left in."""
    prefix = str(tmp_path / "bert_model.ckpt")
    values = _write_tf1_checkpoint(prefix)
    output = trained.copy(tmp_path)
    for path in (*output.glob("model.ckpt-*"), output / "checkpoint"):
        path.unlink()
    done = classifier_runs.run(
        *(tmp_path, "--task_name=MRPC", f"--data_dir={trained.files}"),
        *(*trained.flags, f"--init_checkpoint={prefix}", "--do_train"),
        *("--learning_rate=0", "--num_train_epochs=0.4"),
        f"--output_dir={output}",
    )
    random = "start from random values: output_bias, output_weights"
    assert random in done.stderr
    assert "not used by this model: cls/predictions/output_bias" in done.stderr
    # A learning rate of 0: what is saved is what was restored.
    found = _encoder(output)
    assert len(found) > 20
    for name, value in found.items():
        np.testing.assert_array_equal(value, values[name].astype(np.float32))
    assert not (output / "best").exists()


def test_the_encoder_of_a_model_with_other_labels(trained, model, tmp_path):
    """What GLUE's small tasks take from MNLI."""
    rows = [f"the cat {word}\ta dog\t{word}\n" for word in "abcabcab"]
    (tmp_path / "a.tsv").write_text("one\ttwo\tlabel\n" + "".join(rows))
    done = classifier_runs.run(
        *(tmp_path, "--do_train", f"--train_file={tmp_path}/a.tsv", *model),
        *("--text_a_column=one", "--text_b_column=two", "--learning_rate=0"),
        *("--num_train_epochs=0.5", f"--init_checkpoint={trained.output}"),
        f"--output_dir={tmp_path}/output",
    )
    said = "fine-tuned with the labels 0, 1: its head is not used"
    assert said in done.stderr
    found = trained_weights.read(tmp_path / "output")
    assert found["output_weights"].shape == (3, 8)
    for name, value in _encoder(trained.output).items():
        np.testing.assert_array_equal(found[name], value, name)


@pytest.mark.exhaustive
def test_a_task_by_name_from_tfds(model, tmp_path):
    sentences = [
        {"sentence": w, "label": i % 2}
        for i, w in enumerate(classifier_runs.WORDS)
    ]
    test_tasks_glue.store(
        tmp_path, "sst2", {"train": sentences, "validation": sentences[:5]}
    )
    classifier_runs.run(
        tmp_path,
        *("--task_name=SST-2", "--do_train", "--do_eval", *model),
        *("--num_train_epochs=0.5", f"--output_dir={tmp_path}/output"),
        TFDS_DATA_DIR=str(tmp_path),
    )
    results = classifier_runs.results(tmp_path / "output" / "eval_results.txt")
    assert results["global_step"] == int(len(classifier_runs.WORDS) / 4 * 0.5)


def test_mnli_both_ways_and_its_diagnostic_set(model, tmp_path):
    header = "index\tsentence1\tsentence2"
    rows = "0\tthe cat\ta cat\t{}\n1\tthe dog\ta fish\t{}\n"
    labelled = rows.format("neutral", "entailment") * 2
    for name in ("train", "dev_matched", "dev_mismatched"):
        text = f"{header}\tgold_label\n{labelled}"
        (tmp_path / f"{name}.tsv").write_text(text)
    for name in ("test_matched", "test_mismatched", "diagnostic"):
        text = f"{header}\n0\tthe cat\ta cat\n1\tthe dog\ta fish\n"
        (tmp_path / f"{name}.tsv").write_text(text)
    shared = [f"--data_dir={tmp_path}", "--do_predict", *model]
    shared += ["--glue_server_files"]
    mnli = tmp_path / "mnli"
    classifier_runs.run(
        *(tmp_path, "--task_name=MNLI", "--do_train", "--do_eval", *shared),
        *("--num_train_epochs=1", f"--output_dir={mnli}"),
    )
    matched, mismatched = (
        classifier_runs.results(mnli / f"eval_results{suffix}.txt")
        for suffix in ("", "_mismatched")
    )
    assert matched == mismatched  # The same rows.
    server = (mnli / "MNLI-m.tsv").read_text()
    assert server == (mnli / "MNLI-mm.tsv").read_text()
    table = classifier_runs.table(mnli / "test_results_mismatched.tsv")
    assert table.shape == (2, 3)
    classifier_runs.run(
        *(tmp_path, "--task_name=AX", *shared, f"--init_checkpoint={mnli}"),
        f"--output_dir={tmp_path}/ax",
    )
    assert (tmp_path / "ax" / "AX.tsv").read_text() == server
