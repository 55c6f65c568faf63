"""Rejects SavedModels whose operations touch files or the host.

A SavedModel is a program. Its operations run in signatures, and some while it
is loaded. The check reads the graph and loads nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bert_tf.errors import InputError

from google.protobuf import message
from tensorflow.core.framework import function_pb2, node_def_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.saved_model import loader_impl

# The names of operations that read or write files, connect to other hosts, run
# Python or a graph that is text, print, or end the process.
_UNSAFE = re.compile(
    r"""
    ReadFile | WriteFile | MatchingFiles | RecordInput | LMDBReader
    | ImmutableConst
    | Reader\w+ | \w*(TextLine|FixedLengthRecord|TFRecord|WholeFile)Reader\w*
    | \w*(TextLine|TFRecord|FixedLengthRecord|CSV|Sql|LMDB|MatchingFiles)
      \w*Dataset\w*
    | (Cache|Snapshot|Save|Load|DataService|SSTable)\w*Dataset\w*
    | \w*DatasetToTFRecord | (Decode|Encode)Proto\w*
    | DatasetFromGraph | DumpTensor | CalibrationStatisticsSaver
    | DTensorRestoreV2
    | FixedUnigramCandidateSampler | Skipgram
    | ListSnapshotChunks\w* | DistributedSave | RegisterDataset\w*
    | InitializeTableFromTextFile\w* | InitializeTRTResource | TRTEngineOp
    | GenerateVocabRemapping | LoadAndRemapMatrix
    | (Eager)?PyFunc\w* | Abort | Print(V2)?
    | (Create|Write|Import|Flush|Close)\w*(Summary|Event)\w* | SummaryWriter
    | Debug(Identity|NanCount|NumericSummary)\w*
    | RpcCall | Rpc\w* | RemoteCall | RemoteFusedGraphExecute
    | (Configure|Shutdown)Distributed\w* | FileSystemSetConfiguration
    """,
    re.VERBOSE,
)
# The loader restores variables by these, and nothing else may use them.
_READS_WEIGHTS = ("Restore", "RestoreSlice", "RestoreV2")
_WRITES_WEIGHTS = ("Save", "SaveSlices", "SaveV2", "MergeV2Checkpoints")
# A signature of TensorFlow, or a collection: what runs while a model is loaded.
_INITIALIZERS = ("saved_model_main_op", "legacy_init_op")

Nodes = Mapping[str, node_def_pb2.NodeDef]


class _Graph(NamedTuple):
    """A graph: its nodes and functions by name."""

    nodes: Nodes
    functions: Mapping[str, function_pb2.FunctionDef]


def check(path: str, allow: str) -> None:
    """Raises InputError unless a SavedModel only computes.

    Args:
        path: The folder of the SavedModel.
        allow: The way to load it anyway, for the error.
    """
    found = sorted(find(path))
    if found:
        raise InputError(
            "The SavedModel has operations that touch files or the host, and "
            "so could read or change anything that you can. Load it with "
            f"{allow} if you trust its source. "
            f"Received: {', '.join(found[:8])} in {path}"
        )


def find(path: str) -> set[str]:
    """Returns the names of a SavedModel's operations that are unsafe.

    A file that can't be read has none: the loader fails in the same way.
    """
    try:
        # As the loader does: there are several formats.
        model = loader_impl.parse_saved_model(path)
    except (OSError, message.DecodeError):
        return set()
    return {op for graph in model.meta_graphs for op in _find(graph)}


def _find(meta: meta_graph_pb2.MetaGraphDef) -> set[str]:
    graph = _Graph(
        {node.name: node for node in meta.graph_def.node},
        {x.signature.name: x for x in meta.graph_def.library.function},
    )
    everything = _ops(meta.graph_def.node)
    for function in graph.functions.values():
        everything |= _ops(function.node_def)
    found = {op for op in everything if _UNSAFE.fullmatch(op)}
    called = _reachable(graph, _outputs(meta), meta)
    restoring = _reachable(graph, [meta.saver_def.restore_op_name], None)
    found |= called.intersection(_READS_WEIGHTS)
    found |= (called | restoring).intersection(_WRITES_WEIGHTS)
    return found


def _outputs(meta: meta_graph_pb2.MetaGraphDef) -> list[str]:
    """Returns the nodes that run when a model is loaded or called."""
    found = [
        name
        for key in _INITIALIZERS
        for name in meta.collection_def[key].node_list.value
        if key in meta.collection_def
    ]
    for signature in meta.signature_def.values():
        found += [tensor.name for tensor in signature.outputs.values()]
    return found


def _reachable(
    graph: _Graph,
    outputs: Sequence[str],
    meta: meta_graph_pb2.MetaGraphDef | None,
) -> set[str]:
    """Returns the operations that nodes need, including those in functions.

    Any function of the object graph of `meta` counts as called.
    """
    waiting, seen = [_node(x) for x in outputs], set()
    while waiting:
        name = waiting.pop()
        if name in graph.nodes and name not in seen:
            seen.add(name)
            waiting += map(_node, graph.nodes[name].input)
    nodes = [graph.nodes[name] for name in seen]
    ops, functions = _ops(nodes), _functions(nodes)
    if meta is not None:
        functions |= {*meta.object_graph_def.concrete_functions}
    done: set[str] = set()
    while functions:
        name = functions.pop()
        if name in graph.functions and name not in done:
            done.add(name)
            ops |= _ops(graph.functions[name].node_def)
            functions |= _functions(graph.functions[name].node_def)
    return ops


def _node(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]


def _ops(nodes: Iterable[node_def_pb2.NodeDef]) -> set[str]:
    return {node.op for node in nodes}


def _functions(nodes: Iterable[node_def_pb2.NodeDef]) -> set[str]:
    """Returns the functions that nodes call; any of them may be an `op`."""
    found = _ops(nodes)
    for node in nodes:
        for value in node.attr.values():
            found.add(value.func.name)
            found.update(x.name for x in value.list.func)
    return found
