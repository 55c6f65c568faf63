"""The objective and the metrics of replaced-token detection, as ELECTRA.

Losses and metrics have the names that google-research/electra prints. Shapes as
in modeling.py.
"""

from collections.abc import Mapping

from bert_tf import losses
from bert_tf.training import loop, pretraining

import keras
import tensorflow as tf

# `masked_lm` is the generator's loss, `disc` the discriminator's. The factors
# are the original's `gen_weight`, 1, and `disc_weight`.
_FACTORS = {"disc": 50.0}


def objective(model: keras.Model) -> loop.Objective:
    """Returns the objective of a ReplacedTokensPretrainer.

    It is the masked-word loss, averaged over masked words, plus 50 times the
    discriminator's loss, averaged over all tokens (Clark et al., 2020, section
    2). Data made with two segments can be used, but not for the next-sentence
    task.
    """
    return loop.Objective(
        _weights,
        _sums,
        factors=_FACTORS,
        sizes=pretraining.sizes,
        trained=model.trained_variables,
        derived=_as_printed,
    )


def _token_weights(batch: loop.Batch) -> tf.Tensor:
    """1 for tokens of real rows, else 0, [B, S]."""
    is_token = tf.cast(batch["input_mask"], tf.float32)
    return is_token * batch["row_weights"][:, tf.newaxis]


def _weights(batch):
    return {
        "masked_lm": tf.reduce_sum(pretraining.mask_weights(batch)),
        "disc": tf.reduce_sum(_token_weights(batch)),
    }


def _sums(model, batch, dropout_seed):
    found = model(batch, dropout_seed)
    ids, counts = batch["masked_lm_ids"], pretraining.mask_weights(batch)
    # For GPUs TensorFlow compares int32 on the host.
    drawn, wanted = (tf.cast(x, tf.float32) for x in (found.sampled, ids))
    is_right = tf.cast(drawn == wanted, tf.float32)
    words = losses.classification(found.words, ids, counts)
    return {
        "masked_lm": words | {"sampled": tf.reduce_sum(counts * is_right)},
        "disc": losses.binary(
            found.tokens, found.is_replaced, _token_weights(batch)
        ),
    }


def _as_printed(scalars: Mapping[str, float]) -> dict[str, float]:
    """Renames metrics as the original; adds precision and recall."""
    found = dict(scalars)
    found["sampled_masked_lm_accuracy"] = found.pop("masked_lm_sampled")
    right = found.pop("disc_true_positives")
    for name, of in (("precision", "predicted"), ("recall", "positives")):
        share = found.pop(f"disc_{of}")
        found[f"disc_{name}"] = right / share if share else 0.0
    return found
