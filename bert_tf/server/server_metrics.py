"""The server's Prometheus metrics."""

from collections.abc import Callable

import prometheus_client as prometheus

_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts requests and batches, in a separate registry."""

    content_type = prometheus.CONTENT_TYPE_LATEST

    def __init__(self):
        self._registry = registry = prometheus.CollectorRegistry()
        for collector in (
            prometheus.ProcessCollector,
            prometheus.PlatformCollector,
            prometheus.GCCollector,
        ):
            collector(registry=registry)
        self.requests = prometheus.Counter(
            "bert_tf_requests",
            "POST requests by HTTP status; an unknown model is empty.",
            ("model", "method", "status"),
            registry=registry,
        )
        self.seconds = prometheus.Histogram(
            "bert_tf_request_seconds",
            "From a request's headers to its answer.",
            ("model", "method"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._rows = prometheus.Histogram(
            "bert_tf_batch_rows",
            "Rows that a model has read at once.",
            ("model",),
            buckets=_ROWS,
            registry=registry,
        )
        self._waiting = prometheus.Gauge(
            "bert_tf_waiting_requests",
            "Requests that wait for a model, or that it answers.",
            ("model",),
            registry=registry,
        )

    def on_batch(self, model: str, rows: int) -> None:
        """Counts a batch."""
        self._rows.labels(model).observe(rows)

    def watch(self, model: str, waiting: Callable[[], int]) -> None:
        """Adds the length of a model's queue to the metrics."""
        self._waiting.labels(model).set_function(waiting)

    def as_text(self) -> bytes:
        """Returns the metrics in the text format of Prometheus."""
        return prometheus.generate_latest(self._registry)
