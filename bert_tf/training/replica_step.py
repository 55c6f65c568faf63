"""The training step of one replica: gradients, sums and the update.

It is made of three functions, between which replicas add up their results:
`weights`, `gradients` and `update`.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bert_tf import compiled, optimization
from bert_tf.encoders import ops
from bert_tf.errors import InputError
from bert_tf.training import distribution

import keras
import tensorflow as tf

if TYPE_CHECKING:
    from bert_tf.training import loop

Batch: TypeAlias = dict[str, tf.Tensor]
Compiler: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


# Hashed by identity: TensorFlow keeps what it has traced by function.
@dataclasses.dataclass(frozen=True, eq=False)
class ReplicaStep:
    """The step of one replica: (step, batch) -> (sums, report).

    Sums are added up over steps. Of reports, such as rates, the last counts.

    Args:
        compiler: From `compiler_of`.
        seed: Random seed of the dropout masks.
        accumulate: Micro-batches per step.
    """

    model: keras.Model
    optimizer: optimization.Optimizer
    objective: "loop.Objective"
    compiler: Compiler
    seed: int
    accumulate: int = 1

    def __call__(self, step: tf.Tensor, batch: Batch) -> tuple[Any, Any]:
        context = tf.distribute.get_replica_context()
        add = functools.partial(context.all_reduce, tf.distribute.ReduceOp.SUM)
        replicas = context.num_replicas_in_sync
        seeds = self.seeds(step, context.replica_id_in_sync_group)
        totals, counts = add(self.weights(batch))
        # One reduction for everything.
        gradients, sums = add(self.gradients(seeds, replicas, batch, totals))
        report = self.update(gradients, step)
        if "skipped_steps" in report:
            counts["skipped_steps"] = report.pop("skipped_steps")
        return {"sums": sums, "weights": totals, "counts": counts}, report

    def weights(self, batch: Batch) -> tuple[Any, Any]:
        """Returns the weights of the losses, and the sizes of the batch."""
        return self.objective.weights(batch), self.objective.sizes(batch)

    def seeds(self, step: tf.Tensor, replica: Any) -> tf.Tensor:
        """Returns the seed of each micro-batch's dropout masks, [.., 2].

        Args:
            step: The number of steps made before, int64.
            replica: The number of the replica, an integer.
        """
        key = tf.random.fold_in(tf.constant([self.seed, 0]), step)
        # The same for all replicas up to here, different from here on.
        key = tf.random.fold_in(key, tf.cast(replica, tf.int64))
        # As tf.random.fold_in(key, i) for each part i, with one draw for all.
        number, _ = tf.unstack(tf.random.fold_in(key, 0))
        parts = tf.range(self.accumulate)
        return tf.stack([tf.fill(parts.shape, number), parts], axis=1)

    def gradients(
        self,
        seeds: tf.Tensor,
        replicas: int,
        batch: Batch,
        totals: Mapping[str, tf.Tensor],
    ) -> tuple[list[tf.Tensor], Any]:
        """Returns the gradients of this replica's rows, and their sums.

        Args:
            seeds: This replica's, from `seeds`.
            replicas: How many replicas there are.
            batch: The rows of this replica.
            totals: The weights of the losses, summed over all replicas.
        """
        # Compiled here, because each replica has its own variables.
        passes = self.compiler(
            functools.partial(
                gradients_and_sums, self.model, self.optimizer, self.objective
            )
        )
        gradients, sums = add_up(
            lambda i, part: passes(part, totals, seeds[i]),
            batch,
            self.accumulate,
        )
        optimizer = self.optimizer
        if optimizer.loss_scale is not None or optimizer.clips_own:
            own = self.compiler(lambda x: self._own_gradients(x, replicas))
            gradients = own(gradients)
        return gradients, sums

    def update(
        self, gradients: Sequence[tf.Tensor], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Updates the variables; takes gradients summed over all replicas."""
        return self.compiler(self.optimizer.apply)(gradients, step)

    def _own_gradients(
        self, gradients: Sequence[tf.Tensor], replicas: int
    ) -> list[tf.Tensor]:
        """Returns this replica's share, unscaled and perhaps clipped."""
        optimizer = self.optimizer
        if optimizer.loss_scale is not None:
            # A power of two: nothing is rounded.
            scale = tf.convert_to_tensor(optimizer.loss_scale.scale)
            gradients = [gradient / scale for gradient in gradients]
        return optimizer.clip_own(gradients, replicas)


def gradients_and_sums(
    model: keras.Model,
    optimizer: optimization.Optimizer,
    objective: "loop.Objective",
    part: Batch,
    totals: Mapping[str, tf.Tensor],
    dropout_seed: tf.Tensor,
) -> tuple[list[tf.Tensor], dict[str, dict[str, tf.Tensor]]]:
    """Returns a micro-batch's gradients and its objective's sums.

    The gradients are of the sum of the losses, each divided by its total and
    multiplied by its factor, times the optimizer's loss scale if it has one.
    """
    with tf.GradientTape() as tape:
        sums = objective.sums(model, part, ops.root_seed(dropout_seed))
        losses = {
            name: tf.math.divide_no_nan(metrics["loss"], totals[name])
            for name, metrics in sums.items()
        }
        loss = objective.total(losses)
        if optimizer.loss_scale is not None:
            loss *= optimizer.loss_scale.scale
    variables = [v.value for v in optimizer.variables]
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    return gradients, sums


def compiler_of(strategy: tf.distribute.Strategy, use_xla: bool) -> Compiler:
    """Returns a function that compiles functions of tensors for a replica."""
    if distribution.is_tpu(strategy):
        # The strategy compiles whatever a replica does.
        return functools.partial(compiled.marked, dialect="TPU")
    return compiled.whole if use_xla else lambda function: function


def add_up(
    function: Callable[[Any, Batch], Any], batch: Batch, count: int
) -> Any:
    """Sums `function(number, part)` over `count` equal parts of a batch.

    They are computed one after the other: only one needs memory at a time.
    """
    if count == 1:
        return function(tf.constant(0), batch)
    rows = next(iter(batch.values())).shape[0]
    if rows is None or rows % count:
        raise InputError(
            "The batch of a replica must be a multiple of the number of "
            "micro-batches, and of a known size: batch the data set with "
            f"drop_remainder=True. Received: rows={rows}, accumulate={count}"
        )
    parts = {
        # Only the length of trimmed sequences is open.
        name: tf.reshape(
            x, [count, rows // count, *(d or -1 for d in x.shape[1:])]
        )
        for name, x in batch.items()
    }

    def compute(i):
        return function(i, {name: x[i] for name, x in parts.items()})

    def add(i, total):
        return i + 1, tf.nest.map_structure(tf.add, total, compute(i))

    total = compute(tf.constant(0))
    # A loop, because independent parts in the graph would run at the same time.
    # So would the first part and the loop's first part without this dependency.
    with tf.control_dependencies(tf.nest.flatten(total)):
        _, total = tf.while_loop(
            lambda i, total: i < count,
            add,
            (tf.constant(1), total),
            parallel_iterations=1,
        )
    return total
