"""Names and numerics of a model family in KerasHub, from the family's tables.

Kernels have the layout of encoders/bert.py. A KerasHub encoder has one
activation and one epsilon; its masked-LM heads always use the same other pair.
"""

from collections.abc import Mapping
from typing import Any

from bert_tf import modeling
from bert_tf.checkpoints import names
from bert_tf.encoders import families, family, foreign
from bert_tf.errors import InputError
from bert_tf.vocabularies import sentence_pieces, word_pieces

# Applies to KerasHub 0.32, which lower-cases by Unicode's NFKC_Casefold.
_UNCASED_TEXTS = (
    "KerasHub's own tokenizer makes other pieces of some texts than BERT's: "
    "where it lower-cases it turns ß into ss, ς into σ, and characters such as "
    "², ½ and ﬁ into 2, 1⁄2 and fi, and leaves Korean syllables whole. It does "
    "not split at no-break and other spaces beyond ASCII, and does at "
    "characters of no width; words of more than 100 bytes are [UNK]. Other "
    "ASCII text is split alike."
)
_SENTENCE_PIECES = (
    "KerasHub's own tokenizer of sentence pieces does nothing to a text before "
    "it is split: give it text that is in lower case, without accents, and "
    "normalized by NFKD, as the model has read. A number before a comma may "
    "get other pieces."
)


def of_texts(kind: str, do_lower_case: bool) -> list[str]:
    """Describes how KerasHub tokenizes differently, by kind of vocabulary."""
    if kind == sentence_pieces.SentencePieces.kind:
        return [_SENTENCE_PIECES]
    is_plain = kind == word_pieces.WordPiece.kind
    return [_UNCASED_TEXTS] if is_plain and do_lower_case else []


def find_tables(encoder: family.Family) -> foreign.KerasHub:
    """Returns a family's tables; InputError if KerasHub lacks the family."""
    if encoder.keras_hub is None:
        raise InputError(
            "KerasHub has no such encoder: write it with --output_format=tf1. "
            f"Received: encoder={encoder.name}"
        )
    return encoder.keras_hub


def table(config: modeling.BertConfig, head: str) -> list[foreign.Row]:
    """Returns the rows of a model; InputError if KerasHub lacks the family."""
    theirs = find_tables(families.find(config))
    rows = (*theirs.rows, *theirs.heads[head])
    return foreign.expand(rows, families.find(config).numbers(config))


def head_there(config: modeling.BertConfig, head: str) -> str:
    """Returns the part of a head that KerasHub has, or "encoder" if none."""
    own = (head, *names.HEADS[head].parts)
    return next(
        (x for x in own if x in find_tables(families.find(config)).heads),
        "encoder",
    )


def find(backbone: str | None) -> family.Family | None:
    """Returns the family of a backbone's class; None if it is unknown."""
    return _known().get(str(backbone))


def readable() -> list[str]:
    """Returns the classes of backbones that can be read."""
    return sorted(_known())


def _known() -> dict[str, family.Family]:
    rows = families.FAMILIES.values()
    return {x.keras_hub.backbone: x for x in rows if x.keras_hub}


def to_config(
    encoder: family.Family, values: Mapping[str, Any], head: str
) -> modeling.BertConfig:
    """Returns our config for the arguments of a backbone."""
    theirs = find_tables(encoder)
    own = {ours: values[name] for ours, name in theirs.arguments.items()}
    own["attention_probs_dropout_prob"] = own["hidden_dropout_prob"]
    own |= theirs.numerics
    if head == "masked_lm":
        alike = {
            "transform_act": own["hidden_act"],
            "transform_layer_norm_eps": own["layer_norm_eps"],
        }
        # Values equal to the encoder's are omitted.
        own |= {x: v for x, v in theirs.transform.items() if v != alike[x]}
    config = encoder.config(**own)
    theirs.check(config)
    return config


def from_config(config: modeling.BertConfig) -> dict[str, Any]:
    """Returns the arguments of a backbone."""
    theirs = find_tables(families.find(config))
    theirs.check(config)
    arguments = theirs.arguments
    return {name: getattr(config, x) for x, name in arguments.items()}


def differences(config: modeling.BertConfig, head: str) -> list[str]:
    """Returns sentences on what KerasHub will compute differently."""
    theirs = find_tables(families.find(config))
    wanted = {name: getattr(config, name) for name in theirs.numerics}
    fixed = dict(theirs.numerics)
    if head_there(config, head) == "masked_lm":
        fixed |= theirs.transform
        wanted["transform_act"] = config.transform_act or config.hidden_act
        wanted["transform_layer_norm_eps"] = (
            config.transform_layer_norm_eps or config.layer_norm_eps
        )
    changed = [
        f"{name}={fixed[name]} instead of {value}"
        for name, value in wanted.items()
        if value != fixed[name]
    ]
    notes = foreign.rate_notes(config, "KerasHub")
    if not changed:
        return notes
    return [
        *notes,
        f"KerasHub computes with {', '.join(changed)}: the weights are the "
        "same, the outputs will differ.",
    ]
