"""The heads by their variables, and what the names in a checkpoint make.

Shapes as in encoders/family.py, and C: classes.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bert_tf import configuration, options
from bert_tf.encoders import families
from bert_tf.encoders import family as family_row
from bert_tf.errors import InputError

# What a name in a layer begins with, ours or one of other libraries.
_LAYER = re.compile(r"^.*?\blayer[._]\d+[./]")
# Up to this number, missing names of a layer are listed one by one.
_FEW = 4
# The head of models that generate texts, and the prefix of their decoders.
_SEQ2SEQ, _DECODER = "seq2seq", "decoder/"


@dataclasses.dataclass(frozen=True)
class Head:
    """What a head adds to an encoder's variables.

    Attributes:
        variables: Name -> letters of its shape.
        optional: Likewise, for variables that some families do not have.
        reads_pooled: Whether it reads the pooled output; if not, its
            checkpoints may lack the pooler.
        parts: Heads that it is made of, and that it goes before. The first is
            the one that is meant where none is named.
    """

    name: str
    variables: Mapping[str, str]
    reads_pooled: bool = False
    has_labels: bool = False
    parts: tuple[str, ...] = ()
    optional: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def all_variables(self) -> dict[str, str]:
        """Name -> letters, of all families."""
        return {**self.variables, **self.optional}

    @property
    def bias(self) -> str:
        """The first variable that has a value for each output, or ""."""
        outputs = [n for n in self.variables if n.endswith("output_bias")]
        return outputs[0] if outputs else ""


# By name.
HEADS: dict[str, Head] = {}


def register(head: Head) -> None:
    """Adds a head; InputError if its name or its variables are taken."""
    for other in HEADS.values():
        is_same = other.name == head.name or (
            head.variables and other.variables.keys() == head.variables.keys()
        )
        if is_same and other != head:
            raise InputError(
                "A checkpoint's names tell its head: choose another name, and "
                f"other variables, than those of {other.name}. "
                f"Received: name={head.name!r}, "
                f"variables={', '.join(head.variables)}"
            )
    HEADS[head.name] = head
    if head.name not in options.HEADS:
        options.HEADS.append(head.name)


_PREDICTIONS = {
    "cls/predictions/transform/dense/kernel": "DE",
    "cls/predictions/transform/dense/bias": "E",
    "cls/predictions/transform/LayerNorm/beta": "E",
    "cls/predictions/transform/LayerNorm/gamma": "E",
    "cls/predictions/output_bias": "V",
}
_SENTENCES = {
    "cls/seq_relationship/output_weights": "2D",
    "cls/seq_relationship/output_bias": "2",
}

_TOKENS = {
    "discriminator_predictions/dense/kernel": "DD",
    "discriminator_predictions/dense/bias": "D",
    "discriminator_predictions/dense_1/kernel": "D1",
    "discriminator_predictions/dense_1/bias": "1",
}


# As in ALBERT's run_squad_v2.py.
_JOINT = {
    "start_logits/dense/kernel": "D1",
    "start_logits/dense/bias": "1",
    "end_logits/dense_0/kernel": "WD",
    "end_logits/dense_0/bias": "D",
    "end_logits/LayerNorm/beta": "D",
    "end_logits/LayerNorm/gamma": "D",
    "end_logits/dense_1/kernel": "D1",
    "end_logits/dense_1/bias": "1",
    "answer_class/dense_0/kernel": "WD",
    "answer_class/dense_0/bias": "D",
    "answer_class/dense_1/kernel": "D1",
}


def _output(before: str, outputs: str) -> dict[str, str]:
    return {
        f"{before}output_weights": f"{outputs}D",
        f"{before}output_bias": outputs,
    }


def _predictions_as(name: str) -> dict[str, str]:
    """Returns the variables of the head of masked words, under another name."""
    found = _PREDICTIONS.items()
    return {x.replace("predictions", name): letters for x, letters in found}


for _head in (
    Head("encoder", {}),
    Head(
        "pretraining",
        _PREDICTIONS | _SENTENCES,
        reads_pooled=True,
        parts=("masked_lm", "next_sentence"),
    ),
    Head("masked_lm", _PREDICTIONS),
    Head("replaced_tokens", _TOKENS, parts=("encoder",)),
    Head("next_sentence", _SENTENCES, reads_pooled=True),
    Head(
        "classification",
        _output("", "C"),
        reads_pooled=True,
        has_labels=True,
    ),
    Head("tagging", _output("cls/tagging/", "C"), has_labels=True),
    Head("span", _output("cls/squad/", "2")),
    Head("joint_span", _JOINT),
    Head(
        "multiple_choice",
        _output("cls/multiple_choice/", "1"),
        reads_pooled=True,
    ),
    Head(
        "next_piece",
        {"cls/next_piece/output_bias": "V"},
        optional=_predictions_as("next_piece"),
    ),
    Head(_SEQ2SEQ, {f"{_DECODER}predictions/output_bias": "V"}),
    Head(
        "both_directions",
        _predictions_as("both_directions"),
        parts=("encoder",),
    ),
):
    register(_head)


def _register_objective(family: family_row.Family) -> None:
    """Adds the head of a family's own pre-training objective, if any."""
    name = family.config.pretraining_head
    if family.pretrainer is not None and name is not None:
        register(Head(name, family.pretrainer.variables, parts=("encoder",)))


families.on_register(_register_objective)


def shapes(
    config: configuration.BertConfig, head: str, num_labels: int = 0
) -> dict[str, tuple[int, ...]]:
    """Returns name -> shape of all variables of an encoder with a head."""
    family = families.find(config)
    letters = family.names(config) | _letters(config, head)
    sizes = _sizes(config, num_labels)
    return {
        n: tuple(sizes[x] for x in shape)
        for n, shape in letters.items()
        if _can_have(head, n)
    }


def _letters(config: configuration.BertConfig, head: str) -> dict[str, str]:
    """Returns name -> letters of a head's variables, on a config's model."""
    return {
        n: letters
        for n, letters in HEADS[head].all_variables.items()
        if config.has_transform or "/transform/" not in n
    }


def _can_have(head: str, name: str) -> bool:
    """Whether a variable may be in a model with a head.

    All but one head are on the encoder alone.
    """
    return head == _SEQ2SEQ or not name.startswith(_DECODER)


def is_in_model(head: str, name: str) -> bool:
    """Whether a name is of an encoder with this head, whatever the family."""
    prefixes = (row.prefix for row in families.FAMILIES.values())
    is_known = name.startswith((*prefixes, _DECODER))
    is_known |= name in HEADS[head].all_variables
    return is_known and _can_have(head, name)


def zeros(
    config: configuration.BertConfig | None, head: str, num_labels: int = 0
) -> dict[str, tuple[int, ...]]:
    """Returns name -> shape of a head's bias, if it is always zero."""
    bias = HEADS[head].bias
    if not bias or config is None or not config.has_plain_outputs:
        return {}
    return {bias: shapes(config, head, num_labels)[bias]}


def parameters(config: configuration.BertConfig, head: str) -> int:
    """Returns how many weights an encoder with a head has.

    It counts, and lists no layers: these may be more than memory has room for.
    """
    family = families.find(config)
    letters = {**family.variables, **_letters(config, head)}
    layers = math.prod(getattr(config, name) for name in family.counts)
    sizes, absent = _sizes(config), family.absent(config)
    return sum(
        math.prod(sizes[x] for x in shape) * (layers if "{}" in name else 1)
        for name, shape in letters.items()
        if name not in absent and _can_have(head, name)
    )


def _sizes(
    config: configuration.BertConfig, num_labels: int = 0
) -> dict[str, int]:
    """Returns what the letters of shapes stand for."""
    return {
        "V": config.vocab_size,
        "T": config.type_vocab_size,
        "M": config.max_position_embeddings,
        "D": config.hidden_size,
        "E": config.embedding_size,
        "F": config.intermediate_size,
        "L": config.num_hidden_layers,
        "W": 2 * config.hidden_size,
        "C": num_labels,
        "1": 1,
        "2": 2,
        **families.find(config).sizes(config),
    }


def listed(found: Iterable[str]) -> str:
    """Returns names as people read them: of a layer's many, only how many."""

    def layer(name: str) -> str | None:
        start = _LAYER.match(name)
        return start and start[0]

    texts = []
    for start, group in itertools.groupby(found, layer):
        own = list(group)
        if start is None or len(own) <= _FEW:
            texts += own
        else:
            texts.append(f"{start}* ({len(own)} variables)")
    return ", ".join(texts)


def by_piece(config: configuration.BertConfig) -> set[str]:
    """Returns the variables with a row for each token, [V, ...]."""
    family = families.find(config)
    tables = [family.variables]
    tables += [head.variables for head in HEADS.values()]
    found = {n for table in tables for n, s in table.items() if s[0] == "V"}
    return found | (family.generator.by_piece if family.generator else set())


def find_head(found: Collection[str], path: str) -> str:
    """Returns the key of HEADS that names make; InputError if several do."""
    here = [
        head
        for head in HEADS.values()
        if head.variables and head.variables.keys() <= set(found)
    ]
    parts = {part for head in here for part in head.parts}
    heads = [head.name for head in here if head.name not in parts]
    if len(heads) > 1:
        raise InputError(
            f"{path} holds several heads: {', '.join(heads)}. Say which one "
            "is meant with --head."
        )
    return heads[0] if heads else "encoder"


def required(source: configuration.BertConfig | None, head: str) -> str:
    """Returns a regular expression of what a trained checkpoint must have."""
    return (
        "" if HEADS[head].reads_pooled else families.find(source).all_but_pooler
    )


def _up_to_a_missing_layer(
    config: configuration.BertConfig, found: Collection[str]
) -> configuration.BertConfig:
    """Drops layers after a missing one: a file may have any number."""
    family = families.find(config)
    layers = set(map(family.layer, found)) - {None}
    count = min(family.num_layers(config), len(layers) + 1)
    fewer: dict[str, Any] = {family.counts[0]: count}
    return dataclasses.replace(config, **fewer)


def _named_as(
    found: Collection[str], expected: family_row.Family
) -> family_row.Family | None:
    """Returns the family that has such layers, unless the expected one has."""
    for family in (expected, *families.FAMILIES.values()):
        if any(family.layer(name) is not None for name in found):
            return None if family is expected else family
    return None


def _strangers(
    config: configuration.BertConfig, found: Collection[str]
) -> list[str]:
    """Says which variables of an encoder are in no model of the config.

    Who left them out would compute something else. What stands below a variable
    of the model is its slot, of whatever optimizer.
    """
    family = families.find(config)
    counts = ", ".join(
        f"{name}={getattr(config, name)}" for name in family.counts
    )
    return [
        f"{name} is not in the config"
        + (f", which says {counts}" if family.layer(name) is not None else "")
        for name in sorted(found)
        if name.startswith(family.prefix)
        and not family.has(name, config)
        and not family.has(name.rpartition("/")[0], config)
    ]


def check(
    config: configuration.BertConfig,
    found: Mapping[str, tuple[int, ...]],
    path: str,
    config_path: str | None = None,
) -> None:
    """Raises InputError if a config does not describe the tensors.

    Heads and the pooler may be missing from `found`, and tensors outside the
    encoder are ignored; but all of an encoder's variables must be used. The
    message names the config's path if it is not next to the checkpoint.
    """
    family = families.find(config)
    other = _named_as(found, family)
    if other:
        ours, theirs = family.name.upper(), other.name.upper()
        raise InputError(
            f"{path} is no {ours}: by its names it is {theirs}. Give a "
            f"checkpoint of {ours}, or the config of this one."
        )
    short = _up_to_a_missing_layer(config, found)
    # Of the family: other tensors may have such names, too.
    whole = shapes(short, _SEQ2SEQ)
    stored = whole.keys() & found.keys()
    has_decoder = any(name.startswith(_DECODER) for name in stored)
    expected = whole if has_decoder else shapes(short, "encoder")
    for head in HEADS.values():
        labels = found.get(head.bias, (0,))
        own = shapes(short, head.name, *labels)
        expected |= {n: shape for n, shape in own.items() if n in found}
    problems = [
        f"{name} is not there"
        for name in sorted(expected.keys() - found.keys() - family.pooler)
    ]
    problems += [
        f"{name} is {list(found[name])} there and {list(shape)} by the config"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    problems += _strangers(config, found.keys() - expected.keys())
    if problems:
        more = len(problems) - 3
        shown = problems[:3] + ([f"and {more} more"] if more > 0 else [])
        raise InputError(
            f"{path}: the tensors are not those of "
            f"{config_path or 'the config beside them'}: "
            f"{'; '.join(shown)}. Use the config that belongs to them, or copy "
            "the weights again."
        )
