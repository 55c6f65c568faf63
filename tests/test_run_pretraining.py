"""Tests of run_pretraining.py, through its main in processes of their own."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from bert_tf.interop import formats

import numpy as np
import pretraining_records
import pytest
import scripts
import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Setting:
    """Data and model of a run, and the flags that name them."""

    folder: pathlib.Path
    files: list[str]

    @classmethod
    def make(cls, folder, **config):
        pretraining_records.write_config(folder / "config.json", **config)
        return cls(folder, pretraining_records.write(folder))

    def flags(self, output, *more):
        return [
            f"--input_file={self.folder}/*.tfrecord",
            f"--output_dir={output}",
            f"--bert_config_file={self.folder}/config.json",
            "--do_train=true",
            "--train_batch_size=8",
            "--max_seq_length=16",
            "--max_predictions_per_seq=4",
            "--num_train_steps=2",
            "--num_warmup_steps=1",
            "--learning_rate=1e-3",
            "--log_steps=1",
            *more,
        ]

    def start(self, output, *more, log="log", **environment):
        flags = self.flags(output, *more)
        folder = self.folder / "logs" / f"{pathlib.Path(output).name}-{log}"
        return scripts.start(folder, "run_pretraining", *flags, **environment)

    def run(self, output, *more, **environment):
        run = self.start(output, *more, **environment)
        run.wait()
        return run


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("setting"))


@pytest.fixture(scope="module", name="plain")
def _plain(tmp_path_factory):
    """Without dropout: masks differ where replicas and micro-batches do."""
    return Setting.make(
        tmp_path_factory.mktemp("plain"),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    """The folder of a finished run of two steps."""
    output = setting.folder / "trained"
    run = setting.run(output, "--do_eval=true")
    assert run.wait() == 0, run.stderr
    return output


_TIMED = re.compile("per_second|input_share|peak_memory|flops_utilization")


def metrics(output):
    """The lines of metrics.jsonl, without what time tells."""
    lines = (output / "metrics.jsonl").read_text().splitlines()
    return [
        {k: v for k, v in json.loads(x).items() if not _TIMED.search(k)}
        for x in lines
    ]


def tensors(output, step):
    reader = tf.train.load_checkpoint(str(output / f"model.ckpt-{step}"))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def assert_same_checkpoint(left, right, step):
    found, expected = tensors(left, step), tensors(right, step)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


def assert_close(left, right, tolerance):
    found, expected = metrics(left), metrics(right)
    assert [x["step"] for x in found] == [x["step"] for x in expected]
    for x, y in zip(found, expected, strict=True):
        assert x["loss"] == pytest.approx(y["loss"], rel=tolerance)
        for name in ("masked_lm_loss", "next_sentence_loss"):
            assert x[name] == pytest.approx(y[name], rel=tolerance)


class TestRun:
    def test_results_are_the_originals(self, trained):
        lines = (trained / "eval_results.txt").read_text().splitlines()
        results = dict(line.split(" = ") for line in lines)
        assert list(results) == [
            "global_step",
            "loss",
            "masked_lm_accuracy",
            "masked_lm_loss",
            "next_sentence_accuracy",
            "next_sentence_loss",
        ]
        assert results["global_step"] == "2"
        # Two steps from chance, over 40 words and two answers.
        assert float(results["masked_lm_loss"]) == pytest.approx(
            np.log(40), abs=0.3
        )
        assert float(results["next_sentence_loss"]) == pytest.approx(
            np.log(2), abs=0.1
        )

    def test_metrics(self, trained):
        lines = (trained / "metrics.jsonl").read_text().splitlines()
        lines = [json.loads(line) for line in lines]
        assert [line["step"] for line in lines] == [1, 2]
        for line in lines:
            assert line["loss"] == pytest.approx(
                line["masked_lm_loss"] + line["next_sentence_loss"]
            )
            assert 0 <= line["masked_lm_accuracy"] <= 1
            assert 0 <= line["next_sentence_accuracy"] <= 1
            assert line["gradient_norm"] > 0
            # Rows are half full at least, of 16 tokens.
            tokens = line["tokens_per_second"] / line["sequences_per_second"]
            assert 8 <= tokens <= 16
        rates = [line["learning_rate"] for line in lines]
        assert rates == pytest.approx([0, 0.5e-3])

    def test_evaluation_while_training(self, setting, trained, tmp_path):
        output = tmp_path / "out"
        flags = ["--do_eval", "--eval_steps=1", "--auto_batch_size", "--remat"]
        run = setting.run(output, *flags)
        assert run.wait() == 0, run.stderr
        assert "Micro-batches of 8 of 8 rows" in run.stderr
        lines = metrics(output)
        assert [line["step"] for line in lines] == [1, 1, 2, 2]
        (_, first, _, last) = lines
        assert first["eval_masked_lm_loss"] > 0
        text = (output / "eval_results.txt").read_text()
        results = dict(line.split(" = ") for line in text.splitlines())
        assert float(results["loss"]) == pytest.approx(last["eval_loss"])
        # Neither evaluating nor computing again changes what is learnt.
        found, expected = (tensors(x, 2) for x in (output, trained))
        for name, value in expected.items():
            np.testing.assert_allclose(
                found[name], value, rtol=1e-5, atol=1e-6, err_msg=name
            )

    def test_files(self, trained):
        events = [p.name for p in trained.glob("events.out.tfevents.*")]
        assert len(events) == 1
        assert {path.name for path in trained.iterdir()} - {*events} == {
            "bert_config.json",
            "checkpoint",
            "eval_results.txt",
            "flags.txt",
            "metrics.jsonl",
            "model.ckpt-2.data-00000-of-00001",
            "model.ckpt-2.index",
        }

    def test_tensorboard_gets_the_metrics(self, trained):
        (path,) = trained.glob("events.out.tfevents.*")
        found: dict[int, dict[str, float]] = {}
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                found.setdefault(event.step, {})[value.tag] = number
        for line in metrics(trained):
            for name, value in line.items() - {("step", line["step"])}:
                assert found[line["step"]][name] == pytest.approx(value)

    def test_its_flags_repeat_it(self, setting, trained, tmp_path):
        flagfile = f"--flagfile={trained}/flags.txt"
        run = scripts.run(
            tmp_path / "log",
            "run_pretraining",
            flagfile,
            f"--output_dir={tmp_path}/out",
        )
        assert run.wait() == 0, run.stderr
        output = tmp_path / "out"
        assert_same_checkpoint(output, trained, 2)
        assert metrics(output) == metrics(trained)
        found, expected = (
            (x / "eval_results.txt").read_text() for x in (output, trained)
        )
        assert found == expected

    def test_evaluation_alone(self, setting, trained, tmp_path):
        output = tmp_path / "out"
        run = setting.run(
            output,
            "--do_train=false",
            "--do_eval",
            f"--init_checkpoint={trained}",
            "--eval_batch_size=5",
        )
        assert run.wait() == 0, run.stderr
        found, expected = (
            dict(
                line.split(" = ")
                for line in (x / "eval_results.txt").read_text().splitlines()
            )
            for x in (output, trained)
        )
        assert (found.pop("global_step"), expected.pop("global_step")) == (
            "0",
            "2",
        )
        for name, value in expected.items():
            assert float(found[name]) == pytest.approx(float(value), rel=1e-6)

    @pytest.mark.parametrize("output_format", formats.FORMATS)
    def test_from_a_checkpoint_of_any_format(
        self, setting, trained, tmp_path, output_format
    ):
        source = formats.open_checkpoint(str(trained))
        path = tmp_path / "converted"
        written = formats.write(str(path), output_format, source)
        run = setting.run(
            tmp_path / "out",
            "--bert_config_file=",
            f"--init_checkpoint={path}",
            "--num_train_steps=2",
        )
        assert run.wait() == 0, run.stderr
        assert f"Restored {len(written.weights)} variables of {path}" in (
            run.stderr
        )
        for name in written.left_out:
            assert name in run.stderr  # as starting from random values
        # The steps of the run that it was trained by, over again.
        first = tensors(trained, 2)["bert/pooler/dense/kernel"]
        after = tensors(tmp_path / "out", 2)["bert/pooler/dense/kernel"]
        # One of two steps has a rate above 0, of at most 0.5e-3 an element.
        assert 0 < np.abs(after - first).max() < 6e-3

    @pytest.mark.slow
    def test_from_any_folder(self, setting, tmp_path):
        # A process of its own from the start, as a user's.
        command = [sys.executable, f"{ROOT}/run_pretraining.py"]
        done = subprocess.run(
            [*command, *setting.flags("out", "--do_eval")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert re.search(
            r"step 2/2  loss \d\.\d+  masked_lm_loss .* learning_rate 5.00e-04"
            r"  .* sequences/s  .* tokens/s  .* GiB  0:00 left",
            done.stderr,
        )
        assert (tmp_path / "out" / "model.ckpt-2.index").exists()


# What is wrong with the command -> flags, with {data}, {trained} and {out} to
# be filled in, and what the last line says.
BAD = {
    "no file matches": (
        ["--input_file={data}/none*"],
        "No file matches. Received: '{data}/none",
    ),
    "missing file among others": (
        ["--input_file={data}/*.tfrecord,{data}/none"],
        "No file matches. Received: '{data}/none'",
    ),
    "empty file": (["--input_file={data}/empty"], "{data}/empty is empty"),
    "folder": (
        ["--input_file={data}"],
        "{data} is a folder. Give files or a glob, such as {data}/",
    ),
    "dangling link": (
        ["--input_file={data}/dangling*"],
        "No such file or directory: '{data}/dangling'",
    ),
    "not records": (
        ["--input_file={data}/config.json"],
        "{data}/config.json, record 1: truncated, corrupt or not a TFRecord",
    ),
    "truncated": (
        ["--input_file={data}/truncated"],
        "{data}/truncated, record 3: truncated",
    ),
    "corrupt": (
        ["--input_file={data}/corrupt"],
        "{data}/corrupt, record 3: truncated, corrupt",
    ),
    "too long for the model": (
        ["--max_seq_length=32"],
        "Received: max_seq_length=32, max_position_embeddings=20",
    ),
    "other length": (
        ["--max_seq_length=12"],
        "records-0.tfrecord holds sequences of 16 tokens (feature input_ids), "
        "expected 12: give --max_seq_length=16 or make the data again",
    ),
    "other predictions": (
        ["--max_predictions_per_seq=20"],
        "holds 4 predictions per sequence (feature masked_lm_positions), "
        "expected 20: give --max_predictions_per_seq=4",
    ),
    "other features": (
        ["--input_file={data}/classification"],
        "does not hold pretraining records: the feature masked_lm_positions "
        "is missing",
    ),
    "other vocabulary": (
        ["--input_file={data}/manifest/*.tfrecord"],
        "The vocabulary of the data does not belong to this BERT config: it "
        "has 30522 pieces, the config says vocab_size=40",
    ),
    "config not there": (
        ["--bert_config_file={data}/none.json"],
        "{data}/none.json; No such file",
    ),
    "config not JSON": (
        ["--bert_config_file={data}/records-0.tfrecord"],
        "{data}/records-0.tfrecord",
    ),
    "checkpoint not there": (
        ["--init_checkpoint={data}/none"],
        "There is no checkpoint {data}/none: {data}/none.index does not exist",
    ),
    "checkpoint of another shape": (
        [
            "--init_checkpoint={data}/bare",
            "--bert_config_file={data}/wide.json",
        ],
        "word_embeddings is [40, 8] there and [40, 12] in the model",
    ),
    "checkpoint of another architecture": (
        [
            "--init_checkpoint={data}/bare",
            "--bert_config_file={data}/deep.json",
        ],
        "does not fit this model. In the model only: bert/encoder/layer_1/",
    ),
    "config of another checkpoint": (
        ["--init_checkpoint={trained}", "--bert_config_file={data}/wide.json"],
        "{data}/wide.json is not the config of {trained}/model.ckpt-2: "
        "hidden_size is 12 there and 8 in the checkpoint's config",
    ),
    "no config": (
        ["--bert_config_file="],
        "architecture is not known: give --bert_config_file",
    ),
    "another run: length": (
        ["--output_dir={trained}", "--input_file={data}/records-1*"],
        "{trained} holds another run: input_file was {data}/*.tfrecord and is ",
    ),
    "another run: seed": (
        ["--output_dir={trained}", "--seed=7"],
        "{trained} holds another run: seed was 12345 and is 7. Choose another",
    ),
    "another run: architecture": (
        ["--output_dir={trained}", "--bert_config_file={data}/deep.json"],
        "{trained}/model.ckpt-2 is of another run. In this run only: bert/enc",
    ),
    "output below a file": (
        ["--output_dir={data}/config.json/out"],
        "Cannot make the folder --output_dir={data}/config.json/out: ",
    ),
    "output is a file": (
        ["--output_dir={data}/config.json"],
        "Cannot make the folder --output_dir={data}/config.json: ",
    ),
    "output with a bracket": (
        ["--output_dir={out}[1]"],
        "bracket in its name. Received: output_dir='{out}[1]'",
    ),
    "odd batch": (
        [
            "--train_batch_size=7",
            "--distribution_strategy=mirrored",
            "--logical_cpus=2",
        ],
        "--train_batch_size must be a multiple of 2 replicas times 1 micro",
    ),
    "odd evaluation batch": (
        [
            "--eval_batch_size=7",
            "--do_eval",
            "--distribution_strategy=mirrored",
            "--logical_cpus=2",
        ],
        "--eval_batch_size must be a multiple of 2 replicas",
    ),
    "odd micro-batch": (
        ["--gradient_accumulation_steps=3"],
        "multiple of 1 replicas times 3 micro-batches. Received: "
        "train_batch_size=8",
    ),
    "more warm-up than steps": (
        ["--num_warmup_steps=9"],
        "Received: num_warmup_steps=9, num_train_steps=2",
    ),
    "two numbers of micro-batches": (
        ["--auto_batch_size", "--gradient_accumulation_steps=2"],
        "--auto_batch_size finds the number of micro-batches itself. Received: "
        "gradient_accumulation_steps=2",
    ),
    "float16 on a CPU": (
        ["--dtype=float16"],
        "float16 needs a GPU. TPUs and CPUs have bfloat16",
    ),
    "steps to trace": (
        ["--profile_steps=10:5"],
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST",
    ),
    "cooldown of another schedule": (
        ["--num_cooldown_steps=1"],
        "`num_cooldown_steps` belongs to the schedule constant. Received: ",
    ),
    "master": (["--master=grpc://a:1"], "--master belonged to TF1 sessions."),
    "two strategies": (
        ["--use_tpu", "--distribution_strategy=mirrored"],
        "--use_tpu means --distribution_strategy=tpu. Received: ",
    ),
    "a TPU elsewhere and a folder here": (
        ["--use_tpu", "--tpu_name=grpc://10.0.0.2:8470"],
        "The hosts of a TPU elsewhere can't read local files: put them in a "
        "bucket, such as gs://bucket/folder. Received: output_dir={out}",
    ),
    "another size, seen before any work": (
        [
            "--check_only",
            "--bert_config_file={data}/wide.json",
            "--init_checkpoint={data}/bare",
        ],
        "word_embeddings is [40, 8] there and [40, 12] in the model",
    ),
    "another config than the checkpoint's": (
        ["--init_checkpoint={trained}", "--bert_config_file={data}/wide.json"],
        "hidden_size is 12 there and 8 in the checkpoint's config",
    ),
    "no TPU": (["--use_tpu"], "No TPU was found. On a TPU host leave"),
    "no cluster": (
        ["--distribution_strategy=multi_worker_mirrored"],
        "TF_CONFIG, which is not set",
    ),
    "positional argument": (
        ["true"],
        "Only flags are expected, as --name=value. Received: 'true'",
    ),
    "nothing to do": (
        ["--do_train=false"],
        "At least one of --do_train and --do_eval must be true.",
    ),
    "nothing to evaluate": (
        ["--do_train=false", "--do_eval"],
        "There is no trained model: --output_dir={out} holds no checkpoint",
    ),
}


@pytest.fixture(scope="module", name="bad_files")
def _bad_files(setting, trained):
    """Puts files that are wrong in one way beside the good ones."""
    folder = setting.folder
    # A checkpoint without its config.
    (folder / "bare").mkdir()
    for path in trained.glob("model.ckpt-2.*"):
        (folder / "bare" / path.name).write_bytes(path.read_bytes())
    content = pathlib.Path(setting.files[0]).read_bytes()
    size = len(content) // 7
    (folder / "empty").write_bytes(b"")
    (folder / "dangling").symlink_to(folder / "none")
    (folder / "truncated").write_bytes(content[: 2 * size + 50])
    broken = bytearray(content)
    broken[2 * size + 50] ^= 1
    (folder / "corrupt").write_bytes(broken)
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=[1] * 16))
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    with tf.io.TFRecordWriter(str(folder / "classification")) as writer:
        writer.write(example.SerializeToString())
    (folder / "manifest").mkdir()
    files = pretraining_records.write(folder / "manifest", [4])
    pretraining_records.write_manifest(files, vocab_size=30_522)
    write = pretraining_records.write_config
    write(folder / "wide.json", hidden_size=12)
    write(folder / "deep.json", num_hidden_layers=2)


def contents(folder):
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file()
    }


class TestCheckOnly:
    def test_says_what_it_found_and_writes_nothing(
        self, setting, trained, tmp_path
    ):
        output = tmp_path / "out"
        run = setting.run(
            output, "--check_only", f"--init_checkpoint={trained}"
        )
        assert run.wait() == 0, run.stderr
        for text in (
            "Would be: Restored ",
            "1 replicas of 8 sequences at a time, float32",
            "Memory: about 0.0 GB per replica",
            "Found nothing that would stop this run",
        ):
            assert text in run.stderr
        assert not output.exists()

    def test_a_run_to_go_on_with(self, setting, trained):
        before = contents(trained)
        run = setting.run(trained, "--check_only", "--num_train_steps=4")
        assert run.wait() == 0, run.stderr
        assert f"would go on from {trained}/model.ckpt-2" in run.stderr
        assert contents(trained) == before


class TestBadInput:
    @pytest.mark.parametrize("what", BAD)
    def test_one_line(self, setting, trained, bad_files, tmp_path, what):
        flags, message = BAD[what]
        output = tmp_path / "out"
        names = {"data": setting.folder, "trained": trained, "out": output}
        before = contents(trained)
        run = setting.run(output, *(f.format(**names) for f in flags))
        assert run.wait() == 1, run.stderr
        assert run.stdout == ""
        assert "Traceback" not in run.stderr
        last = run.lines[-1]
        assert last.startswith("error: ")
        assert message.format(**names) in last
        assert sum(line.startswith("error: ") for line in run.lines) == 1
        # Nothing is written, and the other run is as it was.
        assert not output.exists() or not any(output.iterdir())
        assert contents(trained) == before

    @pytest.mark.parametrize(
        "flag, message",
        [
            ("--do_trian", "'do_trian'. Did you mean: do_train ?"),
            ("--num_train_steps=0", "num_train_steps=0: 0 is not a positive"),
            ("--dtype=float8", "dtype=float8: value should be one of"),
        ],
    )
    def test_flags_that_absl_refuses(self, setting, tmp_path, flag, message):
        run = setting.run(tmp_path / "out", flag)
        assert run.wait() == 1
        assert message in run.stderr
        assert "Traceback" not in run.stderr
        assert not (tmp_path / "out").exists()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
    def test_without_permission(self, setting, tmp_path):
        secret = tmp_path / "secret"
        secret.write_bytes(pathlib.Path(setting.files[0]).read_bytes())
        secret.chmod(0)
        run = setting.run(tmp_path / "out", f"--input_file={secret}")
        assert run.wait() == 1
        assert re.fullmatch(rf"error: .*{secret}.*denied", run.lines[-1])
        tmp_path.chmod(0o500)
        run = setting.run(tmp_path / "out")
        tmp_path.chmod(0o700)
        assert run.wait() == 1
        assert re.fullmatch(r"error: .*/out: .*denied.*", run.lines[-1])

    @pytest.mark.slow
    def test_word_beyond_the_vocabulary(self, setting, tmp_path):
        # Without a manifest nobody knows before the record comes.
        config = pretraining_records.write_config(
            tmp_path / "small.json", vocab_size=20
        )
        run = setting.run(tmp_path / "out", f"--bert_config_file={config}")
        assert run.wait() == 1
        assert re.search(
            r"holds the number \d+ where the model has room for 0 to 19\. ",
            run.lines[-1],
        )
        assert not list((tmp_path / "out").glob("model.ckpt*"))

    @pytest.mark.slow
    def test_file_cut_off_after_its_manifest(self, tmp_path):
        setting = Setting.make(tmp_path)
        pretraining_records.write_manifest(setting.files)
        path = pathlib.Path(setting.files[1])
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 12 * 11])
        run = setting.run(tmp_path / "out", "--num_train_steps=4")
        assert run.wait() == 1
        assert run.lines[-1].startswith(
            f"error: {path} holds 11 records, its manifest says 12"
        )


def wait_for(condition, run):
    """Waits until something is there, while the script runs."""
    end = time.monotonic() + 600
    while not condition():
        assert run.running, f"ended too early:\n{run.stderr}"
        assert time.monotonic() < end, f"did not come:\n{run.stderr}"
        time.sleep(0.005)


LONG = (
    "--num_train_steps=400",
    "--save_checkpoints_steps=20",
    "--keep_checkpoint_max=2",
)


@pytest.fixture(scope="module", name="uninterrupted")
def _uninterrupted(setting):
    output = setting.folder / "uninterrupted"
    run = setting.run(output, *LONG)
    assert run.wait() == 0, run.stderr
    return output


@pytest.mark.slow
class TestInterrupted:
    def test_kill_9_changes_nothing(self, setting, uninterrupted, tmp_path):
        output = tmp_path / "out"
        for step in (20, 160):
            run = setting.start(output, *LONG)
            wait_for((output / f"model.ckpt-{step}.index").exists, run)
            run.kill(signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
            assert not (output / "model.ckpt-400.index").exists()
        run = setting.run(output, *LONG)
        assert run.wait() == 0, run.stderr
        start = re.search(r"Going on from step (\d+)", run.stderr)
        assert start
        assert int(start[1]) >= 160
        assert_same_checkpoint(output, uninterrupted, 400)
        assert metrics(output) == metrics(uninterrupted)
        assert {path.name for path in output.glob("model.ckpt*")} == {
            path.name for path in uninterrupted.glob("model.ckpt*")
        }

    def test_sigterm_saves(self, setting, uninterrupted, tmp_path):
        output = tmp_path / "out"
        run = setting.start(output, *LONG)
        wait_for((output / "metrics.jsonl").exists, run)
        run.kill(signal.SIGTERM)
        assert run.wait() == 143
        saved = re.search(r"SIGTERM: saved step (\d+); ending", run.stderr)
        assert saved
        assert metrics(output)[-1]["step"] == int(saved[1])
        assert (output / f"model.ckpt-{saved[1]}.index").exists()
        run = setting.run(output, *LONG)
        assert run.wait() == 0, run.stderr
        assert f"Going on from step {saved[1]} in" in run.stderr
        assert_same_checkpoint(output, uninterrupted, 400)
        assert metrics(output) == metrics(uninterrupted)

    def test_longer_run(self, setting, trained, tmp_path):
        # More steps, another batch size: the data goes on where it was.
        output = tmp_path / "out"
        output.mkdir()
        for name, content in contents(trained).items():
            (output / name).write_bytes(content)
        run = setting.run(output, "--num_train_steps=3", "--train_batch_size=4")
        assert run.wait() == 0, run.stderr
        assert "train_batch_size was 8 and is 4" in run.stderr
        stored = tensors(output, 3)
        assert stored["data_position/records"] == 2 * 8 + 4
        assert [line["step"] for line in metrics(output)] == [1, 2, 3]


def free_ports(count):
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture(scope="module", name="expected")
def _expected(plain):
    """A run of one process on one device, without dropout."""
    output = plain.folder / "expected"
    run = plain.run(output, "--num_train_steps=4", "--do_eval")
    assert run.wait() == 0, run.stderr
    return output


@pytest.mark.slow
class TestStrategies:
    STEPS = ("--num_train_steps=4", "--do_eval")

    def test_two_replicas(self, plain, expected, tmp_path):
        run = plain.run(
            tmp_path / "out",
            *self.STEPS,
            "--distribution_strategy=mirrored",
            "--logical_cpus=2",
        )
        assert run.wait() == 0, run.stderr
        assert "24 records in 3 files, 2 replicas" in run.stderr
        assert_close(tmp_path / "out", expected, 1e-6)

    def test_two_workers(self, plain, expected, tmp_path):
        workers = [f"localhost:{port}" for port in free_ports(2)]
        runs = [
            plain.start(
                tmp_path / "out",
                *self.STEPS,
                "--distribution_strategy=multi_worker_mirrored",
                log=f"worker{i}",
                TF_CONFIG=json.dumps(
                    {
                        "cluster": {"worker": workers},
                        "task": {"type": "worker", "index": i},
                    }
                ),
            )
            for i in range(2)
        ]
        for run in runs:
            assert run.wait() == 0, run.stderr
        assert "2 replicas" in runs[0].stderr
        assert_close(tmp_path / "out", expected, 1e-6)
        # One of them writes.
        assert len(list((tmp_path / "out").glob("events*"))) == 1
        results = tmp_path / "out" / "eval_results.txt"
        for found, wanted in zip(
            results.read_text().split(),
            (expected / "eval_results.txt").read_text().split(),
            strict=True,
        ):
            if found != wanted:
                assert float(found) == pytest.approx(float(wanted), rel=1e-5)

    def test_micro_batches(self, plain, expected, tmp_path):
        run = plain.run(
            tmp_path / "out", *self.STEPS, "--gradient_accumulation_steps=4"
        )
        assert run.wait() == 0, run.stderr
        assert_close(tmp_path / "out", expected, 1e-6)

    def test_bfloat16(self, plain, expected, tmp_path):
        run = plain.run(tmp_path / "out", *self.STEPS, "--dtype=bfloat16")
        assert run.wait() == 0, run.stderr
        assert_close(tmp_path / "out", expected, 0.01)
        assert metrics(tmp_path / "out") != metrics(expected)
        for name, value in tensors(tmp_path / "out", 4).items():
            wanted = np.int64 if value.ndim == 0 else np.float32
            assert value.dtype == wanted, name
