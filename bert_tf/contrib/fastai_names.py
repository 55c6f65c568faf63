"""The names of an AWD-LSTM's tensors in fastai's files, which are only read.

A folder has our config as config.json, and the `state_dict` of a language
model, its encoder (`save_encoder`) or a classifier of fastai 2, as
pytorch_model.bin or model.safetensors.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bert_tf import configuration
from bert_tf.encoders import foreign
from bert_tf.errors import InputError

import numpy as np

# Models number encoder and head; classifiers wrap the encoder.
_WRAPPED = "0.module."
_WORDS = "0.encoder.weight"
_LSTM, _POOLER = "awd_lstm/lstm/layer_{}", "awd_lstm/pooler"
# The dense layers after the batch normalizations and their dropouts. fastai
# makes no dropout of rate 0 (`ps`, `drop_mult`): the dense layer is number 1.
_DENSE = ("1.layers.0.2", "1.layers.1.2")
_NORM = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def _refuse(arrays: list[Any]) -> list[Any]:
    """Raises InputError: there is no way back."""
    raise InputError(
        "Models of this kind are read from fastai's files, and not written for "
        "other libraries: use --output_format=tf1. "
        f"Received: an AWD-LSTM, tensors of shape {np.shape(arrays[0])}"
    )


def _row(
    theirs: list[str],
    ours: list[str],
    function: Callable[[list[Any]], list[Any]] = lambda arrays: arrays,
) -> foreign.Conversion:
    return foreign.Conversion(theirs, ours, function, _refuse)


def _reordered(gates: Any) -> Any:  # [4 H, ...]
    """Reorders PyTorch's gates: input, forget, candidate, output."""
    i, f, g, o = np.split(gates, 4)
    return np.concatenate([i, f, o, g])


def _of_layer(before: str, number: int) -> Iterator[foreign.Conversion]:
    theirs, ours = f"{before}rnns.{number}.", f"0.rnns.{number}."
    raw, module = f"{theirs}weight_hh_l0_raw", f"{theirs}module."
    # fastai 1 also saved the weights after dropout.
    for names in ([raw, f"{module}weight_hh_l0"], [raw]):
        yield _row(
            names, [f"{ours}recurrent_kernel"], lambda x: [_reordered(x[0])]
        )
    yield _row(
        [f"{module}weight_ih_l0"],
        [f"{ours}kernel"],
        lambda x: [_reordered(x[0])],
    )
    yield _row(
        [f"{module}bias_ih_l0", f"{module}bias_hh_l0"],
        [f"{ours}bias"],
        lambda x: [_reordered(x[0] + x[1])],
    )


def _with_bias(arrays: list[Any]) -> list[Any]:
    """Adds the bias that dense layers of fastai 2 lack."""
    return [*arrays, np.zeros(len(arrays[0]), np.float32)]


def _conversions(config: configuration.BertConfig) -> list[foreign.Conversion]:
    """Returns what joins, reorders and renames fastai's tensors."""
    found = [_row([f"{_WRAPPED}encoder.weight"], [_WORDS])]
    for number in range(config.num_hidden_layers):
        found += [*_of_layer("0.", number), *_of_layer(_WRAPPED, number)]
    for name in _DENSE:
        both = [f"{name}.weight", f"{name}.bias"]
        for theirs in (name, f"{name[:-1]}1"):
            found.append(_row([f"{theirs}.weight"], both, _with_bias))
    return found


class _Keys(foreign.ConfigKeys):
    """The keys of our own config, as fastai has none."""

    def to_ours(
        self,
        values: Mapping[str, Any],
        config: type[configuration.BertConfig],
    ) -> dict[str, Any]:
        """Returns the values of our fields."""
        return {x: values[x] for x in self._keys(config) if x in values}


_CLASSIFIER = (
    *(
        foreign.Row(
            f"{_POOLER}/batch_norm_{i}/{ours}", f"1.layers.{i}.0.{theirs}"
        )
        for i in range(2)
        for ours, theirs in _NORM.items()
    ),
    *foreign.dense(f"{_POOLER}/dense", _DENSE[0]),
    *foreign.output("", _DENSE[1]),
)

TABLES = foreign.HuggingFace(
    prefix="0.",
    rows=(
        foreign.Row("awd_lstm/embeddings/word_embeddings", _WORDS),
        *(
            foreign.Row(f"{_LSTM}/{name}", f"0.rnns.{{}}.{name}", True)
            for name in ("kernel", "recurrent_kernel")
        ),
        foreign.Row(f"{_LSTM}/bias", "0.rnns.{}.bias"),
    ),
    heads={
        "encoder": foreign.HuggingFaceHead("AwdLstmModel", False, ()),
        "next_piece": foreign.HuggingFaceHead(
            "AwdLstmForLanguageModeling",
            False,
            (foreign.Row("cls/next_piece/output_bias", "1.decoder.bias"),),
        ),
        "classification": foreign.HuggingFaceHead(
            "AwdLstmForSequenceClassification", True, _CLASSIFIER
        ),
    },
    tied={
        "1.decoder.weight": _WORDS,
        **{f"{x}encoder_dp.emb.weight": _WORDS for x in ("", "0.", _WRAPPED)},
    },
    keys=_Keys(),
    conversions=_conversions,
)
