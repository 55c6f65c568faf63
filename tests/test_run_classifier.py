"""Runs the script's own main, on tiny data made here."""

import dataclasses
import json
import pathlib
import shutil

from bert_tf import (
    checkpoints,
    common_flags,
    fine_tuning_flags,
    modeling,
    optimization_flags,
    records,
    task_flags,
    tokenization,
)
from bert_tf.interop import formats
from bert_tf.tasks import classification, glue
from tests import saved_models, scripts, test_tasks_glue

import numpy as np
import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Imported before any run in this process, which must not define them anew.
_FLAG_MODULES = (
    common_flags,
    fine_tuning_flags,
    optimization_flags,
    task_flags,
)
_LINE = (
    "the a cat dog bird fish runs sleeps eats sings red blue green old new big "
    "is was not very , . ! ? ' ##s ##ing"
)
_WORDS = _LINE.split()
_CONFIG: dict = {
    "vocab_size": 5 + len(_WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def run(folder, *arguments, **environment):
    """Runs the script in a process of its own, which must succeed."""
    done = scripts.run(
        folder / "log", "run_classifier", *arguments, **environment
    )
    assert done.wait() == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Flags of a tiny model and a quick run."""
    folder = tmp_path_factory.mktemp("model")
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(_CONFIG))
    return [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        "--max_seq_length=12",
        "--train_batch_size=4",
        "--eval_batch_size=4",
        "--predict_batch_size=4",
        "--learning_rate=0.01",
    ]


def _sentence(rng):
    return " ".join(rng.choice(_WORDS[:20], rng.integers(3, 9))) + " ."


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    """MRPC's files: 12 rows to train on, 7 dev rows, the same 7 as test."""
    folder = tmp_path_factory.mktemp("MRPC")
    rng = np.random.default_rng(0)
    header = "#1 ID\t#2 ID\t#1 String\t#2 String\n"
    pairs = [(_sentence(rng), _sentence(rng)) for _ in range(19)]
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
    run(folder, *arguments)
    return folder, arguments


def _results(path):
    lines = path.read_text().splitlines()
    assert lines == sorted(lines)
    return {
        name: float(value)
        for name, value in (line.split(" = ") for line in lines)
    }


def _table(path):
    return np.array(
        [line.split("\t") for line in path.read_text().splitlines()], float
    )


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
        run(
            tmp_path,
            *flags,
            f"--init_checkpoint={path}",
            f"--output_dir={output}",
        )
        found.append(_table(output / "test_results.tsv"))
    for table in found:
        np.testing.assert_allclose(
            table, _table(folder / "test_results.tsv"), atol=1e-6
        )


def test_records_are_the_originals(trained, mrpc, model):
    folder, _ = trained
    _, pairs, labels = mrpc
    vocab_file = model[0].split("=")[1]
    tokenizer = tokenization.FullTokenizer(vocab_file)
    path = str(folder / "train.tf_record")
    assert records.count([path]) == [12]
    for i, record in enumerate(tf.data.TFRecordDataset(path)):
        # The original's convert_single_example, in plain lists.
        a, b = (tokenizer.tokenize(text) for text in pairs[i])
        while len(a) + len(b) > 12 - 3:
            (a if len(a) > len(b) else b).pop()
        tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
        padding = [0] * (12 - len(tokens))
        expected = {
            "input_ids": tokenizer.convert_tokens_to_ids(tokens) + padding,
            "input_mask": [1] * len(tokens) + padding,
            "segment_ids": [0] * (len(a) + 2) + [1] * (len(b) + 1) + padding,
            "label_ids": [int(labels[i])],
            "is_real_example": [1],
        }
        features = tf.train.Example.FromString(record.numpy()).features.feature
        assert {
            name: list(value.int64_list.value)
            for name, value in features.items()
        } == expected


def test_evaluation_agrees_with_the_predictions(trained, mrpc):
    # The dev set and the test set hold the same 7 texts, in batches of 4:
    # had the filling counted, the two would differ.
    folder, _ = trained
    labels = np.array(mrpc[2][12:], int)
    probabilities = _table(folder / "test_results.tsv")
    assert probabilities.shape == (7, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    found = probabilities.argmax(axis=1)
    tp = (found * labels).sum()
    results = _results(folder / "eval_results.txt")
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
    server = (folder / "MRPC.tsv").read_text().splitlines()
    assert server == [
        "index\tprediction",
        *(f"{i}\t{label}" for i, label in enumerate(found)),
    ]


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
    assert list(checkpoints.numbered(str(folder / "best"))) == [
        kept["global_step"]
    ]
    assert sorted(checkpoints.numbered(str(folder))) == [2, 4, 6, 8, 9]
    # All steps are made: the flags.txt of the run evaluates the same again.
    results = (folder / "eval_results.txt").read_text()
    assert (
        "has made all 9 steps"
        in run(folder, f"--flagfile={folder}/flags.txt").stderr
    )
    assert (folder / "eval_results.txt").read_text() == results


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(trained, tmp_path):
    folder, arguments = trained
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    for step in (6, 8, 9):
        checkpoints.remove(f"{again}/model.ckpt-{step}")
    run(tmp_path, *arguments[:-1], f"--output_dir={again}")
    names = checkpoints.shapes(f"{folder}/model.ckpt-9")
    expected = checkpoints.read(f"{folder}/model.ckpt-9", list(names))
    found = checkpoints.read(f"{again}/model.ckpt-9", list(names))
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
    run(
        tmp_path,
        *arguments,
        "--do_predict=true",
        f"--init_checkpoint={folder}",
        f"--output_dir={tmp_path}",
    )
    last = _table(tmp_path / "test_results.tsv")
    run(
        tmp_path,
        *arguments,
        "--do_predict=true",
        "--use_checkpoint=last",
        f"--output_dir={folder}",
    )
    np.testing.assert_array_equal(_table(folder / "test_results.tsv"), last)


def test_export_predicts_raw_text(trained, mrpc):
    import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

    folder, _ = trained
    loaded = tf.saved_model.load(str(folder / "export"))
    serve = loaded.signatures["serving_default"]
    texts_a, texts_b = zip(*mrpc[1][12:], strict=True)
    outputs = serve(text_a=tf.constant(texts_a), text_b=tf.constant(texts_b))
    # Exported from the best weights, which the results are from.
    step = _results(folder / "eval_results.txt")["global_step"]
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
        _results(folder / "eval_results.txt")["eval_accuracy"]
    )


def test_scores_from_a_csv_of_ones_own(model, tmp_path):
    rng = np.random.default_rng(1)
    rows = [(_sentence(rng), i / 4) for i in range(10)]
    lines = "".join(f'"{text}, ""x""",{score}\n' for text, score in rows)
    (tmp_path / "a.csv").write_text("message,score\n" + lines)
    output = tmp_path / "output"
    run(
        tmp_path,
        *("--do_train", "--do_eval", "--do_predict", "--regression"),
        *(f"--train_file={tmp_path}/a.csv", "--dev_fraction=0.3"),
        *(f"--test_file={tmp_path}/a.csv", "--text_a_column=message"),
        *("--label_column=score", *model, "--num_train_epochs=2"),
        f"--output_dir={output}",
    )
    assert records.count([f"{output}/train.tf_record"]) == [7]
    results = _results(output / "eval_results.txt")
    scores = _table(output / "test_results.tsv")
    assert scores.shape == (10, 1)
    (tmp_path / "rows").mkdir()
    dev = [
        float(value)
        for record in tf.data.TFRecordDataset(f"{output}/eval.tf_record")
        for value in tf.train.Example.FromString(record.numpy())
        .features.feature["label_ids"]
        .float_list.value
    ]
    labels = np.array([score for _, score in rows])
    held_out = [int(label * 4) for label in dev]
    found = scores[held_out, 0]
    assert results["eval_loss"] == pytest.approx(
        ((found - labels[held_out]) ** 2).mean(), rel=1e-5
    )
    assert results["eval_pearson"] == pytest.approx(
        np.corrcoef(found, labels[held_out])[0, 1], abs=1e-3
    )
    assert not (output / "labels.txt").exists()


def test_labels_of_ones_own_are_remembered(model, tmp_path):
    rows = [{"t": w, "y": f"class {i % 3}"} for i, w in enumerate(_WORDS[:12])]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in rows)
    )
    shared = ["--text_a_column=t", "--label_column=y", *model]
    shared += [f"--output_dir={tmp_path}/output"]
    train = [f"--train_file={tmp_path}/a.jsonl", "--num_train_epochs=1"]
    run(tmp_path, "--do_train", *train, *shared)
    assert (tmp_path / "output" / "labels.txt").read_text() == (
        "class 0\nclass 1\nclass 2\n"
    )
    dev = ["--do_eval", f"--dev_file={tmp_path}/a.jsonl"]
    run(tmp_path, *dev, *shared)
    results = _results(tmp_path / "output" / "eval_results.txt")
    assert results["global_step"] == 3
    assert {"eval_accuracy", "eval_macro_f1"} <= results.keys()
    done = scripts.run(
        *(tmp_path / "log", "run_classifier", *dev, *shared),
        "--labels=class 1,class 0,class 2",
    )
    assert done.wait() == 1
    assert "trained with other labels: class 0" in done.lines[-1]


def _write_tf1_checkpoint(prefix):
    """Writes what the original's pre-training would, by TF1's own Saver."""
    rng = np.random.default_rng(2)
    config = modeling.BertConfig(**_CONFIG)
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


def test_check_only_says_what_it_found_and_writes_nothing(
    model, mrpc, trained, tmp_path
):
    found = run(
        tmp_path,
        "--task_name=MRPC",
        *("--do_train=true", "--do_eval=true", "--check_only"),
        f"--data_dir={mrpc[0]}",
        f"--init_checkpoint={checkpoints.latest(str(trained[0]))}",
        f"--output_dir={tmp_path / 'output'}",
        *model,
    )
    for text in (
        "Labels: 0, 1",
        "12 train examples",
        "7 dev examples",
        "Would be: Restored ",
        "Found nothing that would stop this run",
    ):
        assert text in found.stderr
    assert not (tmp_path / "output").exists()


def test_init_checkpoint_of_the_original(model, mrpc, tmp_path):
    prefix = str(tmp_path / "bert_model.ckpt")
    values = _write_tf1_checkpoint(prefix)
    arguments = ["--task_name=MRPC", f"--data_dir={mrpc[0]}", *model]
    arguments += [f"--init_checkpoint={prefix}"]
    done = run(
        tmp_path,
        *arguments,
        *("--do_train", "--learning_rate=0", "--num_train_epochs=0.4"),
        f"--output_dir={tmp_path}/output",
    )
    assert (
        "start from random values: output_bias, output_weights" in done.stderr
    )
    assert "not used by this model: cls/predictions/output_bias" in done.stderr
    after = checkpoints.latest(str(tmp_path / "output"))
    assert after is not None
    # A learning rate of 0: what is saved is what was restored.
    for name, value in values.items():
        if name.startswith("bert/") and "adam" not in name:
            np.testing.assert_array_equal(
                checkpoints.read(after, [name])[name], value.astype(np.float32)
            )


def _run_here(*arguments):
    """Runs the script in this process: quicker, for runs that end at once."""
    return scripts.run_here("run_classifier", _FLAG_MODULES, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task_name=mrpc"], "At least one of --do_train"),
        (
            ["--task_name=nope", "--do_eval"],
            "Unknown task. Expected one of CoLA",
        ),
        (["--do_eval"], "Give either --task_name or files of your own"),
        (["--task_name=ax", "--do_train"], "AX has no train split"),
        (
            ["--task_name=mrpc", "--do_eval", "--data_dir={tmp}/none"],
            "There is no such file. Received: {tmp}/none/dev.tsv",
        ),
        (
            ["--task_name=mrpc", "--do_eval", "--data_dir={tmp}"],
            "{tmp}/dev.tsv, line 2: a column is missing",
        ),
        (
            ["--task_name=rte", "--do_train", "--data_dir={tmp}"],
            "{tmp}/train.tsv, line 3: unknown label. Expected one of entail",
        ),
        (
            ["--task_name=wnli", "--do_predict", "--data_dir={tmp}"],
            "There is no fine-tuned model in {tmp}/output. Train one",
        ),
        (
            [
                "--train_file={tmp}/train.tsv",
                "--do_train",
                "--glue_server_files",
            ],
            "the column 'text' is missing from the header. Received: index, s",
        ),
        (
            ["--task_name=xnli", "--do_eval"],
            "XNLI is not in TensorFlow Datasets. Give --data_dir",
        ),
        (
            ["--task_name=xnli", "--do_eval", "--glue_server_files"],
            "--glue_server_files is for the tasks of GLUE",
        ),
        (
            ["--task_name=mrpc", "--do_eval", "--max_seq_length=33"],
            "max_seq_length=33, max_position_embeddings=32",
        ),
        (
            ["--test_file={tmp}/dev.tsv", "--do_predict"],
            "The labels are not known. Give --labels",
        ),
        (
            ["--train_file={tmp}/train.tsv", "--do_train", "--data_dir={tmp}"],
            "--data_dir goes with --task_name",
        ),
        (
            [
                *("--task_name=wnli", "--do_train", "--data_dir={tmp}/wnli"),
                *("--distribution_strategy=mirrored", "--eval_batch_size=3"),
            ],
            "Received: eval_batch_size=3",
        ),
        (
            [
                *("--flagfile={root}/configs/mrpc.flags", "--max_seq_length=9"),
                "--data_dir={tmp}/none",
            ],
            "There is no such file. Received: {tmp}/none/train.tsv",
        ),
        (
            [
                *("--flagfile={root}/configs/glue.flags", "--max_seq_length=9"),
                *("--task_name=sst-2", "--data_dir={tmp}/none"),
            ],
            "There is no such file. Received: {tmp}/none/train.tsv",
        ),
        (
            [
                "--flagfile={root}/configs/spam.flags",
                "--train_file={tmp}/spam",
            ],
            "Expected at least two labels, each once. Received: labels=ham",
        ),
        (
            ["--task_name=wnli", "--do_train", "--data_dir={tmp}/wnli"],
            "too few examples for one training step",
        ),
    ],
)
def test_mistakes_end_in_one_line(arguments, message, model, tmp_path, capsys):
    (tmp_path / "dev.tsv").write_text("Quality\t#1 String\t#2 String\n1\tx\n")
    header = "index\tsentence1\tsentence2"
    (tmp_path / "train.tsv").write_text(
        f"{header}\tlabel\n0\ta\tb\tentailment\n1\ta\tb\tperhaps\n"
    )
    (tmp_path / "test.tsv").write_text(f"{header}\n0\ta\tb\n")
    (tmp_path / "spam").write_text("ham\tsome\nham\ttext\n")
    (tmp_path / "wnli").mkdir()
    (tmp_path / "wnli" / "train.tsv").write_text(
        f"{header}\tlabel\n0\ta\tb\t1\n"
    )
    given = [
        argument.format(tmp=tmp_path, root=_ROOT) for argument in arguments
    ]
    code = _run_here(*model, f"--output_dir={tmp_path}/output", *given)
    assert code == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("error: ")
    assert message.format(tmp=tmp_path) in error[-1]
    assert not any("Traceback" in line for line in error)


@pytest.mark.slow
def test_a_task_by_name_from_tfds(model, tmp_path):
    sentences = [{"sentence": w, "label": i % 2} for i, w in enumerate(_WORDS)]
    test_tasks_glue.store(
        tmp_path, "sst2", {"train": sentences, "validation": sentences[:5]}
    )
    run(
        tmp_path,
        *("--task_name=SST-2", "--do_train", "--do_eval", *model),
        *("--num_train_epochs=0.5", f"--output_dir={tmp_path}/output"),
        TFDS_DATA_DIR=str(tmp_path),
    )
    results = _results(tmp_path / "output" / "eval_results.txt")
    assert results["global_step"] == int(len(_WORDS) / 4 * 0.5)


@pytest.mark.slow
def test_mnli_both_ways_and_its_diagnostic_set(model, tmp_path):
    header = "index\tsentence1\tsentence2"
    rows = "0\tthe cat\ta cat\t{}\n1\tthe dog\ta fish\t{}\n"
    labels = ("neutral", "entailment")
    for name in ("train", "dev_matched", "dev_mismatched"):
        (tmp_path / f"{name}.tsv").write_text(
            f"{header}\tgold_label\n" + rows.format(*labels) * 2
        )
    for name in ("test_matched", "test_mismatched", "diagnostic"):
        (tmp_path / f"{name}.tsv").write_text(
            f"{header}\n0\tthe cat\ta cat\n1\tthe dog\ta fish\n"
        )
    shared = [f"--data_dir={tmp_path}", "--do_predict", *model]
    shared += ["--glue_server_files"]
    run(
        *(tmp_path, "--task_name=MNLI", "--do_train", "--do_eval", *shared),
        *("--num_train_epochs=1", f"--output_dir={tmp_path}/mnli"),
    )
    mnli = tmp_path / "mnli"
    matched, mismatched = (
        _results(mnli / f"eval_results{suffix}.txt")
        for suffix in ("", "_mismatched")
    )
    assert matched == mismatched  # The same rows.
    server = (mnli / "MNLI-m.tsv").read_text()
    assert server == (mnli / "MNLI-mm.tsv").read_text()
    assert _table(mnli / "test_results_mismatched.tsv").shape == (2, 3)
    run(
        *(tmp_path, "--task_name=AX", *shared, f"--init_checkpoint={mnli}"),
        f"--output_dir={tmp_path}/ax",
    )
    assert (tmp_path / "ax" / "AX.tsv").read_text() == server


@pytest.mark.slow
def test_real_pairs_served_by_a_stranger_as_predicted(shared_data, tmp_path):
    """1,725 pairs of MRPC, from a process without this package."""
    config = _CONFIG | {"vocab_size": 30522, "max_position_embeddings": 64}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    folder = shared_data / "glue" / "MRPC"
    run(
        tmp_path,
        *("--task_name=MRPC", f"--data_dir={folder}"),
        *("--do_train", "--do_predict", "--do_export"),
        f"--vocab_file={shared_data}/vocab/bert_uncased.txt",
        f"--bert_config_file={tmp_path}/bert_config.json",
        *("--max_seq_length=64", "--predict_batch_size=64"),
        *("--learning_rate=0.01", "--num_train_epochs=0.2"),
        f"--output_dir={tmp_path}/out",
    )
    task = glue.find("MRPC")
    examples = list(classification.read(task, str(folder), "test"))
    served = saved_models.serve_elsewhere(
        tmp_path,
        tmp_path / "out" / "export",
        text_a=[example.text_a for example in examples],
        text_b=[example.text_b for example in examples],
    )
    predicted = _table(tmp_path / "out" / "test_results.tsv")
    assert len(predicted) == 1725
    np.testing.assert_allclose(served["probabilities"], predicted, atol=1e-5)
