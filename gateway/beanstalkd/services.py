"""The services that execute operations of beanstalkd's clients, and the client they act for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from sockpqd.cluster.api import Cluster
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.waiting.job_waiters import JobWaiters


class NodeServices(Protocol):
    """The parts of the node that the listener needs."""

    cluster: Cluster
    job_waiters: JobWaiters
    access: Access
    budget: int                     # see beanstalk.turns
    audit_behind: Callable[[], bool]    # see gateway.audit
    audit_line: asyncio.Lock

    def call_in_turn(self, do: Callable[[], None]) -> None:
        """Call `do` in a later turn (see beanstalk.turns)."""

    def do_piece(self, piece: Callable[[], bool]) -> None:
        """Call `piece`, which does a piece of a long answer, in its turn (see beanstalk.turns)."""


class Principal:
    """The user and the address of a client, for the authorizer."""

    __slots__ = ("_guard", "peer", "user")

    def __init__(self, user: str | None, address: str) -> None:
        self.user = user
        self.peer = address
        self._guard: Guard | None = None

    def guard(self, services: NodeServices) -> Guard:
        """Return the client's guard, which is created at the first call."""
        if self._guard is None:
            self._guard = Guard(services.access, services.cluster, self)
        return self._guard
