"""Cases derived from the definition of a flag: values, paths, conditions.

Expected errors are composed from the definition: the kind of a flag, its
bounds, its path type and its conditions.
"""

import math
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from bert_tf import options
from bert_tf.flags import flag_sections, flag_values

from absl import flags

_LARGEST = 2**31 - 1
_IS_EMPTY = "is empty. Is a variable of the shell not set?"
_MUST_BE = {
    flag_sections.FILE: "name a file, and this is a folder",
    flag_sections.NEW_FOLDER: "be a new folder, and this is a file",
    flag_sections.RUN: "be a folder, and this is a file",
    flag_sections.FOLDER: "be a folder, and this is a file",
}


class FlagCase(NamedTuple):
    """A command line, and its error line: the start and other parts."""

    words: list[str]
    line: tuple[str, ...]
    is_refused: bool = True

    def is_met(self, code: int, said: str) -> bool:
        """Whether an exit code and a log are as expected."""
        said = re.sub(r"\n {9}(?! )", " ", said)  # Joins wrapped lines.
        begins = said.startswith("error: " + self.line[0])
        one_line = begins and said.count("\n") == 1
        as_expected = one_line if self.is_refused else code == 0
        found = all(part in said for part in self.line)
        return as_expected and found and code == int(self.is_refused)


def about(flag: flags.Flag) -> flag_sections.About:
    """Returns the properties of one of our flags."""
    known = flag_sections.find_about(flag)
    assert known is not None
    return known


class ScriptFlags:
    """The flags of a script, and the cases derived from them.

    Args:
        known: Flags of the script.
        ignored: Flags whose conditions hold whatever their values.
        folder: Has a `file`, a `folder` with a file, and `dangling`, a link.
    """

    def __init__(
        self,
        known: Mapping[str, flags.Flag],
        ignored: Collection[str],
        folder: pathlib.Path,
    ):
        self._known = known
        self._ignored = ignored
        self._folder = folder
        self._needed = {
            name: self._other(name)
            for name, flag in known.items()
            if about(flag).required
        }

    def cases(self) -> Iterator[FlagCase]:
        """Yields all cases."""
        no_flag = ("Only flags are expected, as --name=value. Received: 'x'",)
        yield FlagCase([*self._words({}), "x"], no_flag)
        yield FlagCase(["--qqqqq=1"], ("There is no flag --qqqqq. python ",))
        # One flag: absl takes long to look for names that are alike.
        last = [*self._known][-1]
        near = f"There is no flag --{last}q. Did you mean --{last}?"
        yield FlagCase([f"--{last}q=1"], (near,))
        for name, flag in self._known.items():
            for value, line in _values(flag, str(self._folder)):
                yield FlagCase([f"--{name}={value}"], (line,))
            if about(flag).required:
                rest = {x: y for x, y in self._needed.items() if x != name}
                first = flag.help.partition(". ")[0].rstrip(".")
                line = f"Give --{name} ({first}). python "
                yield FlagCase(_as_words(rest), (line,))
            if about(flag).role == flag_sections.OUTPUT:
                yield from self._outputs(name)
            for condition in about(flag).only_with:
                yield from self._unused(name, condition)

    def _words(self, given: Mapping[str, str]) -> list[str]:
        return _as_words({**self._needed, **given})

    def _outputs(self, name: str) -> Iterator[FlagCase]:
        """Yields invalid paths for an output."""
        folder, holds = self._folder, about(self._known[name]).holds
        other = "folder" if holds == flag_sections.FILE else "file"
        given: dict[str, str] = {}
        for condition in about(self._known[name]).only_with:
            self._fulfil(condition, given)
        for path, problem in (
            (f"{folder}/file/x", f"can't be made: {folder}/file is no folder."),
            (
                f"{folder}/dangling",
                f"can't be made: {folder}/dangling is a link to what is not",
            ),
            (f"{folder}/{'x' * 300}", "can't be made: a name has at most "),
            (
                f"{folder}/{other}",
                f"must {_MUST_BE[holds]}. Received: {name}=" if holds else "",
            ),
        ):
            if problem:
                words = self._words({**given, name: path})
                yield FlagCase(words, (f"--{name} {problem}",))

    # ---- Conditions ---------------------------------------------------------

    def _unused(
        self, name: str, failing: flag_sections.Condition
    ) -> Iterator[FlagCase]:
        """Yields a flag whose conditions all hold but one."""
        given = {name: self._other(name)}
        for condition in about(self._known[name]).only_with:
            if condition == failing:
                break
            self._fulfil(condition, given)
        terms = self._terms(failing)
        for term in terms:
            if term.startswith("!"):
                given[term[1:]] = self._other(term[1:], terms)
        if not terms or any(self._holds(term, given) for term in terms):
            return
        spelt = " or ".join(
            f"without --{x[1:]}" if x.startswith("!") else f"with --{x}"
            for x in terms
        ).replace(" or with ", " or ")
        line: tuple[str, ...] = ("--", f"--{name}", f" {spelt}: leave ")
        if failing.is_harmless:
            line = (f"Not used, as they go {spelt}: --", f"--{name}")
        yield FlagCase(self._words(given), line, not failing.is_harmless)

    def _fulfil(
        self, condition: flag_sections.Condition, given: dict[str, str]
    ) -> None:
        """Sets the flags that a condition needs, recursively."""
        terms = self._terms(condition)
        if not terms or any(self._holds(term, given) for term in terms):
            return
        name, _, value = terms[0].partition("=")
        given[name] = value or self._other(name)
        for each in about(self._known[name]).only_with:
            self._fulfil(each, given)

    def _terms(self, condition: flag_sections.Condition) -> list[str]:
        """Returns the terms of flags that the script has."""
        names = {x: x.lstrip("!").partition("=")[0] for x in condition.terms}
        return [term for term, name in names.items() if name in self._known]

    def _holds(self, term: str, given: Mapping[str, str]) -> bool:
        name, is_value, value = term.lstrip("!").partition("=")
        if name in self._ignored:
            return True
        now = given.get(name, self._needed.get(name, self._known[name].default))
        if is_value:
            return str(now).casefold() == value.casefold()
        return (now not in (None, False, "", 0, "false")) != (term[0] == "!")

    def _other(self, name: str, terms: Collection[str] = ()) -> str:
        """Returns a valid value, neither the default nor a term's value."""
        flag = self._known[name]
        parser, bounds = flag.parser, vars(flag.parser)
        if isinstance(parser, flag_values.Number):
            limits = bounds["_bounds"]
            least = max(1, limits.min or 0)
            tried = [least, least + 1]
            if not isinstance(parser, flag_values.Whole):
                tried += [0.5, 0.1]
            return next(
                str(x) for x in tried if limits.allow(x) and x != flag.default
            )
        if isinstance(parser, flags.BooleanParser):
            return "false" if flag.default else "true"
        if isinstance(parser, flag_values.OneOf):
            taken = (flag.default, *(x.rpartition("=")[2] for x in terms))
            return next(x for x in bounds["_allowed"] if x not in taken)
        path = str(self._folder / "new" / name)
        return path if about(flag).role else "1.5"


def _as_words(given: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in given.items()]


# ---- Values -----------------------------------------------------------------


def _values(flag: flags.Flag, folder: str) -> Iterator[tuple[Any, str]]:
    """Yields invalid values of a flag, and the start of the error."""
    name, parser = flag.name, flag.parser
    empty = f"--{name} must be given or left out, and it {_IS_EMPTY}"
    if about(flag).role:
        yield from _paths(flag, folder)
    elif isinstance(parser, flag_values.Words):
        yield "", empty
        yield " ", empty
    elif isinstance(parser, flag_values.Text):
        yield "", empty
        if not isinstance(parser, flag_values.Spaced):
            yield "a\nb", f"--{name} must be in one line. Received: {name}='a"
    if isinstance(parser, flag_values.Words):
        lists = f"--{name} must be texts with commas between, in one line;"
        yield "a\nb", lists
        yield '"a', lists
    expected = ""
    given: tuple[str, ...] = ("", "none of them", "nan", "-inf")
    if isinstance(parser, flag_values.Number):
        yield from _numbers(
            name,
            vars(parser)["_bounds"],
            isinstance(parser, flag_values.Whole),
        )
    elif isinstance(parser, flags.BooleanParser):
        expected, given = "true or false", ("", "maybe", "2", "tru")
    elif isinstance(parser, flag_values.NumberOr):
        expected = f"a number or {vars(parser)['_word']}"
    elif isinstance(parser, flag_values.OneOf):
        expected = f"one of {', '.join(vars(parser)['_allowed'])}"
        word = vars(parser)["_allowed"][0]
        given = ("", "none of them", f"{word} ", word.swapcase())
    if expected:
        for value in given:
            yield value, _must(name, expected, value)


def _numbers(
    name: str, known: options.Bounds, is_whole: bool
) -> Iterator[tuple[Any, str]]:
    above, least, most = (
        free if bound is None else bound
        for bound, free in (
            (known.above, -math.inf),
            (known.min, -math.inf),
            (known.max, math.inf),
        )
    )
    bounds = " and ".join(
        f"{word} {bound if isinstance(bound, int) else f'{bound:g}'}"
        for word, bound in (
            ("above", above),
            ("at least", least),
            ("at most", most),
        )
        if math.isfinite(bound)
    )
    expected = "a whole number" if is_whole else "a number"
    expected += f", {bounds}" * bool(bounds)
    for value in ("x", "", "nan", "inf", "-inf", "1,5"):
        yield value, _must(name, expected, value)
    for value in ("1.5", "1e3") if is_whole else ():
        yield value, _must(name, expected, value)
    for outside in (least - 1, above, above - 1, most + 1):
        if math.isfinite(outside):
            yield outside, _must(name, expected, outside)
    large, largest = (2**63, _LARGEST) if is_whole else ("1e39", "3.4e+38")
    if most == math.inf:
        yield large, _must(name, f"{expected}, at most {largest}", large)
    if not is_whole and least <= 1e-39 <= most and above < 1e-39:
        small = f"{expected}, at least 1.2e-38 unless it is 0"
        yield "1e-39", _must(name, small, "1e-39")


def _must(name: str, expected: str, value: Any) -> str:
    return f"--{name} must be {expected}. Received: {name}={value}".rstrip()


def _paths(flag: flags.Flag, folder: str) -> Iterator[tuple[str, str]]:
    name, own = flag.name, about(flag)
    yield "", f"--{name} {_IS_EMPTY} Give a path, or leave the flag out."
    yield " ", f"--{name} {_IS_EMPTY} Give a path, or leave the flag out."
    yield f"{folder}/\udce9", f"--{name} is no UTF-8 text, and TensorFlow"
    if isinstance(flag.parser, flag_values.Paths):
        yield "a,,b", f"--{name} has a comma too many, or a variable of the"
    else:
        yield "a\nb", f"--{name} holds a line end, which flags.txt can't keep."
    if own.holds != flag_sections.MODEL:
        yield "foo://x", "There is no file system foo:// here. Give a local"
