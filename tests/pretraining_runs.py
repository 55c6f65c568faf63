"""Runs of run_pretraining.py, and their outputs."""

import dataclasses
import json
import pathlib
import re
import signal
import socket

from bert_tf.pretraining_data import pretraining_sequences
from tests import pretraining_records, processes, reference, scripts, store

import pytest
import tensorflow as tf

REPLICAS = ("--distribution_strategy=mirrored", "--logical_cpus=2")


@dataclasses.dataclass(frozen=True)
class Setting:
    """Data and model of a run, and the flags for them."""

    folder: pathlib.Path
    files: list[str]

    @classmethod
    def make(cls, folder, **config):
        pretraining_records.write_config(folder / "config.json", **config)
        return cls(folder, pretraining_records.write(folder))

    @classmethod
    def of_texts(cls, folder, config, **settings):
        """Writes a config, its vocabulary, and records of 16 tokens."""
        (folder / "config.json").write_text(json.dumps(config))
        vocabulary = pretraining_records.VOCABULARY.files["vocab.txt"]
        (folder / "vocab.txt").write_bytes(vocabulary)
        made = pretraining_sequences.Settings(16, 4, **settings)
        return cls(folder, pretraining_records.write_made(folder, made))

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

    def train(self, output, *more):
        """Trains a language model with a vocabulary for four steps."""
        return self.finished(
            output,
            *("--do_eval", f"--vocab_file={self.folder}/vocab.txt"),
            *("--num_train_steps=4", "--save_checkpoints_steps=2", *more),
        )

    def check_that_a_kill_changes_nothing(self, *flags):
        """Kills a run, resumes it, and returns its outputs.

        The checkpoint with all moments must be equal, byte for byte, to that of
        an uninterrupted run, and so must the lines of metrics.
        """
        flags += ("--num_train_steps=40", "--save_checkpoints_steps=5")
        whole, output = self.folder / "whole", self.folder / "out"
        run = self.run(whole, *flags)
        assert run.wait() == 0, run.stderr
        run = self.start(output, *flags, log="killed")
        processes.wait_for((output / "model.ckpt-10.index").exists, run, 600)
        run.kill(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        assert not (output / "model.ckpt-40.index").exists()
        run = self.run(output, *flags)
        assert run.wait() == 0, run.stderr
        assert "Resuming from step" in run.stderr
        assert metrics(output) == metrics(whole)
        data = "model.ckpt-40.data-00000-of-00001"
        assert (output / data).read_bytes() == (whole / data).read_bytes()
        return tensors(output, 40)

    def start(self, output, *more, log="log", before=None, **environment):
        """Starts a run in its own process; see scripts.Run."""
        return scripts.Run(
            output.parent / "logs" / f"{output.name}-{log}",
            "run_pretraining",
            self.flags(output, *more),
            environment,
            before=before,
        )

    def run(self, output, *more, log="logs"):
        """Runs to the end in this process; returns the exit code and output."""
        return scripts.run(
            output.parent / log / output.name,
            "run_pretraining",
            *self.flags(output, *more),
        )

    def finished(self, output, *more, **changes):
        """Runs the script, which must succeed."""
        run = self.run(output, *more, **changes)
        assert run.wait() == 0, run.stderr
        return run

    def refused(self, output, *more, **changes):
        """Returns the last line of a run that must fail."""
        run = self.run(output, *more, **changes)
        assert run.wait() == 1
        return run.lines[-1]


def trained():
    """Returns the setting of a run of two steps, in its folder `trained`."""

    def make(folder):
        setting = Setting.make(folder)
        setting.finished(folder / "trained", "--do_eval=true")

    folder = store.made("pretraining", make)
    return Setting(folder, sorted(map(str, folder.glob("*.tfrecord"))))


def results(output):
    """Returns the contents of eval_results.txt, by name."""
    lines = (output / "eval_results.txt").read_text().splitlines()
    return {k: float(v) for k, v in (line.split(" = ") for line in lines)}


_TIMED = re.compile("per_second|input_share|peak_memory|flops_utilization")


def metrics(output):
    """Returns the lines of metrics.jsonl, without times and speeds."""
    lines = (output / "metrics.jsonl").read_text().splitlines()
    return [
        {k: v for k, v in json.loads(x).items() if not _TIMED.search(k)}
        for x in lines
    ]


def tensors(output, step):
    """Returns the tensors of a run's checkpoint by name."""
    reader = tf.train.load_checkpoint(str(output / f"model.ckpt-{step}"))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def assert_same_checkpoint(left, right, step):
    reference.assert_same(tensors(left, step), tensors(right, step))


def assert_close(left, right, tolerance):
    found, expected = metrics(left), metrics(right)
    assert [x["step"] for x in found] == [x["step"] for x in expected]
    for x, y in zip(found, expected, strict=True):
        assert x["loss"] == pytest.approx(y["loss"], rel=tolerance)
        for name in ("masked_lm_loss", "next_sentence_loss"):
            assert x[name] == pytest.approx(y[name], rel=tolerance)


def contents(folder):
    """Returns the bytes of a folder's files by name."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file()
    }


def free_ports(count):
    """Returns unused ports of this machine."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports
