"""Other libraries' names of an encoder's variables, heads and config fields.

A family has a record for each library that supports it. The records are tables;
the code in `checkpoints/` that reads and writes the files knows no family.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import configuration
from bert_tf.errors import InputError

# ---- Rows of tables ---------------------------------------------------------


# The numbers in a layer's name: one number, or a group and a layer in it.
Numbers = tuple[int, ...]


class Row(NamedTuple):
    """Our name and another library's name of a variable.

    `{}` stands for the numbers of a layer. Our name is the original's. If
    `transposed`, the two axes of the matrix are swapped.
    """

    ours: str
    theirs: str
    transposed: bool = False


def expand(table: Iterable[Row], numbers: Sequence[Numbers]) -> list[Row]:
    """Returns a table with the rows of each layer, each name of ours once.

    Of two rows for one of our names the later one is meant: a head may call a
    variable of the encoder otherwise.
    """
    rows = {}
    for row in table:
        layers = numbers if "{}" in row.ours else [()]
        for i in layers:
            ours, theirs = row.ours.format(*i), row.theirs.format(*i)
            own = Row(ours, theirs, row.transposed)
            rows[own.ours] = own
    return list(rows.values())


def dense(ours: str, theirs: str) -> tuple[Row, ...]:
    """Returns the rows of a dense layer in files of Hugging Face."""
    return (
        Row(f"{ours}/kernel", f"{theirs}.weight", transposed=True),
        Row(f"{ours}/bias", f"{theirs}.bias"),
    )


def norm(ours: str, theirs: str) -> tuple[Row, ...]:
    """Returns the rows of a layer norm in files of Hugging Face."""
    return (
        Row(f"{ours}/gamma", f"{theirs}.weight"),
        Row(f"{ours}/beta", f"{theirs}.bias"),
    )


def output(ours: str, theirs: str) -> tuple[Row, ...]:
    """Returns the rows of a head's last layer in files of Hugging Face."""
    return (
        Row(f"{ours}output_weights", f"{theirs}.weight"),
        Row(f"{ours}output_bias", f"{theirs}.bias"),
    )


def keras_dense(ours: str, theirs: str) -> tuple[Row, ...]:
    """Returns the rows of a dense layer of KerasHub."""
    return tuple(
        Row(f"{ours}/{x}", f"{theirs}/{x}") for x in ("kernel", "bias")
    )


def keras_norm(ours: str, theirs: str) -> tuple[Row, ...]:
    """Returns the rows of a layer norm of KerasHub."""
    return tuple(Row(f"{ours}/{x}", f"{theirs}/{x}") for x in ("gamma", "beta"))


def rate_notes(config: configuration.BertConfig, library: str) -> list[str]:
    """Says in a sentence whether a library with one dropout rate loses one."""
    rate = config.hidden_dropout_prob
    if config.attention_probs_dropout_prob == rate:
        return []
    return [
        f"{library} has one dropout rate for this model: further training "
        f"there has attention_probs_dropout_prob={rate} instead of "
        f"{config.attention_probs_dropout_prob}."
    ]


# ---- Hugging Face -----------------------------------------------------------

# Theirs -> ours. The first name of each of ours is the one to write.
ACTIVATIONS = {
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_fast": "gelu",
    "gelu_python_tanh": "gelu",
    "gelu_accurate": "gelu",
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_10": "gelu_10",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "swish": "silu",
    "mish": "mish",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}


@dataclasses.dataclass(frozen=True)
class ConfigKeys:
    """How a family's config.json differs from ours.

    Attributes:
        renamed: Our field -> their key, where the names differ.
        defaults: Our field -> the default of transformers, where it differs
            from ours.
        fixed: Our field -> the only value that transformers supports.
        act: The default activation, by its name in transformers.
        transform_act: The activation of the head of masked words, whatever
            `hidden_act` is; None: `hidden_act`.
        unsaid: Our fields that their file does not have.
        needed: Their key -> the only value that is supported here.
        written: Additional keys and values of their file.
        head_rates: Their key of a head's dropout rate that is fixed here -> the
            rate.
        unused_positions: The number of unused rows at the start of their
            position table.
        told_by: Keys and values that identify this family in a file whose
            model type is BERT, together with `written` or the positions.
    """

    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    act: str = "gelu"
    transform_act: str | None = None
    unsaid: frozenset[str] = frozenset()
    needed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    written: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    head_rates: Mapping[str, float] = dataclasses.field(default_factory=dict)
    unused_positions: int = 0
    told_by: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_ours(
        self,
        values: Mapping[str, Any],
        config: type[configuration.BertConfig],
    ) -> dict[str, Any]:
        """Converts the values of a config.json to our fields.

        It raises InputError for unsupported values.
        """
        for key, value in self.needed.items():
            if values.get(key, value) != value:
                raise InputError(
                    f"`{key}` must be {value}: models with other values are "
                    f"not supported. Received: {key}={values[key]!r}"
                )
        keys = self._keys(config)
        given = {x: values[key] for x, key in keys.items() if key in values}
        key = keys["hidden_act"]
        act = given.get("hidden_act", self.act)
        if not isinstance(act, str) or act not in ACTIVATIONS:
            raise InputError(
                f"`{key}` must be one of {', '.join(ACTIVATIONS)}. "
                f"Received: {key}={act!r}"
            )
        if given.get("problem_type") != configuration.MULTI_LABEL:
            given.pop("problem_type", None)
        self._take_unused_positions(given)
        given["hidden_act"] = ACTIVATIONS[act]
        if self.transform_act not in (None, given["hidden_act"]):
            given.setdefault("transform_act", self.transform_act)
        return given

    def in_our_words(
        self,
        values: Mapping[str, Any],
        config: type[configuration.BertConfig],
    ) -> dict[str, Any]:
        """Returns the values of a file that may be ours or transformers'.

        Theirs is one with a key that ours has not. What is no field of ours
        stays as it is.
        """
        fields = {x.name for x in dataclasses.fields(config)}
        if values.keys() <= fields | {"model_type"}:
            return dict(values)
        theirs = set(self._keys(config).values())
        others = {x: v for x, v in values.items() if x not in theirs}
        return others | self.to_ours(values, config)

    def _keys(self, config: type[configuration.BertConfig]) -> dict[str, str]:
        """Our fields that their file has -> their keys."""
        fields = [x.name for x in dataclasses.fields(config)]
        return {
            x: self.renamed.get(x, x) for x in fields if x not in self.unsaid
        }

    def _take_unused_positions(self, given: dict[str, Any]) -> None:
        """Leaves the positions that are read; InputError if none are."""
        name, unused = "max_position_embeddings", self.unused_positions
        stored = given.get(name)
        if not unused or not isinstance(stored, int):
            return
        if stored <= unused:
            raise InputError(
                f"`{name}` counts {unused} rows that no token reads, and must "
                f"be more than {unused}: 514 for 512 tokens. "
                f"Received: {name}={stored}"
            )
        given[name] = stored - unused

    def to_theirs(self, config: configuration.BertConfig) -> dict[str, Any]:
        """Returns what a config.json says of an encoder."""
        values = {
            self.renamed.get(x.name, x.name): getattr(config, x.name)
            for x in dataclasses.fields(config)
            if x.name not in {*configuration.OMITTED_BY_DEFAULT, *self.unsaid}
        }
        key = self.renamed.get("hidden_act", "hidden_act")
        act = config.hidden_act
        values[key] = next(n for n, own in ACTIVATIONS.items() if own == act)
        name = "max_position_embeddings"
        if name in values:
            values[name] += self.unused_positions
        return values | dict(self.written)

    def rates(self, config: configuration.BertConfig) -> dict[str, float]:
        """Returns the dropout rates of a fine-tuned head, by their keys."""
        own = dict.fromkeys(config.other_rates, config.hidden_dropout_prob)
        return own | dict(self.head_rates)

    def token_ids(self, special: Any) -> dict[str, int]:
        """Returns keys with ids of a vocabulary's special tokens, if any."""
        del special
        return {}


class HuggingFaceHead(NamedTuple):
    """A model with a head in transformers.

    Attributes:
        architecture: Its class.
        has_pooler: Whether this class builds the pooler.
        rows: Its rows in addition to the encoder's, and rows that replace them.
    """

    architecture: str
    has_pooler: bool
    rows: tuple[Row, ...]


class Conversion(NamedTuple):
    """Names of tensors in a file, and of the tensors that they are split into.

    Tensors can also be stacked. `to_ours` and `to_theirs` convert arrays
    between the two lists.
    """

    theirs: list[str]
    ours: list[str]
    to_ours: Callable[[list[Any]], list[Any]]
    to_theirs: Callable[[list[Any]], list[Any]]


@dataclasses.dataclass(frozen=True)
class HuggingFace:
    """A family in transformers.

    Attributes:
        prefix: The prefix of the encoder's names in a model with a head.
        rows: The rows of the encoder, and of the pooler if it has one.
        heads: Name of our head -> the head in transformers, if it exists.
        tied: Name of a second copy -> name of the tensor.
        keys: The keys of config.json.
        tokenizer: The class of its tokenizers; "" for the usual class of its
            kind of vocabulary.
        conversions: Returns the tensors of a config's model that are split or
            stacked. Names in `rows` are `Conversion.ours`.
        optional: Our variables that their model has only if ours has them.
        model_type: Its name in config.json; "" for the family's name.
        identified_by: Other keys and values of config.json that identify the
            family if `model_type` is another family's, too.
    """

    prefix: str
    rows: tuple[Row, ...]
    heads: Mapping[str, HuggingFaceHead]
    tied: Mapping[str, str]
    keys: ConfigKeys
    tokenizer: str = ""
    conversions: Callable[[Any], list[Conversion]] = lambda config: []
    optional: frozenset[str] = frozenset()
    model_type: str = ""
    identified_by: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def renamed(
        self, before: str, after: str, prefix: str, keys: ConfigKeys
    ) -> "HuggingFace":
        """Returns the same tables under other names.

        Classes begin with `after` for `before`, names of tensors with `prefix`.
        """

        def name(theirs: str) -> str:
            is_inside = theirs.startswith(self.prefix)
            rest = theirs.removeprefix(self.prefix)
            return prefix + rest if is_inside else theirs

        heads = {
            key: head._replace(
                architecture=head.architecture.replace(before, after, 1)
            )
            for key, head in self.heads.items()
        }
        return dataclasses.replace(
            self,
            prefix=prefix,
            rows=tuple(x._replace(theirs=name(x.theirs)) for x in self.rows),
            heads=heads,
            tied={copy: name(x) for copy, x in self.tied.items()},
            keys=keys,
            conversions=lambda config: [
                x._replace(
                    theirs=[*map(name, x.theirs)], ours=[*map(name, x.ours)]
                )
                for x in self.conversions(config)
            ],
        )

    @property
    def parts(self) -> set[str]:
        """What names of the encoder begin with after the prefix."""
        names = [
            x.theirs for x in self.rows if x.theirs.startswith(self.prefix)
        ]
        return {x.removeprefix(self.prefix).partition(".")[0] for x in names}

    @property
    def layers(self) -> set[str]:
        """What stands before the number of a layer."""
        names = [x.theirs for x in self.rows if "{}" in x.theirs]
        return {x.partition("{}")[0] for x in names}

    @property
    def architectures(self) -> dict[str, str]:
        """Class -> name of the head."""
        return {head.architecture: name for name, head in self.heads.items()}


# ---- KerasHub ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class KerasHub:
    """A family in KerasHub.

    Attributes:
        name: The prefix of its classes, such as Bert in BertBackbone.
        rows: The rows of the encoder, and of the pooler if the backbone has it.
        heads: Name of our head -> its rows, which may include the pooler's.
        older: Former name of a task's class -> name of our head.
        arguments: Our field -> the argument of the backbone.
        numerics: Our field -> the only value that KerasHub supports.
        transform: Likewise, for the masked-word head.
        multiples: Our field -> the field that it must be a multiple of.
        zeros: Our variables that KerasHub does not have; they are zero.
        added: Our table -> the table whose first row is added to each of its
            rows, because KerasHub has no variable for it.
    """

    name: str
    rows: tuple[Row, ...]
    heads: Mapping[str, tuple[Row, ...]]
    arguments: Mapping[str, str]
    numerics: Mapping[str, Any]
    transform: Mapping[str, Any]
    multiples: Mapping[str, str] = dataclasses.field(default_factory=dict)
    older: Mapping[str, str] = dataclasses.field(default_factory=dict)
    zeros: frozenset[str] = frozenset()
    added: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def check(self, config: configuration.BertConfig) -> None:
        """Raises InputError where it computes other layers than we do."""
        if self.added and config.type_vocab_size > 1:
            raise InputError(
                "KerasHub has no token types there: use another format. "
                f"Received: type_vocab_size={config.type_vocab_size}"
            )
        for one, other in self.multiples.items():
            whole, part = getattr(config, one), getattr(config, other)
            if whole % part:
                raise InputError(
                    f"KerasHub leaves layers out where `{one}` is no multiple "
                    f"of `{other}`: use another format. "
                    f"Received: {one}={whole}, {other}={part}"
                )

    @property
    def backbone(self) -> str:
        """The class of the encoder."""
        return f"{self.name}Backbone"

    @property
    def tasks(self) -> dict[str, str]:
        """Class of a task -> name of our head."""
        own = {
            f"{self.name}TextClassifier": "classification",
            f"{self.name}MaskedLM": "masked_lm",
            f"{self.name}TextEmbedder": "encoder",
        }
        return own | dict(self.older)


# What all backbones call it.
KERAS_ARGUMENTS = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
}
# Of KerasHub's head of masked words in every family.
KERAS_TRANSFORM: dict[str, Any] = {
    "transform_act": "gelu_erf",
    "transform_layer_norm_eps": 1e-5,
}


# ---- Other files ------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class WeightsFile:
    """A file of released weights, in a folder with the family's config.

    Attributes:
        name: Its name.
        open: Opens the file at a path, for a config and the shapes of our
            variables; returns a function that reads variables by our names. It
            raises InputError if the file has other tensors.
        vocabulary: The files of the vocabulary that all models share, name ->
            content.
    """

    name: str
    open: Callable[[str, Any, Mapping[str, tuple[int, ...]]], Any]
    vocabulary: Mapping[str, bytes]
