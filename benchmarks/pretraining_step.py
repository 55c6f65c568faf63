"""run_pretraining.py's step, shared by the benchmarks of training.

Shapes as in modeling.py; P: predictions per sequence.
"""

import atexit
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.commands import ROOT

import numpy as np

# Family -> its pre-training objective.
OBJECTIVES = {
    "bert": "nsp",
    "roberta": "full_sentences",
    "distilbert": "none",
    "albert": "sop",
    "electra": "none",
    "left_to_right": "next_piece",
}
# Config keys that other families take from a BERT of the same size.
_SIZES = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads"),
    "intermediate_size",
)


def config_of(model: str, family: str = "bert") -> dict:
    """Reads configs/models/*.json.

    For other families than BERT, reads the family's model with that name or, if
    it has none, the family's base model with the sizes of BERT's model.
    """
    folder = ROOT / "configs" / "models"
    path = folder / f"{family}_{model}.json"
    if path.exists():
        return json.loads(path.read_text())
    sizes = json.loads((folder / f"{model}.json").read_text())
    if family == "bert":
        return sizes
    own = json.loads((folder / f"{family}_base.json").read_text())
    return own | {name: sizes[name] for name in _SIZES}


def timed(step: Callable[[int], None], seconds: float) -> float:
    """Returns the seconds of one step, after a warm-up."""
    step(2)
    start = time.perf_counter()
    step(1)
    count = max(2, round(seconds / (time.perf_counter() - start)))
    start = time.perf_counter()
    step(count)
    return (time.perf_counter() - start) / count


def rows(config: dict, count: int, S: int, P: int) -> dict[str, np.ndarray]:
    """Generates random features of full length."""
    rng = np.random.default_rng(0)
    V = config["vocab_size"]
    segments = np.arange(S) // (S // 2)
    if config["type_vocab_size"] < 2:
        segments[:] = 0
    positions = np.stack(
        [np.sort(rng.permutation(np.arange(1, S))[:P]) for _ in range(count)]
    )
    return {
        "input_ids": rng.integers(5, V, (count, S)),
        "input_mask": np.ones([count, S], int),
        "segment_ids": np.tile(segments, [count, 1]),
        "masked_lm_positions": positions,
        "masked_lm_ids": rng.integers(5, V, (count, P)),
        "masked_lm_weights": np.ones([count, P], np.float32),
        "next_sentence_labels": rng.integers(0, 2, (count, 1)),
    }


def resident() -> int:
    """Returns the bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def model_of(config: Any, masked_words: bool = False) -> tuple[Any, Any, Any]:
    """Returns a model to pre-train, its objective, and its variables."""
    from bert_tf import heads, replaced_tokens
    from bert_tf.encoders import families
    from bert_tf.training import pretraining, replaced_tokens_objective

    encoder, generator = families.make(config), families.find(config).generator
    if generator is None or masked_words:
        kind = OBJECTIVES[config.model_type]
        is_causal = kind == "next_piece"
        head = heads.BertNextPiece if is_causal else heads.BertPretrainer
        model = head(encoder)
        trained = pretraining.trained_variables(model, kind)
        return model, pretraining.objective(kind), trained
    pair = replaced_tokens.ReplacedTokensPretrainer(
        encoder, generator.model(encoder)
    )
    objective = replaced_tokens_objective.objective(pair)
    return pair, objective, pair.trained_variables


def optimizer_of(variables: Any) -> Any:
    """Returns the optimizer of all benchmarks of pre-training."""
    from bert_tf import optimization
    from bert_tf.training import schedules

    optimizer = optimization.AdamWeightDecay(
        schedules.linear_warmup_decay(1e-4, 100, 10000)
    )
    optimizer.build(variables)
    return optimizer


def train_steps(name: str, objective: str, batches: Any) -> Any:
    """Returns what trains a BERT of configs/models on batches."""
    from bert_tf import heads, modeling
    from bert_tf.training import loop, pretraining

    import tensorflow as tf

    config = modeling.BertConfig(**config_of(name))
    model = heads.BertPretrainer(modeling.Bert(config))
    return loop.make_train_steps(
        tf.distribute.get_strategy(),
        model,
        optimizer_of(model.trainable_variables),
        pretraining.objective(objective),
        batches,
        seed=1,
    )


def make(
    config: dict,
    B: int,
    S: int,
    P: int,
    use_xla: bool | None = None,
    masked_words: bool = False,
    fused_attention: bool | None = None,
) -> tuple[Callable[[int], None], Any]:
    """Returns a function that makes a number of steps, and the `TrainState`.

    The objective, the loop and the input are run_pretraining.py's: records are
    read from a file. With `masked_words`, an encoder with another objective is
    trained on masked words instead.
    """
    from bert_tf.encoders import families
    from bert_tf.records import pipeline, record_types, tfrecord
    from bert_tf.training import distribution, loop, training_state
    from bert_tf.training import fused_attention as attention_kernel

    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    made = families.from_values(config)
    model, objective, trained = model_of(made, masked_words)
    optimizer = optimizer_of(trained)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    path = os.path.join(folder, "records")
    features = rows(config, 4 * B, S, P)
    with tfrecord.Writer(path) as writer:
        for values in zip(*features.values(), strict=True):
            record = dict(zip(features, values, strict=True))
            writer.write(record_types.PRETRAINING.encode(record))
    dataset = pipeline.distribute(
        strategy,
        lambda: pipeline.train([path], [4 * B], B, seed=1),
        record_types.PRETRAINING,
        {"S": S, "P": P},
    )
    compiles = distribution.compiles(strategy, use_xla)
    for bert in filter(None, (model.bert, model.generator)):
        bert.fuses_attention = attention_kernel.choose(
            bert, dataset, compiles, fused_attention
        )
    train = loop.make_train_steps(
        *(strategy, model, optimizer, objective, dataset, 1),
        use_xla=compiles,
    )
    state = training_state.TrainState(model, optimizer, seed=1)
    done = 0

    def step(count):
        nonlocal done
        train(done, count)
        done += count
        state.step = done

    return step, state
