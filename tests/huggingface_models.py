"""Models of transformers, and comparisons of their outputs with ours."""

from tests import interop_samples as samples

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)


_ROBERTA = samples.SMALL | {
    "max_position_embeddings": 22,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
# SMALL with the keys of each configuration, by its model_type.
_SIZES = {
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA | {"bos_token_id": 5, "eos_token_id": 6},
    "data2vec-text": _ROBERTA,
    "distilbert": {
        "vocab_size": samples.SMALL["vocab_size"],
        "dim": samples.SMALL["hidden_size"],
        "n_layers": samples.SMALL["num_hidden_layers"],
        "n_heads": samples.SMALL["num_attention_heads"],
        "hidden_dim": samples.SMALL["intermediate_size"],
        "max_position_embeddings": samples.SMALL["max_position_embeddings"],
    },
}


def make(architecture, **changes):
    """Returns a transformers model with random weights."""
    torch.manual_seed(0)
    kind = getattr(transformers, architecture).config_class
    is_pair = architecture.endswith(("ForQuestionAnswering", "ForPreTraining"))
    config = kind(
        num_labels=2 if is_pair else samples.NUM_LABELS,
        **_SIZES.get(kind.model_type, samples.SMALL) | changes,
    )
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            kind = name.rpartition(".")[0].rpartition(".")[2]
            value.normal_(0, samples.spread(kind, value.shape[-1]))
            if name.lower().replace("_", "").endswith("layernorm.weight"):
                value.uniform_(0.5, 1.5)
    return model


def save(model, folder):
    model.save_pretrained(folder)
    return str(folder)


def load(folder, architecture):
    """Loads a model in transformers, without extra or missing weights."""
    kind = getattr(transformers, architecture)
    model, info = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    return model.eval()


def their_inputs(inputs):
    renamed = {
        "input_ids": "input_ids",
        "attention_mask": "input_mask",
        "token_type_ids": "segment_ids",
    }
    return {x: torch.tensor(np.int64(inputs[y])) for x, y in renamed.items()}


def _taken(model, inputs):
    """Returns the inputs that a transformers model accepts."""
    inputs = their_inputs(inputs)
    if model.config.model_type in ("distilbert", "bert-generation"):
        del inputs["token_type_ids"]
    return inputs


def our_logits(model, inputs):
    outputs = model(inputs)
    outputs = outputs if isinstance(outputs, tuple) else [outputs]
    return [x.numpy() for x in outputs]


def their_logits(model, inputs):
    """Returns the outputs of a transformers model except hidden states."""
    with torch.no_grad():
        outputs = model(**_taken(model, inputs))
    # Decoders also return their cache.
    tensors = (x for x in outputs.to_tuple() if isinstance(x, torch.Tensor))
    return [x.numpy() for x in tensors]


def compare(model, head, theirs, inputs, is_token=None):
    """Compares all outputs of a model; those of tokens at `is_token` only."""
    if head == "encoder":
        found = model(inputs)
        with torch.no_grad():
            wanted = theirs(**_taken(theirs, inputs), output_hidden_states=True)
        ours = [found.sequence, found.embeddings, *found.layers]
        theirs = [wanted.last_hidden_state, *wanted.hidden_states]
        if "pooler_output" in wanted:
            ours.append(found.pooled)
            theirs.append(wanted.pooler_output)
    else:
        if head == "multiple_choice":
            inputs = {n: x[:, None].repeat(2, 1) for n, x in inputs.items()}
            for rows in inputs.values():
                rows[:, 1] = rows[::-1, 0]
        ours = our_logits(model, inputs)
        theirs = their_logits(theirs, inputs)
    differences = []
    for pair in zip(ours, theirs, strict=True):
        x, y = map(np.asarray, pair)
        if is_token is not None and x.shape[:2] == is_token.shape:
            x, y = x[is_token], y[is_token]
        differences.append(np.abs(x - y).max())
    assert np.max(differences) <= samples.TOLERANCE, differences
