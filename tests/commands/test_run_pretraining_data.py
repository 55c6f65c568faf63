"""Tests of what run_pretraining.py makes of its data, through its main."""

import contextlib
import shutil
from typing import Any

from bert_tf.checkpoints import formats
from bert_tf.pretraining_data import pretraining_sequences
from tests import pretraining_records, scripts, tiny_model, trained_weights
from tests.pretraining_runs import assert_same_checkpoint, results, tensors

import numpy as np
import pytest

# What there is to read; all lengths differ from the script's defaults.
KINDS: dict[str, dict[str, Any]] = {
    "sop": {"objective": "sop"},
    "none": {"objective": "none", "masking": "span"},
    "packed": {"pack": True, "short_seq_prob": 0.5},
    "packed dynamic": {"pack": True, "dynamic_masking": True},
}


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    pretraining_records.write_config(folder / "config.json")
    for kind, changes in KINDS.items():
        (folder / kind).mkdir()
        settings = pretraining_sequences.Settings(16, 4, **changes)
        pretraining_records.write_made(folder / kind, settings)
    return folder


def run(folder, kind, output, *more, code=0):
    # Packed sequences are trained traced nowhere else.
    is_traced = kind == "packed dynamic"
    with contextlib.nullcontext() if is_traced else tiny_model.untraced():
        # Neither lengths nor policies: these are the manifest's.
        return scripts.run_checked(
            *(output.parent / f"{output.name}-log", "run_pretraining"),
            f"--input_file={folder}/{kind}/*.tfrecord",
            f"--output_dir={output}",
            f"--bert_config_file={folder}/config.json",
            *("--do_train", "--do_eval", "--train_batch_size=8"),
            *("--num_train_steps=3", "--num_warmup_steps=1", "--log_steps=1"),
            *("--learning_rate=1e-3", "--save_checkpoints_steps=2"),
            *more,
            code=code,
        )


@pytest.fixture(scope="module", name="train")
def _train(folder):
    def train(kind):
        output = folder / "runs" / kind
        if not output.exists():
            done = run(folder, kind, output)
            (output / "log").write_text(done.stderr)
        return output

    return train


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"), [("none", None), ("packed dynamic", "next_sentence")]
)
def test_trains_and_evaluates(train, kind, name):
    found = results(train(kind))
    names = {"global_step", "loss", "masked_lm_accuracy", "masked_lm_loss"}
    if name:
        names |= {f"{name}_accuracy", f"{name}_loss"}
        assert found[f"{name}_loss"] == pytest.approx(np.log(2), abs=0.1)
    assert found.keys() == names
    # Some steps from chance, over 40 pieces.
    assert found["masked_lm_loss"] == pytest.approx(np.log(40), abs=0.3)
    said = "cls/seq_relationship are saved with the other weights, but not"
    assert (said in (train(kind) / "log").read_text()) == (name is None)


@pytest.mark.slow
def test_drawn_masks_are_the_same_again(folder, train, tmp_path):
    """Those of an evaluation, and of steps that are made again."""
    trained = train("packed dynamic")
    output = shutil.copytree(trained, tmp_path / "out")
    assert trained_weights.drop_last(output) == 2
    (output / "eval_results.txt").unlink()
    done = run(folder, "packed dynamic", output)
    assert "Resuming from step 2" in done.stderr
    assert_same_checkpoint(output, trained, 3)
    assert results(output) == results(trained)


@pytest.mark.slow
def test_what_is_not_trained(folder, train, tmp_path):
    """It is saved, and evaluated without, as Hugging Face's models may be."""
    output = train("none")
    # Weight decay would change them, too.
    stored = tensors(output, 3)
    kernel = stored["bert/pooler/dense/kernel"]
    assert kernel.std() == pytest.approx(0.018, abs=0.006)
    assert "bert/pooler/dense/kernel/adam_m" not in stored
    assert stored["cls/seq_relationship/output_weights"].shape == (2, 8)
    assert not stored["bert/pooler/dense/bias"].any()
    source = formats.with_head(
        formats.open_checkpoint(str(output)), "masked_lm"
    )
    formats.write(str(tmp_path / "words"), "tf1", source)
    own = ("--do_train=false", f"--init_checkpoint={tmp_path}/words")
    run(folder, "none", tmp_path / "again", *own)
    assert results(tmp_path / "again") == pytest.approx(
        results(output) | {"global_step": 0}, rel=1e-6
    )
    done = run(folder, "sop", tmp_path / "third", *own, code=1)
    assert "cls/seq_relationship/output_bias" in done.lines[-1]
    assert "or without the head that is asked for?" in done.lines[-1]


def test_other_sequences_per_row(folder, tmp_path):
    shutil.copytree(folder / "packed", tmp_path / "packed")
    path = tmp_path / "packed" / "manifest.json"
    text = path.read_text()
    assert '"sequences_per_row": 8' in text
    path.write_text(text.replace('_per_row": 8', '_per_row": 5'))
    shutil.copy(folder / "config.json", tmp_path)
    done = run(tmp_path, "packed", tmp_path / "out", code=1)
    assert (
        "holds up to 8 sequences per record (feature cls_positions), "
        "expected 5: copy the manifest that belongs to the records"
    ) in done.lines[-1]
