"""Real work on a real cluster whose leader is killed in the middle.

    python -m bench.demo [DIR]

For every file below DIR a producer PUTs a job with its path; worker processes GET it, compute the SHA-256 and PUT the
result; a collector compares every result with a direct computation. All of them repeat what may have been lost, so a
job can be delivered twice, which is counted; but no acknowledged job may be lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from sockpq import Client, SockpqError

from bench.demo.actors import Actor, Collector, Prober, Producer
from bench.demo.files import list_files
from bench.demo.progress import Progress
from bench.demo.report import Report
from bench.load_generator.ack_gaps import Acks
from bench.load_generator.console import make_console
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError

WORKERS = 3
LEASE_MIN_S = 5.0
HASH_BYTES_PER_S_MIN = 20_000_000       # a lease is long enough for the largest file at this speed
GRACE_S = 2.0                           # leases are extended by it when the leader changes
DOWN_S = 2.0                            # how long the killed node stays down
FOLDER = Path("/usr/share")             # many small files, also where Python's library has few
FILES_MAX = 20_000                      # of that folder
BUSY_LOAD = 4.0                         # for each processor: then leaders change because nothing is answered in time
STUCK_S = 20.0                          # after this time and a lease without a result, missing results are lost

AFTERWARDS = """
This cluster is gone. One that stays, to play with:

    make play                               # three nodes, a producer and a worker; kill -9 what you like
    .venv/bin/sockpqd --dev --nodes 3       # three nodes only"""


class DemoError(Exception):
    """The demo cannot continue; the state of unfinished jobs is unknown."""


class Demo:
    """One run of the demo; call `run` once."""

    def __init__(self, folder: Path, files: dict[bytes, int], console: Console) -> None:
        self._folder = folder
        self._paths = list(files)
        self._lease_s = max(LEASE_MIN_S, max(files.values()) / HASH_BYTES_PER_S_MIN)
        self._console = console
        self._acks = Acks()
        self._actors: Sequence[Actor] = ()
        self._workers: list[subprocess.Popen[str]] = []
        self._done_before = -1
        self._done_at = 0.0

    def run(self) -> Report:
        """Start everything, work, kill the leader, stop everything. Raises DemoError and NodeError."""
        with ExitStack() as stack:
            grace = {"raft": {"failover_grace_ms": int(GRACE_S * 1000)}}
            self._cluster = stack.enter_context(LocalCluster(nodes=3, config=grace))
            self._say(f"three nodes run: {', '.join(self._cluster.servers)}; {self._cluster.wait_for_leader()} leads")
            stack.enter_context(self._running_workers())
            client = stack.enter_context(Client(self._cluster.servers, retry_unknown=True))
            self._collector = Collector(client, self._acks, self._paths, self._lease_s)
            self._producer = Producer(client, self._acks, self._paths, self._collector)
            self._actors = (self._collector, self._producer, Prober(client, self._acks))
            begun = time.monotonic()
            with Progress(self._console, len(self._paths), self._producer, self._collector):
                victim = self._work()
                seconds = self._done_at - begun
                if victim:
                    self._restart(victim)
                self._settle(client)
            return self._report(seconds)

    def _work(self) -> str | None:
        """Work until all results are there or no more come, killing the leader halfway; returns it if still down."""
        for actor in self._actors:
            actor.start()
        while not self._producer.halfway.wait(0.1):
            self._check()
        victim: str | None = self._kill_leader()
        killed = time.monotonic()
        self._producer.go_on.set()
        while not self._over():
            self._check()
            if victim and time.monotonic() - killed > DOWN_S:
                self._restart(victim)
                victim = None
            time.sleep(0.02)
        return victim

    def _kill_leader(self) -> str:
        victim = self._cluster.wait_for_leader()
        self._say(f"kill -9: {victim}, the leader (pid {self._cluster.pid(victim)})")
        self._cluster.kill(victim)
        return victim

    def _restart(self, victim: str) -> None:
        self._cluster.restart(victim)
        self._say(f"{victim} runs again; {self._cluster.wait_for_leader()} leads")

    def _over(self) -> bool:
        """Return whether every job has a result, or none has come for so long that none will."""
        done = len(self._collector.done)
        if done > self._done_before:
            self._done_before, self._done_at = done, time.monotonic()
        stuck = time.monotonic() - self._done_at > self._lease_s + GRACE_S + STUCK_S
        return done >= len(self._paths) or (stuck and not self._producer.is_alive())

    def _settle(self, client: Client) -> None:
        """Wait until duplicate jobs are done and the killed node has caught up."""
        until = time.monotonic() + self._lease_s + GRACE_S + STUCK_S
        while any(client.total(queue).jobs + client.total(queue).running for queue in ("files", "results")):
            self._check()
            if time.monotonic() > until:
                raise DemoError("the queues do not become empty")
            time.sleep(0.05)
        self._cluster.wait_until_level()
        self._say("all queues are empty, all three nodes are up to date")

    def _check(self) -> None:
        """Raise DemoError if an actor or a worker has failed."""
        for actor in self._actors:
            if actor.error:
                raise DemoError(f"{actor.name}: {actor.error}") from actor.error
        for worker in self._workers:
            if worker.poll() is not None:
                raise DemoError(f"a worker ended with exit code {worker.returncode}")

    @contextmanager
    def _running_workers(self) -> Iterator[None]:
        """Run the worker processes, which end when their input ends."""
        command = [sys.executable, "-m", "bench.demo.worker", ",".join(self._cluster.servers), str(self._lease_s)]
        try:
            for _ in range(WORKERS):
                worker = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                    cwd=Path(__file__).parents[2], start_new_session=True,      # Ctrl-C is for us: we end them
                )
                self._workers.append(worker)
                threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
            yield
        finally:
            for actor in self._actors:
                actor.stopping.set()
            for worker in self._workers:
                worker.kill()
                worker.wait()

    def _listen(self, worker: subprocess.Popen[str]) -> None:
        assert worker.stdout
        with worker.stdout:
            for line in worker.stdout:
                if line.endswith("]\n"):        # a killed worker's last line may be half
                    self._acks.add(json.loads(line))

    def _report(self, seconds: float) -> Report:
        acknowledged = self._paths[: self._producer.acknowledged]
        return Report(
            folder=self._folder,
            jobs=len(self._paths),
            acknowledged=len(acknowledged),
            done=len(self._collector.done),
            lost=[path for path in acknowledged if path not in self._collector.done],
            wrong=self._collector.wrong,
            twice=self._collector.twice,
            unreadable=self._collector.unreadable,
            changed=self._collector.changed,
            longest_gap_s=self._acks.longest_gap_s(),
            seconds=seconds,
        )

    def _say(self, what: str) -> None:
        self._console.log(what)


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def main(folder: Path | None) -> None:
    """Hash every file below DIR (default: 20,000 below /usr/share) on a cluster whose leader is killed meanwhile."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    console = make_console()
    most = FILES_MAX if folder is None else None
    folder = (FOLDER if folder is None else folder).absolute()
    if not folder.is_dir():
        raise click.UsageError(f"{folder} is no folder")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise click.UsageError(f"{folder} cannot be read")
    files = list_files(folder, most)
    if not files:
        console.print(f"There are no files below {folder}: nothing to do.")
        return
    console.log(f"{'the first ' if len(files) == most else ''}{len(files)} files below {folder}")
    try:
        report = Demo(folder, files, console).run()
    except (DemoError, NodeError, SockpqError) as error:
        console.print(f"The demo failed: {error}", style="bold red", markup=False)
        if busy := _busy():
            console.print(busy)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started is stopped")
        sys.exit(130)
    report.print(console)
    console.print(AFTERWARDS, markup=False, highlight=False)
    sys.exit(0 if report.good else 1)


def _busy() -> str:
    """Return what to do about other work on this machine, if it has too much of it; "" otherwise."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load < BUSY_LOAD * processors:
        return ""
    return (f"This machine is busy, with a load of {load:.0f} on {processors} processors, so nodes and clients wait for"
            " each other too long: try again when it has less to do.")


def _end(number: int, _: FrameType | None) -> None:
    """Handle SIGTERM and SIGHUP: end the program by an exception, so that it cleans up."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
