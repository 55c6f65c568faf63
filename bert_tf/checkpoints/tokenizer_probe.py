"""Compares the tokenizer of a folder with ours, by the tokens of texts.

The fields of a tokenizer.json do not show what its steps do together. If the
library `tokenizers` is installed, a folder's tokenizer and ours tokenize some
thousand texts, and a folder with different tokens is an error. The differences
that `tokenizer_files` lists are accepted: for such texts, a folder must return
what the library or transformers returns for its vocabulary.
"""

import hashlib
import importlib.util
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import vocabularies
from bert_tf.checkpoints import opened, probe_texts, tf1_files, tokenizer_files
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
    texts = probe_texts.singles(ours.pieces, decode, theirs.added)
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
    for pair in probe_texts.pairs():
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
