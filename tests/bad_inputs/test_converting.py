import contextlib
import pathlib

from tests.bad_inputs import cases, converted_models, matrix, surroundings

SCRIPT, CASES, RIGHT = cases.read("converting")


def _write(folder: pathlib.Path) -> contextlib.AbstractContextManager[None]:
    converted_models.write(folder)
    places = folder / "places"
    places.mkdir()
    return surroundings.held(places, "held.lock", "writes", places / "held")


data = matrix.inputs(_write)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
