"""Measures what a map of clusters costs real nodes, and two clusters that share the work of one.

    python -m bench.several_clusters [--nodes 3] [--rounds 10] [--jobs 10000]

Three clusters run here: one without a map, and two with a map of as many lines as it may have. Jobs are put, taken and
done, a hundred commands at a time on each connection: in turn by the one without a map, by one of the others, and by
both of these at once, each half of the jobs. The CPU time that all their nodes spend on one job counts. All processes
share this machine, so the rates do not say what two clusters on machines of their own would do; where the CPU time of
a job stays the same, they do twice as much.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click
from sockpq import Client, ClusterMap, MappedCluster

from bench.load.running import LoadRun, load
from bench.load_generator.target import NODES, Target
from bench.load_generator.wire import JOB, LINE, Wire, ask, wires_to
from devcluster.cluster import LocalCluster

AT_ONCE = 100
WIRES = 4
BODY = bytes(100)
RULES = 3000
MORE = 30               # clusters of the map that do not exist here
QUEUE_OF = {"a": "mail", "b": "film.in"}


class Load(NamedTuple):
    """Jobs for some clusters at once, the same number for each: their targets, and a queue that each owns."""

    name: str
    targets: Sequence[Target]
    queues: Sequence[str]

    def cpu_us(self) -> float:
        """Return the CPU time of all threads of all nodes so far, in microseconds; /proc/PID/stat is too coarse."""
        pids = [pid for target in self.targets for pid in target.cpu_us()]
        return sum(int(file.read_text().split()[0]) for pid in pids
                   for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1000


@load("several_clusters", NODES)
@click.option("--rounds", default=10, show_default=True, type=click.IntRange(1), help="Of all three.")
@click.option("--jobs", default=10_000, show_default=True, type=click.IntRange(2 * WIRES * AT_ONCE),
              help="In each round.")
def main(running: LoadRun, rounds: int, jobs: int) -> None:
    """Measure the CPU time of PUT, GET and DONE without a map, with one, and by two clusters at once."""
    with ExitStack() as stack:
        nodes = len(running.cluster.names)
        pair = {name: Target(",".join(one.servers), one) for name in QUEUE_OF
                for one in [stack.enter_context(LocalCluster(nodes))]}
        _set_map(pair)
        loads = [
            Load("one, no map", [running.target], [QUEUE_OF["a"]]),
            Load("one of two with a map", [pair["a"]], [QUEUE_OF["a"]]),
            Load("both with a map", list(pair.values()), list(QUEUE_OF.values())),
        ]
        spent: dict[str, list[float]] = {one.name: [] for one in loads}
        rates: dict[str, list[float]] = {one.name: [] for one in loads}
        for number in range(rounds + 1):
            turn = number % len(loads)
            for one in loads[turn:] + loads[:turn]:
                for target in one.targets:
                    target.settle()
                before, began = one.cpu_us(), time.perf_counter()
                asyncio.run(_work(one, jobs))
                if number:              # the first round only warms up
                    rates[one.name].append(jobs / (time.perf_counter() - began))
                    spent[one.name].append((one.cpu_us() - before) / jobs)
    for name, found in spent.items():
        cpu_us = median(found)
        running.result.rows.append({
            "clusters": name, "node_us": cpu_us, "jobs_per_CPU_second": 1e6 / cpu_us,
            "jobs_per_second": median(rates[name]),
        })
    plain, mapped, both = (spent[one.name] for one in loads)
    running.result.summary = {
        "map_ratio": median(b / a for a, b in zip(plain, mapped, strict=True)),
        "two_ratio": median(b / a for a, b in zip(plain, both, strict=True)),
    }


def _set_map(pair: dict[str, Target]) -> None:
    """Give both clusters a map of RULES rules; `film.` belongs to b, all other names that are used here to a."""
    with ExitStack() as stack:
        clients = {name: stack.enter_context(Client(target.servers, follow_map=False)) for name, target in pair.items()}
        clusters = {name: MappedCluster(str(client.cluster_id().id), tuple(pair[name].servers.split(",")))
                    for name, client in clients.items()}
        clusters |= {f"c{number}": MappedCluster(f"{number:016x}", ("127.0.0.1:2",)) for number in range(MORE)}
        rules: dict[str, str | None] = {f"tenant{number}.": f"c{number % MORE}" for number in range(RULES)}
        for client in clients.values():
            client.set_cluster_map(ClusterMap(1, clusters, {**rules, "film.": "b"}))


async def _work(one: Load, jobs: int) -> None:
    await asyncio.gather(*[
        _put_and_end(target.leader(), queue, jobs // len(one.targets))
        for target, queue in zip(one.targets, one.queues, strict=True)
    ])


async def _put_and_end(leader: str, queue: str, jobs: int) -> None:
    async with wires_to(leader, WIRES) as wires:
        await asyncio.gather(*[_batches(wire, queue, jobs // WIRES // AT_ONCE) for wire in wires])


async def _batches(wire: Wire, queue: str, batches: int) -> None:
    put = f"PUT {queue} 0 {len(BODY)}\r\n".encode() + BODY
    for _ in range(batches):
        stored = await asyncio.gather(*[ask(wire, put, LINE) for _ in range(AT_ONCE)])
        assert all(answer.good for answer in stored), stored[0].line
        taken = await asyncio.gather(*[ask(wire, f"GET {queue}\r\n".encode(), JOB) for _ in range(AT_ONCE)])
        done = [b"DONE " + answer.line.split()[3] + b"\r\n" for answer in taken]
        await asyncio.gather(*[ask(wire, command, LINE) for command in done])


if __name__ == "__main__":
    main()
