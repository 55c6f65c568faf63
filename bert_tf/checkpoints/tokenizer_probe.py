"""Compares the tokenizer of a folder with ours, by the tokens of texts.

The fields of a tokenizer.json do not show what its steps do together. If the
library `tokenizers` is installed, a folder's tokenizer and ours tokenize some
thousand texts, and a folder with different tokens is an error. The differences
that `tokenizer_files` lists are accepted: for such texts, a folder must return
what the library or transformers returns for its vocabulary.
"""

import functools
import hashlib
import importlib.util
import itertools
import json
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import vocabularies
from bert_tf.checkpoints import opened, tf1_files, tokenizer_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    added_tokens,
    tokenizer_config,
    tokenizer_json,
    unigram_tokenizers,
)

import numpy as np
from absl import logging

_MAX_LENGTH = 512  # No text is truncated here.
# Max numbers of ids and of characters of a text in an error.
_MAX_SHOWN, _MAX_CHARACTERS = 12, 60
# Folders that passed in this process, by the content of their files.
_passed: set[str] = set()


class Library(NamedTuple):
    """A tokenizer of the library.

    Attributes:
        tokenizer: Its `tokenizers.Tokenizer`.
        added: Tokens that are found in a text before it is split.
        content: The content of its tokenizer.json.
    """

    tokenizer: Any
    added: tuple[str, ...]
    content: Mapping[str, Any]

    @property
    def lower(self) -> bool:
        """Whether texts are lower-cased."""
        return bool(tokenizer_json.lower_cases(self.content))


class Difference(NamedTuple):
    """A text, or a pair of texts, that the tokenizers encode differently.

    `what` is the name of the numbers: ids or segments.
    """

    texts: tuple[str, ...]
    theirs: list[int]
    ours: list[int]
    what: str = "ids"


# ---- Folders -----------------------------------------------------------------


def check(folder: str, files: vocabularies.Files) -> None:
    """Compares a folder's tokenizer.json with our tokenizer, once in a process.

    Does nothing without the library `tokenizers`, without the file, or if
    either can't be read.

    Args:
        folder: A folder of transformers.
        files: Its vocabulary, with added tokens and settings.

    Raises:
        tf1_files.UnreadableError: The tokens differ.
    """
    if importlib.util.find_spec("tokenizers") is None:
        return
    path = os.path.join(folder, tokenizer_json.FILE)
    names = (tokenizer_config.FILE, tokenizer_config.MODEL)
    others = [os.path.join(folder, x) for x in names]
    contents = [opened.read_bytes(x) or b"" for x in (path, *others)]
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest() + files.sha256
    whole = tokenizer_json.parse(contents[0])
    if digest in _passed or whole is None:
        return
    if tokenizer_json.kind(whole) != vocabularies.KINDS[files.kind].tokenizer:
        return  # Another model's, which is ignored.
    settings, model = (opened.read_json(folder, x) for x in names)
    settings = tokenizer_config.with_class(settings, model)
    found = tokenizer_config.overwrite(whole, settings)
    data = contents[0] if found == whole else None
    theirs = read(found, path, data)
    if theirs is not None and _compare(theirs, files, path):
        _passed.add(digest)


def _compare(theirs: Library, files: vocabularies.Files, path: str) -> bool:
    """Returns whether our tokenizer exists; an error if they differ."""
    try:
        ours = vocabularies.read(files, theirs.lower, path)
        _ = ours.template  # An error if special tokens are missing.
    except InputError:
        return False  # The error is explained where the vocabulary is used.
    # Those that only other files of the folder have.
    own = added_tokens.of_tokenizer(theirs.content, path)
    more = tuple(token for token in ours.added if token not in own)
    tokenizer_files.add_tokens(theirs.tokenizer, more)
    found = differences(theirs, ours)
    if found:
        shortest = min(found, key=lambda x: len("".join(x.texts)))
        raise tf1_files.UnreadableError(_explain(path, shortest))
    return True


def _explain(path: str, found: Difference) -> str:
    texts = " and ".join(repr(_shortened(x)) for x in found.texts)
    both = zip(found.theirs, found.ours, strict=False)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], both)
    start = max(len(list(same)) - 1, 0)
    theirs, ours = (_shown(x, start) for x in (found.theirs, found.ours))
    return (
        f"The tokenizer of {path} and the tokenizer of bert_tf for this "
        f"vocabulary give different {found.what}. If the model was trained "
        "with this file, it can't be used here. If it was trained with the "
        "vocabulary's own files and they are in the folder, remove the file, "
        "so that only they are read. Received: "
        f"{found.what}=[{theirs}] for {texts}, where bert_tf has [{ours}]"
    )


def _shown(numbers: Sequence[int], start: int) -> str:
    end = start + _MAX_SHOWN
    shown = ", ".join(map(str, numbers[start:end]))
    return "..., " * (start > 0) + shown + ", ..." * (len(numbers) > end)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_CHARACTERS:
        return text
    return f"{text[:_MAX_CHARACTERS]}..."


def read(
    found: Mapping[str, Any], name: str, data: bytes | None = None
) -> Library | None:
    """Creates the tokenizer of a tokenizer.json; None if it can't be read.

    Args:
        found: Its content.
        name: Its path, for messages.
        data: The content as JSON, if it is available.
    """
    # Installed only with some extras.
    import tokenizers

    try:
        made = tokenizers.Tokenizer.from_buffer(
            json.dumps(found).encode() if data is None else data
        )
    # The library raises no other type.
    except Exception as error:
        logging.info("%s is not compared with ours: %s", name, error)
        return None
    made.no_truncation()
    made.no_padding()
    added = tuple(
        token.content
        for number, token in made.get_added_tokens_decoder().items()
        if not added_tokens.is_of_rows(token.content, number)
    )
    return Library(made, added, found)


# ---- Comparison --------------------------------------------------------------


def differences(
    theirs: Library, ours: vocabularies.Vocabulary
) -> list[Difference]:
    """Returns the probe texts with differences that are not accepted."""
    found = [*differing_texts(theirs, ours)]
    if any(max(x.theirs, default=0) >= len(ours.pieces) for x in found):
        return found
    found = [x for x in found if not ours.is_tie(x.theirs, x.ours)]
    forms = _forms(theirs, ours, found)
    while found and (form := next(forms, None)):
        found = [x for x in found if _ids(form, *x.texts) != x.theirs]
    return [*found, *_differing_rows(theirs.tokenizer, ours.template)]


def _ids(tokenizer: Any, text: str) -> list[int]:
    # Not in batches, whose threads forks would lose.
    return tokenizer.encode(text, add_special_tokens=False).ids


def differing_texts(
    theirs: Library, ours: vocabularies.Vocabulary
) -> Iterator[Difference]:
    """Yields the texts whose ids differ, without special tokens."""
    decode = theirs.tokenizer.decode
    texts = single_texts(ours.pieces, decode, theirs.added)
    ids, lengths = ours.bulk_tokenizer().tokenize(texts)
    ends = np.cumsum(lengths)
    for text, start, end in zip(texts, ends - lengths, ends, strict=True):
        their, our = _ids(theirs.tokenizer, text), ids[start:end].tolist()
        if their != our:
            yield Difference((text,), their, our)


def _differing_rows(
    theirs: Any, template: vocabularies.Template
) -> Iterator[Difference]:
    """Yields texts around which the special tokens or segments differ."""
    if not theirs.encode("").ids:
        return  # It leaves special tokens to other files.
    has_segments = len(set(template.segments)) > 1
    for pair in pairs_of_texts():
        both = [_ids(theirs, text) for text in pair]
        for count in (1, 2):
            texts, (ids, segments) = pair[:count], template.row(*both[:count])
            if template.last_segment is not None:
                segments = [*segments[:-1], template.last_segment]
            found = theirs.encode(*texts)
            if found.ids != ids:
                yield Difference(texts, found.ids, ids)
            elif has_segments and found.type_ids != segments:
                yield Difference(texts, found.type_ids, segments, "segments")


def _forms(
    theirs: Library,
    ours: vocabularies.Vocabulary,
    found: Sequence[Difference],
) -> Iterator[Any]:
    """Yields the tokenizers whose tokens are accepted where they differ."""
    if not unigram_tokenizers.has_forms(ours):
        made = tokenizer_files.make(ours, _MAX_LENGTH)
        yield from [made.tokenizer] if made else []
        return
    # A large model takes a second to make. With the same scores, the library
    # finds the same tokens as our tokenizer in the same normalized text.
    ids = {number for x in found for number in (*x.theirs, *x.ours)}
    ids -= {token.id for token in ours.added}
    if unigram_tokenizers.has_scores(theirs.content, ours, ids):
        for form in unigram_tokenizers.forms(ours, theirs.tokenizer.model):
            tokenizer_files.add_tokens(form, ours.added)
            yield form


# ---- Texts ------------------------------------------------------------------

# They are the same in every run. Their characters are chosen by Unicode
# category.
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


def single_texts(
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


def pairs_of_texts() -> list[tuple[str, str]]:
    """Returns pairs of texts."""
    lines = [line for line in _LINES if line.strip() and len(line) < 90]
    return [("a", "b"), *zip(lines, reversed(lines), strict=True)]
