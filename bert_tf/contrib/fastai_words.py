"""Reads fastai's vocabularies, a pickled itos, as a vocabulary of symbols.

An itos lists the words by id. Texts must be what fastai's tokenizer returns,
joined by spaces, such as `xxmaj the film was xxup bad`: its rules and spaCy are
not repeated here.
"""

import io
import pickle
from typing import Any

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.vocabularies import symbols

from etils import epath

# Language models mask no words, so that any rare one can be the mask.
_SPECIAL = ("xxpad", "xxunk", "xxbos", "xxeos", "xxfld")
_RENAMED = dict(zip(_SPECIAL, symbols.SPECIAL, strict=True))
# Pads an itos to a multiple of 8 words. Their names must differ here.
_FAKE = "xxfake"


class _Plain(pickle.Unpickler):
    """Reads a pickle of plain values, which can run no code."""

    def find_class(self, module: str, name: str) -> Any:
        """Raises an error for all classes and functions."""
        raise pickle.UnpicklingError(f"it needs {module}.{name}")


def _words(data: bytes, name: str) -> list[str]:
    """Returns the words of a pickle; InputError for anything else."""
    try:
        words = _Plain(io.BytesIO(data)).load()
        problem = f"{type(words).__name__} {repr(words)[:40]}"
        if isinstance(words, list) and {*map(type, words)} == {str}:
            if {*_SPECIAL} <= {*words}:
                return words
            missing = sorted({*_SPECIAL} - {*words})
            problem = f"{len(words)} words without {', '.join(missing)}"
    # A damaged pickle raises almost any error.
    except Exception as error:
        problem = str(error)
    raise InputError(
        f"{name} must be a pickled list of the words of a fastai vocabulary; "
        "nothing else is unpickled, as it could run code. Write it by "
        f"pickle.dump(list(vocab), file). Received: {problem}"
    )


def _symbol(number: int, word: str) -> str:
    """Returns the symbol of a word; no text has words with white space."""
    is_word = word.split() == [word] and word != _FAKE
    return _RENAMED.get(word, word) if is_word else f"{_FAKE}_{number}"


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads an itos as the contents of a vocabulary of symbols."""
    del say
    words = enumerate(_words(epath.Path(path).read_bytes(), str(path)))
    text = "".join(f"{_symbol(*x)}\n" for x in words)
    return {symbols.FILE: text.encode("utf-8", "replace")}


vocabularies.register(
    "fastai_words",
    vocabularies.Kind(
        files=("itos.pkl",),
        endings=(".pkl",),
        open=open_file,
        read=symbols.Symbols.of_contents,
    ),
)
