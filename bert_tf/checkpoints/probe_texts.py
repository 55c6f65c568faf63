"""Texts that show the differences between tokenizers.

They are the same in every run. Their characters are chosen by Unicode category.
"""

import functools
import unicodedata
from collections.abc import Callable, Sequence

from bert_tf.vocabularies import added_tokens

# Code points per block. One character of each category in a block is used.
_BLOCK = 64
# The same for private-use and unassigned characters: many, and similar.
_LARGE_BLOCK = 0x4000
# An odd step finds both letters where capital and small letters alternate.
_STEP = 3
_SPARSE = 0x20000  # Beyond: ideographs, tags, variants and private use.
_WORDS = 1000
_ADDED = 50

Decode = Callable[[Sequence[int]], str]

_LINES = (
    "",
    " ",
    " \n\t ",
    "The cat's 3,000 dogs weren't there... Were they?! (Yes: 99.9 %)",
    "  Two  spaces   between,\tand a tab.\r\nAnother line \u3000 here.  ",
    "camelCase snake_case user@example.com https://example.com/a?b=c&d #tag",
    "``Quoted'' \"words\" \u201ccurly\u201d \u00abangled\u00bb \u2014 \u2026",
    "1 12 123 1234 12345 1.5 2,000,000 1990s 3rd \u00bd \u00b2 \u2167 "
    "\u0663\u0664 \uff11\uff12",
    "Stra\u00dfe \u00c4pfel \u0130stanbul \ufb01n \u01c5 \u00c5ngstr\u00f6m "
    "\u212b \u01f0 \u1e9e",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! "
    "\u0391\u03b8\u03ae\u03bd\u03b1\u03a3 \u05e9\u05c1\u05dc\u05d5\u05dd "
    "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002NLP\u662f\u4ec0\u4e48\uff1f",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u3044\u304d\u307e\u3059 "
    "\uff76\uff9e\uff77\uff9e \u304b\u3099",
    "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4 \u1112\u1161\u11ab",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 "
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0b95\u0bcd\u0bb7",
    "\U0001f600\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d"
    "\U0001f467 \u2764\ufe0f 1\ufe0f\u20e3 \U0001f1e9\U0001f1ea",
    "a\u0000b\u0007c\u200bd\u00ade\ufefff\ufffdg\u2028h\u2029i\u0085j",
    "x\u0301\u0323y\u0323\u0301z\u034f\u0301 \u0301a \u093f",
    "e\ue000f\uf8ffg\U000f0000h\U0010fffdi",
    # The limit of words is 100 or 200 characters, as in the original.
    "a" * 90,
    "b" * 250,
    "word" * 60,
    "\u4e2d" * 250,
    "." * 250,
    "9" * 90,
)


@functools.cache
def _characters() -> tuple[str, ...]:
    """Returns some characters of every block and category."""
    codes = [*range(0, _SPARSE, _STEP), *range(_SPARSE, 0x110000, 0x1001)]
    found: dict[tuple[int, str], str] = {}
    for char in map(chr, codes):
        category = unicodedata.category(char)
        block = _LARGE_BLOCK if category in ("Cn", "Co") else _BLOCK
        if category != "Cs":  # Surrogate halves are no text.
            found.setdefault((ord(char) // block, category), char)
    # All spaces and ASCII characters.
    chars = [*map(chr, range(0x100)), *map(chr, range(0x2000, 0x2070))]
    return tuple(dict.fromkeys([*chars, "\u1680", "\u3000", *found.values()]))


@functools.cache
def _of_characters() -> tuple[str, ...]:
    texts = []
    for char in _characters():
        texts.append(f"a{char} {char}b {char}{char}")
        composed = unicodedata.normalize("NFC", char)
        decomposed = unicodedata.normalize("NFKD", char)
        texts += [f"a{x}b" for x in {composed, decomposed} - {char}]
    return tuple(texts)


def _words(tokens: Sequence[str], decode: Decode) -> list[str]:
    """Returns words of three tokens each, also with capital letters."""
    ids = [
        number
        for number, token in enumerate(tokens)
        if not added_tokens.is_of_rows(token, number)
    ]
    texts = []
    for number in range(0, len(ids), len(ids) // _WORDS + 1):
        # Two tokens from other parts of the vocabulary.
        others = (ids[(number * x + x) % len(ids)] for x in (7, 31))
        text = decode([ids[number], *others])
        texts += [text, text.title()]
    # Tokenizers find special tokens in texts with these names.
    return [x for x in texts if not any(y in x for y in added_tokens.OF_ROWS)]


def singles(
    tokens: Sequence[str], decode: Decode, added: Sequence[str]
) -> list[str]:
    """Returns some thousand texts.

    Args:
        tokens: The tokens of a vocabulary, by id. Some texts consist of them.
        decode: Returns the text of token ids.
        added: Tokens that are found in a text before it is split.
    """
    texts = [*_LINES, *_of_characters(), *_words(tokens, decode)]
    for token in added[:_ADDED]:
        texts += [token, token * 2, token + added[0], f"({token})"]
        texts += [f"a{token}b", f"a {token} b", f"a  {token}\tb"]
        texts += [f"A {token.upper()} b", f"A{token.lower()}b"]
    return texts


def pairs() -> list[tuple[str, str]]:
    """Returns pairs of texts."""
    lines = [line for line in _LINES if line.strip() and len(line) < 90]
    return [("a", "b"), *zip(lines, reversed(lines), strict=True)]
