"""The optimizers of bert_tf as optimizers of Keras."""

from collections.abc import Mapping
from typing import Any, Self

from bert_tf import optimization
from bert_tf.errors import InputError, repeated

import keras
import tensorflow as tf

_OPTIONS = (
    "weight_decay_rate",
    "beta_1",
    "beta_2",
    "epsilon",
    "clip_norm",
    "exclude_from_weight_decay",
    "clipping",
)
_KINDS = {kind.__name__: kind for kind in optimization.OPTIMIZERS.values()}


@keras.saving.register_keras_serializable("bert_tf")
class KerasOptimizer(keras.optimizers.Optimizer):
    """An optimizer of bert_tf for `compile`, with the same numbers.

    The Keras classes of bert_tf make it of an optimizer in `compile`. For other
    models:

        optimizer = bert_tf.KerasOptimizer(bert_tf.AdamWeightDecay(schedule))
        model.compile(optimizer, loss)

    Gradients are clipped after they are summed over the replicas.

    Attributes:
        made_of: The optimizer of bert_tf.
    """

    def __init__(
        self, optimizer: optimization.Optimizer, name: str | None = None
    ):
        if not isinstance(optimizer, optimization.Optimizer):
            raise InputError(
                "optimizer must be one of bert_tf, such as AdamWeightDecay. "
                f"Received: optimizer={optimizer!r}"
            )
        if optimizer.loss_scale is not None:
            raise InputError(
                "Keras scales losses by itself: leave out loss_scale. "
                "Received: loss_scale=LossScale(...)"
            )
        rate = optimizer.schedule  # Keras only reads it, to report it.
        if not isinstance(
            rate, keras.optimizers.schedules.LearningRateSchedule
        ):
            rate = _OtherSchedule(rate)
        super().__init__(rate, name=name or "bert_tf")
        self.made_of = optimizer

    @property
    def variables(self) -> list[Any]:
        """The state, as `.keras` files have it: the moments at the end."""
        return [*super().variables, *self.made_of.slots.values()]

    def build(self, variables: Any) -> None:
        """Makes the moments."""
        if self.built:
            return
        if twice := sorted(repeated(x.path for x in variables)):
            raise InputError(
                "The optimizers of bert_tf keep moments by the names of "
                "variables, and two variables have one name: use an optimizer "
                f"of Keras. Received: {twice[0]} twice"
            )
        super().build(variables)
        with tf.init_scope(), self._distribution_strategy.scope():
            self.made_of.build(variables)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        strategy = self._distribution_strategy
        dense = [tf.convert_to_tensor(x) for x in grads]
        dense = self.made_of.clip_own(dense, strategy.num_replicas_in_sync)
        pairs = zip(dense, trainable_variables, strict=True)
        summed = self._all_reduce_sum_gradients(list(pairs))
        # Without the variables that have no gradient.
        self.made_of.variables = list(trainable_variables)
        step = tf.convert_to_tensor(self.iterations)
        self.made_of.apply([gradient for gradient, _ in summed], step)

    def get_config(self) -> dict[str, Any]:
        """Returns the values from which `from_config` makes this optimizer."""
        made_of = self.made_of
        kind, schedule = type(made_of).__name__, self._learning_rate
        if (
            _KINDS.get(kind) is not type(made_of)
            or made_of.pruning is not None
            or made_of.rate_of is not optimization.full_rate
            or made_of.starts_at is not optimization.first_step
            or isinstance(schedule, _OtherSchedule)
        ):
            raise InputError(
                "Keras can save optimizers of bert_tf that have a schedule of "
                "bert_tf.schedules or Keras, and no rate_of, starts_at or "
                "pruning. Save the weights only, by save_weights. Received: "
                f"optimizer={kind}"
            )
        return {
            "name": self.name,
            "kind": kind,
            "schedule": keras.saving.serialize_keras_object(schedule),
            "options": {name: getattr(made_of, name) for name in _OPTIONS},
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Any = None
    ) -> Self:
        """Returns the optimizer, without its moments."""
        schedule = keras.saving.deserialize_keras_object(
            config["schedule"], custom_objects
        )
        kind = _KINDS[config["kind"]]
        return cls(kind(schedule, **config["options"]), config["name"])


class _OtherSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A function of the step."""

    def __init__(self, function: optimization.Schedule):
        self.function = function

    def __call__(self, step):
        return self.function(tf.convert_to_tensor(step))

    def get_config(self) -> dict[str, Any]:
        """Never called: Keras requires it, but the optimizer checks first."""
        raise NotImplementedError
