"""cuDNN's fused attention, called from programs that XLA compiles for GPUs.

The kernel computes the scores of a block of keys, their softmax, dropout and
the products with the values before it goes to the next block, so memory never
holds the scores [B, N, S, S] (Dao et al., 2022,
https://arxiv.org/abs/2205.14135).

XLA calls it where a program asks for it (`__cudnn$fmhaSoftmax`). TensorFlow has
no operation that does, so the calls are StableHLO modules, as JAX writes them.
They also state how arrays lie in memory: XlaCustomCallV2 would transpose them.

cuDNN draws the bits of dropout. The seed is a constant of the program, and XLA
counts the runs of each call since it loaded the program. So the forward and the
backward pass drop the same scores, each step drops others, and a program that
is loaded again begins with the first masks.

Shapes as in modeling.py.
"""

import dataclasses
import functools
import json
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

_TYPES = {
    tf.bfloat16: "bf16",
    tf.float16: "f16",
    tf.float32: "f32",
    tf.int32: "i32",
    tf.uint8: "ui8",
}
# Contracted axes of both sides and their batch axes, of q, k, v, y [B, S, N, H]
# and of scores [B, N, S, S].
_FORWARD = {
    "bmm1": (3, 3, (0, 2), (0, 2)),  # scores = q k^T
    "bmm2": (3, 1, (0, 1), (0, 2)),  # y = scores v
}
_BACKWARD = {
    "bmm1_grad_gemm1": (2, 1, (0, 1), (0, 2)),  # dk
    "bmm1_grad_gemm2": (3, 1, (0, 1), (0, 2)),  # dq
    "bmm2_grad_gemm1": (2, 1, (0, 1), (0, 2)),  # dv
    "bmm2_grad_gemm2": (3, 3, (0, 2), (0, 2)),  # dscores
}
# The version of XlaCallModule's attributes.
_VERSION = 9


@dataclasses.dataclass(frozen=True)
class Options:
    """What is constant in a program.

    Attributes:
        scale: What scores are multiplied by.
        rate: Share of scores that dropout sets to 0.
        seed: Number that the masks of dropout depend on.
        is_causal: Whether queries only see keys up to their own position.
    """

    scale: float
    rate: float = 0.0
    seed: int = 0
    is_causal: bool = False


def attend(
    q: tf.Tensor,
    k: tf.Tensor,
    v: tf.Tensor,
    lengths: tf.Tensor,
    options: Options,
) -> tf.Tensor:
    """Returns the attention output of each query, [B, S, N, H].

    Args:
        q: Queries [B, S, N, H] of a known shape, bfloat16 or float16.
        k: Keys, likewise.
        v: Values, likewise.
        lengths: int32 [B], from 1: the keys that are tokens. Padding is at the
            end.
        options: Constants.
    """

    @tf.custom_gradient
    def function(q, k, v):
        y, statistics = _forward(q, k, v, lengths, options)

        def gradient(dy):
            dq, dk, dv = _backward(
                *(q, k, v, statistics, dy, y, lengths, options)
            )
            # cuDNN may leave the gradients of padding as they are in memory.
            is_token = tf.sequence_mask(lengths, k.shape[1])
            is_token = is_token[:, :, tf.newaxis, tf.newaxis]  # [B, S, 1, 1]
            dk, dv = (tf.where(is_token, x, tf.zeros_like(x)) for x in (dk, dv))
            return dq, dk, dv

        return y, gradient

    return function(q, k, v)


def _forward(q, k, v, lengths, options):
    """Returns the output, and the log of the softmax's sums [B, N, S]."""
    B, S, N, _ = q.shape
    results = [
        tf.TensorSpec(q.shape, q.dtype),
        tf.TensorSpec([B, N, S], tf.float32),
    ]
    target = "__cudnn$fmhaSoftmax" + "Dropout" * (options.rate > 0)
    arguments = [q, k, v, _all(q), lengths]
    return _call(target, _config(q, options, _FORWARD), arguments, results)


def _backward(q, k, v, statistics, dy, y, lengths, options):
    """Returns the gradients of q, k and v."""
    results = [tf.TensorSpec(x.shape, x.dtype) for x in (q, k, v)]
    target = f"__cudnn$fmhaSoftmax{'Dropout' * (options.rate > 0)}Backward"
    arguments = [q, k, v, statistics, dy, y, _all(q), lengths]
    return _call(target, _config(q, options, _BACKWARD), arguments, results)


def _all(q: tf.Tensor) -> tf.Tensor:
    """The number of queries [B], including the padding, which is computed."""
    return tf.fill([q.shape[0]], q.shape[1])


# ---- The call ----------------------------------------------------------------


def _config(
    q: tf.Tensor,
    options: Options,
    products: dict[str, tuple[int, int, tuple[int, int], tuple[int, int]]],
) -> str:
    """Returns the JSON of XLA's GpuBackendConfig (backend_configs.proto)."""
    B, S, N, _ = q.shape
    config: dict[str, Any] = {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": options.scale,
        "dropout_rate": options.rate,
        "seed": str(options.seed),
        "is_flash_attention": True,
        "mask_type": "PADDING_CAUSAL" if options.is_causal else "PADDING",
        "sliding_window_length": 0,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
        "intermediate_tensor_shape": {
            "element_type": _TYPES[q.dtype].upper(),
            "dimensions": [str(x) for x in (B, N, S, S)],
            "is_dynamic_dimension": [False] * 4,
            "layout": {"minor_to_major": ["3", "2", "1", "0"]},
        },
    }
    for name, (left, right, left_batch, right_batch) in products.items():
        config[f"{name}_dot_dimension_numbers"] = {
            "lhs_contracting_dimensions": [str(left)],
            "rhs_contracting_dimensions": [str(right)],
            "lhs_batch_dimensions": [str(x) for x in left_batch],
            "rhs_batch_dimensions": [str(x) for x in right_batch],
        }
    return json.dumps({"cudnn_fmha_backend_config": config})


def _call(
    target: str,
    config: str,
    arguments: Sequence[tf.Tensor],
    results: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
    """Calls a function of cuDNN inside a program for GPUs."""
    module = _module(
        target,
        config,
        tuple((tuple(x.shape), x.dtype) for x in arguments),
        tuple((tuple(x.shape), x.dtype) for x in results),
    )
    return xla.call_module(
        arguments,
        version=_VERSION,
        module=module,
        Tout=[x.dtype for x in results],
        Sout=[x.shape for x in results],
        platforms=["CUDA"],
    )


@functools.cache
def _module(
    target: str,
    config: str,
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
) -> str:
    """Returns a StableHLO module of one call.

    XLA expects results [B, N, S, H]. In memory, they are [B, S, N, H].
    """
    called, layouts, lines = [], [], []
    for i, (shape, dtype) in enumerate(results):
        axes = list(range(len(shape)))
        if len(shape) == 4:
            axes[1], axes[2] = 2, 1
        called.append(_type([shape[x] for x in axes], dtype))
        layouts.append(_layout(axes[::-1]))
        lines.append(
            f"%r{i} = stablehlo.transpose %0#{i}, dims = {axes} : "
            f"({called[-1]}) -> {_type(shape, dtype)}"
        )
    # XLA gives it the size that cuDNN needs.
    called.append(_type([0], tf.uint8))
    layouts.append(_layout([0]))
    taken = [_type(*x) for x in arguments]
    names = [f"%a{i}" for i in range(len(taken))]
    given = ", ".join(map(": ".join, zip(names, taken, strict=True)))
    returned = ", ".join(_type(*x) for x in results)
    operand_layouts = [_layout(range(len(x))[::-1]) for x, _ in arguments]
    body = "\n".join(lines)
    return f"""module @attention {{
func.func public @main({given}) -> ({returned}) {{
%0:{len(called)} = stablehlo.custom_call @{target}({", ".join(names)}) {{
backend_config = {json.dumps(config)},
operand_layouts = [{", ".join(operand_layouts)}],
result_layouts = [{", ".join(layouts)}]
}} : ({", ".join(taken)}) -> ({", ".join(called)})
{body}
return {", ".join(f"%r{i}" for i in range(len(results)))} : {returned}
}}
}}"""


def _type(shape: Sequence[int], dtype: tf.DType) -> str:
    return f"tensor<{''.join(f'{x}x' for x in shape)}{_TYPES[dtype]}>"


def _layout(axes: Sequence[int]) -> str:
    """Returns axes of an array in MLIR, from the one that varies fastest."""
    return f"dense<{list(axes)}> : tensor<{len(axes)}xindex>"
