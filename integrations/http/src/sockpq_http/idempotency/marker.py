"""The markers of a request with an Idempotency-Key: two jobs in the transaction that executes the request.

Their keys are in the queue of markers, so a second transaction with one of them is refused as a whole. The first has
the fingerprint of the request in its key, the second has not: so which of them is there says whether it was the same
request. They end by their TTL; the queue hands out nothing, as it is paused. Where several clusters are used as one,
each has a queue of markers under a name that it owns, as a transaction is executed by one cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import sockpq
from sockpq import ClusterMap, Key, Number, Place
from sockpq.aio import Client, Transaction

from sockpq_http.idempotency.key import other_request
from sockpq_http.problems.problem import Problem

QUEUE = "http_idempotency"
MARKERS = 2
PAUSED_S = 60.0             # after which the pause of a queue is renewed, in case that somebody has ended it
READ_S = 60.0               # for which a map of clusters is good, as the client has it

Subject = str | int | Key | Number | Place | None      # of a request: a name, or a job by its id


class Item(str):
    """The name of an item, which may end with the name of its cluster: `i17.eu`."""


class Markers:
    """Executes transactions once for each key, which the cluster remembers for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._paused_until: dict[str, float] = {}
        self._map = ClusterMap()
        self._map_until = float("-inf")

    async def once(
        self, client: Client, word: str, fingerprint: str, collect: Callable[[Transaction], None], subject: Subject
    ) -> list[Any] | None:
        """Execute what `collect` puts into a transaction; returns its results, None if it was executed before.

        `word`: of the key; `fingerprint`: of the request; `subject`: of one of its commands, which determines the
        cluster. Raises Aborted, whose position counts without the markers, and Problem if another request had the key.
        """
        queue = queue_of(await self._cluster_map(client), subject, client.id_text)
        await self._pause(client, queue)
        try:
            async with client.transaction() as transaction:
                for key in (f"{word}:{fingerprint}", word):
                    transaction.put(queue, b"", key=key, ttl=self.seconds, number=False)
                collect(transaction)
        except sockpq.Aborted as error:
            if error.position > MARKERS:
                raise sockpq.Aborted(str(error), error.position - MARKERS, error.reason) from error
            if not isinstance(error.reason, sockpq.JobExists):
                raise error.reason from error
            if error.position == 1:
                return None
            raise other_request() from error
        return transaction.results[MARKERS:]

    async def _pause(self, client: Client, queue: str) -> None:
        """Let nobody be handed a marker who takes from any queue."""
        now = time.monotonic()
        if now < self._paused_until.get(queue, 0.0):
            return
        with suppress(sockpq.ForbiddenError):       # only some users may; docs/HTTP.md has the operator's part
            await client.queue_pause(queue, "out")
        self._paused_until[queue] = now + PAUSED_S

    async def _cluster_map(self, client: Client) -> ClusterMap:
        now = time.monotonic()
        if now >= self._map_until:
            self._map = await client.cluster_map()
            self._map_until = now + READ_S
        return self._map


def queue_of(clusters: ClusterMap, subject: Subject, id_text: Callable[[int], str]) -> str:
    """Return the queue of markers of the cluster that has the subject. Raises Problem if it owns no name for one."""
    if len(clusters.clusters) < 2:
        return QUEUE
    cluster = _cluster_of(clusters, subject, id_text)
    for prefix in ("", *clusters.rules):
        if clusters.owner(f"{prefix}{QUEUE}") == cluster:
            return f"{prefix}{QUEUE}"
    raise Problem(409, "the cluster of this request owns no name for markers: give it a prefix in the map", "no-marker")


def _cluster_of(clusters: ClusterMap, subject: Subject, id_text: Callable[[int], str]) -> str | None:
    match subject:
        case int() | Number():
            number = subject.number if isinstance(subject, Number) else subject
            return id_text(number).rpartition(".")[0] or clusters.home
        case Key() | Place():
            return clusters.owner(subject.queue)
        case Item() if subject.rpartition(".")[2] in clusters.clusters:
            return subject.rpartition(".")[2]
        case str():
            return clusters.owner(subject)
    return clusters.home
