"""Celery's tasks through faults of servers, workers and publishers: what was lost, what was done twice.

    python -m tests.kombu.faults [--tasks 2000] [--seeds 0 1 2] [--only leader_killed ..]

Three nodes, two workers of two children, tasks of some milliseconds acknowledged late, a publisher in a process of its
own. Each task leaves a line outside. Nothing that was published may be lost; a task is done twice only when a worker
was at fault, and is flagged `redelivered` then.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.chaos.machines.cluster import ProxiedCluster

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0
WORKERS = 2
TASK_S = 0.005
LEFT_S = 60.0           # for acknowledgements, and sessions that end
SESSION_S = 3.0         # of the workers' connections, as set in the project

PUBLISHER = f"""
import sys, time
from tests.kombu.celery_project import note
first, count, out, sent = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], open(sys.argv[4], "a", buffering=1)
for number in range(first, first + count):
    note.delay(out, number, {TASK_S})
    sent.write(f"{{number}}\\n")
"""


class Found(NamedTuple):
    """The outcome of one run."""

    sent: int
    lost: int
    twice: int
    unflagged: int
    left: int                   # in the queue, when all is done: none
    connection_lost: bool       # by a worker; none is away from the servers for as long as it has patience


class Run:
    """The processes of one run."""

    def __init__(self, cluster: LocalCluster, folder: Path, tasks: int, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self._folder = folder
        self._tasks = tasks
        self._vhost = f"f{seed}"
        self._environment = {
            **os.environ, "CELERY_URL": ";".join(f"sockpq://{server}/{self._vhost}" for server in cluster.servers),
        }
        self.workers: list[subprocess.Popen[bytes]] = []
        self.publisher: subprocess.Popen[bytes]

    def start_worker(self) -> None:
        """Start a worker; it reports when it is ready."""
        log = self._folder / f"worker{len(self.workers)}.log"
        with log.open("wb") as out:
            self.workers.append(subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tests.kombu.celery_project", "worker", "-c", "2", "-n",
                 log.stem, "--loglevel", "info"],
                cwd=ROOT, env=self._environment, stdout=out, stderr=out, start_new_session=True,
            ))
        self._until(lambda: b" ready." in log.read_bytes())

    def start_publisher(self) -> None:
        """Continue publishing where the previous one has stopped."""
        first = len(self._numbers("sent"))
        self.publisher = subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, str(first), str(self._tasks - first), str(self._folder / "out"),
             str(self._folder / "sent")],
            cwd=ROOT, env=self._environment,
        )

    def progress(self, share: float) -> None:
        """Wait until such a share of the tasks is done."""
        self._until(lambda: len(self._numbers("out")) >= share * self._tasks)

    def finish(self) -> Found:
        """Wait until everything that was published is done, or nothing more happens."""
        self.publisher.wait(PATIENCE_S)
        sent = set(self._numbers("sent"))
        until, before = time.monotonic() + 30.0, -1
        while not sent <= set(self._numbers("out")) and time.monotonic() < until:
            done = len(self._numbers("out"))
            if done != before:
                before, until = done, time.monotonic() + 30.0
            time.sleep(0.2)
        left = self._left()
        counts = Counter(self._numbers("out"))      # also what was done twice, after the first time
        flagged = {int(line.split()[0]) for line in self._lines("out") if line.endswith(" 1")}
        twice = [number for number, count in counts.items() if count > 1]
        logs = "".join(log.read_text() for log in self._folder.glob("worker*.log"))
        return Found(
            len(sent), len(sent - set(counts)), len(twice), sum(number not in flagged for number in twice),
            left, "onnection lost" in logs or "onnection to broker lost" in logs,
        )

    def _left(self) -> int:
        """Return how many tasks wait or run, once that is none, or does not change any more."""
        with Client(self.cluster.servers) as client:
            until = time.monotonic() + LEFT_S
            while True:
                stat = client.queue_stat(f"{self._vhost}.celery")
                left = int(stat["ready"] + stat["running"] + stat["delayed"])
                if not left or time.monotonic() > until:
                    return left
                time.sleep(0.2)

    def stop(self) -> None:
        """Kill the workers and the publisher, stopped ones too."""
        for process in (*self.workers, self.publisher):
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                if process is self.publisher:
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _lines(self, name: str) -> list[str]:
        file = self._folder / name
        return [line for line in file.read_text().splitlines() if line] if file.exists() else []

    def _numbers(self, name: str) -> list[int]:
        return [int(line.split()[0]) for line in self._lines(name)]

    def _until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not reached():
            if time.monotonic() > end:
                raise TimeoutError("the tasks do not get on")
            time.sleep(0.1)


def leader_killed(run: Run) -> None:
    """Twice, each time started again."""
    for share in (0.2, 0.6):
        run.progress(share)
        name = run.cluster.wait_for_leader()
        run.cluster.kill(name)
        time.sleep(run.random.uniform(1, 3))
        run.cluster.restart(name)


def leader_frozen(run: Run) -> None:
    """Stop the leader's process for some seconds."""
    run.progress(0.3)
    name = run.cluster.wait_for_leader()
    run.cluster.pause(name)
    time.sleep(run.random.uniform(2, 6))
    run.cluster.resume(name)


def leader_cut_off(run: Run) -> None:
    """Isolate the leader from the other nodes, in both directions, for some seconds; clients reach all three."""
    run.progress(0.3)
    assert isinstance(run.cluster, ProxiedCluster)
    name = run.cluster.wait_for_leader()
    links = run.cluster.between([name], [other for other in run.cluster.names if other != name])
    run.cluster.together(links, lambda link: link.silence(lost=True))
    time.sleep(run.random.uniform(3, 8))
    run.cluster.heal_links()


def all_restarted(run: Run) -> None:
    """Kill all nodes, and start them again."""
    run.progress(0.4)
    names = list(run.cluster.names)
    for name in names:
        run.cluster.kill(name)
    time.sleep(run.random.uniform(0.5, 2))
    for name in names:
        run.cluster.restart(name, wait=False)


def rolling_restart(run: Run) -> None:
    """Restart the nodes, one after the other."""
    for place, name in enumerate(run.cluster.names):
        run.progress(0.2 + 0.2 * place)
        run.cluster.terminate(name)
        run.cluster.restart(name)


def worker_killed(run: Run) -> None:
    """With its children; another one takes its place."""
    run.progress(0.3)
    os.killpg(run.workers[0].pid, signal.SIGKILL)
    run.start_worker()


def worker_frozen(run: Run) -> None:
    """With its children, for longer than its session lives."""
    run.progress(0.3)
    os.killpg(run.workers[0].pid, signal.SIGSTOP)
    time.sleep(3 * SESSION_S)
    os.killpg(run.workers[0].pid, signal.SIGCONT)


def publisher_killed(run: Run) -> None:
    """Kill the publisher, and continue with another one."""
    run.progress(0.2)
    run.publisher.kill()
    run.publisher.wait()
    run.start_publisher()


FAULTS = (
    leader_killed, leader_frozen, leader_cut_off, all_restarted, rolling_restart, worker_killed, worker_frozen,
    publisher_killed,
)
OF_WORKERS = (worker_killed, worker_frozen)


def is_good(fault: Callable[[Run], None], found: Found) -> bool:
    """Return whether the promise was kept."""
    if found.left or found.connection_lost:
        return False
    if fault is publisher_killed:       # what it had published and not noted is published again
        return not found.lost and found.twice <= 1
    return not found.lost and not found.unflagged and (fault in OF_WORKERS or not found.twice)


def measure(fault: Callable[[Run], None], tasks: int, seed: int) -> Found:
    """One run on a cluster of its own."""
    make = ProxiedCluster if fault is leader_cut_off else LocalCluster
    with tempfile.TemporaryDirectory() as folder, make(3) as cluster:
        run = Run(cluster, Path(folder), tasks, seed)
        run.start_publisher()
        try:
            for _ in range(WORKERS):
                run.start_worker()
            fault(run)
            return run.finish()
        finally:
            run.stop()


def main() -> int:
    """Run them all; returns the exit code."""
    options = argparse.ArgumentParser(description="Celery's tasks through faults.")
    options.add_argument("--tasks", type=int, default=2000)
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options.add_argument("--only", nargs="*", default=[fault.__name__ for fault in FAULTS])
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)       # what was started is ended
    bad = 0
    for fault in FAULTS:
        if fault.__name__ not in chosen.only:
            continue
        for seed in chosen.seeds:
            found = measure(fault, chosen.tasks, seed)
            good = is_good(fault, found)
            bad += not good
            print(f"{'ok ' if good else 'BAD'} {fault.__name__} {seed}: {found}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
