"""What run_pretraining.py says of bad input, and of --check_only."""

import os
import pathlib
import re

import pretraining_records
import pytest
import tensorflow as tf
from pretraining_runs import Setting, contents, train_two_steps

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
    "config of an unset variable": (
        ["--bert_config_file="],
        "--bert_config_file is empty. Is a variable of the shell not set?",
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
        "{data}/deep.json is not the config of {trained}: num_hidden_layers is",
    ),
    "output below a file": (
        ["--output_dir={data}/config.json/out"],
        "--output_dir can't be made: {data}/config.json is no folder. Received",
    ),
    "output is a file": (
        ["--output_dir={data}/config.json"],
        "--output_dir must be a folder, and this is a file. Received: output",
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
    "nothing to stop early by": (
        ["--early_stop_evaluations=2"],
        "--early_stop_evaluations goes with --eval_steps: leave it out.",
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
        "--num_cooldown_steps goes with --lr_schedule=constant: leave it out.",
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
    "a TPU elsewhere and records here": (
        [
            "--use_tpu",
            "--tpu_name=grpc://10.0.0.2:8470",
            "--output_dir=gs://bucket/out",
        ],
        "such as gs://bucket/folder. Received: input_file={data}/",
    ),
    "a TPU that nobody knows": (
        [
            *("--use_tpu", "--tpu_name=unknown", "--tpu_zone=here"),
            *("--gcp_project=none", "--output_dir=gs://bucket/out"),
            "--input_file=gs://bucket/records",
        ],
        "from elsewhere give its name or grpc address. Received: "
        "tpu_name='unknown'",
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


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("setting"))


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    return train_two_steps(setting)


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
            "Restored ",
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
        assert f"Going on from step 2 in {trained}." in run.stderr
        assert "Would train from step 2 to 4." in run.stderr
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
            ("--do_trian", "no flag --do_trian. Did you mean --do_train?"),
            ("--num_train_steps=0", "--num_train_steps must be a whole number"),
            ("--dtype=float8", "--dtype must be one of float32, bfloat16, fl"),
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

    def test_word_beyond_the_vocabulary(self, setting, tmp_path):
        # Without a manifest nobody knows before the records are read.
        config = pretraining_records.write_config(
            tmp_path / "small.json", vocab_size=20
        )
        run = setting.run(tmp_path / "out", f"--bert_config_file={config}")
        assert run.wait() == 1
        assert re.search(
            r"records-\d\.tfrecord holds a record with \w+_ids=\d+, and the "
            r"model has room for 0 to 19\. ",
            run.lines[-1],
        )
        assert not (tmp_path / "out").exists()

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
        assert not (tmp_path / "out").exists()
