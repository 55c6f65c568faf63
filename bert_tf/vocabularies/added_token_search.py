"""Finds added tokens in texts, and splits the text between them.

As in `tokenizers`, tokens that are not `normalized` are found first, and the
others in the text between them: in any case, if the vocabulary lower-cases, and
with any accents, if the vocabulary strips them. Results differ only where
combining accents are inside a token, or one character is normalized to several
of its characters.
"""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bert_tf import characters, tokenization
from bert_tf.vocabularies import added_tokens

import numpy as np

if TYPE_CHECKING:
    from bert_tf.vocabularies.vocabulary import BulkTokenizer, Tokenizer

# White space as `tokenizers` sees it, for both Python and TensorFlow.
SPACES = "[\\t-\\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_SPACES = re.compile(SPACES)
_IN_CLASS = frozenset("\\]^-[")

# The symbols in circles and squares that Unicode counts as letters.
_LETTER_SYMBOLS = re.compile(
    "[\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169"
    "\U0001f170-\U0001f189]"
)

# Returns what a character of a text becomes.
Normalize = Callable[[str], str]


class Span(NamedTuple):
    """Where a token is in a text."""

    start: int
    end: int
    token: added_tokens.AddedToken


class Neighbours(NamedTuple):
    """Patterns of RE2 for texts next to a token that is part of a word."""

    before: str
    after: str


@dataclasses.dataclass(frozen=True)
class Search:
    """How tokens are found, by one pattern for both Python's `re` and RE2.

    Attributes:
        pattern: Finds any of them, the longest at each position.
        tokens: Normalized text -> its token.
        normal: A character of a match -> its normalized form, if it changes.
        normalize: Normalizes one character; None for no normalization.
    """

    pattern: str
    tokens: Mapping[str, added_tokens.AddedToken]
    normal: Mapping[str, str]
    normalize: Normalize | None

    @functools.cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def spans(self, text: str) -> Iterator[Span]:
        """Yields the tokens of a text, with the white space of each."""
        end = 0
        for match in self._regex.finditer(text):
            normal = "".join(self.normal.get(x, x) for x in match[0])
            token = self.tokens[normal]
            start, stop = match.span()
            if token.single_word and self._is_in_word(text, start, stop):
                continue
            while token.lstrip and start > end and _is_space(text[start - 1]):
                start -= 1
            if token.rstrip:
                space = _SPACES.match(text, stop)
                stop = space.end() if space else stop
            yield Span(max(start, end), max(stop, end), token)
            end = max(stop, end)

    def _is_in_word(self, text: str, start: int, end: int) -> bool:
        """Returns whether a letter or digit touches a part of a text."""
        before = (self._normal(text[i]) for i in range(start - 1, -1, -1))
        after = (self._normal(text[i]) for i in range(end, len(text)))
        left, right = (next(filter(None, x), " ") for x in (before, after))
        return _is_word(left[-1]) or _is_word(right[0])

    def _normal(self, char: str) -> str:
        return char if self.normalize is None else self.normalize(char)

    def neighbours(self) -> Neighbours:
        """Returns the patterns by which the graph rejects parts of words."""
        normal = {char: self._normal(char) for char in characters.assigned()}
        dropped = _one_of(x for x, text in normal.items() if not text)
        first, last = (
            _one_of(x for x, y in normal.items() if y and _is_word(y[place]))
            for place in (0, -1)
        )
        between = f"{dropped}*" if dropped else ""
        return Neighbours(
            f"(?s).*{last}{between}", f"(?s){between}{first}.*"
        )


def _is_space(char: str) -> bool:
    return bool(_SPACES.fullmatch(char))


def _is_word(char: str) -> bool:
    r"""Returns whether a character is one of `\w` in `tokenizers`."""
    kind = unicodedata.category(char)
    return (
        kind[0] in "LM"
        or kind in ("Nd", "Nl", "Pc")
        or char in "\u200c\u200d"
        or bool(_LETTER_SYMBOLS.match(char))
    )


def _one_of(chars: Iterable[str]) -> str:
    """Returns the pattern of one of the characters, which are in order."""
    ranges: list[list[int]] = []
    for code in map(ord, chars):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    inside = "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in ranges)
    return f"[{inside}]" if inside else ""


def searches(
    tokens: added_tokens.Tokens, normalize: Normalize | None
) -> tuple[Search, ...]:
    """Returns the searches: each is for the text that the others leave.

    `normalize` normalizes one character of a text; None for no normalization.
    """
    literal = [token for token in tokens if not token.normalized]
    others = [token for token in tokens if token.normalized]
    both = ((literal, None), (others, normalize))
    return tuple(_search(found, way) for found, way in both if found)


def _search(
    tokens: Iterable[added_tokens.AddedToken], normalize: Normalize | None
) -> Search:
    found: dict[str, added_tokens.AddedToken] = {}
    for token in tokens:
        text = _normalized(token.content, normalize)
        # A token of accents alone may become nothing.
        if text:
            found.setdefault(text, token)
    pattern = re.escape if normalize is None else _same(normalize)
    longest = sorted(found, key=len, reverse=True)
    contents = [found[text].content for text in longest]
    return Search(
        "|".join("".join(map(pattern, content)) for content in contents),
        found,
        _normal(contents, normalize),
        normalize,
    )


def _normalized(text: str, normalize: Normalize | None) -> str:
    return text if normalize is None else "".join(map(normalize, text))


def _normal(
    contents: Iterable[str], normalize: Normalize | None
) -> dict[str, str]:
    """Returns the characters of normalized tokens by `Search.normal`."""
    if normalize is None:
        return {}
    normal = {normalize(char) for content in contents for char in content}
    alike = _alike(normalize)
    return {
        char: text
        for text in sorted(normal - {""})
        for char in alike.get(text, ())
        if char != text
    }


@functools.cache
def _alike(normalize: Normalize) -> Mapping[str, Sequence[str]]:
    """Returns a normalized text -> the characters that become it."""
    chars: dict[str, list[str]] = {}
    for char in characters.assigned():
        chars.setdefault(normalize(char), []).append(char)
    return chars


@functools.cache
def _same(normalize: Normalize) -> Callable[[str], str]:
    """Returns what makes of a character the pattern of those like it."""
    chars = _alike(normalize)

    def pattern(char: str) -> str:
        normal = normalize(char)
        same = chars.get(normal, [char]) if normal else []
        if not same or same == [normal]:
            return re.escape(normal)
        inside = "".join(f"\\{x}" if x in _IN_CLASS else x for x in same)
        single = f"[{inside}]"
        # What becomes several characters may stand there as these.
        is_several = len(normal) > 1 and "".join(map(normalize, normal)) == (
            normal
        )
        return f"(?:{single}|{re.escape(normal)})" if is_several else single

    return pattern


def spans(found: Sequence[Search], text: str) -> Iterator[Span]:
    """Yields the tokens that all searches find in a text, in order."""
    if not found:
        return
    end = 0
    for span in (*found[0].spans(text), None):
        start = len(text) if span is None else span.start
        if len(found) > 1 and start > end:
            for inner in spans(found[1:], text[end:start]):
                yield Span(end + inner.start, end + inner.end, inner.token)
        if span is not None:
            yield span
            end = span.end


# ---- Tokenizers --------------------------------------------------------------


class AddedTokenizer:
    """Splits one text, in Python, by a tokenizer that knows no added tokens."""

    def __init__(
        self,
        plain: "Tokenizer",
        tokens: added_tokens.Tokens,
        found: Sequence[Search],
    ):
        self._plain, self._found = plain, found
        self._texts = {token.id: token.content for token in tokens}
        self._ids = {token.content: token.id for token in tokens}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of `text`."""
        tokens: list[str] = []
        for _, part, number in self._parts(text):
            if number is None:
                tokens += self._plain.tokenize(part)
            else:
                tokens.append(self._texts[number])
        return tokens

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the tokens and the characters of `text` they come from."""
        tokens: list[tokenization.Token] = []
        for offset, part, number in self._parts(text):
            found = (
                self._plain.tokenize_with_offsets(part)
                if number is None
                else [tokenization.Token(self._texts[number], 0, len(part))]
            )
            tokens += [
                tokenization.Token(x.text, offset + x.start, offset + x.end)
                for x in found
            ]
        return tokens

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens."""
        return [
            self._ids[token]
            if token in self._ids
            else self._plain.convert_tokens_to_ids([token])[0]
            for token in tokens
        ]

    def _parts(
        self, text: str | bytes
    ) -> Iterator[tuple[int, str, int | None]]:
        """Yields start, text and id of each part; the id of text is None."""
        text = tokenization.convert_to_unicode(text)
        end = 0
        for start, stop, token in spans(self._found, text):
            yield end, text[end:start], None
            yield start, text[start:stop], token.id
            end = stop
        yield end, text[end:], None


class AddedBulkTokenizer:
    """Splits many texts, by a tokenizer that knows no added tokens."""

    def __init__(self, plain: "BulkTokenizer", found: Sequence[Search]):
        self._plain, self._found = plain, found

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all tokens [N] int32, and how many by text [T]."""
        parts: list[str] = []
        before: list[int] = []  # the token before a part, or -1
        owner: list[int] = []  # the text of a part
        for number, text in enumerate(texts):
            end, last = 0, -1
            for start, stop, token in spans(self._found, text):
                parts.append(text[end:start])
                before.append(last)
                owner.append(number)
                end, last = stop, token.id
            parts.append(text[end:])
            before.append(last)
            owner.append(number)
        ids, lengths = self._plain.tokenize(parts)
        if len(parts) == len(texts):
            return ids, lengths
        numbers = np.array(before, np.int32)
        is_token = numbers >= 0
        starts = np.cumsum(lengths) - lengths
        ids = np.insert(ids, starts[is_token], numbers[is_token])
        counts = np.zeros(len(texts), np.int64)
        np.add.at(counts, owner, lengths + is_token)
        return ids.astype(np.int32), counts
