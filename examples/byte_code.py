"""BERT over byte code: symbols that are no language, of every Python's library.

    python examples/byte_code.py

A function is a row of op codes, such as `LOAD_CONST:int COMPARE_OP:<`. The
functions of the standard library are the text: a vocabulary of symbols is
learned from them, a model pre-trained on masked symbols, and fine-tuned to tell
which package a function is from. Then SavedModels are asked with symbols, by
TensorFlow alone.

Files are compiled, not run, and nothing is downloaded. One file in five is held
out: no model reads it in training. Every row of op codes is there once.

The commands are printed, and can be run by hand. The results are in
runs/byte_code/.
"""

import collections
import dataclasses
import dis
import inspect
import json
import pathlib
import shutil
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterator, Sequence

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from examples.quickstart import run

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_FOLDER = "runs/byte_code"
# Tests, which not every Python has, and what others install beside it.
_SKIPPED = {
    "dist-packages", "idle_test", "site-packages", "test", "tests",
}  # fmt: skip
# Shorter functions do next to nothing.
_LEAST_SYMBOLS = 16
_HELD_OUT = 5  # one file of so many
_PACKAGES = 6  # those with the most functions
_CONFIG = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
    "type_vocab_size": 2,
    # As the quickstart's: so little text needs no dropout.
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.05,
}


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of the library as op codes, and where it is from."""

    package: str
    symbols: tuple[str, ...]


# ---- Byte code ---------------------------------------------------------------


def symbol(instruction: dis.Instruction) -> str:
    """Writes an op code, with what kind of it where that says much.

    Names of variables are left out, which would tell the package.
    """
    name, value = instruction.opname, instruction.argval
    if name in ("BINARY_OP", "COMPARE_OP"):
        return f"{name}:{instruction.argrepr.replace(' ', '')}"
    if name == "LOAD_CONST":
        return f"{name}:{type(value).__name__}"
    return f"{name}:{value}" if name == "CALL" else name


def functions(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """Yields the symbols of each function in a module's code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield tuple(map(symbol, dis.get_instructions(constant)))
            yield from functions(constant)


def read_library() -> list[list[Function]]:
    """Returns the functions of each file of the standard library."""
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    seen: set[tuple[str, ...]] = set()
    files = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if not _SKIPPED.isdisjoint(parts):
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                code = compile(path.read_bytes(), str(path), "exec")
        except SyntaxError:  # of files that are examples of it
            continue
        found = []
        for symbols in functions(code):
            if len(symbols) >= _LEAST_SYMBOLS and symbols not in seen:
                seen.add(symbols)
                found.append(Function(parts[0], symbols))
        if found:
            files.append(found)
    return files


# ---- Files -------------------------------------------------------------------


def write_text(path: pathlib.Path, files: Sequence[list[Function]]) -> None:
    """Writes a function a line, and a blank line between files."""
    documents = (
        "".join(f"{' '.join(x.symbols)}\n" for x in functions_of_file)
        for functions_of_file in files
    )
    path.write_text("\n".join(documents), encoding="utf-8")


def write_table(path: pathlib.Path, rows: Sequence[Function]) -> None:
    """Writes a table of functions and their packages."""
    lines = ["package\ttext"]
    lines += [f"{x.package}\t{' '.join(x.symbols)}" for x in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def largest_packages(files: Sequence[list[Function]]) -> list[str]:
    """Returns the packages of several files with the most functions."""
    of_files = [x[0].package for x in files]
    counts = collections.Counter(
        x.package for functions_of_file in files for x in functions_of_file
    )
    several = [x for x in counts if of_files.count(x) >= 2 * _HELD_OUT]
    several.sort(key=lambda package: (-counts[package], package))
    return sorted(several[:_PACKAGES])


def write_data(folder: pathlib.Path) -> tuple[list, list]:
    """Writes texts and tables; returns files to learn from, and held out."""
    files = read_library()
    held_out = files[::_HELD_OUT]
    train = [x for i, x in enumerate(files) if i % _HELD_OUT]
    packages = largest_packages(files)
    folder.mkdir(parents=True)
    for name, part in (("train", train), ("dev", held_out)):
        write_text(folder / f"{name}.txt", part)
        rows = [x for own in part for x in own if x.package in packages]
        write_table(folder / f"{name}.tsv", rows)
        number = sum(map(len, part))
        print(f"   {name}: {len(part)} files, {number} functions")
    print(f"   packages to tell apart: {', '.join(packages)}")
    return train, held_out


# ---- What it is compared with ------------------------------------------------


def neighbours(
    files: Sequence[list[Function]],
) -> Iterator[tuple[str, str, str]]:
    """Yields each symbol and the two that stand around it: "" for none."""
    for functions_of_file in files:
        for function in functions_of_file:
            row = ("", *function.symbols, "")
            yield from zip(row, row[1:], row[2:], strict=False)


def baselines(
    train: Sequence[list[Function]], held_out: Sequence[list[Function]]
) -> dict[str, float]:
    """Says which part of held-out symbols is guessed right by counting.

    "bigram" guesses what most often follows the symbol before, "both" what most
    often stands between the two, or the first where these are new.
    """
    before: dict[str, collections.Counter[str]]
    before = collections.defaultdict(collections.Counter)
    both: dict[tuple[str, str], collections.Counter[str]]
    both = collections.defaultdict(collections.Counter)
    for left, middle, right in neighbours(train):
        before[left][middle] += 1
        both[left, right][middle] += 1
    best = {key: found.most_common(1)[0][0] for key, found in before.items()}
    between = {key: found.most_common(1)[0][0] for key, found in both.items()}
    hits: collections.Counter[str] = collections.Counter()
    for left, middle, right in neighbours(held_out):
        guess = best.get(left, "")
        hits["bigram"] += guess == middle
        hits["both"] += between.get((left, right), guess) == middle
        hits["total"] += 1
    return {name: hits[name] / hits["total"] for name in ("bigram", "both")}


def result(path: pathlib.Path, name: str) -> float:
    """Returns a number of an eval_results.txt."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return float(dict(line.split(" = ") for line in lines)[name])


# ---- Commands ----------------------------------------------------------------

_RECORDS = (
    "create_pretraining_data.py --input_file={folder}/data/{name}.txt"
    " --output_dir={folder}/{name}_records --vocab_file={folder}/symbols.txt"
    " --max_seq_length=128 --max_predictions_per_seq=20"
    " --objective=full_sentences"
)
_FINE_TUNING = (
    "run_classifier.py --train_file={folder}/data/train.tsv"
    " --dev_file={folder}/data/dev.tsv --text_a_column=text"
    " --label_column=package --max_seq_length=128 --do_train --do_eval"
    " --do_export --train_batch_size=32 --learning_rate=3e-4"
    " --num_train_epochs=3 --vocab_file={folder}/symbols.txt"
    " --bert_config_file={folder}/bert_config.json"
)
_VOCABULARY = (
    "Learning the vocabulary: counting symbols",
    "learn_vocabulary.py --kind=symbols --input_file={folder}/data/train.txt"
    " --vocab_file={folder}/symbols.txt --vocab_size=1000",
)
_STEPS = (
    (
        "Making records, whose masks are drawn in training",
        f"{_RECORDS.replace('{name}', 'train')} --dynamic_masking"
        " --dupe_factor=1",
    ),
    (
        "Making records of what is held out",
        f"{_RECORDS.replace('{name}', 'dev')} --dupe_factor=1",
    ),
    (
        "Pre-training on masked symbols",
        "run_pretraining.py --input_file={folder}/train_records/*.tfrecord"
        " --output_dir={folder}/pretrained --vocab_file={folder}/symbols.txt"
        " --bert_config_file={folder}/bert_config.json --do_train --do_eval"
        " --eval_file={folder}/dev_records/*.tfrecord --train_batch_size=32"
        " --learning_rate=7e-4 --num_train_steps=4000 --num_warmup_steps=400"
        " --save_checkpoints_steps=4000 --log_steps=200 --max_eval_steps=1000",
    ),
    (
        "Fine-tuning a classifier of packages from the pre-trained weights",
        f"{_FINE_TUNING} --init_checkpoint={{folder}}/pretrained"
        " --output_dir={folder}/fine_tuned",
    ),
    (
        "Fine-tuning the same from random weights, to compare",
        f"{_FINE_TUNING} --output_dir={{folder}}/random",
    ),
    (
        "Exporting what finds masked symbols",
        "export_saved_model.py --model_dir={folder}/pretrained --head=masked_lm"
        " --max_seq_length=128 --export_dir={folder}/masked_symbols",
    ),
)


def ask(folder: pathlib.Path, function: Function) -> None:
    """Asks both SavedModels, which need TensorFlow only."""
    import tensorflow as tf

    text = " ".join(function.symbols)
    model = tf.saved_model.load(str(folder / "fine_tuned" / "export"))
    found = model.signatures["serving_default"](text_a=tf.constant([text]))
    print(f"   asked: {text[:60]}...")
    print(f"   from: {function.package}")
    label = found["label"].numpy()[0].decode()
    print(f"   said: {label}, {found['probabilities'].numpy().max():.0%}")
    model = tf.saved_model.load(str(folder / "masked_symbols"))
    symbols = list(function.symbols)
    hidden, symbols[8] = symbols[8], "[MASK]"
    found = model.signatures["serving_default"](
        text=tf.constant([" ".join(symbols)])
    )
    guesses = zip(found["piece"][0, 0], found["score"][0, 0], strict=True)
    print(f"   hidden: {hidden}, in ... {' '.join(symbols[5:12])} ...")
    for piece, score in guesses:
        print(f"   guessed: {piece.numpy().decode()} {score.numpy():.0%}")
    if "bert_tf" in sys.modules:
        sys.exit("error: the SavedModels should not need bert_tf")


def main() -> None:
    """Runs all steps, and says how well models and counting do."""
    folder = _ROOT / _FOLDER
    if folder.exists():
        print(f"== Removing the last results in {_FOLDER}")
        shutil.rmtree(folder)
    total = len(_STEPS) + 3
    print(f"\n== 1/{total} Compiling the standard library", flush=True)
    train, held_out = write_data(folder / "data")
    title, command = _VOCABULARY
    run.run(2, total, title, command.format(folder=_FOLDER))
    with (folder / "symbols.txt").open(encoding="utf-8") as file:
        config = {**_CONFIG, "vocab_size": sum(1 for _ in file)}
    (folder / "bert_config.json").write_text(json.dumps(config, indent=2))
    for number, (title, command) in enumerate(_STEPS, 3):
        run.run(number, total, title, command.format(folder=_FOLDER))
    print(f"\n== {total}/{total} What was measured, on files held out")
    accuracy = result(
        folder / "pretrained" / "eval_results.txt", "masked_lm_accuracy"
    )
    print(f"   masked symbols found by the model: {accuracy:.1%}")
    counted = baselines(train, held_out)
    print(f"   by the symbol before (bigrams): {counted['bigram']:.1%}")
    print(f"   by the symbols on both sides: {counted['both']:.1%}")
    for name in ("fine_tuned", "random"):
        path = folder / name / "eval_results.txt"
        print(f"   packages, {name}: {result(path, 'eval_accuracy'):.1%}")
    table = (folder / "data" / "dev.tsv").read_text(encoding="utf-8")
    labels = [line.split("\t")[0] for line in table.splitlines()[1:]]
    most = collections.Counter(labels).most_common(1)[0][1] / len(labels)
    print(f"   packages, the most frequent one: {most:.1%}", flush=True)
    ask(folder, next(x for own in held_out for x in own if x.package in labels))


if __name__ == "__main__":
    main()
