"""Interfaces for commands: the client that sent one, and the services shared by all clients of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Protocol

from sockpqd.cluster.api import Cluster
from sockpqd.core import Reply, Requested
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.commands.context.client_state import ClientState
from sockpqd.gateway.commands.context.places import Places
from sockpqd.gateway.commands.context.reason_log import ReasonLog
from sockpqd.gateway.commands.region.feeds import Feeds
from sockpqd.gateway.counters import Tally
from sockpqd.gateway.events.subscriptions import Subscriptions
from sockpqd.gateway.limits import LINES_PER_PIECE, Limits
from sockpqd.gateway.link import Link
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.replica import Puller
from sockpqd.gateway.waiting.end_waiters import EndWaiters
from sockpqd.gateway.waiting.grant_waiters import GrantWaiters
from sockpqd.gateway.waiting.job_grants import GrantReservations
from sockpqd.gateway.waiting.job_waiters import JobWaiters
from sockpqd.gateway.waiting.slots import Outcome, Slot
from sockpqd.gateway.waiting.waiting_line import Waiter


class Memory(Protocol):
    """The account of the memory held for clients."""

    high: bool              # little room is left


class Services(Protocol):
    """The services shared by all clients of a node."""

    cluster: Cluster
    job_waiters: JobWaiters
    subscriptions: Subscriptions
    grant_waiters: GrantWaiters
    end_waiters: EndWaiters
    grant_reservations: GrantReservations
    access: Access
    limits: Limits
    tally: Tally
    reasons: ReasonLog
    budget: int                                 # what may still be executed in this turn, in plain commands
    exports: asyncio.Semaphore                  # limits concurrent snapshot exports
    feeds: Feeds                                # of copies in other regions
    puller: Puller | None                       # follows the origin, on a node of a replica
    fencing_replica: str | None                 # the id of the cluster that may fence this one
    exported: Places                            # for snapshots on the disk that are written or sent to clients,
    searches: Places                            # for FINDs that search at present,
    search_line: asyncio.Lock                   # and have their slices one after the other
    audit_behind: Callable[[], bool]            # many lines of the audit log wait to be written,
    audit_line: asyncio.Lock                    # and commands that leave one wait for these
    work: set[asyncio.Future[Outcome]]          # operators' commands, which outlive their clients
    shut_down: Callable[[str], None]            # takes the reason
    new_secret: Callable[[], int]               # for a session

    @property
    def account(self) -> Memory:
        """The account of the memory held for clients."""

    def new_export_path(self) -> Path:
        """Return an unused path for a snapshot that is being sent to a client."""

    async def turn(self, lines: int = LINES_PER_PIECE) -> None:
        """Wait for the turn of a piece of a long answer."""


class Client(Protocol):
    """The client that sent a command. All calls come from the event loop."""

    link: Link
    guard: Guard                            # who the client is
    ended: bool                             # the client has sent its last byte
    closed: bool                            # no more answers are sent
    state: ClientState                      # the state of its connection
    waiter: Waiter | None           # the blocked command
    over_share: bool                # the result of the last propose_for(): no further command is executed for now

    @property
    def hub(self) -> Services:
        """The services it shares with the other clients."""

    def propose(self, operation: Requested, numbering: Numbering | None = None) -> None:
        """Propose an operation, as a request if it is numbered; its reply becomes the next answer."""

    def propose_mapped(
        self, operation: Requested, tell: Callable[[Reply], Outcome], numbering: Numbering | None = None,
    ) -> None:
        """Propose an operation; `tell` turns its reply into the answer."""

    def nothing_in_flight(self) -> bool:
        """Return whether all commands before this one have been answered."""

    def number_in_flight(self, number: int) -> bool:
        """Return whether a command before this one may use the request number, or cause its answer to be forgotten."""

    def say(self, outcome: Outcome) -> None:
        """Make `outcome` the answer to this command, after earlier answers."""

    def say_last(self, answer: bytes) -> None:
        """Send the answer and close."""

    def cut(self, why: str) -> None:
        """Close immediately and log the reason."""

    def await_slot(self, slot: Slot) -> None:
        """Make the outcome of `slot` the next answer."""

    def block(self, waiter: Waiter) -> None:
        """Make the waiter's outcome the next answer; later commands wait until then."""

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Run a long-running command; later commands wait until it ends."""

    @property
    def rights_changed(self) -> bool:
        """True if the user's rights have changed since the running command began."""

    async def stream(self, piece: bytes) -> None:
        """Send a piece of a long answer, then wait until the client has read most of the sent bytes."""

    def weigh(self) -> None:
        """Report the memory held for the client to the account."""

    def wake(self) -> None:
        """Continue when the current turn ends."""
