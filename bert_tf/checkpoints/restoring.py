"""Loads a model's weights by name from a checkpoint of any format."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bert_tf.checkpoints import names, tf1_files
from bert_tf.encoders import families
from bert_tf.errors import InputError

import keras
import numpy as np


class Source(Protocol):
    """An open checkpoint of any format."""

    @property
    def path(self) -> str:
        """Path of the checkpoint."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of its weights, by this package's names."""

    @property
    def left_over(self) -> Sequence[str]:
        """Names that have no counterpart in this package."""

    @property
    def read(self) -> Callable[[Sequence[str]], Mapping[str, np.ndarray]]:
        """Function that returns tensors by name."""


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of restoring weights, by variable name."""

    path: str
    restored: tuple[str, ...]
    fresh: tuple[str, ...]  # in the model only: they keep their random values
    unused: tuple[str, ...]  # in the checkpoint only

    def __str__(self):
        lines = [f"Restored {len(self.restored)} variables of {self.path}."]
        reason = ""
        encoders = tuple(row.prefix for row in families.FAMILIES.values())
        if not any(name.startswith(encoders) for name in self.fresh):
            reason = "as expected for a new head, "
        for title, which in (
            (
                f"Not in the checkpoint, {reason}start from random values",
                self.fresh,
            ),
            ("In the checkpoint, not used by this model", self.unused),
        ):
            if which:
                lines.append(f"{title}: {names.listed(which)}")
        return "\n".join(lines)


def _encoder() -> str:
    """Returns a pattern of the names every model must find in a checkpoint.

    These are the encoder's of any family, except the pooler, which heads over
    the sequence output do not need and some files lack, and the layers that a
    family adds to another family's encoder, which start from random values.
    """
    rows = families.FAMILIES.values()
    prefixes = sorted({row.prefix for row in rows})
    free = sorted({name for row in rows for name in row.on_top | row.pooler})
    known = f"(?!(?:{'|'.join(map(re.escape, free))})$)"
    return f"^{known}({'|'.join(map(re.escape, prefixes))})"


def restore_weights(
    variables: Sequence[keras.Variable],
    source: Source,
    required: str | None = None,
) -> Report:
    """Sets variables from a checkpoint, by name.

    Variables whose names match the regular expression `required` (default: the
    encoder's) must be in the checkpoint. The others may start from random
    values.
    """
    report = compare(variables, source, required)
    wanted = {v.path: v for v in variables}
    values = source.read(report.restored)
    check_finite(source.path, values)
    for name, value in values.items():
        wanted[name].assign(value)
    return report


def check_finite(path: str, values: Mapping[str, np.ndarray]) -> None:
    """Raises UnreadableError if weights are infinite or NaN."""
    wrong = [n for n, x in sorted(values.items()) if not np.isfinite(x).all()]
    if wrong:
        raise tf1_files.UnreadableError(
            f"{path} holds weights that are infinite or no numbers (NaN): "
            f"{_some(wrong)}. Its training diverged: give an earlier "
            "checkpoint, or train again with a lower --learning_rate."
        )


def compare(
    variables: Sequence[keras.Variable],
    source: Source,
    required: str | None = None,
) -> Report:
    """Returns the report of `restore_weights`, or raises its errors."""
    stored = source.shapes
    wanted = {v.path: v for v in variables}
    present = sorted(wanted.keys() & stored.keys())
    fresh = sorted(wanted.keys() - stored.keys())
    unused = sorted({*stored.keys(), *source.left_over} - wanted.keys())
    pattern = _encoder() if required is None else required
    missing = [name for name in fresh if re.search(pattern, name)]
    if missing:
        # The encoder's names come first: they show the model's type.
        unused = sorted(unused, key=lambda name: "encoder" not in name)
        raise InputError(
            f"{source.path} does not fit this model. "
            f"In the model only: {_some(missing)}. "
            f"In the checkpoint only: {_some(unused) or 'nothing'}. "
            "Is it of another architecture than the config says, or without "
            "the head that is asked for?"
        )
    check_shapes(source.path, stored, {n: wanted[n].shape for n in present})
    return Report(source.path, tuple(present), tuple(fresh), tuple(unused))


def _some(texts: Sequence[str], separator: str = ", ") -> str:
    more = [f"and {len(texts) - 3} more"] * (len(texts) > 3)
    return separator.join([*texts[:3], *more])


def check_shapes(
    prefix: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    """Raises InputError if stored shapes differ from the variables' shapes."""
    wrong = [
        f"{name} is {list(stored[name])} there and {list(shape)} in the model"
        for name, shape in wanted.items()
        if stored[name] != tuple(shape)
    ]
    if wrong:
        raise InputError(
            f"{prefix} has other shapes than this model: {_some(wrong, '; ')}. "
            "Use the bert_config.json and vocab.txt that belong to it."
        )
