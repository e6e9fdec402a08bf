"""The table of the comparison: medians and spread of each workload and system, and ratios to RabbitMQ."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.compare.systems import SYSTEMS
from bench.compare.workloads import WORKLOADS

Runs = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]     # workload -> system -> what the generator printed


def lines(runs: Runs, surroundings: Mapping[str, object]) -> Iterator[str]:
    """The table in Markdown, and what was measured where."""
    systems = [name for name in SYSTEMS if any(name in of for of in runs.values())]
    against = {"sockpq", "rabbit"} <= set(systems)
    heads = ["workload"]
    for name in systems:
        heads += [SYSTEMS[name].title, "CPU µs"]
        if name == "sockpq" and against:
            heads.append("ratio to RabbitMQ")
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "--:|" * (len(heads) - 1)
    for workload, of in runs.items():
        cells = [WORKLOADS[workload].title]
        for name in systems:
            cells += _cells(workload, of.get(name, ()))
            if name == "sockpq" and against:
                cells.append(_ratio(workload, of.get("sockpq", ()), of.get("rabbit", ())))
        yield "| " + " | ".join(cells) + " |"
    yield ""
    durable = (f"{SYSTEMS[name].title}: {SYSTEMS[name].durable}" for name in systems)
    yield "An acknowledged job is, " + "; ".join(durable) + "."
    yield "Measured " + ", ".join(f"{key} {value}" for key, value in surroundings.items()) + "."


def _cells(workload: str, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    if not runs:
        return ["", ""]
    cpu = [float(run["srv_us_op"]) for run in runs]
    return [_speed(workload, runs), f"{statistics.median(cpu):,.1f} ({min(cpu):,.1f} to {max(cpu):,.1f})"]


def _speed(workload: str, runs: Sequence[Mapping[str, Any]]) -> str:
    if WORKLOADS[workload].mode == "latency":
        p50, p99 = (statistics.median(run["dlv_us"][place] for run in runs) / 1000 for place in (0, 1))
        return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"
    rates = [float(run["rate"]) for run in runs]
    return f"{statistics.median(rates):,.0f}/s ({min(rates):,.0f} to {max(rates):,.0f})"


def _ratio(workload: str, ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> str:
    if not ours or not theirs:
        return ""
    cpu = _median(ours, "srv_us_op") / max(_median(theirs, "srv_us_op"), 1e-9)
    if WORKLOADS[workload].mode == "latency":
        delays = [statistics.median(run["dlv_us"][0] for run in runs) for runs in (ours, theirs)]
        delay = delays[0] / max(delays[1], 1e-9)
        return f"p50 {delay:.2f}, CPU {cpu:.2f}"
    return f"**{_median(ours, 'rate') / _median(theirs, 'rate'):.2f}**, CPU {cpu:.2f}"


def _median(runs: Sequence[Mapping[str, Any]], key: str) -> float:
    return statistics.median(float(run[key]) for run in runs)
