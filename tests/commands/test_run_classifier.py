"""Runs the script's own main on a task of pairs, made here, as MRPC."""

import dataclasses
import json
import pathlib
import shutil

from bert_tf import modeling, tokenization
from bert_tf.checkpoints import formats, tf1_files
from tests import classifier_runs

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    """MRPC's files: 12 rows to train on, 7 dev rows, the same 7 as test."""
    folder = tmp_path_factory.mktemp("MRPC")
    rng = np.random.default_rng(0)
    header = "#1 ID\t#2 ID\t#1 String\t#2 String\n"
    pairs = [
        (classifier_runs.sentence(rng), classifier_runs.sentence(rng))
        for _ in range(19)
    ]
    rows = [f"1\t2\t{a}\t{b}\n" for a, b in pairs]
    labelled = [f"{int('cat' in row)}\t{row}" for row in rows]
    (folder / "train.tsv").write_text(
        "\ufeffQuality\t" + header + "".join(labelled[:12])
    )
    (folder / "dev.tsv").write_text(
        "Quality\t" + header + "".join(labelled[12:])
    )
    (folder / "test.tsv").write_text(
        "index\t"
        + header
        + "".join(f"{i}\t{row}" for i, row in enumerate(rows[12:]))
    )
    return folder, pairs, [row[0] for row in labelled]


@pytest.fixture(scope="module")
def trained(model, mrpc, tmp_path_factory):
    """The README's MRPC command, with everything that follows training."""
    folder = tmp_path_factory.mktemp("output")
    arguments = [
        "--task_name=MRPC",
        "--do_train=true",
        "--do_eval=true",
        "--do_predict=true",
        "--do_export=true",
        "--glue_server_files",
        f"--data_dir={mrpc[0]}",
        *model,
        "--num_train_epochs=3.0",
        "--save_checkpoints_steps=2",
        f"--output_dir={folder}",
    ]
    classifier_runs.run(folder, *arguments)
    return folder, arguments


@pytest.mark.slow
def test_from_a_checkpoint_of_another_format(trained, mrpc, model, tmp_path):
    """Neither config nor vocabulary are given: they come with the model."""
    folder, _ = trained
    flags = [
        "--task_name=MRPC",
        "--do_predict=true",
        f"--data_dir={mrpc[0]}",
        *(flag for flag in model if "_file=" not in flag),
    ]
    found = []
    for output_format in ("hf", "keras_hub"):
        path = str(tmp_path / output_format)
        source = formats.open_checkpoint(str(folder / "best"))
        own = formats.open_checkpoint(str(folder))
        source = dataclasses.replace(
            source, config=own.config, vocab=own.vocab, do_lower_case=True
        )
        formats.write(path, output_format, source)
        output = tmp_path / f"{output_format}-out"
        classifier_runs.run(
            tmp_path,
            *flags,
            f"--init_checkpoint={path}",
            f"--output_dir={output}",
        )
        found.append(classifier_runs.table(output / "test_results.tsv"))
    for table in found:
        np.testing.assert_allclose(
            table, classifier_runs.table(folder / "test_results.tsv"), atol=1e-6
        )


@pytest.mark.slow
def test_the_best_of_another_run_is_forgotten(trained, tmp_path):
    """What was begun with an evaluation may begin again without one."""
    folder, arguments = trained
    shutil.copytree(folder / "best", tmp_path / "out" / "best")
    shutil.copy(folder / "flags.txt", tmp_path / "out")
    flags = [flag for flag in arguments if not flag.startswith("--do_")]
    classifier_runs.run(
        tmp_path, *flags, "--do_train", f"--output_dir={tmp_path}/out"
    )
    assert (tmp_path / "out" / "model.ckpt-9.index").exists()
    assert not (tmp_path / "out" / "best").exists()


def test_evaluations_are_in_the_metrics(trained):
    folder, _ = trained
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    scores = {x["step"]: x["eval_f1"] for x in lines if "eval_f1" in x}
    assert list(scores) == [3, 6, 9]
    best = json.loads((folder / "best" / "results.json").read_text())
    assert scores[best["global_step"]] == best["eval_f1"]
    assert max(scores.values()) == best["eval_f1"]


def test_records_are_the_originals(trained, mrpc, model):
    folder, _ = trained
    _, pairs, labels = mrpc
    vocab_file = model[0].split("=")[1]
    tokenizer = tokenization.FullTokenizer(vocab_file)
    path = str(folder / "train.tf_record")
    expected = []
    for (first, second), label in zip(pairs[:12], labels, strict=False):
        # The original's convert_single_example, in plain lists.
        a, b = tokenizer.tokenize(first), tokenizer.tokenize(second)
        while len(a) + len(b) > 12 - 3:
            (a if len(a) > len(b) else b).pop()
        tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
        padding = [0] * (12 - len(tokens))
        expected.append(
            {
                "input_ids": tokenizer.convert_tokens_to_ids(tokens) + padding,
                "input_mask": [1] * len(tokens) + padding,
                "segment_ids": [0] * (len(a) + 2)
                + [1] * (len(b) + 1)
                + padding,
                "label_ids": [int(label)],
                "is_real_example": [1],
            }
        )
    found = []
    for record in tf.data.TFRecordDataset(path):
        example = tf.train.Example.FromString(record.numpy())
        features = example.features.feature.items()
        found.append({n: list(x.int64_list.value) for n, x in features})
    # A table may be sorted by label.
    assert found != expected
    assert sorted(found, key=_ids) == sorted(expected, key=_ids)


def _ids(features):
    return features["input_ids"]


def test_evaluation_agrees_with_the_predictions(trained, mrpc):
    # The dev set and the test set hold the same 7 texts, in batches of 4:
    # had the filling counted, the two would differ.
    folder, _ = trained
    labels = np.array(mrpc[2][12:], int)
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
    assert results["global_step"] in (3, 6, 9)  # The ends of the epochs.
    named = classifier_runs.rows(folder / "predictions.jsonl")
    assert [row["id"] for row in named] == [f"test-{i}" for i in range(2, 9)]
    assert [int(row["label"]) for row in named] == found.tolist()
    report = (folder / "eval_report.txt").read_text().splitlines()
    counts = np.zeros([2, 2], int)
    np.add.at(counts, (labels, found), 1)
    assert [line.split() for line in report[-2:]] == [
        [str(i), *map(str, row)] for i, row in enumerate(counts)
    ]
    server = (folder / "MRPC.tsv").read_text().splitlines()
    assert server == [
        "index\tprediction",
        *(f"{i}\t{label}" for i, label in enumerate(found)),
    ]


@pytest.mark.slow
def test_the_folder_is_self_contained(trained, model):
    folder, _ = trained
    vocab, config = (flag.partition("=")[2] for flag in model[:2])
    assert (folder / "vocab.txt").read_text() == pathlib.Path(vocab).read_text()
    found, expected = (
        modeling.BertConfig.from_json_file(path)
        for path in (str(folder / "bert_config.json"), config)
    )
    assert found == expected
    assert (folder / "labels.txt").read_text() == "0\n1\n"
    kept = json.loads((folder / "best" / "results.json").read_text())
    assert list(tf1_files.numbered(str(folder / "best"))) == [
        kept["global_step"]
    ]
    assert sorted(tf1_files.numbered(str(folder))) == [2, 4, 6, 8, 9]
    # All steps are made: the flags.txt of the run evaluates the same again.
    results = (folder / "eval_results.txt").read_text()
    assert (
        "has made all 9 steps"
        in classifier_runs.run(folder, f"--flagfile={folder}/flags.txt").stderr
    )
    assert (folder / "eval_results.txt").read_text() == results


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(trained, tmp_path):
    folder, arguments = trained
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    for step in (6, 8, 9):
        tf1_files.remove(f"{again}/model.ckpt-{step}")
    classifier_runs.run(tmp_path, *arguments[:-1], f"--output_dir={again}")
    names = tf1_files.shapes(f"{folder}/model.ckpt-9")
    expected = tf1_files.read(f"{folder}/model.ckpt-9", list(names))
    found = tf1_files.read(f"{again}/model.ckpt-9", list(names))
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name], name)
    for name in ("eval_results.txt", "test_results.tsv"):
        assert (again / name).read_text() == (folder / name).read_text()


@pytest.mark.slow
def test_predicting_alone_with_the_last_checkpoint(
    trained, mrpc, model, tmp_path
):
    folder, _ = trained
    arguments = ["--task_name=mrpc", f"--data_dir={mrpc[0]}", *model]
    # The weights of another folder, as the original's README predicts.
    classifier_runs.run(
        tmp_path,
        *arguments,
        "--do_predict=true",
        f"--init_checkpoint={folder}",
        f"--output_dir={tmp_path}",
    )
    last = classifier_runs.table(tmp_path / "test_results.tsv")
    classifier_runs.run(
        tmp_path,
        *arguments,
        "--do_predict=true",
        "--use_checkpoint=last",
        f"--output_dir={folder}",
    )
    np.testing.assert_array_equal(
        classifier_runs.table(folder / "test_results.tsv"), last
    )


def test_export_predicts_raw_text(trained, mrpc):
    import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

    folder, _ = trained
    loaded = tf.saved_model.load(str(folder / "export"))
    serve = loaded.signatures["serving_default"]
    texts_a, texts_b = zip(*mrpc[1][12:], strict=True)
    outputs = serve(text_a=tf.constant(texts_a), text_b=tf.constant(texts_b))
    # Exported from the best weights, which the results are from.
    step = classifier_runs.results(folder / "eval_results.txt")["global_step"]
    assert (
        step
        == json.loads((folder / "best" / "results.json").read_text())[
            "global_step"
        ]
    )
    labels = np.array(mrpc[2][12:], int)
    accuracy = (
        outputs["probabilities"].numpy().argmax(axis=1) == labels
    ).mean()
    assert accuracy == pytest.approx(
        classifier_runs.results(folder / "eval_results.txt")["eval_accuracy"]
    )


def _write_tf1_checkpoint(prefix):
    """Writes what the original's pre-training would, by TF1's own Saver."""
    rng = np.random.default_rng(2)
    config = modeling.BertConfig(**classifier_runs.CONFIG)
    shapes = {v.path: v.shape for v in modeling.Bert(config).variables}
    shapes["cls/predictions/output_bias"] = (config.vocab_size,)
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


@pytest.mark.slow
def test_check_only_says_what_it_found_and_writes_nothing(
    model, mrpc, trained, tmp_path
):
    found = classifier_runs.run(
        tmp_path,
        "--task_name=MRPC",
        *("--do_train=true", "--do_eval=true", "--check_only"),
        f"--data_dir={mrpc[0]}",
        f"--init_checkpoint={tf1_files.latest(str(trained[0]))}",
        f"--output_dir={tmp_path / 'output'}",
        *model,
    )
    for text in (
        "Labels: 0, 1",
        "Wrote 12 examples to train.tf_record",
        "Wrote 7 examples to eval.tf_record",
        "Restored ",
        "Found nothing that would stop this run",
    ):
        assert text in found.stderr
    assert not (tmp_path / "output").exists()


@pytest.mark.slow
def test_init_checkpoint_of_the_original(model, mrpc, tmp_path):
    prefix = str(tmp_path / "bert_model.ckpt")
    values = _write_tf1_checkpoint(prefix)
    arguments = ["--task_name=MRPC", f"--data_dir={mrpc[0]}", *model]
    arguments += [f"--init_checkpoint={prefix}"]
    done = classifier_runs.run(
        tmp_path,
        *arguments,
        *("--do_train", "--learning_rate=0", "--num_train_epochs=0.4"),
        f"--output_dir={tmp_path}/output",
    )
    assert (
        "start from random values: output_bias, output_weights" in done.stderr
    )
    assert "not used by this model: cls/predictions/output_bias" in done.stderr
    after = tf1_files.latest(str(tmp_path / "output"))
    assert after is not None
    # A learning rate of 0: what is saved is what was restored.
    for name, value in values.items():
        if name.startswith("bert/") and "adam" not in name:
            np.testing.assert_array_equal(
                tf1_files.read(after, [name])[name], value.astype(np.float32)
            )


@pytest.mark.slow
def test_the_encoder_of_a_model_with_other_labels(
    trained, model, tmp_path, caplog, capsys
):
    """What GLUE's small tasks take from MNLI."""
    folder, _ = trained
    rows = [f"the cat {word}\ta dog\t{word}\n" for word in "abcabcab"]
    (tmp_path / "a.tsv").write_text("one\ttwo\tlabel\n" + "".join(rows))
    shared = [
        *(*model, "--text_a_column=one", "--text_b_column=two"),
        f"--init_checkpoint={folder}",
    ]
    code = classifier_runs.run_here(
        *("--do_train", f"--train_file={tmp_path}/a.tsv", *shared),
        *("--learning_rate=0", "--num_train_epochs=0.5"),
        f"--output_dir={tmp_path}/output",
    )
    assert not code
    assert "fine-tuned with the labels 0, 1: its head is not used" in (
        caplog.text
    )
    after = tf1_files.latest(str(tmp_path / "output"))
    before = tf1_files.latest(str(folder))
    assert after and before
    shapes = tf1_files.shapes(after)
    assert shapes["output_weights"] == (3, 8)
    for name in shapes:
        if name.startswith("bert/") and "adam" not in name:
            old, new = (
                tf1_files.read(x, [name])[name] for x in (before, after)
            )
            np.testing.assert_array_equal(old, new, name)
    # To predict, the head must be that of the labels.
    code = classifier_runs.run_here(
        *("--do_predict", f"--test_file={tmp_path}/a.tsv", *shared),
        *("--labels=a,b,c", f"--output_dir={tmp_path}/other"),
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "was fine-tuned with the labels 0, 1" in error
    assert "Received: labels=a, b, c" in error
    assert not (tmp_path / "other").exists()
