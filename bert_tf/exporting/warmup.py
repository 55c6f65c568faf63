"""Warm-up requests, which TensorFlow Serving runs before it serves a version.

The first request of each signature, and of each shape on some devices, takes
many times as long as later ones. TensorFlow Serving first sends the requests in
assets.extra/tf_serving_warmup_requests, a TFRecord of PredictionLog. If one
fails, the version is not served, so all are run once before they are written.

Shapes: B rows, S sequence length, K choices, P masked positions
"""

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import phases
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, written_files

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
# Max number of requests that TensorFlow Serving reads.
MOST = 1000

# Rows of texts by the names of their inputs; choices are lists, [B, K].
Texts = Mapping[str, Sequence[Any]]

# The first text may have either name.
_OTHER_NAMES = {"text_a": "text", "text": "text_a"}
_METHODS = "tensorflow/serving/"
_ROWS, _SHORT = 8, 8  # B of a batch, and min S
_PLACES = 2  # P


class Request(NamedTuple):
    """The inputs of a signature: arrays by name."""

    signature: str
    inputs: Mapping[str, np.ndarray]


def write(folder: str, texts: Sequence[Texts], max_seq_length: int) -> int:
    """Adds warm-up requests to a SavedModel of this project.

    Signatures that take text get all `texts`. Signatures that take ids get a
    short sequence, one of `max_seq_length`, and a batch of mixed lengths.

    Args:
        folder: Local folder of the SavedModel.
        texts: Requests.
        max_seq_length: Max number of ids that the model reads at a time.

    Returns:
        The number of requests.

    Raises:
        InputError: There are more than TensorFlow Serving reads.
    """
    signatures = read_signatures(folder)
    vocab_size = _vocab_size(folder)
    shapes = [
        np.array([min(_SHORT, max_seq_length)]),
        np.array([max_seq_length]),
        np.linspace(min(_SHORT, max_seq_length), max_seq_length, _ROWS),
    ]
    made: list[Request] = []
    for name, signature in sorted(signatures.items()):
        makers: Iterator[dict[str, np.ndarray] | None] = itertools.chain(
            (_of_texts(signature, x) for x in texts),
            (_of_ids(signature, x.astype(int), vocab_size) for x in shapes),
        )
        own = [Request(name, inputs) for inputs in makers if inputs]
        if not own:
            logging.warning(
                "There is no warm-up request for the signature %s: its first "
                "request will take longer.",
                name,
            )
        made += own
    if len(made) > MOST:
        raise InputError(
            f"TensorFlow Serving reads at most {MOST} warm-up requests. Give "
            f"fewer lines. Received: {len(made)} requests, of {len(texts)} "
            f"for each signature of text"
        )
    _try(folder, made)
    _write(os.path.join(folder, FILE), made, signatures)
    return len(made)


def read_signatures(folder: str) -> dict[str, meta_graph_pb2.SignatureDef]:
    """Returns the signatures of a SavedModel by name, as a server sees them."""
    message = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(
        os.path.join(folder, written_files.GRAPH), "rb"
    ) as f:
        message.ParseFromString(f.read())
    signatures = dict(message.meta_graphs[0].signature_def)
    return {x: y for x, y in signatures.items() if not x.startswith("__")}


def _vocab_size(folder: str) -> int:
    path = os.path.join(folder, "assets", "bert_config.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)["vocab_size"]


# ---- Inputs of a signature --------------------------------------------------


def _of_texts(
    signature: meta_graph_pb2.SignatureDef, texts: Texts
) -> dict[str, np.ndarray] | None:
    """Returns the texts that it takes, or None if they do not fit."""
    inputs = signature.inputs
    if any(x.dtype != tf.string.as_datatype_enum for x in inputs.values()):
        return None
    if _takes_examples(signature):
        (name,) = inputs
        return {name: _examples(texts)}
    known = {_OTHER_NAMES.get(name, name): texts[name] for name in texts}
    known |= texts
    found = {x: np.array(known[x], object) for x in inputs if x in known}
    # Inputs with a default may be omitted.
    if not found or inputs.keys() - found.keys() - signature.defaults.keys():
        return None
    return found


def _takes_examples(signature: meta_graph_pb2.SignatureDef) -> bool:
    """Whether it takes serialized tf.Examples."""
    method = signature.method_name.removeprefix(_METHODS)
    is_known = set(signature.inputs) <= {"inputs", "examples"}
    return len(signature.inputs) == 1 and (method != "predict" or is_known)


def _examples(texts: Texts) -> np.ndarray:
    """Returns the texts as serialized tf.Examples, [B]."""
    rows = [
        dict(zip(texts, row, strict=True))
        for row in zip(*texts.values(), strict=True)
    ]
    return np.array([_example(row).SerializeToString() for row in rows], object)


def _example(row: Mapping[str, Any]) -> tf.train.Example:
    example = tf.train.Example()
    for name, value in row.items():
        values = [value] if isinstance(value, str) else value
        example.features.feature[name].bytes_list.value.extend(
            each.encode() for each in values
        )
    return example


def _of_ids(
    signature: meta_graph_pb2.SignatureDef, lengths: np.ndarray, vocab_size: int
) -> dict[str, np.ndarray] | None:
    """Returns sequences with these lengths [B], or None if it takes no ids."""
    if not signature.inputs.keys() <= _IDS.keys():
        return None
    return {
        name: _IDS[name](
            # [B, S], or [B, K, S].
            np.arange(lengths.max()) < _upright(lengths, info),
            vocab_size,
        ).astype(tf.as_dtype(info.dtype).as_numpy_dtype)
        for name, info in signature.inputs.items()
    }


def _upright(lengths: np.ndarray, info: meta_graph_pb2.TensorInfo) -> Any:
    """Returns the lengths [B] as [B, 1] or, for choices, [B, K, 1]."""
    sizes = [dim.size for dim in info.tensor_shape.dim[1:-1]]
    between = [_PLACES if size < 0 else size for size in sizes]
    lengths = lengths.reshape([-1, *(1 for _ in between), 1])
    return np.broadcast_to(lengths, [len(lengths), *between, 1])


# Builders of inputs from a mask (True for tokens, False for padding).
_IDS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "input_ids": lambda mask, vocab_size: (
        mask * (np.arange(mask.size).reshape(mask.shape) % vocab_size)
    ),
    "input_mask": lambda mask, _: mask,
    # RoBERTa has segment 0 only.
    "segment_ids": lambda mask, _: np.zeros_like(mask),
    "masked_lm_positions": lambda mask, _: np.broadcast_to(
        np.arange(1, _PLACES + 1), [len(mask), _PLACES]
    ),
}


# ---- The file ---------------------------------------------------------------


def _try(folder: str, requests: Sequence[Request]) -> None:
    """Runs all requests, as TensorFlow Serving will."""
    with phases.lasting("Trying the warm-up requests"):
        with file_systems.not_as_glob(folder, [folder]) as links:
            loaded = tf.saved_model.load(links)
        for name, inputs in requests:
            loaded.signatures[name](
                **{x: tf.constant(array) for x, array in inputs.items()}
            )


def _write(
    path: str,
    requests: Sequence[Request],
    signatures: Mapping[str, meta_graph_pb2.SignatureDef],
) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tf.io.TFRecordWriter(path) as writer:
        for request in requests:
            log = _log(request, signatures[request.signature].method_name)
            writer.write(log.SerializeToString())


def _log(request: Request, method: str) -> Any:
    """Returns a request as a PredictionLog."""
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    kind = method.removeprefix(_METHODS)
    if kind in ("classify", "regress"):
        asked = getattr(log, f"{kind}_log").request
        (serialized,) = request.inputs.values()
        for each in serialized:
            asked.input.example_list.examples.add().ParseFromString(each)
    else:
        asked = log.predict_log.request
        for name, array in request.inputs.items():
            asked.inputs[name].CopyFrom(tf.make_tensor_proto(array))
    asked.model_spec.signature_name = request.signature
    return log


def read(folder: str) -> list[Request]:
    """Returns the warm-up requests of a SavedModel, in order.

    They are those that TensorFlow Serving reads, without kinds that `write`
    does not make, such as runs of sessions.
    """
    from tensorflow_serving.apis import prediction_log_pb2

    path = os.path.join(folder, FILE)
    found = []
    for record in tf.data.TFRecordDataset(path).take(MOST).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        kind = log.WhichOneof("log_type")
        if kind == "predict_log":
            asked = log.predict_log.request
            inputs = {x: tf.make_ndarray(y) for x, y in asked.inputs.items()}
        elif kind in ("classify_log", "regress_log"):
            asked = getattr(log, kind).request
            rows = asked.input.example_list.examples
            serialized = [row.SerializeToString() for row in rows]
            # The only name that TensorFlow Serving takes.
            inputs = {"inputs": np.array(serialized, object)}
        else:
            continue
        found.append(Request(asked.model_spec.signature_name, inputs))
    return found
