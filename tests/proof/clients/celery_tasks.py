"""Celery's publisher and workers during the load: no task is lost, and one that is done twice was marked so.

The processes are those of tests/kombu/faults.py: two workers with two children each, tasks acknowledged late.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from sockpq import Client

from tests.chaos.machines.alterable import AlterableCluster
from tests.kombu.faults import WORKERS, Found, Run

TASKS, SEED = 1500, 0
VHOST = f"f{SEED}"            # of the tasks, by tests/kombu/faults.py
PATIENCE_S = 60.0


class CeleryTasks:
    """A publisher of TASKS tasks, and workers."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._run: Run | None = None
        self.found: Found | None = None

    def begin(self, cluster: AlterableCluster, seed: int) -> None:
        """Start the publisher of the tasks, and the workers."""
        self._run = Run(cluster, Path(self._folder.name), TASKS, SEED)
        self._run.start_publisher()
        for _ in range(WORKERS):
            self._run.start_worker()

    def finish(self) -> Iterator[str]:
        """Wait until all that was published is done. (A publisher that lost its patience has published less.)"""
        if self._run is None:
            return
        self.found = found = self._run.finish()
        servers = self._run.cluster.servers
        self.close()
        with Client(servers, timeout=PATIENCE_S) as client:        # results are jobs, too
            for queue in client.queues(f"{VHOST}."):
                client.queue_purge(queue.name, "all")
        if found.lost:
            yield f"celery: {found.lost} of {found.sent} tasks are lost"
        if found.unflagged:
            yield f"celery: {found.unflagged} tasks were done again and not marked as delivered again"
        if found.left:
            yield f"celery: {found.left} tasks are left in the queue"

    def close(self) -> None:
        """End the publisher and the workers."""
        run, self._run = self._run, None
        if run is not None:
            run.stop()

    def report(self) -> str:
        """Return how many there were."""
        return "" if self.found is None else f"{self.found.sent} tasks of Celery's, {self.found.twice} done again"
