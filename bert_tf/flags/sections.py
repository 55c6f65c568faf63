"""Flags in sections: what `--help` shows together, and when a flag is used.

    _TRAINING = flag_sections.Section("Training", only_with="do_train")
    SEED = _TRAINING.integer("seed", 12345, "Of the data order.", above=-1)

A flag that is given and that the run will not use is told by name, by
`unused.check`. Values are checked while flags are read, before anything slow.
"""

import dataclasses
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from bert_tf.flags import values as flag_values

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
        alias: Whether it is but another name of a flag.
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
    alias: bool = False
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
        parser = (
            flags.ArgumentParser() if default == "" else flag_values.Text(name)
        )
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
        parser = flag_values.Whole(name, least, most)
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
        parser = flag_values.Number(name, least, most, above)
        holder = flags.DEFINE(
            parser, name, default, text, serializer=flags.ArgumentSerializer()
        )
        return self._keep(holder, "NUMBER", how)

    def number_or(
        self, name: str, default: str | None, word: str, text: str, **how: Any
    ) -> Holder:
        """A finite number, as text, or a word that stands for one."""
        parser = flag_values.NumberOr(name, word)
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
            flag_values.OneOf(name, names),
            name,
            default,
            text,
            serializer=flags.ArgumentSerializer(),
        )
        return self._keep(holder, "|".join(names), how)

    def words(self, name: str, default: Any, text: str, **how: Any) -> Holder:
        """Texts with commas between."""
        holder = flags.DEFINE(
            flag_values.Words(name),
            name,
            default,
            text,
            serializer=flags.CsvListSerializer(","),
        )
        return self._keep(holder, "A,B,...", how)

    def alias(self, name: str, holder: Holder) -> Holder:
        """Another name of a flag, whose conditions are the flag's own."""
        kind = _ABOUT[flags.FLAGS[holder.name]].kind
        alias = flags.DEFINE_alias(name, holder.name)
        return self._keep(alias, kind, {"alias": True})

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
            flag_values.Paths(name),
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
