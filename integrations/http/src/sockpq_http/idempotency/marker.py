"""The marker of a request with an Idempotency-Key: a job in the transaction that executes the request.

Its key is in the queue of markers, so a second transaction with it is refused as a whole. It ends by its TTL; the queue
hands out nothing, as it is paused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import sockpq
from sockpq.aio import Client, Transaction

QUEUE = "http_idempotency"
PAUSED_S = 60.0             # after which the pause of the queue is renewed, in case that somebody has ended it


class Markers:
    """Executes transactions once for each key, which the cluster remembers for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._paused_until = 0.0

    async def once(self, client: Client, word: str, collect: Callable[[Transaction], None]) -> list[Any] | None:
        """Execute what `collect` puts into a transaction; returns its results, None if it was executed before.

        Raises Aborted, whose position counts without the marker.
        """
        await self._pause(client)
        try:
            async with client.transaction() as transaction:
                transaction.put(QUEUE, b"", key=word, ttl=self.seconds, number=False)
                collect(transaction)
        except sockpq.Aborted as error:
            if error.position == 1:
                if isinstance(error.reason, sockpq.JobExists):
                    return None
                raise error.reason from error
            raise sockpq.Aborted(str(error), error.position - 1, error.reason) from error
        return transaction.results[1:]

    async def _pause(self, client: Client) -> None:
        """Let nobody be handed a marker who takes from any queue."""
        now = time.monotonic()
        if now < self._paused_until:
            return
        with suppress(sockpq.ForbiddenError):       # only some users may; docs/HTTP.md has the operator's part
            await client.queue_pause(QUEUE, "out")
        self._paused_until = now + PAUSED_S
