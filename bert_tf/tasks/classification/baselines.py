"""Simple baselines, which show whether a fine-tuned model is worth its cost.

They are the majority class, logistic regression on TF-IDF features of words and
of pairs of consecutive words, and logistic regression on averaged word vectors.
For scores, they are the mean and ridge regression. In multi-label tasks, each
label has its own majority and its own regression.

Shapes: B examples, C classes, V tokens of the vocabulary, E numbers of a
vector, F features.
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import files, phases
from bert_tf.checkpoints import word_vectors
from bert_tf.tasks import tables, text_batches
from bert_tf.tasks.classification import (
    classification_metrics,
    classification_task,
    text_records,
)
from bert_tf.text import graph_rows

import numpy as np
import scipy.sparse
import tensorflow as tf
from absl import logging
from sklearn import dummy, linear_model, multiclass, pipeline, preprocessing
from sklearn.feature_extraction import text

# Bounds of memory: training examples, characters of a text, columns of TF-IDF.
ROWS, CHARACTERS, COLUMNS = 100_000, 2_000, 1 << 18
# Bounds of rows and of columns, both multiplied by the number of classes.
_ROWS_BY_CLASSES, _COLUMNS_BY_CLASSES = 1 << 25, 1 << 22
# Examples whose features are in memory at once, in evaluation.
_BATCH_SIZE = 4096
# C, the inverse regularization of logistic regression. TF-IDF features have
# length 1, and underfit with the default of 1.
_TF_IDF_STRENGTH = 10.0
# A word, or one character of Chinese or Japanese.
WORD = r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"

# Maps texts to their features [B, F], an array or a sparse array.
Featurize = Callable[[Sequence[str]], Any]


class Row(NamedTuple):
    """A baseline on one split: its metrics, and its seconds with training."""

    name: str
    results: dict[str, float]
    seconds: float


class _Kind(NamedTuple):
    """A kind of baseline.

    `fit` returns the function that computes features, given all training texts.
    `model` is scikit-learn's.
    """

    name: str
    fit: Callable[[Sequence[str]], Featurize]
    model: Any


class _Trained(NamedTuple):
    """A trained baseline; `predict` returns labels [B] or [B, C]."""

    name: str
    predict: Callable[[Sequence[tables.Example]], np.ndarray]
    seconds: float


def measure(
    task: classification_task.Task,
    train: Iterable[tables.Example],
    splits: Mapping[str, Iterable[tables.Example]],
    seed: int,
    average: Featurize | None = None,
) -> dict[str, list[Row]]:
    """Trains the baselines, and evaluates them on each split.

    Args:
        task: The task, which has the metrics.
        train: The training examples.
        splits: The examples to evaluate on, by split.
        seed: Seed of the sample, if there are too many training examples.
        average: As returned by `averages`; None leaves out word vectors.

    Returns:
        A row for each baseline, by split. Results of scores include the loss,
        the mean squared error.
    """
    examples = _sample(task, train, seed)
    labels = _labels(task, examples)
    trained = [
        _train(task, kind, examples, labels)
        for kind in _kinds(task, labels, average)
    ]
    return {
        split: _evaluate(task, trained, map(_cut, items))
        for split, items in splits.items()
    }


def write(
    path: str,
    task: classification_task.Task,
    model: Mapping[str, float],
    rows: Sequence[Row],
) -> None:
    """Writes and logs a table of the baselines and the model.

    `model` has the model's results, whose names begin with "eval_".
    """
    names = list(rows[0].results)
    table = [["baseline", *names, "seconds"]]
    table += [
        [row.name, *_cells(row.results, names), f"{row.seconds:.1f}"]
        for row in rows
    ]
    own = {name: model[f"eval_{name}"] for name in names}
    table.append(["this model", *_cells(own, names), "-"])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in table
    ]
    files.write_lines(path, lines)
    logging.info("Baselines, written to %s:", path)
    for line in lines:
        logging.info("  %s", line)
    metric = task.metrics[0]
    for row in rows:
        if row.results[metric] > own[metric]:
            logging.warning(
                "A baseline is better than the model: %s has %s %.4f, the "
                "model %.4f.",
                *(row.name, metric, row.results[metric], own[metric]),
            )


def _cells(results: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [f"{results[name]:.4f}" for name in names]


def averages(
    tokenizer: graph_rows.Tokenizer, vectors: word_vectors.Vectors
) -> Featurize:
    """Returns a function that averages the word vectors of texts, [B, E].

    Tokens without a vector do not count.
    """

    def average(texts: Sequence[str]) -> np.ndarray:
        parts = []
        for start in range(0, len(texts), _BATCH_SIZE):
            batch = texts[start : start + _BATCH_SIZE]
            ids = tokenizer.tokenize(tf.constant(batch))
            flat, splits = ids.values.numpy(), ids.row_splits.numpy()
            counts = scipy.sparse.csr_array(
                (vectors.found[flat].astype(np.float32), flat, splits),
                shape=(len(batch), len(vectors.table)),
            )
            totals = np.maximum(counts.sum(axis=1), 1)[:, np.newaxis]
            parts.append(counts @ vectors.table / totals)
        return np.concatenate(parts)

    return average


# ---- Data -------------------------------------------------------------------


def _sample(
    task: classification_task.Task, train: Iterable[tables.Example], seed: int
) -> list[tables.Example]:
    """Returns the training examples, or a sample if there are too many."""
    limit = min(ROWS, _ROWS_BY_CLASSES // len(task.labels or [""]))
    total = 0

    def counted() -> Iterator[tables.Example]:
        nonlocal total
        for example in train:
            total += 1
            yield _cut(example)

    examples = text_batches.drawn(counted(), limit, seed)
    if len(examples) < total:
        logging.info(
            "The baselines are trained on a random sample of %d of the %d "
            "training examples, to limit memory.",
            len(examples),
            total,
        )
    return examples


def _cut(example: tables.Example) -> tables.Example:
    return dataclasses.replace(
        example,
        text_a=example.text_a[:CHARACTERS],
        text_b=example.text_b[:CHARACTERS],
    )


def _labels(
    task: classification_task.Task, examples: Sequence[tables.Example]
) -> np.ndarray:
    """Returns class indices or scores [B], or 0 or 1 for each label [B, C]."""
    ids = {label: i for i, label in enumerate(task.labels or ())}
    return np.array(
        [
            text_records.label_value(x.label, ids, task.is_multi_label)
            for x in examples
        ]
    )


# ---- Features ---------------------------------------------------------------


def _tf_idf(task: classification_task.Task, texts: Sequence[str]) -> Featurize:
    """Returns a function that computes TF-IDF features, fitted to texts."""
    columns = min(COLUMNS, _COLUMNS_BY_CLASSES // len(task.labels or [""]))
    return (
        pipeline.make_pipeline(
            text.HashingVectorizer(
                n_features=columns,
                token_pattern=WORD,
                ngram_range=(1, 2),
                alternate_sign=False,
                norm=None,
            ),
            text.TfidfTransformer(sublinear_tf=True),
        )
        .fit(texts)
        .transform
    )


def _no_features(texts: Sequence[str]) -> np.ndarray:
    return np.zeros([len(texts), 1])


def _features(
    featurize: Featurize, examples: Sequence[tables.Example], takes_pairs: bool
) -> Any:
    """Returns the features of examples.

    A pair u, v has u, v, |u - v| and u * v, as in Conneau et al., 2017
    (https://arxiv.org/abs/1705.02364).
    """
    first = featurize([example.text_a for example in examples])
    if not takes_pairs:
        return first
    second = featurize([example.text_b for example in examples])
    if isinstance(first, np.ndarray):
        parts = [first, second, abs(first - second), first * second]
        return np.concatenate(parts, axis=1)
    parts = [first, second, abs(first - second), first.multiply(second)]
    return scipy.sparse.hstack(parts, "csr")


# ---- Training and evaluation ------------------------------------------------


def _kinds(
    task: classification_task.Task,
    labels: np.ndarray,
    average: Featurize | None,
) -> list[_Kind]:
    """Returns the baselines, not trained yet."""
    constant: Any = dummy.DummyClassifier(strategy="most_frequent")
    name, regression = "majority class", "logistic regression"
    if task.labels is None:
        constant = dummy.DummyRegressor()
        name, regression = "mean", "ridge regression"
    elif task.is_multi_label:
        name = "majority of each label"

    def model(strength: float = 1.0) -> Any:
        if task.labels is None:
            return linear_model.Ridge()
        logistic = linear_model.LogisticRegression(C=strength, max_iter=1000)
        if task.is_multi_label:
            return multiclass.OneVsRestClassifier(logistic)
        return logistic if len(np.unique(labels)) > 1 else constant

    tf_idf = functools.partial(_tf_idf, task)
    kinds = [
        _Kind(name, lambda _: _no_features, constant),
        _Kind(f"TF-IDF, {regression}", tf_idf, model(_TF_IDF_STRENGTH)),
    ]
    if average is not None:
        scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), model())
        name = f"word vectors, {regression}"
        kinds.append(_Kind(name, lambda _: average, scaled))
    return kinds


def _train(
    task: classification_task.Task,
    kind: _Kind,
    examples: Sequence[tables.Example],
    labels: np.ndarray,
) -> _Trained:
    meter, pairs = phases.Meter(), task.takes_pairs
    texts = [example.text_a for example in examples]
    texts += [example.text_b for example in examples] * pairs
    featurize = kind.fit(texts)
    with phases.lasting(f"Training {kind.name}"), warnings.catch_warnings():
        # A label that all or no examples have is predicted for all or none.
        warnings.simplefilter("ignore")
        kind.model.fit(_features(featurize, examples, pairs), labels)
    return _Trained(
        kind.name,
        lambda batch: kind.model.predict(_features(featurize, batch, pairs)),
        meter.seconds,
    )


def _evaluate(
    task: classification_task.Task,
    trained: Sequence[_Trained],
    examples: Iterable[tables.Example],
) -> list[Row]:
    labels: list[np.ndarray] = []
    predicted: list[list[np.ndarray]] = [[] for _ in trained]
    seconds = [baseline.seconds for baseline in trained]
    for batch in text_batches.of_texts(
        examples, text_records.characters, _BATCH_SIZE
    ):
        labels.append(_labels(task, batch))
        for i, baseline in enumerate(trained):
            meter = phases.Meter()
            predicted[i].append(baseline.predict(batch))
            seconds[i] += meter.seconds
    gold, rows = np.concatenate(labels), []
    for i, baseline in enumerate(trained):
        found = np.concatenate(predicted[i])
        results = classification_metrics.compute(task.metrics, gold, found)
        if task.labels is None:
            results["loss"] = float(((found - gold) ** 2).mean())
        rows.append(Row(baseline.name, results, seconds[i]))
    return rows
