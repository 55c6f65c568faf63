"""Kills runs, and starts them twice: the outputs must not change.

    python -m tests.survival --kills=100 --twice=20 --seed=1

Every kind of run is made once without interruption. Then it is killed (-9) at
random times and started again until it ends, and its outputs are compared byte
for byte; and it is started twice, the second a random time after the first.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence

from tests import pretraining_records, scripts, tiny_files

import numpy as np


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        name: Name of the kind.
        script: Name of the script without ".py".
        flags: Flags with {data} and {out}, separated by spaces.
        refusal: Error of the second of two runs.
        file: The file that the run writes, which it does not replace once it
            is complete; None if a run that has ended can be started again.
    """

    name: str
    script: str
    flags: str
    refusal: str = "{out} is in use: "
    file: str | None = None


KINDS = (
    Kind(
        "data creation",
        "create_pretraining_data",
        "--input_file={data}/text-*.txt --output_dir={out} --num_workers=2 "
        "--vocab_file={data}/model/vocab.txt --max_seq_length=32 "
        "--num_shards=7 --dupe_factor=4 --max_predictions_per_seq=5",
        "{out}/.work is in use: ",
    ),
    Kind(
        "pre-training on two replicas",
        "run_pretraining",
        "--input_file={data}/records/* --output_dir={out} --do_train --do_eval "
        "--bert_config_file={data}/pretraining.json --eval_steps=9 "
        "--max_eval_steps=3 --train_batch_size=8 "
        "--gradient_accumulation_steps=2 --max_seq_length=16 "
        "--max_predictions_per_seq=4 --num_train_steps=40 "
        "--num_warmup_steps=4 --distribution_strategy=mirrored "
        "--logical_cpus=2 --save_checkpoints_steps=6 --keep_checkpoint_max=2 "
        "--log_steps=3 --learning_rate=1e-3",
    ),
    Kind(
        "fine-tuning",
        "run_classifier",
        "--train_file={data}/train.tsv --dev_file={data}/dev.tsv "
        "--test_file={data}/dev.tsv --do_train --do_eval --do_predict "
        "--init_checkpoint={data}/model --output_dir={out} "
        "--max_seq_length=16 --train_batch_size=4 --eval_batch_size=8 "
        "--num_train_epochs=6 --save_checkpoints_steps=7 --log_steps=5",
    ),
    Kind(
        "answers",
        "run_squad",
        "--train_file={data}/squad.json --predict_file={data}/squad.json "
        "--do_train --do_eval --do_predict --init_checkpoint={data}/model "
        "--output_dir={out} --max_seq_length=24 --max_query_length=6 "
        "--doc_stride=8 --train_batch_size=4 --num_train_epochs=4 "
        "--save_checkpoints_steps=7 --log_steps=5",
    ),
    Kind(
        "GLUE",
        "run_glue",
        "--data_dir={data}/glue --tasks=RTE,WNLI --seeds=1,2 "
        "--init_checkpoint={data}/model --output_dir={out} "
        "--max_seq_length=16 --train_batch_size=4 --num_train_epochs=2",
    ),
    Kind(
        "features",
        "extract_features",
        "--input_file={data}/lines.txt --output_file={out}/x.npy --layers=-1 "
        "--init_checkpoint={data}/model --batch_size=2 --max_seq_length=16 "
        "--sort_window=8",
        "Another process writes {out}/x.npy.offsets.npy: ",
        "x.npy",
    ),
    Kind(
        "augmentation",
        "augment_data",
        "--input_file={data}/lines.txt --output_file={out}/x.tsv "
        "--has_header=false --text_a_column=0 --candidates=5 --batch_size=8 "
        "--init_checkpoint={data}/model --max_seq_length=32 --sort_window=100",
        "Another process writes {out}/x.tsv: ",
        "x.tsv",
    ),
)


# ---- Data -------------------------------------------------------------------


def write_data(folder: pathlib.Path) -> None:
    """Writes the data that all kinds of runs read."""
    rng = np.random.default_rng(0)
    words = tiny_files.WORDS[:28]

    def text(least, most):
        return " ".join(rng.choice(words, rng.integers(least, most)))

    tiny_files.write_model(folder / "model")
    for number in range(4):
        documents = (
            "\n".join(text(3, 12) for _ in range(rng.integers(2, 9)))
            for _ in range(150)
        )
        (folder / f"text-{number}.txt").write_text("\n\n".join(documents))
    (folder / "lines.txt").write_text(
        "".join(f"{text(3, 40)}\n" for _ in range(600))
    )
    for name, rows in (("train", 30), ("dev", 12)):
        lines = [f"{text(3, 12)}\t{'ab'[i % 2]}\n" for i in range(rows)]
        (folder / f"{name}.tsv").write_text("".join(["text\tlabel\n", *lines]))
    (folder / "records").mkdir()
    pretraining_records.write(folder / "records")
    pretraining_records.write_config(folder / "pretraining.json")
    _write_squad(folder / "squad.json", rng, words)
    entailment = ("entailment", "not_entailment")
    for task, labels in (("WNLI", "01"), ("RTE", entailment)):
        (folder / "glue" / task).mkdir(parents=True)
        for split in ("train", "dev"):
            lines = ["index\tsentence1\tsentence2\tlabel"]
            lines += [
                f"{i}\t{text(3, 6)}\t{text(3, 6)}\t{labels[i % 2]}"
                for i in range(12)
            ]
            path = folder / "glue" / task / f"{split}.tsv"
            path.write_text("\n".join(lines) + "\n")


def _write_squad(path, rng, words):
    paragraphs = []
    for number in range(16):
        context = [str(word) for word in rng.choice(words, 30)]
        place = int(rng.integers(30))
        start = len(" ".join([*context[:place], ""]))
        answers = [{"text": context[place], "answer_start": start}]
        question = {"id": f"q{number}", "question": "who is it ?"}
        qas = [question | {"answers": answers}]
        paragraphs.append({"context": " ".join(context), "qas": qas})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))


# ---- Runs -------------------------------------------------------------------


class Laboratory:
    """Runs all kinds in a folder."""

    def __init__(self, folder: pathlib.Path):
        """Writes the data."""
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir()
        write_data(self.data)
        self.expected: dict[str, dict[str, bytes]] = {}
        self.seconds: dict[str, float] = {}
        self._logs = 0

    def start(self, kind: Kind, out: pathlib.Path) -> scripts.Run:
        """Starts a run."""
        flags = kind.flags.format(data=self.data, out=out).split()
        self._logs += 1
        log = self.folder / "logs" / str(self._logs)
        return scripts.Run(log, kind.script, flags, {}, has_children=True)

    def undisturbed(self, kind: Kind) -> None:
        """Records the outputs and the duration of a run of this kind."""
        if kind.name in self.expected:
            return
        out = self._output("alone", kind)
        began = time.monotonic()
        run = self.start(kind, out)
        assert run.wait() == 0, run.stderr
        self.seconds[kind.name] = time.monotonic() - began
        self.expected[kind.name] = left_by(out)
        assert not leftovers(out), leftovers(out)

    def killed(self, kind: Kind, kills: int, rng: random.Random) -> list[str]:
        """Kills a run several times, then lets it end.

        Returns:
            The differences to an uninterrupted run, and leftover files.
        """
        self.undisturbed(kind)
        out = self._output("killed", kind)
        done = 0
        while done < kills:
            run = self.start(kind, out)
            time.sleep(rng.uniform(0, self.seconds[kind.name]))
            if run.poll() is None:
                run.kill()
                run.wait()
                done += 1
                # A kill during the exit of a process comes too late.
                has_ended = kind.file is not None and (out / kind.file).exists()
            else:
                assert run.wait() == 0, run.stderr
                has_ended = True
            if has_ended:  # Start over.
                problems = self._compare(kind, out)
                if problems:
                    return problems
                shutil.rmtree(out)
                self._output("killed", kind)
        run = self.start(kind, out)
        if run.wait():
            return [f"ended with an error: {run.lines[-3:]}"]
        problems = self._compare(kind, out)
        shutil.rmtree(out)
        return problems

    def twice(self, kind: Kind, rng: random.Random) -> list[str]:
        """Starts a run twice, the second some time after the first."""
        self.undisturbed(kind)
        out = self._output("twice", kind)
        first = self.start(kind, out)
        time.sleep(rng.uniform(0, 0.6 * self.seconds[kind.name]))
        second = self.start(kind, out)
        codes = second.wait(), first.wait()
        problems = []
        # If both start at the same moment, either may be the first.
        loser = second if codes[1] == 0 else first
        if sorted(codes) != [0, 1]:
            # One may start when the other has finished, with nothing left to
            # do.
            if codes != (0, 0) or "is in use" in second.stderr:
                problems.append(f"exit codes {codes}: {second.stderr}")
        elif not re.search(
            re.escape(kind.refusal.format(out=out)), loser.lines[-1]
        ):
            problems.append(f"the second says {loser.lines[-1]}")
        problems += self._compare(kind, out)
        shutil.rmtree(out)
        return problems

    def _output(self, what: str, kind: Kind) -> pathlib.Path:
        """Returns a folder, created for scripts that do not create it."""
        out = self.folder / what / kind.name.replace(" ", "_")
        needed = out if kind.script == "extract_features" else out.parent
        needed.mkdir(parents=True, exist_ok=True)
        return out

    def _compare(self, kind: Kind, out: pathlib.Path) -> list[str]:
        found, expected = left_by(out), self.expected[kind.name]
        return [f"left over: {name}" for name in leftovers(out)] + [
            f"differs: {name}"
            for name in sorted(found.keys() | expected.keys())
            if found.get(name) != expected.get(name)
        ]


# ---- Outputs ----------------------------------------------------------------

# TensorBoard's events have times, and one file per start; a log records
# everything that happened.
_NOT_COMPARED = re.compile(r"events\.out\.|log\.txt$")
# Times and paths of a run.
_TIMES = re.compile(
    rb'"(?:\w+_per_second|input_share|peak_memory|flops_utilization|seconds)": '
    rb"[-+\w.]+"
)


def left_by(out: pathlib.Path) -> dict[str, bytes]:
    """Returns name -> bytes of a run's outputs, without times and paths."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.is_dir() or _NOT_COMPARED.search(name):
            continue
        data = path.read_bytes()
        if path.suffix in (".jsonl", ".json", ".txt", ".md"):
            data = _TIMES.sub(b"", data).replace(str(out).encode(), b"OUT")
            data = re.sub(rb"(?m)^# \d{4}-.*\n", b"", data)
        found[name] = data
    return found


def leftovers(out: pathlib.Path) -> list[str]:
    """Returns files that no run may leave, in its folder or next to it."""
    beside = [x for x in out.parent.iterdir() if x.name.startswith(out.name)]
    names = [str(path.relative_to(out)) for path in out.rglob("*")]
    names += [path.name for path in beside if path != out]
    pattern = re.compile(r"\.tmp|(^|/)(evaluation\.)?lock$|\.work|\.part\d")
    return [name for name in names if pattern.search(name)]


# ---- Command line -----------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Kills and doubles runs of all kinds in turn; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--twice", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    rng = random.Random(given.seed)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(pathlib.Path(folder))
        counts: collections.Counter[str] = collections.Counter()

        def note(what: str, kind: Kind, found: list[str]) -> None:
            problems.extend(f"{kind.name}: {x}" for x in found)
            print(f"{what}: {kind.name}: {found or 'as alone'}", flush=True)

        while sum(counts.values()) < given.kills:
            kind = KINDS[len(counts) % len(KINDS)]
            if len(counts) >= len(KINDS):
                kind = min(KINDS, key=lambda kind: counts[kind.name])
            left = given.kills - sum(counts.values())
            kills = min(left, rng.randint(1, 4))
            counts[kind.name] += kills
            found = laboratory.killed(kind, kills, rng)
            note(f"killed {kills} times", kind, found)
        for number in range(given.twice):
            kind = KINDS[number % len(KINDS)]
            note("started twice", kind, laboratory.twice(kind, rng))
    print(f"{dict(counts)} kills, {given.twice} runs started twice:")
    print("\n".join(problems) or "0 differing bits, 0 leftovers")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
