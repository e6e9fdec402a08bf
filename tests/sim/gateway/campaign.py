"""Many runs of clusters with gateways, and their report."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

from tests.sim.campaign import broken, rare_collections
from tests.sim.gateway.world import GatewayWorld
from tests.sim.world.trace import Violation

FORK = multiprocessing.get_context("fork")


@dataclass
class GatewayReport:
    """The sum of some runs. `fullest`: of all windows, as a fraction of what the pulse allowed."""

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
        """Return the report as lines of text."""
        yield f"{self.runs} runs, {self.simulated_s:.0f} simulated seconds, {len(self.failures)} failed"
        yield f"the fullest window held {self.fullest:.3f} of what it may"
        yield "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        yield "seen: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.seen.items()))
        for seed, what in sorted(self.failures.items()):
            yield f"seed {seed}: {what.splitlines()[0]}"


def one(seed: int, **fixed: Any) -> tuple[GatewayWorld, str]:
    """Run a seed; returns the run, and what went wrong in it with a short trace, "" for nothing."""
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
            try:
                world, failure = one(seed, **fixed)
            except Exception as error:
                report.merge(GatewayReport(1, failures={seed: broken(error)}))
                continue
            failures = {seed: failure} if failure else {}
            report.merge(GatewayReport(
                1, world.events.now, world.monitor.fullest, world.trace.faults, world.trace.seen, failures,
            ))
    return report


def spread(seeds: range, jobs: int, **fixed: Any) -> Iterator[GatewayReport]:
    """As run(), each seed in a process of its own, several at a time; the same report, one run longer each time.

    What a world leaves behind ends with its process: cycles through structs without garbage collection would keep it.
    """
    report, ahead = GatewayReport(), iter(seeds)
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while True:
            for seed in islice(ahead, jobs - len(running)):
                here, there = FORK.Pipe(duplex=False)
                process = FORK.Process(target=_tell, args=(there, seed), kwargs=fixed)
                process.start()
                there.close()
                running[here] = seed, process
            if not running:
                return
            for ready in wait(running):
                assert isinstance(ready, Connection)
                seed, process = running.pop(ready)
                report.merge(_told(ready, seed, process))
                yield report
    finally:
        for _, process in running.values():
            process.kill()


def _tell(there: Connection, seed: int, **fixed: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    there.send(run([seed], **fixed))


def _told(here: Connection, seed: int, process: ForkProcess) -> GatewayReport:
    with here:
        try:
            report: GatewayReport = here.recv()
        except EOFError:
            report = GatewayReport(1, failures={seed: "its process ended without a report"})
    process.join()
    return report
