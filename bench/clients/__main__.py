"""Tasks per second, and CPU per task of producer and worker, with one library.

    python -m bench.clients sockpq [--address HOST:PORT] [--processes 1] [--tasks 20000] [--prefetch 1] [--asyncio]

Servers are started here unless an address is given; then the queue must be empty before. bench.clients.table runs all
libraries in turn.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from bench.clients.drivers import DRIVERS
from bench.clients.measuring import ClientsCase, measure
from bench.clients.servers import ServersError, servers


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.argument("library", type=click.Choice(sorted(DRIVERS)))
@click.option("--address", metavar="HOST:PORT", help="Of a running server. [default: servers started for it]")
@click.option("--processes", type=click.IntRange(1, 100), default=1, show_default=True)
@click.option("--producers", type=click.IntRange(1, 100), help="Processes that put. [default: as many as work]")
@click.option("--tasks", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--size", type=click.IntRange(0), default=100, show_default=True, help="Bytes of a task.")
@click.option("--prefetch", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--asyncio", "in_tasks", is_flag=True, help="100 tasks of an asyncio client a process (sockpq).")
@click.option("--record", type=click.Path(path_type=Path), help="Append the figures as a line of JSON.")
def main(
    library: str, address: str | None, processes: int, producers: int | None, tasks: int, size: int, prefetch: int,
    in_tasks: bool, record: Path | None,
) -> None:
    """Put all tasks, then process them."""
    if in_tasks and library != "sockpq":
        raise click.UsageError("--asyncio is for sockpq")
    case = ClientsCase(processes, prefetch, tasks, producers, in_tasks, size)
    try:
        with ExitStack() as stack:
            figures = measure(library, address or stack.enter_context(servers(library)), case)
    except (ServersError, ImportError, FileNotFoundError) as error:
        sys.exit(f"{error}; bench/README.md says what {library} needs")
    for name, count in (("put", producers or processes), ("work", processes)):
        print(f"{library:10} {name:5} {count:3} processes, prefetch {prefetch:3}: "
              f"{figures[name]['per_second']:9,.0f} tasks/s, {figures[name]['cpu_us']:7.1f} us CPU each")
    if record:
        with record.open("a") as file:
            file.write(json.dumps(figures) + "\n")
    if figures["work"]["tasks"] != tasks:
        print(f"{figures['work']['tasks']} tasks came, {tasks} were put", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
