"""Peak speeds of devices, and the share of them that training reaches.

Shapes as in modeling.py; read rows: rows of the last layer that a head reads.
"""

import dataclasses
import re
import resource
import sys
from collections.abc import Callable, Mapping

from bert_tf import modeling
from bert_tf.checkpoints import names

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Device:
    """One kind of accelerator, by its maker's data sheet.

    Attributes:
        name: A part of the name by which TensorFlow knows it.
        flops: Peak of matrix products without sparsity, in FLOP/s, by dtype;
            float32 in TF32 where there is TF32, in bfloat16 on TPUs.
        memory: Bytes.
        bandwidth: Of the memory, in bytes/s.
        link: To the others of its node or pod, in bytes/s each way.
    """

    name: str
    flops: Mapping[str, float]
    memory: float
    bandwidth: float
    link: float


def _row(name, half, single, memory, bandwidth, link):
    """TFLOP/s of 16-bit and of float32 products, GB, GB/s, GB/s."""
    flops = {"float32": single, "bfloat16": half, "float16": half}
    return Device(
        name,
        {dtype: 1e12 * value for dtype, value in flops.items()},
        memory * 1e9,
        bandwidth * 1e9,
        link * 1e9,
    )


# The first name that is found in the device's counts.
DEVICES = (
    _row("H200", 989, 494, 141, 4800, 450),
    _row("H100 PCIe", 756, 378, 80, 2000, 64),
    _row("H100", 989, 494, 80, 3350, 450),
    _row("A100-SXM4-40GB", 312, 156, 40, 1555, 300),
    _row("A100-PCIE-40GB", 312, 156, 40, 1555, 32),
    _row("A100", 312, 156, 80, 2039, 300),
    _row("A10G", 70, 35, 24, 600, 32),
    _row("A10", 125, 62.5, 24, 600, 32),
    _row("L40S", 362, 183, 48, 864, 32),
    _row("L4", 121, 60, 24, 300, 32),
    _row("V100-SXM2-16GB", 125, 15.7, 16, 900, 150),
    _row("V100-PCIE-16GB", 112, 14, 16, 900, 32),
    _row("V100", 125, 15.7, 32, 900, 150),
    _row("T4", 65, 8.1, 16, 320, 16),
    # Devices of these two are cores, two a chip.
    _row("TPU v2", 23, 23, 8, 350, 31),
    _row("TPU v3", 61.5, 61.5, 16, 450, 40.5),
    _row("TPU v4", 275, 275, 32, 1228, 300),
    _row("TPU v5e", 197, 197, 16, 819, 200),
    _row("TPU v5 lite", 197, 197, 16, 819, 200),
    _row("TPU v5p", 459, 459, 95, 2765, 600),
    _row("TPU v6e", 918, 918, 32, 1640, 448),
    # JAX's names of the last two.
    _row("TPU v6 lite", 918, 918, 32, 1640, 448),
    _row("TPU v5", 459, 459, 95, 2765, 600),
)


def find(name: str) -> Device | None:
    """Returns the row of a device, by TensorFlow's name of it."""
    for device in DEVICES:
        # Not the A100 in "RTX A1000".
        if re.search(rf"\b{re.escape(device.name)}\b", name, re.IGNORECASE):
            return device
    return None


def local() -> Device | None:
    """Returns this process's device; None for CPUs, TPUs and unknown ones."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return None
    details = tf.config.experimental.get_device_details(gpus[0])
    return find(details.get("device_name", ""))


# ---- Work -------------------------------------------------------------------


def parameters(config: modeling.BertConfig) -> int:
    """How many weights a model has with its pre-training heads or decoder."""
    heads = "pretraining", "seq2seq"
    return max(names.parameters(config, head) for head in heads)


def training_flops(
    config: modeling.BertConfig,
    sequences: float,
    tokens: float,
    pairs: float,
    predictions: float,
    reads_all: bool = False,
) -> float:
    """Returns the multiplications and additions that training needs.

    It counts the matrix products of real tokens, without padding,
    rematerialization, and the rows of the last layer that no head reads. The
    backward pass takes twice the forward pass. `pairs` is the sum of the
    squared numbers of tokens of the sequences, for attention; `predictions` is
    the number of masked words, 0 for a classifier.
    """
    D, F = config.hidden_size, config.intermediate_size
    E, L = config.embedding_size, config.num_blocks
    mapping = 2 * tokens * E * D if config.maps_embeddings else 0
    keys_and_values = 2 * tokens * 2 * D * D
    # [CLS] and the masked words.
    read = tokens if reads_all else sequences + predictions

    def layer(rows, pairs):
        return 2 * rows * (2 * D * D + 2 * D * F) + 4 * pairs * D

    full = keys_and_values + layer(tokens, pairs)
    last = keys_and_values + layer(read, read * pairs / max(tokens, 1))
    heads = 2 * sequences * D * D
    heads += 2 * predictions * (D * E + E * config.vocab_size)
    return 3.0 * (mapping + (L - 1) * full + last + heads)


def replaced_tokens_flops(
    config: modeling.BertConfig,
    generator: modeling.BertConfig,
    sequences: float,
    tokens: float,
    pairs: float,
    predictions: float,
) -> float:
    """The same, of a discriminator and the generator of its inputs.

    The predictions are the generator's; the discriminator's are all tokens.
    """
    D = config.hidden_size
    sizes = (sequences, tokens, pairs)
    return (
        training_flops(generator, *sizes, predictions)
        + training_flops(config, *sizes, 0, reads_all=True)
        + 3.0 * 2 * tokens * D * (D + 1)  # its head
    )


@dataclasses.dataclass(frozen=True)
class Meter:
    """What a block of steps took of the devices.

    Attributes:
        peak_flops: Of one device, in FLOP/s; None where it is not known.
        predictions: The loss whose weights are predictions, if there is one.
        generator: The config of what makes the inputs, if anything does.
        memory: Returns the max bytes in use; by default `peak_memory`.
    """

    config: modeling.BertConfig
    replicas: int
    peak_flops: float | None
    predictions: str | None = None
    reads_all: bool = False
    generator: modeling.BertConfig | None = None
    memory: Callable[[], int | None] | None = None

    def __call__(self, scalars: Mapping[str, float]) -> dict[str, float]:
        """Returns shares of the peak and of the time, and bytes."""
        shares = {}
        if "input_seconds" in scalars:  # not on TPUs
            waited = scalars["input_seconds"]
            shares["input_share"] = waited / scalars["seconds"]
        if (peak := (self.memory or peak_memory)()) is not None:
            shares["peak_memory"] = float(peak)
        # What is counted is the work of transformers.
        is_known = self.config.activations is None and "seconds" in scalars
        if not (self.peak_flops and is_known):
            return shares
        sizes = (
            scalars["sequences"],
            scalars["tokens"],
            scalars["pairs"],
            scalars.get(f"{self.predictions}_weight", 0),
        )
        if self.generator is not None:
            flops = replaced_tokens_flops(self.config, self.generator, *sizes)
        else:
            flops = training_flops(self.config, *sizes, self.reads_all)
        available = scalars["seconds"] * self.replicas * self.peak_flops
        return shares | {"flops_utilization": flops / available}


def meter(
    strategy: tf.distribute.Strategy,
    config: modeling.BertConfig,
    dtype: str,
    peak_flops: float | None = None,
    predictions: str | None = None,
    reads_all: bool = False,
    generator: modeling.BertConfig | None = None,
) -> Meter:
    """Returns the meter of a run.

    `peak_flops` is the peak of one device, by default from its data sheet.
    """
    device = local()
    if peak_flops is None and device is not None:
        peak_flops = device.flops[dtype]
    replicas = strategy.num_replicas_in_sync
    return Meter(
        config, replicas, peak_flops, predictions, reads_all, generator
    )


def peak_memory() -> int | None:
    """Most bytes in use: of a GPU, else of this process; None on TPUs."""
    if tf.config.list_logical_devices("TPU"):
        return None
    gpus = tf.config.list_logical_devices("GPU")
    if not gpus:
        return peak_of_process()
    names = [gpu.name.removeprefix("/device:") for gpu in gpus]
    info = tf.config.experimental.get_memory_info
    return max(info(name)["peak"] for name in names)


def peak_of_process() -> int:
    """Returns the most bytes of memory that this process has used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # On macOS it is in bytes, on Linux in KiB.
    return peak if sys.platform == "darwin" else peak * 1024
