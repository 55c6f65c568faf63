"""GLUE's task scores, its average, and summaries over seeds."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.tasks import trials

# The metrics that the leaderboard reports for each task, in its order.
METRICS: Mapping[str, tuple[str, ...]] = {
    "CoLA": ("matthews_correlation",),
    "SST-2": ("accuracy",),
    "MRPC": ("f1", "accuracy"),
    "STS-B": ("pearson", "spearman"),
    "QQP": ("f1", "accuracy"),
    "MNLI": ("accuracy", "mismatched_accuracy"),
    "QNLI": ("accuracy",),
    "RTE": ("accuracy",),
    "WNLI": ("accuracy",),
}
TASKS = tuple(METRICS)

# BERT's table 1 omits WNLI, takes one metric per task, and counts both MNLI
# sets.
_PAPERS = {
    **{task: names[:1] for task, names in METRICS.items() if task != "WNLI"},
    "STS-B": ("spearman",),
    "MNLI": METRICS["MNLI"],
}

# Rows of the full training files, to detect a subset.
TRAIN_ROWS: Mapping[str, int] = {
    "CoLA": 8551,
    "SST-2": 67349,
    "MRPC": 3668,
    "STS-B": 5749,
    "QQP": 363846,
    "MNLI": 392702,
    "QNLI": 104743,
    "RTE": 2490,
    "WNLI": 635,
}


def task_score(task: str, results: Mapping[str, float]) -> float:
    """Returns a task's score: the unweighted mean of its metrics.

    Wang et al., GLUE (2018), section 4. Without results on MNLI's mismatched
    set, only the matched set counts.
    """
    names = [name for name in METRICS[task] if name in results]
    if not names:
        raise InputError(
            f"The results of {task} have none of its metrics. Expected "
            f"{', '.join(METRICS[task])}. Received: {', '.join(results)}"
        )
    return statistics.fmean(results[name] for name in names)


def average(scores: Mapping[str, float]) -> float:
    """Returns GLUE's score: the unweighted mean over the tasks."""
    return statistics.fmean(scores.values())


def papers_average(
    results: Mapping[str, Mapping[str, float]],
) -> float | None:
    """Returns the average of BERT's table 1 (Devlin et al., 2019), or None."""
    values = [
        results[task][name]
        for task, names in _PAPERS.items()
        if task in results
        for name in names
        if name in results[task]
    ]
    return statistics.fmean(values) if values else None


# ---- Runs of a task ---------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Summary:
    """Runs of one task that differ only in their seeds.

    `results` are means over the runs, `settings` is a description, and
    `examples` the number of training rows.
    """

    task: str
    results: Mapping[str, float]
    scores: tuple[float, ...]
    settings: str
    examples: int

    @classmethod
    def from_results(
        cls,
        task: str,
        results: Sequence[Mapping[str, float]],
        settings: str,
        examples: int,
    ) -> "Summary":
        """Summarizes the results of the runs."""
        names = [name for name in METRICS[task] if name in results[0]]
        return cls(
            task,
            {n: statistics.fmean(found[n] for found in results) for n in names},
            tuple(task_score(task, found) for found in results),
            settings,
            examples,
        )

    @property
    def mean(self) -> float:
        """The mean score."""
        return statistics.fmean(self.scores)

    @property
    def median(self) -> float:
        """The median score."""
        return statistics.median(self.scores)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation of the scores; None for one run."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else None


def to_json(summaries: Sequence[Summary]) -> dict[str, object]:
    """Returns the summaries and their averages, as fractions of 1."""
    return {
        "tasks": {
            found.task: {
                "mean": found.mean,
                "median": found.median,
                "deviation": found.deviation,
                "scores": found.scores,
                "metrics": found.results,
                "settings": found.settings,
                "training_examples": found.examples,
                "of_training_examples": TRAIN_ROWS[found.task],
            }
            for found in summaries
        },
        "average_of_means": average({s.task: s.mean for s in summaries}),
        "average_of_medians": average({s.task: s.median for s in summaries}),
        "papers_average": papers_average(
            {s.task: s.results for s in summaries}
        ),
        "missing": [t for t in TASKS if t not in {s.task for s in summaries}],
    }


def table(summaries: Sequence[Summary]) -> list[str]:
    """Returns lines of a Markdown table, in percent, aligned for screens."""
    rows: list[tuple[str, ...]] = [
        ("task", "metrics", "mean", "median", "sd", "seeds", "trained with")
    ]
    for found in summaries:
        metrics = ", ".join(
            f"{name} {100 * value:.1f}" for name, value in found.results.items()
        )
        sd = "–" if found.deviation is None else f"{100 * found.deviation:.1f}"
        mean, median = f"{100 * found.mean:.1f}", f"{100 * found.median:.1f}"
        settings, whole = found.settings, TRAIN_ROWS[found.task]
        if found.examples < whole:
            settings += f"; on {found.examples:,} of {whole:,} rows"
        seeds = str(len(found.scores))
        rows.append((found.task, metrics, mean, median, sd, seeds, settings))
    rows.append(_average_row(summaries))
    return trials.table(rows)


def _average_row(summaries: Sequence[Summary]) -> tuple[str, ...]:
    means = average({s.task: s.mean for s in summaries})
    medians = average({s.task: s.median for s in summaries})
    papers = papers_average({s.task: s.results for s in summaries})
    note = f"as BERT's table 1 averages: {100 * papers:.1f}" if papers else ""
    tasks = f"{len(summaries)} of {len(TASKS)} tasks"
    averages = f"{100 * means:.1f}", f"{100 * medians:.1f}"
    return ("average", tasks, *averages, "", "", note)
