"""Vocabularies of all kinds, and their tokenizers without TensorFlow.

    vocabulary = vocabularies.open("vocab.txt", do_lower_case=True)
    vocabulary.tokenizer().tokenize("UNwanted")  # un ##want ##ed

A kind is a file here with a `Vocabulary` class, an entry of `KINDS`, and a
tokenizer each in `text_graph` and `graph_offsets`. Tasks, exports and data
creation only use what a vocabulary reports about itself, above all its
template. Three calls register a custom kind, before any file is read:

    vocabularies.register(Letters.kind, vocabularies.Kind(...))
    text_graph.register(Letters.kind, Tokenizer)
    graph_offsets.register(Letters.kind, Tokenizer)
"""

import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import terminals
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    added_tokens,
    byte_pairs,
    fairseq_sentence_pieces,
    sentence_pieces,
    symbols,
    tokenizer_config,
    tokenizer_json,
    tokenizer_rows,
    unigram_json,
    word_pieces,
)
from bert_tf.vocabularies.kinds import Files, Kind
from bert_tf.vocabularies.vocabulary import (
    BulkTokenizer,
    Special,
    SpecialToken,
    Spelling,
    Template,
    Tokenizer,
    Vocabulary,
)

from etils import epath

__all__ = [
    "KINDS",
    "USUAL_FILE",
    "BulkTokenizer",
    "Files",
    "Kind",
    "Special",
    "SpecialToken",
    "Spelling",
    "Template",
    "Tokenizer",
    "Vocabulary",
    "among",
    "difference",
    "find",
    "listed",
    "named",
    "of_list",
    "open",
    "open_files",
    "path_in",
    "read",
    "register",
    "with_settings",
]

# The file that errors name as missing if there is no vocabulary of any kind.
USUAL_FILE = word_pieces.FILE

# Name of a kind -> how its files are opened and read.
KINDS: dict[str, Kind] = {
    word_pieces.WordPiece.kind: Kind(
        files=(word_pieces.FILE,),
        endings=(".txt",),
        open=word_pieces.open_file,
        read=word_pieces.WordPiece.of_contents,
        tokenizer="WordPiece",
        difference=word_pieces.difference,
        append=word_pieces.append,
        settings=word_pieces.WordPiece.setting_names,
        check=tokenizer_json.check_word_pieces,
    ),
    byte_pairs.BytePairs.kind: Kind(
        files=byte_pairs.FILES,
        endings=(".json",),
        open=byte_pairs.open_files,
        read=byte_pairs.BytePairs.of_contents,
        tokenizer="BPE",
        difference=byte_pairs.difference,
        append=byte_pairs.append,
        settings=byte_pairs.BytePairs.setting_names,
        check=tokenizer_json.check_byte_pairs,
    ),
    # Before ALBERT's, whose type in a tokenizer.json is the same.
    fairseq_sentence_pieces.FairseqSentencePieces.kind: Kind(
        files=(fairseq_sentence_pieces.FILE,),
        endings=(),
        open=fairseq_sentence_pieces.open_file,
        read=fairseq_sentence_pieces.FairseqSentencePieces.parse,
        tokenizer="Unigram",
        owns=fairseq_sentence_pieces.owns,
        difference=sentence_pieces.difference,
        append=fairseq_sentence_pieces.append,
        check=fairseq_sentence_pieces.check,
    ),
    sentence_pieces.SentencePieces.kind: Kind(
        files=(sentence_pieces.FILE,),
        endings=(".model", ".spm"),
        open=sentence_pieces.open_file,
        read=sentence_pieces.SentencePieces.parse,
        tokenizer="Unigram",
        difference=sentence_pieces.difference,
        append=sentence_pieces.append,
        check=unigram_json.check,
        objective="sop",
    ),
    symbols.Symbols.kind: Kind(
        files=(symbols.FILE,),
        endings=(".symbols",),
        open=symbols.open_file,
        read=symbols.Symbols.of_contents,
        tokenizer="WordLevel",
        difference=symbols.difference,
        append=symbols.append,
    ),
}


def register(name: str, kind: Kind) -> None:
    """Registers a kind; InputError if its name or file names are taken.

    The name is the `kind` of its vocabularies.
    """
    for other, row in KINDS.items():
        if other == name and row != kind:
            raise InputError(
                "There is a kind of vocabulary of this name already: choose "
                f"another. Received: name={name!r}"
            )
        taken = {*row.files, *row.endings} & {*kind.files, *kind.endings}
        if other != name and taken and kind.fits is None:
            raise InputError(
                f"Kinds are told apart by the names of their files, and {other}"
                f" has {min(taken)} already: choose others. Received: "
                f"name={name!r}, files={kind.files}, endings={kind.endings}"
            )
    KINDS[name] = kind


def open(
    path: epath.PathLike, do_lower_case: bool, say: bool = True
) -> Vocabulary:
    """Reads the vocabulary of a model that lower-cases text or does not.

    The file name determines the kind; kinds without casing ignore
    `do_lower_case`. Pass `say=False` if another process reads the same file and
    logs the changes to it. Raises InputError if the file is not a vocabulary.
    """
    return read(open_files(path, say), do_lower_case, str(path))


def open_files(path: epath.PathLike, say: bool = True) -> Files:
    """Reads the files of a vocabulary; for the arguments see `open`.

    If the vocabulary has several files in one folder, `path` may be any of
    them, or a tokenizer.json. Added tokens and settings in files next to it are
    included.

    Raises:
        InputError: The file is no vocabulary, or the tokenizer.json next to it
            has other tokens.
    """
    return _open_files(path, say, follows_tokenizer=False)


def _open_files(
    path: epath.PathLike, say: bool, follows_tokenizer: bool
) -> Files:
    """Reads a vocabulary, or the tokenizer.json next to it if they disagree.

    Without `follows_tokenizer` that is an InputError.
    """
    kind = _kind(path)
    row = KINDS[kind]
    contents = row.open(path, say)
    is_named = pathlib.PurePath(path).name in row.files
    config = tokenizer_config.read(path, is_named, row.settings, row.tokenizer)
    whole, is_other = config.tokenizer, False
    if whole is not None and tokenizer_json.kind(whole) == row.tokenizer:
        row.check(whole, config.name)
        is_other = config.name != str(path) and row.owns(whole)
    else:
        whole = None
    ids: dict[str, int] = {}
    if any(token.id < 0 for token in config.added):
        ids |= row.read(contents, False, str(path)).ids
        if is_other:
            theirs = row.open(config.name, False)
            ids |= row.read(theirs, False, config.name).ids
    tokens = _with_ids(config.added, ids, str(path))
    config = config._replace(added=tokens)
    if is_other:
        problem = _contradiction(row, contents, config, str(path))
        if problem and not follows_tokenizer:
            raise InputError(
                f"{path} and {config.name} must hold the same tokens. "
                "Delete the one that is wrong, or give tokenizer.json, "
                f"which transformers reads. Received: {problem}"
            )
        if problem:
            terminals.warn_once(
                f"{config.name} is read instead of {path}, as by "
                f"transformers: {problem}. Delete the one that is wrong."
            )
            contents = row.open(config.name, say)
    if whole is not None and tokenizer_json.post_processors(whole):
        vocabulary = row.read(contents, False, str(path))
        tokenizer_rows.check(whole, vocabulary, config.name)
    contents = _with_added(row, contents, tokens, str(path))
    data = tokenizer_config.to_json(tokens, config.settings)
    more = {tokenizer_config.FILE: data} if data else {}
    return Files(kind, {**contents, **more})


def _with_ids(
    tokens: added_tokens.Tokens, ids: Mapping[str, int], name: str
) -> added_tokens.Tokens:
    """Gives tokens without ids the vocabulary's; warns of those it lacks."""
    unknown = [
        token
        for token in tokens
        if token.id == added_tokens.NAMED and token.content not in ids
    ]
    for token in unknown:
        terminals.warn_once(
            f"{name} lacks {token.content!r}, which a file next to it names as "
            "a special token, so it is text here. transformers gives it the "
            "id after the last, for which the model has no row."
        )
    known = tuple(token for token in tokens if token not in unknown)
    return added_tokens.with_ids(known, ids, name)


def _with_added(
    row: Kind,
    contents: Mapping[str, bytes],
    tokens: added_tokens.Tokens,
    name: str,
) -> Mapping[str, bytes]:
    """Returns the contents of a kind's own files with added tokens."""
    if not tokens:
        return contents
    if row.append is None:
        raise InputError(
            f"{name}: this kind of vocabulary takes no added tokens. "
            f"Received: {tokens[0].content!r} next to it"
        )
    known = row.read(contents, False, name).pieces
    return added_tokens.join(contents, tokens, known, row.append, name)


def _contradiction(
    row: Kind,
    contents: Mapping[str, bytes],
    config: tokenizer_config.Config,
    path: str,
) -> str:
    """Describes how files differ from the tokenizer.json; "" if they agree."""
    theirs = row.open(config.name, False)
    added = [token.content for token in config.added]
    # Added tokens may follow the last one.
    own, other = (
        dict.fromkeys([*row.read(x, False, name).pieces, *added])
        for x, name in ((contents, path), (theirs, config.name))
    )
    pairs = itertools.zip_longest(own, other)
    for number, (token, their) in enumerate(pairs):
        if token != their:
            return (
                f"token {number} is {token!r}, and {their!r} in tokenizer.json"
            )
    return row.difference(
        _with_added(row, contents, config.added, path),
        _with_added(row, theirs, config.added, config.name),
    )


def _kind(path: epath.PathLike) -> str:
    """Returns the kind of a file, by its name and its content."""
    if pathlib.PurePath(path).suffix == ".json":
        whole = tokenizer_json.find(path)
        model = whole and tokenizer_json.kind(whole)
        for name, kind in _ordered():
            if whole and kind.tokenizer == model and kind.owns(whole):
                return name
    # A kind that checks the content may leave the file to the next one.
    return next(
        name
        for name in named(path)
        if (kind := KINDS[name]).fits is None
        or kind.has(kind.open(path, False))
    )


def _ordered() -> list[tuple[str, Kind]]:
    """Returns the kinds by name, first those that check contents."""
    return sorted(KINDS.items(), key=lambda x: x[1].fits is None)


def named(path: epath.PathLike) -> list[str]:
    """Returns the kinds that read files of this name, in this order."""
    place, rows = pathlib.PurePath(path), _ordered()
    # Names first, because a file of one kind may end like another kind's files.
    own = [x for x, kind in rows if place.name in kind.files]
    ending = [x for x, kind in rows if place.suffix in kind.endings]
    # Files of other names are WordPiece vocabularies, too: the original reads a
    # vocabulary of any name.
    return [*own, *ending, word_pieces.WordPiece.kind]


def find(folder: epath.PathLike) -> Files | None:
    """Reads the vocabulary in a folder; None unless all its files are there.

    A tokenizer.json with other tokens counts instead, with a warning, as in
    transformers.
    """
    found = path_in(folder)
    if found is None:
        return None
    return _open_files(found, say=True, follows_tokenizer=True)


def with_settings(
    files: Files, settings: Mapping[str, Any], lower: bool | None, name: str
) -> Files:
    """Returns a vocabulary with settings that another library's file has.

    Args:
        files: The vocabulary, without settings.
        settings: By their names here. Settings of other kinds are ignored.
        lower: Whether text is lower-cased; None if that is unknown.
        name: The file, for errors.
    """
    own = {x: settings[x] for x in KINDS[files.kind].settings if x in settings}
    # Checks the types.
    both = json.dumps({**own, "do_lower_case": lower})
    tokenizer_config.parse(both.encode(), name)
    data = tokenizer_config.to_json((), tokenizer_config.meant(own, lower))
    more = {tokenizer_config.FILE: data} if data else {}
    return Files(files.kind, {**files.contents, **more})


def path_in(folder: epath.PathLike) -> str | None:
    """Returns the path of the first vocabulary file in a folder, if any."""
    for kind in KINDS.values():
        paths = [epath.Path(folder) / file for file in kind.files]
        if all(path.exists() and not path.is_dir() for path in paths):
            return os.fspath(paths[0])
    return None


def difference(given: Files, brought: Files, lower: bool | None = None) -> str:
    """Describes how a vocabulary differs from a checkpoint's, or "".

    `lower` is whether the checkpoint lower-cases text; None if that is unknown.
    """
    if given.kind != brought.kind:
        kinds = [x.kind.replace("_", " ") for x in (given, brought)]
        return f"it is of {kinds[0]}, and the checkpoint's of {kinds[1]}"
    ours, theirs = (
        tokenizer_config.split(x.contents) for x in (given, brought)
    )
    found = KINDS[given.kind].difference(ours[0], theirs[0])
    if found or ours[1] == theirs[1]:
        return found
    own, their = (
        tokenizer_config.parse(x[1] or b"{}", tokenizer_config.FILE)
        for x in (ours, theirs)
    )
    if own.added != their.added:
        return "other tokens are added to it"
    said = [tokenizer_config.meant(x.settings, lower) for x in (own, their)]
    if said[0] == said[1]:
        return ""
    first, second = map(json.dumps, said)
    return f"its settings are {first}, and the checkpoint's are {second}"


def among(contents: Mapping[str, bytes]) -> Files | None:
    """Picks the vocabulary from files, name -> content; None without one."""
    for name, kind in _ordered():
        if kind.has(contents):
            names = [*kind.files, tokenizer_config.FILE]
            return Files(name, {x: contents[x] for x in names if x in contents})
    return None


def read(files: Files, do_lower_case: bool, name: str) -> Vocabulary:
    """Creates a vocabulary from its files; errors call it `name`.

    Raises InputError if the files are not a vocabulary, or of an unknown kind.
    """
    if files.kind not in KINDS:
        raise InputError(
            f"{name} is of a kind of vocabulary that is not known. Give one of "
            f"{', '.join(KINDS)}. Received: kind={files.kind}"
        )
    own, data = tokenizer_config.split(files.contents)
    vocabulary = KINDS[files.kind].read(own, do_lower_case, name)
    if data is None:
        return vocabulary
    file = tokenizer_config.FILE
    config = tokenizer_config.parse(data, f"{name}, {file}")
    tokens = config.added
    wrong = [x for x in tokens if vocabulary.ids.get(x.content) != x.id]
    if wrong:
        raise InputError(
            f"{name}: the vocabulary must have the tokens that {file} adds. "
            "Copy both again from one place. "
            f"Received: {wrong[0].content!r} with id={wrong[0].id}"
        )
    settings = {
        key: value
        for key, value in config.settings.items()
        if key in vocabulary.setting_names
    }
    return dataclasses.replace(vocabulary, added=tokens, **settings)


def of_list(pieces: Sequence[str]) -> Files:
    """Returns a plain list of tokens as a WordPiece vocabulary."""
    vocabulary = word_pieces.WordPiece(tuple(pieces), do_lower_case=False)
    return Files(vocabulary.kind, vocabulary.files)


def listed(files: Files, pieces: Sequence[str]) -> list[str] | None:
    """Returns the tokens if `of_list` accepts them, None for another kind."""
    is_plain = list(files.contents) == [word_pieces.FILE]
    return list(pieces) if is_plain else None
