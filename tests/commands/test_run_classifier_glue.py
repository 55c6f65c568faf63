"""Runs run_classifier.py on tasks of GLUE that differ from the others."""

import json

from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import task as classification
from tests import classifier_runs, saved_models
from tests.tasks.classification import test_glue as test_tasks_glue

import numpy as np
import pytest


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.mark.slow
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
    classifier_runs.run(
        *(tmp_path, "--task_name=MNLI", "--do_train", "--do_eval", *shared),
        *("--num_train_epochs=1", f"--output_dir={tmp_path}/mnli"),
    )
    mnli = tmp_path / "mnli"
    matched, mismatched = (
        classifier_runs.results(mnli / f"eval_results{suffix}.txt")
        for suffix in ("", "_mismatched")
    )
    assert matched == mismatched  # The same rows.
    server = (mnli / "MNLI-m.tsv").read_text()
    assert server == (mnli / "MNLI-mm.tsv").read_text()
    assert classifier_runs.table(
        mnli / "test_results_mismatched.tsv"
    ).shape == (2, 3)
    classifier_runs.run(
        *(tmp_path, "--task_name=AX", *shared, f"--init_checkpoint={mnli}"),
        f"--output_dir={tmp_path}/ax",
    )
    assert (tmp_path / "ax" / "AX.tsv").read_text() == server


@pytest.mark.slow
def test_real_pairs_served_by_a_stranger_as_predicted(shared_data, tmp_path):
    """1,725 pairs of MRPC, from a process without this package."""
    config = classifier_runs.CONFIG | {
        "vocab_size": 30522,
        "max_position_embeddings": 64,
    }
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    folder = shared_data / "glue" / "MRPC"
    classifier_runs.run(
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
    predicted = classifier_runs.table(tmp_path / "out" / "test_results.tsv")
    assert len(predicted) == 1725
    np.testing.assert_allclose(served["probabilities"], predicted, atol=1e-5)
