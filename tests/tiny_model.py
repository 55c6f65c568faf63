"""A model that is traced quickly, and its objective, for tests of loops."""

import contextlib

from bert_tf import losses
from bert_tf.encoders import ops
from bert_tf.training import loop, session

import keras
import numpy as np
import tensorflow as tf

COUNTS = (7, 12, 5)
BATCH = 8
ONE = tf.distribute.get_strategy()


@contextlib.contextmanager
def policy(name):
    """Makes Keras compute in another dtype in this context."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


@contextlib.contextmanager
def untraced(is_eager=True):
    """Runs functions eagerly in this context; short runs are seconds faster."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(is_eager)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


class Tiny(keras.Model):
    """Embeddings that directly predict words and the next sentence."""

    def __init__(self, rate):
        super().__init__(name="tiny")
        self.rate = rate
        rng = np.random.default_rng(3)
        self.table, self.next, self.bias = (
            keras.Variable(rng.normal(size=shape).astype("float32"), name=name)
            for name, shape in (
                ("table", [40, 6]),
                ("next", [6, 2]),
                ("output_bias", [40]),
            )
        )
        self.built = True

    def call(self, batch, dropout_seed=None):
        table = tf.convert_to_tensor(self.table)
        x = ops.embed(table, batch["input_ids"])  # [B, S, D]
        x = ops.dropout(x, self.rate, dropout_seed)
        rows = tf.gather(x, batch["masked_lm_positions"], batch_dims=1)
        words = tf.matmul(rows, table, transpose_b=True) + self.bias
        return words, tf.matmul(tf.reduce_mean(x, axis=1), self.next)


def mask_weights(batch):
    return batch["masked_lm_weights"] * batch["row_weights"][:, tf.newaxis]


def weights(batch):
    return {
        "words": tf.reduce_sum(mask_weights(batch)),
        "next": tf.reduce_sum(batch["row_weights"]),
    }


def sums(model, batch, dropout_seed):
    words, following = model(batch, dropout_seed)
    labels = batch["next_sentence_labels"][:, 0]
    return {
        "words": losses.classification(
            words, batch["masked_lm_ids"], mask_weights(batch)
        ),
        "next": losses.classification(following, labels, batch["row_weights"]),
    }


OBJECTIVE = loop.Objective(weights, sums)


def session_of(model, folder, begin, batches, **plan):
    """Returns a session that trains a model; `plan` are more of its values."""
    return session.Session(
        folder=str(folder),
        strategy=ONE,
        model=model,
        plan=session.Plan(
            batch_size=BATCH,
            learning_rate=0.1,
            accumulate=1,
            seed=1,
            iterations_per_loop=1,
            save_checkpoints_steps=5,
            keep_checkpoint_max=2,
            log_steps=1,
            **plan,
        ),
        schedule=lambda step: 0.1,
        stop=100,
        objective=OBJECTIVE,
        trained=model.trainable_variables,
        restore=lambda state: None,
        begin=begin,
        batches=batches,
        explained=contextlib.nullcontext,
    )
