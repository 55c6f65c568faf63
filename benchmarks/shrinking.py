"""Compares shrinking a model by importance with shrinking it at random.

    python -m benchmarks.shrinking --init_checkpoint=/tmp/sst2_output/best \
        --data=--task_name=SST-2,--data_dir=$GLUE_DIR/SST-2

The model is a fine-tuned classifier, and --data has run_classifier.py's flags
for its data, separated by commas. shrink_model.py measures the importance once
for each seed, which draws the examples. Then for each fraction of feed-forward
units (--shares) and each number of layers (--layers), parts are kept by
importance or at random, or the lowest layers are kept. Each model is scored on
the dev set as it is, and after --epochs of fine-tuning with the full model as
teacher. Prints a row for each: mean and deviation of the score over the seeds.
The command can be stopped and repeated: completed runs are reused.
"""

import itertools
import json
import pathlib

from benchmarks import commands
from bert_tf.checkpoints import formats, opened, smaller
from bert_tf.errors import InputError
from bert_tf.training import importance

import numpy as np
from absl import app, flags

_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "The fine-tuned classifier.", required=True
)
_DATA = flags.DEFINE_list("data", None, "Flags of the data.", required=True)
_METRIC = flags.DEFINE_string("metric", "eval_accuracy", "Of eval_results.txt.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/shrinking", "Folder.")
_SHARES = flags.DEFINE_list("shares", ["0.75", "0.5", "0.25"], "Of the units.")
_LAYERS = flags.DEFINE_list("layers", ["4", "3", "2"], "Numbers of layers.")
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds.")
_EPOCHS = flags.DEFINE_float("epochs", 1, "Of fine-tuning again; 0: none.", 0)
_RATE = flags.DEFINE_float("learning_rate", 5e-5, "Of fine-tuning again.")
_LENGTH = flags.DEFINE_integer("max_seq_length", 64, "Tokens per example.")
_EXAMPLES = flags.DEFINE_integer("max_examples", 4096, "To measure on.")


def run(script: str, target: pathlib.Path, *options: str) -> None:
    """Runs a script on the data, unless it has completed before."""
    length = f"--max_seq_length={_LENGTH.value}"
    commands.run(script, target, *options, *_DATA.value, length)


def measured(
    folder: pathlib.Path, layers: int, seed: int
) -> importance.Importance:
    """Returns the importance from shrink_model.py, with all layers."""
    target = folder / f"measured-{seed}"
    run(
        *("shrink_model.py", target, f"--output_path={target}", "--overwrite"),
        *(f"--init_checkpoint={_INIT_CHECKPOINT.value}", f"--seed={seed}"),
        f"--max_examples={_EXAMPLES.value}",
        f"--num_hidden_layers={layers}",
    )
    said = json.loads((target / "importance.json").read_text())
    return importance.Importance(
        np.array(said["layers"]["importance"]),
        np.array([block["importance"] for block in said["units"]]),
    )


def scored(start: str, target: pathlib.Path, seed: int) -> tuple[float, float]:
    """Returns the score of a model before and after fine-tuning."""
    options = [
        *("--do_eval=true", f"--init_checkpoint={start}", f"--seed={seed}"),
        *("--eval_batch_size=64", "--use_checkpoint=last"),
    ]
    trains = [
        *("--do_train=true", f"--num_train_epochs={_EPOCHS.value}"),
        *(f"--learning_rate={_RATE.value}", "--keep_checkpoint_max=1"),
        *(f"--teacher={_INIT_CHECKPOINT.value}", "--keep_teacher_logits=false"),
    ]
    plain, again = (target.with_name(f"{target.name}-{x}") for x in "pa")
    run("run_classifier.py", plain, f"--output_dir={plain}", *options)
    if _EPOCHS.value:
        options += [*trains, f"--output_dir={again}"]
        run("run_classifier.py", again, *options)
    return score(plain), score(again)


def score(folder: pathlib.Path) -> float:
    """Returns the metric that a run wrote, in percent."""
    path = folder / "eval_results.txt"
    if not path.exists():
        return np.nan
    results = dict(x.split(" = ") for x in path.read_text().splitlines())
    return 100 * float(results[_METRIC.value])


def some_of(count: int, kept: int, seed: int) -> tuple[int, ...]:
    """Draws `kept` of `count` indices, in ascending order."""
    drawn = np.random.default_rng(seed).permutation(count)[:kept]
    return tuple(sorted(map(int, drawn)))


def of_units(
    source: opened.Checkpoint,
    found: importance.Importance,
    share: str,
    seed: int,
) -> dict[str, opened.Checkpoint]:
    """Returns models with a fraction of the units."""
    blocks, count = found.units.shape
    kept = round(float(share) * count)
    chosen = [importance.most_important(x, kept) for x in found.units]
    drawn = [some_of(count, kept, 1000 * seed + i) for i in range(blocks)]
    return {
        "importance": smaller.keep_units(source, chosen),
        "random": smaller.keep_units(source, drawn),
    }


def of_layers(
    source: opened.Checkpoint,
    found: importance.Importance,
    kept: str,
    seed: int,
) -> dict[str, opened.Checkpoint]:
    """Returns models with some of the layers."""
    count = len(found.layers)
    chosen = importance.most_important(found.layers, int(kept))
    print(f"seed {seed}, {kept} layers by importance: {chosen}")
    return {
        "importance": smaller.keep_layers(source, chosen),
        "random": smaller.keep_layers(source, some_of(count, int(kept), seed)),
        "lowest": smaller.keep_layers(source, range(int(kept))),
    }


def main(_: list[str]) -> None:
    """Makes the missing runs, then prints the table."""
    folder = pathlib.Path(_OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    source = formats.open_checkpoint(_INIT_CHECKPOINT.value)
    if source.config is None:
        raise InputError(f"{source.path} has no config beside it.")
    layers = source.config.num_hidden_layers
    table: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in map(int, _SEEDS.value):
        found = measured(folder, layers, seed)
        for kind, value in itertools.chain(
            (("units", x) for x in _SHARES.value),
            (("layers", x) for x in _LAYERS.value),
        ):
            make = of_units if kind == "units" else of_layers
            for how, model in make(source, found, value, seed).items():
                target = folder / f"{kind}-{value}-{how}-{seed}"
                if not target.exists():
                    formats.write(str(target), "tf1", model)
                row = table.setdefault((f"{kind} {value}", how), [])
                row.append(scored(str(target), target, seed))
    whole = scored(_INIT_CHECKPOINT.value, folder / "whole", 1)
    print(f"{'whole':24} {whole[0]:.1f}   again {whole[1]:.1f}")
    for (kept, how), values in table.items():
        means = np.mean(values, axis=0)
        spreads = np.std(values, axis=0, ddof=min(1, len(values) - 1))
        line = f"{kept:12} {how:11} {means[0]:.1f} ± {spreads[0]:.1f}"
        if _EPOCHS.value:
            line += f"   again {means[1]:.1f} ± {spreads[1]:.1f}"
        print(line)


if __name__ == "__main__":
    app.run(main)
