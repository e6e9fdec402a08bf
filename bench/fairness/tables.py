"""The tables of docs/FAIRNESS.md."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from bench.fairness.cases import FULL_MS, NARROW_S, Case, customers, dependent, full, hung, stream, ten
from bench.fairness.simulation import DISCIPLINES, FAIR, FIFO, PRIORITY, simulate
from bench.fairness.tenants import MINUTES, TENANT_CASES, waits

CaseOf = Callable[[int], Case]
FULL_WORKERS = 4
PART_MS = 900_000


def latencies(case_of: CaseOf, workers: tuple[int, ...]) -> str:
    """Mean and p99 of the short queries, and the latency of the long one, by each policy and for this many workers."""
    heads = [f"{count} worker{'s' * (count > 1)}" for count in workers]
    lines = [f"{case_of(1).title}:", "", f"| | {' | '.join(heads)} |"]
    lines.append("|---" * (len(workers) + 1) + "|")
    for discipline in DISCIPLINES:
        cells = []
        for count in workers:
            course = simulate(case_of(count), discipline, count)
            cells.append(f"{course.mean_s:.1f} / {course.p99_s:.0f} / {course.long_s:.0f}")
        lines.append(f"| {discipline.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def levels() -> str:
    """Return the share of the workers' time of each level: by FAIR in parts of the hour, by the others in all of it."""
    parts = FULL_MS // PART_MS
    bounds = [f"{low} to {high} s" for low, high in pairwise(NARROW_S)] + [f"above {NARROW_S[-1]} s"]
    lines = ["| | " + " | ".join(bounds) + " |", "|---" * (len(bounds) + 1) + "|"]
    for discipline in (FIFO, PRIORITY):
        (whole,) = simulate(full(FULL_WORKERS), discipline, FULL_WORKERS).shares(FULL_MS)
        lines.append(_share_row(discipline.name, whole))
    windows = simulate(full(FULL_WORKERS), FAIR, FULL_WORKERS).shares(PART_MS)
    for number in range(parts):
        minutes = PART_MS // 60_000
        lines.append(_share_row(f"FAIR, minutes {number * minutes} to {(number + 1) * minutes}", windows[number]))
    return "\n".join(lines)


def _share_row(name: str, shares: list[float]) -> str:
    return f"| {name} | " + " | ".join(f"{100 * share:.1f}%" for share in shares) + " |"


def tenants() -> str:
    """The waits of the jobs of quiet tenants, and how many the other one had done, by the settings of the queue."""
    lines = ["| | mean wait | median | p99 | jobs of the other one, a second |", "|---|---|---|---|---|"]
    for one in TENANT_CASES:
        found = waits(one)
        mean_ms = sum(found.ms) / len(found.ms)
        cells = [_time(ms) for ms in (mean_ms, found.percentile(0.5), found.percentile(0.99))]
        lines.append(f"| {one.name} | {' | '.join(cells)} | {found.flooded / (MINUTES * 60):.0f} |")
    return "\n".join(lines)


def _time(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def sections() -> dict[str, str]:
    """The text for each place in the document."""
    return {
        "latencies": "\n\n".join([
            latencies(ten, (1, 2, 4, 8)), latencies(dependent, (1, 2, 4, 8)), latencies(hung, (2, 4, 8)),
            latencies(stream, (1, 2, 4, 8)), latencies(customers, (1, 2, 4, 8)),
        ]) + "\n",
        "levels": levels() + "\n",
        "tenants": tenants() + "\n",
    }
