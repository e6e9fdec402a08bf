"""Tasks per second, and CPU per task of producer and worker, with one library.

    python -m bench.clients sockpq [--address HOST:PORT] [--processes 1] [--tasks 20000] [--prefetch 1] [--asyncio]

The servers of other libraries must run already (bench/README.md says how), that of sockpq is started here unless an
address is given. Run the libraries in turn on one quiet machine. The queue must be empty before.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from bench.clients.drivers import DRIVERS
from bench.clients.processes import Took, put, together, work, work_in_tasks
from devcluster.cluster import LocalCluster

ADDRESSES = {
    "greenstalk": "127.0.0.1:11300", "redis": "127.0.0.1:6379", "pika": "127.0.0.1:5672", "nats": "127.0.0.1:4222",
}


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.argument("library", type=click.Choice(sorted(DRIVERS)))
@click.option("--address", metavar="HOST:PORT", help="Of a server. [default: the usual one, or a local cluster]")
@click.option("--processes", type=click.IntRange(1, 100), default=1, show_default=True)
@click.option("--tasks", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--size", type=click.IntRange(0), default=100, show_default=True, help="Bytes of a task.")
@click.option("--prefetch", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--asyncio", "in_tasks", is_flag=True, help="Work by 100 tasks of one asyncio client (sockpq only).")
@click.option("--record", type=click.Path(path_type=Path), help="Append the figures as a line of JSON.")
def main(
    library: str, address: str | None, processes: int, tasks: int, size: int, prefetch: int, in_tasks: bool,
    record: Path | None,
) -> None:
    """Put all tasks, then work them off."""
    if in_tasks and library != "sockpq":
        raise click.UsageError("--asyncio is for sockpq")
    with ExitStack() as stack:
        if address is None and library == "sockpq":
            address = ",".join(stack.enter_context(LocalCluster(3)).servers)
        place = address or ADDRESSES[library]
        putting = together(put, library, place, prefetch, processes, tasks, size)
        working = together(
            work_in_tasks if in_tasks else work, library, place, prefetch, processes, tasks, size
        )
    for name, took in (("put", putting), ("work", working)):
        print(f"{library:10} {name:5} {processes:3} processes, prefetch {prefetch:3}: "
              f"{took.rate:9,.0f} tasks/s, {took.cpu_us:7.1f} us CPU each")
    if record:
        options = {"library": library, "processes": processes, "prefetch": prefetch, "asyncio": in_tasks, "size": size}
        with record.open("a") as file:
            file.write(json.dumps({**options, "put": _figures(putting), "work": _figures(working)}) + "\n")
    if working.tasks != tasks:
        print(f"{working.tasks} tasks came, {tasks} were put", file=sys.stderr)
        sys.exit(1)


def _figures(took: Took) -> dict[str, float]:
    return {"tasks": took.tasks, "per_second": round(took.rate, 1), "cpu_us": round(took.cpu_us, 2)}


if __name__ == "__main__":
    main()
