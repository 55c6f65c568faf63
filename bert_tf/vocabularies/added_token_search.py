"""Finds added tokens in texts.

As in `tokenizers`, tokens that are not `normalized` are found first. The others
are found in the normalized text between them: in any case, if the vocabulary
lower-cases, and with any accents, if the vocabulary strips them. A match may
begin or end within the normalized form of a character, such as a syllable of
Hangul; the rest of the form is text. Text is normalized character by character.
If the vocabulary composes characters, a token is not found where an accent that
follows it becomes a part of its last character.
"""

import dataclasses
import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bert_tf import characters
from bert_tf.vocabularies import added_tokens

import numpy as np

# White space as `tokenizers` sees it.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_SPACE += "".join(map(chr, range(0x2000, 0x200B)))
_SPACES = re.compile(f"[{_SPACE}]*")

# The symbols in circles and squares that Unicode counts as letters.
_LETTER_SYMBOLS = re.compile(
    "[\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169"
    "\U0001f170-\U0001f189]"
)

# Deeper groups of a pattern may exceed the recursion limit.
_MAX_DEPTH = 40

# `tokenizers` composes only what has fewer bytes.
_COMPOSED_BYTES = 6

# With more such characters, all or none of a token are composed in a text.
_MAX_COMPOSED = 4

# Maps a character of a text to its normalized form.
Normalize = Callable[[str], str]


class Span(NamedTuple):
    """Where a token is in a normalized text."""

    start: int
    end: int
    token: added_tokens.AddedToken


class Part(NamedTuple):
    """A part of a text: an added token, or text between such tokens.

    Attributes:
        text: Its text.
        token: The token; None for text.
        start: The position in the whole text of its first character, or of the
            position 0 of `positions`.
        positions: The position of each of its characters; None if they are
            consecutive.
    """

    text: str
    token: added_tokens.AddedToken | None
    start: int
    positions: Sequence[int] | None = None

    def bounds(self, start: int, end: int) -> tuple[int, int]:
        """Returns start and end in the whole text of characters of this one."""
        if self.positions is None:
            return self.start + start, self.start + end
        is_inside = start < len(self.positions)
        first = self.positions[start] if is_inside else self.positions[-1] + 1
        last = self.positions[end - 1] + 1 if end > start else first
        return self.start + first, self.start + last


class Kind(NamedTuple):
    """Properties of a character that the flags of neighboring tokens check."""

    is_word: bool
    is_space: bool


@dataclasses.dataclass(frozen=True)
class Search:
    """How tokens are found.

    Attributes:
        tokens: Normalized text -> its token.
        normalize: Normalizes one character; None for no normalization.
        composes: Whether normalization then composes characters, as NFC does.
    """

    tokens: Mapping[str, added_tokens.AddedToken]
    normalize: Normalize | None
    composes: bool

    @functools.cached_property
    def accents(self) -> dict[str, str]:
        """Normalized text of a token -> accents that may not follow it."""
        if not self.composes:
            return dict.fromkeys(self.tokens, "")
        found = _accents()
        return {
            text: found.get(unicodedata.normalize("NFC", text)[-1], "")
            for text in self.tokens
        }

    @functools.cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(
            _pattern(
                {
                    text: f"(?![{accents}])" if accents else ""
                    for text, accents in self.accents.items()
                }
            )
        )

    @functools.cached_property
    def _forms(self) -> "Forms":
        return forms(self.normalize)

    @property
    def forms(self) -> Mapping[str, str]:
        """The characters that are normalized, and their normalized forms.

        Without the spaces around Chinese characters.
        """
        return self._forms.changed

    @functools.cached_property
    def _table(self) -> dict[int, str]:
        return {ord(char): form for char, form in self.forms.items()}

    @functools.cached_property
    def expanded(self) -> Mapping[str, str]:
        """The characters of whose normalized forms a token may have a part."""
        used = frozenset("".join(self.tokens))
        return {
            char: form
            for char, form in self.forms.items()
            if len(form) > 1
            and (
                not used.isdisjoint(form)
                or self._forms.kind(form[0]) != self._forms.kind(form[-1])
            )
        }

    @functools.cached_property
    def _expansions(self) -> dict[int, str]:
        return {ord(char): form for char, form in self.expanded.items()}

    @functools.cached_property
    def _resized(self) -> frozenset[str]:
        """The characters whose forms are not single characters."""
        return frozenset(x for x, form in self.forms.items() if len(form) != 1)

    @functools.cached_property
    def _sizes(self) -> np.ndarray:
        """The size of each code point's form, [0x110000] int32.

        Negative if the form has several characters and is not expanded.
        """
        sizes = np.ones(sys.maxunicode + 1, np.int32)
        for char in self._resized:
            size = len(self.forms[char])
            sizes[ord(char)] = size if char in self.expanded else -size
        return sizes

    def cut(self, text: str) -> list[Part]:
        """Returns the parts of a text; every second one is a token."""
        normal = text.translate(self._table) if self.forms else text
        found = list(self._spans(normal))
        if not found:
            return [Part(text, None, 0)]
        bounds = [[start, stop] for start, stop, _ in found]
        positions: Sequence[int] | None = None
        if self.forms and not self._resized.isdisjoint(text):
            text, positions, bounds = self._aligned(text, found)
        parts: list[Part] = []
        end = 0

        def add(stop: int, token: added_tokens.AddedToken | None) -> None:
            nonlocal end
            if positions is None:
                part = Part(text[end:stop], token, end)
            elif end == stop:
                part = Part("", token, positions[end - 1] + 1 if end else 0)
            else:
                part = Part(text[end:stop], token, 0, positions[end:stop])
            parts.append(part)
            end = stop

        for span, (start, stop) in zip(found, bounds, strict=True):
            is_empty = span.start == span.end
            add(end if is_empty else start, None)
            add(end if is_empty else stop, span.token)
        add(len(text), None)
        return parts

    def _aligned(
        self, text: str, found: Sequence[Span]
    ) -> tuple[str, Sequence[int] | None, list[list[int]]]:
        """Expands a text.

        Returns:
            The expanded text, the position in `text` of each of its characters
            (None if the two are the same), and start and end in it of each
            token that is not empty.
        """
        encoded = text.encode("utf-32-le", "surrogatepass")
        sizes = self._sizes[np.frombuffer(encoded, "<u4")]  # [characters]
        # What is not expanded stays one character.
        widths = np.maximum(sizes, 1)
        sizes = np.abs(sizes)
        ends = np.cumsum(sizes)
        # The first and last characters of tokens, [tokens, 2].
        lasts = [span.end - 1 for span in found]
        firsts = [min(x.start, y) for x, y in zip(found, lasts, strict=True)]
        bounds = np.stack([firsts, lasts], 1)
        chars = np.searchsorted(ends, bounds, "right")
        inside = bounds - ends[chars] + sizes[chars]
        ends = np.cumsum(widths)
        bounds = ends[chars] - widths[chars] + np.array([0, 1])
        bounds += np.minimum(inside, widths[chars] - 1)
        positions = None
        if ends[-1] > len(text):
            positions = np.repeat(np.arange(len(text)), widths).data
            text = text.translate(self._expansions)
        return text, positions, bounds.tolist()

    def _spans(self, text: str) -> Iterator[Span]:
        """Yields the tokens of a normalized text, with their white space."""
        end = 0
        for match in self._regex.finditer(text):
            token = self.tokens[match[0]]
            start, stop = match.span()
            if token.single_word and self._is_in_word(text, start, stop):
                continue
            while token.lstrip and start > end and text[start - 1] in _SPACE:
                start -= 1
            if token.rstrip:
                space = _SPACES.match(text, stop)
                stop = space.end() if space else stop
            yield Span(max(start, end), max(stop, end), token)
            end = max(stop, end)

    def _is_in_word(self, text: str, start: int, end: int) -> bool:
        """Returns whether a letter or digit touches a part of a text."""
        neighbors = text[max(start - 1, 0) : start] + text[end : end + 1]
        return any(self._forms.kind(char).is_word for char in neighbors)


def _is_word(char: str) -> bool:
    r"""Returns whether a character is one of `\w` in `tokenizers`."""
    kind = unicodedata.category(char)
    return (
        kind[0] in "LM"
        or kind in ("Nd", "Nl", "Pc")
        or char in "\u200c\u200d"
        or bool(_LETTER_SYMBOLS.match(char))
    )


class Forms(NamedTuple):
    """Normalized forms of characters, without the spaces around them.

    Attributes:
        changed: Character -> normalized form, if they differ.
        spaced: The characters that get spaces around them.
    """

    changed: Mapping[str, str]
    spaced: frozenset[str]

    def kind(self, char: str) -> Kind:
        """Returns the kind of a normalized character."""
        is_word = _is_word(char) and char not in self.spaced
        return Kind(is_word, char in _SPACE)


@functools.cache
def forms(normalize: Normalize | None) -> Forms:
    """Returns the forms of all characters."""
    changed, spaced = {}, set()
    if normalize is None:
        return Forms({}, frozenset())
    for char in characters.assigned():
        form = normalize(char)
        if len(form) > 2 and form[0] == form[-1] == " ":
            form = form[1:-1]
            spaced.add(char)
        if form != char:
            changed[char] = form
    return Forms(changed, frozenset(spaced))


@functools.cache
def _accents() -> dict[str, str]:
    """Returns character -> the accents that can be composed with it."""
    found: dict[str, str] = {}
    for char in characters.assigned():
        text = unicodedata.normalize("NFD", char)
        if len(text) > 1 and unicodedata.normalize("NFC", text) == char:
            base = unicodedata.normalize("NFC", text[:-1])
            if len((base + text[-1]).encode()) < _COMPOSED_BYTES:
                found[base] = found.get(base, "") + text[-1]
    return found


def _pattern(texts: Mapping[str, str], depth: int = 0) -> str:
    """Returns a pattern that finds the longest of some texts.

    `texts` maps each text to the pattern that must match after it.
    """
    if depth == _MAX_DEPTH:
        longest = sorted(texts, key=len, reverse=True)
        return f"(?:{'|'.join(re.escape(x) + texts[x] for x in longest)})"
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(text[:1], []).append(text)
    shortest = groups.pop("", [])
    branches = []
    for group in groups.values():
        # What the first and the last in order share, all of them share.
        first, last = min(group), max(group)
        both = enumerate(zip(first, last, strict=False))
        size = next((i for i, (a, b) in both if a != b), len(first))
        rest = {text[size:]: texts[text] for text in group}
        tail = _pattern(rest, depth + 1) if len(rest) > 1 else texts[first]
        branches.append(re.escape(first[:size]) + tail)
    # The shortest is tried last.
    branches += [texts[text] for text in shortest]
    return f"(?:{'|'.join(branches)})"


def searches(
    tokens: added_tokens.Tokens, normalize: Normalize | None, composes: bool
) -> tuple[Search, ...]:
    """Returns the searches: each is for the text that the others leave.

    Args:
        tokens: The added tokens.
        normalize: Normalizes one character of a text; None for no
            normalization.
        composes: Whether normalization composes characters, as NFC does.
    """
    literal = [token for token in tokens if not token.normalized]
    others = [token for token in tokens if token.normalized]
    found = []
    if literal:
        found.append(_search(literal, None, composes=False))
    if others:
        found.append(_search(others, normalize, composes))
    return tuple(search for search in found if search.tokens)


def _search(
    tokens: Iterable[added_tokens.AddedToken],
    normalize: Normalize | None,
    composes: bool,
) -> Search:
    changed = forms(normalize).changed
    found: dict[str, added_tokens.AddedToken] = {}
    # Of tokens that are normalized alike, the first is found, and special ones
    # come before others.
    for token in sorted(tokens, key=lambda token: not token.special):
        text = "".join(changed.get(char, char) for char in token.content)
        for spelled in _spellings(text) if composes else (text,):
            # A token of accents alone may become nothing.
            if spelled:
                found.setdefault(spelled, token)
    return Search(found, normalize, composes)


def _spellings(text: str) -> Iterator[str]:
    """Yields a token with its characters composed, or not, in a text."""
    pairs = [
        tuple({char: None, unicodedata.normalize("NFD", char): None})
        for char in unicodedata.normalize("NFC", text)
    ]
    if sum(len(pair) > 1 for pair in pairs) > _MAX_COMPOSED:
        yield from ("".join(pair[x] for pair in pairs) for x in (0, -1))
    else:
        yield from map("".join, itertools.product(*pairs))


def parts(found: Sequence[Search], text: str) -> Iterator[Part]:
    """Yields the parts of a text by all searches, in order.

    Text and added tokens alternate, starting and ending with text, which may be
    empty.
    """
    first = found[0].cut(text) if found else [Part(text, None, 0)]
    for part in first:
        if part.token is not None or len(found) <= 1:
            yield part
            continue
        for inner in parts(found[1:], part.text):
            yield inner._replace(start=part.start + inner.start)
