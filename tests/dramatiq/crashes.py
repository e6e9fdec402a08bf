"""Workers are killed, and so is the leader, while messages fail once and succeed: no message is lost or copied.

Each message fails at first, is retried, and then sends a mark, in one step with its acknowledgement. So each has
exactly one mark in the end, however often a worker was killed between two of its steps.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dramatiq
from sockpq_dramatiq import SockpqBroker

from devcluster.cluster import LocalCluster
from tests.waiting import until

TASKS = """
import dramatiq
from dramatiq.middleware import CurrentMessage
from sockpq_dramatiq import SockpqBroker

broker = SockpqBroker("ADDRESS", ttl=1.0)
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)

@dramatiq.actor(queue_name="marks")
def mark(number): ...

@dramatiq.actor(atomic=True, max_retries=100, min_backoff=1, max_backoff=50)
def work(number):
    if not CurrentMessage.get_current_message().options.get("retries"):
        raise RuntimeError
    mark.send(number)
"""


class Crashes:
    """One worker process after the other, at a cluster of three nodes."""

    def __init__(self, folder: Path, cluster: LocalCluster, seed: int) -> None:
        self._folder = folder
        self._cluster = cluster
        self._random = random.Random(seed)
        self._log = folder / "log"
        self.broker = SockpqBroker(",".join(cluster.servers))
        (folder / "tasks.py").write_text(TASKS.replace("ADDRESS", ",".join(cluster.servers)))

    def send(self, messages: int) -> None:
        """Send this many messages, numbered from 0."""
        self.broker.declare_queue("default")
        for number in range(messages):
            self.broker.enqueue(dramatiq.Message("default", "work", (number,), {}, {}))

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Run a worker, which is killed at the end of the block."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [Path(sys.executable).with_name("dramatiq"), "tasks", "-Q", "default", "-p", "1", "-t", "4"],
                cwd=self._folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(self._folder)},
                start_new_session=True,
            )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def crash(self, with_leader: bool) -> None:
        """Kill a worker in the middle of its work."""
        with self.worker():
            before = self._marked
            until(lambda: self._marked > before or self.is_done, self._log.read_text)
            time.sleep(self._random.random() / 10)
            if with_leader:
                leader = self._cluster.wait_for_leader()
                self._cluster.kill(leader)
                self._cluster.restart(leader)

    @property
    def _marked(self) -> int:
        return self.broker.client.total("marks").jobs

    @property
    def is_done(self) -> bool:
        """True if no message is left."""
        stat = {queue.name: queue for queue in self.broker.client.queues()}.get("default")
        return stat is None or not (stat.ready or stat.delayed or stat.running)

    def marks(self) -> Counter[int]:
        """Let a last worker finish; returns how many marks each message has."""
        with self.worker():
            until(lambda: self.is_done, self._log.read_text)
        jobs = self.broker.client.peek_queue("marks", count=10_000)
        return Counter(dramatiq.Message.decode(job.data).args[0] for job in jobs)


def marks_after_crashes(folder: Path, messages: int, kills: int, seed: int) -> Counter[int]:
    """Kill a worker `kills` times, every third time with the leader; returns how many marks each message has."""
    with LocalCluster(3) as cluster:
        crashes = Crashes(folder, cluster, seed)
        crashes.send(messages)
        for kill in range(kills):
            crashes.crash(with_leader=kill % 3 == 2)
        marks = crashes.marks()
        crashes.broker.close()
    return marks
