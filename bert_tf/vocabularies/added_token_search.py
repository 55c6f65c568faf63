"""Finds added tokens in texts, and splits the text between them.

A token that is `normalized` is found in any case, if the vocabulary
lower-cases, and with any accents, if the vocabulary strips them. Results differ
from `tokenizers` only for combining accents inside such a token, and for tokens
that overlap.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bert_tf import characters, tokenization
from bert_tf.vocabularies import added_tokens

import numpy as np

if TYPE_CHECKING:
    from bert_tf.vocabularies.vocabulary import BulkTokenizer, Tokenizer

# White space as `tokenizers` sees it, for both Python and TensorFlow.
SPACES = "[\\t-\\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_IN_CLASS = frozenset("\\]^-[")


# Returns what a character of a text becomes.
Normalize = Callable[[str], str]


class Group(NamedTuple):
    """The flags of tokens that are looked up in the same way."""

    lstrip: bool
    rstrip: bool
    normalized: bool


@dataclasses.dataclass(frozen=True)
class Found:
    """How tokens are found, as patterns for both Python's `re` and RE2.

    Attributes:
        pattern: Finds any of them.
        literal: Matched text -> id of those that are written in one way.
        others: Pattern of the whole of a match -> id of the others.
        groups: The others by their flags: text -> id. A match is stripped and
            normalized as the flags say, then looked up. Empty where that is
            ambiguous.
        normal: A character of a match -> its normalized form, if it changes.
    """

    pattern: str
    literal: Mapping[str, int]
    others: Mapping[str, int]
    groups: Mapping[Group, Mapping[str, int]]
    normal: Mapping[str, str]

    @functools.cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.pattern)

    def id_of(self, match: str) -> int:
        """Returns the id of what `regex` found."""
        number = self._ids.get(match)
        if number is None:
            number = next(id for x, id in self._whole if x.fullmatch(match))
            self._ids[match] = number
        return number

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        """Text -> id of what was found before: few words have many cases."""
        return dict(self.literal)

    @functools.cached_property
    def _whole(self) -> list[tuple[re.Pattern[str], int]]:
        return [(re.compile(x), id) for x, id in self.others.items()]


def patterns(
    tokens: added_tokens.Tokens, normalize: Normalize | None
) -> Found:
    """Returns the patterns that find tokens, the longest at each position.

    `normalize` normalizes one character of a text; None for no normalization.
    """
    # In the order of `tokenizers`: tokens in unnormalized text come first.
    ordered = sorted(tokens, key=lambda x: (x.normalized, -len(x.content)))
    literal: dict[str, int] = {}
    others: dict[str, added_tokens.AddedToken] = {}
    for token in ordered:
        pattern = re.escape(token.content)
        if token.normalized and normalize is not None:
            pattern = "".join(_same(normalize)(char) for char in token.content)
        if token.lstrip:
            pattern = SPACES + pattern
        if token.rstrip:
            pattern += SPACES
        if pattern == re.escape(token.content):
            literal.setdefault(token.content, token.id)
        others.setdefault(pattern, token)
    whole = "|".join(others)
    for content in literal:
        del others[re.escape(content)]
    return Found(
        whole,
        literal,
        {pattern: token.id for pattern, token in others.items()},
        _group(others.values(), normalize),
        _normal(others.values(), normalize),
    )


def _group(
    tokens: Iterable[added_tokens.AddedToken], normalize: Normalize | None
) -> dict[Group, dict[str, int]]:
    """Returns the tokens by `Found.groups`."""
    groups: dict[Group, dict[str, int]] = {}
    seen: set[str] = set()  # Also of other groups: one match may fit both.
    for token in tokens:
        is_normal = token.normalized and normalize is not None
        text = token.content
        if is_normal and normalize is not None:
            text = "".join(normalize(char) or char for char in text)
        if text in seen or text != text.strip():
            return {}
        seen.add(text)
        flags = Group(token.lstrip, token.rstrip, is_normal)
        groups.setdefault(flags, {})[text] = token.id
    return groups


def _normal(
    tokens: Iterable[added_tokens.AddedToken], normalize: Normalize | None
) -> dict[str, str]:
    """Returns the characters of normalized tokens by `Found.normal`."""
    if normalize is None:
        return {}
    contents = (token.content for token in tokens if token.normalized)
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
        same = chars.get(normal, [char]) if normal else [char]
        if len(same) == 1 and same[0] == normal:
            return re.escape(normal)
        inside = "".join(f"\\{x}" if x in _IN_CLASS else x for x in same)
        single = f"[{inside}]"
        # What becomes several characters may stand there as these.
        return (
            f"(?:{single}|{re.escape(normal)})" if len(normal) > 1 else single
        )

    return pattern


# ---- Tokenizers --------------------------------------------------------------


class AddedTokenizer:
    """Splits one text, in Python, by a tokenizer that knows no added tokens."""

    def __init__(
        self, plain: "Tokenizer", tokens: added_tokens.Tokens, found: Found
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
                tokenization.Token(x.piece, offset + x.start, offset + x.end)
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
        for match in self._found.regex.finditer(text):
            yield end, text[end : match.start()], None
            yield match.start(), match[0], self._found.id_of(match[0])
            end = match.end()
        yield end, text[end:], None


class AddedBulkTokenizer:
    """Splits many texts, by a tokenizer that knows no added tokens."""

    def __init__(self, plain: "BulkTokenizer", found: Found):
        self._plain, self._found = plain, found

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all tokens [N] int32, and how many by text [T]."""
        parts: list[str] = []
        before: list[int] = []  # the token before a part, or -1
        owner: list[int] = []  # the text of a part
        for number, text in enumerate(texts):
            end, last = 0, -1
            for match in self._found.regex.finditer(text):
                parts.append(text[end : match.start()])
                before.append(last)
                owner.append(number)
                end, last = match.end(), self._found.id_of(match[0])
            parts.append(text[end:])
            before.append(last)
            owner.append(number)
        ids, lengths = self._plain.tokenize(parts)
        if len(parts) == len(texts):
            return ids, lengths
        token = np.array(before, np.int32)
        is_token = token >= 0
        starts = np.cumsum(lengths) - lengths
        ids = np.insert(ids, starts[is_token], token[is_token])
        counts = np.zeros(len(texts), np.int64)
        np.add.at(counts, owner, lengths + is_token)
        return ids.astype(np.int32), counts
