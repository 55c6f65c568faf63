"""Checks that documented commands run programs that take their flags.

Each program defines its flags without running and without TensorFlow.
"""

import importlib
import itertools
import re
import runpy
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from tools import isolation
from tools.lint import stand_ins
from tools.lint.problems import File, Problem, Repository

_COMMAND = re.compile(
    r"\b(python3? (?:-m )?|bert-tf )([a-z][\w./]*)(?: ([^\n`\"]*))?"
)
# Subcommands of `bert-tf` that are not scripts.
_SUBCOMMANDS = ("completion", "configs")
_HELP = ("--help", "--helpshort", "--helpfull")
# Each takes more than a tenth of a second to import.
_SLOW = {"keras", "pandas", "scipy", "sklearn", "tensorflow", "torch"}


class Command(NamedTuple):
    """A command in a text.

    Attributes:
        line: The number of its line.
        program: A path from the root, without ".py".
        flags: As a shell passes them, up to the first other word.
    """

    line: int
    program: str
    flags: list[str]


def find(text: str, modules: set[str]) -> Iterator[Command]:
    """Yields the commands of a text that run a script or one of the modules."""
    # "\r" still counts as a line; "#" begins the lines of flagfiles.
    text = re.sub(r"\\\n#?", " \r ", text)
    text = re.sub(r"\$\([^)]*\)", "x", text)  # another command's output
    for match in _COMMAND.finditer(text):
        how, name, rest = match.groups("")
        program = name.removesuffix(".py").replace(".", "/")
        words = shlex.split(rest, comments=True)
        flags = itertools.takewhile(lambda word: word.startswith("-"), words)
        is_script = how == "bert-tf " and program not in _SUBCOMMANDS
        if is_script or name.endswith(".py") or program in modules:
            before = text[: match.start()]
            line = before.count("\n") + before.count("\r") + 1
            yield Command(
                line, program, [re.sub(r"\$\w+", "x", f) for f in flags]
            )


class _FlagsAreDefinedError(Exception):
    """Raised where a program would parse its flags."""


def _stop(*_, **__):
    raise _FlagsAreDefinedError


def _define_flags(program: File) -> None:
    """Defines the flags of a program in this process."""
    from bert_tf.flags import command_line

    from absl import app

    app.run = command_line.run = command_line.start = _stop
    path = str(program.root / program.path)
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except _FlagsAreDefinedError:
        return
    raise ValueError("it ends before it reads them")


def _parse(words: list[str]) -> str:
    """Parses flags; returns absl's error message, or ""."""
    from absl import flags
    from absl.testing import flagsaver

    with flagsaver.flagsaver():
        try:
            flags.FLAGS([sys.argv[0], *(x for x in words if x not in _HELP)])
        except (flags.Error, UnicodeDecodeError) as error:
            return " ".join(str(error).split())
    return ""


def _check_flags(program: File, modules: Set[str]) -> Iterator[Problem]:
    """Yields the problems of a script's flags and of the modules it imports."""
    from bert_tf.flags import flag_sections

    from absl import flags

    for flag in flags.FLAGS.get_key_flags_for_module(sys.argv[0]):
        if flag_sections.find_about(flag) is None:
            yield program.problem(
                1,
                f"--{flag.name} is in no section of --help. Define it with a "
                "method of bert_tf.flags.flag_sections.Section.",
            )
    slow = sorted(_SLOW & modules)
    if slow:
        yield program.problem(
            1,
            f"imports {', '.join(slow)} before it parses its flags, so --help "
            "takes seconds. Import it after command_line.start.",
        )


def _check_program(
    program: File, commands: list[tuple[File, Command]]
) -> list[Problem]:
    """Checks a program's flags and commands."""
    before = set(sys.modules)
    try:
        _define_flags(program)
    except Exception as error:
        return [program.problem(1, f"can't define its flags: {error!r}.")]
    problems: list[Problem] = []
    if _is_script(program):
        problems += _check_flags(program, sys.modules.keys() - before)
    for file, command in commands:
        wrong = _parse(command.flags) if command.flags else ""
        if wrong:
            problems.append(
                file.problem(
                    command.line,
                    f"correct this command of {program.path}, whose flags are "
                    f"shown by --help: {wrong}",
                )
            )
    return problems


def _check_flagfiles(
    repository: Repository, found: Mapping[File, list[Command]]
) -> Iterator[Problem]:
    """Yields the flagfiles that no command in their comments reads."""
    texts = [file.text for file in repository.flagfiles]
    for file in repository.flagfiles:
        flag = f"--flagfile={file.path}"
        own = [x for x in found[file] if flag in x.flags]
        is_included = any(f"\n{flag}\n" in text for text in texts)
        if len(own) != 1 and not (is_included and not own):
            yield file.problem(
                1,
                f"{len(own)} commands in its comments read it: expected is "
                f"one. Write `# python SCRIPT.py {flag} ...` once.",
            )


def check(repository: Repository) -> tuple[int, list[Problem]]:
    """Returns the number of checked commands, and the problems."""
    programs = {file.stem: file for file in repository.flag_readers}
    problems: list[Problem] = []
    found: dict[File, list[Command]] = {}
    work: dict[str, list[tuple[File, Command]]] = defaultdict(list)
    for file in repository.sources:
        found[file] = list(find(file.text, set(programs)))
        # Files that a page asks its reader to write.
        written = re.findall(r'title="([\w/]+)\.py"', file.text)
        for command in found[file]:
            path = f"{command.program}.py"
            if command.program in programs:
                work[command.program].append((file, command))
            elif not (
                (repository.root / path).exists() or command.program in written
            ):
                problems.append(
                    file.problem(
                        command.line,
                        f"there is no program {path}. Correct the command.",
                    )
                )
    problems += _check_flagfiles(repository, found)
    # All programs import it, once.
    importlib.import_module("bert_tf.flags.command_line")
    problems += _check_programs(programs, work)
    return sum(map(len, work.values())), problems


def _is_script(program: File) -> bool:
    return "/" not in program.path


def _check_programs(
    programs: Mapping[str, File],
    work: Mapping[str, list[tuple[File, Command]]],
) -> Iterator[Problem]:
    """Yields the problems of the programs and of the commands that run them."""
    packages = {file.path.partition("/")[0] for file in programs.values()}
    packages.add("bert_tf")

    def check(files: Iterable[File]) -> Iterator[Problem]:
        for file in files:
            with isolation.isolated(*packages):
                yield from _check_program(file, work[file.stem])

    scripts = [file for file in programs.values() if _is_script(file)]
    yield from check(scripts)
    # The others import what is slow before they define their flags.
    stand_ins.install()
    yield from check(x for x in programs.values() if x not in scripts)
