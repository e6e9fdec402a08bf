"""Measures what a record of an ended job costs real nodes.

    python -m bench.records [--rounds 10] [--jobs 5000]

Jobs with a number and a result are put, taken and done, a hundred in each batch, by turns in a queue without RETAIN and
in one with it; the CPU time that all nodes spend on one job.
"""

from __future__ import annotations

import asyncio
from statistics import median

import click
from sockpq import Client

from bench.load.running import LoadRun, load
from bench.load_generator.target import NODES, SERVERS
from bench.load_generator.wire import JOB, LINE, Wire, ask, wires_to

AT_ONCE = 100
WIRES = 4
BODY, RESULT = bytes(100), bytes(20)
QUEUES = {"without": "plain", "with RETAIN": "kept"}
RETAIN_S = 86_400


@load("records", SERVERS, NODES)
@click.option("--rounds", default=10, show_default=True, type=click.IntRange(1), help="Of both queues.")
@click.option("--jobs", default=5000, show_default=True, type=click.IntRange(AT_ONCE), help="In each round.")
def main(running: LoadRun, rounds: int, jobs: int) -> None:
    """Measure the CPU time of PUT, GET and DONE in queues without RETAIN and with it."""
    running.empty(list(QUEUES.values()))
    with Client(running.target.servers) as client:
        client.queue_config(QUEUES["with RETAIN"], retain=RETAIN_S)
    spent: dict[str, list[float]] = {name: [] for name in QUEUES}
    for number in range(rounds + 1):
        for name, queue in QUEUES.items():
            running.target.settle()
            before = running.target.cpu_us()
            asyncio.run(_work(running.target.leader(), queue, jobs))
            used_us = running.target.cpu_us_since(before)
            if number and used_us is not None:              # the first round only warms up
                spent[name].append(used_us / jobs)
    running.result.rows += [{"jobs": name, "node_us": median(found)} for name, found in spent.items() if found]
    without, with_records = (median(found) if found else 0.0 for found in spent.values())
    running.result.summary = {"ratio": with_records / without if without else None}


async def _work(leader: str, queue: str, jobs: int) -> None:
    async with wires_to(leader, WIRES) as wires:
        await asyncio.gather(*[_put_and_end(wire, queue, jobs // WIRES // AT_ONCE) for wire in wires])


async def _put_and_end(wire: Wire, queue: str, batches: int) -> None:
    put = f"PUT {queue} 0 {len(BODY)} NUMBER\r\n".encode() + BODY
    for _ in range(batches):
        await asyncio.gather(*[ask(wire, put, LINE) for _ in range(AT_ONCE)])
        taken = await asyncio.gather(*[ask(wire, f"GET {queue}\r\n".encode(), JOB) for _ in range(AT_ONCE)])
        ids = [answer.line.split()[3].decode() for answer in taken]
        done = [f"DONE {id_} RESULT {len(RESULT)}\r\n".encode() + RESULT for id_ in ids]
        await asyncio.gather(*[ask(wire, command, LINE) for command in done])


if __name__ == "__main__":
    main()
