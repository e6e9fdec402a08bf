"""The time that clients wait when the leader's process dies or stops responding under load.

    python -m bench.failover [--trials 20] [--writers 4] [--freeze]

A trial's figure is the time from the signal (SIGKILL; SIGSTOP with `--freeze`) to the acknowledgement of the next PUT,
begun after it, through the client library, with everything in it: noticing, election, finding the new leader, the PUT.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path

import click
from rich.console import Console
from sockpq import Client, SockpqError

from bench.load_generator.console import make_console
from bench.load_generator.figures import Row, percentile
from bench.load_generator.target import RECORD, Target
from bench.reports.recording import Result, record
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError

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


@click.command()
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--writers", default=4, show_default=True, type=click.IntRange(0, 1000), help="Threads that PUT.")
@click.option("--freeze", is_flag=True, help="SIGSTOP instead of SIGKILL: the leader falls silent.")
@RECORD
def main(trials: int, writers: int, freeze: bool, record_to: Path | None) -> None:
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
            lost = max(acknowledged - waiting, 0)
            found = result(figures, lost)
            if record_to:
                record(found, Target(",".join(cluster.servers), cluster), record_to)
    except (NodeError, SockpqError) as error:
        console.print(str(error), style="red", markup=False)
        sys.exit(1)
    show(console, found.rows[0])
    console.print(f"{acknowledged} acknowledged, {waiting} there, {lost} lost")
    sys.exit(1 if lost else 0)


def result(figures: list[float], lost: int) -> Result:
    """The result of all trials (in seconds), and the number of acknowledged jobs that were lost."""
    in_order = sorted(round(figure * 1000) for figure in figures)
    row: Row = {
        "trials": len(figures), "median_ms": percentile(in_order, 50), "p95_ms": percentile(in_order, 95),
        "max_ms": in_order[-1], "within_500_ms": sum(figure <= 0.5 for figure in figures),
        "within_1500_ms": sum(figure <= 1.5 for figure in figures), "lost": lost,
    }
    gaps = [[number + 1.0, figure * 1000] for number, figure in enumerate(figures)]
    return Result("failover", [row], curves={"gaps": gaps})


def show(console: Console, found: Row) -> None:
    """Print median, 95th percentile and maximum."""
    console.print(f"median {found['median_ms']} ms, p95 {found['p95_ms']} ms, max {found['max_ms']} ms, "
                  f"{found['within_500_ms']} of {found['trials']} within 500 ms, "
                  f"{found['within_1500_ms']} within 1500 ms")


if __name__ == "__main__":
    main()
