r"""Compares a fine-tuned model with every lighter form of it.

    pip install -e '.[litert,onnx,parity,viz]'
    python -m benchmarks.lighter --glue_dir=$GLUE_DIR --vocab_file=$VOCAB \
        --init_checkpoint=$MINILM --picture=/tmp/lighter.png

Each task has a teacher, the fine-tuned --init_checkpoint, and beside it

- every second layer of it, fine-tuned, and distilled;
- half of its feed-forward units, those that matter most, distilled;
- itself with four fifths of its kernels zero;
- TextCNN and BiLSTM with its words' vectors, distilled;
- itself and the distilled layers in int8, of a SavedModel, LiteRT and ONNX
  Runtime.

Prints a table: scores of the exports on dev, the mean of --seeds, where the
teacher has the first of them alone; MB of a folder; and milliseconds of one
thread, from raw text of 32 and of 128 pieces, in turn, of the first task's
models. What is complete in --output_dir is not made again, so the command may
be stopped and repeated.
"""

import argparse
import csv
import dataclasses
import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping

from benchmarks import serving

import numpy as np
from absl import app, flags

_GLUE_DIR = flags.DEFINE_string("glue_dir", None, "Folder.", required=True)
_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "Of any format.", required=True
)
_LAYERS = flags.DEFINE_string("layers", "1,3,5", "Those that are kept.")
_TASKS = flags.DEFINE_list("tasks", ["SST-2", "MRPC"], "Of GLUE.")
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds.")
_FORMS = flags.DEFINE_list("forms", [], "Which; by default all.")
_RUNS = flags.DEFINE_integer("runs", 15, "Whose median time is printed.", 1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/lighter", "Folder.")
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = ("1 x 32", "1 x 128")


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of GLUE, whose score is the accuracy.

    Attributes:
        columns: Of the texts in its files, and of the label.
        labels: As the model names what stands in the file.
        length: Pieces of an example.
        epochs: Of fine-tuning; half of what distillation gets.
    """

    columns: tuple[str, ...]
    labels: Mapping[str, str]
    length: int
    epochs: int


TASKS = {
    "SST-2": Task(("sentence", "label"), {"0": "0", "1": "1"}, 64, 1),
    "MRPC": Task(
        ("#1 String", "#2 String", "Quality"), {"0": "0", "1": "1"}, 96, 3
    ),
    "RTE": Task(
        ("sentence1", "sentence2", "label"),
        {x: x for x in ("entailment", "not_entailment")},
        160,
        3,
    ),
}


@dataclasses.dataclass(frozen=True)
class Form:
    """A model in a form that is served.

    Attributes:
        model: What trains it: a key of MODELS.
        format: That it is exported in, and `weights` how they are kept.
    """

    name: str
    model: str
    format: str = "saved_model"
    weights: str = "float32"


FORMS = [
    Form("teacher", "teacher"),
    Form("teacher, int8", "teacher", weights="int8"),
    Form("teacher, LiteRT int8", "teacher", "litert", "int8"),
    Form("teacher, ONNX Runtime int8", "teacher", "onnx", "int8"),
    Form("pruned to 80 % zeros", "pruned"),
    Form("half of the units, distilled", "units"),
    Form("half of the layers, fine-tuned", "layers"),
    Form("half of the layers, distilled", "distilled"),
    Form("the same, LiteRT int8", "distilled", "litert", "int8"),
    Form("BiLSTM, distilled", "bilstm"),
    Form("TextCNN, distilled", "textcnn"),
]


# ---- Training ----------------------------------------------------------------


def run(script: str, target: pathlib.Path, *options: str) -> None:
    """Runs one of the scripts, whose output goes to a log beside `target`."""
    done = target.parent / f"{target.name}.done"
    if done.exists():
        return
    command = [sys.executable, str(ROOT / script), *options]
    target.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (target.parent / f"{target.name}.log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True)
    print(f"{script} {target}: {time.monotonic() - began:.0f} s", flush=True)
    done.touch()


@dataclasses.dataclass(frozen=True)
class Trainer:
    """Trains the models of one task and seed."""

    name: str
    seed: str

    @property
    def task(self) -> Task:
        """The task of the name."""
        return TASKS[self.name]

    @property
    def data(self) -> list[str]:
        """Flags that say where the data is, and how long a row may be."""
        return [
            f"--task_name={self.name}",
            f"--data_dir={os.path.join(_GLUE_DIR.value, self.name)}",
            f"--max_seq_length={self.task.length}",
        ]

    def folder(self, model: str) -> pathlib.Path:
        """Where a model of this seed is."""
        place = pathlib.Path(_OUTPUT_DIR.value) / self.name
        return place / f"{model}-{self.seed}"

    def train(
        self, model: str, *options: str, rate: float = 5e-5, passes: int = 1
    ) -> pathlib.Path:
        """Trains a classifier; returns its folder."""
        target = self.folder(model)
        run(
            *("run_classifier.py", target, f"--output_dir={target}"),
            *("--do_train", "--do_eval", f"--seed={self.seed}", *self.data),
            *("--train_batch_size=32", f"--learning_rate={rate}"),
            f"--num_train_epochs={passes * self.task.epochs}",
            *("--keep_checkpoint_max=1", *options),
        )
        return target

    def teacher(self) -> pathlib.Path:
        """Trains the model that others learn from: of the first seed."""
        first = dataclasses.replace(self, seed=_SEEDS.value[0])
        start = f"--init_checkpoint={_INIT_CHECKPOINT.value}"
        return first.train("teacher", start)

    def pruned(self) -> pathlib.Path:
        """Trains the teacher's twin, most of whose kernels are zero."""
        start = f"--init_checkpoint={_INIT_CHECKPOINT.value}"
        return self.train("pruned", start, "--prune_to=0.8", passes=2)

    def units(self) -> pathlib.Path:
        """Takes half of the units out of the teacher, and distils."""
        teacher = self.teacher()
        target = self.folder("half")
        run(
            *("shrink_model.py", target, f"--output_path={target}"),
            *("--overwrite", f"--seed={self.seed}", "--keep_intermediate=0.5"),
            *(f"--init_checkpoint={teacher / 'best'}", *self.data),
        )
        start = f"--init_checkpoint={target}"
        return self.train("units", start, f"--teacher={teacher}", passes=2)

    def _kept_layers(self) -> pathlib.Path:
        target = pathlib.Path(_OUTPUT_DIR.value) / "kept_layers"
        run(
            *("convert_checkpoint.py", target, "--output_format=tf1"),
            *(f"--layers={_LAYERS.value}", f"--output_path={target}"),
            f"--input_checkpoint={_INIT_CHECKPOINT.value}",
        )
        return target

    def layers(self) -> pathlib.Path:
        """Fine-tunes some of the layers, for as long as they are distilled."""
        start = f"--init_checkpoint={self._kept_layers()}"
        return self.train("layers", start, passes=2)

    def distilled(self) -> pathlib.Path:
        """Distils the teacher into some of the layers it started from."""
        start = f"--init_checkpoint={self._kept_layers()}"
        teacher = f"--teacher={self.teacher()}"
        return self.train("distilled", start, teacher, passes=2)

    def _student(self, kind: str) -> pathlib.Path:
        teacher = self.teacher()
        return self.train(
            kind,
            f"--bert_config_file={ROOT / 'configs' / 'models' / kind}.json",
            f"--vocab_file={_VOCAB_FILE.value}",
            f"--word_vectors={teacher / 'best'}",
            f"--teacher={teacher}",
            rate=1e-3,
            passes=3,
        )

    def textcnn(self) -> pathlib.Path:
        """Distils the teacher into a TextCNN."""
        return self._student("textcnn")

    def bilstm(self) -> pathlib.Path:
        """Distils the teacher into a BiLSTM."""
        return self._student("bilstm")


# Name -> what trains the model, and returns its folder.
MODELS: Mapping[str, Callable[[Trainer], pathlib.Path]] = {
    "teacher": Trainer.teacher,
    "pruned": Trainer.pruned,
    "units": Trainer.units,
    "layers": Trainer.layers,
    "distilled": Trainer.distilled,
    "bilstm": Trainer.bilstm,
    "textcnn": Trainer.textcnn,
}


# ---- Scores, sizes and times -------------------------------------------------


def exported(form: Form, trainer: Trainer) -> pathlib.Path:
    """Trains a model, and returns the folder of its export."""
    model = MODELS[form.model](trainer)
    target = model.with_name(f"{model.name}-{form.format}-{form.weights}")
    run(
        *("export_saved_model.py", target, f"--model_dir={model}"),
        *(f"--export_dir={target}", f"--format={form.format}"),
        f"--weights={form.weights}",
    )
    return target


def examples(task: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the texts of dev, and their labels."""
    path = os.path.join(_GLUE_DIR.value, task, "dev.tsv")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            *texts, label = (row[name] for name in TASKS[task].columns)
            yield tuple(texts), TASKS[task].labels[label]


def score(path: pathlib.Path, task: str) -> float:
    """Returns the accuracy of an export on dev, in per cent."""
    import bert_tf

    texts, labels = zip(*examples(task), strict=True)
    asked = [x[0] if len(x) == 1 else x for x in texts]
    answers = bert_tf.load(str(path))(asked)
    right = [
        answer["label"] == label
        for answer, label in zip(answers, labels, strict=True)
    ]
    return 100 * float(np.mean(right))


def size(path: pathlib.Path) -> float:
    """Returns what a folder takes, in MB."""
    return sum(x.stat().st_size for x in path.rglob("*") if x.is_file()) / 1e6


def opened(form: Form, path: pathlib.Path) -> serving.Answer:
    """Returns what answers raw texts by an export, on one thread."""
    if form.format == "saved_model":
        return serving.load(path, threads=1)
    settings = argparse.Namespace(vocab_file=_VOCAB_FILE.value, threads=1)
    if form.format == "litert":
        return serving.load_litert(path / "model.tflite", settings)
    return serving.load_onnx(str(path / "model.onnx"), settings)


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
    scores: Mapping[Form, Mapping[str, list[float]]],
    milliseconds: Mapping[Form, list[float]],
    sizes: Mapping[Form, float],
) -> None:
    """Prints the table, as RESULTS.md has it."""
    columns = ["model", *_TASKS.value, "MB", *(f"{x}, ms" for x in SHAPES)]
    print(" | ".join(columns))
    print("|".join(["---"] * len(columns)))
    for form, of_tasks in scores.items():
        row = [form.name]
        for values in of_tasks.values():
            spread = f" ± {np.std(values, ddof=1):.1f}" * (len(values) > 1)
            row.append(f"{np.mean(values):.1f}{spread}")
        row.append(f"{sizes[form]:.1f}")
        row += [f"{x:.2f}" for x in milliseconds[form]]
        print(" | ".join(row))


def draw(
    scores: Mapping[Form, Mapping[str, list[float]]],
    milliseconds: Mapping[Form, list[float]],
    path: str,
) -> None:
    """Writes a picture: score over time, of each task."""
    plots = importlib.import_module("matplotlib.pyplot")
    figure, axes = plots.subplots(
        1,
        len(_TASKS.value),
        figsize=(11, 5),
        layout="constrained",
        squeeze=False,
    )
    for axis, task in zip(axes.flat, _TASKS.value, strict=True):
        for form, of_tasks in scores.items():
            place = milliseconds[form][0], np.mean(of_tasks[task])
            axis.plot(*place, "o")
            axis.annotate(
                form.name,
                place,
                fontsize=8,
                xytext=(4, 4),
                textcoords="offset points",
            )
        axis.set_xscale("log")
        axis.set_xlabel("milliseconds for a text of 32 pieces, one thread")
        axis.set_ylabel(f"accuracy on {task}'s dev set")
        axis.margins(x=0.25)
    figure.savefig(path, dpi=150)


def main(_: list[str]) -> None:
    """Makes what is missing, then scores, times and prints."""
    os.environ[serving.KEEP] = "1"
    chosen = _FORMS.value or [form.name for form in FORMS]
    forms = [form for form in FORMS if form.name in chosen]
    trainers = {
        task: [Trainer(task, seed) for seed in _SEEDS.value]
        for task in _TASKS.value
    }
    paths = {
        form: {
            task: list(dict.fromkeys(exported(form, x) for x in of_seeds))
            for task, of_seeds in trainers.items()
        }
        for form in forms
    }
    first = {form: paths[form][_TASKS.value[0]][0] for form in forms}
    milliseconds = times(first)
    scores = {
        form: {
            task: [score(path, task) for path in of_task]
            for task, of_task in paths[form].items()
        }
        for form in forms
    }
    show(scores, milliseconds, {form: size(first[form]) for form in forms})
    if _PICTURE.value:
        draw(scores, milliseconds, _PICTURE.value)


if __name__ == "__main__":
    app.run(main)
