"""One measurement: all tasks are put, then processed; its figures for the record."""

from __future__ import annotations

from typing import Any, NamedTuple

from bench.clients.processes import Took, put, put_in_tasks, together, work, work_in_tasks

Figures = dict[str, Any]


class ClientsCase(NamedTuple):
    """The way in which tasks are put and processed. `in_tasks`: by a hundred asyncio tasks in each process."""

    processes: int
    prefetch: int = 1
    tasks: int = 20_000
    producers: int | None = None        # processes that put, None: as many as work
    in_tasks: bool = False
    size: int = 100                     # bytes of a task


def measure(library: str, address: str, case: ClientsCase) -> Figures:
    """Return the tasks per second and the CPU of each, of producers and workers. The queue must be empty before."""
    putting = together(
        put_in_tasks if case.in_tasks else put, library, address, case.prefetch, case.producers or case.processes,
        case.tasks, case.size,
    )
    working = together(
        work_in_tasks if case.in_tasks else work, library, address, case.prefetch, case.processes, case.tasks, case.size
    )
    return {
        "library": library, "processes": case.processes, "prefetch": case.prefetch, "asyncio": case.in_tasks,
        "size": case.size, "put": _figures(putting), "work": _figures(working),
    }


def _figures(took: Took) -> dict[str, float]:
    return {"tasks": took.tasks, "per_second": round(took.rate, 1), "cpu_us": round(took.cpu_us, 2)}
