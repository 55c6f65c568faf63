import contextlib
import pathlib
import shutil

from tests import tiny_files
from tests.bad_inputs import cases, creation_inputs, matrix, surroundings

SCRIPT, CASES, RIGHT = cases.read("creating_records")


def _write(folder: pathlib.Path) -> contextlib.AbstractContextManager[None]:
    tiny_files.write_model(folder / "model")
    shutil.copy(folder / "model" / "vocab.txt", folder / "vocab.txt")
    creation_inputs.write_texts(folder)
    creation_inputs.write_vocabularies(folder / "vocabs")
    creation_inputs.write_records(folder / "odd")
    matrix.make(SCRIPT, folder, folder / "records")
    matrix.make(SCRIPT, folder, folder / "unmasked", "--dynamic_masking")
    creation_inputs.write_outputs(folder)
    return surroundings.held(folder / "held" / ".work", what="makes records")


data = matrix.inputs(_write)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
