"""Tests of what run_pretraining.py makes of its data, through its main."""

import json
import pathlib
import shutil
import signal
import time
from typing import Any

from bert_tf.checkpoints import formats
from bert_tf.pretraining_data import sequences as pretraining_sequences
from tests import pretraining_records, scripts

import numpy as np
import pytest
import tensorflow as tf

# What there is to read; all lengths differ from the script's defaults.
KINDS: dict[str, dict[str, Any]] = {
    "sop": {"objective": "sop"},
    "none": {"objective": "none", "masking": "span"},
    "full": {
        "objective": "full_sentences",
        "masking": "ngram",
        "dynamic_masking": True,
    },
    "dynamic": {"dynamic_masking": True, "masking": "whole_word"},
    "packed": {"pack": True, "short_seq_prob": 0.5},
    "packed dynamic": {"pack": True, "dynamic_masking": True},
}


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """A folder with the model's config and a folder of each kind of data."""
    folder = tmp_path_factory.mktemp("data")
    pretraining_records.write_config(folder / "config.json")
    for kind, changes in KINDS.items():
        (folder / kind).mkdir()
        settings = pretraining_sequences.Settings(16, 4, **changes)
        pretraining_records.write_made(folder / kind, settings)
    return folder


def flags(folder, kind, output, *more):
    # Neither lengths nor policies: these are the manifest's.
    return [
        f"--input_file={folder}/{kind}/*.tfrecord",
        f"--output_dir={output}",
        f"--bert_config_file={folder}/config.json",
        "--do_train=true",
        "--do_eval=true",
        "--train_batch_size=8",
        "--num_train_steps=2",
        "--num_warmup_steps=1",
        "--learning_rate=1e-3",
        "--log_steps=1",
        *more,
    ]


def run(folder, kind, output, *more):
    done = scripts.run(
        output.parent / f"{output.name}-log",
        "run_pretraining",
        *flags(folder, kind, output, *more),
    )
    assert done.wait() == 0, done.stderr
    return done


def results(output):
    lines = (output / "eval_results.txt").read_text().splitlines()
    return dict(line.split(" = ") for line in lines)


def metrics(output):
    """What metrics.jsonl says of each step, without what time tells."""
    lines = (output / "metrics.jsonl").read_text().splitlines()
    names = ("step", "loss", "masked_lm_accuracy", "gradient_norm")
    return [[json.loads(line)[name] for name in names] for line in lines]


def tensors(output, step):
    reader = tf.train.load_checkpoint(str(output / f"model.ckpt-{step}"))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


class TestKinds:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("sop", marks=pytest.mark.slow),
            "none",
            pytest.param("full", marks=pytest.mark.slow),
            pytest.param("dynamic", marks=pytest.mark.slow),
            pytest.param("packed", marks=pytest.mark.slow),
            "packed dynamic",
        ],
    )
    def test_trains_and_evaluates(self, folder, kind, tmp_path):
        done = run(folder, kind, tmp_path / "out")
        found = results(tmp_path / "out")
        sentences = {"sop": "sentence_order", "none": None, "full": None}
        name = sentences.get(kind, "next_sentence")
        names = {"global_step", "loss", "masked_lm_accuracy", "masked_lm_loss"}
        if name:
            names |= {f"{name}_accuracy", f"{name}_loss"}
            assert float(found[f"{name}_loss"]) == pytest.approx(
                np.log(2), abs=0.1
            )
        assert found.keys() == names
        # Two steps from chance, over 40 pieces.
        assert float(found["masked_lm_loss"]) == pytest.approx(
            np.log(40), abs=0.3
        )
        said = "cls/seq_relationship are saved with the rest, but not trained"
        assert (said in done.stderr) == (kind in ("none", "full"))
        if kind != "packed dynamic":
            return
        # Masks of an evaluation are the same each time.
        run(
            folder,
            kind,
            tmp_path / "again",
            "--do_train=false",
            f"--init_checkpoint={tmp_path}/out",
        )
        again = results(tmp_path / "again")
        for name in names - {"global_step"}:
            assert float(again[name]) == pytest.approx(
                float(found[name]), rel=1e-6
            )

    @pytest.mark.slow
    def test_evaluates_without_the_head_that_is_not_read(
        self, folder, tmp_path
    ):
        """As of Hugging Face's models that have masked words alone."""
        output = tmp_path / "out"
        run(folder, "none", output)
        source = formats.with_head(
            formats.open_checkpoint(str(output)), "masked_lm"
        )
        formats.write(str(tmp_path / "words"), "tf1", source)
        own = ("--do_train=false", f"--init_checkpoint={tmp_path}/words")
        run(folder, "none", tmp_path / "again", *own)
        again, found = results(tmp_path / "again"), results(output)
        for name in ("masked_lm_loss", "masked_lm_accuracy"):
            assert float(again[name]) == pytest.approx(
                float(found[name]), rel=1e-6
            )
        done = scripts.run(
            *(tmp_path / "log", "run_pretraining"),
            *flags(folder, "sop", tmp_path / "third", *own),
        )
        assert done.wait() == 1
        assert "cls/seq_relationship/output_bias" in done.lines[-1]
        assert "or without the head that is asked for?" in done.lines[-1]

    def test_evaluation_records_of_another_kind(self, folder, tmp_path):
        given = f"--eval_file={folder}/none/*.tfrecord"
        output = tmp_path / "out"
        done = scripts.run(
            *(tmp_path / "log", "run_pretraining"),
            *flags(folder, "sop", output, given, "--eval_steps=1"),
        )
        assert done.wait() == 1
        assert "with objective=sop. Received: " in done.lines[-1]
        assert not output.exists()

    @pytest.mark.slow
    def test_all_variables_are_saved(self, folder, tmp_path):
        # Weight decay would change them, too.
        run(folder, "none", tmp_path / "none", "--num_train_steps=3")
        stored = tensors(tmp_path / "none", 3)
        kernel = stored["bert/pooler/dense/kernel"]
        assert kernel.std() == pytest.approx(0.018, abs=0.006)
        assert "bert/pooler/dense/kernel/adam_m" not in stored
        assert stored["cls/seq_relationship/output_weights"].shape == (2, 8)
        assert not stored["bert/pooler/dense/bias"].any()


class TestContradictions:
    @pytest.mark.parametrize(
        "flag, said",
        [
            ("--max_seq_length=12", "which says max_seq_length=16. Leave"),
            (
                "--max_predictions_per_seq=5",
                "which says max_predictions_per_seq=4. Leave",
            ),
        ],
    )
    def test_flags_against_the_manifest(self, folder, tmp_path, flag, said):
        done = scripts.run(
            tmp_path / "log",
            "run_pretraining",
            *flags(folder, "packed", tmp_path / "out", flag),
        )
        assert done.wait() == 1
        assert done.lines[-1].startswith(f"error: {flag} contradicts the mani")
        assert said in done.lines[-1]
        assert not (tmp_path / "out").exists()

    def test_other_sequences_per_row(self, folder, tmp_path):
        shutil.copytree(folder / "packed", tmp_path / "packed")
        path = tmp_path / "packed" / "manifest.json"
        text = path.read_text()
        assert '"sequences_per_row": 8' in text
        path.write_text(
            text.replace('"sequences_per_row": 8', '"sequences_per_row": 5')
        )
        shutil.copy(folder / "config.json", tmp_path)
        done = scripts.run(
            tmp_path / "log",
            "run_pretraining",
            *flags(tmp_path, "packed", tmp_path / "out"),
        )
        assert done.wait() == 1
        assert (
            "holds up to 8 sequences per record (feature cls_positions), "
            "expected 5: copy the manifest that belongs to the records"
        ) in done.lines[-1]

    def test_not_for_pretraining(self, folder, tmp_path):
        shutil.copytree(folder / "sop", tmp_path / "sop")
        path = tmp_path / "sop" / "manifest.json"
        text = path.read_text()
        path.write_text(text.replace('"pretraining"', '"classification"'))
        shutil.copy(folder / "config.json", tmp_path)
        done = scripts.run(
            tmp_path / "log",
            "run_pretraining",
            *flags(tmp_path, "sop", tmp_path / "out"),
        )
        assert done.wait() == 1
        assert "says record_type=classification. Make them" in done.lines[-1]


@pytest.mark.slow
class TestInterrupted:
    @pytest.mark.parametrize(
        "kind, recipe",
        [
            ("packed dynamic", ()),
            (
                "full",
                (
                    "--optimizer=adamw_bias_corrected",
                    "--adam_beta_2=0.98",
                    "--lr_schedule=polynomial",
                ),
            ),
        ],
    )
    def test_kill_9_changes_nothing(self, folder, tmp_path, kind, recipe):
        long = (
            *recipe,
            "--num_train_steps=120",
            "--save_checkpoints_steps=20",
            # As the manifest says.
            "--max_seq_length=16",
            "--max_predictions_per_seq=4",
        )
        run(folder, kind, tmp_path / "whole", *long)
        output: pathlib.Path = tmp_path / "killed"
        killed = scripts.start(
            tmp_path / "log",
            "run_pretraining",
            *flags(folder, kind, output, *long),
        )
        end = time.monotonic() + 600
        while not (output / "model.ckpt-40.index").exists():
            assert killed.running, killed.stderr
            assert time.monotonic() < end
            time.sleep(0.005)
        killed.kill(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert not (output / "model.ckpt-120.index").exists()
        assert "Going on from step" in run(folder, kind, output, *long).stderr
        found, expected = (
            tensors(x, 120) for x in (output, tmp_path / "whole")
        )
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)
        assert metrics(output) == metrics(tmp_path / "whole")
        assert results(output) == results(tmp_path / "whole")
