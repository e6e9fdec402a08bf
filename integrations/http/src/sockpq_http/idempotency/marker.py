"""The markers of a request with an Idempotency-Key: jobs in the transaction that executes the request.

They are in a queue of their own, and end by their TTL; the queue hands out nothing, as it is paused. Each user of the
cluster has such a queue: a user who could put markers for others could prevent their requests, and have them answered
as executed. Where several clusters are used as one, each has queues of markers under names that it owns, as a
transaction is executed by one cluster.

The put of one job has one marker. Its KEY is the key of the request, its DEDUP has the fingerprint as well, and DEDUP
is asked first. So the same request finds that its marker exists, and then that its job does; another request with its
key is refused as a whole, since the marker of the first is there.

Any other change has two, and a second transaction with one of them is refused as a whole. The first has the fingerprint
in its key, the second has not: so which of them is there says whether it was the same request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import sockpq
from sockpq import ClusterMap, Key, Number, Place, Stored
from sockpq.aio import Client, Transaction

from sockpq_http.idempotency.key import other_request
from sockpq_http.limits import KEYS_AGAIN_S
from sockpq_http.problems.problem import Problem

QUEUE = "http_idempotency"          # where the cluster has no users; else followed by ".", the user, and "@"
MARKERS = 2
KEYS_MAX = 1_000_000        # that the queue remembers, unless it has a setting; without one it were 10,000
PREPARED_S = 60.0           # after which the pause of a queue is renewed, in case that somebody has ended it
READ_S = 60.0               # for which a map of clusters is good, as the client has it

Subject = str | int | Key | Number | Place | None      # of a request: a name, or a job by its id


class Item(str):
    """The name of an item, which may end with the name of its cluster: `i17.eu`."""


class Markers:
    """Executes transactions once for each key, which the cluster remembers for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._prepared_until: dict[str, float] = {}
        self._map = ClusterMap()
        self._map_until = float("-inf")

    async def put_once(
        self, client: Client, user: str, word: str, fingerprint: str, queue: str, arguments: Mapping[str, Any]
    ) -> Stored:
        """Put a job once; returns what is stored, with the outcome `exists` if it was put before.

        `user`: see once(); `arguments`: of the client's put(). Raises Problem if another request had the key, or a
        queue is full.
        """
        markers = queue_of(await self._cluster_map(client), user, queue, client.id_text)
        await self._prepare(client, markers)
        try:
            async with client.transaction() as transaction:
                transaction.put(markers, b"", key=word, dedup=(f"{word}:{fingerprint}", self.seconds), ttl=self.seconds)
                transaction.put(queue, **arguments, dedup=(word, self.seconds))
        except sockpq.Aborted as error:
            if error.position == 1 and isinstance(error.reason, sockpq.JobExists):
                raise other_request() from error
            if isinstance(error.reason, sockpq.QueueFull):
                raise full(error.reason, markers if error.position == 1 else queue) from error
            raise error.reason from error
        stored: Stored = transaction.results[1]
        return stored

    async def once(
        self, client: Client, user: str, word: str, fingerprint: str, collect: Callable[[Transaction], None],
        subject: Subject,
    ) -> list[Any] | None:
        """Execute what `collect` puts into a transaction; returns its results, None if it was executed before.

        `user`: whose request it is, "" where there are no users; `word`: of the key; `fingerprint`: of the request;
        `subject`: of one of its commands, which determines the cluster. Raises Aborted, whose position counts without
        the markers, and Problem if another request had the key.
        """
        queue = queue_of(await self._cluster_map(client), user, subject, client.id_text)
        await self._prepare(client, queue)
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

    async def _prepare(self, client: Client, queue: str) -> None:
        """Keep markers from clients that take from any queue, and let the queue remember many keys."""
        now = time.monotonic()
        if now < self._prepared_until.get(queue, 0.0):
            return
        with suppress(sockpq.ForbiddenError):       # only some users may; docs/HTTP.md has the operator's part
            await client.queue_pause(queue, "out")
            if "dedup_max" not in await client.queue_config(queue):
                await client.queue_config(queue, dedup_max=KEYS_MAX)
        self._prepared_until[queue] = now + PREPARED_S

    async def _cluster_map(self, client: Client) -> ClusterMap:
        now = time.monotonic()
        if now >= self._map_until:
            self._map = await client.cluster_map()
            self._map_until = now + READ_S
        return self._map


def full(error: sockpq.QueueFull, queue: str) -> Problem:
    """Return the problem of a queue that is full, of jobs or of keys: the cluster does not say which."""
    return Problem(
        503, f"{error}: {queue} has as many jobs as its capacity, or remembers as many keys as its dedup_max (10,000 "
        f"without settings). For more keys raise that by PATCH /v1/queues/{queue}/config",
        "queue-full", code=503, reason="Queue Full", headers={"retry-after": str(KEYS_AGAIN_S)},
    )


def queue_of(clusters: ClusterMap, user: str, subject: Subject, id_text: Callable[[int], str]) -> str:
    """Return the user's queue of markers in the cluster that has the subject; the user is "" where there are no users.

    The queue's name ends with an `@`, which no user's name has, so that a right to one never reaches the queue of a
    longer name. Raises Problem if the cluster owns no name for such a queue.
    """
    queue = f"{QUEUE}.{user}@" if user else QUEUE
    if len(clusters.clusters) < 2:
        return queue
    cluster = _cluster_of(clusters, subject, id_text)
    for prefix in ("", *clusters.rules):
        if clusters.owner(f"{prefix}{queue}") == cluster:
            return f"{prefix}{queue}"
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
