"""The workloads of the comparison, as arguments of the load generator (generator.py), and what ratios are aimed at."""

from __future__ import annotations

from typing import NamedTuple

BYTES = 100                     # of a job, unless given


class Workload(NamedTuple):
    """One row of the tables. `preload`: jobs a second and worker that must be waiting before it begins.

    `rate`: the aim for the ratio of our rate to RabbitMQ's, at least; `p50` and `cpu`: for the ratios of the median
    time to delivery and of the processor time, at most. None: no aim.
    """

    title: str
    mode: str                   # produce, consume, pc (both at once), latency
    options: tuple[str, ...]
    preload: int = 0
    workers: int = 0
    batch: int = 1
    rate: float | None = None
    p50: float | None = None
    cpu: float | None = None


def _produce(connections: int, in_flight: int = 1, size: int = BYTES, rate: float | None = None) -> Workload:
    title = f"PUT, {connections:,} connection{'s' if connections > 1 else ''}"
    if in_flight > 1:
        title = f"PUT, {connections} connections with {in_flight} in flight each"
    if size != BYTES:
        title += f", {size:,} bytes"
    return Workload(title, "produce", ("-P", str(connections), "-W", str(in_flight), "-s", str(size)), rate=rate)


def _consume(workers: int, per_worker: int, batch: int = 1, rate: float | None = None) -> Workload:
    title = f"get and finish, {workers} worker{'s' if workers > 1 else ''}"
    if batch > 1:
        title += f", {batch} at once"
    return Workload(title, "consume", ("-C", str(workers), "-B", str(batch)), per_worker, workers, batch, rate=rate)


# Delivery comes first, while nothing is waiting.
WORKLOADS = {
    "delivery": Workload("PUT to delivery at 100 a second", "latency", ("-P", "1", "-C", "1", "--rate", "100"),
                         p50=1.4, cpu=1.2),
    "both": Workload("50 producers and 50 workers", "pc", ("-P", "50", "-C", "50"), rate=3.2),
    "work-1": _consume(1, 2500, rate=1.2),
    "work-10": _consume(10, 1000, rate=2.5),
    "work-100": _consume(100, 300, rate=3.6),
    "work-batches": _consume(10, 14_000, 100, rate=3.5),
    "put-1": _produce(1, rate=1.1),
    "put-10": _produce(10, rate=2.2),
    "put-100": _produce(100, rate=3.5),
    "put-1000": _produce(1000, rate=4.5),
    "put-100-large": _produce(100, size=1450),
    "pipelined": _produce(10, 100, rate=3.6),
}
