"""Chooses whether attention is cuDNN's fused kernel, and tries the kernel."""

from collections.abc import Mapping
from typing import Any

from bert_tf import compiled, modeling
from bert_tf.encoders import cudnn_attention, ops
from bert_tf.errors import InputError

import tensorflow as tf
from absl import logging

# The first NVIDIA GPUs with bfloat16 and the kernel, such as the A100.
_CAPABILITY = (8, 0)
_CUDNN = (8, 9)
_LONGEST_HEAD = 128
# cuDNN's kernels compute blocks of 64 queries and keys.
_BLOCK = 64
# Relative, of values in 16 bits: bfloat16 has 8 bits of precision.
_TOLERANCE = 0.05
_TRIED_RATE = 0.5


def choose(
    model: modeling.Bert,
    dataset: tf.distribute.DistributedDataset,
    is_compiled: bool,
    wanted: bool | None = None,
    against_data: str = "",
) -> bool:
    """Returns whether to use the kernel, and logs why or why not on GPUs.

    Args:
        model: The encoder to train.
        dataset: Batches of features.
        is_compiled: Whether XLA compiles the step.
        wanted: --fused_attention; None where it is possible.
        against_data: A reason against it that the records give, if any.

    Raises:
        InputError: If it is wanted and not possible.
    """
    batch = {  # of one replica
        name: getattr(spec, "_value_specs", (spec,))[0]
        for name, spec in dataset.element_spec.items()
    }
    against = (
        ("--fused_attention is false" if wanted is False else "")
        or against_devices(is_compiled)
        or against_batch(model, batch)
        or against_data
        or _against_kernel(model, batch)
    )
    if wanted:
        check(against)
    if against:
        if tf.config.list_physical_devices("GPU"):
            logging.info("Attention: not fused. Reason: %s.", against)
        return False
    logging.info("Attention: cuDNN's fused kernel.")
    if model.config.attention_probs_dropout_prob:
        logging.info(
            "A run that resumes draws other dropout masks in attention than "
            "without the interruption; with --fused_attention=false, the same."
        )
    return True


def check(against: str) -> None:
    """Raises InputError for a reason against the kernel, if there is one."""
    if against:
        raise InputError(
            "--fused_attention needs cuDNN's kernel, which can't be used: "
            f"{against}. Leave the flag out. Received: fused_attention=true"
        )


def against_devices(is_compiled: bool) -> str:
    """Returns why this machine can't use the kernel, or nothing."""
    gpus = tf.config.list_physical_devices("GPU")
    build = tf.sysconfig.get_build_info()
    if not gpus or not build.get("is_cuda_build"):
        return "there is no NVIDIA GPU"
    if not is_compiled:
        return "the step is not compiled"
    for gpu in gpus:
        details = tf.config.experimental.get_device_details(gpu)
        capability = details.get("compute_capability", (0, 0))
        if tuple(capability) < _CAPABILITY:
            found = ".".join(map(str, capability))
            return f"a GPU has compute capability {found}, it needs 8.0"
    version = [int(x) for x in build.get("cudnn_version", "0").split(".")]
    if version[0] <= _CUDNN[0] and tuple(version) < _CUDNN:
        return f"TensorFlow has cuDNN {build['cudnn_version']}, it needs 8.9"
    return ""


def against_batch(
    model: modeling.Bert, batch: Mapping[str, tf.TensorSpec]
) -> str:
    """Returns why the kernel can't compute a model or a batch, or nothing."""
    if model.config.activations is not None:
        return "the encoder has no attention"
    if not model.can_fuse_attention:
        return "attention adds scores that the kernel lacks"
    if model.compute_dtype not in ("bfloat16", "float16"):
        return f"it needs bfloat16 or float16, not {model.compute_dtype}"
    size = model.config.hidden_size // model.config.num_attention_heads
    if size % 8 or size > _LONGEST_HEAD:
        return f"heads have {size} values, not a multiple of 8 up to 128"
    if "sequence_ids" in batch:
        return "rows hold several sequences"
    shape = batch["input_ids"].shape
    if len(shape) != 2:
        return "examples have several sequences"
    if not shape.is_fully_defined():
        return "batches differ in length"
    if shape[1] % _BLOCK:
        return f"sequences have {shape[1]} tokens, not a multiple of 64"
    return ""


# ---- The kernel --------------------------------------------------------------


def _against_kernel(
    model: modeling.Bert, batch: Mapping[str, tf.TensorSpec]
) -> str:
    """Tries the kernel; returns what is wrong with it, or nothing."""
    heads = model.config.num_attention_heads
    size = model.config.hidden_size // heads
    shape = (2, int(batch["input_ids"].shape[1]), heads, size)
    try:
        return tried(shape, model.compute_dtype, model.is_causal)
    except tf.errors.OpError as error:
        return f"the kernel fails: {error.message.splitlines()[0]}"


def tried(shape: tuple[int, int, int, int], dtype: str, is_causal: bool) -> str:
    """Compares the kernel with the formula; returns the difference, or "".

    With dropout there is no reference. But attention is linear in the values,
    so the sum of values times their gradients equals the sum of outputs times
    their gradients, unless the two passes drop different scores.
    """
    B, S, _, size = shape
    draws = tf.random.stateless_normal([4, *shape], [1, 2])
    q, k, v, dy = tf.unstack(tf.cast(draws, dtype))
    lengths = tf.constant([S, S // 2 + 1] * (B // 2))

    @compiled.whole
    def run(rate: Any) -> Any:
        options = cudnn_attention.Options(size**-0.5, rate, 1, is_causal)
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            y = cudnn_attention.attend(q, k, v, lengths, options)
        return y, *tape.gradient(y, [q, k, v], dy)

    expected = _expected(q, k, v, dy, lengths, is_causal)
    names = "output", "gradient of q", "gradient of k", "gradient of v"
    for name, one, other in zip(names, run(0.0), expected, strict=True):
        if not _is_close(one, other):
            return f"the kernel's {name} differs from the formula"
    y, _, _, dv = run(_TRIED_RATE)
    if not _is_close(_products(v, dv), _products(y, dy)):
        return "the kernel's passes drop different scores"
    if _is_close(y, run(_TRIED_RATE)[0]):
        return "the kernel drops the same scores in each step"
    return ""


def _expected(q, k, v, dy, lengths, is_causal):
    """Returns the outputs [B, S, N, H] and gradients by the formula."""
    S, size = q.shape[1], q.shape[3]
    sees = tf.sequence_mask(lengths, S)[:, tf.newaxis, tf.newaxis]
    if is_causal:
        sees &= tf.linalg.band_part(tf.ones([S, S], tf.bool), -1, 0)
    mask = tf.where(sees, 0.0, -10000.0)
    q, k, v, dy = (
        tf.cast(tf.transpose(x, [0, 2, 1, 3]), tf.float32)
        for x in (q, k, v, dy)
    )
    with tf.GradientTape() as tape:
        tape.watch([q, k, v])
        y = ops.attend(q * size**-0.5, k, v, mask, 0.0, None)
    gradients = tape.gradient(y, [q, k, v], dy)
    return [tf.transpose(x, [0, 2, 1, 3]) for x in (y, *gradients)]


def _products(x: tf.Tensor, dx: tf.Tensor) -> tf.Tensor:
    """Returns the sums over positions of [B, S, N, H] times its gradient."""
    product = tf.cast(x, tf.float32) * tf.cast(dx, tf.float32)
    return tf.reduce_sum(product, axis=1)


def _is_close(one: tf.Tensor, other: tf.Tensor) -> bool:
    one, other = tf.cast(one, tf.float32), tf.cast(other, tf.float32)
    return bool(tf.norm(one - other) <= _TOLERANCE * tf.norm(other))
