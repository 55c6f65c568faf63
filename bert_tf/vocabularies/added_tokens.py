"""Tokens added to a tokenizer: `[E1]`, `<user>`, words of one's own.

They are found in a text before it is split, as the library `tokenizers` does,
and each is one token with one id, whatever kind the vocabulary is of. What
`add_tokens` and `additional_special_tokens` of transformers have added is read
from the files of a folder, by `tokenizer_config`.

A token that is `normalized` is found whatever the case of the text is, if the
vocabulary lower-cases; also with other accents, if it strips them. Only accents
that stand in the text as characters of their own, inside such a token, and
tokens that overlap are treated otherwise than by `tokenizers`.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import characters, tokenization
from bert_tf.errors import InputError
from bert_tf.vocabularies import tokenizer_json

import numpy as np

if TYPE_CHECKING:
    from bert_tf.vocabularies.vocabulary import BulkTokenizer, Tokenizer

# Those that every row has, by the names that all vocabularies here use. In a
# text they are text, as in the original.
_OF_ROWS = frozenset(
    [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "<pad>",
        "<unk>",
        "<s>",
        "</s>",
        "<mask>",
        "<s>NOTUSED",
        "</s>NOTUSED",
        "<unk>NOTUSED",
    ]
)

# White space as `tokenizers` sees it, for both Python and TensorFlow.
_SPACES = "[\\t-\\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_IN_CLASS = frozenset("\\]^-[")


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that is found before a text is split.

    Attributes:
        content: How it is written.
        id: Its id, which is also that of its row in the embedding table.
        lstrip: Whether white space before it belongs to it.
        rstrip: Whether white space behind it does.
        normalized: Whether it is found in the normalized text.
        special: Whether transformers leaves it out of decoded text.
    """

    content: str
    id: int
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False

    @classmethod
    def parse(cls, found: Any, number: Any, name: str) -> "AddedToken":
        """Reads an entry of the file `name`; InputError if it is no token."""
        entry = found if isinstance(found, Mapping) else {}
        content: Any = entry.get("content")
        flags = {
            key: entry.get(key, False)
            for key in ("lstrip", "rstrip", "normalized", "special")
        }
        is_right = type(number) is int and number >= 0
        is_right &= isinstance(content, str) and content != ""
        if not is_right or not all(type(x) is bool for x in flags.values()):
            raise InputError(
                f"{name}: an added token must have a text, an id from 0 up and "
                "flags that are true or false. Copy or download the file "
                f"again. Received: id={number!r}, {repr(found)[:60]}"
            )
        if entry.get("single_word"):
            raise InputError(
                f"{name}: the added token {content!r} is found only between "
                "words (single_word), which this project does not do. Add it "
                "with single_word=False, or take it out. "
                "Received: single_word=true"
            )
        return cls(content, number, **flags)


Tokens = tuple[AddedToken, ...]


# ---- Files -------------------------------------------------------------------


def to_decoder(tokens: Tokens) -> dict[str, dict[str, Any]]:
    """Returns what `of_decoder` reads: id -> token."""
    return {
        str(token.id): {
            key: value
            for key, value in dataclasses.asdict(token).items()
            if key != "id"
        }
        for token in tokens
    }


def of_tokenizer(found: Mapping[str, Any], name: str) -> Tokens:
    """Reads the tokens of a tokenizer.json; errors begin with its `name`."""
    return _sorted(
        (
            AddedToken.parse(entry, entry.get("id"), name)
            for entry in tokenizer_json.added(found)
            if entry["content"] not in _OF_ROWS
        ),
        name,
    )


def of_decoder(found: Any, name: str) -> Tokens:
    """Reads an `added_tokens_decoder`; InputError if it is damaged."""
    tokens = []
    entries = found.items() if isinstance(found, dict) else [("", found)]
    for number, entry in entries:
        content = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(content, str) or content not in _OF_ROWS:
            place = int(number) if number.isdecimal() else number
            tokens.append(AddedToken.parse(entry, place, name))
    return _sorted(tokens, name)


def of_ids(found: Any, special: Any, name: str) -> Tokens:
    """Reads content -> id; `special` says which are special, if anything."""
    uses = special if isinstance(special, dict) else {}
    listed = uses.get("additional_special_tokens") or []
    # A list: what a damaged file holds need not have a hash.
    names = [x.get("content") if isinstance(x, dict) else x for x in listed]
    tokens = []
    entries = found.items() if isinstance(found, dict) else [("", found)]
    for content, number in entries:
        if content not in _OF_ROWS:
            is_special = content in names
            flags = {"special": is_special, "normalized": not is_special}
            entry = {"content": content, **flags}
            tokens.append(AddedToken.parse(entry, number, name))
    return _sorted(tokens, name)


def _sorted(tokens: Iterable[AddedToken], name: str) -> Tokens:
    found = tuple(sorted(tokens, key=lambda token: token.id))
    for values in ([x.id for x in found], [x.content for x in found]):
        counts = collections.Counter(values)
        if twice := [x for x in values if counts[x] > 1]:
            raise InputError(
                f"{name}: two added tokens are the same. Copy or download the "
                f"file again. Received: {twice[0]!r} twice"
            )
    return found


# Returns the kind's files with more tokens, whose ids go on with its own.
Append = Callable[[Mapping[str, bytes], Sequence[str]], Mapping[str, bytes]]


def join(
    contents: Mapping[str, bytes],
    tokens: Tokens,
    known: Sequence[str],
    append: Append,
    name: str,
) -> dict[str, bytes]:
    """Returns the own files of a vocabulary with the tokens that were added.

    `known` holds the kind's own tokens by id, and `append` adds the others.
    InputError, by `name`, if ids do not go on with those of `known`.
    """
    places = {token: place for place, token in enumerate(known)}
    new = [token for token in tokens if token.content not in places]
    wrong = [
        (token, places.get(token.content, place))
        for token, place in (
            *((x, places[x.content]) for x in tokens if x.content in places),
            *zip(new, range(len(known), len(known) + len(new)), strict=True),
        )
        if token.id != place
    ]
    if wrong:
        token, place = wrong[0]
        raise InputError(
            f"{name}: the ids of added tokens must be those that the "
            "vocabulary has for them, or go on with its last. Save the "
            "tokenizer and its model again. Received: "
            f"{token.content!r} with id={token.id}, where {place} is expected"
        )
    added = [token.content for token in new]
    return dict(append(contents, added) if added else contents)


# ---- Finding them ------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Found:
    """How tokens are found, as patterns for both Python's `re` and RE2.

    Attributes:
        pattern: Finds any of them.
        literal: Matched text -> id of those that are written in one way.
        others: Pattern of the whole of a match -> id of the others.
    """

    pattern: str
    literal: Mapping[str, int]
    others: Mapping[str, int]

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


def patterns(tokens: Tokens, normalize: Callable[[str], str] | None) -> Found:
    """Says how tokens are found, the longest of those at the same place.

    `normalize` is what becomes of one character of a text; None if all stay.
    """
    # In the order of `tokenizers`: those of the text as it is come first.
    ordered = sorted(tokens, key=lambda x: (x.normalized, -len(x.content)))
    literal: dict[str, int] = {}
    others: dict[str, int] = {}
    for token in ordered:
        pattern = re.escape(token.content)
        if token.normalized and normalize is not None:
            pattern = "".join(_same(normalize)(char) for char in token.content)
        if token.lstrip:
            pattern = _SPACES + pattern
        if token.rstrip:
            pattern += _SPACES
        if pattern == re.escape(token.content):
            literal.setdefault(token.content, token.id)
        others.setdefault(pattern, token.id)
    whole = "|".join(others)
    for content in literal:
        del others[re.escape(content)]
    return Found(whole, literal, others)


@functools.cache
def _same(normalize: Callable[[str], str]) -> Callable[[str], str]:
    """Returns what makes of a character the pattern of those like it."""
    chars: dict[str, list[str]] = {}
    for char in characters.assigned():
        chars.setdefault(normalize(char), []).append(char)

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

    def __init__(self, plain: "Tokenizer", tokens: Tokens, found: Found):
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
