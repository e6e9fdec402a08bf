"""Counts what killed programs and remote control leave in the cluster.

    python -m tests.kombu.leftovers [--killed 100] [--asks 1000]

Programs that have a queue of their own, a message in work and an open question are killed at once; a program asks
what Celery's `inspect` asks, with a connection of its own each time. Printed is what is there and was not before, and
how long it stays: queues, bindings, sessions, jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import kombu
from celery import Celery
from kombu.pidbox import Mailbox
from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.kombu import celery_project as project
from tests.kombu.workers import worker
from tests.waiting import PATIENCE_S

VHOST = "left"
PATIENCE_OF_PROGRAMS_S = 2.5        # their sessions end four times as long after the last sign of life
OPTIONS = {"session_ttl": 1, "patience": PATIENCE_OF_PROGRAMS_S}
IDLE_S = 5                          # of a queue, until it goes: a busy machine may start several programs in that time
LONG_S = 600.0                      # a program lives so long unless it is killed
LEFT_MAX_S = 120.0                  # a safety limit


class There(NamedTuple):
    """The contents of a cluster, besides what the client that looks needs itself."""

    queues: frozenset[str]
    bindings: frozenset[tuple[str, str]]
    sessions: frozenset[int]
    running: frozenset[int]

    def beyond(self, other: There) -> There:
        """Return what is here and not there."""
        return There(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def counts(self) -> str:
        """Return how many of each."""
        return ", ".join(f"{len(found)} {name}" for name, found in self._asdict().items())


def there(client: Client) -> There:
    """Return what is in the cluster now."""
    return There(
        frozenset(one.name for one in client.queues()),
        frozenset((one.topic, one.queue) for one in client.topic_list()),
        frozenset(one.number for one in client.sessions()),
        frozenset(one.id for one in client.running()),
    )


def _live(url: str, number: int, ready: Any) -> None:
    """A program that publishes, consumes and asks, and then is there until it is killed."""
    connection = kombu.Connection(url, transport_options=OPTIONS)
    own = f"replies.{number}"
    queue = kombu.Queue(own, kombu.Exchange("replies"), routing_key=own, auto_delete=True, expires=IDLE_S)
    found: list[Any] = []
    connection.Consumer([queue], on_message=found.append).consume()
    connection.Producer().publish("x", exchange="replies", routing_key=own)
    end = time.monotonic() + PATIENCE_S
    while not found and time.monotonic() < end:
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=0.2)
    Mailbox("control", type="fanout")(connection).multi_call("ping", timeout=0.1)
    ready.release()
    time.sleep(LONG_S)


@contextlib.contextmanager
def programs(servers: Sequence[str], count: int) -> Iterator[None]:
    """This many programs; all have what they need, and are killed at the end."""
    url = ";".join(f"sockpq://{server}/{VHOST}" for server in servers)
    processes = multiprocessing.get_context("fork")
    ready = processes.Semaphore(0)
    started: list[BaseProcess] = [processes.Process(target=_live, args=(url, number, ready)) for number in range(count)]
    try:
        for process in started:
            process.start()
        for _ in started:
            assert ready.acquire(timeout=PATIENCE_S)
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.join()


def kill_programs(servers: Sequence[str], client: Client, count: int) -> There:
    """Start and kill them; returns what they had."""
    before = there(client)
    with programs(servers, count):
        return there(client).beyond(before)


def ask(app: Celery, count: int) -> None:
    """Ask the worker what it executes, so often, on a connection of its own each time."""
    for _ in range(count):
        with app.connection() as connection:
            assert app.control.inspect(connection=connection, timeout=PATIENCE_S, limit=1).active() is not None


def until_gone(client: Client, before: There) -> None:
    """Print how long each kind of thing is still there."""
    begun, shown = time.monotonic(), ""
    while time.monotonic() < begun + LEFT_MAX_S:
        left = there(client).beyond(before)
        if left.counts() != shown:
            shown = left.counts()
            print(f"  {time.monotonic() - begun:5.1f} s: {shown}", flush=True)
        if not any(left):
            return
        time.sleep(0.2)


def main() -> int:
    """Print the leftovers; returns the exit code."""
    options = argparse.ArgumentParser(description="What killed programs and remote control leave in the cluster.")
    options.add_argument("--killed", type=int, default=100)
    options.add_argument("--asks", type=int, default=1000)
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)       # what was started is ended
    with LocalCluster(3) as cluster, tempfile.TemporaryDirectory() as folder:
        app = project.app
        app.conf.broker_url = ";".join(f"sockpq://{server}/{VHOST}" for server in cluster.servers)
        with Client(cluster.servers) as client, worker(app, Path(folder) / "worker.log", "-P", "solo"):
            ask(app, 1)         # the worker has its sessions from now on
            before = there(client)
            print(f"{chosen.killed} programs had: {kill_programs(cluster.servers, client, chosen.killed).counts()}")
            until_gone(client, before)
            begun = time.monotonic()
            ask(app, chosen.asks)
            print(f"{chosen.asks} questions in {time.monotonic() - begun:.1f} s left:")
            until_gone(client, before)
            left = there(client).beyond(before)
    print(left if any(left) else "nothing is left")
    return 1 if any(left) else 0


if __name__ == "__main__":
    sys.exit(main())
