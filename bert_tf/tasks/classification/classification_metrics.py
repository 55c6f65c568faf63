"""The official metrics of GLUE, computed by scikit-learn and SciPy."""

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Sequence

from bert_tf.errors import InputError, NotFiniteError

import numpy as np
import scipy.stats
from absl import logging
from sklearn import metrics


def compute(
    names: Iterable[str],
    labels: Sequence[float] | np.ndarray,
    predictions: Sequence[float] | np.ndarray,
) -> dict[str, float]:
    """Computes metrics by name, from NAMES.

    Labels and predictions are class indices or scores [examples], or for
    multi-label tasks 0 or 1 for each label, [examples, labels]. A metric that
    is undefined for them (a correlation with constant predictions, F1 without
    positives) is 0.0 and logs a warning.

    Raises:
        InputError: An unknown metric, no examples, different lengths, or a
            value that is not finite.
    """
    names = list(names)
    unknown = [name for name in names if name not in _METRICS]
    if unknown:
        raise InputError(
            f"Unknown metrics. Expected some of {', '.join(NAMES)}. "
            f"Received: {', '.join(unknown)}"
        )
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if (
        labels.ndim != (2 if set(names) & _OF_SETS else 1)
        or not labels.size
        or labels.shape != predictions.shape
    ):
        raise InputError(
            "Metrics need one prediction per label, and at least one. "
            f"Received: labels {labels.shape}, predictions {predictions.shape}"
        )
    if not (np.isfinite(labels).all() and np.isfinite(predictions).all()):
        raise NotFiniteError(
            "Not a finite number in labels or predictions, so there are no "
            "metrics. Try a lower learning rate, or another --dtype."
        )
    return {name: _value(name, labels, predictions) for name in names}


def _value(name: str, labels: np.ndarray, predictions: np.ndarray) -> float:
    with warnings.catch_warnings():
        # Undefined metrics are logged below, once.
        warnings.simplefilter("ignore")
        value = float(_METRICS[name](labels, predictions))
    if math.isfinite(value):
        return value
    logging.warning(
        "%s is undefined for these %d examples (all labels or all predictions "
        "are the same); reported as 0.0.",
        name,
        len(labels),
    )
    return 0.0


def _matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    # scikit-learn silently returns 0.0 for the undefined 0 / 0.
    if len(set(labels)) == 1 or len(set(predictions)) == 1:
        return math.nan
    return metrics.matthews_corrcoef(labels, predictions)


def _f1(undefined: float, **average: str) -> Callable[..., float]:
    return functools.partial(
        metrics.f1_score, zero_division=undefined, **average
    )


def _correlation(function: Callable) -> Callable:
    def correlate(labels: np.ndarray, predictions: np.ndarray) -> float:
        # A single pair of values has no correlation; SciPy raises for it.
        if len(labels) < 2:
            return math.nan
        return function(labels, predictions).statistic

    return correlate


_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": metrics.accuracy_score,
    "f1": _f1(math.nan),
    "macro_f1": _f1(0.0, average="macro"),
    "micro_f1": _f1(math.nan, average="micro"),
    # The fraction of examples whose labels are all correct.
    "subset_accuracy": metrics.accuracy_score,
    "matthews_correlation": _matthews,
    "pearson": _correlation(scipy.stats.pearsonr),
    "spearman": _correlation(scipy.stats.spearmanr),
}
NAMES = tuple(_METRICS)
# Metrics of multi-label tasks only; with them, macro_f1 is multi-label too.
_OF_SETS = {"micro_f1", "subset_accuracy"}
