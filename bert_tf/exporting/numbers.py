"""The part of a model that maps ids to numbers, for any runtime.

Text processing stays in TensorFlow, as other runtimes lack its ops. They run
the signature `serve_ids` of a head, without its text outputs.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.exporting import saved_model

import numpy as np
import tensorflow as tf

# Inputs -> outputs, by name.
Compute = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Numbers:
    """A function of ids.

    Attributes:
        function: A tf.function with one signature, which returns numbers by
            name.
        inputs: Its inputs by name, in order.
        outputs: Its outputs by name.
    """

    function: Any
    inputs: Mapping[str, tf.TensorSpec]
    outputs: Mapping[str, tf.TensorSpec]


def ids_function(export: saved_model.Export, head: str) -> Numbers:
    """Returns a model's function of ids; InputError if it has none.

    `head` is named in the error.
    """
    served = export.signatures.get("serve_ids")
    if served is None:
        raise InputError(
            "Only a SavedModel can be written of this head: it has no "
            "signature serve_ids, which is what LiteRT and ONNX Runtime "
            f"compute. Received: head={head}"
        )
    names = list(inspect.signature(served.python_function).parameters)
    inputs = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in zip(names, served.input_signature, strict=True)
    }
    traced = served.get_concrete_function()
    if _has_loop(traced.graph.as_graph_def()):
        raise InputError(
            "Only a SavedModel can be written of this encoder: it computes in "
            "a loop, step by step, which LiteRT and ONNX Runtime do not take "
            f"over. Received: head={head}"
        )
    found = traced.structured_outputs
    outputs = {
        name: tf.TensorSpec(x.shape, x.dtype, name)
        for name, x in sorted(found.items())
        if x.dtype != tf.string
    }

    def compute(*ids):
        answers = served.python_function(*ids)
        return {name: answers[name] for name in outputs}

    function = tf.function(compute, list(inputs.values()), autograph=False)
    return Numbers(function, inputs, outputs)


def _has_loop(graph: Any) -> bool:
    """Whether a graph, or a function that it calls, has a loop."""
    nodes = [*graph.node]
    for function in graph.library.function:
        nodes += function.node_def
    return any(node.op in ("While", "StatelessWhile") for node in nodes)
