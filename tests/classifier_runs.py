"""Tiny data and models to classify with, and runs of run_classifier.py."""

import json
import pathlib
from typing import Any

from tests import scripts

import numpy as np

_LINE = (
    "the a cat dog bird fish runs sleeps eats sings red blue green old new big "
    "is was not very , . ! ? ' ##s ##ing"
)
WORDS = _LINE.split()
CONFIG: dict[str, Any] = {
    "vocab_size": 5 + len(WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def write_model(folder: pathlib.Path) -> list[str]:
    """Writes vocabulary and config; returns flags of a quick run."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    return [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        "--max_seq_length=12",
        "--train_batch_size=4",
        "--eval_batch_size=4",
        "--predict_batch_size=4",
        "--learning_rate=0.01",
    ]


def sentence(rng: np.random.Generator) -> str:
    """Draws a few words."""
    return " ".join(rng.choice(WORDS[:20], rng.integers(3, 9))) + " ."


def run(
    folder: pathlib.Path, *arguments: str, **environment: str
) -> scripts.Done:
    """Runs the script, which must succeed."""
    done = scripts.run(
        folder / "log", "run_classifier", *arguments, **environment
    )
    assert done.wait() == 0, done.stderr
    return done


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
    """Reads numbers between tabs."""
    lines = path.read_text().splitlines()
    return np.array([line.split("\t") for line in lines], float)


def rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """Reads JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
