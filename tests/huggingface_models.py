"""Models of transformers, and their outputs beside ours."""

from tests import interop_samples as samples

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)


def make(architecture, **changes):
    """A transformers model of random weights."""
    torch.manual_seed(0)
    is_span = architecture == "BertForQuestionAnswering"
    config = transformers.BertConfig(
        num_labels=2 if is_span else samples.NUM_LABELS,
        **samples.SMALL | changes,
    )
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            kind = name.rpartition(".")[0].rpartition(".")[2]
            value.normal_(0, samples.spread(kind, value.shape[-1]))
            if name.endswith("LayerNorm.weight"):
                value.uniform_(0.5, 1.5)
    return model


def save(model, folder):
    model.save_pretrained(folder)
    return str(folder)


def their_inputs(inputs):
    renamed = {
        "input_ids": "input_ids",
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
    }
    return {
        theirs: torch.tensor(np.int64(inputs[name]))
        for name, theirs in renamed.items()
    }


def our_logits(model, inputs):
    outputs = model(inputs)
    outputs = outputs if isinstance(outputs, tuple) else [outputs]
    return [x.numpy() for x in outputs]


def their_logits(model, inputs):
    """The outputs of a transformers model that are not hidden states."""
    with torch.no_grad():
        outputs = model(**their_inputs(inputs))
    return [x.numpy() for x in outputs.to_tuple()]


def compare(model, head, theirs, inputs):
    """Compares all that a model returns."""
    if head == "encoder":
        found = model(inputs)
        with torch.no_grad():
            wanted = theirs(**their_inputs(inputs), output_hidden_states=True)
        ours = [found.sequence, found.pooled, found.embeddings, *found.layers]
        theirs = [wanted.last_hidden_state, wanted.pooler_output]
        theirs += wanted.hidden_states
    else:
        if head == "multiple_choice":
            inputs = {n: x[:, None].repeat(2, 1) for n, x in inputs.items()}
            inputs["input_ids"][:, 1] = inputs["input_ids"][::-1, 0]
        ours = our_logits(model, inputs)
        theirs = their_logits(theirs, inputs)
    differences = [
        np.abs(np.asarray(x) - np.asarray(y)).max()
        for x, y in zip(ours, theirs, strict=True)
    ]
    assert max(differences) <= samples.TOLERANCE, differences
