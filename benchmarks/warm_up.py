"""Compares the first request after a start with later requests.

    python -m benchmarks.warm_up --saved_model=/models/mrpc/1

A fresh process loads the SavedModel into a session, as TensorFlow Serving does.
Another one replays the warm-up file first. Both then send the requests for
serving_default in the file, each --requests times. This is done --starts times,
in turn. Prints milliseconds of the first and of the median request, and their
ratio: medians over the starts, and also the highest ratio. Times are wall-clock
times.
"""

import json
import os
import statistics
import time
from typing import Any

from benchmarks import own_process
from bert_tf.exporting import warmup

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizer's op)
from absl import app, flags

_SAVED_MODEL = flags.DEFINE_string(
    "saved_model", None, "A version, with its warm-up file.", required=True
)
_REQUESTS = flags.DEFINE_integer("requests", 30, "How often each.", 3)
_STARTS = flags.DEFINE_integer("starts", 5, "Processes of either side.", 1)
_THREADS = flags.DEFINE_integer("threads", os.cpu_count() or 1, "Cores.", 1)
_SIDE = flags.DEFINE_enum(
    "side", None, ["cold", "warm"], "What a process of its own measures."
)


class Server:
    """A SavedModel in a session, and its signatures."""

    def __init__(self, path):
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=_THREADS.value,
            inter_op_parallelism_threads=_THREADS.value,
        )
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
        with self._session.graph.as_default():
            graph = tf.compat.v1.saved_model.load(
                self._session, ["serve"], path
            )
        self._signatures = graph.signature_def

    def answer(self, request):
        """Returns the seconds that a request takes."""
        signature = self._signatures[request.signature]
        feeds = {
            signature.inputs[name].name: array
            for name, array in request.inputs.items()
        }
        fetches = [x.name for x in signature.outputs.values()]
        began = time.perf_counter()
        self._session.run(fetches, feeds)
        return time.perf_counter() - began


def measure(path, is_warm):
    """Returns the times of requests, [requests of the file, times]."""
    requests = warmup.read(path)
    server = Server(path)
    replay = 0.0
    if is_warm:
        replay = sum(map(server.answer, requests))
    asked = [x for x in requests if x.signature == "serving_default"]
    seconds = [
        [server.answer(request) for _ in range(_REQUESTS.value)]
        for request in asked
    ]
    return {"replay": replay, "seconds": seconds}


def start(side):
    """Returns the measurement of a separate process."""
    line = own_process.last_line(
        "benchmarks.warm_up",
        f"--saved_model={_SAVED_MODEL.value}",
        f"--requests={_REQUESTS.value}",
        f"--threads={_THREADS.value}",
        f"--side={side}",
    )
    return json.loads(line)


def main(_):
    """Runs both sides, or is one of them."""
    if _SIDE.value:
        is_warm = _SIDE.value == "warm"
        print(json.dumps(measure(_SAVED_MODEL.value, is_warm)))
        return
    found: dict[str, list[dict[str, Any]]] = {"cold": [], "warm": []}
    for _ in range(_STARTS.value):
        for side, starts in found.items():
            starts.append(start(side))
    print("     request  first ms  median ms   ratio  highest")
    for side, starts in found.items():
        requests = zip(*(each["seconds"] for each in starts), strict=True)
        for number, times in enumerate(requests, 1):
            first = statistics.median(1e3 * x[0] for x in times)
            median = statistics.median(
                1e3 * statistics.median(x) for x in times
            )
            ratios = [x[0] / statistics.median(x) for x in times]
            print(
                f"{side} {number:7d} {first:9.2f} {median:10.2f} "
                f"{statistics.median(ratios):7.2f} {max(ratios):8.2f}"
            )
    replay = statistics.median(x["replay"] for x in found["warm"])
    print(f"replaying the file took {replay:.2f} s")


if __name__ == "__main__":
    app.run(main)
