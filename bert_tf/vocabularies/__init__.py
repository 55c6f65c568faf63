"""What makes ids of text, by kind, without TensorFlow.

    vocabulary = vocabularies.open("vocab.txt", do_lower_case=True)
    vocabulary.tokenizer().tokenize("UNwanted")  # un ##want ##ed

A kind is a file here with a `Vocabulary`, and a row each of `OPENERS` and of
`text.graph.TOKENIZERS`. Tasks, exports and data creation know only what it says
of itself, above all the template of a row.
"""

import pathlib
from collections.abc import Callable

from bert_tf.vocabularies import word_pieces
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
    "OPENERS",
    "BulkTokenizer",
    "Piece",
    "Special",
    "Template",
    "Tokenizer",
    "Vocabulary",
    "open",
]

# How a file's name ends -> what opens it. Files of other names are of word
# pieces as well: the original reads a vocabulary of any name.
OPENERS: dict[str, Callable[[epath.PathLike, bool, bool], Vocabulary]] = {
    ".txt": word_pieces.WordPiece.read,
}


def open(
    path: epath.PathLike, do_lower_case: bool, say: bool = True
) -> Vocabulary:
    """Reads a vocabulary of a model that lower-cases text or does not.

    Pass `say=False` where another process reads the same file and logs what was
    changed. Raises InputError if the file is no vocabulary.
    """
    ending = pathlib.PurePath(path).suffix
    opener = OPENERS.get(ending, word_pieces.WordPiece.read)
    return opener(path, do_lower_case, say)
