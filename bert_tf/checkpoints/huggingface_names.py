"""A family's names and numerics in files of Hugging Face, by its tables.

`transformers` calls "gelu" the erf form. Checkpoints that were converted from
the original's, which computes the tanh form, say so all the same; loading keeps
what the file says. A kernel is [in, out] with us and [out, in] there.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from bert_tf import configuration, modeling
from bert_tf.checkpoints import names
from bert_tf.encoders import families, foreign
from bert_tf.errors import InputError

from absl import logging

# Buffers of older files: 0, 1, 2, ..., and the causal mask of a GPT.
_BUFFERS = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.bias)$")
# DataParallel, torch.compile.
_WRAPPERS = re.compile(r"^(module\.|_orig_mod\.)+")
# Heads that are known by their tensors, where config.json does not say.
_BY_NAMES = (
    *("pretraining", "masked_lm", "next_sentence", "replaced_tokens"),
    *("span", "next_piece"),
)
# Heads whose dropout rates are in a config.json.
_FINE_TUNED = ("classification", "tagging", "span", "multiple_choice")


def find_tables(config: modeling.BertConfig, head: str) -> foreign.HuggingFace:
    """Returns the tables of a config's family, which have a head.

    It raises InputError where transformers has no such model.
    """
    encoder = families.find(config)
    theirs = encoder.huggingface
    if theirs is None or head not in theirs.heads:
        raise InputError(
            "transformers has no such model, so there is nothing of Hugging "
            "Face's to write: use --output_format=tf1. "
            f"Received: encoder={encoder.name}, head={head}"
        )
    return theirs


def head_there(config: modeling.BertConfig, head: str) -> str:
    """Returns what transformers has of a head: the whole, or else a part."""
    theirs = families.find(config).huggingface
    own = (head, *names.HEADS[head].parts)
    return next((x for x in own if theirs and x in theirs.heads), head)


def table(config: modeling.BertConfig, head: str) -> list[foreign.Row]:
    """Returns the rows of a model with a head, the pooler's included.

    It raises InputError where transformers has no such model.
    """
    theirs = find_tables(config, head)
    rows = (*theirs.rows, *theirs.heads[head].rows)
    return foreign.expand(rows, families.find(config).numbers(config))


def has_pooler(config: modeling.BertConfig, head: str) -> bool:
    """Says whether transformers builds the pooler of a model with a head."""
    return find_tables(config, head).heads[head].has_pooler


def with_pooler(config: modeling.BertConfig, head: str) -> modeling.BertConfig:
    """Returns the config of a model of theirs with a head.

    Where encoders do without a pooler, heads may have what is ours.
    """
    if config.pooler_act != configuration.NO_POOLER:
        return config
    if not has_pooler(config, head):
        return config
    act = find_tables(config, head).keys.fixed["pooler_act"]
    return dataclasses.replace(config, pooler_act=act)


def canonical(
    theirs: foreign.HuggingFace, stored: Iterable[str]
) -> dict[str, str]:
    """Returns current name -> stored name; buffers are left out.

    A bare encoder's names lack the prefix; names from TF1 have gamma and beta.
    PyTorch's wrappers add other prefixes.
    """
    parts = "|".join(map(re.escape, sorted(theirs.parts)))
    today = {}
    for name in stored:
        if _BUFFERS.search(name):
            continue
        new = _WRAPPERS.sub("", name)
        new = re.sub(rf"^(?=({parts})(\.|$))", theirs.prefix, new)
        new = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", new)
        new = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", new)
        today[new] = name
    for copy, original in theirs.tied.items():
        if original not in today and copy in today:
            today[original] = today.pop(copy)
    return today


def find_head(
    theirs: foreign.HuggingFace,
    values: Mapping[str, Any],
    found: Iterable[str],
) -> str:
    """Returns the head of a file from its config.json and its names.

    The config of a pre-trained file may name one of the two tasks, as in
    bert-base-uncased, although the file has the heads of both. Raises
    InputError if the purpose of a classifier is unknown.
    """
    found = set(found)
    known = theirs.architectures
    architectures = values.get("architectures") or []
    heads = {known[name] for name in architectures if name in known}

    def has(head: str) -> bool:
        rows = theirs.heads[head].rows if head in theirs.heads else None
        return rows is not None and {row.theirs for row in rows} <= found

    if len(heads) == 1:
        (head,) = heads
        wholes = [x.name for x in names.HEADS.values() if head in x.parts]
        return next((x for x in wholes if has(x)), head)
    if any(name.startswith("classifier.") for name in found):
        raise InputError(
            "The file holds a classifier. Its class in `architectures` must be "
            f"one of {', '.join(sorted(known))}. "
            f"Received: architectures={architectures}"
        )
    return next((head for head in _BY_NAMES if has(head)), "encoder")


def with_kind(
    values: dict[str, Any], stored: Iterable[str], folder: str
) -> dict[str, Any]:
    """Returns the values of a config.json with the `model_type` of the tensors.

    Files may lack it, or say "bert" of a family whose tensors have the same
    shapes.
    """
    # A key may identify the family, too.
    if families.of_values(values) is not families.BERT:
        return values
    prefixes = {_WRAPPERS.sub("", name).split(".")[0] for name in stored}
    for name, family in families.FAMILIES.items():
        theirs = family.huggingface
        if theirs is None or theirs.prefix == "bert.":
            continue
        is_told = _identifies(theirs.keys, values)
        if is_told or theirs.prefix.removesuffix(".") in prefixes:
            logging.warning(
                "%s is read as %s, by its tensors or its positions. "
                "Received: model_type=%s",
                folder,
                name,
                values.get("model_type"),
            )
            return {**values, "model_type": name}
    return values


def _identifies(keys: foreign.ConfigKeys, values: Mapping[str, Any]) -> bool:
    """Returns whether a file whose model type is BERT is of a family."""
    if not keys.told_by or not keys.told_by.items() <= values.items():
        return False
    number = values.get("max_position_embeddings")
    return all(values.get(x) == y for x, y in keys.written.items()) or (
        # Such as 130, 258 and 514.
        isinstance(number, int) and number % 64 == keys.unused_positions
    )


def with_own_kind(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of a config.json with our `model_type`.

    Other keys, such as `is_decoder`, may identify a family in a file.
    """
    for name, family in families.FAMILIES.items():
        theirs = family.huggingface
        if theirs is None or not theirs.model_type:
            continue
        named = {"model_type": theirs.model_type, **theirs.identified_by}
        if named.items() <= values.items():
            rest = {k: v for k, v in values.items() if k not in named}
            return {**rest, "model_type": name}
    return values


def to_config(values: Mapping[str, Any]) -> modeling.BertConfig:
    """Returns our config for the values of a config.json.

    It raises InputError for an encoder that is none of ours, or one that
    computes otherwise.
    """
    family = families.of_values(values)
    # Whether weights are tied is seen in the tensors.
    family.config.check_is_bert(
        {k: v for k, v in values.items() if k != "tie_word_embeddings"}
    )
    if family.huggingface is None:
        raise InputError(
            "transformers has no such encoder, so this is no config.json of "
            f"Hugging Face. Received: model_type={family.name}"
        )
    keys = family.huggingface.keys
    given = keys.to_ours(values, family.config)
    said = [x for x in given if keys.renamed.get(x, x) in values]
    return family.config.of_file({**keys.defaults, **given}, said)


def from_config(
    config: modeling.BertConfig, head: str, labels: Iterable[str] | None
) -> dict[str, Any]:
    """Returns the values of a config.json.

    `labels` are the names of the classes. For a score, they are its name, or
    None.
    """
    theirs = find_tables(config, head)
    values = {
        **theirs.keys.to_theirs(config),
        "architectures": [theirs.heads[head].architecture],
        "model_type": theirs.model_type or config.model_type,
        "tie_word_embeddings": True,
    }
    # After pre-training, new heads have the default rates of transformers.
    if head in _FINE_TUNED:
        values |= theirs.keys.rates(config)
    values = dict(sorted(values.items()))
    own = list(labels or ["LABEL_0"])
    if names.HEADS[head].has_labels:
        values["id2label"] = {str(i): label for i, label in enumerate(own)}
        values["label2id"] = {label: i for i, label in enumerate(own)}
    if head == "classification" and config.score_act == "sigmoid":
        # What transformers and sentence-transformers do with one class then.
        values[_SBERT] = {"activation_fn": f"{_ACTIVATION}Sigmoid"}
    elif head == "classification":
        values["problem_type"] = config.problem_type or (
            "single_label_classification" if len(own) > 1 else "regression"
        )
    if head == "tagging":
        values["splits_cjk"] = config.splits_cjk
    return values


# Where sentence-transformers stores the activation of a CrossEncoder's logit:
# versions from 4 on, earlier versions, and since 5 in a separate file.
_SBERT = "sentence_transformers"
_SBERT_OLD = "sbert_ce_default_activation_function"
SBERT_FILE = "config_sentence_transformers.json"
SBERT_MODEL_FILE = "sentence_bert_config.json"
_ACTIVATION = "torch.nn.modules.activation."
_SCORE_ACTS = {
    "torch.nn.modules.linear.Identity": "linear",
    f"{_ACTIVATION}Sigmoid": "sigmoid",
}
# In a config.json, for the sigmoid of one class.
SIGMOID = f'"{_SBERT}": {{"activation_fn": "{_ACTIVATION}Sigmoid"}}'


def default_prompt(encoder_settings: Mapping[str, Any]) -> str | None:
    """Returns the prompt before each text, from the content of `SBERT_FILE`."""
    prompts = encoder_settings.get("prompts") or {}
    return prompts.get(encoder_settings.get("default_prompt_name"))


def tokenizer_options(model_settings: Mapping[str, Any]) -> str:
    """Returns the tokenizer's options in a sentence_bert_config.json."""
    of_calls = model_settings.get("processing_kwargs") or {}
    options = {x: of_calls[x] for x in ("text", "common") if of_calls.get(x)}
    found = {"processing_kwargs": options}
    for name in ("processor_kwargs", "tokenizer_args"):
        found[name] = model_settings.get(name) or {}
    return ", ".join(f"{name}={found[name]}" for name in found if found[name])


def with_activation(
    config: modeling.BertConfig,
    values: Mapping[str, Any],
    encoder_settings: Mapping[str, Any],
    count: int,
) -> modeling.BertConfig:
    """Returns the config of a CrossEncoder of `count` classes.

    `values` are from config.json, `encoder_settings` from `SBERT_FILE`. Raises
    InputError for an unsupported activation or a prompt.
    """
    if prompt := default_prompt(encoder_settings):
        raise InputError(
            f"{SBERT_FILE} puts {prompt!r} before each text, which is not "
            "supported. Remove default_prompt_name there, and add the prompt "
            "to your texts. "
            "Received: default_prompt_name="
            f"{encoder_settings['default_prompt_name']}"
        )
    inside = values.get(_SBERT)
    found = inside if isinstance(inside, dict) else encoder_settings
    name = found.get("activation_fn", values.get(_SBERT_OLD))
    if name is None:
        return config
    if count > 1:
        return _with_several(config, name)
    if not isinstance(name, str) or name not in _SCORE_ACTS:
        raise InputError(
            "The score of a CrossEncoder must be its logit or the sigmoid of "
            f"it, {' or '.join(_SCORE_ACTS)}. Received: activation_fn={name!r}"
        )
    return dataclasses.replace(config, score_act=_SCORE_ACTS[name])


def _with_several(
    config: modeling.BertConfig, name: Any
) -> modeling.BertConfig:
    """Returns the config of a CrossEncoder whose classes have an activation."""
    # Of logits, the probabilities are the softmax.
    known = ["torch.nn.modules.linear.Identity"]
    known += [f"{_ACTIVATION}{x}" for x in ("Softmax", "Sigmoid")]
    if name not in known:
        raise InputError(
            "The classes of a CrossEncoder must have logits, or their softmax "
            f"or sigmoid, {', '.join(known)}. Received: activation_fn={name!r}"
        )
    if name == known[-1]:
        return dataclasses.replace(config, problem_type=modeling.MULTI_LABEL)
    return config


def pooler_notes(config: modeling.BertConfig) -> list[str]:
    """Says in a sentence whether transformers pools another token."""
    if not getattr(families.find(config).model, "is_causal", False):
        return []
    return [
        "The pooled output is computed from the last token, in transformers "
        "from the first, which sees no other."
    ]


def differences(config: modeling.BertConfig, head: str) -> list[str]:
    """Says in sentences what transformers will compute otherwise."""
    keys = find_tables(config, head).keys
    notes = pooler_notes(config) if has_pooler(config, head) else []
    if "attention_probs_dropout_prob" in keys.unsaid:
        notes += foreign.rate_notes(config, "transformers")
    fixed = dict(keys.fixed)
    pooler_act = fixed.pop("pooler_act", "tanh")
    if config.pooler_act not in (pooler_act, configuration.NO_POOLER):
        notes.append(
            f"The pooler computes with pooler_act={config.pooler_act}; that of "
            f"transformers with {pooler_act}, and its pooled outputs will "
            "differ."
        )
    notes += [
        f"The encoder computes with {name}={getattr(config, name)}; that of "
        f"transformers with {value}, and its outputs will differ."
        for name, value in fixed.items()
        if getattr(config, name) != value
    ]
    act = config.transform_act or config.hidden_act
    epsilon = config.transform_layer_norm_eps or config.layer_norm_eps
    their_act = keys.transform_act or config.hidden_act
    same = (act, epsilon) == (their_act, config.layer_norm_eps)
    if same or "cls/predictions/output_bias" not in names.HEADS[head].variables:
        return notes
    return [
        *notes,
        "The head of masked words computes with "
        f"transform_act={act}, transform_layer_norm_eps={epsilon}; "
        f"that of transformers with {their_act}, {config.layer_norm_eps}, and "
        "its logits will differ.",
    ]
