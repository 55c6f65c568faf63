"""Losses between a student and its teacher, as weighted sums.

Each function takes the student's values, then the teacher's, and returns a
float32 scalar, to be divided by the sum of weights. The sums of the parts of a
batch add up to the sum of the whole. Padding does not count, so no loss depends
on how far a batch is padded.

Shapes as in modeling.py, and C: classes; A: relation heads; Q: B or more axes.
"""

import math

from bert_tf.encoders import watching

import tensorflow as tf

# ---- Outputs of heads --------------------------------------------------------


def classes(
    logits: tf.Tensor,
    teacher: tf.Tensor,
    weights: tf.Tensor,
    temperature: float,
) -> tf.Tensor:
    """Divergence (KL) from the teacher's probabilities, times temperature^2.

    The logits are float32 [Q, C] and divided by the temperature; the weights
    are float32 [Q], where 0 leaves a row out. The factor keeps the size of the
    gradients whatever the temperature (Hinton et al., 2015,
    https://arxiv.org/abs/1503.02531, section 2).
    """
    ours = tf.nn.log_softmax(logits / temperature)  # [Q, C]
    theirs = tf.nn.log_softmax(teacher / temperature)
    divergence = tf.reduce_sum(tf.exp(theirs) * (theirs - ours), axis=-1)
    return temperature**2 * tf.reduce_sum(weights * divergence)


def labels(
    logits: tf.Tensor,
    teacher: tf.Tensor,
    weights: tf.Tensor,
    temperature: float,
) -> tf.Tensor:
    """The same for labels that are each true or false: the mean over labels."""
    ours, theirs = logits / temperature, teacher / temperature  # [Q, C]
    divergence = tf.zeros_like(logits)
    for sign in (1.0, -1.0):  # true, false
        log_ours = tf.math.log_sigmoid(sign * ours)
        log_theirs = tf.math.log_sigmoid(sign * theirs)
        divergence += tf.exp(log_theirs) * (log_theirs - log_ours)
    divergence = tf.reduce_mean(divergence, axis=-1)  # [Q]
    return temperature**2 * tf.reduce_sum(weights * divergence)


def scores(
    logits: tf.Tensor,
    teacher: tf.Tensor,
    weights: tf.Tensor,
    temperature: float,
) -> tf.Tensor:
    """Squared error of scores, float32 [Q, 1]; the temperature is unused."""
    del temperature
    return tf.reduce_sum(weights * (logits - teacher)[..., 0] ** 2)


# ---- Outputs of layers -------------------------------------------------------


def cosine(
    x: tf.Tensor, teacher: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:  # [B, S, D] twice, [B, S]
    """1 - cosine of the hidden states of each token."""
    ours, theirs = (
        tf.math.l2_normalize(tf.cast(y, tf.float32), axis=-1)
        for y in (x, teacher)
    )
    distance = 1 - tf.reduce_sum(ours * theirs, axis=-1)  # [B, S]
    return tf.reduce_sum(weights * distance)


def hidden_states(
    x: tf.Tensor, teacher: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:  # [B, S, D] twice, [B, S]
    """Squared error of hidden states: the mean over D for each token."""
    error = tf.cast(x, tf.float32) - tf.cast(teacher, tf.float32)
    return tf.reduce_sum(weights * tf.reduce_mean(error**2, axis=-1))


def attention_scores(
    attended: watching.Attended,
    teacher: watching.Attended,
    weights: tf.Tensor,
) -> tf.Tensor:
    """Squared error of the scores before the softmax: the mean over heads.

    For each token of weight 1, [B, S], the scores of all tokens that it sees in
    both models count. A score of -100 or less counts as 0, as in TinyBERT's
    code.
    """
    seen = tf.minimum(attended.mask, teacher.mask)  # [B, 1, 1 or S, S]
    sees = tf.cast(seen > -100, tf.float32)
    pairs = weights[:, tf.newaxis, :, tf.newaxis] * sees  # [B, 1, S, S]
    error = _scores(attended) - _scores(teacher)  # [B, N, S, S]
    return tf.reduce_sum(pairs[:, 0] * tf.reduce_mean(error**2, axis=1))


def _scores(attended: watching.Attended) -> tf.Tensor:
    """Masked scores of queries and keys; 0 where they are -100 or less."""
    scores = tf.matmul(attended.queries, attended.keys, transpose_b=True)
    scores = tf.cast(scores, tf.float32) + attended.mask  # [B, N, S, S]
    return tf.where(scores <= -100, tf.zeros_like(scores), scores)


def relations(
    attended: watching.Attended,
    teacher: watching.Attended,
    weights: tf.Tensor,
    heads: int,
) -> tf.Tensor:
    """Divergence (KL) of relations: of queries, of keys and of values.

    A relation is a softmax over the similarities between the vector of one
    token and the vectors of all tokens that it sees in both models. The vectors
    are split into `heads` relation heads, which need not be the attention heads
    of either model; the widths of the models may differ (MiniLMv2: Wang et al.,
    2021, https://arxiv.org/abs/2012.15828, section 3.2). The result is the sum
    of the three divergences, each averaged over relation heads and weighted by
    token, [B, S].
    """
    total = tf.zeros([])
    # Tokens that only one of the models sees are not compared.
    mask = tf.minimum(attended.mask, teacher.mask)
    for ours, theirs in zip(
        *(
            _relations(x._replace(mask=mask), heads)
            for x in (attended, teacher)
        ),
        strict=True,
    ):  # [B, A, S, S] each
        divergence = tf.reduce_sum(tf.exp(theirs) * (theirs - ours), axis=-1)
        mean = tf.reduce_mean(divergence, axis=1)  # [B, S]
        total += tf.reduce_sum(weights * mean)
    return total


def _relations(attended: watching.Attended, heads: int) -> list[tf.Tensor]:
    """Returns log-relations of queries, keys and values, [B, A, S, S] each."""
    queries, keys, values, mask = attended
    # Undo the scaling for attention scores; relations have their own scale.
    queries *= math.sqrt(queries.shape[-1])
    found = []
    for vectors in (queries, keys, values):  # [B, N, S, H]
        batch, _, length, _ = tf.unstack(tf.shape(vectors))
        size = vectors.shape[1] * vectors.shape[3] // heads
        x = tf.transpose(vectors, [0, 2, 1, 3])  # [B, S, N, H]
        x = tf.reshape(x, [batch, length, heads, size])
        x = tf.transpose(x, [0, 2, 1, 3])  # [B, A, S, D / A]
        likeness = tf.matmul(x, x, transpose_b=True) / math.sqrt(size)
        found.append(tf.nn.log_softmax(tf.cast(likeness, tf.float32) + mask))
    return found
