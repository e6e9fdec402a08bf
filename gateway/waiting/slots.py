"""Slots: the places of answers, one per command, in the order of the commands; and the client that waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import ClassVar, Protocol

from msgspec import Struct

from sockpqd.cluster.api import Cluster
from sockpqd.core import Handed, HandedMany, Reply, Return
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command


class WaitingClient(Protocol):
    """A client with pending answers."""

    ended: bool             # it has sent its last byte: it no longer waits for jobs

    @property
    def guard(self) -> Guard:
        """Return the client's current rights."""

    def wake(self) -> None:
        """Wake the client, as an answer has become available."""


class ProposingClient(WaitingClient, Protocol):
    """A waiting client that may have many commands in flight."""

    over_share: bool        # the result of the last propose_for(): no further command is executed for now


class NoReply(Enum):
    """The fate of a command that was not executed, or whose outcome is unknown."""

    REFUSED = "surely not executed: 500 Offline Mode"
    UNKNOWN = "perhaps executed: the connection is closed without an answer"
    UNKNOWN_REQUEST = "the same of a numbered command, which may be repeated: 504 Outcome Unknown, and closed"
    CANCELLED = "a blocked command whose client sent its last byte: likewise"


Outcome = Reply | NoReply | bytes | responses.AtWriting     # bytes: the answer itself


class Slot(Protocol):
    """The place of one command's answer; `outcome` is None until it is known.

    `numbered`: an undeliverable job handed out to it is not given back, because the session will ask for it.
    """

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the command, None while it has none."""

    @property
    def numbered(self) -> bool:
        """True if it is a command with REQ."""


NEVER = float("inf")
# A slot with its command and the time at which that was started, in monotonic seconds; None and NEVER if it may wait.
Awaited = tuple[Slot, float, Command | None]


class ImmediateSlot(Struct, gc=False, eq=False):
    """The place of an answer that is known at once."""

    numbered: ClassVar[bool] = False
    outcome: Outcome | None


class OperationSlot(Struct, gc=False, eq=False):
    """A command that is a single operation."""

    numbered: ClassVar[bool] = False
    client: WaitingClient
    outcome: Outcome | None = None

    def applied(self, reply: Reply) -> None:
        """Record that the operation was executed."""
        self.outcome = reply
        self.client.wake()

    def refused(self) -> None:
        """Record that the operation was not executed."""
        self.outcome = NoReply.REFUSED
        self.client.wake()

    def overdue(self) -> None:
        """Record that the operation was dropped: the node is overloaded."""
        self.outcome = responses.BUSY
        self.client.wake()

    def unknown(self) -> None:
        """Record that the outcome is unknown."""
        self.outcome = NoReply.UNKNOWN_REQUEST if self.numbered else NoReply.UNKNOWN
        self.client.wake()


class RequestSlot(OperationSlot):
    """A numbered command that is a single operation."""

    numbered: ClassVar[bool] = True


class MappedSlot(OperationSlot, kw_only=True):
    """A command that is a single operation; `tell` turns its reply into the outcome."""

    tell: Callable[[Reply], Outcome]

    def applied(self, reply: Reply) -> None:
        """Record that the operation was executed."""
        self.outcome = self.tell(reply)
        self.client.wake()


class MappedRequestSlot(MappedSlot):
    """A MappedSlot of a numbered command."""

    numbered: ClassVar[bool] = True


class IgnoredOutcome:
    """Ignores the outcome of an operation that no client asked for."""

    def applied(self, reply: Reply) -> None: ...

    def refused(self) -> None: ...

    def unknown(self) -> None: ...


IGNORED = IgnoredOutcome()


def jobs_of(reply: Outcome) -> tuple[Handed, ...]:
    """Return the jobs that a reply hands out."""
    return (reply,) if isinstance(reply, Handed) else reply.jobs if isinstance(reply, HandedMany) else ()


def return_jobs(cluster: Cluster, jobs: Iterable[Handed]) -> None:
    """Return jobs that cannot be delivered to their queues."""
    for job in jobs:
        cluster.propose(Return(job.id), IGNORED)


def give_back(cluster: Cluster, slots: deque[Awaited]) -> deque[Awaited]:
    """Return jobs that cannot be delivered to their queues; returns the slots still without an outcome."""
    left: deque[Awaited] = deque()
    for awaited in slots:
        slot = awaited[0]
        outcome = slot.outcome
        if outcome is None:
            left.append(awaited)
        elif isinstance(outcome, Handed | HandedMany) and not slot.numbered:
            return_jobs(cluster, jobs_of(outcome))
        elif isinstance(outcome, responses.AtWriting):
            outcome.drop()
    return left
