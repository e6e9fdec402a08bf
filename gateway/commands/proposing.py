"""Operations whose outcome a coroutine waits for."""

from __future__ import annotations

import asyncio

from cluster.api import Cluster
from core import Operation, Reply
from gateway.waiting.slots import Fate


class _Awaited:
    """Where the outcome of an operation goes that a coroutine waits for."""

    def __init__(self, cluster: Cluster, operation: Operation, client: object) -> None:
        self.outcome: asyncio.Future[Reply | Fate] = asyncio.get_running_loop().create_future()
        self._cluster = cluster
        self._operation = operation
        self._client = client or self
        self.propose()

    def propose(self) -> None:
        """Put the operation into the log."""
        self._cluster.propose_for(self._client, self._operation, self)

    def applied(self, reply: Reply) -> None:
        """The operation was executed."""
        self._settle(reply)

    def refused(self) -> None:
        """The operation was not executed."""
        self._settle(Fate.REFUSED)

    def unknown(self) -> None:
        """Nobody knows."""
        self._settle(Fate.UNKNOWN)

    def overdue(self) -> None:
        """There is much to do, and this can wait."""
        self.propose()

    def _settle(self, outcome: Reply | Fate) -> None:
        if not self.outcome.done():     # the client may have gone
            self.outcome.set_result(outcome)


async def propose(cluster: Cluster, operation: Operation, client: object = None) -> Reply | Fate:
    """Put the operation into the log and wait for what becomes of it.

    `client`: whose it is, if others of its operations may be under way.
    """
    return await _Awaited(cluster, operation, client).outcome
