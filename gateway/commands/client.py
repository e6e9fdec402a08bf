"""What a command may do with the client that sent it, and with what all clients of a node share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Protocol

from cluster.api import Cluster
from core import Reply, Requested
from gateway.auth.authenticator import Access
from gateway.auth.authorizer import Guard
from gateway.commands.client_state import ClientState
from gateway.counters import Tally
from gateway.limits import Limits
from gateway.link import Link
from gateway.protocol.request_id import Numbering
from gateway.waiting.slots import Outcome, Slot
from gateway.waiting.waiter import Waiter
from gateway.waiting.waiters import Waiters


class Memory(Protocol):
    """What is held for clients."""

    high: bool              # there is little room left


class Services(Protocol):
    """What all clients of a node share."""

    cluster: Cluster
    waiters: Waiters
    access: Access
    limits: Limits
    tally: Tally
    exports: asyncio.Semaphore                  # for snapshots on their way to clients
    work: set[asyncio.Future[Outcome]]          # of operators; held there, as their clients may go
    shut_down: Callable[[str], None]            # called with the reason
    new_secret: Callable[[], int]               # of a session

    @property
    def account(self) -> Memory:
        """What is held for clients."""

    def new_export_path(self) -> Path:
        """A file that does not exist, for a snapshot on its way to a client."""


class Client(Protocol):
    """The client that sent a command. All calls come from the loop."""

    link: Link
    guard: Guard                            # who the client is
    ended: bool                             # the client sent its last byte
    state: ClientState                      # what it has set up on its connection
    waiter: Waiter | None                   # the blocked command

    @property
    def hub(self) -> Services:
        """What it shares with the others."""

    def propose(self, operation: Requested, numbering: Numbering | None = None) -> None:
        """Put an operation into the log, as a request if it is numbered; its reply is the next answer."""

    def propose_told(
        self, operation: Requested, tell: Callable[[Reply], Outcome], numbering: Numbering | None = None,
    ) -> None:
        """The same; what `tell` makes of the reply is the answer."""

    def nothing_in_flight(self) -> bool:
        """Are all commands before this one answered?"""

    def say(self, outcome: Outcome) -> None:
        """Answer at once, in order."""

    def say_last(self, answer: bytes) -> None:
        """Answer and close."""

    def await_slot(self, slot: Slot) -> None:
        """The next answer is the outcome of `slot`."""

    def block(self, waiter: Waiter) -> None:
        """The next answer is the waiter's; nothing behind it is executed before."""

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Execute a command that takes its time; nothing behind it is executed before."""

    async def stream(self, piece: bytes) -> None:
        """Send a piece of a long answer as soon as the client has taken most of those before."""

    def wake(self) -> None:
        """Go on when the turn has ended."""
