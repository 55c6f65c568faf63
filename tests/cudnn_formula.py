"""cuDNN's attention by its formula, where there is no GPU."""

import json

import tensorflow as tf


class Formula:
    """Takes the arguments of `cudnn_attention._call` and computes on CPUs.

    Like cuDNN, it leaves anything in the gradients of padding, and counts its
    runs to draw other bits of dropout in each.

    Args:
        lag: Runs by which the count of the backward pass is wrong.
        counts: Whether runs are counted.

    Attributes:
        seeds: Those of all calls, of the forward and of the backward pass.
    """

    def __init__(self, lag: int = 0, counts: bool = True):
        self._runs = [tf.Variable(x, trainable=False) for x in (0, lag)]
        self._counts = counts
        self.seeds: tuple[list[int], list[int]] = ([], [])

    def __call__(self, target, text, arguments, results):
        config = json.loads(text)["cudnn_fmha_backend_config"]
        is_backward = target.endswith("Backward")
        self.seeds[is_backward].append(int(config["seed"]))
        assert ("Dropout" in target) == (config["dropout_rate"] > 0)
        q, k, v, *rest = (tf.cast(x, tf.float32) for x in arguments)
        *rest, _, lengths = rest
        scores = config["fmha_scale"] * tf.einsum("bqnh,bknh->bnqk", q, k)
        is_token = tf.sequence_mask(tf.cast(lengths, tf.int32), k.shape[1])
        sees = is_token[:, tf.newaxis, tf.newaxis]
        if config["mask_type"] == "PADDING_CAUSAL":
            square = tf.ones(scores.shape[2:], tf.bool)
            sees &= tf.linalg.band_part(square, -1, 0)
        scores = tf.where(sees, scores, -1e9)
        keep = self._keep(config, is_backward, scores.shape)
        if not is_backward:
            y = tf.einsum("bnqk,bknh->bqnh", tf.nn.softmax(scores) * keep, v)
            values = [y, tf.reduce_logsumexp(scores, axis=-1)]
        else:
            statistics, dy, y = rest
            probs = tf.exp(scores - statistics[..., tf.newaxis])
            d_probs = keep * tf.einsum("bqnh,bknh->bnqk", dy, v)
            mean = tf.einsum("bqnh,bqnh->bnq", dy, y)[..., tf.newaxis]
            d_scores = config["fmha_scale"] * probs * (d_probs - mean)
            garbage = tf.where(is_token[..., tf.newaxis, tf.newaxis], 0.0, 1e9)
            values = [
                tf.einsum("bnqk,bknh->bqnh", d_scores, k),
                tf.einsum("bnqk,bqnh->bknh", d_scores, q) + garbage,
                tf.einsum("bnqk,bqnh->bknh", probs * keep, dy) + garbage,
            ]
        for value, result in zip(values, results, strict=True):
            assert value.shape == result.shape
        return [
            tf.cast(x, result.dtype)
            for x, result in zip(values, results, strict=True)
        ]

    def _keep(self, config, is_backward, shape):
        """Returns what dropout multiplies the softmax by."""
        rate = config["dropout_rate"]
        number = tf.identity(self._runs[is_backward])
        if config["dropout_rate"] and self._counts:
            self._runs[is_backward].assign_add(1)
        seed = tf.stack([int(config["seed"]), number])
        draws = tf.random.stateless_uniform(shape, seed)
        return tf.cast(draws >= rate, tf.float32) / (1 - rate)
