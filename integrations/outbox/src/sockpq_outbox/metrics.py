"""The metrics page of a relay, for Prometheus. Needs the extra sockpq-outbox[metrics]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from sockpq_outbox.relay.statistics import Statistics


class _Page(Collector):
    """The counters of a relay at the time of the request."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    def collect(self) -> Iterator[Any]:
        seen, counts = self._statistics, self._statistics.counts
        for name, value, text in (
            ("holds", int(seen.holds), "1 if this relay is the one at work"),
            ("lag_seconds", seen.lag_s, "age of the oldest row that waits"),
            ("waiting_rows", counts.waiting, "rows that wait"),
            ("claimed_rows", counts.claimed, "rows of a batch that is being put, or was put a moment ago"),
            ("failed_rows", counts.failed, "rows that the cluster has refused for good"),
            ("blocked_queues", len(seen.blocked), "queues that take no jobs at present"),
        ):
            yield GaugeMetricFamily(f"sockpq_outbox_{name}", text, value=value)
        for name, value, text in (
            ("put_jobs", seen.put, "jobs put into the cluster"),
            ("batches", seen.batches, "batches of them"),
            ("refused_jobs", seen.failed, "rows marked as failed"),
            ("takeovers", seen.takeovers, "times that this relay has taken a ledger"),
            ("errors", seen.errors, "errors of the database or the cluster after which it began again"),
        ):
            yield CounterMetricFamily(f"sockpq_outbox_{name}", text, value=value)


def serve(statistics: Statistics, host: str, port: int) -> tuple[Any, Any]:
    """Serve the page in a thread; returns the server, which has `server_port` and `shutdown()`, and its thread."""
    registry = CollectorRegistry()
    registry.register(_Page(statistics))
    return start_http_server(port, host, registry)
