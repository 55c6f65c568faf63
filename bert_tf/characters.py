"""Rules for characters: the original's, and Python's applied to all at once."""

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence

CODE_POINTS = 0x110000

# The blocks of Chinese characters. Kana and Hangul do not count: they are split
# by the vocabulary, like the letters of any other script.
_CJK = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\uf900-\ufaff"
    "\U0002f800-\U0002fa1f]"
)

# Scripts without spaces between words: Han, kana and Thai.
UNSPACED = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f\u0e00-\u0e7f]"
)


def is_whitespace(char: str) -> bool:
    """Returns whether the character separates words."""
    return char in " \t\n\r" or unicodedata.category(char) == "Zs"


def is_control(char: str) -> bool:
    """Returns whether the character is removed as a control character."""
    # Tab and newlines are control characters that count as white space.
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf")


def is_punctuation(char: str) -> bool:
    """Returns whether the character is a separate word."""
    # Every ASCII character that is not a letter, digit, space or control
    # character counts, including Unicode's symbols, such as "^", "$" and "`".
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


class _CharacterTable(dict):
    """A table for `str.translate` that applies `rule` once per character."""

    def __init__(self, rule: Callable[[str], str]):
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        result = self[code] = self._rule(chr(code))
        return result


def is_cjk(char: str) -> bool:
    """Returns whether the character is Chinese, and so a separate word."""
    return _CJK.match(char) is not None


def count_cjk(text: str) -> int:
    """Counts the Chinese characters; each one is a separate word."""
    return len(_CJK.findall(text))


def all_cjk() -> list[str]:
    """Returns all characters that `is_cjk` accepts, assigned or not."""
    # Their last block is in plane 2.
    return _CJK.findall("".join(map(chr, range(0x30000))))


@functools.cache
def assigned() -> tuple[str, ...]:
    """Returns the characters that Unicode assigns, in order."""
    return tuple(
        char
        for char in map(chr, range(CODE_POINTS))
        if unicodedata.category(char) not in ("Cn", "Co", "Cs")
    )


def clean_only(char: str) -> str:
    """Removes invalid characters, and replaces white space by a space."""
    if char in "\0\ufffd" or is_control(char):
        return ""
    return " " if is_whitespace(char) else char


def clean(char: str) -> str:
    """Like `clean_only`, but also adds spaces around CJK characters."""
    return f" {char} " if is_cjk(char) else clean_only(char)


def split_punctuation(char: str) -> str:
    """Adds spaces around punctuation."""
    return f" {char} " if is_punctuation(char) else char


def strip_accent(char: str) -> str:
    """Removes combining marks (category Mn)."""
    return "" if unicodedata.category(char) == "Mn" else char


# For str.translate.
CLEAN = _CharacterTable(clean)
CLEAN_ONLY = _CharacterTable(clean_only)
SPLIT_PUNCTUATION = _CharacterTable(split_punctuation)
_STRIP_ACCENT = _CharacterTable(strip_accent)


def normalize(text: str, do_lower_case: bool, strip_accents: bool) -> str:
    """Lower-cases a text, strips its accents, or both."""
    text = text.lower() if do_lower_case else text
    if not strip_accents or text.isascii():
        return text
    return unicodedata.normalize("NFD", text).translate(_STRIP_ACCENT)


def strips_accents(do_lower_case: bool, strip_accents: bool | None) -> bool:
    """Returns whether accents are stripped: None means as `do_lower_case`."""
    return do_lower_case if strip_accents is None else strip_accents


# ---- All code points ---------------------------------------------------------

# A million calls would take seconds at every start, so unassigned characters
# are skipped and each string function is applied to all others in one call.

# Classes of characters in the rule of the final sigma.
OTHER, CASED, IGNORED = 0, 1, 2

# A permanent noncharacter: for the rules of Unicode, a text ends here.
_BETWEEN = "\uffff"


def change_each(
    function: Callable[[str], str], texts: Sequence[str]
) -> list[str]:
    """Applies a function that follows Unicode's rules to each text."""
    return function(_BETWEEN.join(texts)).split(_BETWEEN)


def sigma_kinds(chars: Sequence[str]) -> list[int]:
    """Classifies characters by their effect on a capital sigma after them."""
    alone = change_each(str.lower, [f"{char}Σ" for char in chars])
    after_cased = change_each(str.lower, [f"A{char}Σ" for char in chars])
    return [
        CASED if one[-1] == "ς" else IGNORED if other[-1] == "ς" else OTHER
        for one, other in zip(alone, after_cased, strict=True)
    ]
