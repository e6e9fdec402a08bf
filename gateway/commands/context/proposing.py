"""Proposing operations from coroutines that await the outcome."""

from __future__ import annotations

import asyncio

from sockpqd.cluster.api import Cluster
from sockpqd.core import Operation, Reply
from sockpqd.gateway.waiting.slots import NoReply


class _Awaited:
    """An operation in flight whose outcome a coroutine awaits."""

    def __init__(self, cluster: Cluster, operation: Operation, client: object) -> None:
        self.outcome: asyncio.Future[Reply | NoReply] = asyncio.get_running_loop().create_future()
        self._cluster = cluster
        self._operation = operation
        self._client = client
        self.propose()

    def propose(self) -> None:
        self._cluster.propose_for(self._client, self._operation, self)

    def applied(self, reply: Reply) -> None:
        """Resolve with the reply: the operation was executed."""
        self._settle(reply)

    def refused(self) -> None:
        """Resolve: the operation was not executed."""
        self._settle(NoReply.REFUSED)

    def unknown(self) -> None:
        """Resolve: the outcome is unknown."""
        self._settle(NoReply.UNKNOWN)

    def overdue(self) -> None:
        """Propose again, unless the client is gone: the queue to the log is overloaded, but this can wait."""
        if not self.outcome.done():
            self.propose()

    def _settle(self, outcome: Reply | NoReply) -> None:
        if not self.outcome.done():     # the client may be gone
            self.outcome.set_result(outcome)


async def propose(cluster: Cluster, operation: Operation, client: object) -> Reply | NoReply:
    """Propose the operation and wait for its outcome.

    `client`: the client in whose queue of operations it waits for its turn.
    """
    return await _Awaited(cluster, operation, client).outcome
