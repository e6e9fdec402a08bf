"""A line of blocked commands, in order of arrival: the common part of all kinds of waiting.

GETB, GETBE and PUT .. WAIT wait for jobs (job_waiters.py), PULSE WAIT waits for grants (grant_waiters.py), and others
can wait for the end of a job (end_waiters.py). A waiter that arrives is queued, or an operation is proposed for it at
once. While its operation is in flight it is not in line, and if the result is empty it returns to its old place.

A kind of waiting adds an index of its waiters to the line, by what they wait for, and removes them from the line when
an applied entry brings that. If its waiters do not behave like most, it overrides the methods at the end.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sockpqd.cluster.api import Cluster
from sockpqd.core import Operation, Reply, TouchSession
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.lines import Lines
from sockpqd.gateway.waiting.slots import IGNORED, NoReply, Outcome, WaitingClient

RequestKey = tuple[int, int]        # a session, and the number of a command in it


class Waiter(Struct, gc=False, eq=False):
    """A blocked command: the slot of its answer, which receives the outcome of the operation proposed for it."""

    client: WaitingClient
    line: WaitingLine[Any]
    outcome: Outcome | None = None
    request_key: RequestKey | None = None       # of a numbered command
    number: int = 0                             # order of arrival; 0: not known yet
    was_queued: bool = False                    # it has been in line
    timer: asyncio.TimerHandle | None = None    # of WITHIN
    timed_out: bool = False                     # the operation in flight is its last chance

    @property
    def numbered(self) -> bool:
        """True if it is a command with REQ."""
        return self.request_key is not None

    @property
    def session(self) -> int | None:
        """The session that is used while it waits, if any."""
        return None if self.request_key is None else self.request_key[0]

    @property
    def held_bytes(self) -> int:
        """The memory that the waiter uses, beyond what any command does."""
        return 0

    @property
    def operation(self) -> Operation:
        """The operation to propose for it."""
        raise NotImplementedError

    @property
    def refusal(self) -> bytes | None:
        """Return the refusal if its client may no longer have what it waits for, otherwise None."""
        raise NotImplementedError

    @property
    def unknown_outcome(self) -> NoReply:
        """Return the outcome of the command if its operation's outcome is unknown."""
        return NoReply.UNKNOWN_REQUEST if self.numbered else NoReply.UNKNOWN

    def end(self, outcome: Outcome) -> None:
        """Set its answer and stop its timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.outcome = outcome

    def end_of_input(self) -> None:
        """Handle that the client has sent its last byte, while commands before this one have no answer yet."""
        self.line.end_of_input(self)

    def leave(self) -> None:
        """Stop waiting: the client is gone."""
        self.line.cancel(self)

    def keep_session(self) -> None:
        """Use the session it is in, if any: a blocked client sends nothing, and its session must not end."""
        self.line.keep_session(self)

    # ---- the outcome of its operation

    def applied(self, reply: Reply) -> None:
        self.line.settle(self, reply)

    def refused(self) -> None:
        """Answer that its operation was not executed, as this node no longer serves."""
        self.line.give_up(self, NoReply.REFUSED)

    def unknown(self) -> None:
        """Answer that its operation may or may not have been executed."""
        self.line.give_up(self, self.unknown_outcome)

    def overdue(self) -> None:
        """Propose its operation again, which was dropped by an overloaded node, unless its time is up."""
        if self.timed_out:
            self.line.drop(self, responses.BUSY)
        else:
            self.line.propose(self)


T = TypeVar("T", bound=Waiter)


class WaitingLine(ABC, Generic[T]):
    """The blocked commands of this node that wait in one way, first come first served."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._last_number = 0
        self._queued: dict[int, T] = {}                 # by number
        self._requests: Lines[RequestKey] = Lines()     # the numbered commands among them

    def __len__(self) -> int:
        return len(self._queued)

    def is_queued(self, waiter: T) -> bool:
        """Return whether the waiter is in line."""
        return self._queued.get(waiter.number) is waiter

    def arrive(self, waiter: T) -> None:
        """Give the waiter its place in the order of arrival."""
        self._last_number += 1
        waiter.number = self._last_number

    def enqueue(self, waiter: T) -> None:
        """Put the waiter in line, at its old place if it has one."""
        if not waiter.number:
            self.arrive(waiter)
        waiter.was_queued = True
        self._queued[waiter.number] = waiter
        if waiter.request_key is not None:
            self._requests.add(waiter.request_key, waiter.number)

    def remove(self, waiter: T) -> None:
        """Take the waiter out of the line."""
        del self._queued[waiter.number]
        if waiter.request_key is not None:
            self._requests.remove(waiter.request_key, waiter.number)

    def same_request(self, waiter: T) -> list[T]:
        """Return the queued waiters of the same numbered command, on other connections of its client."""
        key = waiter.request_key
        return [] if key is None else [self._queued[number] for number in self._requests.numbers(key)]

    def enqueue_or_end(self, waiter: T) -> None:
        """Return a waiter that got nothing to its line, unless its client or this node no longer waits."""
        if waiter.client.ended:
            self.finish(waiter, NoReply.CANCELLED)
        elif not self.cluster.serving:
            self.finish(waiter, NoReply.REFUSED)
        else:
            self.enqueue(waiter)

    def limit(self, waiter: T, within_ms: int | None) -> None:
        """Limit how long the waiter waits, starting now; None: no limit, 0: it has timed out."""
        if within_ms:
            waiter.timer = asyncio.get_running_loop().call_later(within_ms / 1000, self._time_out, waiter)
        elif within_ms is not None:
            waiter.timed_out = True

    def _time_out(self, waiter: T) -> None:
        waiter.timer = None
        waiter.timed_out = True
        if self.is_queued(waiter):
            self.last_chance(waiter)

    def finish(self, waiter: T, outcome: Outcome) -> None:
        """Give a waiter its answer."""
        waiter.end(outcome)
        if waiter.outcome is not None:          # else it may not be written yet
            waiter.client.wake()

    def finish_if_refused(self, waiter: T) -> bool:
        """Refuse a waiter whose client may no longer have what it waits for; returns whether it was refused."""
        refusal = waiter.refusal
        if refusal is not None:
            self.finish(waiter, refusal)
        return refusal is not None

    def give_up(self, waiter: T, outcome: Outcome) -> None:
        """End a waiter whose operation was not executed, or has an unknown outcome."""
        self.release(waiter)
        if waiter.outcome is None:
            self.finish(waiter, outcome)

    def stop(self) -> None:
        """Refuse all queued waiters: this node no longer serves."""
        for waiter in list(self._queued.values()):
            self.remove(waiter)
            self.finish(waiter, NoReply.REFUSED)

    # ---- methods to override

    @abstractmethod
    def settle(self, waiter: T, reply: Reply) -> None:
        """Handle the reply to the waiter's operation."""

    def propose(self, waiter: T) -> None:
        """Propose the waiter's operation; the waiter gets the outcome."""
        self.cluster.propose_for(waiter.client, waiter.operation, waiter)

    def release(self, waiter: T) -> None:
        """Free what the operation of this waiter claims, which is no longer in flight."""

    def drop(self, waiter: T, outcome: Outcome) -> None:
        """End a waiter whose operation had no turn, while this node still serves the others."""
        self.give_up(waiter, outcome)

    def last_chance(self, waiter: T) -> None:
        """End a queued waiter whose time is up, or propose its operation a last time."""
        self.remove(waiter)
        self.finish(waiter, responses.WAIT_TIMEOUT)

    def end_of_input(self, waiter: T) -> None:
        """Stop waiting, as the client has sent its last byte."""
        self.cancel(waiter)
        waiter.client.wake()

    def cancel(self, waiter: T) -> None:
        """Remove the waiter of a client that is gone."""
        if self.is_queued(waiter):
            self.remove(waiter)
        waiter.end(NoReply.CANCELLED)

    def keep_session(self, waiter: T) -> None:
        """Keep the waiter's session from expiring while its client waits."""
        session = waiter.session
        if session is not None:
            self.cluster.propose(TouchSession(session), IGNORED)
