"""Latencies of the last second: of the wait for a hand-out, and of its length, from a sample of the hand-outs."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from sockpqd.cluster import Cluster
from sockpqd.core import LATENCY_STEPS, Latencies
from sockpqd.gateway.samples.quantiles import quantile

MEASURED_MAX = 500          # hand-outs a second: with more, every second, fourth .. one is measured
SHARES = 0.5, 0.95
UNKNOWN = (nan,) * 4
BOUNDS_S = tuple(2 ** (step / 2) / 1000 for step in range(LATENCY_STEPS - 1))      # below which the steps end


class QueueLatencies:
    """The latencies of the last second. Each is four figures: p50 and p95 of the wait and of the run, in seconds."""

    def __init__(self) -> None:
        self.total: tuple[float, ...] = UNKNOWN
        self._waited: Latencies = {}
        self._ran: Latencies = {}
        self._next_id: int | None = None

    def look(self, cluster: Cluster) -> None:
        """Take the measurements since the last call."""
        machine = cluster.machine
        last, self._next_id = self._next_id, machine.next_id
        mask = 0
        while last is not None and (self._next_id - last) // (mask + 1) > MEASURED_MAX:
            mask = 2 * mask + 1
        self._waited, self._ran = machine.take_latencies(mask)
        self.total = _figures(_sum(self._waited.values()), _sum(self._ran.values()))

    def of(self, queue: str) -> tuple[float, ...]:
        """Return the latencies of a queue, NaN where nothing was measured."""
        waited, ran = self._waited.get(queue), self._ran.get(queue)
        return UNKNOWN if waited is None and ran is None else _figures(waited or [], ran or [])


def _sum(counts: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*counts, strict=True)]


def _figures(waited: list[int], ran: list[int]) -> tuple[float, ...]:
    return tuple(quantile(BOUNDS_S, counts, share) for counts in (waited, ran) for share in SHARES)
