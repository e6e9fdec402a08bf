"""Figures of the door, counted as plain numbers, and printed for Prometheus when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
NO_ACTION = "-"                 # of a request that was refused before its action was known
OK = "OK"


class Figures(Collector):
    """Counts requests by action and outcome, and prints them with the current state of the connections."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()     # of (action, code of the error or OK)
        self.in_progress = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self.cut: Counter[str] = Counter()                      # connections, by reason
        self.connections: Callable[[], int] = lambda: 0
        self.held_bytes: Callable[[], int] = lambda: 0
        self._seconds: dict[str, list[int]] = {}                # of an action -> requests in each bucket, and beyond
        self._sums: Counter[str] = Counter()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def count(self, action: str, code: str, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[action, code] += 1
        buckets = self._seconds.get(action)
        if buckets is None:
            buckets = self._seconds[action] = [0] * (len(BUCKETS_S) + 1)
        buckets[bisect_left(BUCKETS_S, seconds)] += 1
        self._sums[action] += seconds           # type: ignore[assignment]   # Counter adds floats as well

    def page(self) -> bytes:
        """Return all figures in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all figures (prometheus_client.registry.Collector)."""
        requests = CounterMetricFamily(
            "sockpq_sqs_requests", "Requests that were answered, by action and code of the error.",
            labels=("action", "code"))
        for (action, code), number in self.requests.items():
            requests.add_metric((action, code), number)
        yield requests
        seconds = HistogramMetricFamily(
            "sockpq_sqs_request_seconds", "Time to answer a request, with its wait for a message.", labels=("action",))
        for action, counted in self._seconds.items():
            seconds.add_metric((action,), _cumulative(counted), self._sums[action])
        yield seconds
        cut = CounterMetricFamily("sockpq_sqs_connections_cut", "Connections that were cut off.", labels=("reason",))
        for reason, number in self.cut.items():
            cut.add_metric((reason,), number)
        yield cut
        yield CounterMetricFamily("sockpq_sqs_received_bytes", "Bytes of bodies received.", self.received_bytes)
        yield CounterMetricFamily("sockpq_sqs_sent_bytes", "Bytes of bodies sent.", self.sent_bytes)
        yield GaugeMetricFamily("sockpq_sqs_in_progress", "Requests in progress.", self.in_progress)
        yield GaugeMetricFamily("sockpq_sqs_connections", "Connections of clients.", self.connections())
        yield GaugeMetricFamily("sockpq_sqs_held_bytes", "Memory that is held for clients.", self.held_bytes())


def _cumulative(counted: list[int]) -> list[tuple[str, float]]:
    found, total = [], 0
    for bound, number in zip((*map(str, BUCKETS_S), "+Inf"), counted, strict=True):
        total += number
        found.append((bound, float(total)))
    return found
