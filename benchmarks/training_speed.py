r"""Times a pre-training step here, in transformers and in KerasHub.

    pip install -e '.[parity]'
    python -m benchmarks.training_speed --models=mini,small,base
    python -m benchmarks.training_speed --families=roberta,distilbert,albert
    python -m benchmarks.training_speed --families=left_to_right --models=mini
    python -m benchmarks.training_speed --families=electra --models=small_owt \
        --batch=128 --predictions=19 --sides=ours,ours_masked_words,transformers
    python -m benchmarks.training_speed --models=base --batch=256 \
        --dtype=bfloat16 \
        --sides=ours,ours_op_by_op,transformers,keras_hub,keras_hub_jax  # GPU

The model, batch, length, number of masked words, --dtype and dropout are the
same for all, on random text without padding, on a GPU if there is one. Every
implementation runs in a separate process, as its users run it, in turn:

- ours: run_pretraining.py's step, with records read from a file
- ours_xla, ours_op_by_op: the same with --use_xla, --use_xla=false; only if
  --sides has them
- ours_bfloat16: the same with --dtype=bfloat16; also optional
- ours_not_fused: the same with --fused_attention=false; also optional
- ours_masked_words: ELECTRA's encoder with masked words alone; also optional
- transformers: BertForPreTraining and PyTorch's fused AdamW, the default of its
  Trainer; autocast for other dtypes than float32, also as its Trainer. The
  attention is PyTorch's scaled_dot_product_attention. It
  computes the words of all positions, not only of masked ones, so it does more
  work: the operations are printed
- transformers_compiled: the same with torch.compile; also optional
- transformers_eager: the same with transformers' own attention; also optional
- keras_hub: BertBackbone, MaskedLMHead and a dense layer for the next sentence,
  compiled by XLA, the default of Keras
- keras_hub_onednn: the same with oneDNN switched on
- keras_hub_onednn_no_xla: the same with jit_compile=False: XLA has its own
  kernels, so this uses oneDNN more
- keras_hub_jax: the same as keras_hub on JAX; also optional

Another family uses its own model of that name, or else its base model with the
sizes of BERT's, and its own task: RobertaForMaskedLM, DistilBertForMaskedLM and
AlbertForPreTraining, whose ALBERT has no dropout, as version 2 of the released
models. From left to right it is BertLMHeadModel as a decoder. ELECTRA uses
ElectraForMaskedLM, whose words are computed only at masked positions,
torch.multinomial and ElectraForPreTraining with shared embeddings: the same
work as ours. Optimizers are BERT's. KerasHub supports only BERT here.

Prints sequences/s (the median of the rounds), the ratios, and the required
FLOP/s of ours as a fraction of the processor's matrix-product speed; next to
transformers, the speed of PyTorch's products. On GPUs it also prints
MFU: the required FLOP/s of each implementation as a fraction of the peak in the
data sheet. Implementations whose library is not installed are left out.
"""

import collections
import functools
import importlib.util
import os
import statistics
import sys
from collections.abc import Callable

from benchmarks import own_process, pretraining_step, transformers_step

from absl import app, flags

SIDES = (
    *("ours", "transformers", "keras_hub", "keras_hub_onednn"),
    "keras_hub_onednn_no_xla",
)

_MODELS = flags.DEFINE_list("models", ["mini"], "Of configs/models.")
_FAMILIES = flags.DEFINE_list(
    "families", ["bert"], f"Of {', '.join(pretraining_step.OBJECTIVES)}."
)
_SIDES = flags.DEFINE_list("sides", list(SIDES), "Who takes part.")
_ROUNDS = flags.DEFINE_integer("rounds", 3, "Times that each side runs.")
_SECONDS = flags.DEFINE_float("seconds", 10.0, "Of steps in every round.")
_LENGTH = flags.DEFINE_integer("length", 128, "S.")
_PREDICTIONS = flags.DEFINE_integer("predictions", 20, "P.")
_BATCH = flags.DEFINE_integer("batch", 0, "B; by default 32, for base 8.")
_DTYPE = flags.DEFINE_enum(
    "dtype", "float32", ["float32", "bfloat16"], "Of activations."
)
_RUN = flags.DEFINE_string("run", None, "Internal: the side to run.")


def batch_size(model: str) -> int:
    """Returns the batch size B."""
    return _BATCH.value or (8 if model == "base" else 32)


# ---- The sides --------------------------------------------------------------


def ours(
    config: dict,
    batch: int,
    use_xla: bool | None = None,
    masked_words: bool = False,
    fused_attention: bool | None = None,
    dtype: str = "",
) -> float:
    """Times run_pretraining.py's own objective, loop and input."""
    from bert_tf.training import distribution

    distribution.set_up("default", dtype=dtype or _DTYPE.value)
    step, _ = pretraining_step.make(
        *(config, batch, _LENGTH.value, _PREDICTIONS.value),
        use_xla=use_xla,
        masked_words=masked_words,
        fused_attention=fused_attention,
    )
    return pretraining_step.timed(step, _SECONDS.value)


def transformers(
    config: dict, batch: int, is_compiled: bool = False, is_eager: bool = False
) -> float:
    """Times BertForPreTraining in PyTorch, or another family's model."""
    if is_eager:
        config = config | {"attn_implementation": "eager"}
    step = transformers_step.make(
        *(config, batch, _LENGTH.value, _PREDICTIONS.value),
        *(_DTYPE.value, is_compiled),
    )
    return pretraining_step.timed(step, _SECONDS.value)


def keras_hub(
    config: dict, batch: int, jit_compile: bool | str = "auto"
) -> float:
    """Times BertBackbone, MaskedLMHead and model.fit."""
    import keras
    import keras_hub as library
    import tensorflow as tf

    if _DTYPE.value != "float32":
        keras.config.set_dtype_policy(f"mixed_{_DTYPE.value}")
    backbone = library.models.BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        dropout=config["hidden_dropout_prob"],
        max_sequence_length=config["max_position_embeddings"],
    )
    places = keras.Input((_PREDICTIONS.value,), dtype="int32", name="places")
    outputs = backbone.output
    words = library.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation="gelu",
        name="words",
    )(outputs["sequence_output"], places)
    sentence = keras.layers.Dense(2, name="sentence")(outputs["pooled_output"])
    model = keras.Model({**backbone.input, "places": places}, [words, sentence])
    model.compile(
        keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        [keras.losses.SparseCategoricalCrossentropy(from_logits=True)] * 2,
        jit_compile=jit_compile,
    )
    features = pretraining_step.rows(
        config, batch, _LENGTH.value, _PREDICTIONS.value
    )
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
        "places": features["masked_lm_positions"],
    }
    labels = (features["masked_lm_ids"], features["next_sentence_labels"])
    dataset = tf.data.Dataset.from_tensors((inputs, labels)).repeat()

    def step(count):
        model.fit(dataset, steps_per_epoch=count, verbose=0)

    return pretraining_step.timed(step, _SECONDS.value)


# ---- Required operations ----------------------------------------------------


def needed_flops(config: dict) -> float:
    """Returns the FLOPs of one sequence's training step.

    Counts matrix products; in the last layer, only at positions that are read.
    The backward pass takes twice the forward pass.
    """
    D, S, P = config["hidden_size"], _LENGTH.value, _PREDICTIONS.value
    E = config.get("embedding_size", D)
    if transformers_step.is_causal(config):
        P = S - 1
    has_pairs = transformers_step.labels_of_sentences(config) is not None
    sentences = 2 * D * D * has_pairs
    if "generator_hidden_size" not in config:
        words = 2 * P * (D * E + E * config["vocab_size"])
        return 3.0 * (_of_encoder(config, P + has_pairs) + sentences + words)
    size = round(D * config["generator_hidden_size"])
    generator = config | {"hidden_size": size, "intermediate_size": 4 * size}
    words = 2 * P * (size * E + E * config["vocab_size"])
    tokens = 2 * S * (D * D + D)
    encoders = _of_encoder(config, S) + _of_encoder(generator, P)
    return 3.0 * (encoders + words + tokens)


def _of_encoder(config: dict, read: int) -> float:
    """Returns forward FLOPs, with `read` positions of the last layer."""
    D, F = config["hidden_size"], config["intermediate_size"]
    S, L = _LENGTH.value, config["num_hidden_layers"]
    E = config.get("embedding_size", D)

    def layer(rows):
        keys_and_values = 2 * S * 2 * D * D
        seen = (S + 1) / 2 if transformers_step.is_causal(config) else S
        attention = 2 * 2 * rows * seen * D
        return keys_and_values + attention + 2 * rows * (2 * D * D + 2 * D * F)

    mapping = 2 * S * E * D * (E != D)
    return (L - 1) * layer(S) + layer(read) + mapping


def peak(config: dict, batch: int) -> float:
    """The FLOP/s of the device in its data sheet; 0 if not known."""
    from bert_tf.training import accelerators

    del config, batch
    device = accelerators.local()
    return 0.0 if device is None else device.flops[_DTYPE.value]


_RUNS: dict[str, Callable[[dict, int], float]] = {
    "ours": ours,
    "ours_xla": functools.partial(ours, use_xla=True),
    "ours_op_by_op": functools.partial(ours, use_xla=False),
    "ours_bfloat16": functools.partial(ours, dtype="bfloat16"),
    "ours_not_fused": functools.partial(ours, fused_attention=False),
    "ours_masked_words": functools.partial(ours, masked_words=True),
    "transformers": transformers,
    "transformers_compiled": functools.partial(transformers, is_compiled=True),
    "transformers_eager": functools.partial(transformers, is_eager=True),
    "keras_hub": keras_hub,
    # `run` sets the variables that these need.
    "keras_hub_onednn": keras_hub,
    "keras_hub_onednn_no_xla": functools.partial(keras_hub, jit_compile=False),
    "keras_hub_jax": keras_hub,
    "peak": peak,
}


# ---- Main -------------------------------------------------------------------


def run(side: str, model: str, family: str, dtype: str = "") -> float:
    """Runs one implementation in a separate process."""
    environment = {}
    if "onednn" in side:
        environment["TF_ENABLE_ONEDNN_OPTS"] = "1"
    if side.endswith("jax"):
        environment["KERAS_BACKEND"] = "jax"
    names = ("seconds", "length", "predictions", "batch")
    values = [f"--{name}={flags.FLAGS[name].value}" for name in names]
    values.append(f"--dtype={dtype or _DTYPE.value}")
    line = own_process.last_line(
        "benchmarks.training_speed",
        *(f"--run={side}", f"--models={model}", f"--families={family}"),
        *values,
        **environment,
    )
    return float(line)


def _is_installed(side: str) -> bool:
    libraries = ("transformers", "keras_hub", "jax")
    needed = [x for x in libraries if x in side]
    return all(importlib.util.find_spec(x) for x in needed)


def measure(model: str, family: str) -> None:
    """Runs all implementations in turn and prints the table of a model."""
    config = pretraining_step.config_of(model, family)
    batch = batch_size(model)
    sides = [
        side
        for side in _SIDES.value
        if (family == "bert" or not side.startswith("keras_hub"))
        and _is_installed(side)
    ]
    found = collections.defaultdict(list)
    libraries = {"ours": "tensorflow", "transformers": "torch"}
    tops = collections.defaultdict(list)
    for _ in range(_ROUNDS.value):
        for side, library in libraries.items():
            if side in ("ours", *sides):
                line = own_process.last_line(
                    "benchmarks.matrix_products",
                    *(f"--library={library}", f"--matrix_dtype={_DTYPE.value}"),
                )
                tops[side].append(float(line))
        for side in sides:
            found[side].append(batch / run(side, model, family))
    median = {side: statistics.median(v) for side, v in found.items()}
    top = {side: statistics.median(v) for side, v in tops.items()}
    print(f"{family} {model}: batch {batch} x {_LENGTH.value}", flush=True)
    for side, rate in median.items():
        values = " ".join(f"{value:.2f}" for value in found[side])
        dtype = "bfloat16" if side == "ours_bfloat16" else _DTYPE.value
        peak_flops = run("peak", model, family, dtype)
        print(
            f"  {side:17} {rate:8.2f} sequences/s  ({values})  "
            f"ours / this {median.get('ours', rate) / rate:5.2f}"
            f"{_mfu(rate * needed_flops(config), peak_flops)}"
        )
    share = median.get("ours", 0) * needed_flops(config) / top["ours"]
    print(
        f"  matrix products: {top['ours'] / 1e9:.0f} GFLOP/s; ours needs "
        f"{needed_flops(config) / 1e9:.2f} GFLOP a sequence: "
        f"{100 * share:.0f} % of that speed"
    )
    if "transformers" in top:
        theirs = top["transformers"]
        print(f"  matrix products of PyTorch: {theirs / 1e9:.0f} GFLOP/s")
    sys.stdout.flush()


def _mfu(flops: float, peak_flops: float) -> str:
    return f"  MFU {flops / peak_flops:.1%}" if peak_flops else ""


def main(argv):
    """Measures all models."""
    del argv
    if _RUN.value:
        model, family = _MODELS.value[0], _FAMILIES.value[0]
        config = pretraining_step.config_of(model, family)
        print(_RUNS[_RUN.value](config, batch_size(model)))
        return
    print(f"{os.cpu_count()} cores; {_ROUNDS.value} rounds, sides in turn")
    for model in _MODELS.value:
        for family in _FAMILIES.value:
            measure(model, family)


if __name__ == "__main__":
    app.run(main)
