"""Commands about jobs that end: numbers, headers, keys that are remembered, progress, results, records."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sockpqd.core import (
    Atomic,
    Change,
    Configure,
    ConfigureQueue,
    Dedup,
    Delete,
    End,
    How,
    Kick,
    Move,
    Number,
    Purged,
    PurgeQueue,
    PutWith,
    QueueChange,
    Requested,
    Selector,
    Touch,
)

if TYPE_CHECKING:
    from tests.sim.clients.without_session import Client

HEADERS = (b"", b"n: v\n", b"n: v\ntrace: 1\n")
KEYS = ("d1", "d2")
RETAIN_MS = (0, 300, 3000, 3000)
REMEMBERED_MS = (30, 500)


class EndedJobs:
    """The operations of one client."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client = client
        self._rng = rng

    def draw(self) -> Requested:
        """Return a random operation on ended jobs, or on the settings that keep them."""
        rng, client = self._rng, self._client
        queue = rng.choice(client.queues)
        kinds: tuple[Callable[[], Requested], ...] = (
            *6 * [self.atomic],
            lambda: ConfigureQueue(queue, self._change(), create=True),
            *2 * [lambda: ConfigureQueue(queue, self._change())],
            lambda: PurgeQueue(queue, Purged.ENDED),
            lambda: Configure(retained_bytes=rng.choice((0, 200, 1 << 30, 1 << 30))),
        )
        return rng.choice(kinds)()

    def atomic(self) -> Atomic:
        """Draw an operation on one job."""
        rng, client = self._rng, self._client
        headers = rng.choice(HEADERS)
        kinds: tuple[Callable[[], Atomic], ...] = (
            *4 * [self._put], *4 * [lambda: End(client.release(), How.DONE, text=client.body())],
            *2 * [lambda: Touch(client.held(), progress=rng.choice((0, 50, 100)))],
            lambda: Change(Selector(id=client.held()), headers=headers),
            lambda: Move(client.release(), rng.choice(client.queues), headers=headers),
            *2 * [lambda: Kick("", 1, selector=Number(client.ended_number()), ended=True)],
            lambda: Delete(Number(client.ended_number()), ended=True),
        )
        return rng.choice(kinds)()

    def _put(self) -> PutWith:
        rng = self._rng
        put, headers = self._client.put(new_item=False), rng.choice(HEADERS)
        return PutWith(
            replace(put, data=headers + put.data), number=rng.random() < 0.5, head=len(headers),
            dedup=Dedup(rng.choice(KEYS), rng.choice(REMEMBERED_MS)) if rng.random() < 0.4 else None,
        )

    def _change(self) -> QueueChange:
        rng = self._rng
        return rng.choice((
            QueueChange(retain_ms=rng.choice(RETAIN_MS), numbered=rng.random() < 0.8),
            QueueChange(retain_ms=rng.choice(RETAIN_MS), numbered=rng.random() < 0.8),
            QueueChange(retain_max=rng.choice((0, 2, 1000)), retain_bytes=rng.choice((0, 300, 1 << 20))),
            QueueChange(dedup_max=rng.choice((0, 1, 1000))),
        ))
