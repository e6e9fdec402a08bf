"""The threads of the demo: one puts the jobs, one collects and checks the results, one probes the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from sockpq import Client, JobNotFound, SockpqError

from bench.demo.files import changed_since, decode_result, digest
from bench.demo.worker import JOBS, RESULTS
from bench.load_generator.ack_gaps import Acks

CHUNK_JOBS = 100
AHEAD_JOBS_MAX = 2000       # how far the producer may be ahead, so that the leader dies amid puts, gets and dones
PULSE_S = 0.01
PULSE_LEASE_S = 30.0
BATCH = 64


class Actor(threading.Thread):
    """A thread that keeps the error that ended it."""

    def __init__(self, client: Client, acks: Acks) -> None:
        super().__init__(name=type(self).__name__, daemon=True)
        self.client = client
        self.acks = acks
        self.stopping = threading.Event()
        self.error: SockpqError | None = None

    def run(self) -> None:
        """Work until done or stopped."""
        try:
            self.work()
        except SockpqError as error:
            if not self.stopping.is_set():
                self.error = error

    def work(self) -> None:
        raise NotImplementedError


class Collector(Actor):
    """Takes the results and compares each with a direct computation."""

    def __init__(self, client: Client, acks: Acks, paths: Sequence[bytes], lease_s: float) -> None:
        super().__init__(client, acks)
        self._lease_s = lease_s
        self._expected = frozenset(paths)
        self._begun = time.time()
        self.done: set[bytes] = set()
        self.wrong: list[bytes] = []
        self.twice = 0              # results of a file that had one already
        self.changed = 0            # files written to while the demo ran: no result can be right
        self.unreadable = 0

    def work(self) -> None:
        """Take results and check them until stopped."""
        while not self.stopping.is_set():
            first = self.client.get(RESULTS, block=True, expire=self._lease_s, wait=0.5)
            if first is None:
                continue
            jobs = [first, *self.client.get_many(BATCH, RESULTS, expire=self._lease_s)]
            self.acks.note()
            for job in jobs:
                self._compare(job.data)
            self.client.done_many(jobs)
            self.acks.note()

    def _compare(self, body: bytes) -> None:
        path, result = decode_result(body)
        if path in self.done:
            self.twice += 1
            return
        self.done.add(path)
        expected = digest(path)
        if path in self._expected and result == expected:
            self.unreadable += result.startswith("unreadable")
        elif path in self._expected and changed_since(path, self._begun):
            self.changed += 1
        else:
            self.wrong.append(path)


class Producer(Actor):
    """Puts a job for each file, in small pipelined chunks, repeating each until it is acknowledged."""

    def __init__(self, client: Client, acks: Acks, paths: Sequence[bytes], collector: Collector) -> None:
        super().__init__(client, acks)
        self._paths = paths
        self._collector = collector
        self.acknowledged = 0       # how many of the paths, from the first on
        self.halfway = threading.Event()
        self.go_on = threading.Event()      # the last chunk waits for it, so that the leader dies before the end

    def work(self) -> None:
        """Put the jobs of all paths."""
        for start in range(0, len(self._paths), CHUNK_JOBS):
            chunk = self._paths[start : start + CHUNK_JOBS]
            if start + len(chunk) > len(self._paths) // 2:
                self.halfway.set()
            if start + len(chunk) == len(self._paths):
                self.go_on.wait()
            while self.acknowledged - len(self._collector.done) > AHEAD_JOBS_MAX and not self.stopping.is_set():
                time.sleep(0.005)
            self.client.put_many(JOBS, chunk)
            self.acknowledged += len(chunk)
            self.acks.note()


class Prober(Actor):
    """Puts and takes jobs of its own all the time, so that a gap in acknowledgements is due to the cluster."""

    def work(self) -> None:
        """Put, take and finish a job every PULSE_S until stopped."""
        while not self.stopping.wait(PULSE_S):
            self.client.put("pulse", b"")
            self.acks.note()
            job = self.client.get("pulse", expire=PULSE_LEASE_S)
            if job:
                with suppress(JobNotFound):     # its lease ended meanwhile, on a very slow machine: it comes again
                    job.done()
            self.acks.note()
