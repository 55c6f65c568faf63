"""What makes ids of text, by kind, without TensorFlow.

    vocabulary = vocabularies.open("vocab.txt", do_lower_case=True)
    vocabulary.tokenizer().tokenize("UNwanted")  # un ##want ##ed

A kind is a file here with a `Vocabulary`, a row of `KINDS` and a tokenizer each
in `text.graph` and `text.graph_offsets`. Tasks, exports and data creation know
only what it says of itself, above all the template of a row. A kind from
elsewhere joins by three calls, before any file is read:

    vocabularies.register(Letters.kind, vocabularies.Kind(...))
    graph.register(Letters.kind, Tokenizer)
    graph_offsets.register(Letters.kind, Tokenizer)
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    added_tokens,
    byte_pairs,
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
    Piece,
    Special,
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
    "Piece",
    "Special",
    "Spelling",
    "Template",
    "Tokenizer",
    "Vocabulary",
    "among",
    "difference",
    "find",
    "listed",
    "of_list",
    "open",
    "open_files",
    "path_in",
    "read",
    "register",
]

# What errors say is missing where there is no vocabulary of any kind.
USUAL_FILE = word_pieces.FILE

# The name of a kind -> how its files are opened and read.
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
    sentence_pieces.SentencePieces.kind: Kind(
        files=(sentence_pieces.FILE,),
        endings=(".model", ".spm"),
        open=sentence_pieces.open_file,
        read=sentence_pieces.SentencePieces.parse,
        tokenizer="Unigram",
        difference=sentence_pieces.difference,
        append=sentence_pieces.append,
        check=unigram_json.check,
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
    """Adds a kind; InputError if its name or names of files are taken.

    The name is `kind` of its vocabularies.
    """
    for other, row in KINDS.items():
        if other == name and row != kind:
            raise InputError(
                "There is a kind of vocabulary of this name already: choose "
                f"another. Received: name={name!r}"
            )
        taken = {*row.files, *row.endings} & {*kind.files, *kind.endings}
        if other != name and taken:
            raise InputError(
                f"Kinds are told apart by the names of their files, and {other}"
                f" has {min(taken)} already: choose others. Received: "
                f"name={name!r}, files={kind.files}, endings={kind.endings}"
            )
    KINDS[name] = kind


def open(
    path: epath.PathLike, do_lower_case: bool, say: bool = True
) -> Vocabulary:
    """Reads a vocabulary of a model that lower-cases text or does not.

    Its kind goes by its name; kinds without a casing take no notice of
    `do_lower_case`. Pass `say=False` where another process reads the same file
    and logs what was changed. Raises InputError if the file is no vocabulary.
    """
    return read(open_files(path, say), do_lower_case, str(path))


def open_files(path: epath.PathLike, say: bool = True) -> Files:
    """Reads the files of a vocabulary; arguments are those of `open`.

    Of several files in one folder any may be named, or a tokenizer.json. Added
    tokens and settings that files next to it hold belong to it.
    """
    kind = _kind(path)
    row = KINDS[kind]
    contents = row.open(path, say)
    is_named = pathlib.PurePath(path).name in row.files
    config = tokenizer_config.beside(path, is_named, row.settings)
    whole, tokens = config.tokenizer, config.added
    if whole is not None and tokenizer_json.kind(whole) == row.tokenizer:
        row.check(whole, config.name)
        if tokenizer_json.post_processors(whole):
            vocabulary = row.read(contents, False, str(path))
            tokenizer_rows.check(whole, vocabulary, config.name)
    if tokens and row.append is None:
        raise InputError(
            f"{path}: a vocabulary of the kind {kind} takes no added tokens. "
            f"Received: {tokens[0].content!r} beside it"
        )
    if tokens and row.append is not None:
        known = row.read(contents, False, str(path)).pieces
        contents = added_tokens.join(
            contents, tokens, known, row.append, str(path)
        )
    data = tokenizer_config.to_json(tokens, config.settings)
    more = {tokenizer_config.FILE: data} if data else {}
    return Files(kind, {**contents, **more})


def _kind(path: epath.PathLike) -> str:
    """Returns the kind that a file is of: by its name, or by what is in it."""
    place = pathlib.PurePath(path)
    if place.suffix == ".json":
        model = tokenizer_json.model_type(path)
        for name, kind in KINDS.items():
            if model and kind.tokenizer == model:
                return name
    # Names first: one kind's file may end as another's do.
    for name, kind in KINDS.items():
        if place.name in kind.files:
            return name
    for name, kind in KINDS.items():
        if place.suffix and place.suffix in kind.endings:
            return name
    # Files of other names are of word pieces as well: the original reads a
    # vocabulary of any name.
    return word_pieces.WordPiece.kind


def find(folder: epath.PathLike, say: bool = True) -> Files | None:
    """Reads the vocabulary that a folder holds whole; None if it holds none.

    `say` is as in `open`.
    """
    found = path_in(folder)
    return None if found is None else open_files(found, say)


def path_in(folder: epath.PathLike) -> str | None:
    """Returns the first file of the vocabulary that a folder holds, if any."""
    for kind in KINDS.values():
        paths = [epath.Path(folder) / file for file in kind.files]
        if all(path.exists() and not path.is_dir() for path in paths):
            return os.fspath(paths[0])
    return None


def difference(given: Files, brought: Files) -> str:
    """Says how a vocabulary is not a checkpoint's, for users; "" if it is."""
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
    said = [json.dumps(dict(x.settings)) for x in (own, their)]
    return f"its settings are {said[0]}, and the checkpoint's are {said[1]}"


def among(contents: Mapping[str, bytes]) -> Files | None:
    """Picks the vocabulary out of files, name -> content; None of none."""
    for name, kind in KINDS.items():
        if all(file in contents for file in kind.files):
            names = [*kind.files, tokenizer_config.FILE]
            return Files(name, {x: contents[x] for x in names if x in contents})
    return None


def read(files: Files, do_lower_case: bool, name: str) -> Vocabulary:
    """Makes a vocabulary of its files; `name` is what errors call it.

    Raises InputError if they are no vocabulary, or of a kind that is not known.
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
    """Returns the vocabulary that a plain list of pieces is: of word pieces."""
    vocabulary = word_pieces.WordPiece(tuple(pieces), do_lower_case=False)
    return Files(vocabulary.kind, vocabulary.files)


def listed(files: Files, pieces: Sequence[str]) -> list[str] | None:
    """Returns the pieces if `of_list` takes them; None of another kind."""
    is_plain = list(files.contents) == [word_pieces.FILE]
    return list(pieces) if is_plain else None
