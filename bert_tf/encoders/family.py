"""What is to be known of an encoder beside its layers: a row of facts.

Shapes are words of letters, a letter a size, as in modeling.py: V vocabulary,
T token types, M positions, D hidden size, F feed-forward size; digits are
themselves.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bert_tf import configuration

import keras


class Row(NamedTuple):
    """A line of a foreign format's table, with `{}` for the number of a layer.

    Our name is the original's. If `transposed`, the axes of a matrix swap.
    """

    ours: str
    theirs: str
    transposed: bool = False


def expand(table: Iterable[Row], num_layers: int) -> list[Row]:
    """Returns a table with the rows of each layer."""
    rows = []
    for row in table:
        layers = range(num_layers) if "{}" in row.ours else [0]
        rows += [
            Row(row.ours.format(i), row.theirs.format(i), row.transposed)
            for i in layers
        ]
    return rows


@dataclasses.dataclass(frozen=True)
class Family:
    """An encoder.

    Attributes:
        name: The `model_type` of its configs.
        config: Its class of configs, whose `model_type` is the name.
        model: Makes the encoder of a config: what `heads` take.
        variables: Name of a variable -> letters of its shape; in a layer's name
            `{}` stands for its number.
        words: The variable that is the table of word embeddings.
        pooler: The variables that a checkpoint may lack, as heads over the
            sequence output need none.
        huggingface: The names in files of Hugging Face; None where transformers
            has no such model. `keras_hub` likewise.
    """

    name: str
    config: type[configuration.BertConfig]
    model: Callable[[Any], keras.Model]
    variables: Mapping[str, str]
    words: str
    pooler: frozenset[str]
    huggingface: tuple[Row, ...] | None = None
    keras_hub: tuple[Row, ...] | None = None

    @property
    def prefix(self) -> str:
        """What all names begin with, such as `bert/`."""
        return self.words.partition("/")[0] + "/"

    @property
    def all_but_pooler(self) -> str:
        """A pattern of what a checkpoint must have; heads match as well."""
        return f"^(?!(?:{'|'.join(sorted(self.pooler))})$)"

    def names(self, num_layers: int) -> dict[str, str]:
        """Returns name -> letters of its shape, of so many layers."""
        return {
            name.format(i): letters
            for name, letters in self.variables.items()
            for i in (range(num_layers) if "{}" in name else [0])
        }

    def layer(self, name: str) -> int | None:
        """Returns the number of a variable's layer; None if it is of none."""
        for before in self._layers():
            found = re.match(rf"{re.escape(before)}(\d+)/", name)
            if found:
                return int(found[1])
        return None

    def depth(self, name: str, num_layers: int) -> int:
        """Returns how far below the heads a variable is, for its learning rate.

        Of heads and pooler 0, of the last layer 1, of each below one more, of
        the embeddings the most.
        """
        layer = self.layer(name)
        if layer is not None:
            return num_layers - layer
        is_below = name in self.variables and name not in self.pooler
        return num_layers + 1 if is_below else 0

    def _layers(self) -> set[str]:
        """What stands before the numbers of layers."""
        return {x.partition("{}")[0] for x in self.variables if "{}" in x}
