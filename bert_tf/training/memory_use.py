"""Estimates the memory of training, and chooses micro-batches that fit.

Shapes as in modeling.py; read rows: rows of the last layer that a head reads.
"""

import dataclasses
import functools
import math
import os
import re
from collections.abc import Callable

from bert_tf import modeling, optimization
from bert_tf.errors import InputError
from bert_tf.training import accelerators, loop, replica_step

import keras
import tensorflow as tf
from absl import logging

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes that a replica needs to train.

    Attributes:
        state: Weights, moments, and gradients of earlier micro-batches.
        gradients: The peak of all gradients: before, during and after clipping.
        activations: Activations that the backward pass needs.
        working: Additional memory of the largest operation.
    """

    state: float
    gradients: float
    activations: float
    working: float

    @property
    def total(self) -> float:
        """All of it: the peak of a step."""
        # Activations are gone when gradients are clipped.
        passes = self.gradients / 2 + self.activations + self.working
        return self.state + max(passes, self.gradients)


def training_memory(
    config: modeling.BertConfig,
    batch: int,
    seq: int,
    predictions: int,
    dtype: str = "float32",
    remat: bool = False,
    accumulate: int = 1,
    reads_all: bool = False,
) -> Memory:
    """Estimates what a replica needs to pre-train on a micro-batch.

    It counts the tensors that modeling.py keeps. On top come some 100 MB of the
    framework, what its threads compute ahead, and what its allocator leaves
    unused: on CPUs it cuts all tensors from regions of 256 MB or more, and
    gives none back. `python -m benchmarks.memory` says how near the estimate
    comes: for a step in four micro-batches 0.56 times what was measured of
    BERT-mini, 32 x 128, and 0.78 times of base, 8 x 128. An XLNet's second
    stream is not counted: 0.4 to 0.5 times. A classifier has no predictions;
    `reads_all` says that its head reads every token.
    """
    D, F, V = config.hidden_size, config.intermediate_size, config.vocab_size
    N, L, E = (
        config.num_attention_heads,
        config.num_blocks,
        config.embedding_size,
    )
    size = _BYTES[dtype]
    tokens = batch * seq
    weights = 4 * accelerators.parameters(config)
    state = (3 if accumulate == 1 else 4) * weights
    # Logits of words, their softmax and its slope; what they are made of.
    head = batch * predictions * (V * (size + 2 * 4) + E * (3 * size + 4))
    logits = batch * predictions * V * 4
    if config.activations is not None:
        kept = 4.0 * tokens * config.activations
        return Memory(state, 2 * weights, kept + head, max(kept / 2, logits))
    read = tokens if reads_all else batch * (predictions + 1)

    def layer(rows):
        # Keys and values; of the rows: query, context in two orders, output of
        # attention and of the layer, two dropout masks; in float32 two
        # normalized sums.
        vectors = tokens * 2 * D * size + rows * D * (7 * size + 2 * 4)
        # Softmax in float32, and what dropout left of it.
        scores = rows * seq * N * (4 + size)
        # Output of gelu and two factors of its slope.
        return vectors + scores + rows * F * 3 * size

    embeddings = tokens * E * (2 * size + 4)
    embeddings += tokens * D * size if config.maps_embeddings else 0
    kept = (L - 1) * layer(tokens) + layer(read)
    if remat:
        kept = (L - 1) * tokens * D * size + layer(tokens if L > 1 else read)
    working = max(
        tokens * (2 * F + 4 * D) * size + 2 * tokens * seq * N * 4, logits
    )
    return Memory(state, 2 * weights, embeddings + head + kept, working)


def replaced_tokens_memory(
    config: modeling.BertConfig,
    generator: modeling.BertConfig,
    batch: int,
    seq: int,
    predictions: int,
    dtype: str = "float32",
    remat: bool = False,
    accumulate: int = 1,
) -> Memory:
    """Estimates the same of a discriminator and the generator of its inputs."""
    how = (dtype, remat, accumulate)
    parts = (
        training_memory(generator, batch, seq, predictions, *how),
        training_memory(config, batch, seq, 0, *how, reads_all=True),
    )
    # The tables of embeddings are there once.
    rows = config.vocab_size + config.max_position_embeddings
    shared = 4 * rows * config.embedding_size
    return Memory(
        sum(x.state for x in parts) - (3 if accumulate == 1 else 4) * shared,
        sum(x.gradients for x in parts) - 2 * shared,
        sum(x.activations for x in parts),
        max(x.working for x in parts),
    )


def memory_of(
    config: modeling.BertConfig,
    generator: modeling.BertConfig | None,
    sizes: tuple[int, int, int],
    how: tuple[str, bool, int],
    reads_all: bool = False,
) -> Memory:
    """Estimates the same of a model that a generator may make the inputs of.

    The sizes are rows, their length and their predictions; `how` is dtype,
    remat and accumulate.
    """
    if generator is None:
        return training_memory(config, *sizes, *how, reads_all)
    return replaced_tokens_memory(config, generator, *sizes, *how)


def check_room_for_weights(config: modeling.BertConfig) -> None:
    """Raises InputError where a model's weights alone are too large.

    That is a config with a digit too many. Weights go through the memory of
    this machine, whatever it computes on.
    """
    size = 4 * accelerators.parameters(config)
    if size > available_memory():
        raise InputError(
            f"The weights of this model take {size / 1e9:,.1f} GB, which is "
            "more memory than this machine has free. Is the config the right "
            "one? Received: "
            f"hidden_size={config.hidden_size}, "
            f"num_hidden_layers={config.num_hidden_layers}, "
            f"intermediate_size={config.intermediate_size}, "
            f"vocab_size={config.vocab_size}"
        )


def check_room_for_steps(
    memory: Memory, replicas: int, received: str, remat_helps: bool
) -> None:
    """Raises InputError where steps on CPUs need more memory than there is.

    The estimate is rather too small, and running out ends the process without a
    word; accelerators say so themselves. The error names what was `received`.
    """
    size = replicas * memory.total
    if size > available_memory():
        ways = [
            "Lower --train_batch_size",
            "raise --gradient_accumulation_steps",
        ]
        ways += ["give --remat"] * remat_helps
        raise InputError(
            f"A step takes about {size / 1e9:,.1f} GB, which is more memory "
            f"than this machine has free. {', '.join(ways[:-1])}, or "
            f"{ways[-1]}. Received: {received}"
        )


def largest(memory: Callable[[int], float], available: float) -> int:
    """Returns for how many rows the memory suffices; 0 if not for one."""
    rows = 0
    step = 1
    while memory(rows + step) <= available:
        rows += step
        step *= 2
    while step > 1:
        step //= 2
        if memory(rows + step) <= available:
            rows += step
    return rows


def has_room_for_copy(copy: float, steps: float) -> bool:
    """Whether memory has room for a copy of a checkpoint during the steps.

    Both arguments are bytes. If not, a warning is logged: the run continues,
    and waits for its saves.
    """
    has_room = steps + copy <= available_memory()
    if not has_room:
        logging.warning(
            "A copy of weights and moments (%.1f GB) does not fit in memory "
            "during training: steps wait while a checkpoint is written, as "
            "with --save_in_background=false.",
            copy / 1e9,
        )
    return has_room


def available_memory() -> float:
    """Free bytes of this machine or control group (v2); infinite if unknown."""
    if not os.path.exists("/proc/meminfo"):
        return math.inf
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":") for line in file)
    free = [int(lines["MemAvailable"].split()[0]) * 1024]
    group = {
        name: _read(f"/sys/fs/cgroup/memory.{name}")
        for name in ("max", "current", "stat")
    }
    if group["max"].isdigit() and group["current"].isdigit():
        # Files that were read are kept as long as nobody needs the memory.
        cache = re.search(r"^inactive_file (\d+)$", group["stat"], re.M)
        used = int(group["current"]) - (int(cache[1]) if cache else 0)
        free.append(int(group["max"]) - used)
    return float(min(free))


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read().strip()


# ---- Micro-batches ----------------------------------------------------------


def choose(rows: int, fits: Callable[[int], bool]) -> int:
    """Returns the number of micro-batches of a replica's batch.

    `fits` is called with `rows`, then with a few of its divisors.
    """
    # Checked separately: the whole batch may fit even if half of it does not,
    # because that also needs the gradients of the other half.
    largest = rows if fits(rows) else None
    sizes = [size for size in range(1, rows) if rows % size == 0]
    low, high = 0, 0 if largest else len(sizes)
    while low < high:
        middle = (low + high) // 2
        if fits(sizes[middle]):
            largest, low = sizes[middle], middle + 1
        else:
            high = middle
    if largest is None:
        raise InputError(
            "There is not enough memory to train on one example. Use --remat, "
            "--dtype=bfloat16, shorter sequences or a smaller model. "
            f"Received: --auto_batch_size, {rows} examples per replica"
        )
    logging.info("Micro-batches of %d of %d rows.", largest, rows)
    return rows // largest


def most(rows: int, found: int, agree: Callable[[bool], bool]) -> int:
    """Returns the most micro-batches that any worker of a cluster found."""
    counts = (count for count in range(1, rows + 1) if rows % count == 0)
    return next(count for count in counts if not agree(found > count))


def noted(path: str, rows: int, how: str) -> int | None:
    """Returns a run's micro-batches; None if unknown or found for another how.

    The file has their number and `how`, which says what memory depends on. A
    run of an earlier version has the number alone, which it keeps.
    """
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        text, _, found_for = file.read().strip().partition(" ")
    is_number = text.isdecimal() and int(text) and not rows % int(text)
    if not is_number or found_for not in ("", how):
        return None
    logging.info("Micro-batches of %d of %d rows.", rows // int(text), rows)
    return int(text)


def tried(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    optimizer: optimization.Optimizer,
    objective: loop.Objective,
    dataset: tf.distribute.DistributedDataset,
    use_xla: bool = False,
) -> Callable[[int], bool]:
    """Returns a `fits` that computes gradients, to see if memory runs out."""
    batch = next(iter(dataset))
    compiler = replica_step.compiler_of(strategy, use_xla)

    def fits(rows):
        @tf.function(autograph=False)
        def attempt(batch):
            def replica(batch):
                passes = compiler(
                    functools.partial(
                        replica_step.gradients_and_sums,
                        *(model, optimizer, objective),
                    )
                )
                whole = batch["row_weights"].shape[0]
                # Two parts, if the batch has two: the gradients of the first
                # are kept while the second is computed.
                count = 1 if rows == whole else 2
                part = {name: x[: rows * count] for name, x in batch.items()}
                gradients, _ = replica_step.add_up(
                    lambda i, x: passes(
                        x, objective.weights(x), tf.stack([i, 0])
                    ),
                    part,
                    count,
                )
                return tf.linalg.global_norm(gradients)

            return strategy.run(replica, (batch,))

        try:
            results = strategy.experimental_local_results(attempt(batch))
            for result in results:
                result.numpy()  # Waits: errors of GPUs come late.
        except tf.errors.ResourceExhaustedError:
            return False
        return True

    return fits
