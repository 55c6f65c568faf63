"""Bad inputs of convert_checkpoint.py."""

import pathlib
from collections.abc import Iterator

from bert_tf.storage import run_lock
from tests.bad_inputs import cases, converted_models, matrix

import pytest

SCRIPT, CASES, RIGHT = cases.read("converting")


@pytest.fixture(scope="module")
def data(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[pathlib.Path]:
    folder = tmp_path_factory.mktemp("data")
    converted_models.write(folder)
    place = folder / "places" / "held"
    place.parent.mkdir()
    lock = run_lock.hold(place.parent, "held.lock", "writes", of=str(place))
    with lock:
        yield folder


test_bad_input = matrix.refused(SCRIPT, CASES)
test_the_good_command_is_good = matrix.good(SCRIPT)
test_what_rightly_works = matrix.rightly_works(SCRIPT, RIGHT)
