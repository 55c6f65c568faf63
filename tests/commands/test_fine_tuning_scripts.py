"""What the four fine-tuning scripts have in common, on tiny data."""

import csv
import json

from bert_tf.checkpoints import tf1_files
from bert_tf.tasks.squad import squad_questions
from tests import classifier_runs, combinations, fine_tuned, trained_weights

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

# What --check_only finds, the files of predictions and those besides.
_SCRIPTS = {
    "classifier": (
        (
            *("Labels: 0, 1", "Read 12 examples for train.tf_record"),
            "Read 7 examples for eval.tf_record",
        ),
        ("eval_results.txt", "test_results.tsv", "predictions.jsonl"),
        ("MRPC.tsv", "eval.tf_record", "eval_report.txt", "labels.txt"),
    ),
    "ner": (
        (
            *("Data: 40 train sentences", "Data: 9 dev sentences"),
            "scheme of the 4 labels: BIO",
        ),
        ("eval_results.txt", "test_predictions.conll", "test_results.txt"),
        ("eval_report.txt", "labels.txt", "test_entities.jsonl"),
    ),
    "squad": (
        ("Data: 30 questions to train on", "Data: 9 questions to answer"),
        ("eval_results.txt", "nbest_predictions.json", "predictions.json"),
        (),
    ),
    "multiple_choice": (
        # Each problem is four sequences.
        ("Data: 96 train problems.", " replica, 32 sequences at a time"),
        ("eval_results.txt", "test_results.tsv", "test_predictions.jsonl"),
        (),
    ),
}
_EVERY_RUN = {
    *("best", "bert_config.json", "checkpoint", "export", "flags.txt"),
    *("metrics.jsonl", "vocab.txt"),
}


# The folders of the others are written by the same functions.
_CHOSEN = combinations.some(["classifier", "ner"], _SCRIPTS)


@pytest.fixture(params=_CHOSEN, name="name")
def _name(request):
    return request.param


@pytest.fixture(name="trained")
def _trained(name):
    return fine_tuned.trained(name)


def test_the_folder_is_self_contained(name, trained):
    _, results, others = _SCRIPTS[name]
    found = {path.name for path in trained.output.iterdir()}
    assert found >= {*results, *others, *_EVERY_RUN}
    for file in ("vocab.txt", "bert_config.json"):
        kept, given = (
            (folder / file).read_text()
            for folder in (trained.output, trained.files)
        )
        assert kept.rstrip() == given.rstrip()
    best = trained.output / "best"
    score = json.loads((best / "results.json").read_text())
    evaluated = classifier_runs.results(trained.output / "eval_results.txt")
    shared = score.keys() & evaluated.keys()
    assert len(shared) > 2
    assert {x: evaluated[x] for x in shared} == pytest.approx(
        {x: score[x] for x in shared}
    )
    assert [*tf1_files.numbered(str(best))] == [score["global_step"]]


def test_check_only_says_what_it_found_and_writes_nothing(
    name, trained, tmp_path
):
    weights = tf1_files.latest(str(trained.output))
    done = trained.run(
        *(tmp_path, *trained.command, "--check_only", "--do_export=false"),
        f"--init_checkpoint={weights}",
        f"--output_dir={tmp_path}/output",
    )
    texts = ("Restored ", "Found nothing that would stop this run")
    for text in (*_SCRIPTS[name][0], *texts):
        assert text in done.stderr
    assert not (tmp_path / "output").exists()


def _assert_same_results(name, trained, folder):
    for file in _SCRIPTS[name][1]:
        expected = (trained.output / file).read_bytes()
        assert (folder / file).read_bytes() == expected


@pytest.mark.parametrize("name", combinations.some(["ner"], _SCRIPTS))
def test_the_flags_of_the_run_again_do_no_more(name, trained, tmp_path):
    again = trained.copy(tmp_path)
    newest = max(tf1_files.numbered(str(again)))
    done = trained.run(
        *(tmp_path, f"--flagfile={again}/flags.txt", "--do_export=false"),
        f"--output_dir={again}",
    )
    assert f"has completed all {newest} steps" in done.stderr
    _assert_same_results(name, trained, again)


@pytest.mark.parametrize("name", combinations.some(["classifier"], _SCRIPTS))
def test_a_killed_run_ends_with_the_same_weights(name, trained, tmp_path):
    again = trained.copy(tmp_path)
    saved = len(tf1_files.numbered(str(again)))
    trained_weights.drop_last(again, saved - saved // 2)
    trained.run(
        *(tmp_path, *trained.command, "--do_export=false"),
        f"--output_dir={again}",
    )
    trained_weights.assert_same(again, trained.output)
    _assert_same_results(name, trained, again)


def _problems(path):
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            endings = [f"{row['sent2']} {row[f'ending{i}']}" for i in range(4)]
            yield row["sent1"], endings


@pytest.mark.parametrize("name", ["classifier", "squad", "multiple_choice"])
def test_the_export_answers_as_predicted(name, trained):
    import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

    if name == "classifier":
        rows = fine_tuned.mrpc()[0][12:]
    elif name == "squad":
        asked = squad_questions.read(str(trained.files / "dev.json"))
        rows = [(x.text, x.context) for x in asked]
    else:
        rows = list(_problems(trained.files / "test.csv"))
    served = tf.saved_model.load(str(trained.output / "export"))(
        *map(tf.constant, zip(*rows, strict=True))
    )
    if name == "squad":
        predicted = json.loads(
            (trained.output / "predictions.json").read_text()
        )
        found = [text.decode() for text in served["answer"].numpy()]
        assert found == [*predicted.values()]
    else:
        predicted = classifier_runs.table(trained.output / "test_results.tsv")
        np.testing.assert_allclose(
            served["probabilities"], predicted, atol=1e-5
        )
