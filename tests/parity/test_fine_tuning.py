"""Fine-tuning makes the same steps as transformers with PyTorch."""

import json
from typing import Any

from bert_tf.records import pipeline, record_types
from tests import interop_samples as samples
from tests import scripts
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest

ROWS, BATCH, LENGTH, STEPS, WARMUP, RATE, SEED = 50, 8, 16, 40, 4, 3e-3, 7


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """Returns a transformers classifier, and pairs of texts of many lengths."""
    folder = tmp_path_factory.mktemp("fine_tuning")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        num_labels=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **samples.SMALL,
    )
    model = transformers.BertForSequenceClassification(config)
    model.save_pretrained(folder / "model")
    vocab = "".join(f"{piece}\n" for piece in samples.VOCAB)
    (folder / "model" / "vocab.txt").write_text(vocab)
    rng = np.random.default_rng(0)
    lines = ["label\tfirst\tsecond\n"]
    for _ in range(ROWS):
        sizes = rng.integers(1, 9, 2)
        first, second = (rng.choice(samples.VOCAB[5:], n) for n in sizes)
        label = int(sizes[0] > sizes[1])
        lines.append(f"{label}\t{' '.join(first)}\t{' '.join(second)}\n")
    (folder / "train.tsv").write_text("".join(lines))
    return folder


def ours(folder):
    run = scripts.run(
        folder / "log",
        "run_classifier",
        f"--train_file={folder}/train.tsv",
        *("--label_column=label", "--text_a_column=first"),
        *("--text_b_column=second", "--do_train", f"--seed={SEED}"),
        f"--init_checkpoint={folder}/model",
        *(f"--max_seq_length={LENGTH}", f"--train_batch_size={BATCH}"),
        f"--num_train_epochs={STEPS * BATCH / ROWS}",
        *(f"--warmup_proportion={WARMUP / STEPS}", f"--learning_rate={RATE}"),
        *("--optimizer=adamw_bias_corrected", "--lr_schedule=polynomial"),
        *("--adam_epsilon=1e-8", "--log_steps=1"),
        f"--output_dir={folder}/out",
    )
    assert run.wait() == 0, run.stderr
    lines = (folder / "out" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def theirs(folder):
    """Returns losses and gradient norms with the same batches."""
    kind = transformers.BertForSequenceClassification
    model = kind.from_pretrained(folder / "model").train()
    groups: dict[bool, list[Any]] = {True: [], False: []}
    for name, value in model.named_parameters():
        groups["LayerNorm" in name or name.endswith("bias")].append(value)
    optimizer = torch.optim.AdamW(
        [
            {"params": groups[False], "weight_decay": 0.01},
            {"params": groups[True], "weight_decay": 0.0},
        ],
        lr=RATE,
    )
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, WARMUP, STEPS
    )
    path = str(folder / "out" / "train.tf_record")
    batches = pipeline.train([path], [ROWS], BATCH, SEED)
    for serialized, _ in batches.take(STEPS):
        rows = record_types.CLASSIFICATION.parse(serialized, {"S": LENGTH})
        rows = {n: torch.tensor(x.numpy()).long() for n, x in rows.items()}
        loss = model(
            input_ids=rows["input_ids"],
            attention_mask=rows["input_mask"],
            token_type_ids=rows["segment_ids"],
            labels=rows["label_ids"],
        ).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        yield loss.item(), norm.item()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


@pytest.mark.slow
def test_every_step_is_that_of_transformers(folder):
    found = ours(folder)
    assert [line["step"] for line in found] == [*range(1, STEPS + 1)]
    expected = list(theirs(folder))
    # The loss falls, so wrong updates would show.
    assert expected[-1][0] < 0.8 * expected[0][0]
    np.testing.assert_allclose(
        [(line["loss"], line["gradient_norm"]) for line in found],
        expected,
        rtol=1e-4,
    )
