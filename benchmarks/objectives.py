r"""Compares pre-training objectives at equal work.

    python -m benchmarks.objectives --text=$WIKI --data_dir=$DATA \
        --bert_steps=20000 --picture=/tmp/objectives.png
    python -m benchmarks.objectives --data_dir=$DATA --tasks=SST-2,QNLI \
        --objectives=ltr_no_nsp,random_ltr --init_checkpoint=/tmp/demo/model
    python -m benchmarks.objectives --text=$WIKI --data_dir=$DATA \
        --tasks=SST-2,QNLI --minutes=60

A vocabulary is learned from --text, in WikiExtractor's format. Models of one
size are pre-trained on it from random weights, each with a different objective
and for as many floating-point operations as BERT needs for --bert_steps:

- `bert`: masked words and next sentences;
- `no_nsp`: masked words of single texts;
- `ltr_no_nsp`: the next token, from left to right;
- `ltr_no_nsp_bilstm`: the same weights, with a randomly initialized BiLSTM on
  top in fine-tuning (these four are the rows of the paper's ablations, Devlin
  et al., 2018, section 5.1);
- `ltr_then_bert`: two thirds of the work as `ltr_no_nsp`, then from its weights
  as `bert`;
- `roberta`: masked words of sequences that continue into the next document;
- `electra`: replaced tokens, with a generator of a quarter of the width.

With --minutes, each is pre-trained for this time instead, for as many steps as
its speed allows, which a short run measures. There are then more models:

- `elmo` (a BiLSTM from both ends), `ulmfit` (an AWD-LSTM), `gpt` and `xlnet`:
  language models, pre-trained on the same text;
- `textcnn`, `bilstm`, `esim` (of pairs): from random weights;
- `baselines`: the majority class, and logistic regression on TF-IDF.

Then each is fine-tuned on --tasks, and so are random weights, as two of
--objectives: `random` for BERT, `random_ltr` for a model that reads from left
to right. For each model and task, --rates and --passes (multiples of a task's
epochs) are selected on held-out training examples (for SST-2, whole sentences),
or for docstrings on the dev set, since they are scored on their test set. Then
--seeds runs train on all examples.

With --init_checkpoint, the folder of a run of the specified objective, nothing
is pre-trained, --text is not needed, and random weights have its size.

Prints a table of dev scores, with mean and deviation, of parameters, and of the
minutes of pre-training and of a run of fine-tuning. --picture plots them, and
the loss per token over the work of pre-training. Completed runs in --output_dir
are reused, and an interrupted pre-training resumes, so the command can be
stopped and repeated.
"""

import itertools
import json
import pathlib
import re
from collections.abc import Sequence

from benchmarks import (
    commands,
    objective_sentence_pieces,
    objective_tables,
    small_tasks,
)
from benchmarks.objective_rows import ALL, OBJECTIVES, UNTRAINED, Objective
from benchmarks.small_tasks import TASKS
from bert_tf import files

import numpy as np
from absl import app, flags

_TEXT = flags.DEFINE_string("text", None, "Of WikiExtractor.")
_START = flags.DEFINE_string(
    "init_checkpoint", None, "A run of the objective, in place of pre-training."
)
_DATA_DIR = flags.DEFINE_string("data_dir", None, "Of tasks.", required=True)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/objectives", "Folder.")
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")
_OBJECTIVES = flags.DEFINE_list("objectives", [], "Of these; by default all.")
_MINUTES = flags.DEFINE_float(
    "minutes", None, "Of pre-training each, in place of --bert_steps.", 0
)

_VOCAB_SIZE = flags.DEFINE_integer("vocab_size", 8192, "V.")
_LAYERS = flags.DEFINE_integer("layers", 4, "L.")
_HIDDEN_SIZE = flags.DEFINE_integer("hidden_size", 256, "D; heads have 64.")
_LENGTH = flags.DEFINE_integer("length", 128, "S.")
_BATCH = flags.DEFINE_integer("batch", 64, "B.")
_BERT_STEPS = flags.DEFINE_integer("bert_steps", 20_000, "Of `bert`.")
_TRAINING = flags.DEFINE_list(
    "pretraining_flags", [], "More flags of pre-training, such as --dtype."
)
_LEARNING_RATE = flags.DEFINE_float(
    "learning_rate", None, "Of pre-training; by default each objective's own."
)

_TASKS = flags.DEFINE_list(
    "tasks", ["SST-2", "QNLI", "STS-B", "docstrings"], f"{[*TASKS]}."
)
_FINE_TUNING = flags.DEFINE_list(
    "finetuning_flags", [], "More flags of fine-tuning, such as --dtype."
)
_RATES = flags.DEFINE_list("rates", ["1e-4", "3e-4"], "Of fine-tuning.")
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Of fine-tuning.")
_MAX_TRAIN_EXAMPLES = flags.DEFINE_integer(
    "max_train_examples", 20_000, "Of each task.", 1
)
_PASSES = flags.DEFINE_list("passes", ["1", "2"], "Times a task's epochs.")

_MASKED_SHARE = 0.15
_FIRST_SHARE = 2 / 3  # of the work, if there are two objectives
_PROBE_STEPS = 40  # of the run that measures the speed
_BASELINES = "baselines"
# Keys of metrics.jsonl; a run has one of them.
_LOSSES = ("masked_lm_loss", "next_piece_loss", "permuted_words_loss")


# ---- Pre-training ------------------------------------------------------------


def folder() -> pathlib.Path:
    """Returns the output folder."""
    return pathlib.Path(_OUTPUT_DIR.value)


def vocabulary(objective: Objective) -> str:
    """Learns the vocabulary of an objective; returns its flag."""
    if _START.value:
        return f"--vocab_file={_START.value}/vocab.txt"
    target = folder() / objective.vocabulary
    if target.suffix == ".model":
        size = _VOCAB_SIZE.value
        objective_sentence_pieces.learn(str(_TEXT.value), target, size)
    else:
        commands.run(
            *("learn_vocabulary.py", target, f"--vocab_file={target}"),
            *(f"--input_file={_TEXT.value}", "--input_format=wikiextractor"),
            *(f"--vocab_size={_VOCAB_SIZE.value}", "--num_unused=0"),
        )
    return f"--vocab_file={target}"


def model_sizes() -> dict[str, int]:
    """Returns the config keys of the model's size."""
    size = _HIDDEN_SIZE.value
    of_flags = {
        "vocab_size": _VOCAB_SIZE.value,
        "hidden_size": size,
        "num_hidden_layers": _LAYERS.value,
        "num_attention_heads": size // 64,
        "intermediate_size": 4 * size,
        "max_position_embeddings": _LENGTH.value,
        "type_vocab_size": 2,
    }
    if not _START.value:
        return of_flags
    own = json.loads(pathlib.Path(_START.value, "bert_config.json").read_text())
    return {key: own[key] for key in of_flags}


def write_config(name: str, dropout: float) -> str:
    """Writes the config of an objective; returns its flag.

    With so little text, pre-training needs no dropout; tasks have even less
    text.
    """
    objective = ALL[name]
    # Configs of the original have no model_type; Hugging Face's have one.
    is_bert = objective.family == "bert"
    config = {
        **({} if is_bert else {"model_type": objective.family}),
        **objective.config(model_sizes(), dropout),
    }
    path = folder() / f"{name}_{dropout}.json"
    text = json.dumps(config, indent=1)
    commands.check_same(path, text)
    # A parallel run with other objectives may be reading the file.
    if not path.exists() or path.read_text() != text:
        files.write_text(path, text)
    return f"--bert_config_file={path}"


def records(objective: Objective) -> pathlib.Path:
    """Creates the records of an objective, once for equal flags."""
    kind = pathlib.Path(objective.vocabulary).stem
    name = "_".join(["records", kind, objective.segments, *objective.masks[:1]])
    target = folder() / name.replace("--", "").replace("=", "_")
    commands.run(
        *("create_pretraining_data.py", target, f"--output_dir={target}"),
        *(f"--input_file={_TEXT.value}", "--input_format=wikiextractor"),
        *(f"--objective={objective.segments}", *objective.masks),
        *("--dynamic_masking=true", "--dupe_factor=1", vocabulary(objective)),
        f"--max_seq_length={_LENGTH.value}",
        f"--max_predictions_per_seq={predictions()}",
    )
    return target


def predictions() -> int:
    """Returns the number of masked words per sequence."""
    return round(_MASKED_SHARE * _LENGTH.value)


def flops(name: str) -> float:
    """Returns the operations for a sequence without padding."""
    from bert_tf.encoders import families
    from bert_tf.training import accelerators

    path = write_config(name, 0.0).partition("=")[2]
    config = families.read_config(path)
    length = _LENGTH.value
    sizes = 1, length, length**2
    generator = families.find(config).generator
    if generator is not None:
        return accelerators.replaced_tokens_flops(
            config, generator.config(config), *sizes, predictions()
        )
    if config.pretraining_head == "next_piece":
        return accelerators.training_flops(config, *sizes, length - 1, True)
    return accelerators.training_flops(config, *sizes, predictions())


def pretrained(name: str, share: float = 1) -> pathlib.Path:
    """Pre-trains for a share of the work; returns the folder of the run."""
    if _START.value:
        return pathlib.Path(_START.value)
    target = folder() / name / ("pretrained" if share == 1 else f"{share:.2f}")
    start: list[str] = []
    after = OBJECTIVES[name].after
    if after:
        first = pretrained(after, share * _FIRST_SHARE)
        share *= 1 - _FIRST_SHARE
        start.append(f"--init_checkpoint={first}")
    if _MINUTES.value:
        work = share * _MINUTES.value * 60
        steps = max(1, round(work * speed(name) / _BATCH.value))
    else:
        work = share * _BERT_STEPS.value * flops("bert")
        steps = round(work / flops(name))
    pretrain(name, target, steps, "--log_steps=100", *start)
    return target


def pretrain(
    name: str, target: pathlib.Path, steps: int, *options: str
) -> None:
    """Pre-trains for some steps."""
    objective = OBJECTIVES[name]
    rate = _LEARNING_RATE.value or objective.learning_rate
    commands.run(
        *("run_pretraining.py", target, f"--output_dir={target}"),
        *("--do_train", write_config(name, 0.0), vocabulary(objective)),
        *(*options, f"--input_file={records(objective)}/*.tfrecord"),
        *(f"--train_batch_size={_BATCH.value}", f"--num_train_steps={steps}"),
        *(f"--num_warmup_steps={steps // 20}", f"--learning_rate={rate}"),
        *("--save_checkpoints_steps=1000", "--keep_checkpoint_max=2"),
        *_TRAINING.value,
    )


def speed(name: str) -> float:
    """Returns the sequences/s of pre-training."""
    target = folder() / name / "speed"
    pretrain(name, target, _PROBE_STEPS, f"--log_steps={_PROBE_STEPS // 4}")
    lines = (target / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line)["sequences_per_second"] for line in lines]
    return float(np.median(found[1:]))


# ---- Fine-tuning -------------------------------------------------------------


def run_of(
    name: str, task: str, rate: str, passes: str, seed: str, *, is_trial: bool
) -> pathlib.Path:
    """Returns the folder of a run of fine-tuning."""
    run = f"{'trial' * is_trial}{rate}-{passes}-{seed}"
    return folder() / name / task / run


def fine_tuned(
    name: str, task: str, rate: str, passes: str, seed: str, *, is_trial: bool
) -> float:
    """Fine-tunes a model; returns its score in percent.

    A trial holds out some of the training examples, and is scored on them.
    """
    target = run_of(name, task, rate, passes, seed, is_trial=is_trial)
    start = [write_config(name, 0.1), vocabulary(ALL[name])]
    start.extend(ALL[name].fine_tuning)
    if name not in UNTRAINED:
        learned = OBJECTIVES[name].starts_from or name
        start.append(f"--init_checkpoint={pretrained(learned)}")
    commands.run(
        *("run_classifier.py", target, f"--output_dir={target}"),
        *("--do_train", "--do_eval", "--use_checkpoint=last", *start),
        *(*tables(task, is_trial), f"--seed={seed}"),
        *("--train_batch_size=32", f"--learning_rate={rate}"),
        *("--eval_batch_size=64", "--keep_checkpoint_max=1"),
        f"--num_train_epochs={float(passes) * TASKS[task].epochs}",
        *_FINE_TUNING.value,
    )
    lines = (target / "eval_results.txt").read_text().splitlines()
    results = dict(line.split(" = ") for line in lines)
    return 100 * float(results[TASKS[task].metric])


def tables(name: str, is_trial: bool) -> list[str]:
    """Writes the tables of a task; returns the flags that describe them."""
    count = _MAX_TRAIN_EXAMPLES.value
    return small_tasks.tables(name, _DATA_DIR.value, count, folder(), is_trial)


def scores(name: str, task: str) -> tuple[list[float], list[pathlib.Path]]:
    """Returns the scores and runs of all seeds, with the best settings."""
    if ALL[name].needs_pairs and len(TASKS[task].columns) < 3:
        return [], []
    own = [] if _RATES.present else ALL[name].rates
    choices = [*itertools.product(own or _RATES.value, _PASSES.value)]
    best = choices[0]
    if len(choices) > 1:
        trials = {
            how: fine_tuned(name, task, *how, "0", is_trial=True)
            for how in choices
        }
        best = max(trials, key=trials.__getitem__)
        print(f"{name}, {task}: {trials}", flush=True)
    runs = [(name, task, *best, seed) for seed in _SEEDS.value]
    return (
        [fine_tuned(*run, is_trial=False) for run in runs],
        [run_of(*run, is_trial=False) for run in runs],
    )


def baselines(task: str) -> dict[str, float]:
    """Returns the scores of models without a neural network, by name."""
    target = folder() / _BASELINES / task
    commands.run(
        *("run_classifier.py", target, f"--output_dir={target}"),
        *("--do_train", "--do_eval", f"--{_BASELINES}"),
        *(write_config("textcnn", 0.1), vocabulary(ALL["textcnn"])),
        *tables(task, False),
        # The script also trains a model, which is not used.
        *("--num_train_epochs=1", "--keep_checkpoint_max=1"),
    )
    lines = (target / "baselines.txt").read_text().splitlines()
    names, *rows = (re.split(r"\s{2,}", line) for line in lines)
    column = names.index(TASKS[task].metric.removeprefix("eval_"))
    return {row[0]: 100 * float(row[column]) for row in rows[:-1]}


# ---- Output ------------------------------------------------------------------


def learning_curve(name: str) -> dict[float, float]:
    """Returns the loss in nats per predicted token, by the share of the work.

    For ELECTRA, these are the tokens that its generator predicts. Exits if no
    loss is recorded.
    """
    objective = OBJECTIVES[name]
    file = pretrained(name) / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    done = _FIRST_SHARE if objective.after else 0.0
    found = {
        line["step"]: line[key]
        for line in lines
        for key in _LOSSES
        if key in line
    }
    if not found:
        raise SystemExit(
            f"error: {file} has no loss to plot: leave out --picture. "
            f"Expected: {' or '.join(_LOSSES)}"
        )
    last = lines[-1]["step"]
    return {done + (1 - done) * x / last: loss for x, loss in found.items()}


def minutes(runs: Sequence[pathlib.Path], count: int = 1) -> str:
    """Returns the minutes of all runs, divided by `count`; "–" if unknown."""
    seconds = [commands.seconds(run) for run in runs]
    return f"{sum(seconds) / 60 / count:.1f}" if all(seconds) else "–"


def costs(name: str, runs: list[pathlib.Path]) -> list[str]:
    """Returns parameters, and minutes of pre-training and of fine-tuning."""
    log = (runs[0].parent / f"{runs[0].name}.log").read_text()
    (count, *_) = re.findall(r"Model: ([\d,]+) parameters", log)
    tuned = minutes(runs, len(runs))
    if name in UNTRAINED:
        return [count, "0", tuned]
    learned = OBJECTIVES[name].starts_from or name
    parts, after = [pretrained(learned)], OBJECTIVES[learned].after
    if after and not _START.value:
        parts.append(pretrained(after, _FIRST_SHARE))
    return [count, minutes(parts), tuned]


def check_input() -> None:
    """Exits if inputs are missing, before hours of work."""
    names = (_OBJECTIVES, [*ALL, _BASELINES]), (_TASKS, [*TASKS])
    for flag, known in names:
        for name in flag.value:
            if name not in known:
                raise SystemExit(
                    f"error: --{flag.name} takes {', '.join(known)}. "
                    f"Received: {name}"
                )
    if not _START.value and not _TEXT.value:
        raise SystemExit(
            "error: give --text to pre-train on, or the folder of a run as "
            "--init_checkpoint."
        )
    timed = [x for x in _OBJECTIVES.value if x in ALL and ALL[x].needs_minutes]
    if timed and not _MINUTES.value:
        raise SystemExit(
            "error: --objectives has models that are compared at equal time "
            f"only: give --minutes. Received: {', '.join(timed)}"
        )
    for flag in (_RATES, _PASSES):
        try:
            [float(value) for value in flag.value]
        except ValueError:
            raise SystemExit(
                f"error: --{flag.name} takes numbers. Received: {flag.value}"
            ) from None
    start = pathlib.Path(_START.value or ".")
    missing = [
        name
        for name in ("bert_config.json", "vocab.txt")
        if _START.value and not (start / name).exists()
    ]
    if missing:
        raise SystemExit(
            "error: --init_checkpoint is the folder of a run of "
            f"run_pretraining.py, with its {missing[0]}. Received: {start}"
        )
    trained = [x for x in _OBJECTIVES.value if x in OBJECTIVES]
    if _START.value and len(trained) != 1:
        raise SystemExit(
            "error: --init_checkpoint is of one of --objectives, beside which "
            f"there may be {', '.join(UNTRAINED)}. Received: objectives="
            f"{_OBJECTIVES.value}"
        )
    places = model_sizes()["max_position_embeddings"]
    for name in _TASKS.value:
        if TASKS[name].length > places:
            raise SystemExit(
                f"error: {name} has {TASKS[name].length} tokens per example: "
                f"leave it out, or raise --length. Received: {places}"
            )
        for split in ("train", TASKS[name].scored):
            path = small_tasks.source(TASKS[name], _DATA_DIR.value, split)
            # The files of docstrings are generated.
            if name != "docstrings" and not path.exists():
                raise SystemExit(f"error: there is no {path}, of {name}.")


def main(_: list[str]) -> None:
    """Makes the missing runs, then prints the table."""
    check_input()
    usual = [x for x in ALL if _MINUTES.value or not ALL[x].needs_minutes]
    chosen = _OBJECTIVES.value or [*[_BASELINES] * bool(_MINUTES.value), *usual]
    found: dict[str, dict[str, list[float]]] = {}
    columns: dict[str, list[str]] = {}
    for name in chosen:
        if name == _BASELINES:
            for task in _TASKS.value:
                for row, score in baselines(task).items():
                    found.setdefault(row, {})[task] = [score]
            continue
        both = {task: scores(name, task) for task in _TASKS.value}
        found[name] = {task: values for task, (values, _) in both.items()}
        runs = [run for _, own in both.values() for run in own]
        columns[name] = costs(name, runs) if runs else []
    objective_tables.show(found, columns)
    if _PICTURE.value:
        curves = {
            name: learning_curve(name)
            for name in found
            if name in OBJECTIVES and not OBJECTIVES[name].starts_from
        }
        objective_tables.draw(found, curves, _PICTURE.value)


if __name__ == "__main__":
    app.run(main)
