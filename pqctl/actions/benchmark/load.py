"""`pqctl bench`: threads that put, take and finish jobs one at a time, and their latencies."""

from __future__ import annotations

import secrets
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from sockpq import Client, SockpqError

from sockpqd.pqctl.actions.benchmark.drain import drain
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, one_line

LEASE_S = 60.0                  # minimum lease of a job; its DONE must not come too late
QUEUED_JOBS_MAX = 200_000       # at most left queued by the first part
QUEUED_BYTES_MAX = 256 << 20
BUSY = 0.7                      # threads of one Python process share one CPU
PERCENTILES = (50, 90, 99)


class BenchmarkLoad:
    """The queue of a benchmark, with its three kinds of work. Each returns False when nothing is left to do."""

    def __init__(self, client: Client, queue: str, size: int, lease_s: float) -> None:
        self._client = client
        self._lease_s = lease_s
        self._body = secrets.token_bytes(size)
        self.queue = queue

    def put(self) -> bool:
        """Put one job into the benchmark's queue."""
        self._client.put(self.queue, self._body)
        return True

    def take(self) -> bool:
        """Take a job and finish it; returns False if there is none."""
        job = self._client.get(self.queue, expire=self._lease_s)
        if job is None:
            return False
        job.done()
        return True

    def both(self) -> bool:
        """Put a job, then take one and finish it."""
        return self.put() and self.take()


@dataclass
class LoadPart:
    """The result of one part of the benchmark. `latencies_s`: one for each job that succeeded, sorted after `run`."""

    name: str
    latencies_s: array[float] = field(default_factory=lambda: array("d"))
    errors: int = 0
    error: str | None = None        # the first one
    seconds: float = 0.0
    cpu_s: float = 0.0              # of this process

    @property
    def rate(self) -> float:
        return len(self.latencies_s) / self.seconds if self.seconds else 0.0

    def percentile_ms(self, percent: int) -> float | None:
        """Return the latency in milliseconds that this many per cent did not exceed; None if there are none."""
        count = len(self.latencies_s)
        if not count:
            return None
        return self.latencies_s[max(-(-count * percent // 100) - 1, 0)] * 1000        # nearest rank


def run(part: LoadPart, work: Callable[[], bool], seconds: float, connections: int, jobs_max: int = 2**63) -> None:
    """Run `work` in `connections` threads for `seconds`, until nothing is left, or for `jobs_max` jobs each."""
    stopping = threading.Event()
    lock = threading.Lock()

    def repeat() -> None:
        mine = array("d")
        until = time.perf_counter() + seconds
        try:
            while not stopping.is_set() and len(mine) < jobs_max and (begun := time.perf_counter()) < until:
                try:
                    if not work():
                        break
                    mine.append(time.perf_counter() - begun)
                except SockpqError as error:
                    with lock:
                        part.errors += 1
                        part.error = part.error or one_line(str(error))
        finally:
            with lock:
                part.latencies_s.extend(mine)

    threads = [threading.Thread(target=repeat, name=f"{part.name} {number}") for number in range(connections)]
    cpu, begun = time.process_time(), time.perf_counter()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:                    # an interrupt arrives here while waiting
        stopping.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        part.seconds, part.cpu_s = time.perf_counter() - begun, time.process_time() - cpu
        part.latencies_s = array("d", sorted(part.latencies_s))


def show(call: Call, seconds: float, connections: int, size: int) -> int:
    """Run the benchmark, drain its queue and print the result."""
    queue = f"pqctl-bench-{secrets.token_hex(6)}"
    parts = [LoadPart("put"), LoadPart("get+done"), LoadPart("put+get+done")]
    with cluster_of(call, serving=True, connections=connections) as (client, servers):
        servers.find(None)          # without a leader every call would wait for one
        if not call.as_json:
            call.print(f"queue {queue}: {counted(connections, 'connection')}, bodies of {counted(size, 'byte')}")
        load = BenchmarkLoad(client, queue, size, max(LEASE_S, 3 * call.timeout))
        queued_max = max(min(QUEUED_JOBS_MAX, QUEUED_BYTES_MAX // max(size, 1)) // connections, 1)
        try:
            run(parts[0], load.put, seconds, connections, queued_max)
            run(parts[1], load.take, seconds, connections)
            run(parts[2], load.both, seconds, connections)
        except BaseException:       # interrupted, or out of threads: the jobs are there nevertheless
            _leave(client, queue)
            raise
        left = _leave(client, queue)
    return _tell(call, parts, queue, left, connections, size)


def _leave(client: Client, queue: str) -> int | None:
    """Drain the queue; prints what is left in it, even if interrupted."""
    left: int | None = None
    try:
        left = drain(client, queue)
        return left
    finally:
        if left is None:
            say(f"it is unknown how many jobs are left in queue {queue}: `pqctl queue stat {queue}`")
        elif left:
            say(f"{counted(left, 'job')} left in queue {queue}")


def _tell(call: Call, parts: list[LoadPart], queue: str, left: int | None, connections: int, size: int) -> int:
    failed = left != 0 or any(part.errors for part in parts)
    if call.as_json:
        call.answer("", {
            "queue": queue, "connections": connections, "size": size, "left": left,
            "parts": [_as_json(part) for part in parts],
        })
        return REFUSED if failed else DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    columns = (Column("per job"), *(Column(title, figures=True) for title in
               ("jobs", "jobs/s", *(f"p{percent} ms" for percent in PERCENTILES), "max ms", "errors")))
    print_rows(call, columns, [_row(part) for part in parts])
    cpu = sum(part.cpu_s for part in parts) / max(sum(part.seconds for part in parts), 1e-9)
    call.print(f"This client is measured too: it kept {cpu:.0%} of one CPU busy.")
    if cpu > BUSY:
        call.print("So it is probably what limits the rates, not the cluster.")
    for part in parts:
        if part.error:
            call.print(f"{part.name}: {part.errors} failed, the first one: {part.error}")
    return REFUSED if failed else DONE


def _as_json(part: LoadPart) -> dict[str, object]:
    latency = {f"p{percent}": part.percentile_ms(percent) for percent in PERCENTILES}
    return {
        "part": part.name, "jobs": len(part.latencies_s), "errors": part.errors, "error": part.error,
        "seconds": part.seconds, "jobs_per_s": part.rate, "client_cpu_s": part.cpu_s,
        "latency_ms": {**latency, "max": part.percentile_ms(100)},
    }


def _row(part: LoadPart) -> list[str]:
    latencies = (part.percentile_ms(percent) for percent in (*PERCENTILES, 100))
    return [part.name, f"{len(part.latencies_s):,}", f"{part.rate:,.0f}",
            *("-" if value is None else f"{value:.2f}" for value in latencies), str(part.errors)]
