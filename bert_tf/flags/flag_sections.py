"""Sections of flags: groups for `--help`, with conditions of use.

    _TRAINING = flag_sections.Section("Training", only_with="do_train")
    SEED = _TRAINING.integer("seed", 12345, "Seed of the data order.", min=0)

`check_used` reports flags that are set but not used by the run. Values are
validated while flags are parsed, before anything slow.
"""

import dataclasses
import types
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.flags import flag_values

from absl import flags

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Makes absl attribute flags to the module that calls a section.
flags.disclaim_key_flags()

# Whether the script reads or writes a path.
INPUT, OUTPUT = "input", "output"
# Kinds of outputs: a new file, a new folder, the folder of a run, or a folder
# that the script itself checks. Kind of inputs: a model, whose folder a run may
# also write to.
FILE, NEW_FOLDER, RUN, FOLDER = "file", "new folder", "run", "folder"
MODEL = "model"


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition under which a flag takes effect.

    Attributes:
        terms: At least one of these must hold: the name of a flag that is true
            or set, `!name` for a flag that is not, or `name=value`. Terms of
            flags that the script lacks do not count; a condition that has no
            other terms holds.
        is_harmless: Whether a flag that has no effect is only logged, not
            rejected. Flagfiles, and commands of the original, have flags of
            actions that are not requested this time. In contrast, a flag of an
            alternative choice was meant to change something.
    """

    terms: tuple[str, ...]
    is_harmless: bool


@dataclasses.dataclass(frozen=True)
class About:
    """Properties of a flag in addition to absl's.

    Attributes:
        section: Section of `--help`.
        kind: Placeholder of its value in `--help`, such as FILE.
        role: INPUT or OUTPUT for paths, else "".
        holds: What a path refers to: FILE, NEW_FOLDER, RUN, MODEL or, if the
            script itself checks it, "".
        `beside`: Extensions of other files that are written next to a FILE.
        own: Patterns of files written into a NEW_FOLDER; names for a FOLDER.
        required: Whether a run needs it.
        rare: Whether only `--helpfull` shows it.
        alias: The flag that it is another name of, or "".
        wins: Whether an alias counts if a command has both names.
        only_with: Conditions that must all hold, or the flag has no effect.
    """

    section: str
    kind: str
    role: str = ""
    holds: str = ""
    beside: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    required: bool = False
    rare: bool = False
    alias: str = ""
    wins: bool = False
    only_with: tuple[Condition, ...] = ()


def find_about(flag: flags.Flag) -> About | None:
    """Returns a flag's properties; None for flags of other libraries."""
    return _ABOUT.get(flag)


_ABOUT: weakref.WeakKeyDictionary[flags.Flag, About]
_ABOUT = weakref.WeakKeyDictionary()
Holder: TypeAlias = flags.FlagHolder[Any]
# How flags are written to flags.txt.
_PLAIN: flags.ArgumentSerializer[Any] = flags.ArgumentSerializer()
_CSV = flags.CsvListSerializer(",")


# ---- Defining ---------------------------------------------------------------


class Section:
    """A group of flags.

    Every method takes the flag's name, its default and its help, followed by
    fields of `About`, such as `required` or `rare`. `only_with` takes the terms
    of a condition, which is harmless only if `harmless` is set.
    """

    def __init__(
        self,
        title: str,
        only_with: str | Sequence[str] = (),
        harmless: bool = True,
    ):
        """Creates a section.

        Args:
            title: Title in `--help`.
            only_with: Terms of a condition for all of its flags.
            harmless: Whether this condition is harmless.
        """
        self.title = title
        self._only_with = _condition(only_with, harmless)

    def string(
        self, name: str, default: str | None, text: str, **how: Any
    ) -> Holder:
        """Defines a text flag; it must not be empty unless the default is."""
        parser = (
            flags.ArgumentParser() if default == "" else flag_values.Text(name)
        )
        return self._define(parser, name, default, text, "TEXT", how)

    def spaced(self, name: str, default: str, text: str, **how: Any) -> Holder:
        """Defines a text flag of parts with blanks or line ends between."""
        parser = flag_values.Spaced(name)
        return self._define(parser, name, default, text, "TEXT", how)

    def boolean(
        self, name: str, default: bool | None, text: str, **how: Any
    ) -> Holder:
        """Defines a boolean flag."""
        holder = flags.DEFINE_bool(name, default, text)
        return self._keep(holder, "", how)

    def integer(
        self,
        name: str,
        default: int | None,
        text: str,
        min: int | None = None,
        max: int | None = None,
        **how: Any,
    ) -> Holder:
        """Defines an integer flag with optional bounds."""
        parser = flag_values.Whole(name, options.Bounds(min, max))
        return self._define(parser, name, default, text, "N", how)

    def number(
        self,
        name: str,
        default: float | None,
        text: str,
        min: float | None = None,
        max: float | None = None,
        above: float | None = None,
        **how: Any,
    ) -> Holder:
        """Defines a flag with a finite number, with optional bounds."""
        bounds = options.Bounds(min, max, above)
        parser = flag_values.Number(name, bounds)
        return self._define(parser, name, default, text, "NUMBER", how)

    def number_or(
        self, name: str, default: str | None, word: str, text: str, **how: Any
    ) -> Holder:
        """Defines a flag with a finite number, as text, or a special word."""
        parser = flag_values.NumberOr(name, word)
        return self._define(parser, name, default, text, f"NUMBER|{word}", how)

    def choice(
        self,
        name: str,
        default: str | None,
        allowed: Iterable[str],
        text: str,
        **how: Any,
    ) -> Holder:
        """Defines a flag with a choice of words."""
        names = tuple(allowed)
        parser = flag_values.OneOf(name, names)
        return self._define(parser, name, default, text, "|".join(names), how)

    def words(self, name: str, default: Any, text: str, **how: Any) -> Holder:
        """Defines a flag with a comma-separated list of texts."""
        parser = flag_values.Words(name)
        return self._define(parser, name, default, text, "A,B,...", how, _CSV)

    def alias(self, name: str, holder: Holder, wins: bool = False) -> Holder:
        """Defines another name of a flag, with the same conditions.

        A command with different values for the two is an error, unless the
        alias `wins`.
        """
        kind = _ABOUT[flags.FLAGS[holder.name]].kind
        alias = flags.DEFINE_alias(name, holder.name)
        return self._keep(alias, kind, {"alias": holder.name, "wins": wins})

    # ---- Dataclasses --------------------------------------------------------

    def define(
        self, options_class: type[options.Options], *names: str, **how: Any
    ) -> None:
        """Defines a flag for each option of a dataclass; `read` reads them.

        Args:
            options_class: The dataclass.
            names: The options to define, by default all.
            how: Properties that replace the fields'.
        """
        fields = {x.name: x for x in dataclasses.fields(options_class)}
        for name in names or [x for x in fields if fields[x].metadata]:
            field, known = fields[name], fields[name].metadata
            about = {"default": field.default, "text": known["text"]}
            about |= known["about"] | how
            bounds, kind = known["bounds"], options.kind(field)
            limits = {"min": bounds.min, "max": bounds.max}
            if known["choices"]:
                self.choice(name, allowed=known["choices"], **about)
            elif kind is int:
                self.integer(name, **limits, **about)
            elif kind is float:
                self.number(name, above=bounds.above, **limits, **about)
            else:
                make = self.boolean if kind is bool else self.string
                make(name, **about)

    # ---- Paths --------------------------------------------------------------

    def input_path(self, name: str, text: str, **how: Any) -> Holder:
        """Defines a flag with a file or folder that is read."""
        holder = flags.DEFINE_string(name, None, text)
        return self._keep(holder, "PATH", {"role": INPUT, **how})

    def input_paths(self, name: str, text: str, **how: Any) -> Holder:
        """Defines a flag with a comma-separated list of input globs."""
        return self._paths(name, text, {"role": INPUT, **how})

    def output_path(self, name: str, text: str, **how: Any) -> Holder:
        """Defines a flag with a file or folder that is written."""
        holder = flags.DEFINE_string(name, None, text)
        return self._keep(holder, "PATH", {"role": OUTPUT, **how})

    def output_paths(self, name: str, text: str, **how: Any) -> Holder:
        """Defines a flag with a comma-separated list of output files."""
        return self._paths(name, text, {"role": OUTPUT, **how})

    def _paths(self, name: str, text: str, how: dict[str, Any]) -> Holder:
        parser = flag_values.Paths(name)
        return self._define(parser, name, None, text, "PATHS", how, _CSV)

    def _define(
        self,
        parser: flags.ArgumentParser[Any],
        name: str,
        default: Any,
        text: str,
        kind: str,
        how: dict[str, Any],
        serializer: flags.ArgumentSerializer[Any] = _PLAIN,
    ) -> Holder:
        holder = flags.DEFINE(
            parser, name, default, text, serializer=serializer
        )
        return self._keep(holder, kind, how)

    def _keep(self, holder: Holder, kind: str, how: dict[str, Any]) -> Holder:
        terms = how.pop("only_with", ())
        own = _condition(terms, how.pop("harmless", False))
        _ABOUT[flags.FLAGS[holder.name]] = About(
            self.title,
            only_with=self._only_with + own,
            **{"kind": kind, **how},
        )
        return holder


_Dataclass = TypeVar("_Dataclass", bound="DataclassInstance")


def read(made: type[_Dataclass], **given: Any) -> _Dataclass:
    """Returns a dataclass with the values of the flags of the same names.

    Fields without a flag, or whose flag is None, have their defaults.

    Args:
        made: The dataclass.
        given: Fields that do not come from flags.
    """
    names = [x.name for x in dataclasses.fields(made)]
    values = {x: flags.FLAGS[x].value for x in names if x in flags.FLAGS}
    set_values = {x: y for x, y in values.items() if y is not None}
    return made(**set_values | given)


def _condition(
    terms: str | Sequence[str], is_harmless: bool
) -> tuple[Condition, ...]:
    """Returns a condition for the terms, or () without terms."""
    if not terms:
        return ()
    terms = (terms,) if isinstance(terms, str) else tuple(terms)
    return (Condition(terms, is_harmless),)


# ---- Unused flags -----------------------------------------------------------


def is_given(flag: flags.Flag) -> bool:
    """Whether a flag is set to another value than its default.

    A flags.txt has all flags, most of them with their defaults.
    """
    return bool(flag.present) and flag.value != flag.default


def check_used(
    always: Sequence[str] = (),
    found: Mapping[str, str | None] = types.MappingProxyType({}),
) -> list[str]:
    """Finds flags that are set but not used by the run.

    Args:
        always: Flags that count as true whatever their values.
        found: Flag -> its value in the run, if it differs from the command
            line; None if it is not known yet.

    Returns:
        A sentence for each harmless condition that does not hold and makes
        flags unused.

    Raises:
        InputError: An unused flag was meant to change something.
    """
    unused: dict[tuple[str, ...], list[str]] = {}
    refused: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(flags.FLAGS):
        flag = flags.FLAGS[name]
        own = find_about(flag)
        if own is None or name != flag.name or not is_given(flag):
            continue
        for condition in own.only_with:
            terms = _known_terms(condition)
            if not terms or any(_holds(x, always, found) for x in terms):
                continue
            kind = unused if condition.is_harmless else refused
            kind.setdefault(terms, []).append(name)
            break
    if refused:
        raise InputError(
            " ".join(
                f"{_listed(names)} go{'es' * (len(names) == 1)} "
                f"{_spelt(terms)}: leave {'it' if len(names) == 1 else 'them'} "
                f"out. Received: {_now([*names, *terms], found)}."
                for terms, names in refused.items()
            ).removesuffix(".")
        )
    return [
        f"Not used, as they go {_spelt(terms)}: {_listed(names)}."
        for terms, names in unused.items()
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"--{name}" for name in names)


def _known_terms(condition: Condition) -> tuple[str, ...]:
    """Returns a condition's terms whose flags the script has."""
    return tuple(
        term
        for term in condition.terms
        if term.lstrip("!").partition("=")[0] in flags.FLAGS
    )


def _holds(
    term: str,
    always: Sequence[str],
    found: Mapping[str, str | None],
) -> bool:
    """Whether a term holds."""
    name, is_value, value = term.lstrip("!").partition("=")
    if name in always:
        return True
    now = flags.FLAGS[name].value
    if name in found:
        if found[name] is None:
            return True
        now = found[name]
    # Names of tasks may be in upper or lower case.
    is_so = str(now).casefold() == value.casefold()
    holds = is_so if is_value else bool(now)
    return holds != term.startswith("!")


def _spelt(terms: Sequence[str]) -> str:
    """Formats terms, for example "with --a or --b=c" or "without --d"."""
    texts = [
        f"without --{term[1:]}" if term.startswith("!") else f"with --{term}"
        for term in terms
    ]
    return " or ".join(texts).replace(" or with ", " or ")


def _now(
    terms: Sequence[str],
    found: Mapping[str, str | None],
) -> str:
    names = dict.fromkeys(x.lstrip("!").partition("=")[0] for x in terms)
    values = {
        name: found.get(name) or flags.FLAGS[name].value for name in names
    }
    return ", ".join(
        f"{name}={','.join(map(str, x)) if isinstance(x, list) else x}"
        for name, x in values.items()
    )
