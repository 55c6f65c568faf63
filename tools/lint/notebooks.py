"""Rules about the outputs that notebooks store."""

import re
from collections.abc import Iterator

from tools.lint.problems import Notebook, Problem, Repository

_STORE = "Run python -m tests.notebooks, which writes the outputs."
# Folders of a machine, and the output of a failed cell.
_BANNED = re.compile(
    r"(?<![\w./])/(?:content|home|mnt|opt|private|root|srv|tmp|usr|Users|var"
    r"|work|workspace)/|\b[A-Z]:\\\w+\\|site-packages|\berror: |Traceback \("
)


def outputs_are_those_of_any_machine(
    repository: Repository,
) -> Iterator[Problem]:
    """Outputs must have no paths of the machine, and no errors."""
    for file in repository.notebooks:
        for number, output in _outputs(file):
            text = "".join(output.get("text", ()))
            found = _BANNED.search(text)
            if (
                output["output_type"] == "error"
                or output.get("name") == "stderr"
            ):
                yield file.problem(
                    1, f"cell {number} ended in an error. {_STORE}"
                )
            elif found:
                yield file.problem(
                    1, f"cell {number} prints {found[0]}. {_STORE}"
                )


def _outputs(file: Notebook) -> Iterator[tuple[int, dict]]:
    for number, cell in file.cells:
        for output in cell["outputs"]:
            yield number, output


def cells_ran_in_order(repository: Repository) -> Iterator[Problem]:
    """The outputs must come from one run from start to end."""
    for file in repository.notebooks:
        for expected, (number, cell) in enumerate(file.cells, 1):
            count = cell["execution_count"]
            if count != expected:
                yield file.problem(
                    1,
                    f"cell {number} has number {count}: expected is "
                    f"{expected}. {_STORE}",
                )


RULES = (outputs_are_those_of_any_machine, cells_ran_in_order)
