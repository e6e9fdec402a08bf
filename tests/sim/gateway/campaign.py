"""Many runs of clusters with gateways, and what they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.sim.campaign import processes, rare_collections
from tests.sim.gateway.world import GatewayWorld
from tests.sim.world.trace import Violation


@dataclass
class GatewayReport:
    """The sum of some runs. `fullest`: of all windows, as a part of what the pulse allowed."""

    runs: int = 0
    simulated_s: float = 0.0
    fullest: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)      # seed -> what happened

    def merge(self, other: GatewayReport) -> None:
        """Count the runs of another report as well."""
        self.runs += other.runs
        self.simulated_s += other.simulated_s
        self.fullest = max(self.fullest, other.fullest)
        self.faults.update(other.faults)
        self.seen.update(other.seen)
        self.failures.update(other.failures)

    def lines(self) -> Iterator[str]:
        """For a reader."""
        yield f"{self.runs} runs, {self.simulated_s:.0f} simulated seconds, {len(self.failures)} failed"
        yield f"the fullest window held {self.fullest:.3f} of what it may"
        yield "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        yield "seen: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.seen.items()))
        for seed, what in sorted(self.failures.items()):
            yield f"seed {seed}: {what.splitlines()[0]}"


def one(seed: int, **fixed: Any) -> tuple[GatewayWorld, str]:
    """A run, and what went wrong in it with a short trace, "" for nothing."""
    world = GatewayWorld(seed, **fixed)
    try:
        world.run()
    except Violation as violation:
        return world, "\n".join([str(violation), *world.trace.last(), world.describe()])
    return world, ""


def run(seeds: Iterable[int], **fixed: Any) -> GatewayReport:
    """Run the seeds; `fixed` as in GatewayWorld."""
    report = GatewayReport()
    with rare_collections():
        for seed in seeds:
            world, failure = one(seed, **fixed)
            failures = {seed: failure} if failure else {}
            report.merge(GatewayReport(
                1, world.events.now, world.monitor.fullest, world.trace.faults, world.trace.seen, failures,
            ))
    return report


def spread(seeds: range, jobs: int, **fixed: Any) -> Iterator[GatewayReport]:
    """As run(), by so many processes; the same report again and again, one run longer each time."""
    report = GatewayReport()
    work: Callable[[list[int]], GatewayReport] = partial(run, **fixed)
    if jobs == 1:
        for seed in seeds:
            report.merge(work([seed]))
            yield report
        return
    with processes(jobs) as pool:
        try:
            for part in as_completed([pool.submit(work, [seed]) for seed in seeds]):
                report.merge(part.result())
                yield report
        finally:
            pool.shutdown(cancel_futures=True)
