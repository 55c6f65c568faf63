"""Times how soon a run resumes, with many record files and with one.

    python -m benchmarks.many_files --files=10000 --rounds=3

The same records are written to many files, with `--records` in each, and to
one, with manifests. For both, a run of a tiny model is started, then resumed
once per round. Prints, for both, the median seconds from the start of
run_pretraining.py to its first line in metrics.jsonl, after the first step, and
the difference.
"""

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import commands, pretraining_step
from bert_tf import modeling
from bert_tf.records import manifests, record_types, tfrecord

from absl import app, flags

_FILES = flags.DEFINE_integer("files", 10_000, "How many are many.")
_RECORDS = flags.DEFINE_integer("records", 20, "In each of them.")
_ROUNDS = flags.DEFINE_integer("rounds", 3, "Whose medians are printed.")

_CONFIG = modeling.BertConfig(
    vocab_size=40,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
)
_S, _P = 16, 4


def write(folder: pathlib.Path, contents: Sequence[int]) -> None:
    """Writes a file of records for each number of repetitions."""
    folder.mkdir()
    rows = pretraining_step.rows(
        dataclasses.asdict(_CONFIG), _RECORDS.value, _S, _P
    )
    first = folder / "first"
    with tfrecord.Writer(first) as writer:
        writer.write_all(record_types.PRETRAINING.encode_batch(rows))
    data = first.read_bytes()
    first.unlink()
    shards = []
    for number, times in enumerate(contents):
        name = f"records-{number:05d}.tfrecord"
        (folder / name).write_bytes(data * times)
        shards.append(manifests.Shard(name, _RECORDS.value * times))
    manifests.Manifest(
        record_type=record_types.PRETRAINING.name,
        max_seq_length=_S,
        max_predictions_per_seq=_P,
        vocab_sha256="0" * 64,
        vocab_size=_CONFIG.vocab_size,
        do_lower_case=True,
        masking={},
        seed=1,
        shards=tuple(shards),
        statistics={},
    ).write(folder / "manifest.json")


def seconds_to_first_step(
    folder: pathlib.Path, kind: str, steps: int, before: int
) -> float:
    """Runs steps; returns the time of the one after `before`."""
    log = folder / f"run-{kind}" / "metrics.jsonl"
    command = [
        *(sys.executable, str(commands.ROOT / "run_pretraining.py")),
        *(f"--input_file={folder / kind}/*.tfrecord", "--do_train"),
        *(f"--output_dir={log.parent}", "--train_batch_size=8"),
        *(f"--bert_config_file={folder}/config.json", "--log_steps=1"),
        *(f"--num_train_steps={steps}", "--num_warmup_steps=1"),
    ]
    began, found = time.monotonic(), None
    with (folder / "log.txt").open("wb") as said:
        run = subprocess.Popen(command, stderr=said)
        while run.poll() is None:
            if found is None and _last_step(log) > before:
                found = time.monotonic() - began
            time.sleep(0.02)
    if run.returncode or found is None:
        raise SystemExit((folder / "log.txt").read_text()[-3000:])
    return found


def _last_step(log: pathlib.Path) -> int:
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return json.loads(whole[-1])["step"] if whole else 0


def main(_):
    """Measures, and prints the table."""
    kinds = {"many": [1] * _FILES.value, "one": [_FILES.value]}
    # More steps each time, so that the first step's log line is detected.
    steps = 20
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "config.json").write_text(_CONFIG.to_json())
        for kind, contents in kinds.items():
            write(folder / kind, contents)
            seconds_to_first_step(folder, kind, steps, 0)
        taken: dict[str, list[float]] = {kind: [] for kind in kinds}
        for number in range(1, _ROUNDS.value + 1):
            for kind, times in taken.items():
                times.append(
                    seconds_to_first_step(
                        folder, kind, steps * (number + 1), steps * number
                    )
                )
    many, one = (statistics.median(times) for times in taken.values())
    print(
        f"to the first step of a run that goes on: {many:.1f} s with "
        f"{_FILES.value} files, {one:.1f} s with one, {many - one:+.1f} s"
    )


if __name__ == "__main__":
    app.run(main)
