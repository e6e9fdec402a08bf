"""The time that clients wait when the leader's process dies or stops responding under load.

    python -m bench.load failover [--trials 20] [--writers 4] [--freeze]

A trial's figure is the time from the signal (SIGKILL; SIGSTOP with `--freeze`) to the acknowledgement of the next PUT,
begun after it, through the client library, with everything in it: noticing, election, finding the new leader, the PUT.
"""

from __future__ import annotations

import random
import threading
import time

import click
from sockpq import Client, SockpqError

from bench.load.running import LoadRun, load
from bench.load_generator.figures import Row, percentile
from devcluster.cluster import LocalCluster

QUEUE = "failover"
CALM_S = (0.2, 0.6)     # between two trials, so that the kill meets the heartbeats at any phase


class Writer(threading.Thread):
    """Puts jobs one after another, whatever happens."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self._client = client
        self.stopping = threading.Event()
        self.acknowledged = 0

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._client.put(QUEUE, b"x" * 100, retry_unknown=True)
                self.acknowledged += 1
            except SockpqError:
                self.stopping.wait(0.1)


def trial(cluster: LocalCluster, client: Client, freeze: bool) -> float:
    """Kill or freeze the leader; returns the seconds until the next PUT is acknowledged."""
    leader = cluster.wait_for_leader()
    client.put(QUEUE, b"before", retry_unknown=True)        # so the client knows the leader, as an active one does
    begun = time.monotonic()
    (cluster.pause if freeze else cluster.kill)(leader)
    client.put(QUEUE, b"after", retry_unknown=True)
    seconds = time.monotonic() - begun
    (cluster.resume if freeze else cluster.restart)(leader)
    cluster.wait_until_level()
    return seconds


@load("failover")
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--writers", default=4, show_default=True, type=click.IntRange(0, 1000), help="Threads that PUT.")
@click.option("--freeze", is_flag=True, help="SIGSTOP instead of SIGKILL: the leader falls silent.")
def failover(running: LoadRun, trials: int, writers: int, freeze: bool) -> None:
    """Measure the time from a dead or silent leader to the next acknowledged PUT."""
    gaps_s: list[float] = []
    cluster, result = running.cluster, running.result
    with Client(cluster.servers) as client, Client(cluster.servers) as writing:
        threads = [Writer(writing) for _ in range(writers)]
        for thread in threads:
            thread.start()
        for number in range(trials):
            time.sleep(random.uniform(*CALM_S))
            gaps_s.append(trial(cluster, client, freeze))
            running.console.print(f"trial {number + 1:3}: {gaps_s[-1] * 1000:6.0f} ms")
        for thread in threads:
            thread.stopping.set()
        for thread in threads:
            thread.join(30)
        acknowledged, waiting = sum(thread.acknowledged for thread in threads) + 2 * trials, client.total(QUEUE).jobs
    lost = max(acknowledged - waiting, 0)
    result.rows = [row(gaps_s, lost)]
    result.curves = {"gaps": [[number, gap_s * 1000] for number, gap_s in enumerate(gaps_s, start=1)]}
    result.summary = {"acknowledged": acknowledged, "waiting": waiting}
    if lost:
        result.note_problems({"acknowledged job that is not there": lost})


def row(gaps_s: list[float], lost: int) -> Row:
    """The figures of all trials, and the number of acknowledged jobs that were lost."""
    in_order = sorted(round(gap_s * 1000) for gap_s in gaps_s)
    return {
        "trials": len(gaps_s), "median_ms": percentile(in_order, 50), "p95_ms": percentile(in_order, 95),
        "max_ms": in_order[-1], "within_500_ms": sum(gap_s <= 0.5 for gap_s in gaps_s),
        "within_1500_ms": sum(gap_s <= 1.5 for gap_s in gaps_s), "lost": lost,
    }
