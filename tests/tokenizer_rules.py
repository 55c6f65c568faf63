"""The original's tokenizer rule by rule, and its differences to transformers.

`Tokenizer.pieces(text)` follows google-research/bert, tokenization.py. With
RULES it matches transformers' BertTokenizer, whose normalizer and splitter are
those of the Rust library tokenizers. This must hold for every text; so every
rule that changes the tokens of a text explains a part of the difference between
the two.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping

import tokenizers

RULES = (
    "word limit",  # words over 100 characters are [UNK], not over 200
    "special tokens",  # [MASK] and the like stay whole in the text
    "final sigma",  # letters are lower-cased one by one
    "private use",  # private-use characters are dropped
    "ideographs",  # U+2B820 to U+2B91F do not count as ideographs
    "categories",  # of another version of Unicode
    "decompositions",  # of another version of Unicode
)

_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

# Characters whose category has changed since the library's Unicode version.
_FORMER_CATEGORIES = {
    "\u166d": "Po",
    "\U000111c9": "Po",
    "\u1734": "Mn",
    "\u1885": "Lo",
    "\u1886": "Lo",
}


@functools.cache
def unknown_characters() -> frozenset[str]:
    """Returns characters whose category the Rust library does not know.

    It handles them as letters, although they should be dropped or split off.
    They must be newer than Unicode 3.2; otherwise an older Unicode version
    would not be the reason.
    """
    normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    unknown = set()
    for char in map(chr, range(0x110000)):
        kind = unicodedata.category(char)
        if kind in ("Cf", "Mn"):
            is_unknown = char in normalizer.normalize_str(f"a{char}a")
        elif kind.startswith("P"):
            is_unknown = len(splitter.pre_tokenize_str(f"a{char}a")) == 1
        else:
            continue
        if is_unknown and char not in _FORMER_CATEGORIES:
            assert unicodedata.ucd_3_2_0.category(char) == "Cn", repr(char)
            unknown.add(char)
    return frozenset(unknown)


def _their_category(char: str) -> str:
    if char in unknown_characters():
        return "Lo"
    return _FORMER_CATEGORIES.get(char) or unicodedata.category(char)


class Tokenizer:
    """Splits texts into words and tokens."""

    def __init__(self, vocab: Mapping[str, int], do_lower_case: bool):
        self.vocab = vocab
        self.do_lower_case = do_lower_case

    def pieces(self, text: str, rules: Collection[str] = ()) -> list[str]:
        """Returns the tokens; `rules` are the ones from RULES to follow."""
        limit = 100 if "word limit" in rules else 200
        pieces: list[str] = []
        parts = _SPECIAL.split(text) if "special tokens" in rules else [text]
        for part in parts:
            if "special tokens" in rules and _SPECIAL.fullmatch(part):
                pieces.append(part)
                continue
            for word in self.words(part, rules):
                pieces += self._split(word, limit)
        return pieces

    def words(self, text: str, rules: Collection[str] = ()) -> list[str]:
        """Returns the normalized words of a text."""
        category: Callable[[str], str] = unicodedata.category
        if "categories" in rules:
            category = _their_category
        words: list[str] = []
        for word in _clean(text, category, rules).split():
            if self.do_lower_case:
                word = _normalize(word, category, rules)
            words += _split_punctuation(word, category)
        return words

    def _split(self, word: str, limit: int) -> list[str]:
        """Takes the longest token of the vocabulary from the left."""
        if len(word) > limit:
            return ["[UNK]"]
        pieces: list[str] = []
        rest = word
        while rest:
            prefix = "##" if pieces else ""
            for size in range(len(rest), 0, -1):
                if prefix + rest[:size] in self.vocab:
                    break
            else:
                return ["[UNK]"]
            pieces.append(prefix + rest[:size])
            rest = rest[size:]
        return pieces


def _is_ideograph(char: str, rules: Collection[str]) -> bool:
    if "ideographs" in rules and 0x2B820 <= ord(char) <= 0x2B91F:
        return False
    return any(first <= ord(char) <= last for first, last in _IDEOGRAPHS)


def _clean(
    text: str, category: Callable[[str], str], rules: Collection[str]
) -> str:
    """Drops control characters; puts spaces around ideographs."""
    dropped = ["Cc", "Cf"] + ["Co"] * ("private use" in rules)
    cleaned = []
    for char in text:
        kind = category(char)
        if char in "\t\n\r" or kind == "Zs":
            cleaned.append(" ")
        elif char in "\0\ufffd" or kind in dropped:
            continue
        elif _is_ideograph(char, rules):
            cleaned.append(f" {char} ")
        else:
            cleaned.append(char)
    return "".join(cleaned)


def _normalize(
    word: str, category: Callable[[str], str], rules: Collection[str]
) -> str:
    """Lower-cases and strips accents."""
    if "final sigma" in rules:
        word = "".join(char.lower() for char in word)
    else:
        word = word.lower()
    if "decompositions" in rules:
        word = tokenizers.normalizers.NFD().normalize_str(word)
    else:
        word = unicodedata.normalize("NFD", word)
    return "".join(char for char in word if category(char) != "Mn")


def _split_punctuation(
    word: str, category: Callable[[str], str]
) -> Iterable[str]:
    """Makes every punctuation mark a word; drops empty words."""
    start = 0
    for end, char in enumerate(word):
        if char in _ASCII_PUNCTUATION or category(char).startswith("P"):
            yield from filter(None, (word[start:end], char))
            start = end + 1
    if start < len(word):
        yield word[start:]


def explain(
    tokenizer: Tokenizer, text: str, theirs: list[str]
) -> tuple[str, ...]:
    """Returns why `theirs` differ from the original's tokens; () if unknown.

    Includes each rule without which the tokens would differ.
    """
    if tokenizer.pieces(text, RULES) != theirs:
        return ()
    needed = tuple(
        rule
        for rule in RULES
        if tokenizer.pieces(text, [x for x in RULES if x != rule]) != theirs
    )
    return needed or ("several at once",)
