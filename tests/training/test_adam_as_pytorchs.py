"""Adam with bias correction, as recipes make it, is PyTorch's in float64."""

import itertools

from bert_tf import modeling
from bert_tf.training import recipes
from tests import combinations, test_optimization

import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs '.[parity]'")

_CONFIG = modeling.BertConfig(9, num_hidden_layers=2)
PEAK, WARMUP, STEPS = 6e-4, 10, 50
# Name -> whether it decays.
_NAMES = {
    "bert/embeddings/word_embeddings": True,
    "bert/encoder/layer_0/attention/self/query/kernel": True,
    "bert/encoder/layer_0/attention/self/query/bias": False,
    "bert/encoder/layer_0/output/LayerNorm/gamma": False,
    "cls/predictions/output_bias": False,
}


def problem():
    """Weights as at the start of a run, and gradients of all sizes."""
    rng = np.random.default_rng(0)
    weights = {
        name: 0.02 * rng.normal(size=(20, 30)).astype(np.float32)
        for name in _NAMES
    }
    weights["bert/encoder/layer_0/output/LayerNorm/gamma"] += 1
    gradients = [
        {
            name: (
                rng.normal(size=(20, 30)) * 10 ** rng.uniform(-8, 0, (20, 30))
            ).astype(np.float32)
            for name in _NAMES
        }
        for _ in range(STEPS)
    ]
    return weights, gradients


def linear(step):
    """BERT's, whose line starts at step 0."""
    return 1 - step / STEPS


def polynomial(step):
    return (STEPS - step) / (STEPS - WARMUP)


def of_pytorch(weights, gradients, after, betas, epsilon, decay, limit):
    """The weights after all steps of PyTorch's AdamW, in float64."""
    parameters = {
        name: torch.nn.Parameter(torch.tensor(w, dtype=torch.float64))
        for name, w in weights.items()
    }
    optimizer = torch.optim.AdamW(
        [
            {"params": [w], "weight_decay": decay if _NAMES[name] else 0.0}
            for name, w in parameters.items()
        ],
        betas=betas,
        eps=epsilon,
    )
    for step, gradient in enumerate(gradients):
        rate = step / WARMUP if step < WARMUP else after(step)
        for group in optimizer.param_groups:
            group["lr"] = PEAK * rate
        for name, w in parameters.items():
            w.grad = torch.tensor(gradient[name], dtype=torch.float64)
        norm = torch.sqrt(sum((w.grad**2).sum() for w in parameters.values()))
        for w in parameters.values():
            w.grad *= min(1, limit / norm)
        optimizer.step()
    return {name: w.detach().numpy() for name, w in parameters.items()}


# Betas, epsilon, decay, the norm to clip to.
_OPTIONS = [
    (0.9, 0.98, 1e-6, 0.01, 1e9),
    (0.9, 0.98, 1e-6, 0.1, 1.0),
    (0.9, 0.999, 1e-8, 0.01, 1.0),
    (0.8, 0.95, 1e-6, 0.0, 1.0),
]


@pytest.mark.parametrize(
    "after, options",
    combinations.some(
        list(zip([linear, polynomial] * 2, _OPTIONS, strict=True)),
        itertools.product((linear, polynomial), _OPTIONS),
    ),
)
def test_equals_pytorchs(after, options):
    beta_1, beta_2, epsilon, decay, limit = options
    weights, gradients = problem()
    recipe = recipes.Recipe(
        optimizer="adamw_bias_corrected",
        lr_schedule=after.__name__,
        weight_decay_rate=decay,
        adam_beta_1=beta_1,
        adam_beta_2=beta_2,
        adam_epsilon=epsilon,
        clip_norm=limit,
    )
    schedule = recipe.schedule(PEAK, WARMUP, STEPS)
    optimizer = recipe.make_optimizer(schedule, _CONFIG)
    optimizer.build(
        [test_optimization.make_variable(*item) for item in weights.items()]
    )
    apply = tf.function(optimizer.apply)
    for step, gradient in enumerate(gradients):
        apply(
            [tf.constant(x) for x in gradient.values()],
            tf.constant(step, tf.int64),
        )
    expected = of_pytorch(
        weights, gradients, after, (beta_1, beta_2), epsilon, decay, limit
    )
    for variable in optimizer.variables:
        name = variable.path
        np.testing.assert_allclose(
            variable, expected[name], rtol=0, atol=1e-6, err_msg=name
        )
        assert np.abs(expected[name] - weights[name]).mean() > 1e-3
