"""Tokens added to a tokenizer: `[E1]`, `<user>`, custom words.

As in the `tokenizers` library, they are found in a text before it is split, and
each is one token with one id, for all kinds of vocabularies. `tokenizer_config`
reads the tokens that `add_tokens` and `additional_special_tokens` of
transformers have added, from the files of a folder.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.vocabularies import tokenizer_json

# Special tokens of every sequence -> the only id with which they are special,
# or None for any id. In a text they are text, as in the original.
OF_ROWS: dict[str, int | None] = {
    **dict.fromkeys(
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
    ),
    # XLNet's. Here, so that each process reads files in the same way, whether
    # or not it has imported XLNet.
    "<cls>": 3,
    "<sep>": 4,
}


def is_of_rows(content: str, number: Any) -> bool:
    """Whether a token with this id is one that every row has."""
    return content in OF_ROWS and OF_ROWS[content] in (None, number)


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that is found before a text is split.

    Attributes:
        content: Its text.
        id: Its id, which is also its row in the embedding table.
        lstrip: Whether white space before it belongs to it.
        rstrip: Whether white space after it belongs to it.
        single_word: Whether it is found only where no letter or digit touches
            it.
        normalized: Whether it is found in the normalized text.
        special: Whether transformers leaves it out of decoded text.
    """

    content: str
    id: int
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False
    special: bool = False

    @classmethod
    def parse(cls, found: Any, number: Any, name: str) -> "AddedToken":
        """Reads an entry of the file `name`; InputError if it is no token."""
        entry = found if isinstance(found, Mapping) else {}
        content: Any = entry.get("content")
        flags = {key: entry.get(key, False) for key in _FLAGS}
        is_right = type(number) is int and number >= 0
        is_right &= isinstance(content, str) and content != ""
        if not is_right or not all(type(x) is bool for x in flags.values()):
            raise InputError(
                f"{name}: an added token must have a text, an id from 0 up and "
                "flags that are true or false. Copy or download the file "
                f"again. Received: id={number!r}, {repr(found)[:60]}"
            )
        return cls(content, number, **flags)


_FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")

Tokens = tuple[AddedToken, ...]

# The ids of special tokens that a file lists, or that it names by their use,
# until they get the vocabulary's.
LISTED, NAMED = -1, -2


# ---- Files -------------------------------------------------------------------


def to_decoder(tokens: Tokens) -> dict[str, dict[str, Any]]:
    """Returns what `of_decoder` reads: id -> token."""
    return {
        str(token.id): {
            key: value
            for key, value in dataclasses.asdict(token).items()
            # Vocabularies that were kept before have no single words.
            if key != "id" and (value or key != "single_word")
        }
        for token in tokens
    }


def of_tokenizer(found: Mapping[str, Any], name: str) -> Tokens:
    """Reads the tokens of a tokenizer.json; errors begin with its `name`."""
    return _sorted(
        (
            AddedToken.parse(entry, entry.get("id"), name)
            for entry in tokenizer_json.added(found)
            if not is_of_rows(entry["content"], entry.get("id"))
        ),
        name,
    )


def of_decoder(found: Any, name: str) -> Tokens:
    """Reads an `added_tokens_decoder`; InputError if it is damaged."""
    tokens = []
    entries = found.items() if isinstance(found, dict) else [("", found)]
    for number, entry in entries:
        content = entry.get("content") if isinstance(entry, dict) else None
        place = int(number) if number.isdecimal() else number
        if not isinstance(content, str) or not is_of_rows(content, place):
            tokens.append(AddedToken.parse(entry, place, name))
    return _sorted(tokens, name)


def of_ids(found: Any, special: Mapping[str, AddedToken], name: str) -> Tokens:
    """Reads content -> id; `special` has those that are special."""
    tokens = []
    entries = found.items() if isinstance(found, dict) else [("", found)]
    for content, number in entries:
        if not is_of_rows(content, number):
            entry: dict[str, Any] = {"content": content, "normalized": True}
            if content in special:
                entry = dataclasses.asdict(special[content])
            tokens.append(AddedToken.parse(entry, number, name))
    return _sorted(tokens, name)


def named(found: Mapping[str, Any], name: str) -> dict[str, AddedToken]:
    """Reads the special tokens that a file has without ids, by content.

    Their ids are `LISTED` or `NAMED`: see `with_ids`.
    """
    # Of any name, such as bos_token and ent_token.
    entries = [
        (NAMED, value)
        for key, value in found.items()
        if key.endswith("_token") and value and isinstance(value, (str, dict))
    ]
    # The second has been the name since transformers 5.
    for key in ("additional_special_tokens", "extra_special_tokens"):
        listed = found.get(key) or []
        if isinstance(listed, dict):
            listed = list(listed.values())
        listed = listed if isinstance(listed, list) else [listed]
        entries += [(LISTED, entry) for entry in listed]
    tokens = {}
    for number, entry in entries:
        flags = entry if isinstance(entry, dict) else {"content": entry}
        token = AddedToken.parse({**flags, "special": True}, 0, name)
        if not is_of_rows(token.content, None):
            tokens[token.content] = dataclasses.replace(token, id=number)
    return tokens


def with_ids(tokens: Tokens, ids: Mapping[str, int], name: str) -> Tokens:
    """Gives tokens without ids the vocabulary's, `ids`; sorts all by id.

    Raises InputError, with `name`, if the vocabulary lacks one.
    """
    found = []
    for token in tokens:
        number = token.id if token.id >= 0 else ids.get(token.content)
        if number is None:
            raise InputError(
                f"{name}: the vocabulary must have the special tokens that the "
                "files next to it list. Save the tokenizer and its model "
                "again, or remove the token from additional_special_tokens or "
                f"extra_special_tokens. Received: {token.content!r}"
            )
        if not is_of_rows(token.content, number):
            found.append(dataclasses.replace(token, id=number))
    return _sorted(found, name)


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


# Returns the kind's files with more tokens, whose ids follow its last id.
Append = Callable[[Mapping[str, bytes], Sequence[str]], Mapping[str, bytes]]


def join(
    contents: Mapping[str, bytes],
    tokens: Tokens,
    known: Sequence[str],
    append: Append,
    name: str,
) -> dict[str, bytes]:
    """Returns the files of a vocabulary including its added tokens.

    `known` has the vocabulary's tokens by id, and `append` adds the others. It
    raises InputError, with `name`, if their ids do not follow the last id of
    `known`.
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
