"""Fine-tunes a model on a task, and everything that is lighter than it.

All is done by the scripts, as a user would do it, and what is complete is not
made again: benchmarks.lighter may be stopped and repeated.
"""

import csv
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Texts of an example, and its label or score.
Example = tuple[tuple[str, ...], str]


@dataclasses.dataclass(frozen=True)
class Task:
    """Texts and their labels, in a table of tabs with a header.

    Attributes:
        folder: Under --data_dir; with train.tsv and dev.tsv, unless `file` is
            given: then every tenth line of that is dev.
        columns: Of the texts, and of the label.
        length: Pieces of an example.
        epochs: Of fine-tuning the teacher; all others have twice as many.
    """

    folder: str
    columns: tuple[str, ...]
    length: int
    epochs: int
    regression: bool = False
    file: str = ""


TASKS = {
    "SST-2": Task("glue/SST-2", ("sentence", "label"), 64, 2),
    "MRPC": Task("glue/MRPC", ("#1 String", "#2 String", "Quality"), 96, 3),
    "STS-B": Task(
        "glue/STS-B", ("sentence1", "sentence2", "score"), 96, 3, True
    ),
    "RTE": Task("glue/RTE", ("sentence1", "sentence2", "label"), 160, 3),
    "spam": Task("spam", ("SMS", "Label"), 64, 1, file="SMSSpamCollection"),
}


# ---- Data --------------------------------------------------------------------


def _read(path: pathlib.Path, columns: tuple[str, ...]) -> Iterator[Example]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            *texts, label = (row[name] for name in columns)
            yield tuple(texts), label


def examples(task: Task, data_dir: str, split: str) -> Iterator[Example]:
    """Yields the examples of `train` or `dev`."""
    folder = pathlib.Path(data_dir) / task.folder
    if not task.file:
        yield from _read(folder / f"{split}.tsv", task.columns)
        return
    for number, example in enumerate(_read(folder / task.file, task.columns)):
        if (number % 10 == 0) == (split == "dev"):
            yield example


def _write(rows: Iterator[Example], path: pathlib.Path, most: int) -> None:
    """Writes the first rows as text_a, text_b and label, with a header."""
    names = ("text_a", "text_b")
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, (texts, label) in enumerate(rows):
            if number == most:
                break
            if not number:
                header = *names[: len(texts)], "label"
                file.write("\t".join(header) + "\n")
            file.write("\t".join((*texts, label)) + "\n")


def write_data(
    task: Task, data_dir: str, target: pathlib.Path, most: int
) -> list[str]:
    """Writes the file that models learn from; returns flags that tell it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(examples(task, data_dir, "train"), target, most)
    flags = [
        f"--train_file={target}",
        *("--text_a_column=text_a", "--label_column=label"),
        f"--max_seq_length={task.length}",
        f"--regression={task.regression}",
    ]
    if len(task.columns) == 3:
        flags.append("--text_b_column=text_b")
    return flags


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
    """Trains the models of one task and seed.

    Attributes:
        folder: Of all models of the task.
        data: Flags that say where its data is, and how long a row may be.
        first: The seed of the teacher, of which there is one.
        start: The checkpoint that the teacher starts from, of any format.
        vocab_file: Its vocabulary.
        layers: Those that smaller models keep, as in `1,3,5`.
    """

    task: Task
    folder: pathlib.Path
    data: list[str]
    seed: str
    first: str
    start: str
    vocab_file: str
    layers: str

    def path(self, model: str) -> pathlib.Path:
        """Where a model of this seed is."""
        return self.folder / f"{model}-{self.seed}"

    def train(
        self, model: str, *options: str, rate: float = 1e-4, passes: int = 2
    ) -> pathlib.Path:
        """Trains a classifier; returns its folder."""
        target = self.path(model)
        run(
            *("run_classifier.py", target, f"--output_dir={target}"),
            *("--do_train", f"--seed={self.seed}", *self.data),
            *("--train_batch_size=32", f"--learning_rate={rate}"),
            f"--num_train_epochs={passes * self.task.epochs}",
            *("--keep_checkpoint_max=1", *options),
        )
        return target

    def kept_layers(self, name: str, source: object) -> str:
        """Takes layers out of a checkpoint; returns the flag of the rest."""
        target = self.folder / name
        run(
            *("convert_checkpoint.py", target, "--output_format=tf1"),
            *(f"--layers={self.layers}", f"--output_path={target}"),
            f"--input_checkpoint={source}",
        )
        return f"--init_checkpoint={target}"


def teacher(of: Trainer) -> pathlib.Path:
    """Fine-tunes the model that others learn from, with the first seed."""
    first = dataclasses.replace(of, seed=of.first)
    start = f"--init_checkpoint={of.start}"
    return first.train("teacher", start, rate=5e-5, passes=1)


def layers(of: Trainer) -> pathlib.Path:
    """Fine-tunes some of the layers that the teacher started from."""
    return of.train("layers", of.kept_layers("kept", of.start))


def distilled(of: Trainer) -> pathlib.Path:
    """Distils the teacher into some of its own layers."""
    known = teacher(of)
    start = of.kept_layers("kept_of_teacher", known)
    return of.train("distilled", start, f"--teacher={known}")


def pruned(of: Trainer) -> pathlib.Path:
    """Trains the teacher's twin, most of whose kernels become zero."""
    start = f"--init_checkpoint={of.start}"
    return of.train("pruned", start, "--prune_to=0.8", rate=5e-5)


def units(of: Trainer) -> pathlib.Path:
    """Takes half of the units out of the teacher, and distils it into them."""
    known = teacher(of)
    target = of.path("half")
    run(
        *("shrink_model.py", target, f"--output_path={target}", "--overwrite"),
        *(f"--seed={of.seed}", "--keep_intermediate=0.5", *of.data),
        f"--init_checkpoint={known}",
    )
    start = f"--init_checkpoint={target}"
    return of.train("units", start, f"--teacher={known}", rate=5e-5)


def _student(of: Trainer, kind: str, *options: str) -> list[str]:
    config = ROOT / "configs" / "models" / f"{kind}.json"
    return [
        f"--bert_config_file={config}",
        f"--vocab_file={of.vocab_file}",
        *options,
    ]


def _student_of_random_words(of: Trainer, kind: str) -> pathlib.Path:
    return of.train(f"{kind}_random", *_student(of, kind), rate=1e-3)


def _student_with_words(of: Trainer, kind: str) -> pathlib.Path:
    words = f"--word_vectors={teacher(of)}"
    return of.train(f"{kind}_words", *_student(of, kind, words), rate=1e-3)


def _distilled_student(of: Trainer, kind: str) -> pathlib.Path:
    known = teacher(of)
    words = f"--word_vectors={known}"
    options = _student(of, kind, words, f"--teacher={known}")
    return of.train(kind, *options, rate=1e-3)


def _of_student(
    make: Callable[[Trainer, str], pathlib.Path], kind: str
) -> Callable[[Trainer], pathlib.Path]:
    return lambda of: make(of, kind)


# Name -> what trains the model, and returns its folder.
MODELS: Mapping[str, Callable[[Trainer], pathlib.Path]] = {
    "teacher": teacher,
    "pruned": pruned,
    "units": units,
    "layers": layers,
    "distilled": distilled,
    **{
        f"{kind}{name}": _of_student(make, kind)
        for kind in ("bilstm", "textcnn")
        for name, make in (
            ("", _distilled_student),
            ("_words", _student_with_words),
            ("_random", _student_of_random_words),
        )
    },
}


def exported(model: pathlib.Path, form: str, weights: str) -> pathlib.Path:
    """Writes a model in the format `form`; returns the folder."""
    target = model.with_name(f"{model.name}-{form}-{weights}")
    run(
        *("export_saved_model.py", target, f"--model_dir={model}"),
        *(f"--export_dir={target}", f"--format={form}"),
        f"--weights={weights}",
    )
    return target


def size(path: pathlib.Path) -> float:
    """Returns what a folder takes, in MB."""
    files = (x for x in path.rglob("*") if x.is_file())
    return sum(os.path.getsize(x) for x in files) / 1e6
