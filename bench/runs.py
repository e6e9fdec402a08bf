"""One stretch of load in closed loops, with all that is measured meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import uvloop

from bench.cycles import Cycle, Shift, work
from bench.figures import Figures, Row
from bench.jobs import Jobs
from bench.target import Target
from bench.wire import open_wires

Crew = tuple[int, Sequence[str]]        # so many connections, each repeating these steps


@dataclass
class Run:
    """What was measured. `cpu_us`: processor time of all local nodes together, None when it is not known."""

    figures: Figures
    seconds: float
    cpu_us: int | None

    def per_second(self, step: str) -> float:
        """Answers to this step."""
        return len(self.figures.latencies_us[step]) / self.seconds

    def cpu_us_per(self, count: int) -> float | None:
        """Processor time of the nodes for each of so many operations."""
        return None if self.cpu_us is None or not count else self.cpu_us / count

    def row(self, step: str) -> Row:
        """The figures of a step."""
        return {"step": step, "answered": len(self.figures.latencies_us[step]), "per_second": self.per_second(step),
                **self.figures.latency(step)}


def run(
    target: Target, jobs: Jobs, crews: Sequence[Crew],
    times: int | None = None, seconds: float | None = None, pipeline: int = 1,
) -> Run:
    """Let crews work on the leader side by side, until each has done its steps so many times, or for so long.

    `pipeline`: how many such loops a connection has in flight. Raises NodeError, OSError.
    """
    leader = target.leader()
    figures = Figures()
    before = target.cpu_us()
    elapsed_s = uvloop.run(_run(leader, jobs, crews, figures, times, seconds, pipeline))
    return Run(figures, elapsed_s, target.cpu_us_since(before))


async def _run(
    leader: str, jobs: Jobs, crews: Sequence[Crew], figures: Figures,
    times: int | None, seconds: float | None, pipeline: int,
) -> float:
    wires, cycles, shifts = [], [], []
    try:
        for connections, steps in crews:
            opened = await open_wires(leader, connections)
            wires += opened
            shift = Shift(times)
            shifts.append(shift)
            cycles += [Cycle(wire, steps, jobs, figures, shift) for wire in opened for _ in range(pipeline)]
        return await work(cycles, shifts, figures, seconds)
    finally:
        for wire in wires:
            wire.close()
