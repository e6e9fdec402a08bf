"""Samples of what `pqctl top` shows: nodes, pools of workers, queues and their rates."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from sockpq import Client, SockpqError, WorkerInfo

from sockpqd.pqctl.health import Health, look
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.live.rates import MOVES, Rates
from sockpqd.pqctl.replicas import RegionPart, asked_part

AGES_MAX = 50       # number of queues that are asked for the age of their oldest job, each by a command of its own
ASK_S = 0.6         # how long a node has to answer; then it is shown as DOWN


class QueueLine(NamedTuple):
    """One queue. `oldest_s`: how long its oldest ready job has waited, None if that was not asked."""

    name: str
    ready: int
    delayed: int
    running: int
    dead: int
    buried: int
    put: float
    take: float
    done: float
    retry: float
    oldest_s: int | None = None

    @property
    def jobs(self) -> int:
        """The jobs that are not finished and not given up."""
        return self.ready + self.delayed + self.running


class Sample(NamedTuple):
    """The state of the cluster at one moment. `pings`: seconds, by the node's address. None: not allowed, or failed.

    `remarks` say why something is missing. `part`: of the cluster for another region.
    """

    health: Health
    pings: dict[str, float]
    rows: list[QueueLine] | None
    workers: list[WorkerInfo] | None
    remarks: tuple[str, ...]
    part: RegionPart | None = None


class Sampler:
    """Takes samples; if a part is refused or fails, only that part is missing."""

    def __init__(self, call: Call, client: Client, prefix: str) -> None:
        self._call, self._client, self._prefix = call, client, prefix
        self._rates = Rates(client.events(MOVES, f"{prefix}*", timeout=call.timeout))     # ends with the client

    def rows(self, server: str | None, ages: int) -> list[QueueLine]:
        """Return the queues of the prefix, those with the most jobs first. `ages`: how many to ask for their oldest
        job.

        A queue without settings vanishes with its last job; it keeps its row while jobs come and go.
        """
        found = self._client.queues(self._prefix, server=server, timeout=self._call.timeout)
        rates = self._rates.take()
        counts = {name: (0, 0, 0, 0, 0) for name, _ in rates}
        counts |= {one.name: (one.ready, one.delayed, one.running, one.dead, one.buried) for one in found}
        rows = [QueueLine(name, *numbers, *_rates(rates, name)) for name, numbers in counts.items()]
        rows.sort(key=lambda row: (-row.jobs, row.name))
        return [row._replace(oldest_s=self._oldest(row, server)) for row in rows[:ages]] + rows[ages:]

    def take(self) -> Sample:
        """Take a sample; takes at most about two seconds when nodes do not answer."""
        health = look(self._call.servers, ASK_S, self._call.access)
        up = [node.client for node in health.nodes if node.client and node.role not in ("DOWN", "FULL")]
        leader = health.leader.client if health.leader and health.leader.client in up else None
        server = leader or next(iter(up), None)
        remarks = list(health.notes)
        rows = workers = None
        if server is not None:
            try:
                rows = self.rows(server, AGES_MAX)
            except SockpqError as error:
                remarks.append(f"no queues: {error}")
            try:
                workers = sorted(self._client.workers(server, timeout=ASK_S))
            except SockpqError as error:
                remarks.append(f"no workers: {error}")
        if self._rates.refusal is not None:
            remarks.append(f"no rates: {self._rates.refusal}")
        part = asked_part(self._client, [(node.name, node.client) for node in health.nodes if node.client in up], ASK_S)
        return Sample(health, self._pings(up), rows, workers, tuple(remarks), part)

    def _oldest(self, row: QueueLine, server: str | None) -> int | None:
        if not row.ready:
            return 0
        try:
            return self._client.queue_stat(row.name, server=server, timeout=ASK_S).get("oldest_s")
        except SockpqError:
            return None             # it is gone by now

    def _pings(self, servers: Iterable[str]) -> dict[str, float]:
        pings = {}
        for server in servers:
            begun = time.perf_counter()
            try:
                self._client.ping(server, timeout=ASK_S)
            except SockpqError:
                continue
            pings[server] = time.perf_counter() - begun
        return pings


def _rates(rates: dict[tuple[str, str], float], name: str) -> tuple[float, float, float, float]:
    """PUT, TAKE and DONE, and jobs that came back to their queue: by LATER, or as their lease ended."""
    put, take, done, later, expired = (rates.get((name, kind), 0.0) for kind in MOVES)
    return put, take, done, later + expired
