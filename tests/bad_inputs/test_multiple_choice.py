"""Bad inputs of run_multiple_choice.py."""

import json
import pathlib

from tests import tiny_files
from tests.bad_inputs import matrix

import pytest

SCRIPT = matrix.Script(
    "run_multiple_choice",
    {
        "do_train": "true",
        "train_file": "{data}/train.jsonl",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "train_batch_size": "4",
    },
    has_check_only=True,
)

CASES = {
    "no training file": matrix.Case(
        {"train_file": "{data}/none.jsonl"},
        "There is no such file. Received: {data}/none.jsonl",
    ),
    "too few examples": matrix.Case(
        {"train_batch_size": "1000"},
        "There are too few examples for one training step. Lower --train_batch",
    ),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_model(folder / "model")
    rows = [
        {"prompt": f"the cat {i % 3}", "choices": ["sat", "ran"], "label": 0}
        for i in range(12)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "train.jsonl").write_text(text)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)
