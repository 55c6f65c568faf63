"""What tells the kinds of vocabularies apart: their files, not the casing."""

import base64
import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from bert_tf.vocabularies import added_tokens, vocabulary

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

    def to_config(self) -> dict[str, Any]:
        """Returns what JSON can hold, for `from_config`."""
        texts = {
            name: base64.b64encode(data).decode()
            for name, data in self.contents.items()
        }
        return {"kind": self.kind, "contents": texts}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns the files that `to_config` was called of."""
        contents = {
            name: base64.b64decode(text)
            for name, text in config["contents"].items()
        }
        return cls(config["kind"], contents)


def _difference(
    given: Mapping[str, bytes], brought: Mapping[str, bytes]
) -> str:
    names = [x for x in given if given[x] != brought.get(x)]
    return f"its {names[0]} has another content" if names else ""


def _check_nothing(found: Mapping[str, Any], name: str) -> None:
    del found, name


def of_pieces(given: Sequence[str], brought: Sequence[str]) -> str:
    """Says how pieces by id differ from a checkpoint's; "" if they do not."""
    if len(given) != len(brought):
        return (
            f"it has {len(given)} pieces, and the checkpoint's has "
            f"{len(brought)}"
        )
    for number, (own, their) in enumerate(zip(given, brought, strict=True)):
        if own != their:
            return (
                f"piece {number} is {own!r}, and the checkpoint's is {their!r}"
            )
    return ""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of vocabulary.

    Attributes:
        files: The names that its files are kept under, in order.
        endings: How the names of such files end where a user gives one.
        tokenizer: The type of its model in a tokenizer.json, which `open` takes
            as well; "" for a kind that has none.
        difference: Says how contents are not those of another vocabulary, such
            as "it has 3 pieces, and the checkpoint's has 4"; "" if they are.
            By default other bytes are another vocabulary.
        append: Adds tokens to such contents, with the ids after the last; None
            where a kind takes none.
        settings: The fields of a tokenizer_config.json that it has.
        check: Raises InputError if a tokenizer.json, whose path is the second
            argument, splits texts by rules that the kind does not have.
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
    tokenizer: str = ""
    difference: Callable[[Mapping[str, bytes], Mapping[str, bytes]], str] = (
        _difference
    )
    append: added_tokens.Append | None = None
    settings: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any], str], None] = _check_nothing
