"""Flags and timing of benchmarks that compare answers with transformers'."""

import os
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import flags

_INPUT_FILE = flags.DEFINE_string(
    "input_file", None, "A text on each line.", required=True
)
_LINES = flags.DEFINE_integer("lines", 500, "How many of them.", 1)
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Lines at a time.", 1)
MAX_SEQ_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "Tokens.", 4)
THREADS = flags.DEFINE_integer(
    "threads", os.cpu_count() or 1, "Cores for each."
)
ROUNDS = 2


def start() -> list[str]:
    """Limits the threads, and returns the lines of the file."""
    tf.config.threading.set_intra_op_parallelism_threads(THREADS.value)
    texts = pathlib.Path(_INPUT_FILE.value).read_text("utf-8").split("\n")
    return [text.strip() for text in texts if text.strip()][: _LINES.value]


def measure(
    contenders: Mapping[str, Callable[[list[str]], Any]], lines: list[str]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Returns by name the answers and the seconds of the faster round."""
    found = {name: answer(lines) for name, answer in contenders.items()}
    seconds = dict.fromkeys(contenders, np.inf)
    for _ in range(ROUNDS):
        for name, answer in contenders.items():
            began = time.perf_counter()
            answer(lines)
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    return found, seconds
