"""Bad inputs of create_pretraining_data.py."""

import pathlib
import shutil
from collections.abc import Iterator

from bert_tf.storage import run_lock
from tests import tiny_files
from tests.bad_inputs import cases, creation_inputs, matrix

import pytest

SCRIPT, CASES, RIGHT = cases.read("creating_records")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_model(folder / "model")
    shutil.copy(folder / "model" / "vocab.txt", folder / "vocab.txt")
    creation_inputs.write_texts(folder)
    creation_inputs.write_vocabularies(folder / "vocabs")
    creation_inputs.write_records(folder / "odd")
    matrix.make(SCRIPT, folder, folder / "records")
    matrix.make(SCRIPT, folder, folder / "unmasked", "--dynamic_masking")
    creation_inputs.write_outputs(folder)
    with run_lock.hold(folder / "held" / ".work", what="makes records"):
        yield folder


test_bad_input = matrix.refused(SCRIPT, CASES)
test_the_good_command_is_good = matrix.good(SCRIPT)
test_what_rightly_works = matrix.rightly_works(SCRIPT, RIGHT)
