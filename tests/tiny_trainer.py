"""A training loop of a model that is traced quickly."""

from bert_tf import optimization
from bert_tf.records import pipeline, record_types
from bert_tf.training import loop, schedules
from tests import pretraining_records, tiny_model

import keras
import tensorflow as tf


def _waiting(batch, wait):
    """Returns the batch after calling a function that may wait."""
    serialized, weights = batch
    come = tf.py_function(wait, [], tf.float32)
    return serialized, weights + tf.ensure_shape(come, [])


class Trainer:
    """A model and its training function, always from the same start."""

    def __init__(
        self,
        files,
        strategy=tiny_model.ONE,
        accumulate=1,
        seed=5,
        make=lambda: tiny_model.Tiny(0.0),
        objective=tiny_model.OBJECTIVE,
        start=0,
        counts=tiny_model.COUNTS,
        wait=None,
        loss_scale=None,
        use_xla=False,
    ):
        self.strategy = strategy
        with strategy.scope():
            keras.utils.set_random_seed(1)
            self.model = make()
            self.optimizer = optimization.AdamWeightDecay(
                schedules.linear_warmup_decay(0.01, 2, 10),
                loss_scale=loss_scale,
            )
            self.optimizer.build(self.model.trainable_variables)
        batches = pipeline.train(
            files, counts, tiny_model.BATCH, 7, start * tiny_model.BATCH
        )
        if wait:
            batches = batches.map(lambda *batch: _waiting(batch, wait))
        dataset = pipeline.distribute(
            strategy,
            lambda: batches,
            record_types.PRETRAINING,
            pretraining_records.LENGTHS,
        )
        steps = loop.make_train_steps(
            strategy,
            self.model,
            self.optimizer,
            objective,
            dataset,
            seed,
            accumulate,
            use_xla,
        )
        self.train = lambda first, count: steps(first, count).scalars()

    def arrays(self, replica=0):
        """Returns weights and moments of one replica, by name."""
        variables = {v.path: v.value for v in self.model.variables}
        variables |= self.optimizer.slots
        return {
            name: self.strategy.experimental_local_results(v)[replica].numpy()
            for name, v in variables.items()
        }
