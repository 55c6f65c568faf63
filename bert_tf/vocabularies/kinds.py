"""The interface of a kind of vocabulary: its files and how to read them."""

import base64
import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from bert_tf.vocabularies import added_tokens, vocabulary

from etils import epath


@dataclasses.dataclass(frozen=True)
class Files:
    """The files of a vocabulary, as a checkpoint or a folder contains them.

    They do not include the casing of texts, which is passed separately.

    Attributes:
        kind: The name of the kind.
        contents: File name -> content, in the order of the kind.
    """

    kind: str
    contents: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """SHA-256 of the joined contents, which identifies the vocabulary."""
        return hashlib.sha256(b"".join(self.contents.values())).hexdigest()

    def to_config(self) -> dict[str, Any]:
        """Returns a JSON-compatible dict for `from_config`."""
        texts = {
            name: base64.b64encode(data).decode()
            for name, data in self.contents.items()
        }
        return {"kind": self.kind, "contents": texts}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns the files from the result of `to_config`."""
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


# Defaults have names, as lambdas can't be passed to the processes of a pool.
def _owns_all(found: Mapping[str, Any]) -> bool:
    del found
    return True


def _check_nothing(found: Mapping[str, Any], name: str) -> None:
    del found, name


def of_pieces(given: Sequence[str], brought: Sequence[str]) -> str:
    """Describes how tokens by id differ from a checkpoint's, or ""."""
    if len(given) != len(brought):
        return (
            f"it has {len(given)} tokens, and the checkpoint's has "
            f"{len(brought)}"
        )
    for number, (own, their) in enumerate(zip(given, brought, strict=True)):
        if own != their:
            return (
                f"token {number} is {own!r}, and the checkpoint's is {their!r}"
            )
    return ""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of vocabulary.

    Attributes:
        files: The names under which its files are saved, in order.
        endings: Suffixes of such files that users pass under other names.
        tokenizer: The type of its model in a tokenizer.json, which `open`
            accepts, too; "" for a kind without one.
        owns: Whether a tokenizer.json with such a model is of this kind. The
            first kind that owns it reads it.
        fits: Whether the contents of files with these names are of this kind,
            if another kind has the same names; None if no other kind has them.
        difference: Describes how contents differ from another vocabulary's,
            such as by their numbers of tokens; "" if they are the same. By
            default, any different byte is a difference.
        append: Adds tokens to such contents, with the ids after the last; None
            for kinds that do not support it.
        settings: The fields of a tokenizer_config.json that it supports.
        check: Raises InputError if a tokenizer.json, whose path is the second
            argument, splits texts by rules that the kind does not support.
        open: Reads the file at a path: name -> content. The second argument is
            whether to log changes to the content.
        read: Creates the vocabulary from such contents. The second argument is
            `do_lower_case`, which kinds without casing ignore; the third is the
            name for errors.
        objective: The objective of pre-training records that the script of its
            model makes by default.
    """

    files: tuple[str, ...]
    endings: tuple[str, ...]
    open: Callable[[epath.PathLike, bool], Mapping[str, bytes]]
    read: Callable[[Mapping[str, bytes], bool, str], vocabulary.Vocabulary]
    tokenizer: str = ""
    owns: Callable[[Mapping[str, Any]], bool] = _owns_all
    fits: Callable[[Mapping[str, bytes]], bool] | None = None
    difference: Callable[[Mapping[str, bytes], Mapping[str, bytes]], str] = (
        _difference
    )
    append: added_tokens.Append | None = None
    settings: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any], str], None] = _check_nothing
    objective: str = "nsp"

    def has(self, contents: Mapping[str, bytes]) -> bool:
        """Whether all its files are among these, by name and content."""
        is_whole = all(file in contents for file in self.files)
        return is_whole and (self.fits is None or self.fits(contents))
