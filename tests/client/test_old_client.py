"""A client of the original server finishes its work on this one, though the leader is killed again and again.

    OLD_CLIENT_JOBS=10000 OLD_CLIENT_KILLS=5 pytest tests/client/test_old_client.py      the full size
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from functools import partial

from devcluster.cluster import LocalCluster
from tests.client.old_client import OldClient

JOBS = int(os.environ.get("OLD_CLIENT_JOBS", "1500"))
KILLS = int(os.environ.get("OLD_CLIENT_KILLS", "2"))
LEASE_S = 3             # a job whose answer is lost comes back after it
GRACE_MS = 500
LIMIT_S = 280


class Work:
    """Two old clients: one puts numbered jobs, the other takes and finishes them."""

    def __init__(self, servers: list[str]) -> None:
        self.until = time.monotonic() + LIMIT_S
        self.putter, self.worker = OldClient(servers), OldClient(servers)
        self.put = 0
        self.done: Counter[int] = Counter()
        self.errors: list[BaseException] = []
        self.threads = [threading.Thread(target=self._guard, args=[part]) for part in (self._put, self._work)]

    def _guard(self, part: object) -> None:
        try:
            part()      # type: ignore[operator]
        except BaseException as error:
            self.errors.append(error)

    def _put(self) -> None:
        for number in range(JOBS):
            self.putter.retry(partial(self.putter.put, "work", b"%d" % number), self.until)
            self.put += 1

    def _work(self) -> None:
        """Wait until each job was done once: an answer that is lost may mean that a job was put twice."""
        while len(self.done) < JOBS or self.put < JOBS:
            job = self.worker.retry(partial(self.worker.get, "GETBE", "work", LEASE_S), self.until)
            if job is None:
                time.sleep(0.01)
                continue
            self.worker.retry(partial(self.worker.done, job[0]), self.until)
            self.done[int(job[1])] += 1


def test_an_old_client_finishes_its_jobs_over_several_leaders() -> None:
    with LocalCluster(nodes=3, config={"raft": {"failover_grace_ms": GRACE_MS}}) as cluster:
        work = Work(cluster.servers)
        for thread in work.threads:
            thread.start()
        for kill in range(KILLS):
            while len(work.done) < JOBS * (kill + 1) // (KILLS + 1) and not work.errors:
                time.sleep(0.01)
            leader = cluster.wait_for_leader()
            cluster.kill(leader)
            time.sleep(0.5)
            cluster.restart(leader)
        for thread in work.threads:
            thread.join()
        work.putter.close()
        work.worker.close()
    print(f"{work.putter.connects + work.worker.connects} times connected,",
          f"{work.putter.gave_up + work.worker.gave_up} times after refusals,",
          f"{sum(work.done.values()) - JOBS} jobs done twice")
    assert work.errors == []
    assert sorted(work.done) == list(range(JOBS))
    assert work.putter.connects > KILLS or work.worker.connects > KILLS     # they were there when it happened
    assert sum(work.done.values()) <= JOBS + 2 * (work.putter.connects + work.worker.connects)
