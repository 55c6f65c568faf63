r"""Prints how much code there is, and how much of it a reader opens.

    python -m tools.house

or, for checkouts side by side, each a column:

    python -m tools.house /tmp/before .

The reading distance of a command is the number of files, functions and lines
that run until the first training step, or until an answer. It is measured by
running the command on a tiny model.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tools.house import figures

_HERE = pathlib.Path(__file__).resolve().parents[2]
_WORDS = [*"abcdefghijklm"]
_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
_CONFIG = {
    "vocab_size": len(_VOCAB),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}
_FIRST_STEP = "optimization.py:apply"
_MODEL = "--bert_config_file=config.json --vocab_file=vocab.txt"
_RECORDS = (
    "create_pretraining_data.py --input_file=text.txt --vocab_file=vocab.txt "
    "--max_seq_length=16 --max_predictions_per_seq=3 --output_file=r.tfrecord"
)
_TRAINING = "--train_batch_size=4 --learning_rate=1e-4"
# What is measured -> where it ends, and the command.
_PATHS = {
    "run_classifier.py to its first step": (
        _FIRST_STEP,
        f"run_classifier.py {_MODEL} --do_train --train_file=train.tsv "
        "--text_a_column=text --max_seq_length=16 --output_dir=classifier "
        f"--num_train_epochs=1 {_TRAINING}",
    ),
    "run_pretraining.py to its first step": (
        _FIRST_STEP,
        f"run_pretraining.py {_MODEL} --do_train --input_file=r.tfrecord "
        "--output_dir=pretrained --num_train_steps=2 --num_warmup_steps=1 "
        f"{_TRAINING}",
    ),
    "bert_tf.load(run)(text)": ("", "ask.py"),
}
_ASK = 'import bert_tf\n\nbert_tf.load("classifier")("a b c")\n'


def _write_inputs(folder: pathlib.Path) -> None:
    """Writes what the commands read."""
    text = [" ".join(_WORDS[i:] + _WORDS[:i]) for i in range(len(_WORDS))]
    rows = [f"{x}\t{'yn'[i % 2]}\n" for i, x in enumerate(text)]
    (folder / "vocab.txt").write_text("\n".join(_VOCAB) + "\n")
    (folder / "config.json").write_text(json.dumps(_CONFIG))
    (folder / "train.tsv").write_text("".join(["text\tlabel\n", *rows]))
    (folder / "text.txt").write_text("\n".join(text) + "\n\n" + "\n".join(text))
    (folder / "ask.py").write_text(_ASK)


def _run(root: pathlib.Path, folder: pathlib.Path, *command: str) -> None:
    """Runs a module or script of this checkout on the code of `root`."""
    path = os.pathsep.join([str(root), str(_HERE)])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"In {root}: {command}\n{done.stderr[-2000:]}")


def _distances(root: pathlib.Path) -> dict[str, dict[str, int]]:
    """Returns the reading distance of each command."""
    with (
        tempfile.TemporaryDirectory() as name,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        folder = pathlib.Path(name)
        _write_inputs(folder)
        script, *flags = _RECORDS.split()
        _run(root, folder, str(root / script), *flags)

        def trace(path: str) -> dict[str, int]:
            stop, command = _PATHS[path]
            script, *flags = command.split()
            if not (folder / script).exists():
                script = str(root / script)
            out = f"{pathlib.Path(script).stem}.json"
            arguments = (out, str(root), stop, script, *flags)
            _run(root, folder, "-m", "tools.house.trace", *arguments)
            return json.loads((folder / out).read_text())

        # The last command loads the run of the first.
        *runs, answer = _PATHS
        found = dict(zip(runs, pool.map(trace, runs), strict=True))
        return {**found, answer: trace(answer)}


def _column(root: pathlib.Path) -> dict[str, str]:
    """Returns the figures of a checkout as text, by name."""
    column = {
        name: f"{x:.1%}" if isinstance(x, float) else f"{x:,}"
        for name, x in figures.measure(figures.sources(root)).items()
    }
    for path, counts in _distances(root).items():
        for name, number in counts.items():
            column[f"{path}, {name}"] = f"{number:,}"
    return column


def main() -> None:
    """Prints a column for each checkout."""
    roots = [pathlib.Path(x).resolve() for x in sys.argv[1:]] or [_HERE]
    for root in roots:
        if not (root / "bert_tf").is_dir():
            raise SystemExit(
                "error: expected a checkout of this project. Received: "
                f"{root}, which has no folder bert_tf"
            )
    columns = [_column(root) for root in roots]
    widths = [max(8, len(root.name)) for root in roots]
    if len(roots) > 1:
        heads = [x.name.rjust(w) for x, w in zip(roots, widths, strict=True)]
        print(" " * 50, *heads)
    for name in columns[0]:
        cells = zip(columns, widths, strict=True)
        print(f"{name:50}", *(x[name].rjust(width) for x, width in cells))


if __name__ == "__main__":
    main()
