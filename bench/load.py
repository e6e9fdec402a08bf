"""A small honest load generator: acknowledged commands only, the latency of every one of them.

    python -m bench.load put|getdone|mixed [--servers HOST:PORT,...] [--connections N] [--pipeline W] [--size BYTES]

`put` puts jobs; `getdone` takes and finishes jobs put before the clock starts; `mixed` puts, takes and finishes. Each
connection keeps `--pipeline` such cycles going. Without `--servers` a cluster of three nodes is started for the run.
One process generates the load and shares the machine with the nodes then: the figures are lower limits.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from time import perf_counter_ns

import click
import uvloop
from rich.console import Console
from rich.table import Table
from sockpq import BadArguments, Client, SockpqError, survey

from bench.cluster import LocalCluster, serves
from bench.console import make_console
from bench.node import NodeError
from bench.wire import CYCLES, Figures, LoadConnection

QUEUE = "load"
LEASE_S = 600
ANSWER_S = 10.0         # so long the last answers are waited for
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@click.command()
@click.argument("workload", type=click.Choice(list(CYCLES)))
@click.option("--servers", envvar="SOCKPQ_SERVERS", help="HOST:PORT,... of a running cluster; its data are not spared.")
@click.option("--connections", default=100, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--pipeline", default=1, show_default=True, type=click.IntRange(1, 10_000), help="In flight on each.")
@click.option("--size", default=100, show_default=True, type=click.IntRange(0, 8 << 20), help="Bytes of a job.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 3600))
@click.option("--jobs", default=200_000, show_default=True, type=click.IntRange(1), help="Put before getdone begins.")
def main(
    workload: str, servers: str | None, connections: int, pipeline: int, size: int, seconds: float, jobs: int
) -> None:
    """Measure acknowledged commands per second and their latency."""
    console = make_console()
    try:
        with ExitStack() as stack:
            if not servers:
                servers = ",".join(stack.enter_context(LocalCluster(nodes=3)).servers)
            leader = find_leader(servers)
            if workload == "getdone":
                fill(servers, jobs, size, console)
            console.print(f"{workload}: {connections} connections x {pipeline} in flight, {size} bytes, to {leader}")
            figures, elapsed_s = uvloop.run(run(leader, workload, connections, pipeline, size, seconds))
    except (NodeError, SockpqError, OSError) as error:
        if isinstance(error, BadArguments):
            raise click.UsageError(str(error)) from None
        console.print(str(error), style="red", markup=False)
        sys.exit(1)
    show(console, figures, elapsed_s)
    sys.exit(1 if any(not problem.startswith("GET: 404") for problem in figures.problems) else 0)


def find_leader(servers: str) -> str:
    """The server that serves; raises NodeError."""
    views = [view for view in survey(servers, 2.0) if view.error is None]
    for view in sorted(views, key=lambda view: view.id or 0):
        if serves(view.server):
            return view.server
    raise NodeError(f"none of {servers} serves")


def fill(servers: str, jobs: int, size: int, console: Console) -> None:
    """Put the jobs that will be taken."""
    with Client(servers) as client:
        waiting = client.total(QUEUE).jobs
        if waiting < jobs:
            console.print(f"putting {jobs - waiting} jobs first")
            client.put_many(QUEUE, [bytes(size)] * (jobs - waiting))


async def run(
    leader: str, workload: str, connections: int, pipeline: int, size: int, seconds: float
) -> tuple[Figures, float]:
    """Generate the load; returns the figures and the seconds from the first command to the last answer."""
    loop = asyncio.get_running_loop()
    host, _, port = leader.rpartition(":")
    put = f"PUT {QUEUE} 0 {size}\r\n".encode() + bytes(size)
    get = f"GET {QUEUE} EXPIRE {LEASE_S}\r\n".encode()
    figures = Figures()
    open_connections = connections
    ended = asyncio.Event()

    def on_end() -> None:
        nonlocal open_connections
        open_connections -= 1
        if not open_connections:
            ended.set()

    made = [
        (await loop.create_connection(
            lambda: LoadConnection(CYCLES[workload], pipeline, put, get, figures, on_end), host.strip("[]"), int(port)
        ))[1]
        for _ in range(connections)
    ]
    begun = perf_counter_ns()
    for connection in made:
        connection.start()
    await _at_most(ended, seconds)
    for connection in made:
        connection.end()
    if not await _at_most(ended, ANSWER_S):
        figures.problems["no answer"] += open_connections
    return figures, max(figures.last_ns - begun, 1) / 1e9


async def _at_most(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def show(console: Console, figures: Figures, elapsed_s: float) -> None:
    """Rates, latencies, and whatever went wrong."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    columns = ["command", "answered", "per second", *(f"p{percentile:g} ms" for percentile in PERCENTILES), "max ms"]
    for column in columns:
        table.add_column(column, justify="left" if column == "command" else "right")
    for step, latencies in figures.latencies_us.items():
        if latencies:
            in_order = sorted(latencies)
            shown = [in_order[min(int(len(in_order) * p / 100), len(in_order) - 1)] for p in PERCENTILES]
            table.add_row(step, str(len(in_order)), f"{len(in_order) / elapsed_s:.0f}",
                          *(f"{value / 1000:.2f}" for value in [*shown, in_order[-1]]))
    console.print(table)
    console.print(f"{figures.cycles / elapsed_s:.0f} cycles/s, {figures.commands / elapsed_s:.0f} commands/s, "
                  f"{elapsed_s:.1f} s")
    for problem, count in figures.problems.most_common():
        console.print(f"{count} x {problem}", style="yellow", markup=False)


if __name__ == "__main__":
    main()
