"""Everything the package needs to know about an encoder besides its layers.

Shapes are written as words with a letter for each size, as in modeling.py: V
vocabulary, T token types, M positions, D hidden size, E size of word
embeddings, F feed-forward size, L layers that share a variable; digits are
literal sizes. A family may define more letters.
"""

import dataclasses
import itertools
import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bert_tf import configuration
from bert_tf.encoders import foreign
from bert_tf.errors import InputError

import keras

# The variables of a block that have feed-forward units -> the axis of these.
Units = dict[str, int]


@dataclasses.dataclass(frozen=True)
class Generator:
    """The encoder that creates another encoder's inputs in pre-training.

    It predicts masked words; the other encoder, the discriminator, detects
    which words were replaced.

    Attributes:
        config: Returns the generator's config for a discriminator's config.
        model: Builds the generator for a discriminator, whose embeddings it
            shares.
        names: Prefix of the generator's variables -> prefix of the same
            variables in a separate model with a masked-word head. The first
            match counts.
        by_piece: The generator's variables that are not shared and have a row
            for each token.
    """

    config: Callable[[Any], configuration.BertConfig]
    model: Callable[[Any], keras.Model]
    names: Mapping[str, str]
    by_piece: frozenset[str]

    def alone(self, name: str) -> str | None:
        """Returns a variable's name in a separate model; None for others."""
        for before, after in self.names.items():
            if name.startswith(before):
                return after + name.removeprefix(before)
        return None


@dataclasses.dataclass(frozen=True)
class Pretrainer:
    """A pre-training objective that only one family has.

    Its name, of head and loss, is the `pretraining_head` of the configs.

    Attributes:
        model: Builds the head for an encoder: a model that maps a batch of
            records and a dropout seed to logits [B, P, V] of the chosen tokens,
            `masked_lm_ids`.
        variables: Name of a variable of the head -> letters of its shape.
        report: A log sentence that describes the objective.
    """

    model: Callable[[Any], keras.Model]
    variables: Mapping[str, str]
    report: str


@dataclasses.dataclass(frozen=True)
class Family:
    """An encoder.

    Attributes:
        name: The `model_type` of its configs.
        config: Its class of configs, whose `model_type` is the name.
        model: Builds the encoder of a config, as `heads` expects it.
        variables: Name of a variable -> letters of its shape; in a layer's name
            each `{}` stands for a number.
        words: The variable that is the table of word embeddings.
        pooler: The variables that a checkpoint may lack, because heads over the
            sequence output do not need them.
        counts: For each number in a layer's name, the config's field with its
            count.
        absent: Returns the variables that a config's model does not have.
        sizes: Returns the sizes of the family's additional or changed letters.
        vocabularies: The kinds of vocabularies that its released models have.
            Empty if those can't be read; then the model only takes ids.
        rare_vocabularies: Kinds that only some of them have, and none in
            another library.
        config_file: The name of the config file next to released checkpoints.
        starts_from: Another family whose checkpoints training may start from.
            These lack the variables in `on_top`, which then start from random
            values.
        generator: The generator it is pre-trained with; None if it predicts
            masked words itself.
        pretrainer: Its own pre-training objective; None for those that several
            families have.
        decoder: Builds the decoder of an encoder that generates texts; None for
            the decoder of the Transformer.
        huggingface: Its tables for Hugging Face files; None if transformers has
            no such model. `keras_hub` likewise.
        weights_file: The file of its released weights, if they are no TF1
            checkpoint.
    """

    name: str
    config: type[configuration.BertConfig]
    model: Callable[[Any], keras.Model]
    variables: Mapping[str, str]
    words: str
    pooler: frozenset[str]
    counts: tuple[str, ...] = ("num_hidden_layers",)
    absent: Callable[[Any], frozenset[str]] = lambda config: frozenset()
    sizes: Callable[[Any], Mapping[str, int]] = lambda config: {}
    vocabularies: tuple[str, ...] = ("word_pieces",)
    rare_vocabularies: tuple[str, ...] = ()
    config_file: str = "bert_config.json"
    starts_from: str | None = None
    on_top: frozenset[str] = frozenset()
    generator: Generator | None = None
    pretrainer: Pretrainer | None = None
    decoder: Callable[..., keras.layers.Layer] | None = None
    huggingface: foreign.HuggingFace | None = None
    keras_hub: foreign.KerasHub | None = None
    weights_file: foreign.WeightsFile | None = None

    @property
    def prefix(self) -> str:
        """The prefix of all names, such as `bert/`."""
        return self.words.partition("/")[0] + "/"

    @property
    def all_but_pooler(self) -> str:
        """A pattern of what a checkpoint must have; heads match as well."""
        return f"^(?!(?:{'|'.join(sorted(self.pooler))})$)"

    def names(self, config: configuration.BertConfig) -> dict[str, str]:
        """Returns name -> letters of its shape, of a config's model."""
        absent, numbers = self.absent(config), self.numbers(config)
        return {
            name.format(*own): letters
            for name, letters in self.variables.items()
            for own in (numbers if "{}" in name else [()])
            if name not in absent
        }

    def has(self, name: str, config: configuration.BertConfig) -> bool:
        """Whether a config's model has a variable of this name.

        It lists no layers: these may be more than memory has room for.
        """
        if name in self.absent(config):
            return False
        counts = [getattr(config, count) for count in self.counts]
        for template in self.variables:
            before, *others = map(re.escape, template.split("{}"))
            pattern = before + "".join(rf"(0|[1-9]\d*){x}" for x in others)
            found = re.fullmatch(pattern, name)
            if found:
                numbers = map(int, found.groups())
                # A name without numbers is there once.
                return all(map(operator.lt, numbers, counts))
        return False

    def numbers(
        self, config: configuration.BertConfig
    ) -> list[foreign.Numbers]:
        """Returns the numbers of each layer that has its own weights."""
        counts = (range(getattr(config, name)) for name in self.counts)
        return list(itertools.product(*counts))

    def num_layers(self, config: configuration.BertConfig) -> int:
        """Returns how many first numbers of layers there are."""
        return getattr(config, self.counts[0])

    @property
    def shares_layers(self) -> bool:
        """Whether layers may share weights, so that none can go by itself."""
        return self.counts != ("num_hidden_layers",)

    def check_has_all(
        self, config: configuration.BertConfig, names: Collection[str]
    ) -> None:
        """Raises InputError if a config's model lacks any of these variables.

        Those are what a model in another library is made of.
        """
        if absent := self.absent(config).intersection(names):
            raise InputError(
                "Other libraries have variables there that this model has "
                "not, so it can't be theirs: use --output_format=tf1. "
                f"Received: a model without {', '.join(sorted(absent))}"
            )

    def check_takes_texts(self, path: str) -> None:
        """Raises InputError if the tokenizer of its models is not supported."""
        if self.vocabularies:
            return
        kind = self.huggingface.tokenizer if self.huggingface else ""
        raise InputError(
            f"{path}: the tokenizer of a {self.name} model is not supported, "
            "so it takes no texts here. Pass token IDs to the model in Python: "
            "bert_tf.Bert.from_checkpoint. "
            f"Received: model_type={self.name}, tokenizer_class={kind}"
        )

    def layer(self, name: str) -> int | None:
        """Returns the number of a variable's layer; None if it is of none."""
        for before in self._layers():
            found = re.match(rf"{re.escape(before)}(\d+)/", name)
            if found:
                return int(found[1])
        return None

    def renumbered(self, name: str, number: int) -> str:
        """Returns the name of a layer's variable in layer `number`.

        Variables outside layers keep their names.
        """
        for before in self._layers():
            found = re.match(rf"{re.escape(before)}(\d+)/", name)
            if found:
                return f"{before}{number}{name[found.end(1) :]}"
        return name

    def with_units(self, config: configuration.BertConfig) -> list[Units]:
        """Returns what has feed-forward units, in the order of `numbers`."""
        axes = {
            name: letters.index("F")
            for name, letters in self.variables.items()
            if "F" in letters
        }
        return [
            {name.format(*own): axis for name, axis in axes.items()}
            for own in self.numbers(config)
        ]

    def depth(self, name: str, config: configuration.BertConfig) -> int:
        """Returns how far below the heads a variable is, for its learning rate.

        Of heads, pooler and what is on top 0, of the last layer 1, of each
        below one more, of the embeddings the most. Layers that share weights
        count as one.
        """
        num_layers = self.num_layers(config)
        layer = self.layer(name)
        if layer is not None:
            return num_layers - layer
        above = self.pooler | self.on_top
        if name not in self.variables or name in above:
            return 0
        # A layer without a number is the only one.
        is_layer = not self._layers() and name != self.words
        return num_layers if is_layer else num_layers + 1

    def _layers(self) -> set[str]:
        """The prefixes before the numbers of layers."""
        return {x.partition("{}")[0] for x in self.variables if "{}" in x}
