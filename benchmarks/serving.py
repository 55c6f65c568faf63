r"""Times exports on raw text against ONNX Runtime with the same weights.

    python -m benchmarks.serving --vocab_file=/data/bert_uncased/vocab.txt \
        --bert_config_file=configs/models/base.json
    python -m benchmarks.serving --vocab_file=/data/bert_uncased/vocab.txt \
        --bert_config_file=minilm.json --others --shapes "1 x 32" "1 x 128"

transformers writes a classifier with random weights, which
export_saved_model.py exports. It is also converted for ONNX Runtime, whose own
optimizer fuses attention, GELU and layer norm. Both answer the same texts in
turn, in one process: ours with its own tokenizer in the graph, ONNX Runtime
with the tokenizer of the Rust library `tokenizers`. Prints medians of
milliseconds of CPU time (wall-clock time with several --threads, which may wait
for each other), and for each model the median of the ratio of its times to
those of ONNX Runtime measured next to them. `--before` names a SavedModel to
time as well, with any weights. `--others` also times models of ids, each with
the Rust tokenizer: ours for LiteRT, in float32 and int8, and ONNX Runtime's own
dynamic int8 of its model. Those in int8 need not agree: their deviation in
probabilities is printed.

oneDNN caches constant weights, as it does in run_server.py; `--no-keep_kernels`
is TensorFlow's default. `TF_ENABLE_ONEDNN_OPTS=0` in the environment is the
default on machines where oneDNN is off. Needs bert-tf[parity,huggingface,onnx]
and, for `--others`, bert-tf[litert].
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.commands import ROOT

import numpy as np

# Lengths of the texts in tokens, including [CLS] and [SEP].
SHAPES = {
    "1 x 8": [8],
    "1 x 32": [32],
    "1 x 128": [128],
    "1 x 384": [384],
    "8 x 128": [128] * 8,
    "32 mixed": [
        int(x)
        for x in np.clip(
            np.random.default_rng(0).lognormal(3.3, 0.8, 32), 4, 256
        )
    ],
}
_LEAST_SECONDS = 0.05
# Threads of ONNX Runtime spin while they wait for work, which takes a core from
# the next model.
_PAUSE = 0.3
KEEP = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"
# The reference for all others.
_OTHER = "onnxruntime"

Answer = Callable[[Sequence[str]], np.ndarray]
# Tokenizes texts; results have ids, attention_mask and type_ids.
Tokenize = Callable[[Sequence[str]], Any]
Key = TypeVar("Key")


def main() -> None:
    """Creates both models, checks that they agree, and times them."""
    flags = _flags()
    os.environ[KEEP] = str(int(flags.keep_kernels))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        _write_weights(flags, folder / "hf")
        _export(flags, folder, "ours")
        models = {"ours": load(folder / "ours", flags.threads)}
        if flags.before:
            models["before"] = load(pathlib.Path(flags.before), flags.threads)
        fused = _fused(folder)
        if flags.others:
            models |= _others(folder, fused, flags)
        tokenize = tokenizer(flags.vocab_file)
        models[_OTHER] = load_onnx(fused, tokenize, flags.threads)
    compared = [name for name in models if name != _OTHER]
    print(
        f"{'texts':10}",
        *(f"{name + ' ms':>20}" for name in models),
        *(f"{name + ' /':>17}" for name in compared),
    )
    words = read_words(flags.vocab_file)
    alone = flags.threads == 1
    clock = time.process_time if alone else time.perf_counter
    for shape in flags.shapes:
        texts = make_texts(words, SHAPES[shape])
        _check(models, texts)
        times = times_in_turn(
            models, texts, flags.runs, clock, 0 if alone else _PAUSE
        )
        milliseconds = [1000 * statistics.median(x) for x in times.values()]
        ratios = [
            statistics.median(
                a / b for a, b in zip(times[name], times[_OTHER], strict=True)
            )
            for name in compared
        ]
        print(
            f"{shape:10}",
            *(f"{x:20.2f}" for x in milliseconds),
            *(f"{x:17.2f}" for x in ratios),
            flush=True,
        )


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--bert_config_file", required=True)
    parser.add_argument("--vocab_file", required=True)
    parser.add_argument("--before", help="another SavedModel to time")
    parser.add_argument("--others", action="store_true", help="ids, too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument(
        "--keep_kernels", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument(
        "--shapes", nargs="+", choices=SHAPES, default=list(SHAPES)
    )
    return parser.parse_args()


# ---- The models --------------------------------------------------------------


def _write_weights(flags: argparse.Namespace, folder: pathlib.Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig.from_json_file(flags.bert_config_file)
    # ONNX Runtime fuses only this form.
    config.hidden_act = "gelu"
    config.num_labels = 2
    model = transformers.BertForSequenceClassification(config)
    model.save_pretrained(folder)


def _export(
    flags: argparse.Namespace, folder: pathlib.Path, name: str, *more: str
) -> None:
    script = ROOT / "export_saved_model.py"
    command = [
        sys.executable,
        str(script),
        f"--init_checkpoint={folder / 'hf'}",
        f"--export_dir={folder / name}",
        f"--vocab_file={flags.vocab_file}",
        "--labels=no,yes",
        "--pairs=false",
        "--max_seq_length=384",
        *more,
    ]
    subprocess.run(command, check=True, capture_output=True)


def load(folder: pathlib.Path, threads: int) -> Answer:
    """Returns a function that answers raw texts by our SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (registers the tokenizer's op)

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = tf.saved_model.load(str(folder))
    serve = model.signatures["serving_default"]
    # The function does not keep a reference to the variables.
    serve.model = model
    (text, *_) = sorted(serve.structured_input_signature[1])

    def answer(texts):
        return serve(**{text: tf.constant(texts)})["probabilities"].numpy()

    return answer


def _others(
    folder: pathlib.Path, fused: pathlib.Path, flags: argparse.Namespace
) -> dict[str, Answer]:
    """Returns models of ids: LiteRT's, and ONNX Runtime's int8."""
    import onnx
    from onnxruntime import quantization

    found = {}
    tokenize = tokenizer(flags.vocab_file)
    for kept in ("float32", "int8"):
        name = f"litert_{kept}"
        _export(flags, folder, name, "--format=litert", f"--weights={kept}")
        found[name] = load_litert(
            folder / name / "model.tflite", tokenize, flags.threads
        )
    path = folder / "int8.onnx"
    # It does not know the shapes, and so the types, of fused ops.
    quantization.quantize_dynamic(
        str(fused),
        str(path),
        per_channel=True,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    found["onnx_int8"] = load_onnx(path, tokenize, flags.threads)
    return found


def tokenizer(vocab_file: str) -> Tokenize:
    """Returns a tokenizer of the Rust library."""
    import tokenizers

    made = tokenizers.BertWordPieceTokenizer(vocab_file)
    made.enable_padding()
    made.enable_truncation(384)
    return lambda texts: made.encode_batch(list(texts))


def load_litert(path: pathlib.Path, tokenize: Tokenize, threads: int) -> Answer:
    """Returns a function that answers raw texts by our LiteRT model."""
    from ai_edge_litert import interpreter

    model = interpreter.Interpreter(
        model_content=path.read_bytes(), num_threads=threads
    )
    run = model.get_signature_runner()

    def answer(texts):
        rows = tokenize(texts)
        found = {
            "input_ids": [row.ids for row in rows],
            "input_mask": [row.attention_mask for row in rows],
            "segment_ids": [row.type_ids for row in rows],
        }
        inputs = {name: np.array(x, np.int32) for name, x in found.items()}
        return run(**inputs)["probabilities"]

    return answer


def load_onnx(path: pathlib.Path, tokenize: Tokenize, threads: int) -> Answer:
    """Returns a function that answers raw texts by an ONNX Runtime model.

    Its inputs have our names or those of transformers; its first output is the
    logits, unless one is named "probabilities".
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    outputs = [output.name for output in session.get_outputs()]
    is_ours = "probabilities" in outputs
    wanted = "probabilities" if is_ours else outputs[0]
    kinds = {
        x.name: "int64" if "64" in x.type else "int32"
        for x in session.get_inputs()
    }

    def answer(texts):
        rows = tokenize(texts)
        mask = [row.attention_mask for row in rows]
        segments = [row.type_ids for row in rows]
        found = {
            "input_ids": [row.ids for row in rows],
            "input_mask": mask,
            "segment_ids": segments,
            "attention_mask": mask,
            "token_type_ids": segments,
        }
        inputs = {name: np.array(found[name], k) for name, k in kinds.items()}
        (logits,) = session.run([wanted], inputs)
        if is_ours:
            return logits
        exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return exponents / exponents.sum(axis=-1, keepdims=True)

    return answer


def _fused(folder: pathlib.Path) -> pathlib.Path:
    """Writes the weights for ONNX Runtime, optimized by its optimizer."""
    import torch
    import transformers
    from onnxruntime.transformers import optimizer

    model = transformers.BertForSequenceClassification.from_pretrained(
        folder / "hf", attn_implementation="eager"
    ).eval()
    ids = torch.ones(2, 16, dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    path, fused = str(folder / "plain.onnx"), folder / "fused.onnx"
    torch.onnx.export(
        model,
        (ids, ids, torch.zeros_like(ids)),
        path,
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
        opset_version=17,
        dynamo=False,
    )
    config = model.config
    optimizer.optimize_model(
        path,
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        opt_level=1,
    ).save_model_to_file(str(fused))
    return fused


# ---- Texts and times ---------------------------------------------------------


def read_words(vocab_file: str) -> list[str]:
    """Returns the words that are a single token."""
    text = pathlib.Path(vocab_file).read_text(encoding="utf-8")
    return [x for x in text.splitlines() if x.isascii() and x.isalpha()]


def make_texts(words: Sequence[str], lengths: Sequence[int]) -> list[str]:
    """Returns texts of given lengths in tokens, including [CLS] and [SEP]."""
    generator = np.random.default_rng(1)
    return [" ".join(generator.choice(words, n - 2)) for n in lengths]


def _check(models: dict[str, Answer], texts: Sequence[str]) -> None:
    """Raises AssertionError unless all float32 models agree."""
    expected = models[_OTHER](texts)
    for name, answer in models.items():
        if name == "before":
            continue
        if "int8" in name:
            off = np.abs(answer(texts) - expected).max()
            print(f"{name}: probabilities are off by {off:.1e} at most")
            continue
        np.testing.assert_allclose(answer(texts), expected, rtol=0, atol=1e-5)


def times_in_turn(
    models: Mapping[Key, Answer],
    texts: Sequence[str],
    runs: int,
    clock: Callable[[], float] = time.process_time,
    pause: float = 0,
) -> dict[Key, list[float]]:
    """Returns the seconds of an answer for each model, measured in turn.

    Pauses for `pause` seconds before each turn.
    """
    start = time.perf_counter()
    for answer in models.values():
        answer(texts)
    once = (time.perf_counter() - start) / len(models)
    repeats = max(1, round(_LEAST_SECONDS / once))
    times: dict[Key, list[float]] = {name: [] for name in models}
    for _ in range(runs):
        for name, answer in models.items():
            time.sleep(pause)
            start = clock()
            for _ in range(repeats):
                answer(texts)
            times[name].append((clock() - start) / repeats)
    return times


if __name__ == "__main__":
    main()
