"""Kernels that oneDNN may keep in the layout that it computes with.

Each product of TensorFlow's lays its kernel out anew, which for a short text
takes longer than the product. Where oneDNN is told that weights never change,
it does so once for each op, and a short text is answered in half the time. It
does not look whether they do change: then answers are wrong. So this is asked
for only where the second matrix of every product is made of constants and
variables alone, as in all exports of encoders that are known here.
"""

import os
from collections.abc import Iterable, Mapping

from bert_tf import kept_kernels
from bert_tf.errors import InputError
from bert_tf.server import signatures

import tensorflow as tf
from tensorflow.core.framework import function_pb2, node_def_pb2

_PRODUCTS = {"MatMul", "_FusedMatMul"}
# What is made of the same things by these is the same at every call.
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
    """Lets oneDNN keep kernels if those of all SavedModels are constant.

    It must be called before anything is computed. Returns whether they are
    kept, which the environment may have said before.
    """
    variable = kept_kernels.VARIABLE
    if variable not in os.environ and all(map(_may_keep, paths)):
        os.environ[variable] = "1"
    return kept_kernels.are_kept()


def _may_keep(path: str) -> bool:
    try:
        return are_constant(path)
    except InputError:
        return True  # It is damaged, and not loaded as it is.


def check(path: str) -> None:
    """Raises InputError for a SavedModel that must not have its kernels kept.

    A process keeps those of all its models, or of none.
    """
    if kept_kernels.are_kept() and not are_constant(path):
        raise InputError(
            "It multiplies by matrices that it computes, and this server keeps "
            "kernels as they are at first. Start it again with "
            f"--keep_kernels=false. Received: model={path}"
        )


def are_constant(path: str) -> bool:
    """Whether a SavedModel's products have a constant matrix behind them."""
    graph = signatures.read_graph(path)
    functions = {x.signature.name: x for x in graph.library.function}
    # Gradients are saved, too, and nobody calls them.
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
    """Name of an argument -> whether it is a variable."""
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
