r"""Parses tables of cases: invalid commands, and the errors they produce.

    @good: run_ner --check_only --lr=1        the script, with --check_only if
                                                it has it, and a right command
    @train: --train_file={data}/$             flags that several cases share
    a page: @train=page.tsv --labels=a,b      a name, and what differs from the
      {data}/page.tsv, line 1: no label         good command; then the error
    none: @train=none => There is no file     both in one line
    rate 0: --rate=0                          cases with the same error
    rate nan: --rate=nan
      --rate must be a number, above 0
    model $: @model=$                         cases that differ in one word,
      cut_data => corrupt or not all there      which stands for each `$`
      cut_index => block checksum mismatch
    === Wrong, exhaustive                     more wrong cases, for releases
    rate 2: --rate=2 => at most 1
    === Right                                 commands that are right, and what
    no rate: !rate => a rate of 1               is logged

A case has words as in a shell: `--name=value`, `!name` for an omitted flag,
`NAME=value` for an environment variable; anything else, and everything after
`--`, is an argument. In quotes a value may have `\n`, `\udce9` and `<x*300>`. A
line that ends with a backslash continues on the next line.
"""

import collections
import dataclasses
import functools
import pathlib
import re
import shlex
import zlib
from collections.abc import Iterator

from tests.bad_inputs import damaged, matrix, trained

_SECTION = re.compile("=== (Right|Wrong)(, exhaustive)?")
_FOLDER = pathlib.Path(__file__).resolve().parent
DAMAGED = {*damaged.CONFIGS, *damaged.VOCABS, *damaged.MODELS, *trained.SAVED}


def read(
    name: str,
) -> tuple[matrix.Script, dict[str, matrix.Case], dict[str, matrix.Case]]:
    """Returns a script, its invalid cases and its valid ones, by name.

    Args:
        name: Name of a text file in this folder, without extension.
    """
    table = _Table(f"{name}.txt")
    table.read()
    good = table.case(["@good"], "")
    script, *more = good.arguments
    flags = {x: y for x, y in good.flags.items() if y is not None}
    has_check_only = more == ["--check_only"]
    return (
        matrix.Script(script, flags, has_check_only),
        table.wrong,
        table.right,
    )


class _Table:
    """A file of cases, parsed line by line."""

    def __init__(self, name: str):
        self._name = name
        self.wrong: dict[str, matrix.Case] = {}
        self.right: dict[str, matrix.Case] = {}
        self._found = self.wrong
        self._is_exhaustive = False
        self._number = 0
        self._groups: dict[str, list[str]] = {}
        self._open: list[tuple[str, list[str]]] = []  # without an error so far
        self._said: list[str] = []  # the lines of their error so far

    def read(self) -> None:
        """Parses the whole file."""
        for number, line in self._lines():
            is_error = line.startswith("  ")
            if not is_error:
                self._close()
            self._number = number
            if is_error:
                self._take_indented(line.strip())
            elif section := _SECTION.fullmatch(line):
                self._found = vars(self)[section[1].lower()]
                self._is_exhaustive = section[2] is not None
            else:
                self._take(line)
        self._close()
        if self._open:
            raise self._error(f"{self._open[-1][0]!r} has no error")

    def _lines(self) -> Iterator[tuple[int, str]]:
        text = (_FOLDER / self._name).read_text(encoding="utf-8")
        before, first = "", 0
        for number, line in enumerate(text.splitlines(), 1):
            if before:
                line = before + line.strip()
            elif not line.strip() or line.startswith("#"):
                continue
            else:
                first = number
            before = line[:-1] if line.endswith("\\") else ""
            if not before:
                yield first, line

    def _take(self, line: str) -> None:
        name, colon, rest = line.partition(":")
        if not colon or (rest and not rest.startswith(" ")):
            raise self._error("expected `name: flags`")
        rest, arrow, said = f"{rest} ".partition(" => ")
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise self._error(str(error)) from None
        if name.startswith("@"):
            self._groups[name] = words
            return
        self._open.append((name, words))
        if arrow:
            self._said = [said.strip()]
            self._close()

    def _take_indented(self, line: str) -> None:
        if not self._open:
            raise self._error("an error without a case")
        name, words = self._open[-1]
        if "$" not in name:
            self._said.append(line)
            return
        value, arrow, said = line.partition(" => ")
        if not arrow or len(self._open) > 1:
            raise self._error("expected `word => error`")
        words = [word.replace("$", value) for word in words]
        self._add(name.replace("$", value), words, said.strip())

    def _close(self) -> None:
        """Adds the cases that wait for their error, if it is complete."""
        if self._open and "$" in self._open[-1][0]:
            self._open.clear()
        elif self._said:
            for name, words in self._open:
                self._add(name, words, " ".join(self._said))
            self._open.clear()
        self._said = []

    def _add(self, name: str, words: list[str], line: str) -> None:
        if name in self._found:
            raise self._error(f"there are two cases {name!r}")
        stem = self._name.removesuffix(".txt")
        turns = [
            _turns()[x] for x in names_of(" ".join(words)) if x in _turns()
        ]
        is_other_turn = self._found is self.wrong and stem not in (
            turns or [stem]
        )
        self._found[name] = dataclasses.replace(
            self.case(words, line),
            is_exhaustive=self._is_exhaustive or is_other_turn,
        )

    def case(self, words: list[str], line: str) -> matrix.Case:
        """Returns the case for some words."""
        flags: dict[str, str | None] = {}
        environment: dict[str, str] = {}
        arguments: list[str] = []
        rest = iter(self._expanded(words))
        for word in rest:
            flag = re.fullmatch(r"--(\w+)=(.*)", word, re.DOTALL)
            variable = re.fullmatch(r"([A-Z_]+)=(.*)", word, re.DOTALL)
            if word == "--":
                arguments.extend(rest)
            elif flag:
                flags[flag[1]] = flag[2]
            elif variable:
                environment[variable[1]] = variable[2]
            elif word.startswith("!"):
                flags[word[1:]] = None
            else:
                arguments.append(word)
        return matrix.Case(flags, line, environment, arguments=tuple(arguments))

    def _expanded(self, words: list[str]) -> Iterator[str]:
        for word in words:
            if not word.startswith("@"):
                yield _decoded(word)
                continue
            name, _, value = word.partition("=")
            if name not in self._groups:
                raise self._error(f"no group {name} above")
            yield from self._expanded(
                [each.replace("$", value) for each in self._groups[name]]
            )

    def _error(self, problem: str) -> ValueError:
        return ValueError(f"{self._name}:{self._number}: {problem}")


def names_of(text: str) -> set[str]:
    """Returns the words of a text, such as names of damaged models."""
    return {*re.findall(r"\w+", text)}


@functools.cache
def _turns() -> dict[str, str]:
    """Returns damaged model -> the table whose case for it runs in CI.

    It is one of the tables that have one: all scripts open models with the same
    code.
    """
    users: dict[str, list[str]] = collections.defaultdict(list)
    for path in sorted(_FOLDER.glob("*.txt")):
        for name in names_of(path.read_text("utf-8")) & DAMAGED:
            users[name].append(path.stem)
    return {x: y[zlib.crc32(x.encode()) % len(y)] for x, y in users.items()}


def _decoded(word: str) -> str:
    word = word.replace("\\n", "\n")
    word = re.sub(r"\\u([0-9a-f]{4})", lambda x: chr(int(x[1], 16)), word)
    return re.sub(r"<(.)\*(\d+)>", lambda x: x[1] * int(x[2]), word)
