"""One stretch of load in closed loops, and all measurements during it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, TypeVar

import uvloop

from bench.load_generator.closed_loop import Cycle, Shift, work
from bench.load_generator.figures import LoadFigures, Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.target import Target
from bench.load_generator.wire import wires_to

T = TypeVar("T")

Crew = tuple[int, Sequence[str]]        # the number of connections, and the steps that each repeats


@dataclass
class Run:
    """The measurements of a run. `cpu_us`: CPU time of all local nodes together, None if unknown.

    `generator_load`: the share of one CPU that this process has used; near 1, the generator was the bottleneck.
    """

    figures: LoadFigures
    seconds: float
    cpu_us: int | None
    generator_load: float

    def per_second(self, step: str) -> float:
        """Answers to this step per second."""
        return len(self.figures.latencies_us[step]) / self.seconds

    def cpu_us_per(self, count: int) -> float | None:
        """CPU time of the nodes for each of `count` operations."""
        return None if self.cpu_us is None or not count else self.cpu_us / count

    def row(self, step: str) -> Row:
        """The figures of a step."""
        return {"step": step, "answered": len(self.figures.latencies_us[step]), "per_second": self.per_second(step),
                **self.figures.latency(step)}


def run(
    target: Target, jobs: Jobs, crews: Sequence[Crew],
    times: int | None = None, seconds: float | None = None, pipeline: int = 1,
) -> Run:
    """Run crews against the leader side by side, until each has done its steps `times` times, or for `seconds`.

    `pipeline`: how many such loops each connection has in flight. Raises NodeError and OSError.
    """
    leader = target.leader()
    figures = LoadFigures()
    return measure_load(target, figures, _run(leader, jobs, crews, figures, times, seconds, pipeline))[0]


def measure_load(target: Target, figures: LoadFigures, load: Coroutine[Any, Any, tuple[float, T]]) -> tuple[Run, T]:
    """Run a load that returns its seconds and another result; returns the measurements and that result."""
    nodes_before, own_before, begun = target.cpu_us(), process_time(), perf_counter()
    elapsed_s, other = uvloop.run(load)
    share = (process_time() - own_before) / (perf_counter() - begun)
    return Run(figures, elapsed_s, target.cpu_us_since(nodes_before), share), other


async def _run(
    leader: str, jobs: Jobs, crews: Sequence[Crew], figures: LoadFigures,
    times: int | None, seconds: float | None, pipeline: int,
) -> tuple[float, None]:
    cycles, shifts = [], []
    async with AsyncExitStack() as stack:
        for connections, steps in crews:
            wires, shift = await stack.enter_async_context(wires_to(leader, connections)), Shift(times)
            shifts.append(shift)
            cycles += [Cycle(wire, steps, jobs, figures, shift) for wire in wires for _ in range(pipeline)]
        return await work(cycles, shifts, figures, seconds), None
