"""Fifty steps of ALBERT's pre-training, as PyTorch makes them in float64.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

import json

from bert_tf import heads
from bert_tf.checkpoints import tf1_files
from bert_tf.encoders import albert, families
from bert_tf.pretraining_data import sequences as pretraining_sequences
from bert_tf.records import manifests, pipeline
from tests import pretraining_records, reference, scripts

import numpy as np
import pytest
import tensorflow as tf

S, P, B = 32, 6, 16
STEPS, WARMUP = 50, 5
SEED = 7
CONFIG = pretraining_records.WITHOUT_DROPOUT | {
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": S,
}


@pytest.fixture(scope="module", name="files")
def _files(tmp_path_factory):
    """Records that are made as configs/albert_records.flags says."""
    settings = pretraining_sequences.Settings(
        S, P, objective="sop", masking="ngram", dupe_factor=2
    )
    folder = tmp_path_factory.mktemp("records")
    return pretraining_records.write_made(folder, settings)


def batches(files):
    """Decodes the records that each step gets: [B, S], [B, P] or [B, 1]."""
    manifest = manifests.find(files)
    assert manifest is not None
    counts = [shard.records for shard in manifest.shards]
    dataset = pipeline.train(files, counts, B, SEED).take(STEPS)
    for serialized, _ in dataset.as_numpy_iterator():
        rows = [
            tf.train.Example.FromString(record).features.feature
            for record in serialized
        ]
        yield {
            name: np.array(
                [
                    row[name].int64_list.value or row[name].float_list.value
                    for row in rows
                ]
            )
            for name in rows[0]
        }


def run(folder, files, config, optimizer, peak):
    """Runs run_pretraining.py; returns what it reports of each step."""
    (folder / "config.json").write_text(json.dumps(config))
    made = albert.AlbertConfig(**config)
    variables = heads.BertPretrainer(families.make(made)).variables
    reference.random_weights(variables, seed=SEED)
    weights = {variable.path: variable.value for variable in variables}
    tf1_files.write(str(folder / "start.ckpt"), weights)
    done = scripts.run(
        folder / "log",
        "run_pretraining",
        f"--input_file={','.join(files)}",
        f"--output_dir={folder}/out",
        f"--bert_config_file={folder}/config.json",
        f"--init_checkpoint={folder}/start.ckpt",
        "--do_train=true",
        f"--optimizer={optimizer}",
        "--weight_decay_rate=0.01",
        "--lr_schedule=linear",
        f"--learning_rate={peak}",
        f"--num_warmup_steps={WARMUP}",
        f"--num_train_steps={STEPS}",
        f"--train_batch_size={B}",
        f"--seed={SEED}",
        "--log_steps=1",
    )
    assert done.wait() == 0, done.stderr
    lines = (folder / "out" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def rates(peak):
    """Warm-up, then BERT's and ALBERT's line, which starts at step 0."""
    for step in range(STEPS):
        part = step / WARMUP if step < WARMUP else 1 - step / STEPS
        yield peak * part


def test_the_records_are_alberts(files):
    steps = list(batches(files))
    assert len(steps) == STEPS
    labels = np.concatenate([x["next_sentence_labels"] for x in steps])
    assert 0.3 < labels.mean() < 0.7
    positions = np.concatenate([x["masked_lm_positions"] for x in steps])
    is_real = np.concatenate([x["masked_lm_weights"] for x in steps]) > 0
    follows = (np.diff(positions) == 1) & is_real[:, 1:]
    # Of tokens by themselves, 15 % of all, about as many follow one another.
    assert follows.sum() / is_real[:, 1:].sum() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer, peak, groups, inner",
    [("lamb", 0.01, 1, 1), ("adamw", 1e-3, 2, 2)],
)
def test_every_step_is_that_of_pytorch(
    tmp_path, files, optimizer, peak, groups, inner
):
    for extra in ("torch", "transformers"):
        pytest.importorskip(extra, reason="needs the extra `parity`")
    from tests import torch_albert

    config = CONFIG | {"num_hidden_groups": groups, "inner_group_num": inner}
    found = run(tmp_path, files, config, optimizer, peak)
    expected, weights = torch_albert.train(
        config,
        str(tmp_path / "start.ckpt"),
        batches(files),
        optimizer,
        rates(peak),
    )
    assert [line["step"] for line in found] == list(range(1, STEPS + 1))
    for name in expected[0]:
        np.testing.assert_allclose(
            [line[name] for line in found],
            [line[name] for line in expected],
            rtol=1e-4,
            err_msg=name,
        )
    # The run says something: it learns, and the clipping acts.
    losses = [line["loss"] for line in expected]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert max(line["gradient_norm"] for line in expected) > 1
    reader = tf.train.load_checkpoint(str(tmp_path / f"out/model.ckpt-{STEPS}"))
    for name, value in weights.items():
        # The softmax is the same whatever is added to all keys: a gradient of
        # rounding errors only.
        if not name.endswith("/key/bias"):
            np.testing.assert_allclose(
                reader.get_tensor(name), value, rtol=0, atol=1e-4, err_msg=name
            )
