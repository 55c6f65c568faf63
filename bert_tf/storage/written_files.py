"""The names of the files that runs write."""

import fnmatch
from collections.abc import Sequence

from bert_tf.storage import weight_files

# The file that makes a folder a SavedModel.
GRAPH = "saved_model.pb"
# Vocabularies of any kind, which are saved next to weights.
VOCABULARIES = (
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "symbols.txt",
    "word_characters.txt",
)
# Files that --glue_server_files writes.
_GLUE_SERVER_FILES = (
    *("AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "MRPC.tsv"),
    *("QNLI.tsv", "QQP.tsv", "RTE.tsv", "SST-2.tsv", "STS-B.tsv", "WNLI.tsv"),
)
# Files that runs write into their folder in evaluation and prediction.
RESULT_FILES = (
    "eval_results*.txt",
    "eval_predictions.txt",
    "eval_report*.txt",
    "confusion_matrix*.png",
    "baselines*.txt",
    "test_results*.tsv",
    "test_results.txt",
    "test_report.txt",
    "predictions*.jsonl",
    "test_predictions.*",
    "test_entities.jsonl",
    "predictions.json",
    "nbest_predictions.json",
    "null_odds.json",
    "null_score_diff_threshold.txt",
    *_GLUE_SERVER_FILES,
    "flags.txt",
)
# Files that they write in training, next to checkpoints.
STATE_FILES = (
    "metrics.jsonl",
    "trackers.json",
    "checkpoint",
    "bert_config.json",
    *VOCABULARIES,
    "tokenizer_config.json",
    "labels.txt",
    "train_examples.json",
)
# All files of runs, ours or the original's. Files with these names in a folder
# show that it has a run.
RUN_FILES = (
    *RESULT_FILES,
    *STATE_FILES,
    "wandb",
    "model.ckpt-*",
    "best",
    "export",
    "*.tf_record",
    "micro_batches.txt",
    "results.jsonl",
    "table.md",
    "table.json",
    "study.db*",
    "trial-[0-9]*",
    "submission.zip",
    "encoders",
    "model",
    "lock",
    "evaluation.lock",
)
# Files in the folders of a SavedModel and of a checkpoint.
SAVED_MODEL = (
    GRAPH,
    "fingerprint.pb",
    "variables",
    "assets",
    "assets.extra",
    "keras_metadata.pb",
)
# Files in the folder of a model for another runtime: the model, and files that
# only count as ours next to it, because users have files with the same names.
_RUNTIME_MODELS = ("model.tflite", "model.onnx")
_BESIDE_THEM = (
    *VOCABULARIES,
    "bert_config.json",
    "labels.txt",
    "export.json",
)
EXPORT = (*SAVED_MODEL, *_RUNTIME_MODELS)
# Configuration of TensorFlow Serving.
SERVER_CONFIGS = ("models.config", "batching.config")
_BESIDE_WEIGHTS = (
    "bert_config.json",
    "config.json",
    "metadata.json",
    "task.json",
    *VOCABULARIES,
    "labels.txt",
    "tokenizer*.json",
    "preprocessor.json",
    "special_tokens_map.json",
    "assets",
    "README.md",
)


def checkpoint() -> list[str]:
    """Returns patterns of the files in the folder of a checkpoint."""
    rows = weight_files.FORMATS.values()
    return [*_BESIDE_WEIGHTS, *(x for row in rows for x in row.written)]


def models() -> list[str]:
    """Returns patterns of the weights of a downloaded model.

    Two models in a folder would be confusing. Other checkpoints of TensorFlow
    belong to runs.
    """
    written = (x for row in weight_files.FORMATS.values() for x in row.written)
    rows = weight_files.HUGGING_FACE
    read = (x for row in rows for x in (row.file, *row.parts))
    return [*written, *read, weight_files.BILM, GRAPH]


def foreign(names: Sequence[str], own: Sequence[str]) -> list[str]:
    """Returns the names in a folder that are not among a script's own files."""
    if matching(names, _RUNTIME_MODELS):
        own = (*own, *_BESIDE_THEM)
    return [name for name in names if not matching([name], own)]


def matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names that match any of the patterns."""
    return [
        name
        for name in names
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
