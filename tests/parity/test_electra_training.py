"""Replaced tokens, compared with PyTorch in float64: a batch, then 50 steps.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

from bert_tf import optimization, replaced_tokens
from bert_tf.encoders import electra, families
from bert_tf.records import pipeline, record_types
from bert_tf.training import loop, replaced_tokens_objective, schedules
from tests import parity_run, pretraining_records, reference

import keras
import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

torch_electra = pytest.importorskip(
    "tests.torch_electra", reason="needs the extra `parity`"
)
torch_training = pytest.importorskip("tests.torch_training")

B, S, P = 8, 16, 4
STEPS, WARMUP, PEAK = 50, 5, 1e-3
SEED = 7
CONFIG = electra.ElectraConfig(
    vocab_size=40,
    embedding_size=16,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=S,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    generator_hidden_size=0.5,
)


def make():
    """Returns our model with large random weights, and the same in PyTorch."""
    keras.utils.set_random_seed(SEED)
    encoder = families.make(CONFIG)
    model = replaced_tokens.ReplacedTokensPretrainer(
        encoder, electra.Generator(encoder)
    )
    reference.random_weights(model.variables, seed=SEED)
    keys = electra.KEYS
    theirs = torch_electra.Pretraining(
        keys.to_theirs(CONFIG),
        keys.to_theirs(CONFIG.generator),
        {v.path: v.numpy() for v in model.variables},
    )
    return model, theirs


def one_batch(seed=0):
    rng = np.random.default_rng(seed)
    rows = [pretraining_records.values(rng) for _ in range(B)]
    batch = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return batch | {"row_weights": np.ones(B)}


def our_gradients(model, batch, factors):
    """Returns mean losses, and gradients of their sum weighted by factors."""
    task = replaced_tokens_objective.objective(model)
    weights = task.weights(batch)
    variables = model.trained_variables
    with tf.GradientTape() as tape:
        sums = task.sums(model, batch, None)
        means = {n: x["loss"] / weights[n] for n, x in sums.items()}
        loss = sum(factors[name] * mean for name, mean in means.items())
    gradients = tape.gradient(loss, [v.value for v in variables])
    return (
        {name: float(mean) for name, mean in means.items()},
        {v.path: g for v, g in zip(variables, gradients, strict=True)},
    )


def test_losses_and_gradients_of_a_batch(monkeypatch):
    model, theirs = make()
    batch = one_batch()
    rng = np.random.default_rng(1)
    given = rng.integers(0, CONFIG.vocab_size, (B, P))
    # A sampled token may be the original token.
    given[:, 0] = batch["masked_lm_ids"][:, 0]
    monkeypatch.setattr(
        replaced_tokens, "sample", lambda *_: tf.constant(given, tf.int32)
    )
    means, found = our_gradients(
        model, pretraining_records.tensors(batch), {"masked_lm": 1, "disc": 50}
    )
    losses = theirs.losses(batch, given)
    (losses["masked_lm_loss"] + 50 * losses["disc_loss"]).backward()
    for name, mean in means.items():
        assert losses[f"{name}_loss"].item() == pytest.approx(mean, rel=1e-6)
    wanted = torch_training.values_of(
        {name: x.grad for name, x in theirs.parameters.items()}
    )
    assert found.keys() == wanted.keys()
    norm = np.sqrt(sum((x**2).sum() for x in wanted.values()))
    for name, value in wanted.items():
        # float32 numbers, relative to the whole gradient.
        error = np.abs(found[name] - value).max() / norm
        assert error < 1e-6, (name, error)
        # The softmax is invariant to a shift of all keys.
        assert np.abs(value).max() > 1e-5 or name.endswith("key/bias"), name


def test_the_discriminator_trains_nothing_of_the_generator():
    model, _ = make()
    batch = pretraining_records.tensors(one_batch())
    _, found = our_gradients(model, batch, {"masked_lm": 0, "disc": 50})
    own = {
        name
        for name in found
        if name.startswith(("generator/", "generator_predictions/"))
    }
    assert len(own) > 30
    for name, gradient in found.items():
        value = np.zeros(1) if gradient is None else gradient.numpy()
        if name in own:
            assert not value.any(), name
        elif not name.endswith("key/bias"):
            assert np.abs(value).max() > 1e-6, name
    # The generator's loss does not train the discriminator either.
    _, found = our_gradients(model, batch, {"masked_lm": 1, "disc": 0})
    for name, gradient in found.items():
        value = np.zeros(1) if gradient is None else gradient.numpy()
        is_shared = name.startswith("electra/embeddings/")
        if not is_shared and name not in own:
            assert not value.any(), name


def test_fifty_steps(tmp_path, monkeypatch):
    model, theirs = make()
    seen: list[dict[str, np.ndarray]] = []
    samples: list[np.ndarray] = []
    real = replaced_tokens.sample

    def kept(logits, seed):
        """Returns the samples, which PyTorch uses as well."""

        def keep(ids):
            samples.append(ids)
            return ids

        ids = tf.numpy_function(keep, [real(logits, seed)], tf.int32)
        return tf.ensure_shape(ids, [None, P])

    monkeypatch.setattr(replaced_tokens, "sample", kept)
    counts = (40,)
    files = pretraining_records.write(tmp_path, counts)
    dataset = pipeline.train(files, counts, B, SEED)
    strategy = tf.distribute.get_strategy()
    optimizer = optimization.AdamWeightDecay(
        schedules.linear_warmup_times_decay(PEAK, WARMUP, STEPS)
    )
    optimizer.build(model.trained_variables)
    lengths = {"S": S, "P": P}
    batches = pipeline.distribute(
        strategy, lambda: dataset, record_types.PRETRAINING, lengths
    )
    train = loop.make_train_steps(
        *(
            strategy,
            model,
            optimizer,
            replaced_tokens_objective.objective(model),
            batches,
        ),
        SEED,
    )
    found = [train(step, 1).scalars() for step in range(STEPS)]
    again = pipeline.distribute(
        strategy, lambda: dataset, record_types.PRETRAINING, lengths
    )
    for batch, _ in zip(again, range(STEPS), strict=False):
        seen.append(
            {
                name: x.numpy().astype(
                    "float64" if x.dtype.is_floating else "int64"
                )
                for name, x in batch.items()
                if name != "row_weights"
            }
        )
    wanted = torch_training.train(
        theirs.parameters,
        theirs.losses,
        zip(seen, samples, strict=True),
        # The factors of the original's `create_optimizer`.
        [
            PEAK * (1 - step / STEPS) * min(1, step / WARMUP)
            for step in range(STEPS)
        ],
        factors={"disc_loss": 50},
    )
    parity_run.assert_same_steps(found, wanted)
    ours, others = ([x["loss"] for x in lines] for lines in (found, wanted))
    np.testing.assert_allclose(ours, others, rtol=1e-5)
    parity_run.assert_same_weights(
        {v.path: v.numpy() for v in model.variables},
        torch_training.values_of(theirs.parameters),
    )
