"""A pre-training step of transformers in PyTorch, as a baseline for ours.

Does not import TensorFlow: a process uses only one of the libraries. Shapes as
in pretraining_step.py.
"""

import os
from collections.abc import Callable
from typing import Any

from benchmarks import pretraining_step

import numpy as np

# Family -> its class in transformers, and its argument for sentence labels.
_MODELS = {
    "bert": ("BertForPreTraining", "next_sentence_label"),
    "roberta": ("RobertaForMaskedLM", None),
    "distilbert": ("DistilBertForMaskedLM", None),
    "albert": ("AlbertForPreTraining", "sentence_order_label"),
    "electra": ("ElectraForPreTraining", None),
    "left_to_right": ("BertLMHeadModel", None),
}
_OF_DISTILBERT = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}


def make(
    config: dict,
    B: int,
    S: int,
    P: int,
    dtype: str = "float32",
    is_compiled: bool = False,
) -> Callable[[int], None]:
    """Returns a function that makes a number of steps, on a GPU if possible.

    The fused AdamW is the default of transformers' Trainer, and so is autocast
    for bfloat16.
    """
    import torch
    import transformers as library

    torch.set_num_threads(os.cpu_count() or 1)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    # As in TensorFlow, where float32 products on GPUs are in TF32 by default.
    torch.set_float32_matmul_precision("high")
    features = pretraining_step.rows(config, B, S, P)
    is_electra = config.get("model_type") == "electra"
    trained, loss = (_replaced_tokens if is_electra else _words)(
        config, features
    )
    if is_compiled:
        loss = torch.compile(loss)
    optimizer = torch.optim.AdamW(trained, 1e-4, weight_decay=0.01, fused=True)
    schedule = library.get_linear_schedule_with_warmup(optimizer, 100, 10000)
    device = torch.get_default_device().type
    autocast = torch.autocast(
        device, torch.bfloat16, enabled=dtype == "bfloat16"
    )

    def step(count):
        for _ in range(count):
            with autocast:
                value = loss()
            value.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def _words(
    config: dict, features: dict[str, np.ndarray]
) -> tuple[list[Any], Callable[[], Any]]:
    """Returns the weights of a model that predicts words, and its loss."""
    import torch
    import transformers as library

    architecture, sentences = _MODELS[config.get("model_type", "bert")]
    kind = getattr(library, architecture)
    model = kind(kind.config_class(**_config(config))).train()
    text = features["input_ids"]
    if is_causal(config):
        labels = text  # The model shifts them by one position.
    else:
        labels = np.full_like(text, -100)
        places = features["masked_lm_positions"]
        np.put_along_axis(labels, places, features["masked_lm_ids"], 1)
    inputs = {
        "input_ids": torch.tensor(text),
        "attention_mask": torch.tensor(features["input_mask"]),
        "labels": torch.tensor(labels),
    }
    if sentences:
        inputs |= {
            "token_type_ids": torch.tensor(features["segment_ids"]),
            sentences: torch.tensor(features["next_sentence_labels"]),
        }
    return [*model.parameters()], lambda: model(**inputs).loss


def _replaced_tokens(
    config: dict, features: dict[str, np.ndarray]
) -> tuple[list[Any], Callable[[], Any]]:
    """Returns the distinct weights of both models, and their loss."""
    import torch
    import transformers as library

    values = _config(config)
    share = values.pop("generator_hidden_size")
    del values["generator_layers"]
    size = round(config["hidden_size"] * share)
    own = {
        "hidden_size": size,
        "intermediate_size": 4 * size,
        "num_attention_heads": max(1, size // 64),
    }
    make = library.ElectraConfig
    model = library.ElectraForPreTraining(make(**values)).train()
    generator = library.ElectraForMaskedLM(make(**values | own)).train()
    generator.electra.embeddings = model.electra.embeddings
    words = model.electra.embeddings.word_embeddings
    generator.generator_lm_head.weight = words.weight
    there = {name: torch.tensor(x) for name, x in features.items()}
    rows = torch.arange(len(features["input_ids"]))[:, None]
    places, ids = there["masked_lm_positions"], there["masked_lm_ids"]
    inputs = {
        "attention_mask": there["input_mask"],
        "token_type_ids": there["segment_ids"],
    }
    text = there["input_ids"].clone()
    text[rows, places] = ids

    def loss():
        x = generator.electra(there["input_ids"], **inputs).last_hidden_state
        x = generator.generator_predictions(x[rows, places])
        logits = generator.generator_lm_head(x).flatten(0, 1)
        drawn = torch.multinomial(logits.detach().softmax(-1), 1)
        seen = text.clone()
        seen[rows, places] = drawn.view_as(ids)
        found = model(input_ids=seen, **inputs).logits
        entropy = torch.nn.functional.cross_entropy(logits, ids.flatten())
        return entropy + 50 * (
            torch.nn.functional.binary_cross_entropy_with_logits(
                found, (seen != text).float()
            )
        )

    weights = {id(x): x for x in [*model.parameters(), *generator.parameters()]}
    return list(weights.values()), loss


def _config(config: dict) -> dict:
    """Returns a config with the keys of transformers.

    Converted here, as bert_tf would import TensorFlow into a PyTorch process.
    """
    values = dict(config)
    family = values.pop("model_type", "bert")
    values["hidden_act"] = values["hidden_act"].removesuffix("_erf")
    if family == "roberta":
        values["max_position_embeddings"] += 2
    if is_causal(config):
        values["is_decoder"] = True
    if family == "distilbert":
        del values["type_vocab_size"]
        values = {_OF_DISTILBERT.get(k, k): x for k, x in values.items()}
    return values


def is_causal(config: dict) -> bool:
    """Whether the model reads left to right and predicts the next token."""
    return config.get("model_type") == "left_to_right"


def labels_of_sentences(config: dict) -> str | None:
    """Returns the argument for sentence labels; None without such a task."""
    return _MODELS[config.get("model_type", "bert")][1]
