"""The tables of the comparison: medians and spread of each workload and system, ratios to RabbitMQ, and the aims."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.compare.systems import SYSTEMS
from bench.compare.workloads import WORKLOADS

Run = Mapping[str, Any]                                 # what the generator printed
Runs = Mapping[str, Mapping[str, Sequence[Run]]]        # by workload and system

REPLICATED = ("sockpq", "rabbit", "nats", "nats-synced")
OF_ONE_NODE = ("sockpq1", "redis", "postgresql")


def lines(runs: Runs, surroundings: Mapping[str, object]) -> Iterator[str]:
    """Return the tables in Markdown, with the conditions of the measurement."""
    systems = [name for name in REPLICATED if any(name in of for of in runs.values())]
    against = {"sockpq", "rabbit"} <= set(systems)
    titles = [SYSTEMS[name].title for name in systems]
    yield from _table(["workload", *titles, *(["ratio to RabbitMQ", "aim"] if against else [])], (
        [WORKLOADS[workload].title, *(_speed(workload, of.get(name, ())) for name in systems),
         *(_rates(workload, of) if against else ())]
        for workload, of in runs.items() if any(name in of for name in systems)
    ))
    yield from _table(["CPU µs of all nodes", *titles, *(["ratio to RabbitMQ", "aim"] if against else [])], (
        [WORKLOADS[workload].title, *(_cpu(of.get(name, ())) for name in systems),
         *(_cpus(workload, of) if against else ())]
        for workload, of in runs.items() if any(name in of for name in systems)
    ))
    alone = {workload: of for workload, of in runs.items() if "sockpq1" in of and "sockpq" in of}
    if alone:
        yield from _table(
            ["sockpqd", "one node", "three nodes", "ratio", "one node, CPU µs", "three nodes, CPU µs", "ratio"],
            (_replication(workload, of["sockpq1"], of["sockpq"]) for workload, of in alone.items()))
    single = [name for name in OF_ONE_NODE if any(name in of for of in runs.values())]
    if len(single) > 1:
        titles = [SYSTEMS[name].title for name in single]
        yield from _table(["one node", *titles, *(f"{title}, CPU µs" for title in titles)], (
            [WORKLOADS[workload].title, *(_speed(workload, of.get(name, ())) for name in single),
             *(_cpu(of.get(name, ())) for name in single)]
            for workload, of in runs.items() if any(name in of for name in single)
        ))
    if systems:
        durable = (f"{SYSTEMS[name].title}: {SYSTEMS[name].durable}" for name in [*systems, *single[1:]])
        yield "An acknowledged job is, " + "; ".join(durable) + "."
    yield "Measured " + ", ".join(f"{key} {value}" for key, value in surroundings.items()) + "."


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "--:|" * (len(heads) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _speed(workload: str, runs: Sequence[Run]) -> str:
    """Return the median rate and its range, or the delay of a delivery."""
    if not runs:
        return ""
    if WORKLOADS[workload].mode == "latency":
        p50, p99 = (statistics.median(run["dlv_us"][place] for run in runs) / 1000 for place in (0, 1))
        return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"
    rates = [float(run["rate"]) for run in runs]
    return f"{statistics.median(rates):,.0f}/s ({min(rates):,.0f} to {max(rates):,.0f})"


def _cpu(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    cpu = [float(run["srv_us_op"]) for run in runs]
    return f"{statistics.median(cpu):,.1f} ({min(cpu):,.1f} to {max(cpu):,.1f})"


def _rates(workload: str, of: Mapping[str, Sequence[Run]]) -> tuple[str, str]:
    """Return the ratio of the rates, or of the times to delivery, and its aim."""
    known = WORKLOADS[workload]
    aim = "" if known.rate is None else f"{known.rate:g}"
    if known.p50 is not None:
        aim = f"p50 at most {known.p50:g}"
    ours, theirs = of.get("sockpq"), of.get("rabbit")
    if not ours or not theirs:
        return "", aim
    if known.mode == "latency":
        delays = [statistics.median(run["dlv_us"][0] for run in runs) for runs in (ours, theirs)]
        return f"p50 **{delays[0] / max(delays[1], 1e-9):.2f}**", aim
    return f"**{_median(ours, 'rate') / _median(theirs, 'rate'):.2f}**", aim


def _cpus(workload: str, of: Mapping[str, Sequence[Run]]) -> tuple[str, str]:
    most = WORKLOADS[workload].cpu
    aim = "" if most is None else f"at most {most:g}"
    ours, theirs = of.get("sockpq"), of.get("rabbit")
    return _quotient(ours, theirs, "srv_us_op") if ours and theirs else "", aim


def _replication(workload: str, alone: Sequence[Run], three: Sequence[Run]) -> list[str]:
    if WORKLOADS[workload].mode == "latency":
        delays = [statistics.median(run["dlv_us"][0] for run in runs) for runs in (alone, three)]
        speed = [*(f"p50 {delay / 1000:.2f} ms" for delay in delays), f"{delays[1] / max(delays[0], 1e-9):.2f}"]
    else:
        speed = [*(f"{_median(runs, 'rate'):,.0f}/s" for runs in (alone, three)), _quotient(three, alone, "rate")]
    cpu = [*(f"{_median(runs, 'srv_us_op'):,.1f}" for runs in (alone, three)), _quotient(three, alone, "srv_us_op")]
    return [WORKLOADS[workload].title, *speed, *cpu]


def _quotient(runs: Sequence[Run], others: Sequence[Run], key: str) -> str:
    return f"{_median(runs, key) / max(_median(others, key), 1e-9):.2f}"


def _median(runs: Sequence[Run], key: str) -> float:
    return statistics.median(float(run[key]) for run in runs)
