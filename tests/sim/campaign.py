"""Many runs, in one process or several, and their report."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import re
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from tests.sim.world.trace import Violation
from tests.sim.world.world import World

GC_OBJECTS = 200_000            # a run's objects die together: looking for garbage in its middle is a waste
ZEROS = re.compile(r"(\\x00)+")  # bodies are filled up with them
PART_SEEDS = 25                 # a process is given no more at a time


@dataclass
class Report:
    """The sum of some runs. A run counts only if something was acknowledged and some fault fired; others are void."""

    runs: int = 0
    void: int = 0
    steps: int = 0
    simulated_s: float = 0.0
    core_s: float = 0.0                 # of processor time
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

    def merge(self, other: Report) -> None:
        """Count the runs of another report as well."""
        self.runs += other.runs
        self.void += other.void
        self.steps += other.steps
        self.simulated_s += other.simulated_s
        self.core_s += other.core_s
        self.acknowledged += other.acknowledged
        self.faults.update(other.faults)
        self.seen.update(other.seen)
        self.failures.update(other.failures)

    def speed(self) -> float:
        """Return the runs per second of one core."""
        return self.runs / self.core_s if self.core_s else 0.0

    def lines(self, options: str = "") -> Iterator[str]:
        """Return the report as lines of text. `options`: the other options of `make sim`."""
        yield f"{self.runs} runs, {self.void} void, {len(self.failures)} failed"
        yield f"{self.steps} steps, {self.simulated_s:.0f} simulated seconds"
        yield f"{self.acknowledged} operations acknowledged"
        yield "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        yield "seen: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.seen.items()))
        yield f"{self.speed():.1f} runs in a second of one core"
        for seed, what in sorted(self.failures.items()):
            yield f"seed {seed}: {what.splitlines()[0]}; repeat with: make sim SEEDS=1 FIRST={seed}{options}"


def one(seed: int, *, digesting: bool = False, **fixed: Any) -> tuple[World, str]:
    """Run a seed; returns the run, and what went wrong in it with a short trace, "" for nothing."""
    world = World(seed, digesting=digesting, **fixed)
    try:
        world.run()
    except Violation as violation:
        return world, "\n".join([ZEROS.sub("..", str(violation)), *world.trace.last(), world.describe()])
    return world, ""


def broken(error: Exception) -> str:
    """Return the report of a run that ended with an error other than a broken promise: it is judged like one."""
    return "".join(["the run broke off: ", *traceback.format_exception_only(error), *traceback.format_exception(error)])


def run(seeds: Iterable[int], **fixed: Any) -> Iterator[Report]:
    """Run the seeds; yields the same report repeatedly, one run longer each time."""
    report = Report()
    with rare_collections():
        for seed in seeds:
            began = time.process_time()
            try:
                world, failure = one(seed, **fixed)
                report.add(world)
            except Exception as error:
                failure = broken(error)
                report.runs += 1
            if failure:
                report.failures[seed] = failure
            report.core_s += time.process_time() - began
            yield report


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.set_threshold(GC_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _whole(seeds: Sequence[int], fixed: dict[str, Any]) -> Report:
    *_, report = run(seeds, **fixed)
    return report


def spread(seeds: Sequence[int], jobs: int, **fixed: Any) -> Iterator[Report]:
    """As run(), in this many processes; the report grows by some runs at a time."""
    if jobs == 1:
        yield from run(seeds, **fixed)
        return
    report = Report()
    size = max(1, min(PART_SEEDS, len(seeds) // jobs))
    parts = [seeds[start:start + size] for start in range(0, len(seeds), size)]
    with processes(jobs) as pool:
        try:
            for part in as_completed([pool.submit(_whole, part, fixed) for part in parts]):
                report.merge(part.result())
                yield report
        finally:
            pool.shutdown(cancel_futures=True)


def processes(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, context, _leave_interrupts_to_the_first_process)


def _leave_interrupts_to_the_first_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def digest(seed: int) -> str:
    """Return a digest of everything that happened in a run: 32 letters."""
    world, failure = one(seed, digesting=True)
    world.trace.ended(world.steps, world.rng, failed=bool(failure))
    return world.trace.digest()


def digests(seeds: Iterable[int], jobs: int = 1) -> Iterator[str]:
    """Return the digest of each run, in order, in this many processes."""
    if jobs == 1:
        with rare_collections():
            yield from map(digest, seeds)
        return
    with processes(jobs) as pool:
        try:
            yield from pool.map(digest, seeds, chunksize=PART_SEEDS)
        finally:
            pool.shutdown(cancel_futures=True)
