"""Runs the script's own main, on tiny data made here."""

import csv
import json
import shutil

from bert_tf.checkpoints import tf1_files
from tests import saved_models, scripts

import numpy as np
import pytest
import tensorflow as tf

_WORDS = [
    "the",
    "cat",
    "dog",
    "bird",
    "fish",
    "runs",
    "sleeps",
    "eats",
    "red",
    "blue",
    "green",
    "old",
    "new",
]
_CONFIG = {
    "vocab_size": 6 + len(_WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_HEADER = [
    *("", "video-id", "fold-ind", "startphrase", "sent1", "sent2"),
    *("gold-source", "ending0", "ending1", "ending2", "ending3", "label"),
]


def store(path, number):
    """Writes rows of SWAG whose right ending is the one with "eats"."""
    rng = np.random.default_rng(number)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_HEADER)
        for i in range(number):
            words = [" ".join(rng.choice(_WORDS[:5], 4)) for _ in range(5)]
            label = int(rng.integers(4))
            endings = [f"{x} {rng.choice(['runs', 'red'])}" for x in words[1:]]
            endings[label] = f"{words[1 + label]} eats"
            writer.writerow(
                [
                    *(i, "v", i, f"{words[0]} the", words[0], "The", "gold"),
                    *(*endings, label),
                ]
            )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ","]
    (folder / "vocab.txt").write_text("\n".join([*marks, *_WORDS]) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(_CONFIG))
    for name, number in (("train", 96), ("dev", 20), ("test", 18)):
        store(folder / f"{name}.csv", number)
    return folder


def arguments(files):
    """Flags of a quick run."""
    return [
        f"--vocab_file={files}/vocab.txt",
        f"--bert_config_file={files}/bert_config.json",
        f"--train_file={files}/train.csv",
        f"--dev_file={files}/dev.csv",
        f"--test_file={files}/test.csv",
        *("--max_seq_length=16", "--train_batch_size=8"),
        *("--learning_rate=0.005", "--num_train_epochs=4"),
    ]


def run(folder, *given):
    """Runs the script in a process of its own, which must succeed."""
    done = scripts.run(folder / "log", "run_multiple_choice", *given)
    assert done.wait() == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    command = [
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        *arguments(files),
        f"--output_dir={folder}/out",
    ]
    run(folder, *command)
    return folder / "out", command


def results(folder):
    text = (folder / "eval_results.txt").read_text()
    return dict(line.split(" = ") for line in text.splitlines())


def test_learns_which_ending_is_right(trained):
    folder, _ = trained
    found = results(folder)
    assert float(found["eval_accuracy"]) > 0.8  # Chance is 0.25.
    best = json.loads((folder / "best" / "results.json").read_text())
    assert best["eval_accuracy"] == float(found["eval_accuracy"])
    assert best["global_step"] == int(found["global_step"])


@pytest.mark.slow
def test_texts_beside_predictions(trained, files, tmp_path):
    folder, _ = trained
    run(
        tmp_path,
        *("--do_predict", "--predictions_with_texts", *arguments(files)),
        *(f"--init_checkpoint={folder}", f"--output_dir={tmp_path}/out"),
    )
    lines = (tmp_path / "out" / "test_predictions.jsonl").read_text()
    with (files / "test.csv").open(newline="") as file:
        problems = list(csv.DictReader(file))
    for line, problem in zip(lines.splitlines(), problems, strict=True):
        row = json.loads(line)
        assert row["prompt"] == problem["sent1"]
        assert row["choices"] == [
            f"{problem['sent2']} {problem[f'ending{i}']}" for i in range(4)
        ]
        assert row["gold"] == int(problem["label"])
    # Without the flag they are left out.
    before = (folder / "test_predictions.jsonl").read_text().splitlines()[0]
    assert list(json.loads(before)) == ["id", "choice", "probabilities"]


def test_predictions_and_the_export_agree(trained, files):
    import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

    folder, _ = trained
    text = (folder / "test_results.tsv").read_text()
    rows = np.array([line.split("\t") for line in text.splitlines()], float)
    lines = (folder / "test_predictions.jsonl").read_text().splitlines()
    predicted = [json.loads(line) for line in lines]
    with (files / "test.csv").open(newline="") as file:
        problems = list(csv.DictReader(file))
    labels = [int(problem["label"]) for problem in problems]
    assert [row["choice"] for row in predicted] == rows.argmax(-1).tolist()
    assert (rows.argmax(-1) == labels).mean() > 0.8
    assert [row["id"] for row in predicted] == [str(i) for i in range(2, 20)]
    loaded = tf.saved_model.load(str(folder / "export"))
    outputs = loaded(
        tf.constant([problem["sent1"] for problem in problems]),
        tf.constant(
            [
                [
                    f"{problem['sent2']} {problem[f'ending{i}']}"
                    for i in range(4)
                ]
                for problem in problems
            ]
        ),
    )
    np.testing.assert_allclose(outputs["probabilities"], rows, atol=1e-5)
    np.testing.assert_allclose(
        [row["probabilities"] for row in predicted], rows, atol=1e-6
    )


@pytest.mark.exhaustive
def test_a_killed_run_ends_with_the_same_weights(trained, tmp_path):
    folder, command = trained
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    newest = max(tf1_files.numbered(str(folder)))
    # As if it had been killed before it saved.
    tf1_files.remove(f"{again}/model.ckpt-{newest}")
    run(tmp_path, *command[:-1], f"--output_dir={again}")
    names = list(tf1_files.shapes(f"{folder}/model.ckpt-{newest}"))
    expected = tf1_files.read(f"{folder}/model.ckpt-{newest}", names)
    found = tf1_files.read(f"{again}/model.ckpt-{newest}", names)
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.slow
def test_a_stranger_serves_real_articles_as_predicted(shared_data, tmp_path):
    """1,000 questions of SQuAD, with one to three answers of others."""
    path = shared_data / "squad" / "dev-v1.1.json"
    asked = [
        (paragraph["context"], qa["question"], qa["answers"][0]["text"])
        for article in json.loads(path.read_text())["data"]
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ][:1100]
    rows = [
        {
            "example_id": str(i),
            "article": context,
            "question": question,
            "options": [asked[i - j][2] for j in range(2 + i % 3)],
            "answer": "A",
        }
        for i, (context, question, _) in enumerate(asked)
    ]
    for name, part in (("train", rows[:100]), ("test", rows[100:])):
        text = "\n".join(map(json.dumps, part)) + "\n"
        (tmp_path / f"{name}.jsonl").write_text(text)
    config = _CONFIG | {"vocab_size": 30522, "max_position_embeddings": 64}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    run(
        tmp_path,
        *("--do_train", "--do_predict", "--do_export"),
        f"--vocab_file={shared_data}/vocab/bert_uncased.txt",
        f"--bert_config_file={tmp_path}/bert_config.json",
        f"--train_file={tmp_path}/train.jsonl",
        f"--test_file={tmp_path}/test.jsonl",
        *("--max_seq_length=64", "--predict_batch_size=50"),
        *("--train_batch_size=10", "--learning_rate=0.001"),
        *("--num_train_epochs=1", f"--output_dir={tmp_path}/out"),
    )
    text = (tmp_path / "out" / "test_results.tsv").read_text()
    expected = [list(map(float, x.split("\t"))) for x in text.splitlines()]
    served = saved_models.serve_elsewhere(
        tmp_path,
        tmp_path / "out" / "export",
        prompt=[row["article"] for row in rows[100:]],
        choices=[
            [f"{row['question']} {option}" for option in row["options"]]
            + [""] * (4 - len(row["options"]))
            for row in rows[100:]
        ],
    )
    assert len(expected) == 1000
    np.testing.assert_allclose(served["probabilities"], expected, atol=1e-5)
    lines = (tmp_path / "out" / "test_predictions.jsonl").read_text()
    for line, row, line_of_table in zip(
        lines.splitlines(), rows[100:], expected, strict=True
    ):
        own = json.loads(line)["probabilities"]
        assert len(own) == len(row["options"])
        np.testing.assert_allclose(own, line_of_table[: len(own)], atol=1e-6)
        assert not any(line_of_table[len(own) :])


# ---- Mistakes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "At least one of --do_train"),
        (["--do_eval", "--dev_file="], "--dev_file is empty."),
        (["--do_train", "--train_file=x.csv"], "no such file. Received: x.csv"),
        (["--do_train", "--max_seq_length=33"], "max_seq_length=33"),
        (["--do_predict"], "There is no trained model: --output_dir="),
        (
            ["--flagfile=configs/swag.flags", "--dev_file=x.csv"],
            "max_seq_length=128",
        ),
    ],
)
def test_mistakes_end_in_one_line(given, problem, files, tmp_path, capsys):
    code = scripts.run_here(
        *("run_multiple_choice", *arguments(files)),
        *(f"--output_dir={tmp_path}/out", *given),
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert problem in error


@pytest.mark.slow
def test_check_only_writes_nothing(files, tmp_path):
    done = scripts.run(
        *(tmp_path / "log", "run_multiple_choice", *arguments(files)),
        *("--do_train", "--do_eval", "--check_only"),
        f"--output_dir={tmp_path}/out",
    )
    assert done.wait() == 0, done.stderr
    assert "Data: 96 train problems." in done.stderr
    # Each problem is four sequences.
    assert "1 replicas of 32 sequences at a time" in done.stderr
    assert not (tmp_path / "out").exists()
