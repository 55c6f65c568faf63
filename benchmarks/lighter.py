r"""Compares a fine-tuned model with every lighter form of it.

    pip install -e '.[litert,onnx,parity,viz]'
    python -m benchmarks.lighter --data_dir=$BERT_TF_TEST_DATA \
        --vocab_file=$VOCAB --init_checkpoint=$MINILM \
        --picture=/tmp/lighter.png

Each of --tasks has a teacher, the fine-tuned --init_checkpoint, and

- every second layer of it, fine-tuned (`layers`); the teacher's own layers,
  distilled (`distilled`), or first distilled on --text for half an hour by
  MiniLM's relations (`distilled_text`);
- its most important half of the feed-forward units, distilled (`units`);
- a twin trained with four fifths of its kernel weights zero (`pruned`);
- TextCNN and BiLSTM with random embeddings, with the teacher's embeddings
  (`_words`), and also distilled (`textcnn`, `bilstm`);
- the teacher and the distilled layers in int8, as SavedModel, and for LiteRT
  and ONNX Runtime.

--forms selects among these. The data are GLUE's files and the SMS Spam
Collection, in folders named glue and spam; of a training set, the first
--max_train_examples are used. All but the teacher are trained for twice its
epochs, and once for each of --seeds.

Prints a table: dev scores of the exports, mean and deviation over seeds; MB of
a folder; and milliseconds of CPU time on one thread, from raw text, for the
models of the first task in turn: SavedModels with their own tokenizer, others
with the tokenizer of the Rust library `tokenizers`. Completed runs in
--output_dir are reused, so the command can be stopped and repeated.
"""

import dataclasses
import importlib
import os
import pathlib
import statistics
from collections.abc import Mapping

from benchmarks import lighter_models, serving, small_tasks
from benchmarks.lighter_models import MODELS, Trainer
from benchmarks.small_tasks import TASKS
from bert_tf.errors import InputError

import numpy as np
from absl import app, flags

_DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder.", required=True)
_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "Of any format.", required=True
)
_LAYERS = flags.DEFINE_string("layers", "1,3,5", "Those that are kept.")
_TASKS = flags.DEFINE_list("tasks", ["SST-2", "MRPC"], f"Of {list(TASKS)}.")
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds.")
_TEXT = flags.DEFINE_string(
    "text", None, "Of WikiExtractor, which `distilled_text` learns from."
)
_FORMS = flags.DEFINE_list("forms", [], "Which; by default all.")
_MAX_TRAIN_EXAMPLES = flags.DEFINE_integer(
    "max_train_examples", 20_000, "Of each task.", 1
)
_TRAINING = flags.DEFINE_list(
    "training_flags", [], "More flags of every training, with commas between."
)
_RUNS = flags.DEFINE_integer("runs", 15, "Whose median time is printed.", 1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/lighter", "Folder.")
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")

SHAPES = ("1 x 32", "1 x 128", "32 mixed")


@dataclasses.dataclass(frozen=True)
class Form:
    """A model in a form that is served.

    Attributes:
        name: Name in the table.
        model: How it is trained: a key of MODELS.
        format: Its export format; `weights` is the storage of its weights.
    """

    name: str
    model: str
    format: str = "saved_model"
    weights: str = "float32"


FORMS = {
    "teacher": Form("teacher", "teacher"),
    "teacher_int8": Form("teacher, int8", "teacher", weights="int8"),
    "teacher_litert": Form("teacher, LiteRT int8", "teacher", "litert", "int8"),
    "teacher_onnx": Form(
        "teacher, ONNX Runtime int8", "teacher", "onnx", "int8"
    ),
    "pruned": Form("80 % zeros", "pruned"),
    "units": Form("half of the units, distilled", "units"),
    "layers": Form("half of the layers, fine-tuned", "layers"),
    "distilled": Form("half of the layers, distilled", "distilled"),
    "distilled_text": Form(
        "half of the layers, distilled on text, then on the task",
        "distilled_text",
    ),
    "distilled_litert": Form(
        "those distilled, LiteRT int8", "distilled", "litert", "int8"
    ),
    "bilstm": Form("BiLSTM, distilled", "bilstm"),
    "bilstm_words": Form("BiLSTM, teacher's words", "bilstm_words"),
    "bilstm_random": Form("BiLSTM, random words", "bilstm_random"),
    "textcnn": Form("TextCNN, distilled", "textcnn"),
    "textcnn_words": Form("TextCNN, teacher's words", "textcnn_words"),
    "textcnn_random": Form("TextCNN, random words", "textcnn_random"),
}

# Form -> task -> scores by seed.
Scores = Mapping[Form, Mapping[str, list[float]]]


def score(path: pathlib.Path, task: small_tasks.Task) -> float:
    """Returns dev accuracy, or Spearman's correlation, in percent."""
    import bert_tf

    from scipy import stats

    found = small_tasks.examples(task, _DATA_DIR.value, "dev")
    texts, labels = zip(*found, strict=True)
    asked = [x[0] if len(x) == 1 else x for x in texts]
    answers = bert_tf.load(str(path))(asked)
    if task.regression:
        scores = [answer["score"] for answer in answers]
        return 100 * float(stats.spearmanr(scores, np.array(labels, float))[0])
    right = [
        answer["label"] == label
        for answer, label in zip(answers, labels, strict=True)
    ]
    return 100 * float(np.mean(right))


def opened(form: Form, path: pathlib.Path) -> serving.Answer:
    """Returns a function that answers raw texts by an export, on one thread."""
    if form.format == "saved_model":
        return serving.load(path, threads=1)
    tokenize = serving.tokenizer(_VOCAB_FILE.value)
    if form.format == "litert":
        return serving.load_litert(path / "model.tflite", tokenize, threads=1)
    return serving.load_onnx(path / "model.onnx", tokenize, threads=1)


def times(forms: Mapping[Form, pathlib.Path]) -> dict[Form, list[float]]:
    """Returns the milliseconds of each form, for each of SHAPES."""
    words = serving.read_words(_VOCAB_FILE.value)
    models = {form: opened(form, path) for form, path in forms.items()}
    found: dict[Form, list[float]] = {form: [] for form in forms}
    for shape in SHAPES:
        texts = serving.make_texts(words, serving.SHAPES[shape])
        took = serving.times_in_turn(models, texts, _RUNS.value)
        for form, seconds in took.items():
            found[form].append(1000 * statistics.median(seconds))
    return found


# ---- The table ---------------------------------------------------------------


def show(
    scores: Scores,
    milliseconds: Mapping[Form, list[float]],
    sizes: Mapping[Form, float],
) -> None:
    """Prints the table in the format of RESULTS.md."""
    columns = ["", *_TASKS.value, "MB", *(f"{x}, ms" for x in SHAPES)]
    print(" | ".join(columns))
    print("|".join(["---"] * len(columns)))
    for form, of_tasks in scores.items():
        row = [form.name]
        for values in of_tasks.values():
            row.append(f"{np.mean(values):.1f}")
            if len(values) > 1:
                row[-1] += f" ± {np.std(values, ddof=1):.1f}"
        row.append(f"{sizes[form]:.1f}")
        row += [f"{x:.2f}" for x in milliseconds[form]]
        print(" | ".join(row))


def draw(
    scores: Scores, milliseconds: Mapping[Form, list[float]], path: str
) -> None:
    """Plots the score over the time, for each task."""
    plots = importlib.import_module("matplotlib.pyplot")
    figure, axes = plots.subplots(
        1,
        len(_TASKS.value),
        figsize=(12, 4),
        layout="constrained",
        squeeze=False,
    )
    colors = plots.get_cmap("tab20").colors
    for axis, task in zip(axes.flat, _TASKS.value, strict=True):
        for color, (form, of_tasks) in zip(
            colors, scores.items(), strict=False
        ):
            place = milliseconds[form][0], np.mean(of_tasks[task])
            axis.plot(*place, "o", color=color, markersize=9, label=form.name)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("milliseconds for a text of 32 pieces, one thread")
        axis.set_ylabel(f"score on {task}'s dev set")
        axis.grid(alpha=0.3)
    points, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(points, names, loc="outside right center")
    figure.savefig(path, dpi=100)


def trainers(task: str) -> list[Trainer]:
    """Returns a trainer of a task's models for each seed."""
    folder = pathlib.Path(_OUTPUT_DIR.value) / task
    data = small_tasks.write_first(
        *(TASKS[task], _DATA_DIR.value, _MAX_TRAIN_EXAMPLES.value),
        folder / "train.tsv",
    )
    return [
        Trainer(
            task=TASKS[task],
            folder=folder,
            data=data,
            seed=seed,
            first=_SEEDS.value[0],
            start=_INIT_CHECKPOINT.value,
            vocab_file=_VOCAB_FILE.value,
            layers=_LAYERS.value,
            text=_TEXT.value or "",
            options=_TRAINING.value,
        )
        for seed in _SEEDS.value
    ]


def main(_: list[str]) -> None:
    """Makes the missing models, then scores, times and prints."""
    if len(TASKS[_TASKS.value[0]].columns) > 2:
        raise InputError(
            "The first of --tasks must be one of single texts, such as SST-2: "
            f"it is the one that is timed. Received: {_TASKS.value[0]}"
        )
    forms = [FORMS[name] for name in _FORMS.value or FORMS]
    paths: dict[Form, dict[str, list[pathlib.Path]]] = {x: {} for x in forms}
    for task in _TASKS.value:
        for trainer in trainers(task):
            for form in forms:
                model = MODELS[form.model](trainer)
                path = lighter_models.exported(model, form.format, form.weights)
                found = paths[form].setdefault(task, [])
                if path not in found:
                    found.append(path)
    first = {form: paths[form][_TASKS.value[0]][0] for form in forms}
    # Only now, because training must not cache constant weights.
    os.environ[serving.KEEP] = "1"
    milliseconds = times(first)
    scores = {
        form: {
            task: [score(path, TASKS[task]) for path in of_task]
            for task, of_task in paths[form].items()
        }
        for form in forms
    }
    sizes = {form: lighter_models.size(first[form]) for form in forms}
    show(scores, milliseconds, sizes)
    if _PICTURE.value:
        draw(scores, milliseconds, _PICTURE.value)


if __name__ == "__main__":
    app.run(main)
