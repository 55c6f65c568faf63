"""The names and the numerics of Hugging Face's BERT.

`transformers` calls "gelu" the erf form. Checkpoints that were converted from
the original's, which computes the tanh form, say so all the same; loading keeps
what the file says. A kernel is [in, out] with us and [out, in] there.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bert_tf import modeling
from bert_tf.checkpoints import names
from bert_tf.encoders import families, family
from bert_tf.errors import InputError

# Theirs -> ours. The first name of each of ours is the one to write.
ACTIVATIONS = {
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_fast": "gelu",
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}


class Head(NamedTuple):
    """A head there: its class, whether that builds a pooler, and its names."""

    architecture: str
    has_pooler: bool
    rows: tuple[family.Row, ...]


def _output(ours: str, theirs: str) -> tuple[family.Row, ...]:
    return (
        family.Row(f"{ours}output_weights", f"{theirs}.weight"),
        family.Row(f"{ours}output_bias", f"{theirs}.bias"),
    )


_OURS, _THEIRS = "cls/predictions/transform", "cls.predictions.transform"
_PREDICTIONS = (
    family.Row(f"{_OURS}/dense/kernel", f"{_THEIRS}.dense.weight", True),
    family.Row(f"{_OURS}/dense/bias", f"{_THEIRS}.dense.bias"),
    family.Row(f"{_OURS}/LayerNorm/gamma", f"{_THEIRS}.LayerNorm.weight"),
    family.Row(f"{_OURS}/LayerNorm/beta", f"{_THEIRS}.LayerNorm.bias"),
    family.Row("cls/predictions/output_bias", "cls.predictions.bias"),
)
_SENTENCES = _output("cls/seq_relationship/", "cls.seq_relationship")
# Of names.HEADS, those that transformers has.
HEADS: Mapping[str, Head] = {
    "encoder": Head("BertModel", True, ()),
    "pretraining": Head("BertForPreTraining", True, _PREDICTIONS + _SENTENCES),
    "masked_lm": Head("BertForMaskedLM", False, _PREDICTIONS),
    "next_sentence": Head("BertForNextSentencePrediction", True, _SENTENCES),
    "classification": Head(
        "BertForSequenceClassification", True, _output("", "classifier")
    ),
    "tagging": Head(
        "BertForTokenClassification",
        False,
        _output("cls/tagging/", "classifier"),
    ),
    "span": Head(
        "BertForQuestionAnswering", False, _output("cls/squad/", "qa_outputs")
    ),
    "multiple_choice": Head(
        "BertForMultipleChoice",
        True,
        _output("cls/multiple_choice/", "classifier"),
    ),
}
# Class -> head.
ARCHITECTURES = {head.architecture: name for name, head in HEADS.items()}

# The output layer of masked words is the word embeddings: stored twice.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Buffers of older files: 0, 1, 2, ...
_BUFFERS = re.compile(r"\.position_ids$|\.token_type_ids$")


def table(config: modeling.BertConfig, head: str) -> list[family.Row]:
    """Returns the rows of a model with a head, the pooler's included.

    It raises InputError where transformers has no such model.
    """
    encoder = families.of(config)
    if encoder.huggingface is None or head not in HEADS:
        raise InputError(
            "transformers has no such model, so there is nothing of Hugging "
            "Face's to write: use --output_format=tf1. "
            f"Received: encoder={encoder.name}, head={head}"
        )
    rows = (*encoder.huggingface, *HEADS[head].rows)
    return family.expand(rows, config.num_hidden_layers)


def has_pooler(head: str) -> bool:
    """Says whether transformers builds the pooler of a model with a head."""
    return HEADS[head].has_pooler


def stored_name(theirs: str, head: str) -> str:
    """Returns the name in a model's file, without `bert.` in a BertModel's."""
    return theirs.removeprefix("bert.") if head == "encoder" else theirs


def canonical(stored: Iterable[str]) -> dict[str, str]:
    """Returns today's name -> the stored one; buffers are left out.

    A bare BertModel's lack `bert.`; those of TF1 times say gamma and beta.
    """
    today = {}
    for name in stored:
        if _BUFFERS.search(name):
            continue
        new = re.sub(r"^(?=(embeddings|encoder|pooler)\.)", "bert.", name)
        new = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", new)
        new = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", new)
        today[new] = name
    return today


def find_head(values: Mapping[str, Any], found: Iterable[str]) -> str:
    """Returns the head of a file by its config.json and its names.

    A pre-trained file may say that it is for one of the two tasks, as that of
    bert-base-uncased does, and hold the heads of both. It raises InputError if
    nothing says what a classifier is for.
    """
    found = set(found)
    architectures = values.get("architectures") or []
    heads = {ARCHITECTURES[n] for n in architectures if n in ARCHITECTURES}
    if len(heads) == 1:
        (head,) = heads
        wholes = [x.name for x in names.HEADS.values() if head in x.parts]
        return next((x for x in wholes if _has(x, found)), head)
    if any(name.startswith("classifier.") for name in found):
        raise InputError(
            "The file holds a classifier, and config.json does not say of "
            "what: set its `architectures` to one of "
            f"{', '.join(sorted(ARCHITECTURES))}. "
            f"Received: architectures={architectures}"
        )
    for head in ("pretraining", "masked_lm", "next_sentence", "span"):
        if _has(head, found):
            return head
    return "encoder"


def _has(head: str, found: set[str]) -> bool:
    return {row.theirs for row in HEADS[head].rows} <= found


def to_config(values: Mapping[str, Any]) -> modeling.BertConfig:
    """Returns our config for the values of a config.json.

    It raises InputError for no BERT, or one that computes otherwise.
    """
    # Whether weights are tied is seen in the tensors.
    modeling.BertConfig.check_is_bert(
        {k: v for k, v in values.items() if k != "tie_word_embeddings"}
    )
    act = values.get("hidden_act", "gelu")
    if act not in ACTIVATIONS:
        raise InputError(
            f"`hidden_act` must be one of {', '.join(ACTIVATIONS)}. "
            f"Received: hidden_act={act!r}"
        )
    # What transformers takes where a config.json does not say.
    defaults = {"vocab_size": 30522, "type_vocab_size": 2}
    known = {field.name for field in dataclasses.fields(modeling.BertConfig)}
    problem = values.get("problem_type")
    own = {
        "hidden_act": ACTIVATIONS[act],
        "problem_type": problem if problem == modeling.MULTI_LABEL else None,
    }
    given = {k: v for k, v in values.items() if k in known}
    return modeling.BertConfig.of_file(defaults | given | own, given)


def from_config(
    config: modeling.BertConfig, head: str, labels: Iterable[str] | None
) -> dict[str, Any]:
    """Returns the values of a config.json; `labels` is None for a score."""
    act = next(n for n, own in ACTIVATIONS.items() if own == config.hidden_act)
    values = {
        "architectures": [HEADS[head].architecture],
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob,
        "classifier_dropout": None,
        "hidden_act": act,
        "hidden_dropout_prob": config.hidden_dropout_prob,
        "hidden_size": config.hidden_size,
        "initializer_range": config.initializer_range,
        "intermediate_size": config.intermediate_size,
        "layer_norm_eps": config.layer_norm_eps,
        "max_position_embeddings": config.max_position_embeddings,
        "model_type": config.model_type,
        "num_attention_heads": config.num_attention_heads,
        "num_hidden_layers": config.num_hidden_layers,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
        "type_vocab_size": config.type_vocab_size,
        "vocab_size": config.vocab_size,
    }
    if names.HEADS[head].has_labels:
        own = list(labels or ["LABEL_0"])
        values["id2label"] = {str(i): label for i, label in enumerate(own)}
        values["label2id"] = {label: i for i, label in enumerate(own)}
    if head == "classification":
        values["problem_type"] = config.problem_type or (
            "single_label_classification" if labels else "regression"
        )
    return values


def differences(config: modeling.BertConfig, head: str) -> list[str]:
    """Says in sentences what transformers will compute otherwise."""
    notes = []
    if config.pooler_act != "tanh":
        notes.append(
            f"The pooler computes with pooler_act={config.pooler_act}; that of "
            "transformers with tanh, and its pooled outputs will differ."
        )
    act = config.transform_act or config.hidden_act
    epsilon = config.transform_layer_norm_eps or config.layer_norm_eps
    same = (act, epsilon) == (config.hidden_act, config.layer_norm_eps)
    if same or "cls/predictions/output_bias" not in names.HEADS[head].variables:
        return notes
    return [
        *notes,
        "The head of masked words computes with "
        f"transform_act={act}, transform_layer_norm_eps={epsilon}; "
        "transformers has one activation and one epsilon for the whole model, "
        "and its logits will differ.",
    ]
