"""Fine-tunes a model on a task, and all its lighter forms.

All steps run scripts, as a user would, and completed steps are reused:
benchmarks.lighter can be stopped and repeated.
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence

from benchmarks.commands import ROOT, run
from benchmarks.small_tasks import Task
from bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Trainer:
    """Trains the models of one task and seed.

    Attributes:
        folder: Folder of all models of the task.
        data: Flags for the data and the max sequence length.
        first: Seed of the only teacher.
        start: Initial checkpoint of the teacher, in any format.
        vocab_file: Its vocabulary.
        layers: Layers that smaller models keep, for example `1,3,5`.
        text: Text for `distilled_text`, in WikiExtractor's format.
        options: Extra flags of every training.
    """

    task: Task
    folder: pathlib.Path
    data: list[str]
    seed: str
    first: str
    start: str
    vocab_file: str
    layers: str = ""
    text: str = ""
    options: Sequence[str] = ()

    def path(self, model: str) -> pathlib.Path:
        """Returns the path of a model with this seed."""
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
            *("--keep_checkpoint_max=1", *self.options, *options),
        )
        return target

    def kept_layers(self, name: str, source: object) -> str:
        """Removes layers of a checkpoint; returns the flag for the result."""
        target = self.folder / name
        run(
            *("convert_checkpoint.py", target, "--output_format=tf1"),
            *(f"--layers={self.layers}", f"--output_path={target}"),
            f"--input_checkpoint={source}",
        )
        return f"--init_checkpoint={target}"


def teacher(of: Trainer) -> pathlib.Path:
    """Fine-tunes the teacher, with the first seed."""
    first = dataclasses.replace(of, seed=of.first)
    start = f"--init_checkpoint={of.start}"
    return first.train("teacher", start, rate=5e-5, passes=1)


def layers(of: Trainer) -> pathlib.Path:
    """Fine-tunes some layers of the teacher's initial checkpoint."""
    return of.train("layers", of.kept_layers("kept", of.start))


def distilled(of: Trainer) -> pathlib.Path:
    """Distils the teacher into some of its own layers."""
    known = teacher(of)
    start = of.kept_layers("kept_of_teacher", known)
    return of.train("distilled", start, f"--teacher={known}")


def distilled_text(of: Trainer) -> pathlib.Path:
    """Distils the teacher into layers that were first distilled on text."""
    start = f"--init_checkpoint={learned_from_text(of)}"
    return of.train("distilled_text", start, f"--teacher={teacher(of)}")


def learned_from_text(of: Trainer) -> pathlib.Path:
    """Distils the teacher's initial checkpoint into its own layers, on text.

    MiniLM's relations need no labels, so one model serves all tasks. No word is
    masked: the selected words stay unchanged.
    """
    if not of.text:
        raise InputError("Give --text, which `distilled_text` learns from.")
    place = of.folder.parent / "text"
    records, target = place / "records", place / "distilled"
    words = f"--vocab_file={of.vocab_file}"
    run(
        *("create_pretraining_data.py", records, f"--output_dir={records}"),
        *(f"--input_file={of.text}", "--input_format=wikiextractor", words),
        *("--max_seq_length=64", "--dupe_factor=1", "--dynamic_masking=true"),
        *("--masked_lm_prob=0.01", "--max_predictions_per_seq=2"),
        *("--mask_share=0", "--random_share=0", "--num_shards=4"),
    )
    kept = dataclasses.replace(of, folder=place).kept_layers("kept", of.start)
    run(
        *("run_pretraining.py", target, f"--output_dir={target}"),
        *("--do_train", f"--input_file={records}/*.tfrecord", kept, words),
        *(f"--teacher={of.start}", "--distillation=minilm"),
        *("--relation_heads=12", "--train_batch_size=64"),
        *("--num_train_steps=1250", "--num_warmup_steps=100"),
        *("--learning_rate=3e-4", "--keep_checkpoint_max=1", *of.options),
    )
    return target


def pruned(of: Trainer) -> pathlib.Path:
    """Trains like the teacher, with most kernel weights pruned to zero."""
    start = f"--init_checkpoint={of.start}"
    return of.train("pruned", start, "--prune_to=0.8", rate=5e-5)


def units(of: Trainer) -> pathlib.Path:
    """Removes half of the teacher's units, then distils into the rest."""
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


# Name -> function that trains the model and returns its folder.
MODELS: Mapping[str, Callable[[Trainer], pathlib.Path]] = {
    "teacher": teacher,
    "pruned": pruned,
    "units": units,
    "layers": layers,
    "distilled": distilled,
    "distilled_text": distilled_text,
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
    """Exports a model in the format `form`; returns the folder."""
    target = model.with_name(f"{model.name}-{form}-{weights}")
    run(
        *("export_saved_model.py", target, f"--model_dir={model}"),
        *(f"--export_dir={target}", f"--format={form}"),
        f"--weights={weights}",
    )
    return target


def size(path: pathlib.Path) -> float:
    """Returns the size of a folder, in MB."""
    files = (x for x in path.rglob("*") if x.is_file())
    return sum(os.path.getsize(x) for x in files) / 1e6
