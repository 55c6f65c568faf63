"""The training step, run by JAX on the devices that JAX finds.

JAX has packages for TPUs and GPUs for which TensorFlow has none. TensorFlow
traces the step and lowers it to StableHLO, with the state as arguments and
results. JAX compiles that for its devices through PJRT. Each device is a
replica: it computes its share of the batch, and gradients are summed over all
devices. TensorFlow reads the data, evaluates and saves, on the host.
"""

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bert_tf import compiled, extras, optimization, phases
from bert_tf.errors import InputError
from bert_tf.training import accelerators, loop, replica_step, run_report

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import tape
from tensorflow.python.ops import resource_variable_ops

_AXIS = "replica"


@dataclasses.dataclass(frozen=True)
class Runtime:
    """The devices that JAX finds. All of them train.

    Attributes:
        devices: From jax.devices().
    """

    devices: tuple[Any, ...]

    @property
    def replicas(self) -> run_report.Replicas:
        """The devices as replicas, such as 8 of the kind "TPU v6 lite"."""
        first = self.devices[0]
        kind = "CPU" if first.platform == "cpu" else str(first.device_kind)
        return run_report.Replicas(len(self.devices), kind)

    def meter(
        self, meter: accelerators.Meter, dtype: str
    ) -> accelerators.Meter:
        """Returns a meter of these devices, in place of TensorFlow's."""
        number, kind = self.replicas
        device = accelerators.find(kind)
        peak = None if device is None else device.flops[dtype]
        return dataclasses.replace(
            meter,
            replicas=number,
            peak_flops=meter.peak_flops or peak,
            memory=self._peak_memory,
        )

    def _peak_memory(self) -> int | None:
        """Returns the max bytes in use on a device, or of this process."""
        found = [device.memory_stats() or {} for device in self.devices]
        peaks = [x.get("peak_bytes_in_use", 0) for x in found]
        return max(peaks) or accelerators.peak_memory()


def start() -> Runtime:
    """Finds JAX's devices. Call it before TensorFlow uses a device.

    Raises:
        InputError: If JAX is missing, or finds no device or other hosts.
    """
    extras.check("jax", "jax", "Runs with --runtime=pjrt")
    import jax

    # It reports each kind of device that this host does not have.
    logging.getLogger("jax").setLevel(logging.WARNING)
    # The GPUs are JAX's: TensorFlow would take their memory.
    tf.config.set_visible_devices([], "GPU")
    try:
        # On a TPU pod, it waits until JAX is started on all hosts.
        with phases.lasting("Finding JAX's devices (of a pod: of all hosts)"):
            devices = jax.devices()
    except RuntimeError as error:
        raise InputError(
            "JAX can't use the devices of this host. Install the JAX package "
            "for them, such as jax[tpu] or jax[cuda13], or set "
            f"JAX_PLATFORMS=cpu. Received: {' '.join(str(error).split())}"
        ) from error
    if (hosts := jax.process_count()) > 1:
        raise InputError(
            "--runtime=pjrt trains on the devices of one host. Take a TPU of "
            "one host, or --use_tpu and --tpu_name for a TPU pod. Received: "
            f"{len(devices)} devices of {hosts} hosts"
        )
    return Runtime(tuple(devices))


@contextlib.contextmanager
def _out_of_memory_named() -> Iterator[None]:
    """Raises TensorFlow's error where a device of JAX has too little memory."""
    from jax import errors

    try:
        yield
    except errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise tf.errors.ResourceExhaustedError(
            None, None, str(error)
        ) from error


class TrainSteps:
    """A function that trains: (first step, number of steps) -> block.

    As `loop.make_train_steps`, with JAX's devices as replicas. The state is on
    the devices. `fetch` copies it to TensorFlow's variables.
    """

    def __init__(
        self,
        runtime: Runtime,
        model: keras.Model,
        optimizer: optimization.Optimizer,
        objective: loop.Objective,
        dataset: tf.distribute.DistributedDataset,
        seed: int,
        accumulate: int = 1,
    ):
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        self._program = _Program(
            runtime, model, optimizer, objective, seed, accumulate
        )
        mesh = Mesh(np.array(runtime.devices), (_AXIS,))
        everywhere = NamedSharding(mesh, PartitionSpec())
        shared = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._put = functools.partial(
            jax.device_put, device=everywhere, may_alias=False
        )
        self._share = functools.partial(jax.device_put, device=shared)
        self._mesh = mesh
        self._objective = objective
        self._batches = iter(dataset)
        self._step: Callable[..., Any] | None = None
        self._state: Any = None
        self._zeros: Any = None

    @_out_of_memory_named()
    def __call__(self, first: int, count: int) -> loop.Block:
        import jax

        batch = self._next()
        if self._step is None:
            variables = self._program.variables
            self._state = self._put([x.numpy() for x in variables])
            self._step, self._zeros = self._program.compile(self._mesh, batch)
        total, report = self._put(self._zeros), None
        for step in range(first, first + count):
            before = report
            seeds = self._share(self._program.seeds(step))
            self._state, total, report = self._step(
                self._state, total, np.int32(step), seeds, batch
            )
            if step + 1 < first + count:
                batch = self._next()  # while the devices compute
            # Two steps at most are under way, so that batches do not pile up.
            jax.block_until_ready(before)
        total, report = jax.tree.map(float, jax.device_get((total, report)))
        return loop.block_of(self._objective, total, report)

    def fetch(self) -> None:
        """Copies weights and moments to TensorFlow's variables."""
        if self._state is None:
            return
        pairs = zip(self._program.variables, self._state, strict=True)
        for variable, value in pairs:
            variable.assign(np.array(value))

    def _next(self) -> Any:
        batch = next(self._batches)
        return self._share({name: x.numpy() for name, x in batch.items()})


class _Program:
    """A step as functions of JAX, without state.

    TensorFlow lowers the three parts of a replica's step. Between them, JAX
    sums over the replicas.
    """

    def __init__(
        self,
        runtime: Runtime,
        model: keras.Model,
        optimizer: optimization.Optimizer,
        objective: loop.Objective,
        seed: int,
        accumulate: int,
    ):
        platform = runtime.devices[0].platform
        self._replicas = runtime.replicas.number
        self._platform = "cuda" if platform == "gpu" else platform
        self._optimizer = optimizer
        self._weights = [*model.variables, *objective.own]
        dialect = "TPU" if platform == "tpu" else "XLA"
        traced = functools.partial(compiled.marked, dialect=dialect)
        self._parts = replica_step.ReplicaStep(
            *(model, optimizer, objective, traced),
            *(seed, accumulate),
        )

    @property
    def variables(self) -> list[tf.Variable]:
        """The state: weights, then the optimizer's slots."""
        weights = [variable.value for variable in self._weights]
        return [*weights, *self._optimizer.slots.values()]

    def seeds(self, step: int) -> np.ndarray:
        """Returns the seeds of all replicas, one after another."""
        return self._seeds(tf.constant(step, tf.int64)).numpy()

    # By TensorFlow's kernels, as without JAX: XLA's draw other numbers.
    @tf.function(autograph=False)
    def _seeds(self, step):
        replicas = range(self._replicas)
        return tf.concat([self._parts.seeds(step, i) for i in replicas], 0)

    def compile(self, mesh: Any, batch: Any) -> tuple[Callable[..., Any], Any]:
        """Compiles the step for a batch; returns it and sums of no steps.

        The step is (state, sums of earlier steps, step, seeds, batch) ->
        (state, sums, report). It reuses the memory of the state and the sums.
        """
        import jax
        from jax.sharding import PartitionSpec

        rows = {
            name: tf.TensorSpec(
                (x.shape[0] // self._replicas, *x.shape[1:]), x.dtype
            )
            for name, x in batch.items()
        }
        state = [tf.TensorSpec(x.shape, x.dtype) for x in self.variables]
        number = tf.TensorSpec([], tf.int32)
        seed = tf.TensorSpec([self._parts.accumulate, 2], tf.int32)
        lower = functools.partial(_lower, platform=self._platform)
        weights, of_batch = lower(self._parts.weights, rows)
        gradients, of_rows = lower(
            self._gradients, state, seed, rows, of_batch[0]
        )
        update, _ = lower(self._update, state, of_rows[0], number)

        def replica(state, total, step, seeds, rows):
            totals, counts = jax.lax.psum(weights(rows), _AXIS)
            added, sums = jax.lax.psum(
                gradients(state, seeds, rows, totals), _AXIS
            )
            state, report = update(state, added, step)
            more = {"sums": sums, "weights": totals, "counts": counts}
            return state, jax.tree.map(jax.numpy.add, total, more), report

        same, shared = PartitionSpec(), PartitionSpec(_AXIS)
        step = jax.jit(
            jax.shard_map(
                replica,
                mesh=mesh,
                in_specs=(same, same, same, shared, shared),
                out_specs=same,
                check_vma=False,
            ),
            donate_argnums=(0, 1),
        )
        sums = {
            "sums": of_rows[1],
            "weights": of_batch[0],
            "counts": of_batch[1],
        }
        return step, tf.nest.map_structure(_zeros, sums)

    def _gradients(self, state, seeds, rows, totals):
        with self._replaced(state):
            return self._parts.gradients(seeds, self._replicas, rows, totals)

    def _update(self, state, gradients, step):
        with self._replaced(state) as made:
            report = self._parts.update(gradients, tf.cast(step, tf.int64))
            return [x.handle for x in made], report

    def _replaced(self, state):
        slots = self._optimizer.slots
        return replaced(self._weights, slots, state)


def _lower(
    function: Callable[..., Any], *specs: Any, platform: str
) -> tuple[Callable[..., Any], Any]:
    """Lowers a function of tensors to one of JAX, for a platform of JAX.

    Returns it and the specifications of its results.
    """
    import jax
    from jax import export

    flat = tf.nest.flatten(specs)

    @tf.function(autograph=False, jit_compile=True)
    def traced(*tensors):
        return function(*tf.nest.pack_sequence_as(specs, tensors))

    graph = traced.get_concrete_function(*flat)
    # The lowering for CPUs is free of kernels of a device, and TensorFlow has
    # it everywhere.
    artifact = traced.experimental_get_compiler_ir(*flat)(
        stage="stablehlo_serialized", platform_name="CPU"
    )
    captured = [x.numpy() for x in graph.captured_inputs]
    structure = graph.structured_outputs
    results = [
        tf.TensorSpec(x.shape, x.dtype) for x in tf.nest.flatten(structure)
    ]

    # A function of the same signature, whose program is replaced.
    def zeros(*_):
        return list(map(_zeros, results))

    inputs = [
        jax.ShapeDtypeStruct(x.shape, x.dtype.as_numpy_dtype) for x in flat
    ]
    exported = dataclasses.replace(
        export.export(jax.jit(zeros), platforms=[platform])(*inputs, *captured),
        mlir_module_serialized=artifact,
        module_kept_var_idx=tuple(range(len(inputs) + len(captured))),
    )

    def call(*values):
        found = exported.call(*tf.nest.flatten(values), *captured)
        return tf.nest.pack_sequence_as(structure, found)

    return call, tf.nest.pack_sequence_as(structure, results)


def _zeros(spec: tf.TensorSpec) -> np.ndarray:
    return np.zeros(spec.shape, spec.dtype.as_numpy_dtype)


# ---- Variables as arguments -------------------------------------------------

# A variable is on a device of TensorFlow, so steps for devices that TensorFlow
# does not have can't have variables. The step is traced with arguments instead.
# An assignment replaces an argument, and its last value is a result. The step
# must be traced as compiled: kernels that update variables take no arguments.


class Argument(resource_variable_ops.BaseResourceVariable):
    """A variable whose handle is its value, a tensor.

    Gradient tapes watch handles, so gradients are taken of the tensor.
    """

    def __init__(self, variable: tf.Variable, value: tf.Tensor):
        super().__init__(
            trainable=variable.trainable,
            shape=variable.shape,
            dtype=variable.dtype,
            handle=value,
            unique_id=variable.name,
            handle_name=variable.name,
            in_graph_mode=False,
        )

    def _read_variable_op(self, no_copy=False):
        del no_copy
        if self.trainable:
            tape.variable_accessed(self)
        return tf.identity(self.handle)

    def assign(self, value, use_locking=None, name=None, read_value=True):
        del use_locking, name, read_value
        self._handle = tf.convert_to_tensor(value, self.dtype)
        return self

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        return self.assign(self.handle + delta)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        return self.assign(self.handle - delta)


@contextlib.contextmanager
def replaced(
    weights: Sequence[keras.Variable],
    slots: dict[str, tf.Variable],
    values: Sequence[tf.Tensor],
) -> Iterator[list[Argument]]:
    """Replaces weights and an optimizer's slots by arguments.

    `values` has the values of the weights, then of the slots, in order.
    """
    variables = [weight._value for weight in weights]
    everything = [*variables, *slots.values()]
    made = [Argument(*x) for x in zip(everything, values, strict=True)]
    before = dict(slots)
    try:
        for weight, argument in zip(weights, made, strict=False):
            weight._value = argument
        slots.update(zip(slots, made[len(variables) :], strict=True))
        yield made
    finally:
        slots.update(before)
        for weight, variable in zip(weights, variables, strict=True):
            weight._value = variable
