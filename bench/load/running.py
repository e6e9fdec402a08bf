"""Makes a command of each named load: starts the cluster under test, and ends the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.load_generator.console import make_console
from bench.load_generator.jobs import Jobs
from bench.load_generator.runs import Crew, Run, run
from bench.load_generator.target import RECORD, Target, target
from bench.reports.recording import Result, finish
from devcluster.cluster import LocalCluster

WARM_UP_CONNECTIONS, WARM_UP_JOBS = 50, 10_000      # new processes are slower at first
Option = Callable[[Callable[..., None]], Callable[..., None]]


@dataclass
class LoadRun:
    """One run of a load: the cluster it measures, where it prints its progress, and its result so far."""

    target: Target
    console: Console
    result: Result
    queues: list[str] = field(default_factory=list)     # emptied at the start, and at the end if others use the cluster

    @property
    def cluster(self) -> LocalCluster:
        """The cluster that was started for this load, if it has no option `--servers`."""
        assert self.target.cluster is not None
        return self.target.cluster

    def empty(self, queues: Sequence[str]) -> None:
        """Remove the jobs in these queues, now and after the run. Raises NodeError."""
        self.queues += queues
        self.target.purge(queues)

    def warm_up(self, jobs: Jobs, count: int) -> None:
        """Empty the queues of these jobs, then put, take and finish at most `count`. Raises NodeError and OSError."""
        self.empty(jobs.queues)
        run(self.target, jobs, [(WARM_UP_CONNECTIONS, ("PUT", "GET", "DONE"))], times=min(count, WARM_UP_JOBS))

    def run(self, jobs: Jobs, crews: Sequence[Crew], times: int, pipeline: int = 1) -> Run:
        """Run crews until each has done its steps `times` times, and note unexpected answers in the result."""
        done = run(self.target, jobs, crews, times=times, pipeline=pipeline)
        self.result.note_problems(done.figures.problems)
        return done


def load(name: str, *options: Option) -> Callable[[Callable[..., None]], click.Command]:
    """Make the command of a load from the function that measures it.

    `name`: of its results; the last word is the command's. `options`: SERVERS or NODES or both, if it has
    them; without SERVERS a cluster is always started. The function is called with a LoadRun and all other
    options of its command.
    """
    def command(measure: Callable[..., None]) -> click.Command:
        @wraps(measure)
        def run(
            record_to: Path | None, servers: str | None = None, nodes: int = 3, hot_bytes: int = 0,
            directory: Path | None = None, **own: Any,
        ) -> None:
            console = make_console()
            with target(servers, nodes, console, {"limits": {"hot_bytes": hot_bytes}}, directory) as measured:
                running = LoadRun(measured, console, Result(name))
                measure(running, **own)
                measured.leave(running.queues)
                finish(console, running.result, measured, record_to)

        decorated: Callable[..., None] = RECORD(run)
        for option in reversed(options):
            decorated = option(decorated)
        return click.command(name.rpartition(" ")[2])(decorated)

    return command
