"""Bad inputs of convert_checkpoint.py."""

import pathlib

from bert_tf.storage import run_lock
from tests.bad_inputs import cases, converted_models, matrix

SCRIPT, CASES, RIGHT = cases.read("converting")


def _write(folder: pathlib.Path) -> run_lock.Lock:
    converted_models.write(folder)
    (folder / "places").mkdir()
    held = str(folder / "places" / "held")
    return run_lock.hold(folder / "places", "held.lock", "writes", of=held)


data = matrix.inputs(_write)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
