"""What tells the kinds of vocabularies apart: their files, not the casing."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping

from bert_tf.vocabularies import vocabulary

from etils import epath


@dataclasses.dataclass(frozen=True)
class Files:
    """A vocabulary as a checkpoint or a folder carries it.

    How its texts are cased is said elsewhere, if the kind asks for it.

    Attributes:
        kind: The name of the kind.
        contents: Name of a file -> its content, in the kind's order.
    """

    kind: str
    contents: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """SHA-256 of the contents joined: that of the vocabulary."""
        return hashlib.sha256(b"".join(self.contents.values())).hexdigest()


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of vocabulary.

    Attributes:
        files: The names that its files are kept under, in order.
        endings: How the names of such files end where a user gives one.
        open: Returns name -> content of what is at a path. The second argument
            is whether to log what was changed in it.
        read: Makes the vocabulary of such contents. The second argument is
            `do_lower_case`, which kinds without a casing leave alone; the third
            a name for errors.
    """

    files: tuple[str, ...]
    endings: tuple[str, ...]
    open: Callable[[epath.PathLike, bool], Mapping[str, bytes]]
    read: Callable[[Mapping[str, bytes], bool, str], vocabulary.Vocabulary]
