"""A run of each fine-tuning script on tiny data, trained once for all tests.

`trained` returns runs with all steps after training. Tests copy what they
change.
"""

import csv
import dataclasses
import json
import pathlib
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from tests import classifier_runs, scripts, store, tiny_files

import numpy as np


class _Script(NamedTuple):
    """How a script is run.

    Attributes:
        write: Writes data files into a folder.
        flags: Flags of the model and of a quick run.
        data: Flags of the data, with the field {data}.
        config: Differences from the config of a classifier.
    """

    write: Callable[[pathlib.Path], None]
    flags: tuple[str, ...]
    data: tuple[str, ...]
    config: dict[str, Any]


class Trained(NamedTuple):
    """A finished run with --do_train, --do_eval, --do_predict, --do_export.

    Attributes:
        script: Name of the script.
        files: Folder of its data, vocabulary and config.
        output: Its --output_dir.
        log: Its log.
        flags: Flags of the model and of a quick run.
        data: Flags of the data.
    """

    script: str
    files: pathlib.Path
    output: pathlib.Path
    log: str
    flags: list[str]
    data: list[str]

    @property
    def command(self) -> list[str]:
        """The flags of the run, without --output_dir."""
        return [*_WORK, *self.flags, *self.data]

    def copy(self, folder: pathlib.Path) -> pathlib.Path:
        """Returns a copy of the output folder."""
        return shutil.copytree(self.output, folder / "copy")

    def run(
        self, folder: pathlib.Path, *arguments: str, code: int = 0
    ) -> scripts.Done:
        """Runs the script with other flags; it must exit with the code."""
        return scripts.run_checked(
            folder / "log", self.script, *arguments, code=code
        )


def trained(name: str) -> Trained:
    """Returns the run of a script, by its name in `SCRIPTS`."""
    folder = store.made(
        f"fine_tuned-{name}", lambda folder: _train(folder, name)
    )
    return _run(folder, name)


def _train(folder: pathlib.Path, name: str) -> None:
    script = SCRIPTS[name]
    config = dataclasses.replace(classifier_runs.MODEL, **script.config)
    tiny_files.write_files(folder / "files", config)
    script.write(folder / "files")
    run = _run(folder, name)
    run.run(folder, *run.command, f"--output_dir={run.output}")


def _run(folder: pathlib.Path, name: str) -> Trained:
    script, files = SCRIPTS[name], folder / "files"
    flags = [
        f"--vocab_file={files}/vocab.txt",
        f"--bert_config_file={files}/bert_config.json",
        *script.flags,
    ]
    data = [flag.format(data=files) for flag in script.data]
    log = scripts.Finished(folder / "log")
    stderr = log.stderr if (folder / "log" / "stderr").exists() else ""
    return Trained(f"run_{name}", files, folder / "output", stderr, flags, data)


# ---- Data -------------------------------------------------------------------


def mrpc() -> tuple[list[tuple[str, str]], list[int]]:
    """Returns pairs and their labels: 12 for training, 7 for evaluation."""
    rng = np.random.default_rng(0)
    draw = classifier_runs.sentence
    pairs = [(draw(rng), draw(rng)) for _ in range(19)]
    return pairs, [int("cat" in f"{a} {b}".split()) for a, b in pairs]


def _write_mrpc(folder: pathlib.Path) -> None:
    """Writes MRPC's files; the test set has the pairs of the dev set."""
    pairs, labels = mrpc()
    header = "#1 ID\t#2 ID\t#1 String\t#2 String\n"
    rows = [f"1\t2\t{a}\t{b}\n" for a, b in pairs]
    labelled = [f"{y}\t{row}" for y, row in zip(labels, rows, strict=True)]
    test = [f"{i}\t{row}" for i, row in enumerate(rows[12:])]
    for name, columns, lines in (
        ("train", "\ufeffQuality\t" + header, labelled[:12]),
        ("dev", "Quality\t" + header, labelled[12:]),
        ("test", "index\t" + header, test),
    ):
        (folder / f"{name}.tsv").write_text(columns + "".join(lines))


def _write_conll(folder: pathlib.Path) -> None:
    """Writes sentences whose names are people and places."""
    rng = np.random.default_rng(0)
    for name, sentences in (("train", 40), ("dev", 9), ("test", 9)):
        lines: list[str] = []
        for i in range(sentences):
            if i % 4 == 0:
                lines += ["-DOCSTART- X O", ""]
            for _ in range(rng.integers(2, 6)):
                kind = rng.integers(4)
                if kind == 0:
                    lines += ["Anna X B-per", "Bob X I-per"]
                elif kind == 1:
                    lines += [f"{rng.choice(['Rome', 'Paris'])}s X B-loc"]
                else:
                    lines += [f"{rng.choice(['the', 'cat', 'sees'])} X O"]
            lines += [". X O", ""]
        (folder / f"{name}.conll").write_text("\n".join(lines) + "\n")


def _write_questions(folder: pathlib.Path) -> None:
    """Writes questions "Cat?" whose answer is the word after "Cat"."""
    for name, number, impossible in (
        *(("train", 30, 0), ("dev", 9, 0), ("train2", 30, 8)),
        *(("dev2", 11, 4), ("test2", 5, 2)),
    ):
        rng = np.random.default_rng(number)
        paragraphs = []
        for i in range(number):
            words = rng.choice(tiny_files.WORDS[3:16], 20).tolist()
            if i >= impossible:
                words[rng.integers(18)] = "Cat"
            context = ", ".join(words[:10]) + " \n" + " ".join(words[10:])
            qa: dict[str, Any] = {"id": f"q{i}", "question": "Cat?"}
            qa |= {"is_impossible": i < impossible, "answers": []}
            if i >= impossible:
                text = words[words.index("Cat") + 1]
                start = context.index(text, context.index("Cat"))
                qa["answers"] = [{"text": text, "answer_start": start}]
            if name == "test2":
                del qa["answers"]
            paragraphs.append({"context": context, "qas": [qa]})
        content = {"version": "x", "data": [{"paragraphs": paragraphs}]}
        (folder / f"{name}.json").write_text(json.dumps(content))


def _write_swag(folder: pathlib.Path) -> None:
    """Writes problems whose correct ending is the one with "sings"."""
    header = "|video-id|fold-ind|startphrase|sent1|sent2|gold-source|"
    header += "ending0|ending1|ending2|ending3|label"
    for name, number in (("train", 96), ("dev", 20), ("test", 18)):
        rng = np.random.default_rng(number)
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header.split("|"))
            for i in range(number):
                choice = rng.choice(["the", "cat", "dog", "bird"], [5, 4])
                first, *words = [" ".join(row) for row in choice]
                label = int(rng.integers(4))
                endings = [f"{x} {rng.choice(['ran', 'red'])}" for x in words]
                endings[label] = f"{words[label]} sings"
                row = [i, "v", i, f"{first} the", first, "The", "gold"]
                writer.writerow([*row, *endings, label])


_WORK = ("--do_train", "--do_eval", "--do_predict", "--do_export")
# Settings with which little data is enough to learn.
_LEARNS = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SCRIPTS = {
    "classifier": _Script(
        _write_mrpc,
        (*classifier_runs.QUICK, "--num_train_epochs=3.0"),
        (
            *("--task_name=MRPC", "--data_dir={data}", "--glue_server_files"),
            "--save_checkpoints_steps=2",
        ),
        {},
    ),
    "ner": _Script(
        _write_conll,
        # Documents have more tokens than a window.
        (
            *("--context=document", "--max_seq_length=16"),
            *("--train_batch_size=4", "--learning_rate=0.01"),
        ),
        (
            *("--train_file={data}/train.conll", "--num_train_epochs=12"),
            *("--dev_file={data}/dev.conll", "--test_file={data}/test.conll"),
            "--save_checkpoints_steps=50",
        ),
        _LEARNS,
    ),
    "squad": _Script(
        _write_questions,
        (
            *("--max_seq_length=16", "--max_query_length=4", "--doc_stride=4"),
            *("--train_batch_size=8", "--eval_batch_size=8"),
            "--learning_rate=0.01",
        ),
        (
            *("--train_file={data}/train.json", "--num_train_epochs=8"),
            *("--predict_file={data}/dev.json", "--save_checkpoints_steps=60"),
        ),
        _LEARNS | {"hidden_dropout_prob": 0.1},
    ),
    "multiple_choice": _Script(
        _write_swag,
        (
            *("--max_seq_length=16", "--train_batch_size=8"),
            *("--learning_rate=0.005", "--num_train_epochs=4"),
        ),
        (
            *("--train_file={data}/train.csv", "--dev_file={data}/dev.csv"),
            *("--test_file={data}/test.csv", "--save_checkpoints_steps=12"),
        ),
        _LEARNS,
    ),
}
