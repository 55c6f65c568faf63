"""A script with flags of every kind, run in this process."""

import contextlib
import pathlib
import tempfile

from tests import scripts

_SCRIPT = r'''r"""Does what a test asks.

    python script.py --output_dir=/tmp/run \
        --do_train
"""

from bert_tf.flags import command_line
from bert_tf.flags import flag_sections

_WORK = flag_sections.Section("What to do")
_DATA = flag_sections.Section("Data")
_OUTPUT = flag_sections.Section("Output")
_TRAINING = flag_sections.Section("Training", only_with="do_train")

_DO_TRAIN = _WORK.boolean("do_train", False, "Whether to train.")
_SHOW = _WORK.integer("show", 0, "Shows so many.", min=0)
_RATE = _TRAINING.number("rate", 0.5, "How fast.", min=0, max=1)
_EPOCHS = _TRAINING.number("epochs", 3.0, "How long.", above=0)
_STEPS = _TRAINING.integer("steps", None, "How many.", min=1, rare=True)
_KIND = _TRAINING.choice("kind", "line", ("line", "curve"), "Which.")
_POWER = _TRAINING.number("power", 1.0, "How bent.", only_with="kind=curve")
_WORKERS = _DATA.integer("workers", None, "How many.", only_with="!show")
_LIMIT = _DATA.number_or("limit", "auto", "auto", "Where it ends.")
_INPUT = _DATA.input_paths("input_file", "What is read.")
_MODEL = _DATA.input_path("model", "What knows.", holds=flag_sections.MODEL)
_RUN = _OUTPUT.output_path(
    "output_dir", "Where it goes. To stay.", holds=flag_sections.RUN
)
_FILE = _OUTPUT.output_path(
    "output_file", "A file.", holds=flag_sections.FILE, beside=(".index",)
)
_NEW = _OUTPUT.output_path(
    "new_dir", "A folder.", holds=flag_sections.NEW_FOLDER, own=("a*", "b")
)
_OVERWRITE = _OUTPUT.boolean("overwrite", False, "Whether to replace.")
_NAME = _DATA.string("name", None, "Its name.", required=REQUIRED)

command_line.start(__name__)

def main(_):
    print("done")

if __name__ == "__main__":
    command_line.run(main)
'''


def run(
    folder: pathlib.Path, *arguments: str, required: bool = False
) -> tuple[int, str, str]:
    """Runs the script in a folder, within this process."""
    script = folder / "script.py"
    script.write_text(_SCRIPT.replace("REQUIRED", str(required)))
    with contextlib.chdir(folder), tempfile.TemporaryDirectory() as output:
        done = scripts.run(
            pathlib.Path(output), str(folder / "script"), *arguments
        )
        script.unlink()
        return done.wait(), done.stdout, done.stderr


def refused(folder: pathlib.Path, *arguments: str, **how: bool) -> str:
    """Returns the one-line error of an invalid command line."""
    code, output, errors = run(folder, *arguments, **how)
    assert (code, output) == (1, "")
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    return errors.removeprefix("error: ").strip()


def taken(folder: pathlib.Path, *arguments: str) -> list[str]:
    """Returns the log lines of a valid command line."""
    code, output, errors = run(folder, *arguments)
    assert (code, output) == (0, "done\n"), errors
    return [line[9:] for line in errors.splitlines()]
