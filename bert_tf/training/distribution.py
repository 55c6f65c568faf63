"""Where a run computes: strategy, number format, seeds."""

import contextlib
import hashlib
import itertools
import os
import re
import signal
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import compiled
from bert_tf.errors import InputError
from bert_tf.training import cluster

import keras
import tensorflow as tf
from absl import logging
from tensorflow.python.eager import context

_LONGEST_WAIT_MS = 60_000


def set_up(
    strategy: str,
    dtype: str = "float32",
    seed: int = 0,
    logical_cpus: int = 1,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
) -> tf.distribute.Strategy:
    """Sets the number format and the seeds, and returns the strategy.

    Call it once, before anything else of TensorFlow: workers connect here, and
    a device can't be split once it is in use.

    Args:
        strategy: Of options.STRATEGIES. `mirrored` takes all local GPUs, or
            else all logical CPUs. `multi_worker_mirrored` reads the cluster
            from TF_CONFIG, or from what Slurm's srun sets.
        dtype: Of options.DTYPES. Weights and statistics are always float32.
            float16 needs GPUs, and an optimizer that scales the loss.
        seed: The seed of the initial weights.
        logical_cpus: Devices to split the CPU into, to try several replicas.
        tpu_name: The TPU's name or grpc address; None for a local one.
        tpu_zone: The TPU's zone; None to take it from the environment.
        gcp_project: The TPU's project, likewise.
    """
    if dtype == "float16" and not tf.config.list_physical_devices("GPU"):
        raise InputError(
            "float16 needs a GPU. TPUs and CPUs have bfloat16, which needs no "
            f"loss scaling either. Received: dtype={dtype!r}"
        )
    policy = "float32" if dtype == "float32" else f"mixed_{dtype}"
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(seed)
    if logical_cpus > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        current = tf.config.get_logical_device_configuration(cpu)
        if current is None or len(current) != logical_cpus:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * logical_cpus
            )
    if strategy == "mirrored":
        devices = tf.config.list_logical_devices("GPU")
        devices = devices or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([x.name for x in devices])
    if strategy == "multi_worker_mirrored":
        if "TF_CONFIG" not in os.environ:
            _take_own_gpus()
        os.environ["TF_CONFIG"] = cluster.find(os.environ)
        return _multi_worker_strategy()
    if strategy == "tpu":
        return _tpu_strategy(tpu_name, tpu_zone, gcp_project)
    return tf.distribute.get_strategy()


def asked_for(strategy: str | None, use_tpu: bool) -> str:
    """Returns the strategy that flags ask for; --use_tpu is of the original.

    Raises:
        InputError: If --use_tpu and --distribution_strategy name two.
    """
    if use_tpu and strategy not in (None, "tpu"):
        raise InputError(
            "--use_tpu means --distribution_strategy=tpu. "
            f"Received: distribution_strategy={strategy}"
        )
    return "tpu" if use_tpu else strategy or "default"


def check_cores(strategy: tf.distribute.Strategy, wanted: int | None) -> None:
    """Raises InputError if a TPU has not the number of cores that is wanted."""
    cores = strategy.num_replicas_in_sync
    if is_tpu(strategy) and wanted not in (None, cores):
        raise InputError(
            "The TPU has another number of cores. Received: "
            f"num_tpu_cores={wanted}, the TPU has {cores}"
        )


def check_batch_size(
    strategy: tf.distribute.Strategy,
    flag: str,
    batch_size: int,
    accumulate: int | None = 1,
    replicas: int | None = None,
) -> None:
    """Raises InputError unless replicas and micro-batches divide the batch.

    With `accumulate=None` the micro-batches are chosen later, so that they do.
    `replicas` replaces the number of replicas of the strategy.
    """
    accumulate = accumulate or 1
    replicas = replicas or strategy.num_replicas_in_sync
    if batch_size % (replicas * accumulate):
        raise InputError(
            f"--{flag} must be a multiple of {replicas * accumulate}: the "
            f"replicas ({replicas}) times the micro-batches ({accumulate}). "
            f"Received: {flag}={batch_size}"
        )


def is_alone(strategy: tf.distribute.Strategy) -> bool:
    """Whether no other process trains the same model."""
    multi_worker = tf.distribute.MultiWorkerMirroredStrategy
    return not isinstance(strategy, multi_worker)


def agreement(strategy: tf.distribute.Strategy) -> Callable[[bool], bool]:
    """Returns a function that is True if any worker passes True.

    All workers must call it at the same points of the run; it returns when all
    have called it.
    """
    if is_alone(strategy):
        return lambda yes: yes

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def count(yes):
        def replica():
            context = tf.distribute.get_replica_context()
            own = tf.identity(yes)  # on this replica's device
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

        total = strategy.run(replica)
        return strategy.experimental_local_results(total)[0]

    def agree(yes):
        with cluster_watched():
            return float(count(tf.constant(float(yes)))) > 0

    return agree


@contextlib.contextmanager
def cluster_watched() -> Iterator[None]:
    """Raises ConnectionError, in one line, where another worker is gone.

    TensorFlow's heartbeats notice it within half a minute, and end what waits
    for that worker.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if "Collective ops is aborted" not in error.message:
            raise
        # The first name is of the one that says so, where it heard it itself.
        said = error.message
        named = said.partition("unhealthy")[2] or said
        task = re.search(r"/job:\w+/replica:\d+/task:\d+", named)
        raise ConnectionError(
            "Another worker of the cluster does not answer any more: it ended, "
            "and its own log says why, or the network is down. Start all "
            "workers again with the same commands; they go on from the newest "
            "checkpoint. Received: "
            f"{task[0] if task else 'no name of the worker'}"
        ) from error


class StoppedTogetherError(SystemExit):
    """All workers stop after the same step, because one received a signal."""


@contextlib.contextmanager
def left_together(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Makes a finished worker wait until all workers of a cluster are finished.

    Otherwise workers that still read its last reduction would assume a crash.
    On an error a worker leaves at once.
    """
    try:
        yield
    except StoppedTogetherError:
        _wait_for_all(strategy)
        raise
    _wait_for_all(strategy)


_waits = itertools.count()


def _wait_for_all(strategy: tf.distribute.Strategy) -> None:
    if is_alone(strategy):
        return
    # Of TensorFlow's coordination service, which the first worker runs; it has
    # no public name.
    service = context.context()
    resolver = strategy.cluster_resolver
    tasks = resolver.cluster_spec().as_dict()
    workers = [
        f"{job}-{index}"
        for job in ("chief", "worker")
        for index in range(len(tasks.get(job, ())))
    ]
    own = f"{resolver.task_type}-{resolver.task_id}"
    name = f"bert_tf/left/{next(_waits)}"
    # Each has what it needed, also where another has crashed by now.
    with contextlib.suppress(tf.errors.OpError):
        service.wait_at_barrier(name, _LONGEST_WAIT_MS)
        if own != workers[0]:
            service.set_config_key_value(f"{name}/{own}", "")
            return
        for worker in workers[1:]:  # these have heard of it
            service.get_config_key_value(f"{name}/{worker}", _LONGEST_WAIT_MS)


def check_same_step(agree: Callable[[bool], bool], step: int) -> None:
    """Raises InputError unless all workers continue from the same step."""
    latest = 0
    for bit in reversed(range(40)):
        if agree(step >= latest + (1 << bit)):
            latest += 1 << bit
    if agree(step != latest):
        raise InputError(
            "The workers found different checkpoints to go on from: this one "
            f"stands at step {step}, the furthest at {latest}. All need the "
            "same --output_dir, on a disk that all of them see."
        )


def check_alike(
    agree: Callable[[bool], bool], settings: Mapping[str, object]
) -> None:
    """Raises InputError unless all workers have the same settings, as text.

    Workers train one model, each on its share of the rows: with other settings
    or files each would train another one, and only the chief's is saved.

    Args:
        agree: From `agreement`.
        settings: Name -> value. The names are the same everywhere.
    """

    def differs(value: object) -> bool:
        digest = hashlib.sha256(repr(value).encode()).digest()
        number = int.from_bytes(digest[:4], "little")
        bits = (bool(number >> i & 1) for i in range(32))
        return any(agree(bit) and agree(not bit) for bit in bits)

    if not differs(sorted(settings.items())):
        return
    others = [name for name, value in settings.items() if differs(value)]
    here = ", ".join(
        f"{name}={textwrap.shorten(str(settings[name]), 100)}"
        for name in others
    )
    raise InputError(
        f"The workers of this run differ in {', '.join(others)}. Start all of "
        f"them with the same flags and the same files. Received here: {here}"
    )


def digest(variables: Sequence[keras.Variable]) -> str:
    """Returns the SHA-256 of the values of variables."""
    values = hashlib.sha256()
    for variable in variables:
        values.update(tf.convert_to_tensor(variable.value).numpy())
    return values.hexdigest()


def local_replicas(strategy: tf.distribute.Strategy) -> int:
    """Returns how many replicas share this machine's memory."""
    workers = 1
    if not is_alone(strategy):
        tasks = strategy.cluster_resolver.cluster_spec().as_dict()
        workers = sum(len(tasks.get(job, ())) for job in ("chief", "worker"))
    return strategy.num_replicas_in_sync // max(workers, 1)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the run's files."""
    return strategy.extended.should_checkpoint


def is_cpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether memory is the machine's own, and can't be tried out."""
    has_gpus = bool(tf.config.list_logical_devices("GPU"))
    return not has_gpus and not is_tpu(strategy)


def is_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether every shape has to be known when a step is compiled."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def compiles(strategy: tf.distribute.Strategy, use_xla: bool | None) -> bool:
    """Whether XLA compiles the training step, as --use_xla asks for or not.

    Raises:
        InputError: --use_xla is false on a TPU.
    """
    if is_tpu(strategy):
        if use_xla is False:
            raise InputError(
                "A TPU runs what XLA compiles, and nothing else. Leave out "
                "--use_xla. Received: use_xla=false"
            )
        return True
    return not is_cpu(strategy) if use_xla is None else use_xla


def run(
    strategy: tf.distribute.Strategy,
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> Any:
    """Runs a function of tensors on all replicas; TPUs compile it."""
    if is_tpu(strategy):
        function = compiled.marked(function, dialect="TPU")
    return strategy.run(function, tuple(arguments))


def _take_own_gpus() -> None:
    """Leaves the GPUs of other tasks on this machine to them."""
    gpus = tf.config.list_physical_devices("GPU")
    share = cluster.share_of_gpus(os.environ, len(gpus))
    if gpus and share:
        first, step = share
        tf.config.set_visible_devices(gpus[first::step], "GPU")


def _multi_worker_strategy() -> tf.distribute.Strategy:
    """Waits for all workers of TF_CONFIG, and connects to them."""
    logging.info(
        "Waiting for the other workers: %s",
        cluster.others(os.environ["TF_CONFIG"]),
    )
    with _ended_by_system(signal.SIGINT, signal.SIGHUP):
        return tf.distribute.MultiWorkerMirroredStrategy()


@contextlib.contextmanager
def _ended_by_system(*numbers: signal.Signals) -> Iterator[None]:
    """Lets signals end the process at once.

    TensorFlow may wait for what never comes, and lets no handler of Python's
    run meanwhile. SIGTERM it takes for itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tpu_strategy(
    name: str | None, zone: str | None, project: str | None
) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=name or "local", zone=zone, project=project
        )
        if name:
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:  # Google's clients define many error types.
        raise InputError(
            "No TPU was found. On a TPU host, leave --tpu_name out and use the "
            "environment of `make tpu-venv`; on other hosts, give the name or "
            "grpc address of the TPU. "
            f"Received: tpu_name={name!r}. TensorFlow says: "
            f"{textwrap.shorten(str(error), 160, placeholder=' ...')}"
        ) from error
    return tf.distribute.TPUStrategy(resolver)
