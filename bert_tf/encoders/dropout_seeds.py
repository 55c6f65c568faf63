"""Dropout seeds for models that are trained with Keras' own loop."""

import random

import keras
import tensorflow as tf


class Drawn:
    """A Keras seed generator that is not listed as a variable of its owner.

    Otherwise Keras would list it in `model.variables`, and it would be saved in
    our own checkpoints. Our training loop does not need it: its seeds are
    functions of the step.
    """

    def __init__(self):
        # It follows keras.utils.set_random_seed, as Keras' own generators do,
        # but draws from a copy of Python's generator: later draws, such as the
        # first weights of a head, must not depend on it.
        state = random.Random()
        state.setstate(random.getstate())
        self.generator = keras.random.SeedGenerator(state.randrange(2**31))

    def unless(
        self, given: tf.Tensor | None, training: bool | None
    ) -> tf.Tensor | None:
        """Returns `given`, or in training the next seed, int32 [2]."""
        if given is not None or not training:
            return given
        seed = tf.cast(self.generator.next(), tf.int32)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return seed
        # The generator has the same state on all replicas.
        replica = context.replica_id_in_sync_group
        return tf.random.experimental.stateless_fold_in(seed, replica)
