"""Tasks that a small model learns in minutes: GLUE's, spam, and docstrings.

The files are those of GLUE, of the SMS Spam Collection and of the quickstart,
in folders named glue, spam and docstrings. The first rows of each are written
as a table of one's own, as run_classifier.py reads it.
"""

import csv
import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from bert_tf import files

# Texts of an example, and its label or score.
Example = tuple[tuple[str, ...], str]


@dataclasses.dataclass(frozen=True)
class Task:
    """Texts and their labels, in a table of tabs with a header.

    Attributes:
        folder: With train.tsv and dev.tsv, unless `file` is given: then every
            tenth line of that is dev.
        columns: Of the texts, and of the label.
        length: Pieces of an example.
        epochs: Of fine-tuning a model that was pre-trained.
        scored: The split that models are compared on.
        held_out: The one that rates are chosen on, if it is not a part of the
            training examples.
        subset: A folder of fewer examples, taken where it is there.
        has_phrases: Most training examples are parts of others. What is scored
            are whole sentences.
    """

    folder: str
    columns: tuple[str, ...]
    length: int
    epochs: int
    regression: bool = False
    file: str = ""
    scored: str = "dev"
    held_out: str = ""
    subset: str = ""
    has_phrases: bool = False

    @property
    def metric(self) -> str:
        """What eval_results.txt calls the score."""
        return "eval_spearman" if self.regression else "eval_accuracy"


TASKS = {
    "SST-2": Task(
        *("glue/SST-2", ("sentence", "label"), 64, 2), has_phrases=True
    ),
    "MRPC": Task("glue/MRPC", ("#1 String", "#2 String", "Quality"), 96, 3),
    "STS-B": Task(
        "glue/STS-B", ("sentence1", "sentence2", "score"), 96, 3, True
    ),
    "RTE": Task("glue/RTE", ("sentence1", "sentence2", "label"), 160, 3),
    "QNLI": Task(
        *("glue/QNLI", ("question", "sentence", "label"), 128, 3),
        subset="glue/QNLI_subset10k",
    ),
    "spam": Task("spam", ("SMS", "Label"), 64, 1, file="SMSSpamCollection"),
    # As examples/quickstart/make_data.py makes them, 30 of each area.
    "docstrings": Task(
        "docstrings", ("text", "area"), 64, 10, scored="test", held_out="dev"
    ),
}


def _read(path: pathlib.Path, columns: tuple[str, ...]) -> Iterator[Example]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            *texts, label = (row[name] for name in columns)
            yield tuple(texts), label


def source(task: Task, data_dir: str, split: str) -> pathlib.Path:
    """Returns the file that a split is in."""
    place = pathlib.Path(data_dir)
    has_subset = bool(task.subset) and (place / task.subset).is_dir()
    folder = place / (task.subset if has_subset else task.folder)
    return folder / (task.file or f"{split}.tsv")


def examples(task: Task, data_dir: str, split: str) -> Iterator[Example]:
    """Yields the examples of `train`, `dev` or another split."""
    rows = _read(source(task, data_dir, split), task.columns)
    if not task.file:
        yield from rows
        return
    for number, example in enumerate(rows):
        if (number % 10 == 0) == (split == "dev"):
            yield example


def hold_out(
    task: Task, learned: Sequence[Example], everything: Iterable[Example]
) -> tuple[list[Example], list[Example]]:
    """Parts training examples: to learn from, and to be asked about.

    Every tenth is held out. Of phrases it is every fifth sentence among
    `everything`, and none that stands in one is learned from. Of phrases held
    out by themselves 60 % would be.
    """
    if not task.has_phrases:
        others = [x for i, x in enumerate(learned) if i % 10]
        return others, [*learned[::10]]
    examples = {example[0][0]: example for example in everything}
    sentences = whole_texts(examples)[::5]
    parts = set[str]().union(*map(_parts, sentences))
    others = [x for x in learned if " ".join(x[0][0].split()) not in parts]
    return others, [examples[text] for text in sentences]


def whole_texts(texts: Iterable[str]) -> list[str]:
    """Returns those that stand, by their words, in no other, in their order."""
    unique = list(dict.fromkeys(texts))
    parts, found = set[str](), set[str]()
    for text in sorted(unique, key=lambda text: -len(text.split())):
        if " ".join(text.split()) not in parts:
            found.add(text)
            parts |= _parts(text)
    return [text for text in unique if text in found]


def _parts(text: str) -> set[str]:
    """All that is made of words in a row."""
    words = text.split()
    ends = itertools.combinations(range(len(words) + 1), 2)
    return {" ".join(words[first:last]) for first, last in ends}


def write(
    task: Task, rows: Iterable[Example], target: pathlib.Path
) -> list[str]:
    """Writes a table to learn from; returns the flags that say how it is."""
    *texts, label = ("text_a", "text_b", "label")
    texts = texts[: len(task.columns) - 1]
    target.parent.mkdir(parents=True, exist_ok=True)
    with files.new_file(target, "w") as file:
        for row in itertools.chain([((*texts,), label)], rows):
            file.write("\t".join((*row[0], row[1])) + "\n")
    return [
        *(f"--{name}_column={name}" for name in (*texts, label)),
        f"--max_seq_length={task.length}",
        f"--regression={task.regression}",
    ]


def write_first(
    task: Task, data_dir: str, count: int, target: pathlib.Path
) -> list[str]:
    """Writes the first training examples; returns the flags to learn from."""
    rows = itertools.islice(examples(task, data_dir, "train"), count)
    return [*write(task, rows, target), f"--train_file={target}"]
