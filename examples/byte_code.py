"""BERT for byte code: pre-trains on symbols of Python's standard library.

    python examples/byte_code.py

The text consists of the library's functions as sequences of op codes, such as
`LOAD_CONST:int COMPARE_OP:<`. The example learns a vocabulary of symbols,
pre-trains a model on masked symbols, and fine-tunes it to predict the package
of a function. Finally it queries the SavedModels with TensorFlow alone.

Files are compiled, not run, and nothing is downloaded. Every fifth file is held
out from all training. Each sequence of op codes occurs once.

The commands are printed and can be run by hand. The results are in
runs/byte_code/.
"""

import argparse
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
from collections.abc import Iterable, Iterator, Sequence

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from examples.quickstart import run

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_FOLDER = "runs/byte_code"
# Tests, which not every Python has, and third-party packages in the folder.
_SKIPPED = {
    "dist-packages", "idle_test", "site-packages", "test", "tests",
}  # fmt: skip
# Shorter functions do next to nothing.
_LEAST_SYMBOLS = 16
_HELD_OUT = 5  # one file in this many
_PACKAGES = 6  # those with the most functions
_CONFIG = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
    "type_vocab_size": 2,
    # As in the quickstart: no dropout for so little text.
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.05,
}


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of the library as op codes, with its package."""

    package: str
    symbols: tuple[str, ...]


# ---- Byte code ---------------------------------------------------------------


def symbol(instruction: dis.Instruction) -> str:
    """Returns an op code as text, with the kind of its argument if useful.

    Variable names are left out, since they would reveal the package.
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
        except SyntaxError:  # files that demonstrate syntax errors
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
    """Writes one function per line, with a blank line between files."""
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
    """Returns the largest packages with several files, by functions."""
    of_files = [x[0].package for x in files]
    counts = collections.Counter(
        x.package for functions_of_file in files for x in functions_of_file
    )
    several = [x for x in counts if of_files.count(x) >= 2 * _HELD_OUT]
    several.sort(key=lambda package: (-counts[package], package))
    return sorted(several[:_PACKAGES])


def write_data(folder: pathlib.Path) -> list[Function]:
    """Writes texts and tables; returns the held-out rows of the table."""
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
    return rows


# ---- Baselines ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """The ids of a sequence before masking, and the masked positions."""

    ids: Sequence[int]
    hidden: Sequence[int]


def read_rows(folder: pathlib.Path) -> Iterator[Row]:
    """Yields the sequences in a folder of records."""
    import tensorflow as tf

    paths = sorted(map(str, folder.glob("*.tfrecord")))
    for record in tf.data.TFRecordDataset(paths).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        ids, mask, places, hidden = (
            list(feature[name].int64_list.value)
            for name in (
                *("input_ids", "input_mask"),
                *("masked_lm_positions", "masked_lm_ids"),
            )
        )
        # The list of masked positions is padded with 0, the one of [CLS].
        places = [place for place in places if place]
        for place, id_ in zip(places, hidden, strict=False):
            ids[place] = id_
        yield Row(ids[: sum(mask)], places)


def baselines(
    train: Iterable[Row], held_out: Iterable[Row]
) -> dict[str, float]:
    """Returns the accuracy of predicting masked symbols by counting.

    "bigram" predicts the most frequent successor of the previous symbol, "both"
    the most frequent symbol between the two neighbors, or like "bigram" if that
    pair is new. Both see the neighbors even if they are masked for the model.
    """
    before: dict[int, collections.Counter[int]]
    before = collections.defaultdict(collections.Counter)
    both: dict[tuple[int, int], collections.Counter[int]]
    both = collections.defaultdict(collections.Counter)
    for row in train:
        triples = zip(row.ids, row.ids[1:], row.ids[2:], strict=False)
        for left, middle, right in triples:
            before[left][middle] += 1
            both[left, right][middle] += 1
    best = {key: found.most_common(1)[0][0] for key, found in before.items()}
    between = {key: found.most_common(1)[0][0] for key, found in both.items()}
    hits: collections.Counter[str] = collections.Counter()
    for row in held_out:
        for place in row.hidden:
            left, middle, right = row.ids[place - 1 : place + 2]
            guess = best.get(left)
            hits["bigram"] += guess == middle
            hits["both"] += between.get((left, right), guess) == middle
            hits["total"] += 1
    return {name: hits[name] / hits["total"] for name in ("bigram", "both")}


def result(path: pathlib.Path, name: str) -> float:
    """Returns a value of an eval_results.txt."""
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
        " --learning_rate=1e-3 --num_train_steps=3000 --num_warmup_steps=200"
        " --save_checkpoints_steps=3000 --log_steps=100 --max_eval_steps=1000",
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
    """Queries both SavedModels, which need TensorFlow only."""
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


def report(folder: pathlib.Path, asked: Sequence[Function]) -> None:
    """Prints the held-out accuracy of the models and of counting."""
    path = folder / "pretrained" / "eval_results.txt"
    accuracy = result(path, "masked_lm_accuracy")
    print(f"   masked symbols found by the model: {accuracy:.1%}")
    counted = baselines(
        read_rows(folder / "train_records"), read_rows(folder / "dev_records")
    )
    print(f"   by the symbol before (bigrams): {counted['bigram']:.1%}")
    print(f"   by the symbols on both sides: {counted['both']:.1%}")
    for name in ("fine_tuned", "random"):
        path = folder / name / "eval_results.txt"
        print(f"   packages, {name}: {result(path, 'eval_accuracy'):.1%}")
    packages = collections.Counter(x.package for x in asked)
    most = packages.most_common(1)[0][1] / len(asked)
    print(f"   packages, the most frequent one: {most:.1%}", flush=True)


def main() -> None:
    """Runs all steps, and reports the accuracy of models and counting."""
    folder = _ROOT / _FOLDER
    if folder.exists():
        print(f"== Removing the last results in {_FOLDER}")
        shutil.rmtree(folder)
    total = len(_STEPS) + 3
    print(f"\n== 1/{total} Compiling the standard library", flush=True)
    asked = write_data(folder / "data")
    title, command = _VOCABULARY
    run.run(2, total, title, command.format(folder=_FOLDER))
    with (folder / "symbols.txt").open(encoding="utf-8") as file:
        config = {**_CONFIG, "vocab_size": sum(1 for _ in file)}
    (folder / "bert_config.json").write_text(json.dumps(config, indent=2))
    for number, (title, command) in enumerate(_STEPS, 3):
        run.run(number, total, title, command.format(folder=_FOLDER))
    print(f"\n== {total}/{total} Results on held-out files")
    report(folder, asked)
    ask(folder, asked[0])


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    main()
