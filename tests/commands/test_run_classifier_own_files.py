"""Runs run_classifier.py on tables of the user's own, made here."""

import json
import pathlib
import shutil

from bert_tf.records import reading
from tests import classifier_runs, tiny_model

import numpy as np
import pytest
import tensorflow as tf
from sklearn import metrics

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.mark.usefixtures("untraced")
def test_scores_from_a_csv_of_ones_own(model, tmp_path):
    rng = np.random.default_rng(1)
    rows = [(classifier_runs.sentence(rng), i / 4) for i in range(10)]
    lines = "".join(f'"{text}, ""x""",{score}\n' for text, score in rows)
    (tmp_path / "a.csv").write_text("message,score\n" + lines)
    output = tmp_path / "output of it"
    done = classifier_runs.run(
        tmp_path,
        *("--do_train", "--do_eval", "--do_predict", "--regression"),
        *(f"--train_file={tmp_path}/a.csv", "--dev_fraction=0.3"),
        *(f"--test_file={tmp_path}/a.csv", "--text_a_column=message"),
        *("--label_column=score", *model, "--num_train_epochs=2"),
        *(f"--output_dir={output}", "--predictions_with_texts"),
    )
    named = classifier_runs.rows(output / "predictions.jsonl")
    assert [(x["text_a"], x["gold"]) for x in named] == [
        (f'{text}, "x"', score) for text, score in rows
    ]
    assert list(named[0]) == ["id", "text_a", "gold", "score"]
    assert reading.count([f"{output}/train.tf_record"]) == [7]
    results = classifier_runs.results(output / "eval_results.txt")
    scores = classifier_runs.table(output / "test_results.tsv")
    assert scores.shape == (10, 1)
    dev = [
        tf.train.Example.FromString(record)
        .features.feature["label_ids"]
        .float_list.value[0]
        for record in tf.data.TFRecordDataset(
            f"{output}/eval.tf_record"
        ).as_numpy_iterator()
    ]
    found = scores[[int(label * 4) for label in dev], 0]
    assert results["eval_loss"] == pytest.approx(
        ((found - dev) ** 2).mean(), rel=1e-5
    )
    assert results["eval_pearson"] == pytest.approx(
        np.corrcoef(found, dev)[0, 1], abs=1e-3
    )
    assert not (output / "labels.txt").exists()
    command = f"python run_prediction.py --model_dir='{output}'"
    assert done.lines[-1].endswith(f"To predict: {command}")
    # The run knows that it predicts scores.
    before = (output / "test_results.tsv").read_bytes()
    (output / "test_results.tsv").unlink()
    done = classifier_runs.run(
        *(tmp_path, "--do_predict", f"--test_file={tmp_path}/a.csv", *model),
        *("--text_a_column=message", f"--output_dir={output}"),
    )
    assert "--regression=true, as in training." in done.stderr
    assert (output / "test_results.tsv").read_bytes() == before


def test_the_flags_of_spam_on_a_copy_with_a_header(
    model, shared_data, tmp_path
):
    path = shared_data / "spam" / "SMSSpamCollection"
    if not path.exists():
        pytest.skip(f"needs the messages: no file {path}")
    done = classifier_runs.run(
        *(tmp_path, *model, f"--flagfile={_ROOT}/configs/spam.flags"),
        *(f"--train_file={path}", f"--output_dir={tmp_path}/output"),
        *("--check_only", "--max_seq_length=12", "--has_header=true"),
    )
    lines = path.read_bytes().split(b"\n")
    assert lines[0].startswith(b"Label\t") and not lines.pop()
    rows = len(lines) - 1
    assert rows == 5574
    assert {x.split(b"\t")[0] for x in lines[1:]} == {b"ham", b"spam"}
    assert "Labels: ham, spam." in done.stderr
    held_out = round(rows / 10)
    assert f"Read {rows - held_out:,} examples for train." in done.stderr
    assert f"Read {held_out} examples for eval." in done.stderr


def _write_topics(path, number, seed):
    """Writes long texts about some of three animals, with an id each."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for i in range(number):
            words = list(rng.choice(["the", "a", "old", "new"], 40))
            own = [x for x in ("cat", "dog", "fish") if rng.random() < 0.4]
            for animal in own:
                words[rng.integers(len(words))] = animal
            row = {"key": f"text {i}", "t": " ".join(words), "y": own}
            file.write(json.dumps(row) + "\n")


@pytest.mark.usefixtures("untraced")
def test_several_labels_of_documents_in_windows(model, tmp_path):
    import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

    for seed, (name, number) in enumerate({"train": 16, "dev": 7}.items()):
        _write_topics(tmp_path / f"{name}.jsonl", number, seed)
    output, dev = tmp_path / "output", tmp_path / "dev.jsonl"
    reads = [
        *(*model, "--label_separator=,", "--id_column=key"),
        *("--text_a_column=t", f"--test_file={dev}", "--do_predict"),
        *("--long_documents=windows", "--window_stride=7"),
    ]
    trains = [
        *("--do_train", "--do_eval", *reads, "--train_batch_size=16"),
        *(f"--train_file={tmp_path}/train.jsonl", "--num_train_epochs=1"),
        *("--label_column=y", "--class_weights=balanced"),
        f"--output_dir={output}",
    ]
    classifier_runs.run(tmp_path, *trains, f"--dev_file={dev}")
    given = classifier_runs.rows(dev)
    found = classifier_runs.rows(output / "predictions.jsonl")
    assert [row["id"] for row in found] == [row["key"] for row in given]
    names = ["cat", "dog", "fish"]
    # 40 tokens in windows of 10, from 0, 7, 14, 21, 28 and 30.
    assert reading.count([f"{output}/train.tf_record"]) == [16 * 6]
    probabilities = np.array(
        [[row["probabilities"][name] for name in names] for row in found]
    )
    np.testing.assert_allclose(
        classifier_runs.table(output / "test_results.tsv"), probabilities
    )
    # Another dev file is no measure of the best.
    other = tmp_path / "other.jsonl"
    shutil.copy(dev, other)
    classifier_runs.run(
        *(tmp_path, *trains, "--check_only", f"--dev_file={other}")
    )
    _write_topics(other, 7, seed=2)
    done = classifier_runs.run(
        *(tmp_path, *trains, "--check_only", f"--dev_file={other}"), code=1
    )
    said = f"dev_file was {dev} and is {other}. Give what it had, or"
    assert said in done.lines[-1]
    evaluates = [x for x in trains if x != "--do_train"]
    classifier_runs.run(
        *(tmp_path, *evaluates, "--check_only", f"--dev_file={other}")
    )
    # The values of omitted flags are those of training.
    omitted = [x for x in evaluates if not x.startswith("--label_separator")]
    classifier_runs.run(tmp_path, *omitted, "--check_only", f"--dev_file={dev}")
    # Its best weights go with the config of the base model, which does not
    # say that texts have several labels.
    classifier_runs.run(
        *(tmp_path, *reads, f"--init_checkpoint={output}/best"),
        f"--output_dir={tmp_path}/again",
    )
    again = classifier_runs.rows(tmp_path / "again" / "predictions.jsonl")
    assert again == found
    with tiny_model.untraced(False):
        exports = (*omitted, "--do_eval=false", "--do_predict=false")
        classifier_runs.run(tmp_path, *exports, "--do_export")
    serve = tf.saved_model.load(str(output / "export"))
    served = serve(tf.constant([row["t"] for row in given]))
    np.testing.assert_allclose(
        served["probabilities"], probabilities, atol=1e-5
    )
    # The dev set and the test set hold the same texts.
    labels = np.array([[int(x in row["y"]) for x in names] for row in given])
    results = classifier_runs.results(output / "eval_results.txt")
    assert results["eval_loss"] == pytest.approx(
        metrics.log_loss(labels.ravel(), probabilities.ravel()), abs=1e-5
    )
    pairs = zip(found, given, strict=True)
    right = [set(x["labels"]) == set(y["y"]) for x, y in pairs]
    assert results["eval_subset_accuracy"] == pytest.approx(
        np.mean(right), abs=1e-6
    )
    assert "micro avg" in (output / "eval_report.txt").read_text()
