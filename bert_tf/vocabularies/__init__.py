"""What makes ids of text, by kind, without TensorFlow.

    vocabulary = vocabularies.open("vocab.txt", do_lower_case=True)
    vocabulary.tokenizer().tokenize("UNwanted")  # un ##want ##ed

A kind is a file here with a `Vocabulary`, and a row each of `KINDS` and of
`text.graph.TOKENIZERS`. Tasks, exports and data creation know only what it says
of itself, above all the template of a row.
"""

import pathlib

from bert_tf.errors import InputError
from bert_tf.vocabularies import byte_pairs, sentence_pieces, word_pieces
from bert_tf.vocabularies.kinds import Files, Kind
from bert_tf.vocabularies.vocabulary import (
    BulkTokenizer,
    Piece,
    Special,
    Template,
    Tokenizer,
    Vocabulary,
)

from etils import epath

__all__ = [
    "KINDS",
    "BulkTokenizer",
    "Files",
    "Kind",
    "Piece",
    "Special",
    "Template",
    "Tokenizer",
    "Vocabulary",
    "open",
    "open_files",
    "read",
]

# The name of a kind -> how its files are opened and read.
KINDS: dict[str, Kind] = {
    word_pieces.WordPiece.kind: Kind(
        files=(word_pieces.FILE,),
        endings=(".txt",),
        open=word_pieces.open_file,
        read=word_pieces.WordPiece.of_contents,
    ),
    byte_pairs.BytePairs.kind: Kind(
        files=byte_pairs.FILES,
        endings=(".json",),
        open=byte_pairs.open_files,
        read=byte_pairs.BytePairs.of_contents,
    ),
    sentence_pieces.SentencePieces.kind: Kind(
        files=(sentence_pieces.FILE,),
        endings=(".model",),
        open=sentence_pieces.open_file,
        read=sentence_pieces.SentencePieces.parse,
    ),
}


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
    """Reads the files of a vocabulary; arguments are those of `open`."""
    # Files of other names are of word pieces as well: the original reads a
    # vocabulary of any name.
    name, place = word_pieces.WordPiece.kind, pathlib.PurePath(path)
    for other, kind in KINDS.items():
        is_part = len(kind.files) > 1 and place.name in kind.files
        if is_part or (place.suffix and place.suffix in kind.endings):
            name = other
            break
    return Files(name, KINDS[name].open(path, say))


def read(files: Files, do_lower_case: bool, name: str) -> Vocabulary:
    """Makes a vocabulary of its files; `name` is what errors call it.

    Raises InputError if they are no vocabulary, or of a kind that is not known.
    """
    if files.kind not in KINDS:
        raise InputError(
            f"{name} is of a kind of vocabulary that is not known. Give one of "
            f"{', '.join(KINDS)}. Received: kind={files.kind}"
        )
    return KINDS[files.kind].read(files.contents, do_lower_case, name)
