r"""Translates with the Transformer, here and in PyTorch, and with a BiLSTM.

    python -m benchmarks.translation --data_dir=multi30k --minutes=12 --seeds=1

`vaswani` is the Transformer of run_seq2seq.py. `pytorch` is the same model with
the same vocabulary, batches of as many pairs of similar length, learning rates,
label smoothing and beam search, written with torch.nn. `bilstm` is a BiLSTM
with attention by run_seq2seq.py, with about as many parameters. They train one
after another, for the same time after the tenth step, and translate the test
set with their last weights.

The folder has the files of Multi30k: train.en, train.de, test_2016_flickr.en
and test_2016_flickr.de. Prints BLEU of each seed, its mean and deviation, the
training speed in tokens/s, source and target, and its ratio to PyTorch's.
Completed runs are not repeated: their results are in the output folder, with
the number of test sentences for which the SavedModel writes another text.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import commands

_MODELS = ("vaswani", "pytorch", "bilstm")
_TEST = "test_2016_flickr"
_MAY_CHANGE = ("output_dir", "seeds", "models")
_BEAMS, _PENALTY = 4, 0.6
_WARMUP = 400
_LSTM_RATE = 2e-3
# More than anybody trains: time ends the runs.
_EPOCHS = 1000
_VASWANI: dict[str, Any] = {
    "model_type": "vaswani",
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "initializer_range": 0.08,
}
_BILSTM: dict[str, Any] = {
    "model_type": "bilstm_attention",
    "hidden_size": 256,
    "embedding_size": 256,
    "num_hidden_layers": 1,
    "hidden_dropout_prob": 0.2,
}


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--output_dir", default="runs/translation")
    parser.add_argument("--minutes", type=float, default=12)
    for name, default in (
        *(("seeds", 1), ("batch", 64), ("vocab_size", 4000)),
        ("max_length", 64),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--models", default=",".join(_MODELS))
    return parser.parse_args(given)


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """The files and settings that all models have in common."""

    args: argparse.Namespace

    @property
    def folder(self) -> pathlib.Path:
        """The output folder."""
        return pathlib.Path(self.args.output_dir)

    def data(self, name: str) -> str:
        """Returns the path of a file of the data."""
        return os.path.join(self.args.data_dir, name)

    def texts(self, name: str) -> list[str]:
        """Returns the lines of a file of the data."""
        text = pathlib.Path(self.data(name)).read_text(encoding="utf-8")
        return text.removesuffix("\n").split("\n")

    @property
    def vocabulary(self) -> pathlib.Path:
        """The vocabulary of both languages: byte pairs."""
        return self.folder / "vocab.json"

    def make_vocabulary(self) -> None:
        """Learns the vocabulary, unless a previous run did.

        Ends the benchmark if the previous run had other options.
        """
        both = self.folder / "train.txt"
        given = vars(self.args).items()
        made_of = (f"--{x}={y}" for x, y in given if x not in _MAY_CHANGE)
        commands.check_same(both, "\n".join(made_of))
        lines = [*self.texts("train.en"), *self.texts("train.de")]
        both.write_text("\n".join(lines) + "\n", encoding="utf-8")
        commands.run(
            *("learn_vocabulary.py", self.vocabulary, "--kind=byte_pairs"),
            *(f"--input_file={both}", f"--vocab_file={self.vocabulary}"),
            f"--vocab_size={self.args.vocab_size}",
        )

    def run(self, model: str, seed: int) -> Mapping[str, float]:
        """Trains a model and translates with it; returns its results."""
        path = self.folder / f"{model}_{seed}.json"
        if not path.exists():
            kind = self._pytorch if model == "pytorch" else self._ours
            texts, results = kind(model, seed)
            (self.folder / f"{model}_{seed}.de").write_text(
                "".join(f"{text}\n" for text in texts), encoding="utf-8"
            )
            path.write_text(json.dumps({"bleu": self._bleu(texts), **results}))
        found = json.loads(path.read_text())
        print(f"{model}, seed {seed}: {found}", flush=True)
        return found

    def _bleu(self, texts):
        import sacrebleu

        references = self.texts(f"{_TEST}.de")
        return sacrebleu.BLEU().corpus_score(texts, [references]).score

    # ---- Ours ----------------------------------------------------------------

    def _ours(self, model, seed):
        values = _VASWANI if model == "vaswani" else _BILSTM
        config = self.folder / f"{model}.json"
        size = len(json.loads(self.vocabulary.read_text()))
        config.write_text(json.dumps({**values, "vocab_size": size}))
        rate = (_VASWANI["hidden_size"] * _WARMUP) ** -0.5
        rows = len(self.texts("train.en"))
        steps = int(rows * _EPOCHS / self.args.batch)
        trained = self.folder / f"{model}_{seed}"
        files = [
            f"--train_file={self.data('train.en')}",
            f"--train_target_file={self.data('train.de')}",
        ]
        seconds, speed = _train_for(
            60 * self.args.minutes,
            trained,
            [
                *("--do_train=true", *files, *self._lengths()),
                f"--bert_config_file={config}",
                f"--vocab_file={self.vocabulary}",
                f"--output_dir={trained}",
                f"--seed={seed}",
                f"--train_batch_size={self.args.batch}",
                "--group_by_length=true",
                f"--num_train_epochs={_EPOCHS}",
                *("--lr_schedule=inverse_sqrt", "--weight_decay_rate=0"),
                f"--learning_rate={_LSTM_RATE if model == 'bilstm' else rate}",
                f"--warmup_proportion={(_WARMUP + 0.5) / steps}",
                *("--optimizer=adamw_bias_corrected", "--adam_beta_2=0.98"),
                "--adam_epsilon=1e-9",
            ],
        )
        tested = self.folder / f"{model}_{seed}_tested"
        commands.run(
            *("run_seq2seq.py", tested, "--do_predict=true"),
            *("--do_export=true", f"--init_checkpoint={trained}"),
            *(*self._lengths(), f"--test_file={self.data(_TEST + '.en')}"),
            "--file_format=text",
            *(f"--beam_size={_BEAMS}", f"--length_penalty={_PENALTY}"),
            *("--predict_batch_size=50", f"--output_dir={tested}"),
        )
        path = tested / "test_predictions.txt"
        texts = path.read_text(encoding="utf-8").splitlines()
        lines = (trained / "metrics.jsonl").read_text().splitlines()
        results = {
            "steps": json.loads(lines[-1])["step"],
            "tokens_per_second": speed,
            "seconds": seconds,
            "different_texts": _differences(
                tested / "export", self.texts(f"{_TEST}.en"), texts
            ),
        }
        return texts, results

    def _lengths(self):
        return [
            f"--max_seq_length={self.args.max_length}",
            f"--max_target_length={self.args.max_length}",
        ]

    # ---- PyTorch -------------------------------------------------------------

    def _pytorch(self, _, seed):
        # Slow imports, which the other models do without.
        from benchmarks import torch_transformer
        from bert_tf import vocabularies
        from bert_tf.text import detokenizer

        import torch

        vocabulary = vocabularies.open(str(self.vocabulary), False)
        encode = Encoder(vocabulary, self.args.max_length)
        torch.manual_seed(seed)
        model = torch_transformer.Transformer(
            torch_transformer.Sizes(
                len(vocabulary.pieces),
                hidden=_VASWANI["hidden_size"],
                layers=_VASWANI["num_hidden_layers"],
                heads=_VASWANI["num_attention_heads"],
                units=_VASWANI["intermediate_size"],
                spread=_VASWANI["initializer_range"],
            ),
            vocabulary.special.pad.id,
        )
        halves = (encode(self.texts(f"train.{x}")) for x in ("en", "de"))
        pairs = list(zip(*halves, strict=True))
        steps, speed = torch_transformer.train(
            model,
            pairs,
            torch_transformer.Recipe(self.args.batch, _WARMUP),
            60 * self.args.minutes,
            seed,
        )
        (start,), (end,) = vocabulary.template.before, vocabulary.template.after
        search = torch_transformer.Search(
            start, end, _BEAMS, _PENALTY, self.args.max_length - 1
        )
        join, texts = detokenizer.Detokenizer(vocabulary), []
        began = time.perf_counter()
        rows = encode(self.texts(f"{_TEST}.en"))
        for first in range(0, len(rows), 50):
            batch = rows[first : first + 50]
            for ids in torch_transformer.translate(model, batch, search):
                texts.append(join([ids])[0].numpy().decode())
        results = {
            "steps": steps,
            "tokens_per_second": speed,
            "translation_seconds": time.perf_counter() - began,
        }
        return texts, results


class Encoder:
    """Converts texts to token IDs with start and end, as run_seq2seq.py."""

    def __init__(self, vocabulary: Any, max_length: int):
        self.template = vocabulary.template
        self.tokenizer = vocabulary.bulk_tokenizer()
        self.length = max_length - 2

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        ids, counts = self.tokenizer.tokenize(texts)
        rows, first = [], 0
        for count in counts.tolist():
            own = ids[first : first + count].tolist()[: self.length]
            rows.append([*self.template.before, *own, *self.template.after])
            first += count
        return rows


def _differences(
    export: pathlib.Path, sources: Sequence[str], texts: Sequence[str]
) -> int:
    """Returns how many texts of a SavedModel differ from the script's."""
    import bert_tf

    answers = bert_tf.load(str(export))(list(sources))
    pairs = zip(answers, texts, strict=True)
    return sum(answer["target"] != text for answer, text in pairs)


def _train_for(
    seconds: float, folder: pathlib.Path, options: Sequence[str]
) -> tuple[float, float]:
    """Runs run_seq2seq.py for a time after its first log line.

    Returns the seconds and the median of tokens/s of the log lines after it.
    """
    metrics = folder / "metrics.jsonl"
    if metrics.exists():
        raise SystemExit(f"{folder} has an incomplete run: remove it.")
    script = str(commands.ROOT / "run_seq2seq.py")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, script, *options], stdout=log, stderr=log
        )
        try:
            while process.poll() is None and not _lines(metrics):
                time.sleep(0.05)
            began = time.perf_counter()
            while process.poll() is None and (
                time.perf_counter() - began < seconds
                or len(_lines(metrics)) < 2
            ):
                time.sleep(0.05)
            took = time.perf_counter() - began
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait()
    if code != 128 + signal.SIGTERM:
        raise SystemExit(f"{folder}: ended with code {code}; see its log.")
    speeds = [json.loads(x)["tokens_per_second"] for x in _lines(metrics)[1:]]
    return took, statistics.median(speeds)


def _lines(path: pathlib.Path) -> list[str]:
    """Returns the complete lines of a file, or none if it is missing."""
    if not path.exists():
        return []
    return path.read_text().rpartition("\n")[0].splitlines()


def table(results: Mapping[str, Sequence[Mapping[str, float]]]) -> list[str]:
    """Returns the lines of a table: BLEU by seed, and speeds."""
    speeds = {
        model: statistics.mean(x["tokens_per_second"] for x in found)
        for model, found in results.items()
    }
    lines = [
        f"{'model':10}{'BLEU of each seed':>26}{'mean':>7}{'dev.':>7}"
        f"{'steps':>8}{'tokens/s':>10}{'ratio':>7}"
    ]
    for model, found in results.items():
        scores = [x["bleu"] for x in found]
        spread = statistics.stdev(scores) if len(scores) > 1 else None
        ratio = speeds[model] / speeds["pytorch"] if "pytorch" in speeds else 0
        lines.append(
            f"{model:10}{' '.join(f'{x:.2f}' for x in scores):>26}"
            f"{statistics.mean(scores):7.2f}"
            f"{'-' if spread is None else f'{spread:.2f}':>7}"
            f"{statistics.mean(x['steps'] for x in found):8,.0f}"
            f"{speeds[model]:10,.0f}{f'{ratio:.2f}' if ratio else '-':>7}"
        )
    return lines


def main(given: Sequence[str] | None = None) -> None:
    """Runs all models with all seeds, and prints the table."""
    args = _arguments(given)
    benchmark = Benchmark(args)
    benchmark.make_vocabulary()
    results = {
        model: [benchmark.run(model, seed) for seed in range(args.seeds)]
        for model in args.models.split(",")
    }
    print(
        f"{args.minutes:g} minutes each, {os.cpu_count()} cores, batches of "
        f"{args.batch} pairs"
    )
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
