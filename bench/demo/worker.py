"""A worker process of the demo: takes jobs, computes and puts results until its standard input ends.

    python -m bench.demo.worker SERVERS LEASE_S

Each line it prints is a JSON list of the milliseconds in which its commands were acknowledged.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from sockpq import Client, Job, SockpqError

from bench.demo.files import digest, encode_result
from bench.load_generator.ack_gaps import Acks

JOBS, RESULTS = "files", "results"

BATCH_MAX = 64
BATCH_S = 0.2           # work taken at once, which must be done long before the lease ends
WAIT_S = 1.0
REPORT_S = 0.2
STOP_S = 3.0


class Worker:
    """Takes as many jobs at once as it can process in BATCH_S."""

    def __init__(self, servers: str, lease_s: float) -> None:
        # at least once: a job or result that may be lost is sent again, and the collector counts duplicates
        self._client = Client(servers, retry_unknown=True)
        self._lease_s = lease_s
        self._batch = 1
        self.stopping = threading.Event()
        self.acks = Acks()

    def run(self) -> None:
        while not self.stopping.is_set():
            first = self._client.get(JOBS, block=True, expire=self._lease_s, wait=WAIT_S)
            if first is None:
                continue
            self.acks.note()
            self._work(first)

    def _work(self, first: Job) -> None:
        jobs = [first]
        if self._batch > 1:
            jobs += self._client.get_many(self._batch - 1, JOBS, expire=self._lease_s)
            self.acks.note()
        begun = time.monotonic()
        results = [encode_result(job.data, digest(job.data)) for job in jobs]
        spent = time.monotonic() - begun
        self._client.put_many(RESULTS, results)
        self.acks.note()
        self._client.done_many(jobs)    # a job whose lease has ended is done again; the collector counts duplicates
        self.acks.note()
        fitting = int(len(jobs) * BATCH_S / max(spent, 1e-6))
        self._batch = max(1, min(fitting, 2 * self._batch, BATCH_MAX))

    def report(self) -> None:
        """Print the acknowledgements since the last report, for the parent."""
        print(json.dumps(self.acks.take_new()), flush=True)


def main() -> None:
    """Run a worker in this process."""
    worker = Worker(sys.argv[1], float(sys.argv[2]))
    threading.Thread(target=_stop_at_end_of_input, args=(worker,), daemon=True).start()
    threading.Thread(target=_report_often, args=(worker,), daemon=True).start()
    try:
        worker.run()
    except SockpqError as error:
        sys.exit(f"worker: {error}")
    worker.report()


def _stop_at_end_of_input(worker: Worker) -> None:
    """Stop when the parent closes the input or dies, and exit by force if the cluster no longer answers."""
    sys.stdin.read()
    worker.stopping.set()
    time.sleep(STOP_S)
    os._exit(1)


def _report_often(worker: Worker) -> None:
    while not worker.stopping.wait(REPORT_S):
        worker.report()


if __name__ == "__main__":
    main()
