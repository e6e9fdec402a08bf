"""The cost of an idle cluster.

    python -m bench.load quiet [--nodes 3] [--seconds 30]

CPU time of each node as a share of one core, and how often it woke up. A node sleeps until something is due:
heartbeats, leases that end, delayed jobs, a look at the disk once a second.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from bench.load.running import LoadRun, load
from bench.load_generator.target import NODES

SETTLE_S = 3.0


@load("quiet", NODES)
@click.option("--seconds", default=30.0, show_default=True, type=click.FloatRange(1, 36_000))
def quiet(running: LoadRun, seconds: float) -> None:
    """Measure the processor time of quiet nodes."""
    cluster = running.cluster
    cluster.wait_until_level()
    time.sleep(SETTLE_S)
    pids = {name: pid for name in cluster.names if (pid := cluster.pid(name)) is not None}
    leader = running.target.leader()
    before, begun = {name: spent(pid) for name, pid in pids.items()}, time.perf_counter()
    time.sleep(seconds)
    after, took_s = {name: spent(pid) for name, pid in pids.items()}, time.perf_counter() - begun
    shares = {name: 100 * (after[name][0] - before[name][0]) / took_s for name in pids}
    running.result.rows = [{
        "node": "leader" if cluster.direct(name) == leader else "follower", "percent of a core": shares[name],
        "waits per second": (after[name][1] - before[name][1]) / took_s,
    } for name in pids]
    running.result.summary = {"all, percent of a core": sum(shares.values())}


def spent(pid: int) -> tuple[float, int]:
    """CPU seconds of a process, all threads, and how often they have begun to wait for something. Source: /proc."""
    seconds, waits = 0.0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
        lines = (task / "status").read_text().splitlines()
        waits += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return seconds, waits
