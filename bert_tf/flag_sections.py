"""Flags in sections: what `--help` shows together, and when a flag is used.

    _TRAINING = flag_sections.Section("Training", only_with="do_train")
    SEED = _TRAINING.integer("seed", 12345, "Of the data order.", above=-1)

A flag that is given and that the run will not use is told by name: see
`check_used`. Values are checked while flags are read, before anything slow.
"""

import dataclasses
import math
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from absl import flags

# absl then takes a flag for one of the module that calls a section.
flags.disclaim_key_flags()

# Of a path, what the script does with it.
INPUT, OUTPUT = "input", "output"
# What an output is: a file that must be new, a folder that must be, that of a
# run, one that the script itself looks at; or what an input is: a model, beside
# which a run may write.
FILE, NEW_FOLDER, RUN, FOLDER = "file", "new folder", "run", "folder"
MODEL = "model"


@dataclasses.dataclass(frozen=True)
class Condition:
    """Without which a flag is not used.

    Attributes:
        terms: Any of these must hold: the name of a flag that is true or
            given, `!name` of one that is not, or `name=value`.
        is_harmless: Whether a flag that is not used for it is told of only,
            and not refused. Flagfiles, and the original's commands, have
            flags of what is not done this time; but one of another choice
            was meant to change something.
    """

    terms: tuple[str, ...]
    is_harmless: bool


@dataclasses.dataclass(frozen=True)
class About:
    """What is known of a flag beside absl's own.

    Attributes:
        section: Where `--help` shows it.
        kind: What stands for its value in `--help`, such as FILE.
        role: INPUT or OUTPUT for paths, else "".
        holds: What is at a path: FILE, NEW_FOLDER, RUN, MODEL or, where the
            script itself looks at it, "".
        beside: Endings of other files that are written beside a FILE.
        own: Patterns of what is written into a NEW_FOLDER; of a FOLDER names.
        required: Whether a run needs it.
        rare: Whether only `--helpfull` shows it.
        only_with: All of these must hold, or the flag is not used.
    """

    section: str
    kind: str
    role: str = ""
    holds: str = ""
    beside: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    required: bool = False
    rare: bool = False
    only_with: tuple[Condition, ...] = ()


def about(flag: flags.Flag) -> About | None:
    """Returns what is known of a flag; None of flags of other libraries."""
    return _ABOUT.get(flag)


_ABOUT: weakref.WeakKeyDictionary[flags.Flag, About]
_ABOUT = weakref.WeakKeyDictionary()
Holder: TypeAlias = flags.FlagHolder[Any]


# ---- Defining ---------------------------------------------------------------


class Section:
    """Flags that belong together.

    Every method takes the flag's name, its default and its help, and then
    what `About` holds: `required`, `rare` and so on; of `only_with` the terms
    of a condition, which is no harmless one unless `harmless` says so.
    """

    def __init__(
        self,
        title: str,
        only_with: str | Sequence[str] = (),
        harmless: bool = True,
    ):
        """Takes a title.

        Args:
            title: As `--help` shows it.
            only_with: Terms of a condition for all of its flags.
            harmless: Whether it is a harmless one.
        """
        self.title = title
        self._only_with = _condition(only_with, harmless)

    def string(
        self, name: str, default: str | None, text: str, **how: Any
    ) -> Holder:
        """A text, which must not be empty unless it is so by default."""
        parser = flags.ArgumentParser() if default == "" else _Text(name)
        holder = flags.DEFINE(
            parser, name, default, text, serializer=flags.ArgumentSerializer()
        )
        return self._keep(holder, "TEXT", how)

    def boolean(
        self, name: str, default: bool | None, text: str, **how: Any
    ) -> Holder:
        """True or false."""
        holder = flags.DEFINE_bool(name, default, text)
        return self._keep(holder, "", how)

    def integer(
        self,
        name: str,
        default: int | None,
        text: str,
        least: int | None = None,
        most: int | None = None,
        **how: Any,
    ) -> Holder:
        """A whole number between two."""
        parser = _Whole(name, least, most)
        holder = flags.DEFINE(
            parser, name, default, text, serializer=flags.ArgumentSerializer()
        )
        return self._keep(holder, "N", how)

    def number(
        self,
        name: str,
        default: float | None,
        text: str,
        least: float | None = None,
        most: float | None = None,
        above: float | None = None,
        **how: Any,
    ) -> Holder:
        """A finite number between two, or above one."""
        parser = _Number(name, least, most, above)
        holder = flags.DEFINE(
            parser, name, default, text, serializer=flags.ArgumentSerializer()
        )
        return self._keep(holder, "NUMBER", how)

    def number_or(
        self, name: str, default: str | None, word: str, text: str, **how: Any
    ) -> Holder:
        """A finite number, as text, or a word that stands for one."""
        parser = _NumberOr(name, word)
        holder = flags.DEFINE(
            parser, name, default, text, serializer=flags.ArgumentSerializer()
        )
        return self._keep(holder, f"NUMBER|{word}", how)

    def choice(
        self,
        name: str,
        default: str | None,
        allowed: Iterable[str],
        text: str,
        **how: Any,
    ) -> Holder:
        """One of some words."""
        names = tuple(allowed)
        holder = flags.DEFINE(
            _OneOf(name, names),
            name,
            default,
            text,
            serializer=flags.ArgumentSerializer(),
        )
        return self._keep(holder, "|".join(names), how)

    def words(self, name: str, default: Any, text: str, **how: Any) -> Holder:
        """Texts with commas between."""
        holder = flags.DEFINE(
            _Words(name),
            name,
            default,
            text,
            serializer=flags.CsvListSerializer(","),
        )
        return self._keep(holder, "A,B,...", how)

    # ---- Paths --------------------------------------------------------------

    def input_path(self, name: str, text: str, **how: Any) -> Holder:
        """A file or a folder that is read."""
        holder = flags.DEFINE_string(name, None, text)
        return self._keep(holder, "PATH", {"role": INPUT, **how})

    def input_paths(self, name: str, text: str, **how: Any) -> Holder:
        """Files or globs that are read, with commas between."""
        return self._paths(name, text, {"role": INPUT, **how})

    def output_path(self, name: str, text: str, **how: Any) -> Holder:
        """A file or a folder that is written."""
        holder = flags.DEFINE_string(name, None, text)
        return self._keep(holder, "PATH", {"role": OUTPUT, **how})

    def output_paths(self, name: str, text: str, **how: Any) -> Holder:
        """Files that are written, with commas between."""
        return self._paths(name, text, {"role": OUTPUT, **how})

    def _paths(self, name: str, text: str, how: dict[str, Any]) -> Holder:
        holder = flags.DEFINE(
            _Paths(name),
            name,
            None,
            text,
            serializer=flags.CsvListSerializer(","),
        )
        return self._keep(holder, "PATHS", how)

    def _keep(self, holder: Holder, kind: str, how: dict[str, Any]) -> Holder:
        terms = how.pop("only_with", ())
        own = _condition(terms, how.pop("harmless", False))
        _ABOUT[flags.FLAGS[holder.name]] = About(
            self.title,
            only_with=self._only_with + own,
            **{"kind": kind, **how},
        )
        return holder


def _condition(
    terms: str | Sequence[str], is_harmless: bool
) -> tuple[Condition, ...]:
    """Returns the condition that terms make; none if there are none."""
    if not terms:
        return ()
    terms = (terms,) if isinstance(terms, str) else tuple(terms)
    return (Condition(terms, is_harmless),)


# ---- Values -----------------------------------------------------------------


# Of int32: TensorFlow counts with it.
_MOST = 2**31 - 1


class _Parser(flags.ArgumentParser):
    """Reads one value; its errors say what was expected."""

    def __init__(self, name: str, expected: str):
        self._name = name
        self._expected = expected

    def _read(self, text: Any) -> Any:
        raise NotImplementedError

    def parse(self, argument: Any) -> Any:
        try:
            return self._read(argument)
        except ValueError as error:
            more = str(error) if isinstance(error, _RangeError) else ""
            raise ValueError(
                f"--{self._name} must be {self._expected}{more}. "
                f"Received: {self._name}={argument}"
            ) from None


class _RangeError(ValueError):
    """A number is too large, or too near 0, for those of TensorFlow."""


class _Number(_Parser):
    """Reads a finite number."""

    _kind: Callable[[Any], Any] = float
    _called = "a number"

    def __init__(
        self,
        name: str,
        least: float | None,
        most: float | None,
        above: float | None = None,
    ):
        parts = [
            f"{word} {bound if isinstance(bound, int) else f'{bound:g}'}"
            for word, bound in (
                ("above", above),
                ("at least", least),
                ("at most", most),
            )
            if bound is not None
        ]
        bounds = f", {' and '.join(parts)}" if parts else ""
        super().__init__(name, self._called + bounds)
        self._least = -math.inf if least is None else least
        self._most = math.inf if most is None else most
        self._above = -math.inf if above is None else above

    def _read(self, text: Any) -> Any:
        value = type(self)._kind(text)
        is_right = (
            math.isfinite(value)
            and self._least <= value <= self._most
            and self._above < value
        )
        if not is_right:
            raise ValueError
        self._check_range(value)
        return value

    def _check_range(self, value: Any) -> None:
        """Raises _RangeError unless it is a number to TensorFlow."""
        # Of float32; what is nearer to 0 than the least becomes 0.
        if abs(value) > 3.4e38:
            raise _RangeError(", at most 3.4e+38")
        if 0 < abs(value) < 1.2e-38:
            raise _RangeError(", at least 1.2e-38 unless it is 0")


class _Whole(_Number):
    """Reads a whole number."""

    _kind = int
    _called = "a whole number"

    def _check_range(self, value: Any) -> None:
        if abs(value) > _MOST:
            raise _RangeError(f", at most {_MOST}")


class _NumberOr(_Parser):
    """Reads the text of a finite number, or a word."""

    def __init__(self, name: str, word: str):
        super().__init__(name, f"a number or {word}")
        self._word = word

    def _read(self, text: Any) -> Any:
        if text != self._word and not math.isfinite(float(text)):
            raise ValueError
        return text


class _OneOf(_Parser):
    """Reads one of some words."""

    def __init__(self, name: str, allowed: Sequence[str]):
        super().__init__(name, f"one of {', '.join(allowed)}")
        self._allowed = allowed

    def _read(self, text: Any) -> Any:
        if text not in self._allowed:
            raise ValueError
        return text


def _empty(name: str) -> ValueError:
    return ValueError(
        f"--{name} must be given or left out, and it is empty. Is a variable "
        "of the shell not set?"
    )


class _Text(flags.ArgumentParser):
    """Reads a text as it is."""

    def __init__(self, name: str):
        self._name = name

    def parse(self, argument: Any) -> Any:
        if argument == "":
            raise _empty(self._name)
        return argument


class _Words(flags.ListParser):
    """Reads texts with commas between."""

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def parse(self, argument: Any) -> Any:
        if not isinstance(argument, str):
            return super().parse(argument)
        if not argument.strip():
            raise _empty(self._name)
        try:
            return super().parse(argument)
        except ValueError:  # Such as a quote that is not closed.
            raise ValueError(
                f"--{self._name} must be texts with commas between, in one "
                "line; one with a comma in double quotes. "
                f"Received: {self._name}={argument}"
            ) from None


class _Paths(_Words):
    """Reads paths with commas between; of empty ones `output_paths` tells."""

    def parse(self, argument: Any) -> Any:
        if isinstance(argument, str) and not argument.strip():
            return []
        return super().parse(argument)


# ---- Given and not used -----------------------------------------------------


def given(flag: flags.Flag) -> bool:
    """Whether the command line says something else than the default.

    A flags.txt holds all flags, most as they are by default.
    """
    return bool(flag.present) and flag.value != flag.default


def check_used(
    known: flags.FlagValues,
    always: Sequence[str] = (),
    found: Mapping[str, str | None] = types.MappingProxyType({}),
) -> list[str]:
    """Finds flags that are given and that the run will not use.

    Args:
        known: All flags, parsed.
        always: Flags that count as true whatever they are.
        found: Flag -> what the run takes it for, where that is not what the
            command line says; None if it is not known yet.

    Returns:
        A sentence for each condition that does not hold and keeps flags from
        being used, which is harmless.

    Raises:
        ValueError: A flag is given that was meant to change something.
    """
    unused: dict[tuple[str, ...], list[str]] = {}
    refused: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(known):
        flag = known[name]
        own = about(flag)
        if own is None or name != flag.name or not given(flag):
            continue
        for condition in own.only_with:
            terms = condition.terms
            if any(_holds(known, x, always, found) for x in terms):
                continue
            kind = unused if condition.is_harmless else refused
            kind.setdefault(terms, []).append(name)
            break
    if refused:
        raise ValueError(
            " ".join(
                f"{_listed(names)} go{'es' * (len(names) == 1)} "
                f"{_spelt(terms)}: leave {'it' if len(names) == 1 else 'them'} "
                f"out. Received: {_now(known, [*names, *terms], found)}."
                for terms, names in refused.items()
            ).removesuffix(".")
        )
    return [
        f"Not used, as they go {_spelt(terms)}: {_listed(names)}."
        for terms, names in unused.items()
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"--{name}" for name in names)


def _holds(
    known: flags.FlagValues,
    term: str,
    always: Sequence[str],
    found: Mapping[str, str | None],
) -> bool:
    """Whether a term holds; one of a flag that the script lacks does."""
    name, is_value, value = term.lstrip("!").partition("=")
    if name not in known or name in always:
        return True
    now = known[name].value
    if name in found:
        if found[name] is None:
            return True
        now = found[name]
    # Names of tasks are spelled with capitals or without.
    is_so = str(now).casefold() == value.casefold()
    holds = is_so if is_value else bool(now)
    return holds != term.startswith("!")


def _spelt(terms: Sequence[str]) -> str:
    """Returns such as "with --a or --b=c", or "without --d"."""
    texts = [
        f"without --{term[1:]}" if term.startswith("!") else f"with --{term}"
        for term in terms
    ]
    return " or ".join(texts).replace(" or with ", " or ")


def _now(
    known: flags.FlagValues,
    terms: Sequence[str],
    found: Mapping[str, str | None],
) -> str:
    names = dict.fromkeys(x.lstrip("!").partition("=")[0] for x in terms)
    values = {name: found.get(name) or known[name].value for name in names}
    return ", ".join(
        f"{name}={','.join(map(str, x)) if isinstance(x, list) else x}"
        for name, x in values.items()
    )
