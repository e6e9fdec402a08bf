"""Counts what the program does, and shows it in the text format of Prometheus. docs/PUSH.md lists the metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
REASONS = frozenset({
    "bad_answer", "bad_request", "closed", "connect", "dns", "lease", "refused_address", "resting", "result_too_long",
    "stopped", "timeout", "tls", "turn",
})


class TargetFigures:
    """The figures of one target, counted as plain numbers where things happen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.jobs: Counter[tuple[str, str]] = Counter()     # by outcome and reason
        self.durations = [0] * (len(BUCKETS_S) + 1)
        self.duration_sum_s = 0.0
        self.in_flight = 0
        self.resting = False
        self.rests = 0
        self.taking = False         # the last request for jobs was executed

    def count(self, outcome: str, reason: str) -> None:
        """Count the end of a job. Reasons other than HTTP statuses and this program's own are counted as one."""
        known = reason in REASONS or (reason.startswith("http_") and len(reason) == 8)
        self.jobs[outcome, reason if known else "other"] += 1

    def took(self, seconds: float) -> None:
        """Record how long a request took."""
        self.durations[bisect_left(BUCKETS_S, seconds)] += 1
        self.duration_sum_s += seconds


class _Figures(Collector):
    """The families of metrics, as prometheus_client collects them."""

    def __init__(self, targets: Iterable[TargetFigures], lost: int, unreported: int) -> None:
        self._targets = list(targets)
        self._lost = lost
        self._unreported = unreported

    def collect(self) -> Iterator[Metric]:
        jobs = CounterMetricFamily("sockpq_push_jobs", "Jobs sent, by outcome", labels=["target", "outcome", "reason"])
        times = HistogramMetricFamily("sockpq_push_request_seconds", "How long requests took", labels=["target"])
        flying = GaugeMetricFamily("sockpq_push_in_flight", "Jobs in hand", labels=["target"])
        resting = GaugeMetricFamily("sockpq_push_resting", "1 while the target rests", labels=["target"])
        rests = CounterMetricFamily("sockpq_push_rests", "Rests begun", labels=["target"])
        taking = GaugeMetricFamily("sockpq_push_taking", "1 while the cluster hands out jobs", labels=["target"])
        for target in self._targets:
            for (outcome, reason), count in target.jobs.items():
                jobs.add_metric([target.name, outcome, reason], count)
            bounds = [*(f"{bound:g}" for bound in BUCKETS_S), "+Inf"]
            buckets = list(zip(bounds, map(float, accumulate(target.durations)), strict=True))
            times.add_metric([target.name], buckets, target.duration_sum_s)
            flying.add_metric([target.name], target.in_flight)
            resting.add_metric([target.name], target.resting)
            rests.add_metric([target.name], target.rests)
            taking.add_metric([target.name], target.taking)
        yield from (jobs, times, flying, resting, rests, taking)
        yield CounterMetricFamily("sockpq_push_lost", "Jobs sent that had gone back meanwhile", value=self._lost)
        yield GaugeMetricFamily("sockpq_push_unreported", "Jobs whose DONE is not confirmed", value=self._unreported)


def text_of(targets: Iterable[TargetFigures], lost: int, unreported: int) -> bytes:
    """Return the metrics as text. `lost`: jobs that had gone back; `unreported`: jobs whose DONE is not confirmed."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(targets, lost, unreported))
    text: bytes = generate_latest(registry)
    return text


