"""Rules about code: scripts, flags, and where tests are."""

import ast
import functools
import re
from collections.abc import Iterable, Iterator

from tools.lint.problems import File, Problem, Repository

# The packages that may read flags.
_KNOW_FLAGS = ("bert_tf/flags/", "bert_tf/setup/")
# Folders of tests that are not about a folder of bert_tf.
_OTHER_TESTS = {"bad_inputs", "commands", "parity", "tools"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAIN = "if __name__ == '__main__':\n    command_line.run(main)"


@functools.cache
def imports(file: File) -> list[tuple[int, str]]:
    """Returns the line and the dotted name of each import, at any depth."""
    found = []
    for node in file.nodes:
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, name) for name in names]
    return found


def nobody_imports_a_script(repository: Repository) -> Iterator[Problem]:
    """Scripts are only run; shared code must be in the package."""
    names = {file.stem for file in repository.scripts}
    files = [*repository.package, *repository.scripts, *repository.examples]
    for file in files:
        for line, name in imports(file):
            if name.partition(".")[0] in names:
                yield file.problem(
                    line,
                    f"imports the script {name.partition('.')[0]}: expected "
                    "is an import of bert_tf. Move the shared code there.",
                )


def scripts_leave_tensorflow_text_alone(
    repository: Repository,
) -> Iterator[Problem]:
    """Scripts must not import tensorflow_text; nor may most of the package."""
    for file in repository.scripts:
        for line, name in imports(file):
            if name.partition(".")[0] == "tensorflow_text":
                yield file.problem(
                    line,
                    "imports tensorflow_text: only bert_tf/text may. Import "
                    "bert_tf.text.text_graph instead.",
                )


def library_knows_no_flags(repository: Repository) -> Iterator[Problem]:
    """Only the scripts' `main`, flags and setup may use flags."""
    for file in repository.package:
        if file.path.startswith(_KNOW_FLAGS):
            continue
        lines = {line for line, name in imports(file) if "absl.flags" in name}
        lines |= {
            node.lineno
            for node in file.nodes
            if isinstance(node, ast.Name) and node.id == "FLAGS"
        }
        for line in lines:
            yield file.problem(
                line,
                "uses absl's flags: only bert_tf/flags and bert_tf/setup may. "
                "Take the value as an argument.",
            )


def _flag_reads(nodes: Iterable[ast.stmt]) -> Iterator[int]:
    """Yields the lines that read `_FLAG.value` or `run_flags.FLAG.value`."""
    for statement in nodes:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node.attr == "value":
                of = node.value
                holder = getattr(of, "attr", "") or getattr(of, "id", "")
                if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", str(holder)):
                    yield node.lineno


def no_flag_is_read_at_import(repository: Repository) -> Iterator[Problem]:
    """Flags have values only after the command line is parsed."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    for file in repository.scripts:
        body = [x for x in file.tree.body if not isinstance(x, definitions)]
        for line in _flag_reads(body):
            yield file.problem(
                line,
                "reads a flag outside of a function, before the command line "
                "is parsed. Read it in a function.",
            )


def scripts_end_with_main(repository: Repository) -> Iterator[Problem]:
    """Scripts must do nothing when they are imported."""
    for file in repository.scripts:
        body = file.tree.body
        names = [x.name for x in body if isinstance(x, ast.FunctionDef)]
        if names[-1:] != ["main"] or ast.unparse(body[-1]) != _MAIN:
            yield file.problem(
                body[-1].lineno if body else 1,
                "a script ends with `def main(_)` and `if __name__ == "
                '"__main__": command_line.run(main)`. Add them.',
            )


def test_folders_are_those_of_the_package(
    repository: Repository,
) -> Iterator[Problem]:
    """The tests of a folder of bert_tf are in a folder of that name."""
    names = {file.path.split("/")[1] for file in repository.package}
    for file in repository.files("tests/*/**/*.py"):
        folder = file.path.split("/")[1]
        if folder not in names | _OTHER_TESTS:
            yield file.problem(
                1,
                f"tests/{folder} has no folder bert_tf/{folder} to test. "
                "Rename it, or add it to _OTHER_TESTS in tools/lint/code.py.",
            )


def _functions(node: ast.AST, outer: str = "") -> Iterator[str]:
    """Yields the functions and classes of a module, as `outer.inner`."""
    for child in ast.iter_child_nodes(node):
        name = outer
        if isinstance(child, _DEFINITIONS):
            name = f"{outer}.{child.name}".lstrip(".")
            yield name
        yield from _functions(child, name)


def mutants_have_code_and_tests(repository: Repository) -> Iterator[Problem]:
    """The modules, tests and functions that `make mutants` lists exist."""
    targets = File(repository.root, "tools/mutants/targets.py")
    chosen = File(repository.root, "tools/mutants/chosen.txt")
    modules = {file.stem: file for file in repository.package}
    functions: dict[str, set[str]] = {}
    for call in targets.nodes:
        if not isinstance(call, ast.Call) or not call.args:
            continue  # TARGETS has nothing but calls of Target
        module, tests, _ = map(ast.literal_eval, call.args)
        file = modules.get(f"bert_tf/{module}")
        if module in functions:
            yield targets.problem(
                call.lineno, f"lists {module} twice. Join both entries."
            )
        functions[module] = set()
        if file:
            functions[module] = {"module", *_functions(file.tree)}
        else:
            yield targets.problem(
                call.lineno,
                f"there is no bert_tf/{module}.py. Name the module that has "
                "its code now, here and in chosen.txt.",
            )
        for pattern in tests:
            if not repository.files(f"tests/{pattern}"):
                yield targets.problem(
                    call.lineno,
                    f"no file matches tests/{pattern}. Name the tests of "
                    f"{module}.",
                )
    for line, match in chosen.find("^([^:\n]+):([^:\n]+):"):
        module, function = match.groups()
        if module not in functions:
            yield chosen.problem(
                line,
                f"targets.py lists no tests for {module}. Add them, or name "
                "the module that has its code now.",
            )
        elif functions[module] and function not in functions[module]:
            yield chosen.problem(
                line,
                f"bert_tf/{module}.py has no {function}. Name the function "
                "that has its code now, or run `python -m tools.mutants "
                "--choose` to choose another.",
            )


RULES = (
    nobody_imports_a_script,
    scripts_leave_tensorflow_text_alone,
    library_knows_no_flags,
    no_flag_is_read_at_import,
    scripts_end_with_main,
    test_folders_are_those_of_the_package,
    mutants_have_code_and_tests,
)
