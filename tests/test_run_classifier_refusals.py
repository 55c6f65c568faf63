"""What run_classifier.py refuses, in one line."""

import pathlib

from bert_tf import checkpoints
from tests import classifier_runs

import numpy as np
import pytest

_ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


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
            [
                *("--task_name=mrpc", "--do_eval", "--data_dir={tmp}/none"),
                "--init_checkpoint={tmp}/trained.ckpt",
            ],
            "There is no such file. Received: {tmp}/none/dev.tsv",
        ),
        (
            [
                *("--task_name=mrpc", "--do_eval", "--data_dir={tmp}"),
                "--init_checkpoint={tmp}/trained.ckpt",
            ],
            "{tmp}/dev.tsv, line 2: a column is missing",
        ),
        (
            ["--task_name=rte", "--do_train", "--data_dir={tmp}"],
            "{tmp}/train.tsv, line 3: unknown label. Expected one of entail",
        ),
        (
            ["--task_name=wnli", "--do_predict", "--data_dir={tmp}"],
            "There is no trained model: --output_dir={tmp}/output holds no",
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
            ["--task_name=xnli", "--do_train"],
            "XNLI is not in TensorFlow Datasets. Give --data_dir",
        ),
        (
            [
                *("--task_name=mnli", "--do_predict", "--data_dir={tmp}"),
                "--init_checkpoint={tmp}/trained.ckpt",
            ],
            "trained.ckpt was fine-tuned with 2 classes. Give the same",
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
                *("--dev_fraction=0.1", "--file_format=csv", "--nohas_header"),
                *("--text_a_column=x", "--text_b_column=y", "--labels=0,1"),
                *("--label_column=0", "--label_separator=,", "--id_column=i"),
                "--regression",
            ],
            "--dev_fraction goes with --train_file: leave it out. Received: "
            "dev_fraction=0.1, train_file=None. --file_format, --has_header, "
            "--id_column, --label_column, --label_separator, --labels, "
            "--regression, --text_a_column, --text_b_column go with "
            "--train_file or --dev_file or --test_file: leave them out.",
        ),
        (
            [
                *("--task_name=wnli", "--do_train", "--data_dir={tmp}/wnli"),
                # As a flags.txt has them.
                *("--dev_fraction=0.0", "--has_header=true"),
                *("--text_a_column=text", "--regression=false"),
            ],
            "too few examples for one training step",
        ),
        (
            [
                *("--train_file={tmp}/train.tsv", "--do_train"),
                *("--regression", "--labels=a,b"),
            ],
            "Received: labels=a,b, regression=true",
        ),
        (
            [
                *(
                    "--task_name=wnli",
                    "--do_train",
                    "--do_eval",
                    "--data_dir={tmp}/wnli",
                ),
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
            [
                *("--train_file={tmp}/train.tsv", "--do_train"),
                *("--text_a_column=sentence1", "--text_b_column=sentence2"),
                "--long_documents=tail",
            ],
            "--long_documents is for single texts",
        ),
        (
            [
                *("--train_file={tmp}/train.tsv", "--do_train"),
                *("--text_a_column=sentence1", "--long_documents=windows"),
                "--window_stride=11",
            ],
            "pieces of a window, 10. Received: window_stride=11",
        ),
        (
            [
                *("--train_file={tmp}/train.tsv", "--do_train"),
                *("--text_a_column=sentence1", "--class_weights=no=2"),
            ],
            "Expected labels: entailment, perhaps. Received: class_weights='n",
        ),
        (
            [
                *("--train_file={tmp}/train.tsv", "--do_train"),
                *("--text_a_column=sentence1", "--id_column=key"),
            ],
            "{tmp}/train.tsv, line 1: the column 'key' is missing",
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
    checkpoints.write(
        str(tmp_path / "trained.ckpt"),
        {"output_weights": np.zeros([2, 8]), "output_bias": np.zeros([2])},
    )
    (tmp_path / "wnli").mkdir()
    (tmp_path / "wnli" / "train.tsv").write_text(
        f"{header}\tlabel\n0\ta\tb\t1\n"
    )
    given = [
        argument.format(tmp=tmp_path, root=_ROOT) for argument in arguments
    ]
    code = classifier_runs.run_here(
        *model, f"--output_dir={tmp_path}/output", *given
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("error: ")
    assert message.format(tmp=tmp_path) in error[-1]
    assert not any("Traceback" in line for line in error)
