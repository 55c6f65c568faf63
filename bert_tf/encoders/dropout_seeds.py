"""Seeds of dropout for those who train with Keras' own loop."""

import random

import keras
import tensorflow as tf


class Drawn:
    """A Keras seed generator that its owner does not list as a variable.

    Keras would list it in `model.variables`, and so it would come into the
    checkpoints of our training, which draws no seeds: there they are functions
    of the step.
    """

    def __init__(self):
        # It follows keras.utils.set_random_seed, as Keras' own do, but from a
        # copy of Python's generator: what comes after it, as the first weights
        # of a head, must not depend on it.
        state = random.Random()
        state.setstate(random.getstate())
        self.generator = keras.random.SeedGenerator(state.randrange(2**31))

    def unless(
        self, given: tf.Tensor | None, training: bool | None
    ) -> tf.Tensor | None:
        """Returns the seed `given`, else in training the next: int32 [2]."""
        if given is not None or not training:
            return given
        seed = tf.cast(self.generator.next(), tf.int32)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return seed
        # The generator's state is the same on all replicas.
        replica = context.replica_id_in_sync_group
        return tf.random.experimental.stateless_fold_in(seed, replica)
