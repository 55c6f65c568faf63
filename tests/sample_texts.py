"""Texts that distinguish tokenizers: every character, random strings."""

import functools
import pathlib
import random
import unicodedata


@functools.cache
def characters(every: bool) -> tuple[str, ...]:
    """Returns the assigned characters that UTF-8 can encode.

    Args:
        every: Whether to include all ideographs and Hangul syllables, which are
            many and similar, instead of one in a hundred.
    """
    assigned = [
        char
        for char in map(chr, range(0x110000))
        if unicodedata.category(char) not in ("Cn", "Co", "Cs")
    ]
    return tuple(
        char
        for char in assigned
        if every or not _is_one_of_many(char) or ord(char) % 100 == 0
    )


def _is_one_of_many(char: str) -> bool:
    return unicodedata.name(char, "").startswith(("CJK UNI", "HANGUL SYL"))


def in_contexts(char: str) -> str:
    """Returns a character alone, in words, by capital sigmas and by accents."""
    return (
        f"{char} a{char}b {char}{char} A{char}Σ{char} Σ{char}x e{char}\u0301 "
        f"9{char}."
    )


def random_texts(seed: int, count: int) -> list[str]:
    """Returns strings of mixed scripts, some with very long words."""
    rng = random.Random(seed)
    pools = [
        list(map(chr, range(0x20, 0x7F))),
        list(map(chr, range(0x250))),
        list(map(chr, range(0x300, 0x400))),
        list(map(chr, range(0x4E00, 0x4F00))),
        list(map(chr, range(0xAC00, 0xD7A4))),
        list(characters(every=True)),
        list("ΣΣAaσ'. \u00ad\u0301"),
        # Marks that normalization reorders, and some that it drops or stops at.
        list("a\u0323\u0301\u034f\u1715\u302e\u302f\U00016ff0\U0001d15e"),
        # Private use, unassigned, and the last code point.
        list("a\ue000\uf8ff\U000f0000\u0378\U0003ffff\U0010ffff"),
        list("\t\n\r \u00a0\u2028\u3000\u0085\u200b\u0000\ufffd"),
    ]
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(0, 8)):
            longest = rng.choice([3, 12, 250])
            parts += rng.choices(rng.choice(pools), k=rng.randint(1, longest))
        texts.append("".join(parts))
    return texts


def real_lines(shared_data: pathlib.Path, head: str, number: int) -> list[str]:
    """Returns lines of Wikipedia, as run_prediction.py reads them."""
    rows: list[list[str]] = []
    with (shared_data / "corpus" / "enwiki_AA.txt").open() as file:
        for line in file:
            words = line.split()
            if len(words) > 12 and "<" not in line and "\t" not in line:
                rows.append([" ".join(words[:8]), " ".join(words[8:])])
            if len(rows) == number:
                break
    if head == "multiple_choice":
        ends = [rest for _, rest in rows]
        rows = [
            [first, *(ends[i - j] for j in range(3))]
            for i, (first, _) in enumerate(rows)
        ]
    between = {"masked_lm": " [MASK] ", "tagging": " ", "encoder": " "}
    return [between.get(head, "\t").join(row) for row in rows]
