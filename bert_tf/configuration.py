"""The architecture of a BERT: the released bert_config.json."""

import dataclasses
import difflib
import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Self

from bert_tf import config_keys, terminals
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files, json_files

from absl import logging

# Allowed values of `hidden_act`, `transform_act` and `pooler_act`.
ACTIVATIONS = (
    *("gelu", "gelu_erf", "gelu_10", "quick_gelu", "silu", "mish"),
    *("relu", "tanh", "linear"),
)
# `pooler_act` of a model without a pooler, in families that allow it.
NO_POOLER = "none"
# Values of `score_act`: any score, or a score between 0 and 1.
SCORE_ACTS = ("linear", "sigmoid")

# transformers' `problem_type` of a classifier for texts with several labels.
# The number of labels distinguishes the other types.
MULTI_LABEL = "multi_label_classification"
_OTHER_PROBLEMS = ("single_label_classification", "regression")
# transformers' names of the tanh form of GELU, as in huggingface_names.
_TANH_GELUS = (
    *("gelu_new", "gelu_pytorch_tanh", "gelu_fast"),
    *("gelu_python_tanh", "gelu_accurate"),
)
# Keys of transformers that change the model unless they have these values.
_ONE_VALUE: dict[str, Any] = {
    "add_cross_attention": False,
    "attention_type": "original_full",  # BigBird has a sparse type, too.
    "cross_attention_hidden_size": None,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "position_embedding_type": "absolute",
    "pruned_heads": {},
    "tie_word_embeddings": True,
}
# Fields of the dense layer before the vocabulary product.
_TRANSFORM = ("transform_act", "transform_layer_norm_eps")
# Fields that describe a fine-tuned head.
_OF_HEAD = ("problem_type", "score_act", "splits_cjk")
# Fields that the original does not have. Files only contain them if a model has
# non-default values.
OMITTED_BY_DEFAULT = (*_TRANSFORM, "pooler_act", *_OF_HEAD)
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The architecture of a BERT, as in the released bert_config.json."""

    # The name of the family, which files contain if it is not BERT.
    model_type: ClassVar[str] = "bert"
    # Prefix of the names of transformers' classes, and a key that distinguishes
    # files without a `model_type` from BERT's.
    architectures: ClassVar[str] = "Bert"
    tells: ClassVar[str | None] = None
    # Fields that are sizes, and the min value of `type_vocab_size`; keys with a
    # single allowed value, and keys that change nothing.
    sizes: ClassVar[tuple[str, ...]] = _SIZES
    least_types: ClassVar[int] = 1
    one_value: ClassVar[Mapping[str, Any]] = _ONE_VALUE
    unused_keys: ClassVar[frozenset[str]] = frozenset()
    # Keys of transformers' dropout rates that are `hidden_dropout_prob` here.
    # They are in the config.json of a fine-tuned model.
    other_rates: ClassVar[Mapping[str, str]] = {
        "classifier_dropout": "heads are"
    }
    # Fields that the model does not read, and that can't be changed. Without a
    # transform, its fields can't be changed either.
    unread: ClassVar[tuple[str, ...]] = ()
    # Allowed values of `pooler_act`.
    pooler_acts: ClassVar[tuple[str, ...]] = ACTIVATIONS
    # Whether the encoder has a vector for each token, not only for the
    # sequence.
    gives_sequence: ClassVar[bool] = True
    # Whether the last token represents a row, not the first.
    pools_last: ClassVar[bool] = False
    # How many of a row's last tokens the joint head for answers does not score.
    unscored_tokens: ClassVar[int] = 0
    # Whether the encoder compares two texts, so it can't read single texts.
    needs_pairs: ClassVar[bool] = False
    # Whether rows may contain several sequences that do not see each other.
    reads_packed: ClassVar[bool] = True
    # The head for pre-training, a key of names.HEADS; None for families that
    # start from another encoder.
    pretraining_head: ClassVar[str | None] = "pretraining"
    # Whether the heads for the next token and for classes have no bias:
    # `output_bias` stays zero.
    has_plain_outputs: ClassVar[bool] = False
    # Whether the head for words has a layer before its matrix.
    has_transform: ClassVar[bool] = True
    # Fields that describe other parts of pre-training.
    pretraining_keys: ClassVar[frozenset[str]] = frozenset()

    vocab_size: int  # V
    hidden_size: int = 768  # D
    num_hidden_layers: int = 12  # L
    num_attention_heads: int = 12  # N
    intermediate_size: int = 3072  # F
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # M
    type_vocab_size: int = 16  # T; the original's default, releases say 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    # For the dense layer before the vocabulary product, if they differ from the
    # encoder's, as in KerasHub.
    transform_act: str | None = None
    transform_layer_norm_eps: float | None = None
    # For the layer over [CLS].
    pooler_act: str = "tanh"
    # For a classifier: MULTI_LABEL, or None if each text has one label.
    problem_type: str | None = None
    # For a classifier with one class: converts its logit to the score.
    score_act: str = "linear"
    # For a tagger: whether each Chinese character of a text is a word.
    splits_cjk: bool = False

    def __post_init__(self):
        # The original lower-cases it and treats None as linear.
        object.__setattr__(self, "hidden_act", _activation(self.hidden_act))
        kind = type(self)
        _check(vars(self), vars(self), kind)
        for name in (*kind.unread, *(() if kind.has_transform else _TRANSFORM)):
            if getattr(self, name) != getattr(kind, name):
                raise InputError(
                    f"`{name}` has no effect in this model: leave it out. "
                    f"Received: model_type={kind.model_type}, "
                    f"{name}={getattr(self, name)!r}"
                )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "BertConfig":
        """Creates the config of a parsed bert_config.json.

        Also accepts Hugging Face's config.json, with the original's meaning of
        its names: "gelu" is the tanh form. Raises InputError if a value is bad,
        or may mean another model than BERT.
        """
        cls.check_is_bert(values)
        values = cls.in_our_words(values)
        fields = {field.name for field in dataclasses.fields(cls)}
        _check_keys(values, fields, {*cls.one_value, *cls.unused_keys})
        if "vocab_size" not in values:
            raise InputError(
                "The BERT config has no `vocab_size`: add the number of tokens "
                "of the vocabulary."
            )
        given = {k: v for k, v in values.items() if k in fields}
        if given.get("hidden_act") in _TANH_GELUS:
            given["hidden_act"] = "gelu"
        if given.get("problem_type") in _OTHER_PROBLEMS:
            del given["problem_type"]
        return cls.of_file(given, given)

    @classmethod
    def of_file(
        cls, values: Mapping[str, Any], given: Collection[str]
    ) -> "BertConfig":
        """Creates a config; errors mark values that are not in `given`."""
        fields = dataclasses.fields(cls)
        defaults = {f.name: f.default for f in fields}
        _check(defaults | dict(values), given, cls)
        return cls(**values)

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Renames the keys of a file to BERT's, which this class uses."""
        return dict(values)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> "BertConfig":
        """Reads a bert_config.json, local or remote; logs unused values."""
        path = os.fspath(path)
        return cls.from_file(read_json_file(path), path)

    @classmethod
    def from_file(cls, values: Mapping[str, Any], path: str) -> "BertConfig":
        """Creates the config of a file; errors and log lines name the path."""
        try:
            config = cls.from_dict(values)
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error
        for note in _notes(cls.in_our_words(values), config):
            terminals.log_once(f"{path}: {note}")
        return config

    @classmethod
    def check_is_bert(cls, values: Mapping[str, Any]) -> None:
        """Raises InputError if a config, ours or transformers', is not BERT."""
        said = cls.model_type if cls.tells in values else "bert"
        kind = values.get("model_type") or said
        architectures = values.get("architectures") or []
        if not isinstance(architectures, list):
            raise InputError(
                "`architectures` must be a list of texts, or be left out. "
                f"Received: architectures={architectures!r}"
            )
        start = cls.architectures
        strangers = [n for n in architectures if not str(n).startswith(start)]
        is_other = kind != cls.model_type
        if is_other or strangers:
            name = f"{kind} model" if is_other else str(strangers[0])
            article = "an" if name[:1] in tuple("aeiouAEIOU") else "a"
            raise InputError(
                f"This is {article} {name}, not BERT, and only BERT can be "
                f"read as model_type={cls.model_type}. If the weights are "
                f"BERT's, name their class in `architectures`, such as {start}"
                "Model; otherwise, set `model_type` to the type of the model. "
                f"Received: model_type={kind}, architectures={architectures}"
            )
        for name, usual in cls.one_value.items():
            if values.get(name) not in (usual, None):
                raise InputError(
                    f"This BERT computes otherwise than the original: `{name}` "
                    f"must be {usual!r}. Received: {name}={values[name]!r}"
                )

    @property
    def embedding_size(self) -> int:
        """The size of word embeddings, E."""
        return self.hidden_size

    @property
    def maps_embeddings(self) -> bool | None:
        """Whether a dense layer maps the embeddings from E to D."""
        return False

    @property
    def num_blocks(self) -> int:
        """The number of transformer layers that run in sequence."""
        return self.num_hidden_layers

    @property
    def projection_dropout_prob(self) -> float:
        """The dropout rate after the output projection of attention."""
        return self.hidden_dropout_prob

    @property
    def head_dropout_prob(self) -> float:
        """The dropout rate of a classifier's input."""
        return self.hidden_dropout_prob

    @property
    def activations(self) -> int | None:
        """Values per token that training keeps; None: as many as BERT."""
        return None

    def to_json(self) -> str:
        """Returns the text of a bert_config.json."""
        said = {
            x.name: getattr(self, x.name)
            for x in dataclasses.fields(self)
            if x.name not in OMITTED_BY_DEFAULT
            or getattr(self, x.name) != x.default
        }
        if self.model_type != BertConfig.model_type:
            said = {"model_type": self.model_type} | said
        return json.dumps(said, indent=2) + "\n"

    def with_head_of(self, other: "BertConfig | type[BertConfig]") -> Self:
        """Returns the config with another's head; of a class: the defaults."""
        return dataclasses.replace(
            self, **{name: getattr(other, name) for name in _OF_HEAD}
        )

    def check_sequence_length(self, max_seq_length: int) -> None:
        """Raises InputError if the position table has too few rows."""
        if max_seq_length > self.max_position_embeddings:
            raise InputError(
                "`max_seq_length` is more than the model has positions for: "
                "lower it. "
                f"Received: max_seq_length={max_seq_length}, "
                f"max_position_embeddings={self.max_position_embeddings}"
            )

    def tells_apart(self, segments: Sequence[int]) -> bool:
        """Returns whether the model has a token type for each segment id."""
        return not self.type_vocab_size or max(segments) < self.type_vocab_size

    def check_reads_pairs(self, segments: Sequence[int]) -> None:
        """Raises InputError if tokens of a second text have no type.

        `segments` are the ids of the two segments in a vocabulary's template.
        """
        if not self.tells_apart(segments):
            raise InputError(
                "This model has no token type for the second text of a pair: "
                "start from one that was made for pairs, or give single texts. "
                f"Received: type_vocab_size={self.type_vocab_size}, and tokens "
                f"of type {max(segments)}"
            )

    def check_reads_single_texts(self) -> None:
        """Raises InputError if the encoder compares two texts."""
        if self.needs_pairs:
            raise InputError(
                "This encoder compares the two texts of a pair, and there is "
                "one text: give pairs, or choose another encoder. "
                f"Received: model_type={self.model_type}"
            )

    def check_gives_sequence(self, reader: str) -> None:
        """Raises InputError without token vectors, which `reader` needs."""
        if not self.gives_sequence:
            raise InputError(
                "This encoder has a vector for each text, and none for its "
                f"tokens, which {reader} needs: choose another encoder. "
                f"Received: model_type={self.model_type}"
            )

    def check_head(self, head: Any) -> None:
        """Raises InputError for a heads.Model that the encoder can't have."""
        if head.reads_sequence:
            self.check_gives_sequence(f"the head {head.name}")

    def check_reads_packed(self, path: str) -> None:
        """Raises InputError if the model can't read packed records."""
        if not self.reads_packed:
            raise InputError(
                f"{path} has several sequences in a row, and this model would "
                "read on from one into the next: make the records without "
                f"--pack. Received: model_type={self.model_type}"
            )

    def check_replicas(self, count: int) -> None:
        """Raises InputError if the model can't be fine-tuned on replicas."""

    def check_vocab_size(self, size: int, path: str) -> None:
        """Raises InputError if a vocabulary of `size` tokens does not fit.

        Embedding tables are often padded to a multiple of 8, 64 or 128 rows, so
        up to 127 extra rows are accepted.
        """
        more = self.vocab_size - size
        if 0 < more < 128 and not self.vocab_size % 8:
            logging.warning(
                "%s has %d tokens, and the model has %d rows for them: the "
                "last %d are treated as padding.",
                *(path, size, self.vocab_size, more),
            )
        elif more:
            way_out = "Give the two of one model"
            if more < 0:
                way_out += (
                    ", or add the tokens to the checkpoint by "
                    "convert_checkpoint.py --new_vocab_file"
                )
            raise InputError(
                f"{path} does not belong to this BERT config: it has {size} "
                f"tokens, the config says vocab_size={self.vocab_size}. "
                f"{way_out}."
            )

    def check_vocabulary(self, vocabulary: Any, path: str) -> None:
        """Raises InputError if a vocabulary does not fit, such as its size."""
        self.check_vocab_size(len(vocabulary.pieces), path)


# ---- Keys --------------------------------------------------------------------


def read_json_file(path: str) -> dict[str, Any]:
    """Returns the values of a bert_config.json, unchecked."""
    input_files.check(path, "bert_config_file")
    input_files.check_can_be_read_again(path)
    with file_systems.find_backend(path).open(path, "rb") as file:
        data = file.read()
    way_out = "Give the bert_config.json of the model."
    values = json_files.parse(data, path, "JSON", way_out)
    if not isinstance(values, dict):
        raise InputError(
            f"{path} must hold one JSON object, the config of a BERT. "
            f"Received: {repr(values)[:40]}"
        )
    return values


def _check_keys(
    values: Collection[str], fields: Collection[str], others: Collection[str]
) -> None:
    known = {*fields, *config_keys.HARMLESS, *others, *config_keys.POOLER}
    unknown = sorted(set(values) - known)
    for i, key in enumerate(unknown):
        for meant in difflib.get_close_matches(key, fields, 1, 0.75):
            unknown[i] = f"{key} (did you mean {meant}?)"
    if unknown:
        raise InputError(
            f"The BERT config has unknown keys: {', '.join(unknown)}. What is "
            "unknown may change the model: mend or remove it."
        )


def _notes(values: Mapping[str, Any], config: BertConfig) -> list[str]:
    """Describes values of a file that are not used, or used differently."""
    notes = []
    harmless = {*config_keys.HARMLESS, *config.one_value, *config.unused_keys}
    unused = [key for key in values if key in harmless]
    if config.model_type != BertConfig.model_type:
        unused = [k for k in unused if k != "model_type"]
    if values.get("problem_type") in _OTHER_PROBLEMS:
        unused.append("problem_type")
    if unused:
        notes.append(
            f"not used, the model is the same: {', '.join(sorted(unused))}."
        )
    notes += rate_notes(values, config)
    if _is_erf_in_theirs(values, config):
        notes.append(
            "a config of Hugging Face, where gelu is the erf form. In this "
            "file it is taken for the original's tanh form; the model's folder "
            "as --init_checkpoint keeps erf."
        )
    missing = [
        f"{n}={getattr(config, n)}" for n in config.sizes if n not in values
    ]
    if missing:
        notes.append(f"not in the file, so the default: {', '.join(missing)}.")
    return notes


def rate_notes(values: Mapping[str, Any], config: BertConfig) -> list[str]:
    """Describes dropout rates of transformers that are not used."""
    rate = config.hidden_dropout_prob
    return [
        f"{part} trained with hidden_dropout_prob={rate}, not with "
        f"{key}={values[key]}."
        for key, part in config.other_rates.items()
        if values.get(key) not in (None, rate)
    ]


def _is_erf_in_theirs(values: Mapping[str, Any], config: BertConfig) -> bool:
    """Returns whether a file is transformers' but its gelu is read as tanh."""
    # If erf is the default, transformers' values have already been renamed.
    if type(config).hidden_act != "gelu":
        return False
    theirs, unsaid = {"architectures", "transformers_version"}, "linear"
    # Our own files of other families contain the family and all values.
    if config.model_type == BertConfig.model_type:
        theirs, unsaid = theirs | {"model_type"}, "gelu"
    act = _activation(values.get("hidden_act", unsaid))
    return not theirs.isdisjoint(values) and act == "gelu"


# ---- Values ------------------------------------------------------------------


# The sizes of tensors have 32 bits in many operations.
_MAX_SIZE = 2**31 - 1


def _check(
    values: Mapping[str, Any], given: Collection[str], kind: type[BertConfig]
) -> None:
    """Raises InputError if a value is bad, or two contradict each other."""

    def received(*names: str) -> str:
        said = (
            f"{name}={values[name]!r}"
            + ("" if name in given else " (not in the file, so the default)")
            for name in names
        )
        return f"Received: {', '.join(said)}"

    for name in kind.sizes:
        least = kind.least_types if name == "type_vocab_size" else 1
        if not _is_a(values[name], int) or values[name] < least:
            raise InputError(
                f"`{name}` must be a positive integer. {received(name)}"
            )
        if values[name] > _MAX_SIZE:
            raise InputError(
                f"`{name}` must be at most {_MAX_SIZE}. {received(name)}"
            )
    if values["hidden_size"] % values["num_attention_heads"]:
        raise InputError(
            "`hidden_size` must be a multiple of `num_attention_heads`. "
            f"{received('hidden_size', 'num_attention_heads')}"
        )
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if not _is_a(values[name], int | float) or not 0 <= values[name] < 1:
            raise InputError(
                f"`{name}` must be a number, at least 0 and below 1. "
                f"{received(name)}"
            )
    for name in (
        "initializer_range",
        "layer_norm_eps",
        "transform_layer_norm_eps",
    ):
        value = values[name]
        if name == "transform_layer_norm_eps" and value is None:
            continue
        if not _is_a(value, int | float) or not 0 < value < math.inf:
            raise InputError(
                f"`{name}` must be a positive number. {received(name)}"
            )
    if values["problem_type"] not in (None, MULTI_LABEL):
        raise InputError(
            f"`problem_type` must be {MULTI_LABEL!r}, or be left out. "
            f"{received('problem_type')}"
        )
    if not isinstance(values["splits_cjk"], bool):
        raise InputError(
            f"`splits_cjk` must be true or false. {received('splits_cjk')}"
        )
    act = _activation(values["hidden_act"])
    _check_activation("hidden_act", act)
    _check_activation("transform_act", values["transform_act"] or act)
    _check_activation("pooler_act", values["pooler_act"], kind.pooler_acts)
    _check_activation("score_act", values["score_act"], SCORE_ACTS)


def _check_activation(
    name: str, value: Any, allowed: Collection[str] = ACTIVATIONS
) -> None:
    if value not in allowed:
        raise InputError(
            f"`{name}` must be one of {', '.join(allowed)}. "
            f"Received: {name}={value!r}"
        )


def _activation(name: Any) -> Any:
    """Returns the name of an activation as the original interprets it."""
    if name is None or name == "":
        return "linear"
    return name.lower() if isinstance(name, str) else name


def _is_a(value: Any, kind: Any) -> bool:
    """Like isinstance, but `true` in a JSON file is not a number."""
    return isinstance(value, kind) and not isinstance(value, bool)
