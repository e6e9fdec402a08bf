"""Tasks per second and CPU per task of worker programs.

    python -m bench.workers pqworker [--place HOST:PORT] [--task noop] [--tasks 20000] [--children 2]
    python -m bench.workers pqworker --long          one task of 10 s, nine of 0.2 s: how long these waited
    python -m bench.workers pqworker --burst FILE    a burst, with --autoscale 10,3: the number of children as a picture

The brokers of the others must run already (bench/README.md says how); a cluster of three nodes is started here unless
a place is given. Run the systems in turn on one quiet machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from bench.workers.running import RunError, WorkerRun
from bench.workers.systems import SYSTEMS
from devcluster.cluster import LocalCluster

WARM_SHARE = 0.1        # of the tasks, before anything is counted
TASKS_S = 600.0
LONG_S, SHORT_S, SHORT_ONES = 10.0, 0.2, 9
BURST_S = 45.0


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.argument("system", type=click.Choice(sorted(SYSTEMS)))
@click.option("--place", help="URL of the broker, or HOST:PORT,.. [default: the usual one, or a local cluster]")
@click.option("--task", type=click.Choice(["noop", "millisecond"]), default="noop", show_default=True)
@click.option("--tasks", type=click.IntRange(10), default=20_000, show_default=True)
@click.option("--children", type=click.IntRange(1, 100), default=2, show_default=True)
@click.option("--long", "long_one", is_flag=True, help="One task of 10 s and nine short ones.")
@click.option("--burst", type=click.Path(dir_okay=False, path_type=Path), help="Draw a burst (pqworker only).")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Append the figures as a line of JSON.")
def main(
    system: str, place: str | None, task: str, tasks: int, children: int, long_one: bool, burst: Path | None,
    record: Path | None,
) -> None:
    """Put tasks, then process them."""
    chosen = SYSTEMS[system]
    if burst and system != "pqworker":
        raise click.UsageError("--burst is for pqworker")
    if burst:
        chosen = chosen._replace(command=(*chosen.command[:2], "--autoscale", "10,3", "--prefetch", "1"))
    with ExitStack() as stack:
        if place is None:
            place = chosen.place or ",".join(stack.enter_context(LocalCluster(3)).servers)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        run = stack.enter_context(WorkerRun(chosen, place, folder, children))
        try:
            told: dict[str, object] = {"system": system, "children": children}
            if burst:
                told.update(burst_of(run, burst))
            elif long_one:
                told.update(long_and_short(run))
            else:
                told.update({"task": task, **rate(run, task, tasks)})
        except RunError as error:
            sys.exit(f"{system}: {error}")
    print(json.dumps(told))
    if record:
        with record.open("a") as file:
            file.write(json.dumps(told) + "\n")


def rate(run: WorkerRun, task: str, tasks: int) -> dict[str, object]:
    """Process a queue and measure the rate after the first tenth, when all children have started."""
    put_s = run.put(task, tasks)
    run.start()
    warm = int(tasks * WARM_SHARE)
    run.wait(lambda: run.over() >= warm, TASKS_S)
    first, begun, cpu_s = run.over(), time.monotonic(), run.cpu_s()
    run.wait(lambda: run.over() >= tasks, TASKS_S)
    done, took, used = run.over() - first, time.monotonic() - begun, run.cpu_s() - cpu_s
    return {
        "tasks": done, "put_per_second": round((tasks - 1) / put_s, 1), "per_second": round(done / took, 1),
        "cpu_us": round(used / done * 1e6, 1),
        "per_cpu_second": round(done / used, 1) if used else None,
    }


def long_and_short(run: WorkerRun) -> dict[str, object]:
    """Run a long task, then short ones; returns the longest wait of a short one, in seconds."""
    run.start()
    run.put("noop", 4)
    run.wait(lambda: run.over() == 4, TASKS_S)
    run.put("sleeping", 1, LONG_S)
    run.put("sleeping", SHORT_ONES, SHORT_S)
    run.wait(lambda: run.over() == 4 + 1 + SHORT_ONES, TASKS_S)
    return {"longest_wait_s": max(run.waits(SHORT_S))}


def burst_of(run: WorkerRun, picture: Path) -> dict[str, object]:
    """Put forty tasks of a second at once, then none; draw the number of children over time."""
    run.start()
    begun, points = time.monotonic(), []
    put_at = 0.0
    while (now := time.monotonic() - begun) < BURST_S:
        points.append((round(now, 2), run.children()))
        if not put_at and now > 3:
            put_at = now
            run.put("sleeping", 40, 1.0)
        time.sleep(0.1)
    draw(points, put_at, picture)
    return {"burst_at_s": round(put_at, 2), "most": max(count for _, count in points), "last": points[-1][1]}


def draw(points: list[tuple[float, int]], put_at: float, picture: Path) -> None:
    """Draw the picture; needs the extra `bench`."""
    from bench.reports.pictures import children
    from bench.reports.plots import write

    write(partial(children, points, put_at), picture)


if __name__ == "__main__":
    main()
