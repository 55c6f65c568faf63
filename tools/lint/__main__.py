"""Checks the repository's text and structure, without TensorFlow.

    python -m tools.lint

Prints a line for each problem and ends with exit code 1 if there are any.
Imports between the folders of bert_tf are in setup.cfg, [importlinter].
"""

import gc
import pathlib
import sys

from tools.lint import (
    architecture,
    code,
    commands,
    documents,
    english,
    names,
    notebooks,
    packaging,
)
from tools.lint.problems import Repository

_RULES = (
    *architecture.RULES,
    *code.RULES,
    *names.RULES,
    *documents.RULES,
    *english.RULES,
    *notebooks.RULES,
    *packaging.RULES,
)


def main() -> int:
    """Runs all rules; returns the exit code."""
    gc.disable()  # nothing but trees, which are all kept
    root = pathlib.Path(__file__).resolve().parents[2]
    repository = Repository(root)
    problems = {x for rule in _RULES for x in rule(repository)}
    checked, wrong = commands.check(repository)
    problems.update(wrong)
    for problem in sorted(problems):
        print(problem)
    print(f"{checked} commands checked, {len(problems)} problems found.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
