r"""Measures the accuracy gained by layers and heads, by the length of a text.

    python -m benchmarks.layers_and_heads_quality \
        --data_dir=$BERT_TF_TEST_DATA --vocab_file=$VOCAB \
        --init_checkpoint=$MINILM --picture=/tmp/layers_and_heads_quality.png

Fine-tunes the lowest layers of a pre-trained model on SST-2, for various
numbers of layers and each of --seeds; and, for four times the epochs, models
with random weights that differ only in the number of heads. Prints the dev
accuracy in percent, for all texts and by their number of tokens: the mean over
the seeds, and the deviation for all texts. benchmarks.layers_and_heads measures
the cost of each.

Completed runs in --output_dir are reused, so the command can be stopped and
repeated.
"""

import collections
import dataclasses
import json
import pathlib
from collections.abc import Iterator, Sequence

from benchmarks import curves, lighter_models, small_tasks
from benchmarks.lighter_models import Trainer

import numpy as np
from absl import app, flags

_DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder.", required=True)
_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "Of any format.", required=True
)
_LAYERS = flags.DEFINE_list("layers", [*"123456"], "Numbers of layers.")
_HEADS = flags.DEFINE_list("heads", ["2", "4", "8", "16"], "Numbers of heads.")
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds.")
_MAX_TRAIN_EXAMPLES = flags.DEFINE_integer(
    "max_train_examples", 8_000, "Of the task.", 1
)
_TRAINING = flags.DEFINE_list(
    "training_flags", [], "More flags of every training, with commas between."
)
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/layers_and_heads_quality", "Folder."
)

_TASK = small_tasks.TASKS["SST-2"]
# Max length of the texts of each group, in tokens.
_GROUPS = (16, 32, _TASK.length)
_USUAL_LAYERS, _HIDDEN_SIZE = 2, 256
# Random weights need more epochs.
_RANDOM_PASSES = 4


def trainers() -> list[Trainer]:
    """Returns a trainer for each seed."""
    folder = pathlib.Path(_OUTPUT_DIR.value)
    data = small_tasks.write_first(
        *(_TASK, _DATA_DIR.value, _MAX_TRAIN_EXAMPLES.value),
        folder / "train.tsv",
    )
    start, words = _INIT_CHECKPOINT.value, _VOCAB_FILE.value
    return [
        Trainer(
            *(_TASK, folder, data, seed, seed, start, words),
            options=_TRAINING.value,
        )
        for seed in _SEEDS.value
    ]


def of_layers(trainer: Trainer, count: int) -> pathlib.Path:
    """Fine-tunes the lowest layers of the pre-trained model."""
    lowest = ",".join(map(str, range(count)))
    trainer = dataclasses.replace(trainer, layers=lowest)
    start = trainer.kept_layers(f"lowest_{count}", trainer.start)
    return trainer.train(f"layers_{count}", start, rate=5e-5, passes=1)


def of_heads(trainer: Trainer, count: int) -> pathlib.Path:
    """Trains a model with random weights."""
    pieces = pathlib.Path(_VOCAB_FILE.value).read_text("utf-8").splitlines()
    config = {
        "vocab_size": len(pieces),
        "hidden_size": _HIDDEN_SIZE,
        "num_hidden_layers": _USUAL_LAYERS,
        "num_attention_heads": count,
        "intermediate_size": 4 * _HIDDEN_SIZE,
        "max_position_embeddings": _TASK.length,
    }
    path = trainer.folder / f"heads_{count}.json"
    path.write_text(json.dumps(config))
    model = f"--bert_config_file={path}", f"--vocab_file={trainer.vocab_file}"
    return trainer.train(
        f"heads_{count}", *model, rate=3e-4, passes=_RANDOM_PASSES
    )


def by_length() -> dict[int, list[small_tasks.Example]]:
    """Returns the dev examples by length group."""
    from bert_tf import tokenization

    tokenizer = tokenization.FullTokenizer(_VOCAB_FILE.value)
    found = collections.defaultdict(list)
    for example in small_tasks.examples(_TASK, _DATA_DIR.value, "dev"):
        pieces = len(tokenizer.tokenize(example[0][0])) + 2
        found[min(x for x in _GROUPS if x >= pieces)].append(example)
    return found


def right(
    path: pathlib.Path, examples: Sequence[small_tasks.Example]
) -> np.ndarray:
    """Returns whether an export labels each example correctly."""
    import bert_tf

    answers = bert_tf.load(str(path))([texts[0] for texts, _ in examples])
    labels = [label for _, label in examples]
    return np.array([x["label"] for x in answers]) == np.array(labels)


def accuracies(path: pathlib.Path) -> Iterator[float]:
    """Yields the accuracy on all examples, then on each group."""
    model = lighter_models.exported(path, "saved_model", "float32")
    groups = by_length()
    found = [right(model, groups[x]) for x in _GROUPS]
    for part in (np.concatenate(found), *found):
        yield 100 * float(np.mean(part))


def main(_: list[str]) -> None:
    """Makes the missing runs, prints the table and plots it."""
    kinds = [(of_layers, "layers", int(x)) for x in _LAYERS.value]
    kinds += [(of_heads, "heads", int(x)) for x in _HEADS.value]
    runs = trainers()
    sizes = {x: len(examples) for x, examples in by_length().items()}
    groups = [f"up to {x} pieces ({sizes[x]})" for x in _GROUPS]
    print(" | ".join(["", "all", *groups]))
    print("|".join(["---"] * (2 + len(groups))))
    found: dict[str, dict[int, dict[str, float]]] = {}
    for make, name, count in kinds:
        values = np.array([[*accuracies(make(x, count))] for x in runs])
        whole, *parts = means = values.mean(axis=0)
        row = dict(zip(["all", *groups], map(float, means), strict=True))
        found.setdefault(name, {})[count] = row
        cells = [f"{name} {count}", f"{whole:.1f}"]
        if len(values) > 1:
            cells[1] += f" ± {values[:, 0].std(ddof=1):.1f}"
        print(" | ".join([*cells, *(f"{x:.1f}" for x in parts)]), flush=True)
    if _PICTURE.value:
        curves.draw(found, "{}", "accuracy on SST-2's dev set", _PICTURE.value)


if __name__ == "__main__":
    app.run(main)
