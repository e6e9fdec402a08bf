"""Many runs, and what they amount to."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.sim.trace import Violation
from tests.sim.world import World

GC_OBJECTS = 200_000            # a run's objects die together: looking for garbage in its middle is a waste


@dataclass
class Report:
    """The sum of some runs. A run counts only if something was acknowledged and some fault fired; others are void."""

    runs: int = 0
    void: int = 0
    steps: int = 0
    simulated_s: float = 0.0
    acknowledged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)      # seed -> what happened

    def add(self, world: World) -> None:
        """Count a run that has ended."""
        acknowledged = world.checks.acknowledged()
        self.runs += 1
        self.void += not acknowledged or not world.trace.faults
        self.steps += world.steps
        self.simulated_s += world.events.now
        self.acknowledged += acknowledged
        self.faults.update(world.trace.faults)
        self.seen.update(world.trace.seen)

    def lines(self) -> Iterator[str]:
        """For a reader."""
        yield f"{self.runs} runs, {self.void} void, {len(self.failures)} failed"
        yield f"{self.steps} steps, {self.simulated_s:.0f} simulated seconds"
        yield f"{self.acknowledged} operations acknowledged"
        yield "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        yield "seen: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.seen.items()))
        for seed, what in self.failures.items():
            yield f"seed {seed}: {what.splitlines()[0]}; repeat with: make sim SEEDS=1 FIRST={seed}"


def one(seed: int, **fixed: Any) -> tuple[World, str]:
    """A run, and what went wrong in it with a short trace, "" for nothing."""
    world = World(seed, **fixed)
    try:
        world.run()
    except Violation as violation:
        return world, "\n".join([str(violation), *world.trace.last(), world.describe()])
    return world, ""


def run(seeds: Iterable[int], **fixed: Any) -> Iterator[Report]:
    """Run the seeds; the same report again and again, one run longer each time."""
    report = Report()
    thresholds = gc.get_threshold()
    gc.set_threshold(GC_OBJECTS, *thresholds[1:])
    try:
        for seed in seeds:
            world, failure = one(seed, **fixed)
            report.add(world)
            if failure:
                report.failures[seed] = failure
            yield report
    finally:
        gc.set_threshold(*thresholds)


def digests(seeds: Iterable[int]) -> Iterator[str]:
    """What happened in each run, in 32 letters."""
    for seed in seeds:
        world, _ = one(seed)
        yield world.trace.digest()
