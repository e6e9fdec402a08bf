"""How long clients wait when the leader's process dies, or falls silent: under load, again and again.

    python -m bench.failover [--trials 20] [--writers 4] [--freeze]

A trial's figure is the time from the signal (SIGKILL; SIGSTOP with `--freeze`) to the acknowledgement of the next PUT,
begun after it, through the client library, with everything in it: noticing, election, finding the new leader, the PUT.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from math import ceil

import click
from rich.console import Console
from sockpq import Client, SockpqError

from bench.cluster import LocalCluster
from bench.console import make_console
from bench.node import NodeError

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
        """Write."""
        while not self.stopping.is_set():
            try:
                self._client.put(QUEUE, b"x" * 100, retry_unknown=True)
                self.acknowledged += 1
            except SockpqError:
                self.stopping.wait(0.1)


def trial(cluster: LocalCluster, client: Client, freeze: bool) -> float:
    """Kill or freeze the leader; seconds until the next PUT is acknowledged."""
    leader = cluster.wait_for_leader()
    client.put(QUEUE, b"before", retry_unknown=True)        # this client knows the leader, as a client at work does
    begun = time.monotonic()
    (cluster.pause if freeze else cluster.kill)(leader)
    client.put(QUEUE, b"after", retry_unknown=True)
    seconds = time.monotonic() - begun
    (cluster.resume if freeze else cluster.restart)(leader)
    cluster.wait_until_level()
    return seconds


@click.command()
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--writers", default=4, show_default=True, type=click.IntRange(0, 1000), help="Threads that PUT.")
@click.option("--freeze", is_flag=True, help="SIGSTOP instead of SIGKILL: the leader falls silent.")
def main(trials: int, writers: int, freeze: bool) -> None:
    """Measure the time from a dead or silent leader to the next acknowledged PUT."""
    console = make_console()
    figures: list[float] = []
    try:
        with LocalCluster(nodes=3) as cluster, Client(cluster.servers) as client, Client(cluster.servers) as load:
            threads = [Writer(load) for _ in range(writers)]
            for thread in threads:
                thread.start()
            for number in range(trials):
                time.sleep(random.uniform(*CALM_S))
                figures.append(trial(cluster, client, freeze))
                console.print(f"trial {number + 1:3}: {figures[-1] * 1000:6.0f} ms")
            for thread in threads:
                thread.stopping.set()
            for thread in threads:
                thread.join(30)
            acknowledged = sum(thread.acknowledged for thread in threads) + 2 * trials
            waiting = client.total(QUEUE).jobs
    except (NodeError, SockpqError) as error:
        console.print(str(error), style="red", markup=False)
        sys.exit(1)
    show(console, figures)
    console.print(f"{acknowledged} acknowledged, {waiting} there, {max(acknowledged - waiting, 0)} lost")
    sys.exit(0 if waiting >= acknowledged else 1)


def show(console: Console, figures: list[float]) -> None:
    """Median, 95th percentile, maximum."""
    in_order = sorted(figures)
    median, p95 = (in_order[ceil(len(in_order) * part) - 1] for part in (0.5, 0.95))
    console.print(f"median {median * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, max {in_order[-1] * 1000:.0f} ms, "
                  f"{sum(figure <= 0.5 for figure in figures)} of {len(figures)} within 500 ms, "
                  f"{sum(figure <= 1.5 for figure in figures)} within 1500 ms")


if __name__ == "__main__":
    main()
