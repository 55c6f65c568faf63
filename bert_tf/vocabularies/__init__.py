"""What makes ids of text, by kind, without TensorFlow.

    vocabulary = vocabularies.open("vocab.txt", do_lower_case=True)
    tokenizer = vocabulary.tokenizer()
    tokenizer.tokenize("UNwanted, running")  # un ##want ##ed , runn ##ing

A kind is a file here that has a `Vocabulary`, a row of `OPENERS`, and a row of
`text.graph.TOKENIZERS`. What it says of itself, the template of a row above
all, is all that tasks, exports and data creation know.
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
    """Reads a vocabulary.

    Args:
        path: Its file.
        do_lower_case: Whether the model reads lower-cased text.
        say: Whether to log what was changed; for processes that read the same
            file as others.

    Raises:
        InputError: The file is no vocabulary.
    """
    ending = pathlib.PurePath(path).suffix
    opener = OPENERS.get(ending, word_pieces.WordPiece.read)
    return opener(path, do_lower_case, say)
