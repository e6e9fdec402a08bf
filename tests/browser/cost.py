"""Measures what open pages cost: the time of the leader's loop between two waits, and what ordinary clients notice.

    .venv/bin/python -m tests.browser.cost turns
    .venv/bin/python -m tests.browser.cost clients / /queues --realtime

`turns` makes each page in this process, before a state with very much of everything, 10,000 queues and a million
records among it, and prints the processor time of its longest turn. `clients` fills a real cluster with as much, lets a
client put, take and end jobs one after the other at the leader, and opens one page there as a browser does, in every
second window. The ratio of the medians says what the client notices; that of neighbours holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import statistics
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Generator, Iterable, Iterator, Sequence
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Self, cast

import uvloop
from msgspec.structs import replace
from sockpq import Client, SockpqError

from devcluster.cluster import LocalCluster
from sockpqd.core import ConfigureQueue, End, Get, How, Put, QueueChange
from sockpqd.gateway.dashboard import site
from sockpqd.gateway.dashboard.pages.parts.view import Redirect
from tests.browser.many import BATCH, QUEUES, RECORDS, fill, records_queue
from tests.browser.many import name as queue_name
from tests.gateway.dashboard.test_portions import PAGES, filled
from tests.gateway.helpers.dashboard import Site

AGAIN = 5                   # times each page is made; the least counts, as others use the processor too
SETTLE_S = 0.5              # until the client is connected
REST = 5                    # a page rests as long between two loads, as in script.js,
FIGURES_S = 2.0             # and asks for the figures of its charts as often, as in charts.js
OPEN = ("/", "/cluster", "/queues?sort=in", "/queues?sort=oldest", f"/queue?name={records_queue(1)}&tab=ENDED", "/dead",
        "/jobs?queues=*&states=DONE", "/find?search=queue0", "/items", "/groups", "/pulses", "/workers", "/topics",
        "/sessions", "/users", "/slow", "/background", "/clusters", f"/queue?name={queue_name(7)}")


class Timed:
    """A page that is made: `turns` so far, and the processor time of the `longest` one in milliseconds."""

    def __init__(self, page: Awaitable[Any]) -> None:
        self._page = page
        self.turns = 0
        self.longest = 0.0

    def __await__(self) -> Generator[Any, None, Any]:
        running = cast("Generator[Any, None, Any]", self._page.__await__())
        while True:
            before = time.thread_time()
            try:
                awaited = running.send(None)
            except StopIteration as end:
                return end.value
            finally:
                self.turns += 1
                self.longest = max(self.longest, 1000 * (time.thread_time() - before))
            yield awaited


def leave_records(found: Site) -> None:
    """Fill the node as fill does a cluster."""
    machine = found.cluster.machine

    def apply(operations: list[Any]) -> None:
        machine.apply(machine.index + 1, machine.clock_ms, 0, operations)

    for first in range(0, QUEUES, BATCH):
        apply([Put(queue_name(number), number % 3, b"a body of some length")
               for number in range(first, first + BATCH)])
    settings = QueueChange(retain_ms=86_400_000, retain_max=RECORDS, retain_bytes=1 << 30, numbered=True)
    apply([ConfigureQueue("records", settings, create=True)])
    for _ in range(0, RECORDS, BATCH):
        first = machine.next_id
        apply([Put("records", 0, b"done")] * BATCH + [Get(("records",))] * BATCH
              + [End(first + at, How.DONE) for at in range(BATCH)])


async def print_turns() -> None:
    """Print the longest turn of each page."""
    async with Site(None) as found:
        view = filled(found)
        leave_records(found)
        await view.samples.look()
        gc.collect()
        gc.freeze()
        searches: tuple[tuple[str, dict[str, str]], ...] = (
            ("/queue", {"name": "records", "tab": "ENDED"}), ("/jobs", {"queues": "records", "states": "DONE"}),
            ("/jobs", {"queues": "*", "reason": "r7"}), ("/queues", {"sort": "oldest"}),
            ("/find", {"search": "queue09"}),
        )
        for path, words in (*PAGES, *searches):
            asked = replace(view, words=words)
            runs = [Timed(site.PAGES[path](asked)) for _ in range(AGAIN)]
            for run in runs:
                with contextlib.suppress(Redirect):
                    await run
            least = min(runs, key=lambda run: run.longest)
            print(f"{least.longest:6.2f} ms  {least.turns:6} turns  {path} {words}", flush=True)


def work(server: str, results: Connection) -> None:
    """Put, take and end jobs until the parent says so; then send when each began, and how long it took in seconds."""
    seen: list[tuple[float, float]] = []
    with Client(server) as client:
        while not results.poll():
            began = time.monotonic()
            try:
                client.put("busy", b"x")
                job = client.get("busy", expire=60)
                if job is not None:
                    client.done(job)
            except SockpqError:         # another node leads: that is not the page's doing
                continue
            seen.append((began, time.monotonic() - began))
    results.send(seen)


class Busy:
    """A client in a process of its own that works while this block lasts."""

    def __init__(self, server: str) -> None:
        mine, its = get_context("spawn").Pipe()
        self._results = mine
        self._process = get_context("spawn").Process(target=work, args=(server, its), daemon=True)
        self._seen: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._results.send("enough")
        self._seen = self._results.recv()
        self._process.join(60)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process.pid is not None
        return self._process.pid

    def median(self, begin: float, end: float) -> float:
        """Return the median of what began in between, once the block has ended."""
        return statistics.median(took for began, took in self._seen if begin <= began < end)


def load(address: str) -> str:
    """Return a page, whatever its status is."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def keep_open(base: str, path: str, until: float) -> int:
    """Load a page again and again as script.js and charts.js do; returns how often."""
    loads, figures_at, sources = 0, 0.0, set[str]()
    while time.monotonic() < until:
        began = time.monotonic()
        sources = {one.replace("&amp;", "&") for one in re.findall(r'data-figures="([^"]*)"', load(base + path))}
        loads += 1
        if began - figures_at > FIGURES_S:
            figures_at = began
            for source in sources:
                load(base + source)
        time.sleep(max(0.0, min(REST * (time.monotonic() - began), until - time.monotonic())))
    return loads


@contextlib.contextmanager
def first(pids: Iterable[int], *, realtime: bool) -> Iterator[None]:
    """Let these processes go before all others meanwhile, which takes root, for short runs on a busy machine."""
    def policy(chosen: int, priority: int) -> None:
        for pid in pids:
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), chosen, os.sched_param(priority))

    if realtime:
        policy(os.SCHED_RR, 10)
    try:
        yield
    finally:
        if realtime:
            policy(os.SCHED_OTHER, 0)


def print_clients(pages: Sequence[str], window_s: float, pairs: int, *, realtime: bool) -> None:
    """Print for each page the ratio of the client's medians, with the page open and without it."""
    with LocalCluster(nodes=3) as cluster:
        cluster.wait_until_level()
        with Client(cluster.servers) as client:
            fill(client)
        cluster.wait_until_level()
        leader = cluster.wait_for_leader()
        nodes = [pid for name in cluster.names if (pid := cluster.pid(name)) is not None]
        for path in pages:
            with Busy(cluster.server(leader)) as busy:
                time.sleep(SETTLE_S)
                with first([*nodes, busy.pid, os.getpid()], realtime=realtime):
                    marks, loads = [time.monotonic()], 0
                    for _ in range(pairs):
                        time.sleep(window_s)
                        marks.append(time.monotonic())
                        loads += keep_open(f"http://{cluster.http(leader)}", path, marks[-1] + window_s)
                        marks.append(time.monotonic())
            medians = [busy.median(begin, end) for begin, end in pairwise(marks)]
            ratios = [with_it / without for without, with_it in zip(medians[::2], medians[1::2], strict=True)]
            print(f"x{statistics.median(ratios):.2f} (x{min(ratios):.2f} to x{max(ratios):.2f}) of "
                  f"{1000 * statistics.median(medians[::2]):.2f} ms  {loads / pairs / window_s:5.1f} loads/s  {path}",
                  flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("turns", "clients"))
    parser.add_argument("pages", nargs="*", default=OPEN, help="of clients; without any, all lists and others")
    parser.add_argument("--realtime", action="store_true", help="let nodes and client go before all other processes")
    parser.add_argument("--window", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    if asked.what == "turns":
        uvloop.run(print_turns())
    else:
        print_clients(asked.pages, asked.window, asked.pairs, realtime=asked.realtime)


if __name__ == "__main__":
    main()
