"""Python's rules for characters, applied to all code points at once.

A million calls would take seconds at every start, so unassigned characters are
skipped and each string function is applied to all others in one call.
"""

from collections.abc import Callable, Sequence

COUNT = 0x110000

# Classes of characters in the rule of the final sigma.
OTHER, CASED, IGNORED = 0, 1, 2

# A permanent noncharacter: for the rules of Unicode, a text ends here.
_BETWEEN = "\uffff"


def of_each(function: Callable[[str], str], texts: Sequence[str]) -> list[str]:
    """Applies a function that follows Unicode's rules to each text."""
    return function(_BETWEEN.join(texts)).split(_BETWEEN)


def sigma_kinds(chars: Sequence[str]) -> list[int]:
    """Classifies characters by their effect on a capital sigma after them."""
    alone = of_each(str.lower, [f"{char}Σ" for char in chars])
    after_cased = of_each(str.lower, [f"A{char}Σ" for char in chars])
    return [
        CASED if one[-1] == "ς" else IGNORED if other[-1] == "ς" else OTHER
        for one, other in zip(alone, after_cased, strict=True)
    ]
