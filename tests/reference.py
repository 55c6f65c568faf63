"""BERT in NumPy, float64, from the formulas of the papers.

Only the names of the weights are shared with bert_tf: attention is computed for
each sequence and head, over tokens without padding.
"""

import math

import numpy as np


def assert_same(found, expected, tolerance=0.0):
    """Asserts that the same names have the same values, within a tolerance."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name], value, rtol=tolerance, atol=tolerance, err_msg=name
        )


def random_weights(variables, seed=0):
    """Sets variables to random values without symmetries.

    They are larger than those of a new model, so that the products of a layer
    keep the scale of its input. Layer norms have varied gammas and betas, and
    biases are not zero.
    """
    rng = np.random.default_rng(seed)
    for variable in variables:
        value = rng.standard_normal(variable.shape)
        kind = variable.path.rpartition("/")[2]
        if kind == "gamma":
            value = rng.uniform(0.5, 1.5, variable.shape)
        elif kind == "kernel":
            value /= math.sqrt(variable.shape[0])
        elif kind != "word_embeddings":
            value /= 4
        variable.assign(value.astype(np.float32))


def randomized(model, seed=0):
    """Returns the model with such values."""
    random_weights(model.variables, seed)
    return model


def weights_of(variables):
    """Returns name -> float64 array."""
    return {v.path: np.float64(v.numpy()) for v in variables}


def batch(config, rows=3, length=9, predictions=4, seed=0):
    """Returns a batch with padding of several lengths and two segments."""
    rng = np.random.default_rng(seed)
    shape = (rows, length)
    # The first sequence has no padding, the last one a single token.
    real = np.linspace(length, 1, rows).astype(int)
    mask = np.arange(length) < real[:, None]
    return {
        "input_ids": rng.integers(0, config.vocab_size, shape, np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": rng.integers(
            0, max(config.type_vocab_size, 1), shape, np.int32
        ),
        "masked_lm_positions": rng.integers(
            0, length, (rows, predictions), np.int32
        ),
    }


def gelu(x):
    """Applies GELU in the tanh form of Hendrycks & Gimpel (2016)."""
    cube = x + 0.044715 * x**3
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * cube))


def normalize(x, weights, name, epsilon=1e-12):
    """Applies layer norm (Ba et al., 2016) over the last axis."""
    mean = x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
    unit = (x - mean) / deviation
    return weights[f"{name}/gamma"] * unit + weights[f"{name}/beta"]


def dense(x, weights, name):
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def attention(x, mask, heads, weights, name):  # [S, D], [S]
    """Computes one sequence's attention (Vaswani et al., 2017, sec. 3.2)."""
    real = mask.astype(bool)
    query = dense(x, weights, f"{name}/query")
    key = dense(x[real], weights, f"{name}/key")
    value = dense(x[real], weights, f"{name}/value")
    size = x.shape[1] // heads
    outputs = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        scores = query[:, part] @ key[:, part].T / math.sqrt(size)
        outputs.append(softmax(scores) @ value[:, part])
    return np.concatenate(outputs, axis=1)


def encode(config, weights, inputs):
    """Returns the embeddings, every layer's output and the pooled output."""
    ids, segments = inputs["input_ids"], inputs["segment_ids"]
    name = "bert/embeddings"
    x = weights[f"{name}/word_embeddings"][ids]
    x = x + weights[f"{name}/token_type_embeddings"][segments]
    x = x + weights[f"{name}/position_embeddings"][: ids.shape[1]]
    x = embeddings = normalize(x, weights, f"{name}/LayerNorm")
    layers = []
    for i in range(config.num_hidden_layers):
        name = f"bert/encoder/layer_{i}"
        y = np.stack(
            [
                attention(
                    row,
                    mask,
                    config.num_attention_heads,
                    weights,
                    f"{name}/attention/self",
                )
                for row, mask in zip(x, inputs["input_mask"], strict=True)
            ]
        )
        y = dense(y, weights, f"{name}/attention/output/dense")
        x = normalize(x + y, weights, f"{name}/attention/output/LayerNorm")
        y = gelu(dense(x, weights, f"{name}/intermediate/dense"))
        y = dense(y, weights, f"{name}/output/dense")
        x = normalize(x + y, weights, f"{name}/output/LayerNorm")
        layers.append(x)
    pooled = np.tanh(dense(x[:, 0], weights, "bert/pooler/dense"))
    return embeddings, layers, pooled


def pretrain(config, weights, inputs):
    """Returns the logits of masked words and of next sentences."""
    _, layers, pooled = encode(config, weights, inputs)
    rows = np.arange(len(pooled))[:, None]
    x = layers[-1][rows, inputs["masked_lm_positions"]]
    name = "cls/predictions"
    x = gelu(dense(x, weights, f"{name}/transform/dense"))
    x = normalize(x, weights, f"{name}/transform/LayerNorm")
    words = x @ weights["bert/embeddings/word_embeddings"].T
    words = words + weights[f"{name}/output_bias"]
    name = "cls/seq_relationship"
    sentences = pooled @ weights[f"{name}/output_weights"].T
    return words, sentences + weights[f"{name}/output_bias"]


def classify(config, weights, inputs):
    """Returns the logits of a classifier over the pooled output."""
    _, _, pooled = encode(config, weights, inputs)
    return pooled @ weights["output_weights"].T + weights["output_bias"]
