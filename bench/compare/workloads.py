"""The workloads of the comparison, as arguments of the load generator (generator.py)."""

from __future__ import annotations

from typing import NamedTuple

BYTES = 100                     # of a job, unless said


class Workload(NamedTuple):
    """One row of the table. `preload`: jobs a second and worker that must be waiting before it begins."""

    title: str
    mode: str                   # produce, consume, pc (both at once), latency
    options: tuple[str, ...]
    preload: int = 0
    workers: int = 0
    batch: int = 1


def _produce(connections: int, in_flight: int = 1, size: int = BYTES) -> Workload:
    title = f"PUT, {connections:,} connection{'s' if connections > 1 else ''}"
    if in_flight > 1:
        title = f"PUT, {connections} connections with {in_flight} under way each"
    if size != BYTES:
        title += f", {size:,} bytes"
    return Workload(title, "produce", ("-P", str(connections), "-W", str(in_flight), "-s", str(size)))


def _consume(workers: int, per_worker: int, batch: int = 1) -> Workload:
    title = f"get and finish, {workers} worker{'s' if workers > 1 else ''}"
    if batch > 1:
        title += f", {batch} at once"
    return Workload(title, "consume", ("-C", str(workers), "-B", str(batch)), per_worker, workers, batch)


# Delivery comes first, while nothing is waiting.
WORKLOADS = {
    "delivery": Workload("PUT to delivery at 100 a second", "latency", ("-P", "1", "-C", "1", "--rate", "100")),
    "both": Workload("50 producers and 50 workers", "pc", ("-P", "50", "-C", "50")),
    "work-1": _consume(1, 2500),
    "work-10": _consume(10, 1000),
    "work-100": _consume(100, 300),
    "work-batches": _consume(10, 14_000, 100),
    "put-1": _produce(1),
    "put-10": _produce(10),
    "put-100": _produce(100),
    "put-1000": _produce(1000),
    "put-100-large": _produce(100, size=1450),
    "pipelined": _produce(10, 100),
}
