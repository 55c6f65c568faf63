"""What Python knows of characters, asked for all of them.

A million calls would take seconds of each start. So characters that mean
nothing are left out, and functions of texts are applied to all at once.
"""

from collections.abc import Callable, Sequence

COUNT = 0x110000

# What a character is to the rule of the final sigma.
OTHER, CASED, IGNORED = 0, 1, 2

# No character, for ever: to the rules of Unicode texts end here.
_BETWEEN = "\uffff"


def of_each(function: Callable[[str], str], texts: Sequence[str]) -> list[str]:
    """Returns what a function of Unicode's rules makes of each text."""
    return function(_BETWEEN.join(texts)).split(_BETWEEN)


def sigma_kinds(chars: Sequence[str]) -> list[int]:
    """Asks `str.lower` what each character is to a capital sigma after it."""
    alone = of_each(str.lower, [f"{char}Σ" for char in chars])
    after_cased = of_each(str.lower, [f"A{char}Σ" for char in chars])
    return [
        CASED if one[-1] == "ς" else IGNORED if other[-1] == "ς" else OTHER
        for one, other in zip(alone, after_cased, strict=True)
    ]
