"""`make play`: a cluster of three nodes that stays, with a producer and workers, so that there is something to see.

    python -m bench.play [DIR]

The cluster is `sockpqd --dev --nodes 3`, with its data below DIR (default: here). The producer puts jobs of three
priorities into the queue `mail`, two in a second; two workers take them with a lease. All go on through the loss of any
node, and the client library sees to it that each job is put and done exactly once. Ctrl-C ends everything.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click
from sockpq import Client, SockpqError

from devcluster.node import NodeError, program

NODES = 3
QUEUE = "mail"
WORKERS = 2
PUT_EVERY_S = 0.5
WORK_S = 0.7                # what a job takes
LEASE_S = 10.0
TELL_EVERY_S = 10.0
SERVERS = "export SOCKPQ_SERVERS="      # in what sockpqd prints


class Play:
    """A producer and workers, each in a thread that ends with this process."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._put = 0
        self._done = 0

    def start(self) -> None:
        """Start all of them."""
        for run in (self._produce, self._tell, *WORKERS * [self._work]):
            threading.Thread(target=_telling_errors, args=(run,), daemon=True).start()

    def _produce(self) -> None:
        with Client(self._servers) as client:
            for number in itertools.count(1):
                client.put(QUEUE, b"letter %d" % number, priority=random.choice((0, 0, 0, 5, 9)))
                self._put += 1
                time.sleep(PUT_EVERY_S)

    def _work(self) -> None:
        with Client(self._servers) as client:
            for _ in client.consume(QUEUE, expire=LEASE_S):
                time.sleep(WORK_S)
                self._done += 1

    def _tell(self) -> None:
        while True:
            time.sleep(TELL_EVERY_S)
            _say(f"producer: {self._put} jobs put into {QUEUE}; workers: {self._done} done")


def _telling_errors(run: Callable[[], None]) -> None:
    try:
        run()
    except SockpqError as error:
        _say(f"a producer or worker has ended: {error}")


def _say(what: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {what}", flush=True)


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False, exists=True))
def main(folder: Path) -> None:
    """Run three nodes with a producer and workers until Ctrl-C."""
    try:
        command = [str(program()), "--dev", "--nodes", str(NODES)]
    except NodeError as error:
        raise click.UsageError(str(error)) from None
    cluster = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert cluster.stdout is not None
    playing = False
    while True:
        try:
            for line in cluster.stdout:
                print(line, end="", flush=True)
                if SERVERS in line and not playing:
                    playing = True
                    Play(line.partition(SERVERS)[2].strip()).start()
            sys.exit(cluster.wait())
        except KeyboardInterrupt:       # the cluster has had it too, and ends
            continue


if __name__ == "__main__":
    main()
