"""Tiny data and models for classification, and runs of run_classifier.py."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from tests import scripts, tiny_files

import numpy as np

WORDS = tiny_files.WORDS
# Shallow, because tracing takes most of the time.
MODEL = dataclasses.replace(tiny_files.CONFIG, num_hidden_layers=1)
CONFIG: dict[str, Any] = json.loads(MODEL.to_json())
QUICK = (
    *("--max_seq_length=12", "--train_batch_size=4", "--eval_batch_size=4"),
    *("--predict_batch_size=4", "--learning_rate=0.01"),
)


def write_model(folder: pathlib.Path) -> list[str]:
    """Writes vocabulary and config; returns the flags of a quick run."""
    tiny_files.write_files(folder, MODEL)
    return [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        *QUICK,
    ]


def sentence(rng: np.random.Generator) -> str:
    """Draws a few words."""
    return " ".join(rng.choice(WORDS[:20], rng.integers(3, 9))) + " ."


def write_table(path: pathlib.Path, rows: int) -> pathlib.Path:
    """Writes sentences with alternating labels neg and pos, and a header."""
    rng = np.random.default_rng(0)
    lines = [f"{sentence(rng)}\t{('neg', 'pos')[i % 2]}" for i in range(rows)]
    path.write_text("\n".join(["text\tlabel", *lines]) + "\n")
    return path


def write_red(
    path: pathlib.Path, red: str, others: Sequence[str], rows: int
) -> pathlib.Path:
    """Writes texts of five words; those labelled red contain the word `red`."""
    rng = np.random.default_rng(rows)
    lines = ["text\tlabel"]
    for i in range(rows):
        text = rng.choice(others, 5).tolist()
        if i % 2:
            text[rng.integers(5)] = red
        lines.append(f"{' '.join(text)}\t{('other', 'red')[i % 2]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_pairs(
    folder: pathlib.Path,
    make_row: Callable[[np.random.Generator, int], Sequence[str]],
    rows: int,
    **config: Any,
) -> list[str]:
    """Writes a model and tables of pairs; returns flags to train on them.

    Args:
        folder: For vocabulary, config, train.tsv and dev.tsv.
        make_row: Draws two texts and their label, by the row's number.
        rows: Of train.tsv.
        **config: Fields of the config.
    """
    write_model(folder)
    sizes = {"vocab_size": CONFIG["vocab_size"], "max_position_embeddings": 32}
    path = folder / "bert_config.json"
    path.write_text(json.dumps(sizes | config))
    rng = np.random.default_rng(0)
    for split, count in (("train", rows), ("dev", 40)):
        lines = ["\t".join(make_row(rng, i)) for i in range(count)]
        lines = ["text\tsecond\tlabel", *lines]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return [
        *(f"--vocab_file={folder}/vocab.txt", f"--bert_config_file={path}"),
        *("--do_train", f"--train_file={folder}/train.tsv"),
    ]


def pairs(folder: pathlib.Path) -> list[tuple[str, ...]]:
    """Returns the pairs of dev.tsv."""
    lines = (folder / "dev.tsv").read_text().splitlines()[1:]
    return [tuple(line.split("\t")[:2]) for line in lines]


def train_on_pairs(folder: pathlib.Path, *flags: str) -> pathlib.Path:
    """Runs all steps, with dev.tsv as test file, too; returns the output."""
    dev, output = folder / "dev.tsv", folder / "output"
    run(
        folder / "trained",
        *(*flags, "--do_eval", f"--dev_file={dev}"),
        *("--do_predict", f"--test_file={dev}", "--do_export"),
        f"--output_dir={output}",
    )
    return output


def run(
    folder: pathlib.Path, *arguments: str, code: int = 0, **environment: str
) -> scripts.Done:
    """Runs the script, which must exit with the code."""
    return scripts.run_checked(
        folder / "log", "run_classifier", *arguments, code=code, **environment
    )


def run_here(*arguments: str, name: str = "__main__") -> Any:
    """Runs the script in this process; see scripts.run_here."""
    return scripts.run_here("run_classifier", *arguments, name=name)


def results(path: pathlib.Path) -> dict[str, float]:
    """Reads sorted `name = value` lines."""
    lines = path.read_text().splitlines()
    assert lines == sorted(lines)
    return {
        name: float(value)
        for name, value in (line.split(" = ") for line in lines)
    }


def table(path: pathlib.Path) -> np.ndarray:
    """Reads tab-separated numbers."""
    lines = path.read_text().splitlines()
    return np.array([line.split("\t") for line in lines], float)


def rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """Reads JSON lines."""
    return [json.loads(x) for x in path.read_text("utf-8").splitlines()]
