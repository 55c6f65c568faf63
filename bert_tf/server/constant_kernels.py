"""Lets oneDNN cache constant weights in its own memory layout.

Each matrix product in TensorFlow converts its weights to another layout, which
for short texts takes longer than the product. If oneDNN is configured for
constant weights, it converts them once per op, and a short text is answered in
half the time. It does not check whether weights change; if they do, answers are
wrong. So this is enabled only if the second matrix of every product depends on
constants and variables alone, as in all known exports of encoders.
"""

import os
from collections.abc import Iterable, Mapping

from bert_tf import kept_kernels
from bert_tf.errors import InputError
from bert_tf.server import signature_defs

import tensorflow as tf
from tensorflow.core.framework import function_pb2, node_def_pb2

_PRODUCTS = {"MatMul", "_FusedMatMul"}
# Ops with constant outputs, and pure ops, which preserve constants.
_SOURCES = {"Const", "VarHandleOp"}
_PURE = {
    "Add",
    "AddV2",
    "BitwiseAnd",
    "Cast",
    "ConcatV2",
    "ExpandDims",
    "Identity",
    "Mul",
    "Pack",
    "ReadVariableOp",
    "Reshape",
    "Shape",
    "StridedSlice",
    "Sub",
    "Transpose",
}


def keep(paths: Iterable[str]) -> bool:
    """Enables cached weights if the weights of all SavedModels are constant.

    Must be called before anything is computed. Returns whether caching is
    enabled, which the environment may have determined before.
    """
    variable = kept_kernels.VARIABLE
    if variable not in os.environ and all(map(_may_keep, paths)):
        os.environ[variable] = "1"
    return kept_kernels.are_kept()


def _may_keep(path: str) -> bool:
    try:
        return are_constant(path)
    except InputError:
        return True  # A damaged model is reported when it is loaded.


def check(path: str) -> None:
    """Raises InputError for a SavedModel that does not support caching.

    Caching is a setting of the process, for all its models.
    """
    if kept_kernels.are_kept() and not are_constant(path):
        raise InputError(
            "It multiplies by matrices that it computes, and this server keeps "
            "kernels as they are at first. Start it again with "
            f"--keep_kernels=false. Received: model={path}"
        )


def are_constant(path: str) -> bool:
    """Whether the second matrix of each product is constant."""
    graph = signature_defs.read_graph(path)
    functions = {x.signature.name: x for x in graph.library.function}
    # Saved gradient functions are skipped, as nothing calls them.
    called = _called(graph.node)
    if not _is_safe(graph.node, {}):
        return False
    seen = set()
    while called:
        name = called.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        function = functions[name]
        if not _is_safe(function.node_def, _arguments(function)):
            return False
        called |= _called(function.node_def)
    return True


def _called(nodes: Iterable[node_def_pb2.NodeDef]) -> set[str]:
    """Returns the names of the functions that nodes call."""
    values = [value for node in nodes for value in node.attr.values()]
    several = [x.name for value in values for x in value.list.func]
    return {value.func.name for value in values} | {*several}


def _arguments(function: function_pb2.FunctionDef) -> dict[str, bool]:
    """Returns whether each argument, by name, is a variable."""
    return {
        argument.name: argument.type == tf.resource.as_datatype_enum
        for argument in function.signature.input_arg
    }


def _is_safe(
    nodes: Iterable[node_def_pb2.NodeDef], arguments: Mapping[str, bool]
) -> bool:
    by_name = {node.name: node for node in nodes}
    known = dict(arguments)

    def is_constant(name: str) -> bool:
        name = name.removeprefix("^").partition(":")[0]
        if name not in known:
            node = by_name[name]
            known[name] = node.op in _SOURCES or (
                node.op in _PURE and all(map(is_constant, node.input))
            )
        return known[name]

    return all(
        is_constant(node.input[1])
        for node in by_name.values()
        if node.op in _PRODUCTS
    )
