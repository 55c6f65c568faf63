"""Reports or rejects flags that are set but not used by the run."""

import types
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.flags import flag_sections

from absl import flags


def given(flag: flags.Flag) -> bool:
    """Whether a flag is set to another value than its default.

    A flags.txt has all flags, most of them with their defaults.
    """
    return bool(flag.present) and flag.value != flag.default


def check(
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
        own = flag_sections.find_about(flag)
        if own is None or name != flag.name or not given(flag):
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


def _known_terms(condition: flag_sections.Condition) -> tuple[str, ...]:
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
